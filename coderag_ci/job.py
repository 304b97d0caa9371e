"""What a pack is made from, and what a search of the repository gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from coderag_ci import pack
from coderag_ci.change import Change
from coderag_ci.config import Config
from coderag_ci.deadline import Deadline
from coderag_ci.gitrepo import GitRepo
from coderag_ci.pathrules import Skipped
from coderag_ci.progress import Progress
from coderag_ci.sarif import Result

if TYPE_CHECKING:  # they import numpy, which an empty diff does without
    from coderag_ci.assemble import Try
    from coderag_ci.channels import Ranked, Search
    from coderag_ci.queries import Asked
    from coderag_ci.text import Texts


@dataclass(frozen=True)
class Job:
    """Everything that a pack is made from. ``redact``: secrets are taken out of it."""

    repo: GitRepo
    change: Change
    config: Config
    index_dir: Path
    deadline: Deadline
    progress: Progress
    results: Sequence[Result] | None = None  # of linters, where there are reports
    redact: bool = True


Scored = tuple[int, dict[str, float]]  # a doc; its scores fused, rerank and final, as far as known


@dataclass(frozen=True)
class Ranking:
    """The candidates in each of the orders that they pass through, best first.

    ``ranked`` holds what each channel found; ``worth`` is what of ``hits``
    is above the floor; ``own`` are docs of the changed units; ``explained`` keeps which
    channels found a doc, and why, once that was asked.
    """

    asked: Asked
    ranked: Mapping[str, Ranked]
    fused: Sequence[tuple[int, float]]
    hits: Sequence[Scored]
    worth: Sequence[Scored]
    prepared: Search
    own: Sequence[int]
    texts: Texts
    explained: dict[int, tuple[pack.Channel, ...]] = field(default_factory=dict)


@dataclass
class Found:
    """What the search of a view gave for a change; empty where there was nothing to search.

    ``tries`` says how the evidence was filled, in order; ``unread`` says of each path of the
    view that was not searched why.
    """

    diff: tuple[pack.DiffFile, ...] = ()
    facts: Sequence[pack.Fact] = ()
    facts_more: int = 0
    evidence: Sequence[pack.Evidence] = ()
    dropped: Sequence[pack.Dropped] = ()
    tries: Sequence[Try] = ()
    lint: pack.Lint | None = None
    skipped: Sequence[Skipped] = ()
    unread: Mapping[str, str] = field(default_factory=dict)
    degradations: Sequence[str] = ()
    notes: Sequence[str] = ()
    index: pack.IndexInfo = field(default_factory=lambda: pack.IndexInfo(0, 0, {}))
    used_diff: int = 0
    used_facts: int = 0
    used_evidence: int = 0
    quota_diff: int = 0
    quota_evidence: int = 0
    indexed: int = 0
    reused: int = 0
    queries: Sequence[Mapping[str, str]] = ()
    ranking: Ranking | None = None
