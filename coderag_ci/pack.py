"""The evidence pack: what every format renders, and the digest of what it says."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from coderag_ci.diff import Hunk
from coderag_ci.pathrules import Skipped

SCHEMA_VERSION = 1
_MOST_REASONS = 2
_TELLING_RANK = 40
LEXICAL = ("subject", "diff", "deleted", "changed")
_OF_FILES = ("co-change", "test")  # channels that say nothing of the piece itself


class Tool(msgspec.Struct, frozen=True):
    """Who made the pack."""

    name: str
    version: str


class ChangeInfo(msgspec.Struct, frozen=True):
    """What was compared. ``head`` is empty for the index and the working tree.

    ``commits`` counts those of the change without merges; ``title`` holds the subjects of
    the newest, or the pull request's title.
    """

    kind: str
    base: str
    head: str
    merge_base: str
    title: str
    files: int
    added: int
    deleted: int
    paths: tuple[str, ...] = ()
    commits: int = 0


class DiffFile(msgspec.Struct, frozen=True):
    """One changed file. ``cut_hunks`` and ``cut_lines`` count what did not fit."""

    path: str
    old_path: str
    status: str
    kind: str
    old_mode: str
    new_mode: str
    added: int
    deleted: int
    hunks: tuple[Hunk, ...]
    cut_hunks: int = 0
    cut_lines: int = 0


class Place(msgspec.Struct, frozen=True):
    """A line of the repository."""

    path: str
    line: int
    symbol: str = ""


class Fact(msgspec.Struct, frozen=True):
    """Something that holds without a model. ``more`` counts places beyond those listed."""

    kind: str
    text: str
    places: tuple[Place, ...]
    more: int = 0


class Finding(msgspec.Struct, frozen=True):
    """What a linter says of a changed line; all but path, line and level is the linter's text."""

    path: str
    line: int
    tool: str
    rule: str
    level: Literal["error", "warning", "note", "none"]
    message: str

    @property
    def text(self) -> str:
        """The finding as one line."""
        where = f"{self.path}:{self.line}"
        return f"{where} {self.tool} {self.rule} {self.level}: {self.message}"


class Lint(msgspec.Struct, frozen=True):
    """Findings of linters on changed lines, and how many others there are.

    ``more`` are on changed lines, too, ``elsewhere`` in other lines, ``outside`` not in a file
    of the repository; ``suppressed`` may be anywhere.
    """

    found: tuple[Finding, ...]
    more: int = 0
    elsewhere: int = 0
    outside: int = 0
    suppressed: int = 0


class Channel(msgspec.Struct, frozen=True):
    """Which channel found a piece, at which rank (from 1), and why in words."""

    name: str
    rank: int
    reason: str


def telling(channels: Sequence[Channel]) -> list[Channel]:
    """Return the two reasons most worth reading, the best first.

    A use of what changed tells most, then what the piece's own lines have, what its file has, and
    words. A link of a late rank tells nothing, unless it is a use or there is no other reason.
    """
    ordered = sorted(channels, key=lambda one: (_order_of(one.name), one.rank, one.name))
    late = [one for one in ordered if 0 < _order_of(one.name) < 3 and one.rank > _TELLING_RANK]
    return [one for one in ordered if one not in late][:_MOST_REASONS] or ordered[:1]


def _order_of(channel: str) -> int:
    if channel in LEXICAL:
        return 3
    return 2 if channel in _OF_FILES else int(channel != "uses")


class Evidence(msgspec.Struct, frozen=True):
    """A piece of the repository. ``ranges`` are the lines in ``text``, ``…`` between them.

    ``side`` is head or base; ``scores`` holds fused, rerank and final, as far as they exist.
    """

    path: str
    blob: str
    side: str
    start: int
    end: int
    symbol: str
    kind: str
    language: str
    flags: tuple[str, ...]
    text: str
    ranges: tuple[tuple[int, int], ...]
    scores: dict[str, float]
    channels: tuple[Channel, ...]


class Dropped(msgspec.Struct, frozen=True):
    """A piece that was found but is not shown."""

    path: str
    start: int
    end: int
    symbol: str
    reason: str


class Budget(msgspec.Struct, frozen=True):
    """Tokens allowed and used, by section."""

    total: int
    diff: int
    evidence: int
    used_diff: int
    used_facts: int
    used_evidence: int
    tokenizer: str


class IndexInfo(msgspec.Struct, frozen=True):
    """What was searched. ``left_out`` counts paths that were not, by reason.

    ``dense`` says what the dense channel scored and with which model; empty where it is off.
    ``history`` says how many commits were read where the clone holds no more of them.
    """

    files: int
    chunks: int
    left_out: dict[str, int]
    dense: str = ""
    history: str = ""


class Stage(msgspec.Struct, frozen=True):
    """What one stage did: seconds, what it counted, what it noted."""

    name: str
    seconds: float
    counts: dict[str, int]
    note: str = ""


class Trace(msgspec.Struct, frozen=True):
    """How the pack was made. Not part of the digest."""

    stages: tuple[Stage, ...]
    blobs_indexed: int
    blobs_reused: int
    notes: tuple[str, ...]
    queries: tuple[dict[str, str], ...] = ()


class Pack(msgspec.Struct, frozen=True):
    """The diff, what is known of it, and the evidence, within a budget.

    ``lint`` is there where reports of linters were given.
    ``redacted`` counts the secrets that were taken out, by kind; None where none were looked for.
    """

    schema_version: int
    tool: Tool
    change: ChangeInfo
    diff: tuple[DiffFile, ...]
    facts: tuple[Fact, ...]
    facts_more: int
    evidence: tuple[Evidence, ...]
    dropped: tuple[Dropped, ...]
    dropped_more: int
    skipped: tuple[Skipped, ...]
    degradations: tuple[str, ...]
    budget: Budget
    index: IndexInfo
    settings: dict[str, str]
    trace: Trace
    lint: Lint | None = None
    remote: str = ""
    digest: str = ""
    redacted: dict[str, int] | None = {}


_UNDIGESTED = {"trace", "digest", "remote"}


def sealed(pack: Pack) -> Pack:
    """Return the pack with its digest: sha256 over its content as canonical JSON.

    Trace and remote URL are not part of it, so neither timings nor what was cached
    change it.
    """
    content = {
        name: getattr(pack, name) for name in pack.__struct_fields__ if name not in _UNDIGESTED
    }
    try:
        data = msgspec.json.encode(content, order="deterministic")
    except UnicodeEncodeError:
        return sealed(_encodable(pack))
    return msgspec.structs.replace(pack, digest="sha256:" + hashlib.sha256(data).hexdigest())


def _encodable(pack: Pack) -> Pack:
    """Return the pack with bytes that are not UTF-8, in paths or titles, written as escapes."""

    def clean(value: Any) -> Any:
        if isinstance(value, str):
            return value.encode("utf-8", "backslashreplace").decode()
        if isinstance(value, dict):
            return {clean(key): clean(item) for key, item in value.items()}
        return [clean(item) for item in value] if isinstance(value, (list, tuple)) else value

    return msgspec.convert(clean(msgspec.to_builtins(pack)), Pack)
