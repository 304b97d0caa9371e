"""A view: which paths are seen, with which blobs, and where their content comes from."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from coderag_ci.gitrepo import (
    MODE_SUBMODULE,
    MODE_SYMLINK,
    Entry,
    GitRepo,
    encode_path,
)
from coderag_ci.parse.content import MAX_BYTES
from coderag_ci.parse.languages import language_of
from coderag_ci.parse.windows import LIMIT
from coderag_ci.pathrules import PathRules, Skipped


@dataclass(frozen=True)
class View:
    """The indexable paths of one tree, in path order.

    ``local`` maps the blobs that only the working tree has to the path they are read
    from, ``contents`` holds those that are nowhere; all others are git objects. ``on_disk``
    holds the blob of every file of a working tree and ``untracked`` every untracked file,
    indexable or not. ``left_out`` says of each path that is not seen why; ``skipped`` names
    those that a reader would want to know of. ``chunk_size`` is the most bytes of a chunk, about.
    """

    entries: tuple[Entry, ...]
    left_out: dict[str, str] = field(default_factory=dict)
    skipped: tuple[Skipped, ...] = ()
    local: dict[str, str] = field(default_factory=dict)
    untracked: tuple[Entry, ...] = ()
    on_disk: dict[str, str] = field(default_factory=dict)
    contents: dict[str, bytes] = field(default_factory=dict)
    chunk_size: int = LIMIT

    @functools.cached_property
    def digest(self) -> str:
        """Identity of the view: its paths and blobs."""
        state = hashlib.blake2b(digest_size=16)
        for entry in self.entries:
            state.update(b"%s\0%s\0" % (encode_path(entry.path), entry.blob.encode()))
        return state.hexdigest()


def head_view(repo: GitRepo, kind: str, head: str, rules: PathRules) -> View:
    """See the newer side of a change of a kind. ``head``: its commit, where it is one."""
    if kind == "worktree":
        return working_view(repo, rules)
    if kind == "staged":
        return staged_view(repo, rules)
    return commit_view(repo, head, rules)


def commit_view(repo: GitRepo, commit: str, rules: PathRules) -> View:
    """See a commit's tree, through git objects alone."""
    return _view(repo.tree(commit), rules)


def staged_view(repo: GitRepo, rules: PathRules) -> View:
    """See the staged index, through git objects alone."""
    entries, conflicts = repo.index()
    return _view(entries, rules, [Skipped(path, "in conflict") for path in conflicts])


def working_view(repo: GitRepo, rules: PathRules) -> View:
    """See the working tree: staged entries, with changed and untracked files read from disk.

    Files are hashed in memory; nothing is written to the object database.
    """
    entries, conflicts = repo.index()
    staged = {entry.path: entry for entry in entries}
    changed, untracked = repo.working_changes(), repo.untracked()
    local: dict[str, str] = {}
    for path in dict.fromkeys([*changed, *conflicts, *untracked]):
        known = staged.get(path)
        if known and known.mode == MODE_SUBMODULE:
            continue
        hashed = repo.hash_file(path)
        if hashed is None:
            staged.pop(path, None)
            continue
        mode, blob = hashed
        staged[path] = Entry(path, mode, blob)
        if known is None or known.blob != blob:
            local[blob] = path
    new = tuple(staged[path] for path in untracked if path in staged)
    entries = sorted(staged.values(), key=lambda entry: encode_path(entry.path))
    seen = _view(entries, rules, local=local, untracked=new)
    on_disk = {entry.path: entry.blob for entry in entries if entry.mode != MODE_SUBMODULE}
    return dataclasses.replace(seen, on_disk=on_disk)


def of_paths(repo: GitRepo, commit: str, paths: Iterable[str], rules: PathRules) -> View:
    """See only some paths of a commit: the base side of what a change touched."""
    wanted = set(paths)
    if not wanted:
        return View((), chunk_size=rules.chunk_size)
    return _view([e for e in repo.tree(commit, sorted(wanted)) if e.path in wanted], rules)


def _view(
    entries: Iterable[Entry],
    rules: PathRules,
    skipped: Iterable[Skipped] = (),
    local: dict[str, str] | None = None,
    untracked: tuple[Entry, ...] = (),
) -> View:
    kept: list[Entry] = []
    left_out: dict[str, str] = {}
    for entry in entries:
        if entry.mode in (MODE_SUBMODULE, MODE_SYMLINK):
            link = "submodule" if entry.mode == MODE_SUBMODULE else "symbolic link"
            left_out[entry.path] = link
        elif reason := rules.why_not(entry.path, language_of(entry.path).name):
            left_out[entry.path] = reason
        else:
            kept.append(entry)
    return View(
        tuple(kept),
        left_out,
        tuple(skipped),
        local or {},
        untracked,
        chunk_size=rules.chunk_size,
    )


def read(
    repo: GitRepo, view: View, blobs: Iterable[str], max_bytes: int = MAX_BYTES
) -> Iterator[tuple[str, int, bytes | None]]:
    """Yield (blob, size, content); content is None where it is too large or gone."""
    objects = []
    for blob in blobs:
        if (known := view.contents.get(blob)) is not None:
            yield blob, len(known), known if len(known) <= max_bytes else None
            continue
        if (path := view.local.get(blob)) is None:
            objects.append(blob)
            continue
        content = repo.read_file(path, max_bytes)
        if content is not None and content[1] is None:
            yield blob, max_bytes + 1, None
        elif content is None or content[1] is None or repo.hash(content[1]) != blob:
            yield blob, -1, None
        else:
            yield blob, len(content[1]), content[1]
    yield from repo.blobs(objects, max_bytes)
