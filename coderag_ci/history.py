"""What earlier commits say of a change: which files went with its files, and which lines."""

from __future__ import annotations

import contextlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from coderag_ci.errors import SetupError
from coderag_ci.gitrepo import Commit, GitRepo, decode_path, encode_path
from coderag_ci.store import Store

MOST_COMMITS = 4_000  # read of a history, the newest; merges bring nothing
_MOST_FILES = 30  # of a commit; more is a sweep
_MOST_PATCHES = 30  # commits on a changed file whose lines are read
_MOST_OTHERS = 20  # commits on a changed file whose other files are kept
_MOST_PATHS = 8  # changed files whose earlier commits' lines are read
_SHORTEST = 8  # signs of a line that tells something


@dataclass
class Past:
    """What a history says of some changed paths.

    ``together``: other path to Σ 1/√(files − 1) over the commits that changed it with one of
    the changed paths; ``times``: other path to how often that was; ``of``: how many commits
    changed one of them; ``unread``: how many git did not give; ``recent``: changed path to its
    newest such commits; ``others``: changed path to the other files of each of its
    newest such commits; ``often``: any path to how many commits changed it.
    """

    commits: int = 0
    unread: int = 0
    of: int = 0
    together: dict[str, float] = field(default_factory=dict)
    times: dict[str, int] = field(default_factory=dict)
    recent: dict[str, list[str]] = field(default_factory=dict)
    others: dict[str, list[frozenset[str]]] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    often: Counter[str] = field(default_factory=Counter)


def read(repo: GitRepo, base: str, paths: Sequence[str], kept: Store) -> Past:
    """Read the newest commits up to ``base``, renames followed.

    What a commit changed is read once and kept. A merge brings nothing, and a first commit
    says nothing: all that there was came with it. Where a part of the history is not here
    (a shallow clone, a git that fails), what is here counts.
    """
    past = Past(recent={path: [] for path in paths[:_MOST_PATHS]})
    changed = set(paths)
    for commit, changes in _changes(repo, base, kept, past):
        files = {past.aliases.get(path, path) for _, path in changes}
        for old_path, path in changes:
            if old_path:
                past.aliases[old_path] = past.aliases.get(path, path)
        past.often.update(files)
        own = files & changed
        if not own or len(files) > _MOST_FILES:
            continue
        past.of += 1
        for path in own:
            known = past.others.setdefault(path, [])
            if len(known) < _MOST_OTHERS:
                known.append(frozenset(files - {path}))
        for path in own & past.recent.keys():
            if len(past.recent[path]) < _MOST_PATCHES:
                past.recent[path].append(commit)
        for path in files - changed:
            weight = 1 / math.sqrt(len(files) - 1)
            past.together[path] = past.together.get(path, 0.0) + weight
            past.times[path] = past.times.get(path, 0) + 1
    return past


_Changes = tuple[tuple[str, str], ...]  # (old path of a rename or "", path)


def _changes(repo: GitRepo, base: str, kept: Store, past: Past) -> Iterator[tuple[str, _Changes]]:
    """Yield what ordinary commits changed, the newest first."""
    commits = repo.recent(base, MOST_COMMITS)
    past.commits = len(commits)
    ordinary = [commit for commit, parents in commits if parents == 1]
    known = kept.commits(ordinary)
    fresh: list[tuple[str, bytes]] = []
    with contextlib.suppress(SetupError):  # what is not here can not count
        for one in repo.commits([commit for commit in ordinary if commit not in known]):
            data = _encoded(one)
            fresh.append((one.id, data))
            known[one.id] = data
    past.unread = len(set(ordinary) - known.keys())
    kept.add_commits(fresh)
    paths: dict[bytes, str] = {}
    for commit in ordinary:
        if (found := known.get(commit)) is not None:
            with contextlib.suppress(msgspec.MsgspecError):
                yield commit, _decoded(found, paths)


def _encoded(commit: Commit) -> bytes:
    return msgspec.msgpack.encode(
        [
            (encode_path(change.old_path if change.status == "R" else ""), encode_path(change.path))
            for change in commit.changes
        ]
    )


def _decoded(data: bytes, paths: dict[bytes, str]) -> _Changes:
    """``paths`` are those decoded before: most commits change the same few."""
    found = []
    for pair in _decoder.decode(data):
        for raw in pair:
            if raw not in paths:
                paths[raw] = decode_path(raw)
        found.append((paths[pair[0]], paths[pair[1]]))
    return tuple(found)


_decoder = msgspec.msgpack.Decoder(tuple[tuple[bytes, bytes], ...])


def lines_with(
    repo: GitRepo, past: Past, units: Mapping[str, set[str]]
) -> dict[str, dict[str, None]]:
    """Return, by path, the lines that earlier commits added together with lines of units.

    ``units``: changed path to the stripped lines of its changed units. Only commits count
    that added one of these lines to that path.
    """
    wanted = dict.fromkeys(commit for commits in past.recent.values() for commit in commits)
    found: dict[str, dict[str, None]] = {}
    for added in repo.added_lines(list(wanted)):
        named = {past.aliases.get(path, path): lines for path, lines in added.items()}
        if not any(units[path] & _telling(named.get(path, ())).keys() for path in units):
            continue
        for path, lines in named.items():
            if path not in units:
                found.setdefault(path, {}).update(_telling(lines))
    return found


def _telling(lines: Sequence[str]) -> dict[str, None]:
    stripped = (line.strip() for line in lines)
    return {
        line: None for line in stripped if len(line) >= _SHORTEST and any(map(str.isalnum, line))
    }
