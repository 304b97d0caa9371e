"""What a file says of other files: its package, what it imports and exports, its classes' bases.

And how a name is reached where it is used, as far as the bytes before it tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from tree_sitter import Node

from coderag_ci.parse.languages import ACCESSES

_MOST = 4_000  # relations of one file; what is beyond is not kept
_LONGEST = 300  # bytes of one name
_LONGEST_PATH = 20_000  # bytes of one statement that imports many names
_DEEPEST = 32  # groups within groups

BARE, MEMBER, SELF, MODULE, TYPE = range(len(ACCESSES))


class Relation(NamedTuple):
    """One relation, as written: ``kind`` is one of ``RELATION_KINDS``.

    ``name`` and ``module``: what is imported and from where; of a ``base`` the class that it
    is a base of is the module, and both are last parts. ``alias``: the name it has here,
    empty where nothing says.
    """

    kind: str
    module: str
    name: str = ""
    alias: str = ""


def read(kind: str, found: Mapping[str, Sequence[Node]]) -> Iterator[Relation]:
    """Return the relations that one match of a query file stands for."""
    if kind == "path":
        yield from _expanded(_text(found["path"][0], _LONGEST_PATH))
        return
    module, name, alias = (
        _text(found[capture][0], _LONGEST) if capture in found else ""
        for capture in ("module", "imported", "alias")
    )
    if kind == "base":
        module, name = _last(module), _last(name)
        if module and name:
            yield Relation(kind, module, name)
    elif kind == "name":
        yield Relation(kind, module, name, alias or name)
    elif kind == "default":
        yield Relation("name", module, "default", alias)
    elif kind == "export":
        yield Relation(kind, module, name, alias or name)
    elif kind == "exported":
        yield Relation("export", "", name, "default")
    elif module:
        yield Relation(kind, module, name, alias)


def distinct(found: Iterable[Relation]) -> list[Relation]:
    """Return each relation once, the package first, and no more than are kept of a file."""
    kept: dict[Relation, None] = {}
    for relation in found:
        kept[relation] = None
        if len(kept) >= _MOST:
            break
    return sorted(kept, key=lambda relation: relation.kind != "package")


def _text(node: Node, longest: int) -> str:
    data = node.text or b""
    return data.decode("utf-8", "replace").strip("\"'`<> \n") if len(data) <= longest else ""


def _last(name: str) -> str:
    """Return the last part of a class's name, without its arguments."""
    plain = re.split(r"[<\[({\s]", name.lstrip("*&: "), maxsplit=1)[0]
    return re.split(r"::|[.\\]", plain)[-1]


_KEYWORDS = re.compile(r"^(?:pub\b[^;:]*?\buse|use|import)\s+(?:(?:static|function|const)\s+)*")


def _expanded(text: str) -> Iterator[Relation]:
    r"""Read ``use a::{b, c as d, e::*}`` of Rust and its like of PHP (``\``) and Java (``.``)."""
    text = _KEYWORDS.sub("", text).rstrip("; \n")
    separator = next((s for s in ("::", "\\") if s in text), ".")
    prefixes = [""]
    pending = ""
    for part in [*re.findall(r"[{},]|[^{},]+", text), ","]:
        if part not in ("{", "}", ","):
            pending = part.strip()
            continue
        if part == "{":
            if len(prefixes) > _DEEPEST:
                return
            prefixes.append(prefixes[-1] + pending)
        elif pending:
            yield _imported(prefixes[-1] + pending, separator)
        if part == "}" and len(prefixes) > 1:
            prefixes.pop()
        pending = ""


def _imported(path: str, separator: str) -> Relation:
    path, *alias = re.split(r"\s+as\s+", path, maxsplit=1)
    module, _, name = path.strip("\\").rpartition(separator)
    if name == "self":
        module, _, name = module.rpartition(separator)
    if name == "*":
        return Relation("star", module)
    return Relation("name", module, name, alias[0] if alias else name)


# ---- how a name is reached

_OPERATORS = {
    "c": (b".", b"->"),
    "cpp": (b".", b"->", b"::"),
    "java": (b".", b"::"),
    "php": (b"->", b"::"),
    "ruby": (b".", b"::"),
    "rust": (b".", b"::"),
}
_OWN = {
    "python": frozenset({b"self", b"cls"}),
    "javascript": frozenset({b"this", b"super"}),
    "typescript": frozenset({b"this", b"super"}),
    "tsx": frozenset({b"this", b"super"}),
    "java": frozenset({b"this", b"super"}),
    "csharp": frozenset({b"this", b"base"}),
    "cpp": frozenset({b"this"}),
    "php": frozenset({b"this", b"self", b"static", b"parent"}),
    "ruby": frozenset({b"self"}),
    "rust": frozenset({b"self", b"Self"}),
}
_WORD = re.compile(rb"[\w$@]+$")
_TITLED = re.compile(rb"[A-Z]\w*[a-z]|[A-Z]$")
_UNTITLED = frozenset({"go", "c", "cpp", "rust"})  # there a capital does not make a type
_RECEIVER = 80  # bytes
_BLANKS = 200  # bytes between a name and what it is reached through
_SPACE = b" \t\r\n"


class Reach:
    """Tells how the names of one file are reached: one of ``ACCESSES`` by its number."""

    def __init__(self, data: bytes, language: str, relations: Iterable[Relation]) -> None:
        self._data = data
        self._language = language
        self._operators = _OPERATORS.get(language, (b".",))
        self._own = _OWN.get(language, frozenset())
        self._last_bytes = frozenset(operator[-1] for operator in self._operators)
        self._modules: set[bytes] = set()
        self._names: set[bytes] = set()
        for relation in relations:
            if relation.kind == "module":
                here = [relation.alias] if relation.alias else local_names(relation.module)
                self._modules.update(name.encode() for name in here)
            elif relation.kind == "name":
                self._names.add(relation.alias.encode())

    def of(self, start: int) -> int:
        """Return how the name that begins at a byte is reached."""
        data = self._data
        if data[start : start + 1] == b"@":
            return SELF
        at = self._back(start)
        if at < 0 or data[at] not in self._last_bytes:
            return BARE
        operator = data[at : at + 1]
        if operator != b".":
            operator = data[at - 1 : at + 1]
            at -= 1
        if operator not in self._operators or data[at - 1 : at + 1] == b"..":
            return BARE
        return self._through(at, operator)

    def _back(self, at: int) -> int:
        at -= 1
        least = max(-1, at - _BLANKS)
        while at > least and self._data[at] in _SPACE:
            at -= 1
        return at

    def _through(self, at: int, operator: bytes) -> int:
        """Return what a receiver is that ends before the operator at a byte."""
        data = self._data
        end = self._back(at) + 1
        if data[end - 1 : end] in (b"?", b"&", b"!"):
            end -= 1
        before = data[max(0, end - _RECEIVER) : end]
        if before.endswith(b"super()"):
            return SELF
        found = _WORD.search(before)
        if found is None:
            return TYPE if operator == b"::" else MEMBER
        word = found[0].lstrip(b"$@")
        chained = before[: found.start()].rstrip(_SPACE).endswith((b".", b"->"))
        path = operator == b"::"
        a_path = path and self._language == "rust" and word != b"Self"  # self::name
        if word in self._own and not chained and not a_path:
            return SELF
        if word in self._modules:
            return MODULE
        if path or (word in self._names and not chained):
            return TYPE
        titled = self._language not in _UNTITLED and _TITLED.match(word) is not None
        return TYPE if titled else MEMBER


def local_names(module: str) -> list[str]:
    """Return the names under which a module can be reached that is imported whole.

    ``a`` and ``b`` for Python's ``import a.b``; for a path its last part, and what Go makes
    of ``go-yaml``, ``yaml.v3`` and ``yaml/v3``.
    """
    if "/" not in module:
        return re.split(r"[.-]", module)
    *_, before, last = module.split("/")
    names = [last, before] if re.fullmatch(r"v\d+", last) else [last]
    return [part for name in names for part in (name, *re.split(r"[.-]", name))]
