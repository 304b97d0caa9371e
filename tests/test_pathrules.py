"""What a path says of a file, and how the config adds to it or takes from it."""

from __future__ import annotations

import pytest

from coderag_ci.config import Config, Paths
from coderag_ci.errors import UsageError
from coderag_ci.parse.languages import language_of
from coderag_ci.pathrules import GENERATED, TEST, VENDORED, PathRules, flag_names, is_lock

BUILT_IN = PathRules(Config())


@pytest.mark.parametrize(
    "path",
    [
        "tests/a.py",
        "test/a.py",
        "pkg/tests/deep/a.py",
        "src/__tests__/a.js",
        "spec/models/user.rb",
        "e2e/login.ts",
        "pkg/testdata/a.go",
        "test_a.py",
        "pkg/test_a.py",
        "pkg/test_a.pyi",
        "conftest.py",
        "pkg/a_test.go",
        "pkg/a_test.py",
        "lib/a_spec.rb",
        "src/a.test.js",
        "src/a.spec.tsx",
        "src/a-test.mjs",
        "src/UserTest.java",
        "src/UserTests.cs",
        "src/UserIT.java",
        "src/UserSpec.kt",
        "src/UserTest.php",
    ],
)
def test_tests_are_known_by_their_paths(path: str) -> None:
    """A test stands behind ordinary code in the diff and is never told that no test names it."""
    assert flag_names(BUILT_IN.flags(path)) == ("test",)


@pytest.mark.parametrize(
    "path",
    [
        "src/contest.py",
        "src/latest.py",
        "src/attestation/a.go",
        "src/tester.py",
        "testing.py",
        "src/protest/a.py",
        "src/Latest.java",
        "src/greatest.js",
        "inspect/a.py",
        "src/generator.py",
        "src/vendors.py",
        "src/regenerated.txt",
        "README.md",
        "lib/deps/a.ex",
    ],
)
def test_words_that_only_contain_one_are_ordinary(path: str) -> None:
    """Code whose name happens to hold ``test`` or ``gen`` is not pushed behind the rest."""
    assert BUILT_IN.flags(path) == 0


@pytest.mark.parametrize(
    "path",
    [
        "static/app.min.js",
        "static/app.min.css",
        "api/user_pb2.py",
        "api/user_pb2_grpc.py",
        "api/user.pb.go",
        "api/user.pb.cc",
        "ui/Form.Designer.cs",
        "ui/Form.g.cs",
        "src/schema.generated.ts",
        "zz_generated.deepcopy.go",
        "pkg/apis/zz_generated.deepcopy.go",
        "src/generated/a.py",
        "src/__generated__/a.ts",
        "src/app.snap",
        "src/__snapshots__/a.txt",
        "fixtures/cassettes/a.yaml",
    ],
)
def test_generated_files_are_known_by_their_paths(path: str) -> None:
    """What a machine wrote is no evidence and comes last in the diff."""
    assert "generated" in flag_names(BUILT_IN.flags(path))


@pytest.mark.parametrize(
    "path",
    [
        "vendor/a.go",
        "pkg/vendor/a/b.go",
        "node_modules/a/index.js",
        "third_party/a.c",
        "third-party/a.c",
        "src/_vendor/a.py",
        "deps/a.c",
    ],
)
def test_vendored_files_are_known_by_their_paths(path: str) -> None:
    """Code of others is no evidence for a change of ours."""
    assert flag_names(BUILT_IN.flags(path)) == ("vendored",)


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("logo.PNG", "binary by name"),
        ("a/b.tar.gz", "binary by name"),
        ("model.onnx", "binary by name"),
        ("package-lock.json", "lock file"),
        ("web/yarn.lock", "lock file"),
        ("Cargo.lock", "lock file"),
        ("go.sum", "lock file"),
        ("CHANGELOG.md", "changelog"),
        ("docs/changes.rst", "changelog"),
        ("HISTORY", "changelog"),
        ("NEWS.txt", "changelog"),
        ("locale/de.po", "data file"),
        ("data.CSV", "data file"),
        ("logo.svg", "data file"),
        ("bundle.js.map", "data file"),
        ("src/a.py", ""),
        ("package.json", ""),
        ("src/changelog_writer.py", ""),
        ("go.mod", ""),
        ("Makefile", ""),
        ("a", ""),
    ],
)
def test_what_is_not_worth_searching_is_said_why(path: str, reason: str) -> None:
    """Files that would only crowd out code are left out, each for a reason that is counted."""
    assert BUILT_IN.why_not(path, language_of(path).name) == reason


def test_lock_files_are_known_anywhere() -> None:
    """A dependency lock file is named in the diff, without its thousands of lines."""
    assert is_lock("a/b/poetry.lock")
    assert not is_lock("a/b/poetry.lock.py")
    assert not is_lock("my-package-lock.json")


def test_the_config_adds_to_the_built_in_rules() -> None:
    """A project's own layout is known once it is written down, in gitignore syntax."""
    rules = PathRules(
        Config(
            paths=Paths(
                test=("/checks/", "*.case.py"), generated=("*.gen.go",), vendored=("/ext/**/lib/",)
            )
        )
    )
    assert rules.flags("checks/a.py") == TEST
    assert rules.flags("src/checks/a.py") == 0
    assert rules.flags("src/a.case.py") == TEST
    assert rules.flags("api/a.gen.go") == GENERATED
    assert rules.flags("ext/x/y/lib/a.c") == VENDORED
    assert rules.flags("tests/a.py") == TEST
    assert rules.flags("vendor/tests/a.gen.go") == TEST | GENERATED | VENDORED


def test_the_config_takes_from_the_built_in_rules() -> None:
    """``!`` makes ordinary code of what a built-in rule takes for a test or vendored."""
    rules = PathRules(
        Config(
            paths=Paths(test=("!/testing/",), vendored=("!vendor/ours/",), generated=("!*.snap",))
        )
    )
    assert rules.flags("testing/a.py") == 0
    assert rules.flags("src/testing/a.py") == TEST
    assert rules.flags("vendor/ours/a.go") == 0
    assert rules.flags("vendor/theirs/a.go") == VENDORED
    assert rules.flags("a.snap") == 0


def test_excluded_paths_follow_gitignore() -> None:
    """Anchors, folders, stars and ``!`` work as in a .gitignore; the last match wins."""
    rules = PathRules(Config(exclude=("/docs/", "*.sql", "!keep.sql", "**/old/*.py", "a b.py")))
    excluded = {
        path
        for path in (
            "docs/a.md", "src/docs/a.md", "a.sql", "db/a.sql", "db/keep.sql", "x/old/a.py",
            "x/old/y/a.py", "a b.py", "caf\u00e9.sql",
        )
        if rules.why_not(path, language_of(path).name)
    }  # fmt: skip
    assert excluded == {"docs/a.md", "a.sql", "db/a.sql", "x/old/a.py", "a b.py", "caf\u00e9.sql"}


def test_languages_narrow_what_is_searched() -> None:
    """A project that asks for two languages gets those two."""
    rules = PathRules(Config(languages=("python", "go")))
    assert rules.why_not("a.py", "python") == ""
    assert rules.why_not("a.go", "go") == ""
    assert rules.why_not("a.js", "javascript") == "language not configured"
    assert rules.why_not("README.md", "markdown") == "language not configured"


@pytest.mark.parametrize("pattern", ["!", "\\"])
def test_a_pattern_that_is_none_is_a_usage_error(pattern: str) -> None:
    """A pattern that git would not take either is refused by name, never with a traceback."""
    with pytest.raises(UsageError, match="not a gitignore pattern"):
        PathRules(Config(exclude=(pattern,)))


def test_rules_that_differ_have_different_digests() -> None:
    """An index that was made under other rules is not taken for this one."""
    variants = [
        Config(),
        Config(exclude=("a",)),
        Config(exclude=("a", "b")),
        Config(exclude=("a\0b",)),
        Config(languages=("go",)),
        Config(paths=Paths(test=("a",))),
        Config(paths=Paths(generated=("a",))),
        Config(paths=Paths(vendored=("a",))),
    ]
    assert len({PathRules(config).digest for config in variants}) == len(variants)
    one, two = Config(languages=("go", "python")), Config(languages=("python", "go"))
    assert PathRules(one).digest == PathRules(two).digest
