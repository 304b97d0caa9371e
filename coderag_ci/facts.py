"""What holds without a model: dangling names, changed signatures, no test by name.

Each fact comes with its places, bounded, the rest counted. None is a verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from coderag_ci.diff import Diff
from coderag_ci.graph import Graph, packages
from coderag_ci.index import Index, Use
from coderag_ci.pack import Fact, Place
from coderag_ci.parse.languages import language_of
from coderag_ci.parse.row import CHUNK_FIELDS, CHUNK_KINDS, NAME_FIELDS, Row
from coderag_ci.parse.terms import name_hash
from coderag_ci.pathrules import PathRules
from coderag_ci.text import Texts

_MOST_PLACES = 8
_MOST_SIGNATURE = 160  # characters
_MOST_FILES = 200
_MOST_DEFINITIONS = 3
_CALLABLE = frozenset({"function", "method", "macro"})
_TYPES = frozenset({"class", "interface", "struct", "enum", "trait", "type"})


def collect(
    diff: Diff,
    head: Mapping[str, Row],
    base: Mapping[str, Row],
    index: Index,
    texts: Texts,
    rules: PathRules,
) -> list[Fact]:
    """Return the facts of the most changed files, the gravest first."""
    files = sorted(diff.files, key=lambda f: (-f.added - f.deleted, f.path))[:_MOST_FILES]
    diff = Diff(tuple(sorted(files, key=lambda f: f.path)), ())
    texts.load(blob for file in files for blob in (file.old_blob, file.new_blob))
    changed = {file.path: file.touched_lines() for file in files if file.status != "deleted"}
    graph = Graph(index, packages(base))
    facts = _dangling(diff, head, base, index, graph)
    facts += _signatures(diff, head, base, index, graph, texts, changed)
    facts += _untested(diff, head, index, rules, changed)
    return facts


def _dangling(
    diff: Diff,
    head: Mapping[str, Row],
    base: Mapping[str, Row],
    index: Index,
    graph: Graph,
) -> list[Fact]:
    """Names that base defines in a changed file, head defines nowhere, and head uses."""
    facts = []
    for file in diff.files:
        gone = _defined(base.get(file.old_path)) - _defined(head.get(file.path))
        for name, kind in sorted(gone):
            last = name.rpartition(".")[2]
            if kind not in _CALLABLE | _TYPES or not _telling(last, kind):
                continue
            key = name_hash(last)
            if index.definitions(key):
                continue
            wanted = {"call", "import"} if kind in _CALLABLE else {"call", "import", "type"}
            uses = _uses(graph, name, wanted, file.old_path, kind)
            if uses:
                text = (
                    f"`{name}` ({kind}) was defined in {file.old_path}, is defined nowhere now, "
                    f"and is still used in {_count(len(uses), 'place')}"
                )
                facts.append(_fact("dangling", text, uses, index))
    return facts


def _signatures(
    diff: Diff,
    head: Mapping[str, Row],
    base: Mapping[str, Row],
    index: Index,
    graph: Graph,
    texts: Texts,
    changed: Mapping[str, set[int]],
) -> list[Fact]:
    """Parameter lists that differ between base and head, with calls outside the change."""
    facts = []
    for file in diff.files:
        if file.kind != "text" or file.status not in ("modified", "renamed"):
            continue
        before = _signature_lines(base.get(file.old_path), file.old_blob, texts)
        after = _signature_lines(head.get(file.path), file.new_blob, texts)
        for symbol in sorted(before.keys() & after.keys()):
            if before[symbol] == after[symbol]:
                continue
            key = name_hash(symbol)
            if len(index.definitions(key)) >= _MOST_DEFINITIONS:
                continue
            uses = [
                use
                for use in _uses(graph, symbol, {"call"}, file.path)
                if use.line not in changed.get(index.doc(use.doc).path, ())
            ]
            text = (
                f"`{symbol}` changed from {_short(before[symbol], after[symbol])} "
                f"to {_short(after[symbol], before[symbol])}; "
                f"{_count(len(uses), 'unit')} outside the changed lines "
                f"{'call' if len(uses) != 1 else 'calls'} it"
            )
            facts.append(_fact("signature", text, uses, index))
    return facts


def _untested(
    diff: Diff,
    head: Mapping[str, Row],
    index: Index,
    rules: PathRules,
    changed: Mapping[str, set[int]],
) -> list[Fact]:
    """Return changed functions and classes whose name no test uses, where there are tests."""
    tests_of = {language_of(path).name for path in index.test_paths()}
    unnamed: list[Place] = []
    for file in diff.files:
        if (
            file.kind != "text"
            or file.status == "deleted"
            or rules.flags(file.path)
            or language_of(file.path).name not in tests_of
        ):
            continue
        for symbol, line in _changed_units(head.get(file.path), changed[file.path]):
            last = symbol.rpartition(".")[2]
            if last.startswith("_") or last in ("main", "constructor"):
                continue
            if not any(index.is_test(use.doc) for use in index.references(name_hash(last))):
                unnamed.append(Place(file.path, line, symbol))
    if not unnamed:
        return []
    text = f"no test refers by name to {_count(len(unnamed), 'changed unit')}"
    shown = tuple(unnamed[:_MOST_PLACES])
    return [Fact("no test by name", text, shown, len(unnamed) - len(shown))]


def _uses(graph: Graph, symbol: str, kinds: set[str], path: str, kind: str = "") -> list[Use]:
    """Return the uses, of some kinds, of what a path defines (or did) by a qualified name."""
    outer, _, name = symbol.rpartition(".")
    links = graph.users(name, path, kind, outer.rpartition(".")[2]).links
    return [link.use for link in links if link.use.kind in kinds]


def _fact(kind: str, text: str, uses: Sequence[Use], index: Index) -> Fact:
    places = []
    for use in uses:
        doc = index.doc(use.doc)
        places.append(Place(doc.path, use.line, doc.symbol))
    places.sort(key=lambda place: (place.path, place.line))
    return Fact(kind, text, tuple(places[:_MOST_PLACES]), max(0, len(places) - _MOST_PLACES))


def _defined(row: Row | None) -> set[tuple[str, str]]:
    if row is None:
        return set()
    return {(row.names[name], CHUNK_KINDS[kind]) for name, kind, _ in _table(row.definitions)}


def _table(data: bytes) -> Iterable[list[int]]:
    found: list[list[int]] = np.frombuffer(data, "<u4").reshape(-1, NAME_FIELDS).tolist()
    return found


def _telling(name: str, kind: str) -> bool:
    """Whether a name says enough for its uses to mean this definition.

    Methods are called on objects whose type is unknown, so a method's name has to be
    made of several words; ``get`` or ``close`` mean something else elsewhere.
    """
    if name.startswith("__") or len(name) < 4:
        return False
    several = "_" in name.strip("_") or any(c.isupper() for c in name[1:])
    return several if kind == "method" else several or len(name) > 6


def _signature_lines(row: Row | None, blob: str, texts: Texts) -> dict[str, str]:
    """Return the signature of each function that is defined once, white space collapsed."""
    if row is None or not row.chunks:
        return {}
    lines = texts.lines(blob)
    found: dict[str, str] = {}
    twice: set[str] = set()
    seen: set[tuple[str, int]] = set()
    for chunk in np.frombuffer(row.chunks, "<u4").reshape(-1, CHUNK_FIELDS).tolist():
        symbol, first, last = row.names[chunk[7]], chunk[4], chunk[5]
        if CHUNK_KINDS[chunk[6]] not in _CALLABLE or not first or (symbol, first) in seen:
            continue
        seen.add((symbol, first))
        if symbol in found:
            twice.add(symbol)
        found[symbol] = " ".join(" ".join(lines[first - 1 : last]).split()).rstrip("{: ")
    return {symbol: text for symbol, text in found.items() if symbol not in twice}


def _short(text: str, other: str) -> str:
    """Quote a signature; a long one from a little before where it differs from the other."""
    if len(text) > _MOST_SIGNATURE:
        pairs = enumerate(zip(text, other, strict=False))
        differs = next((i for i, (one, two) in pairs if one != two), len(other))
        start = max(0, differs - _MOST_SIGNATURE // 4)
        part = text[start : start + _MOST_SIGNATURE]
        text = ("…" if start else "") + part + ("…" if start + len(part) < len(text) else "")
    return f"`{text.replace('`', chr(39))}`"


def _changed_units(row: Row | None, lines: set[int]) -> list[tuple[str, int]]:
    if row is None or not row.chunks or not lines:
        return []
    found: dict[str, int] = {}
    for chunk in np.frombuffer(row.chunks, "<u4").reshape(-1, CHUNK_FIELDS).tolist():
        symbol = row.names[chunk[7]]
        named = CHUNK_KINDS[chunk[6]] in _CALLABLE | _TYPES and symbol not in found
        if named and any(chunk[0] <= line <= chunk[1] for line in lines):
            found[symbol] = chunk[4] or chunk[2]
    return sorted(found.items(), key=lambda item: item[1])


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
