"""Mines cases from a history: candidates by kind, their files parsed, their gold found.

The rules are in ``cochange`` and ``missed``, and in ``gold`` what both share:

- a *hunk* is a run of changed lines without an unchanged one between, in lines of the view;
  an insertion after line L is ``[L, L+1]``; one that changes white space alone does not count;
- gold is the smallest unit around a hunk; hunks in the same unit are one item, a hunk in
  several units is divided;
- an insertion that defines a new unit, in a class or between units, has an arbitrary place. Where
  a unit has no other hunk, a cochange case keeps it for its file alone (``file_only``) and a
  missed case drops it; beside other hunks it is dropped;
- a hunk is mechanical where the words that went and came are those of a hunk of the query.

Neither a repository's config nor the environment counts, as in ``eval run``. No line of code is
kept: paths, names of symbols, line numbers and what commits say of themselves.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from coderag_ci import index
from coderag_ci.config import Config
from coderag_ci.eval import cochange, missed
from coderag_ci.eval.cases import Case
from coderag_ci.eval.gold import Candidate, complete
from coderag_ci.eval.places import name_of
from coderag_ci.gitrepo import Entry, GitRepo
from coderag_ci.pathrules import PathRules
from coderag_ci.progress import Progress
from coderag_ci.store import Store
from coderag_ci.view import View

KINDS = {"cochange": cochange.candidates, "missed": missed.candidates}
_BATCH = 32  # candidates whose files are parsed at once, so that parsers start once for all


@dataclasses.dataclass
class Mined:
    """The cases, the newest first; how many commits were looked at, and left out by reason."""

    cases: list[Case] = dataclasses.field(default_factory=list)
    commits: int = 0
    left_out: Counter[str] = dataclasses.field(default_factory=Counter)


def mine(repo: GitRepo, commit: str, kind: str, limit: int, progress: Progress) -> Mined:
    """Mine up to ``limit`` cases from the history of a commit. Raises SetupError."""
    rules = PathRules(Config())
    mined = Mined()
    looked = KINDS[kind](repo, commit, rules, name_of(repo))
    with (
        tempfile.TemporaryDirectory(prefix="coderag-ci-") as folder,
        progress.task("cases", worth=True) as advance,
    ):
        kept = Store(Path(folder))
        seen: set[tuple[str, tuple[str, ...], str]] = set()
        try:
            for one in _completed(repo, kept, looked, rules):
                mined.commits += 1
                if isinstance(one, str):
                    mined.left_out[one] += 1
                    continue
                if (key := (one.subject, one.query_files, one.fix)) in seen:
                    mined.left_out["the same as a newer one, as a backport is"] += 1
                    continue
                seen.add(key)
                mined.cases.append(one)
                advance(len(mined.cases), limit)
                if len(mined.cases) == limit:
                    break
        finally:
            kept.close()
    return mined


def _completed(
    repo: GitRepo, kept: Store, looked: Iterator[Candidate | str], rules: PathRules
) -> Iterator[Case | str]:
    """Yield, in the same order, each candidate's case, or why there is none."""
    waiting: list[Candidate | str] = []
    found = 0
    for one in looked:
        waiting.append(one)
        found += isinstance(one, Candidate)
        if found == _BATCH:
            yield from _batch(repo, kept, waiting, rules)
            waiting, found = [], 0
    yield from _batch(repo, kept, waiting, rules)


def _batch(
    repo: GitRepo, kept: Store, batch: Sequence[Candidate | str], rules: PathRules
) -> Iterator[Case | str]:
    places = [place for one in batch if isinstance(one, Candidate) for place in one.places]
    entries = dict.fromkeys(
        Entry(place.path, 0o100644, blob)
        for place in places
        for blob in (place.old_blob, place.new_blob)
    )
    size = rules.chunk_size
    _, fresh = index.update(repo, View(tuple(entries), chunk_size=size), kept)
    for one in batch:
        if isinstance(one, str):
            yield one
            continue
        old = index.rows_of(kept, ((p.path, p.old_blob) for p in one.places), size, fresh)
        new = index.rows_of(kept, ((p.path, p.new_blob) for p in one.places), size, fresh)
        yield complete(one, old, new, rules)
