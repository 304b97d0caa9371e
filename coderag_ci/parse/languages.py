"""Which language a path is in, and what is needed to parse it.

Adding a language takes one entry in ``LANGUAGES`` and ``queries/NAME.scm``.

A query file captures, in the terms of tree-sitter's own ``tags.scm``:

``@definition.KIND`` with ``@name``
    a unit of the file. KIND is one of ``UNIT_KINDS`` (gets chunks of its own) or
    ``NAME_KINDS`` (only says where a name is defined). Where two definitions share
    a name node, the outer one wins, so a decorated or exported definition is
    captured whole. An optional ``@scope`` qualifies the name (``Stack`` of Go's
    ``func (s *Stack) Push``).
``@reference.KIND``
    an identifier that is used: KIND is one of ``REFERENCE_KINDS``.
``@relation.KIND``
    what the file says of others, with the captures of it that are there: ``@module`` where
    from, ``@imported`` what, ``@alias`` its name here. KIND is one of

    - ``package``: the package or namespace that the file declares, as ``@module``;
    - ``name``, ``default``: a name, or what a module exports without one, is imported;
    - ``module``: a module is imported whole, and its names are reached through it;
    - ``star``: all names of a module or namespace are imported;
    - ``include``: all of a file is, and what that file itself includes;
    - ``path``: a statement whose text says all of it (Rust's, PHP's and Java's own);
    - ``export``, ``reexport``: a name, or all names, of this file or of a module are
      exported again; ``exported``: what the file exports without a name;
    - ``base``: ``@imported`` is a base class, a trait or an embedded type of ``@module``.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.resources
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Language as Grammar

UNIT_KINDS = (
    "function",
    "method",
    "class",
    "interface",
    "struct",
    "enum",
    "trait",
    "impl",
    "module",
    "macro",
    "type",
    "section",
)
NAME_KINDS = ("constant", "variable", "field")
CONTAINERS = frozenset({"class", "interface", "struct", "enum", "trait", "impl", "module"})
REFERENCE_KINDS = ("write", "call", "import", "type", "read")  # the most telling first
# How a used name is reached: alone, on an object, on the own object or class, in a module
# that the file imports whole, on a type, a namespace or another imported name.
ACCESSES = ("bare", "member", "self", "module", "type")
ACCESS_SHIFT = 3  # of the access in a reference's code; below it is the kind
RELATION_KINDS = ("package", "name", "module", "star", "include", "export", "reexport", "base")


@dataclass(frozen=True, slots=True)
class Language:
    """One language: its grammar wheel, its paths, and how comments attach to what follows.

    ``attached`` holds the node types that belong to the definition below them
    (comments, attributes, annotations); ``module`` is ``""`` where no grammar is used.
    """

    name: str
    module: str = ""
    function: str = "language"
    extensions: tuple[str, ...] = ()
    filenames: tuple[str, ...] = ()
    attached: frozenset[str] = frozenset({"comment"})

    @property
    def distribution(self) -> str:
        """Name of the wheel that carries the grammar."""
        return self.module.replace("_", "-")


_JS_ATTACHED = frozenset({"comment", "decorator"})

LANGUAGES = (
    Language("python", "tree_sitter_python", extensions=(".py", ".pyi", ".pyw")),
    Language(
        "javascript",
        "tree_sitter_javascript",
        extensions=(".js", ".jsx", ".mjs", ".cjs"),
        attached=_JS_ATTACHED,
    ),
    Language(
        "typescript",
        "tree_sitter_typescript",
        "language_typescript",
        (".ts", ".mts", ".cts"),
        attached=_JS_ATTACHED,
    ),
    Language("tsx", "tree_sitter_typescript", "language_tsx", (".tsx",), attached=_JS_ATTACHED),
    Language("go", "tree_sitter_go", extensions=(".go",)),
    Language(
        "rust",
        "tree_sitter_rust",
        extensions=(".rs",),
        attached=frozenset({"line_comment", "block_comment", "attribute_item"}),
    ),
    Language(
        "java",
        "tree_sitter_java",
        extensions=(".java",),
        attached=frozenset({"line_comment", "block_comment"}),
    ),
    Language("c", "tree_sitter_c", extensions=(".c", ".h")),
    Language(
        "cpp",
        "tree_sitter_cpp",
        extensions=(".cc", ".cpp", ".cxx", ".c++", ".hh", ".hpp", ".hxx", ".h++", ".inl", ".ipp"),
    ),
    Language("csharp", "tree_sitter_c_sharp", extensions=(".cs",)),
    Language(
        "ruby",
        "tree_sitter_ruby",
        extensions=(".rb", ".rake", ".gemspec"),
        filenames=("Rakefile", "Gemfile"),
    ),
    Language("php", "tree_sitter_php", "language_php", (".php", ".phtml")),
    Language("markdown", "tree_sitter_markdown", extensions=(".md", ".markdown", ".mdx")),
    Language("yaml", extensions=(".yml", ".yaml")),
    Language("toml", extensions=(".toml",)),
    Language("sql", extensions=(".sql",)),
    Language("dockerfile", extensions=(".dockerfile",), filenames=("Dockerfile", "Containerfile")),
    Language("make", extensions=(".mk",), filenames=("Makefile", "GNUmakefile")),
    Language("shell", extensions=(".sh", ".bash", ".zsh")),
    Language("rst", extensions=(".rst",)),
    Language("json", extensions=(".json",)),
    Language("html", extensions=(".html", ".htm")),
    Language("css", extensions=(".css", ".scss", ".less")),
    Language("kotlin", extensions=(".kt", ".kts")),
    Language("swift", extensions=(".swift",)),
)
TEXT = Language("text")

BY_NAME = {language.name: language for language in (*LANGUAGES, TEXT)}
_BY_EXTENSION = {ext: language for language in LANGUAGES for ext in language.extensions}
_BY_FILENAME = {name: language for language in LANGUAGES for name in language.filenames}


def language_of(path: str) -> Language:
    """Return the language of a path, by file name, then by extension; ``TEXT`` if unknown."""
    name = path.rsplit("/", 1)[-1]
    if found := _BY_FILENAME.get(name):
        return found
    dot = name.rfind(".")
    return _BY_EXTENSION.get(name[dot:].lower(), TEXT) if dot >= 0 else TEXT


@functools.cache
def grammar(name: str) -> Grammar:
    """Load the grammar of a language that has one.

    Raises ImportError or ValueError where the wheel is missing or its ABI does not
    match the installed tree-sitter.
    """
    import tree_sitter

    language = BY_NAME[name]
    module = importlib.import_module(language.module)
    return tree_sitter.Language(getattr(module, language.function)())


_QUERY_FILES = {
    "javascript": ("javascript", "ecmascript"),
    "typescript": ("typescript", "ecmascript"),
    "tsx": ("typescript", "ecmascript"),
}


@functools.cache
def query_source(name: str) -> str:
    """Return the text of a language's query files."""
    folder = importlib.resources.files(__package__) / "queries"
    files = _QUERY_FILES.get(name, (name,))
    return "\n".join((folder / f"{file}.scm").read_text(encoding="utf-8") for file in files)


def maker(name: str, chunk_size: int) -> str:
    """Return what made a row: everything that decides what a file of this language parses to.

    Rows made by another maker are never read, so a changed query, grammar or
    chunker can not leave a stale row behind.
    """
    return f"{parser_digest(name)}-{chunk_size}"


@functools.cache
def parser_digest(name: str) -> str:
    """Digest of the parser's own source, of a language's query file and of its grammar."""
    import importlib.metadata

    digest = hashlib.blake2b(digest_size=8)
    package = importlib.resources.files(__package__)
    for module in (
        "content.py",
        "languages.py",
        "units.py",
        "windows.py",
        "terms.py",
        "parser.py",
        "relations.py",
        "row.py",
    ):
        digest.update((package / module).read_bytes())
    language = BY_NAME[name]
    if language.module:
        digest.update(query_source(name).encode())
        for distribution in ("tree-sitter", language.distribution):
            digest.update(importlib.metadata.version(distribution).encode())
    return digest.hexdigest()
