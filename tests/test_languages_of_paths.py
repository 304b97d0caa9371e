"""Which language a path is in."""

from __future__ import annotations

import pytest

from coderag_ci.parse.languages import BY_NAME, LANGUAGES, TEXT, language_of


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("main.py", "python"), ("types.pyi", "python"), ("app.pyw", "python"),
        ("a.js", "javascript"), ("a.jsx", "javascript"), ("a.mjs", "javascript"),
        ("a.cjs", "javascript"), ("a.ts", "typescript"), ("a.mts", "typescript"),
        ("a.cts", "typescript"), ("a.d.ts", "typescript"), ("a.tsx", "tsx"), ("a.go", "go"),
        ("a.rs", "rust"), ("A.java", "java"), ("a.c", "c"), ("a.h", "c"), ("a.cc", "cpp"),
        ("a.cpp", "cpp"), ("a.cxx", "cpp"), ("a.c++", "cpp"), ("a.hpp", "cpp"), ("a.hh", "cpp"),
        ("a.hxx", "cpp"), ("a.inl", "cpp"), ("A.cs", "csharp"), ("a.rb", "ruby"),
        ("a.rake", "ruby"), ("a.gemspec", "ruby"), ("a.php", "php"), ("a.phtml", "php"),
        ("a.md", "markdown"), ("a.mdx", "markdown"), ("a.yml", "yaml"), ("a.yaml", "yaml"),
        ("a.toml", "toml"), ("a.sql", "sql"), ("web.dockerfile", "dockerfile"), ("a.mk", "make"),
        ("a.sh", "shell"), ("a.rst", "rst"), ("a.json", "json"), ("a.html", "html"),
        ("a.scss", "css"), ("a.kt", "kotlin"), ("a.swift", "swift"),
    ],
)  # fmt: skip
def test_an_extension_tells_the_language(path, name):
    """The directory does not matter, nor do further dots in the name."""
    assert language_of(path).name == name
    assert language_of(f"src/v1.2/{path}").name == name
    assert language_of(f"x.y.{path}").name == name


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("Rakefile", "ruby"), ("Gemfile", "ruby"), ("Dockerfile", "dockerfile"),
        ("Containerfile", "dockerfile"), ("Makefile", "make"), ("GNUmakefile", "make"),
    ],
)  # fmt: skip
def test_some_file_names_tell_the_language(path, name):
    """The name is that of the file, not of a directory above it, and in its own case."""
    assert language_of(path).name == name
    assert language_of(f"deploy/web/{path}").name == name
    assert language_of(f"{path}/notes") is TEXT
    assert language_of(path.upper()) is TEXT


@pytest.mark.parametrize(
    ("path", "name"),
    [("README.MD", "markdown"), ("MAIN.PY", "python"), ("Legacy.Cpp", "cpp"), ("A.C", "c")],
)
def test_the_case_of_an_extension_does_not_matter(path, name):
    """Files of old systems are often in upper case."""
    assert language_of(path).name == name


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (".gitignore", "text"), (".bashrc", "text"), (".env", "text"), (".travis.yml", "yaml"),
        (".eslintrc.js", "javascript"), (".github/workflows/ci.yaml", "yaml"),
        (".config/tool", "text"),
    ],
)  # fmt: skip
def test_a_dot_at_the_beginning_is_no_extension_of_its_own(path, name):
    """A dotfile is in the language of its further extension, if it has one."""
    assert language_of(path).name == name


@pytest.mark.parametrize(
    "path", ["LICENSE", "bin/run", "a.py/README", "v1.2/notes", "x.", "a.py~", "a.unknown", "", "/"]
)
def test_what_is_not_known_is_text(path):
    """It is cut into windows, whatever it is."""
    assert language_of(path) is TEXT


def test_no_two_languages_share_a_name_an_extension_or_a_file_name():
    """Otherwise the order of the table would decide."""
    for values in (
        [language.name for language in (*LANGUAGES, TEXT)],
        [extension for language in LANGUAGES for extension in language.extensions],
        [name for language in LANGUAGES for name in language.filenames],
    ):
        assert len(values) == len(set(values))
    assert set(BY_NAME.values()) == {*LANGUAGES, TEXT}


def test_extensions_are_in_lower_case_and_begin_with_a_dot():
    """Paths are compared with them in that form."""
    for language in LANGUAGES:
        for extension in language.extensions:
            assert extension.startswith(".")
            assert extension == extension.lower()
