"""Cases from docstrings: the first sentence is the question, its unit the answer."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import tree_sitter

from coderag_ci import view as views
from coderag_ci.errors import SetupError
from coderag_ci.eval.cases import Case, Gold
from coderag_ci.eval.places import name_of
from coderag_ci.eval.sentences import first_sentence
from coderag_ci.gitrepo import Entry, GitRepo, encode_path
from coderag_ci.parse import row as rows
from coderag_ci.parse import units
from coderag_ci.parse.content import why_not
from coderag_ci.parse.languages import UNIT_KINDS, Language, grammar, language_of
from coderag_ci.parse.parser import parse
from coderag_ci.pathrules import PathRules
from coderag_ci.progress import Progress

_MOST_BYTES = 200_000  # a larger file may keep the parser busy for long
_MOST_ABOVE = 8_000  # bytes of comments over a unit
_TOGETHER = 200  # files that are held in memory at once

# How a doc comment begins. C has no form of its own for one: any block right above counts.
_BLOCK_OR_SLASHES = (b"/**", b"///")
_MARKS: dict[str, tuple[bytes, ...]] = {
    "python": (),
    "go": (b"//",),
    "ruby": (b"#",),
    "c": (b"/*", b"///"),
    **dict.fromkeys(
        ("cpp", "csharp", "java", "javascript", "php", "rust", "tsx", "typescript"),
        _BLOCK_OR_SLASHES,
    ),
}
_LOOSE = ("go", "ruby", "c")  # a doc comment looks like any other

_BLOCK = rb"^[ \t]*/\*.*?\*/[ \t\r]*$"
_LINES = {
    b"//": rb"(?:^[ \t]*//[^\n]*\n?)+",
    b"///": rb"(?:^[ \t]*///(?!/)[^\n]*\n?)+",
    b"#": rb"(?:^[ \t]*#[^\n]*\n?)+",
}
_PYTHON = re.compile(rb"[rRuU]?(\"{3}|'{3}|\"|')(.*)\1", re.DOTALL)

_BANNER = re.compile(r"[-=*#/~_+]{5,}")


class Documented(NamedTuple):
    """A unit and the first sentence of its docstring; lines are 1-based and inclusive."""

    entry: Entry
    symbol: str
    line: int
    end: int
    docstring: tuple[int, int]
    sentence: str
    key: str


class Made(NamedTuple):
    """Cases, and how many documented units in how many files they were taken from."""

    cases: list[Case]
    units: int
    files: int


def make(repo: GitRepo, ref: str, rules: PathRules, limit: int, progress: Progress) -> Made:
    """Make up to ``limit`` cases from a commit, spread over the whole of it.

    A sentence that stands over two units is no question. Raises SetupError where the ref is
    unknown or nothing can be asked.
    """
    commit = repo.resolve(ref)
    found = list(_documented(repo, commit, rules, progress))
    times = Counter(unit.sentence.casefold() for unit in found)
    single = [unit for unit in found if times[unit.sentence.casefold()] == 1]
    cases = _take(repo, commit, sorted(single, key=lambda unit: unit.key), rules, limit)
    if not cases:
        what = "documented unit" if not found else "docstring that can be asked for"
        raise SetupError(
            f"no {what} in {commit[:12]}", "name a commit or a repository whose code has docstrings"
        )
    cases.sort(key=lambda case: (encode_path(case.gold[0].path), case.docstring))
    return Made(cases, len(found), len({unit.entry.path for unit in found}))


def _documented(
    repo: GitRepo, commit: str, rules: PathRules, progress: Progress
) -> Iterator[Documented]:
    """Yield the documented units of a commit, without tests and what others wrote."""
    by_blob: dict[str, list[Entry]] = {}
    for entry in views.commit_view(repo, commit, rules).entries:
        if _speaks(entry.path) and not rules.flags(entry.path):
            by_blob.setdefault(entry.blob, []).append(entry)
    with progress.task("files", worth=len(by_blob) > _TOGETHER) as advance:
        for number, (blob, _, data) in enumerate(repo.blobs(by_blob, _MOST_BYTES), 1):
            for entry in by_blob[blob] if data is not None and not why_not(data) else ():
                yield from documented(entry, data or b"")
            advance(number, len(by_blob))


def _speaks(path: str) -> bool:
    """Whether a path is in a language that has docstrings, and can be written as JSON."""
    return language_of(path).name in _MARKS and path.isprintable()


def documented(entry: Entry, data: bytes) -> Iterator[Documented]:
    """Yield the units of a file that have a docstring with a sentence, in order of position."""
    language = language_of(entry.path)
    lines = data.split(b"\n")
    root = tree_sitter.Parser(grammar(language.name)).parse(data).root_node
    defined, _, _ = units.scan(root, language)
    symbols = units.qualify(defined)
    seen: Counter[str] = Counter()
    taken = set()
    for unit in defined:
        if unit.kind not in UNIT_KINDS:
            continue
        symbol = symbols[id(unit)]
        seen[symbol] += 1
        found = (_string if language.name == "python" else _comment)(unit, lines, language)
        if found is None or found[0] in taken:
            continue
        taken.add(found[0])
        if sentence := first_sentence(found[1], language):
            key = f"{entry.path}\0{symbol}\0{seen[symbol]}"  # overloads share a symbol
            digest = hashlib.sha256(key.encode()).hexdigest()
            yield Documented(entry, symbol, unit.line, unit.end, found[0], sentence, digest)


# ---- where a docstring stands

_Found = tuple[tuple[int, int], str]  # first and last line, and what they say


def _string(unit: units.Definition, lines: Sequence[bytes], _: Language) -> _Found | None:
    """Return Python's docstring, where it has its lines for itself and is not the whole body."""
    node = unit.node.child_by_field_name("definition") or unit.node
    body = node.child_by_field_name("body")
    statements = [] if body is None else [n for n in body.named_children if n.type != "comment"]
    if len(statements) < 2 or statements[0].type != "expression_statement":
        return None
    string = statements[0].named_children[0]
    (first, left), (last, right) = string.start_point, string.end_point
    match = _PYTHON.fullmatch(string.text or b"") if string.type == "string" else None
    if match is None or lines[first][:left].strip() or lines[last][right:].strip():
        return None
    text = match[2].decode("utf-8", "replace").removeprefix("\\\n")
    return (first + 1, last + 1), text


def _comment(unit: units.Definition, lines: Sequence[bytes], language: Language) -> _Found | None:
    """Return the doc comment among the comments and attributes right above a definition."""
    above = b"\n".join(lines[unit.start - 1 : unit.node.start_point.row])
    if len(above) > _MOST_ABOVE:
        return None
    marks = _MARKS[language.name]
    found = [
        match
        for match in _comments(language.name).finditer(above)
        if match.group().lstrip().startswith(marks)
    ]
    if not found:
        return None
    text = found[-1].group().strip()
    block = text.startswith(b"/*")
    loose = language.name in _LOOSE
    if (len(found) > 1 and (loose or not block)) or (block and text.find(b"*/") < len(text) - 2):
        return None  # in several pieces, or with code after it
    first = unit.start + above.count(b"\n", 0, found[-1].start())
    plain = _without_marks(text.decode("utf-8", "replace"), block)
    if loose and _BANNER.search(plain):
        return None
    return (first, first + text.count(b"\n")), plain


def _comments(language: str) -> re.Pattern[bytes]:
    marks = _MARKS[language]
    kinds = [_LINES[mark] for mark in marks if mark in _LINES]
    if any(mark.startswith(b"/*") for mark in marks):
        kinds.append(_BLOCK)
    return re.compile(b"|".join(kinds), re.MULTILINE | re.DOTALL)


def _without_marks(text: str, block: bool) -> str:
    if not block:
        return re.sub(r"^[ \t]*(?:/{2,}|#+)[ \t]?", "", text, flags=re.MULTILINE)
    return re.sub(
        r"^[ \t]*\*+(?!\*)[ \t]?", "", text[2:-2].lstrip("*!").rstrip("*"), flags=re.MULTILINE
    )


# ---- cases


def _take(
    repo: GitRepo, commit: str, found: Sequence[Documented], rules: PathRules, limit: int
) -> list[Case]:
    """Return the first ``limit`` units that stay what they are without their docstring."""
    name = name_of(repo)
    cases: list[Case] = []
    position = 0
    while len(cases) < limit and position < len(found):
        some = found[position : position + min(_TOGETHER, limit - len(cases))]
        position += len(some)
        blobs = dict.fromkeys(unit.entry.blob for unit in some)
        contents = {blob: data or b"" for blob, _, data in repo.blobs(blobs, _MOST_BYTES)}
        for unit in some:
            gold = _gold(unit, contents[unit.entry.blob], rules.chunk_size)
            if gold is not None:
                cases.append(_case(unit, gold, name, commit))
    return cases


def _gold(unit: Documented, data: bytes, chunk_size: int) -> Gold | None:
    """Return the unit as the index has it once the docstring is blanked; None if it is not.

    The chunk that the definition begins in is what has to be found.
    """
    lines = data.split(b"\n")
    begin, close = unit.docstring
    lines[begin - 1 : close] = [b""] * (close - begin + 1)
    path = unit.entry.path
    row = parse(b"\n".join(lines), language_of(path).name, chunk_size)
    definitions = np.frombuffer(row.definitions, "<u4").reshape(-1, rows.NAME_FIELDS)
    names = {(row.names[name], line) for name, _, line in definitions.tolist()}
    if row.generated or (unit.symbol, unit.line) not in names:
        return None
    chunks = np.frombuffer(row.chunks, "<u4").reshape(-1, rows.CHUNK_FIELDS)
    for first, last, start, end, _, _, kind, symbol in chunks.tolist():
        if row.names[symbol] == unit.symbol and first <= unit.line <= last and end == unit.end:
            hunks = ((first, last),)  # of a class its head, not its methods
            return Gold(path, start, end, hunks, unit.symbol, rows.CHUNK_KINDS[kind])
    return None


def _case(unit: Documented, gold: Gold, name: str, commit: str) -> Case:
    return Case(
        id=f"{name}-doc-{unit.key[:10]}",
        kind="docstring",
        repo=name,
        base=commit,
        head=commit,
        gold=(gold,),
        language=language_of(unit.entry.path).name,
        query=unit.sentence,
        docstring=unit.docstring,
        gold_has_nontest=True,
    )
