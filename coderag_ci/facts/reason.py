"""Why it was so: the commits that last touched the lines that the change deletes."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator

from coderag_ci.diff import FileDiff
from coderag_ci.errors import SetupError
from coderag_ci.facts.given import Given, count, fact, quote
from coderag_ci.gitrepo import Blamed
from coderag_ci.pack import Fact, Place

_MOST_FILES = 2  # more say less than the evidence that would have their room
_MOST_RANGES = 20  # of deleted lines, in all files
_MOST_COMMITS = 3  # told of a file
_SECONDS = 5.0  # for all files: more than a busy machine takes, so that packs are equal
_SHOWN = 10  # digits of a commit id


def facts(given: Given) -> list[Fact]:
    """Return one fact a file, of those with most deleted lines."""
    files = [
        file
        for file in given.files
        if file.kind == "text"
        and file.status in ("modified", "renamed", "deleted")
        and file.deleted
        and given.written(file.old_path)
    ]
    files.sort(key=lambda file: (-file.deleted, file.path))
    if not given.merge_base:
        return []
    found = []
    until = time.monotonic() + min(_SECONDS, given.seconds)
    left = _MOST_RANGES
    for file in files[:_MOST_FILES]:
        runs = list(itertools.islice(_deleted(file), left))
        left -= len(runs)
        if not runs:
            break
        try:
            blamed = given.repo.blame(
                given.merge_base,
                file.old_path,
                [(first, last) for first, last, _ in runs],
                until - time.monotonic(),
            )
        except SetupError:
            continue
        if blamed is None:
            given.limits.append(f"git blame took too long: {file.path} is not told")
            break
        if one := _fact(file, runs, blamed):
            found.append(one)
    return found


def _deleted(file: FileDiff) -> Iterator[tuple[int, int, int]]:
    """Yield first and last old line of each run of deleted lines, and where it was in head."""
    for hunk in file.hunks:
        for sign, some in itertools.groupby(hunk.numbered(), key=lambda line: line[0]):
            if sign == "-":
                lines = list(some)
                yield lines[0][1], lines[-1][1], max(1, lines[0][2])


def _fact(file: FileDiff, runs: list[tuple[int, int, int]], blamed: list[Blamed]) -> Fact | None:
    known = sorted((one for one in blamed if not one.cut), key=lambda o: (-o.lines, o.commit))
    unknown = sum(one.lines for one in blamed if one.cut)
    if not known:
        return None
    told = ", ".join(
        f"{one.commit[:_SHOWN]} {quote(one.subject)} ({one.date}, {count(one.lines, 'line')})"
        for one in known[:_MOST_COMMITS]
    )
    more = f" and {count(len(known) - _MOST_COMMITS, 'more commit')}" * (len(known) > _MOST_COMMITS)
    cut = f"; of {count(unknown, 'line')} it is not known: the clone is shallow" * bool(unknown)
    text = f"lines that the change deletes from `{file.old_path}` came with {told}{more}{cut}"
    places = () if file.status == "deleted" else [Place(file.path, runs[0][2])]  # the diff has all
    return fact("why it was so", text, places)
