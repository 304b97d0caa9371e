"""From two sides to changed files and hunks. Paths and kinds come from ``--raw -z``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from coderag_ci.gitrepo import (
    MODE_SUBMODULE,
    MODE_SYMLINK,
    GitRepo,
    RawChange,
    Sides,
    encode_path,
)
from coderag_ci.parse.content import is_binary, is_lfs_pointer
from coderag_ci.pathrules import Skipped
from coderag_ci.view import View, read

MAX_DIFFED_BYTES = 10 << 20
MAX_PATCH_BYTES = 6 << 20  # about 100,000 lines, two seconds of parsing
_TOO_LARGE = "larger than 10 MiB: hunks not read"
_CHANGE_TOO_LARGE = "change larger than 6 MiB: hunks not read"
_GONE = "content is not here: hunks not read"
_BATCH_BYTES = 2 << 20
_BATCH_PATHS = 300
_BATCH_PATH_BYTES = 64 << 10  # of a command line
_STATUS = {"A": "added", "M": "modified", "D": "deleted", "R": "renamed", "T": "modified"}


class Hunk(msgspec.Struct, frozen=True):
    """A hunk. ``lines`` keep their first character: space, ``+`` or ``-``."""

    old_start: int
    old_count: int
    new_start: int
    new_count: int
    section: str
    lines: tuple[str, ...]

    def numbered(self) -> Iterator[tuple[str, int, int, str]]:
        """Yield (sign, old line, new line, text); the side a line is not on counts on."""
        old, new = self.old_start, self.new_start
        for line in self.lines:
            yield line[0], old, new, line[1:]
            old += line[0] != "+"
            new += line[0] != "-"


class FileDiff(msgspec.Struct, frozen=True):
    """One changed path.

    ``status``: added, modified, deleted or renamed. ``kind``: text, mode, binary,
    submodule, symlink, lfs or empty. ``old_path`` differs only for a rename.
    """

    path: str
    old_path: str
    status: str
    kind: str
    old_mode: int
    new_mode: int
    old_blob: str
    new_blob: str
    hunks: tuple[Hunk, ...] = ()

    @property
    def added(self) -> int:
        """Number of added lines."""
        return sum(line[0] == "+" for hunk in self.hunks for line in hunk.lines)

    @property
    def deleted(self) -> int:
        """Number of deleted lines."""
        return sum(line[0] == "-" for hunk in self.hunks for line in hunk.lines)

    def added_lines(self) -> set[int]:
        """Return the lines of the new side that are added."""
        return {
            new_line
            for hunk in self.hunks
            for sign, _, new_line, _ in hunk.numbered()
            if sign == "+"
        }

    def touched_lines(self) -> set[int]:
        """Return the lines of the new side that are added or that stood next to deleted ones."""
        found: set[int] = set()
        for hunk in self.hunks:
            for sign, _, new_line, _ in hunk.numbered():
                if sign == "+":
                    found.add(new_line)
                elif sign == "-":
                    found.update((new_line - 1, new_line))
        return found


class Diff(NamedTuple):
    """All changed files in path order, and the paths whose hunks were not read."""

    files: tuple[FileDiff, ...]
    skipped: tuple[Skipped, ...]


class _Probe(NamedTuple):
    size: int
    binary: bool
    lfs: bool


def compute(repo: GitRepo, sides: Sides, head: View | None, pathspecs: Sequence[str] = ()) -> Diff:
    """Compare two sides. ``head`` is the working-tree view where that is a side."""
    raw = repo.raw_diff(sides, pathspecs)
    if head is not None and sides.head is None and not sides.staged:
        raw = _with_local_blobs(raw, head)
    probes = _probe(repo, head, raw)
    files = [_classify(change, probes) for change in raw]
    skipped: list[Skipped] = []
    hunks = _read_hunks(repo, sides, files, probes, skipped)
    done = [msgspec.structs.replace(f, hunks=tuple(hunks.get(f.path, ()))) for f in files]
    if head is not None and head.untracked:
        done += _untracked(repo, head, pathspecs, skipped)
    done.sort(key=lambda f: f.path)
    return Diff(tuple(done), tuple(skipped))


def _with_local_blobs(raw: list[RawChange], head: View) -> list[RawChange]:
    """Fill in blobs that git leaves as zeros, and drop files that only look touched."""
    changes = []
    for change in raw:
        blob = change.new_blob
        if change.new_mode and not blob.strip("0"):
            blob = head.on_disk.get(change.path, blob)
        if change.old_blob != blob or change.old_mode != change.new_mode:
            changes.append(change._replace(new_blob=blob))
    return changes


def _probe(repo: GitRepo, head: View | None, raw: list[RawChange]) -> dict[str, _Probe]:
    """Size and nature of each blob of a change that is a file."""
    wanted: dict[str, None] = {}
    for change in raw:
        for mode, blob in (
            (change.old_mode, change.old_blob),
            (change.new_mode, change.new_blob),
        ):
            if mode not in (0, MODE_SUBMODULE) and blob.strip("0"):
                wanted[blob] = None
    return {
        blob: _Probe(
            size, data is not None and is_binary(data), data is not None and is_lfs_pointer(data)
        )
        for blob, size, data in read(repo, head or View(()), wanted, MAX_DIFFED_BYTES)
    }


def _classify(change: RawChange, probes: dict[str, _Probe]) -> FileDiff:
    modes = (change.old_mode, change.new_mode)
    sides = [probes[b] for b in (change.old_blob, change.new_blob) if b in probes]
    if MODE_SUBMODULE in modes:
        kind = "submodule"
    elif MODE_SYMLINK in modes:
        kind = "symlink"
    elif any(side.lfs for side in sides):
        kind = "lfs"
    elif any(side.binary for side in sides):
        kind = "binary"
    elif change.old_blob == change.new_blob and change.status == "M":
        kind = "mode"
    elif all(side.size == 0 for side in sides) and change.status in "AD":
        kind = "empty"
    else:
        kind = "text"
    return FileDiff(
        change.path,
        change.old_path,
        _STATUS.get(change.status, "modified"),
        kind,
        *modes,
        change.old_blob,
        change.new_blob,
    )


def _read_hunks(
    repo: GitRepo,
    sides: Sides,
    files: list[FileDiff],
    probes: dict[str, _Probe],
    skipped: list[Skipped],
) -> dict[str, list[Hunk]]:
    """Read the patch in batches, the smallest files first.

    What is too large, and what is left once the whole is, is skipped by name.
    """
    found: dict[str, list[Hunk]] = {}
    batch: list[FileDiff] = []
    batch_bytes = path_bytes = total = 0

    def flush() -> None:
        nonlocal batch, batch_bytes, path_bytes, total
        if batch:
            total += _read_batch(repo, sides, batch, found)
        batch, batch_bytes, path_bytes = [], 0, 0

    def sizes_of(file: FileDiff) -> list[int]:
        return [probes[b].size for b in (file.old_blob, file.new_blob) if b in probes]

    for file in sorted(files, key=lambda f: (sum(sizes_of(f)), f.path)):
        if file.kind in ("binary", "mode", "lfs", "empty"):
            continue
        sizes = sizes_of(file)
        if any(size > MAX_DIFFED_BYTES for size in sizes):
            skipped.append(Skipped(file.path, _TOO_LARGE))
            continue
        if any(size < 0 for size in sizes):
            skipped.append(Skipped(file.path, _GONE))
            continue
        length = len(encode_path(file.path)) + len(encode_path(file.old_path))
        if length > _BATCH_PATH_BYTES:
            skipped.append(Skipped(file.path[:200] + "…", "its path is too long: hunks not read"))
            continue
        if total + batch_bytes > MAX_PATCH_BYTES:
            skipped.append(Skipped(file.path, _CHANGE_TOO_LARGE))
            continue
        batch.append(file)
        batch_bytes += sum(sizes)
        path_bytes += length
        full = len(batch) >= _BATCH_PATHS or path_bytes > _BATCH_PATH_BYTES
        if batch_bytes > _BATCH_BYTES or full:
            flush()
    flush()
    return found


def _read_batch(
    repo: GitRepo, sides: Sides, files: list[FileDiff], found: dict[str, list[Hunk]]
) -> int:
    """Read the hunks of some files; returns the bytes of patch read."""
    files = sorted(files, key=lambda file: encode_path(file.path))  # as git orders its patch
    paths = [path for file in files for path in dict.fromkeys((file.old_path, file.path))]
    patch = repo.patch(sides, paths)
    sections = _sections(patch)
    expected = [
        file
        for file in files
        for _ in range(2 if file.kind == "symlink" and _changes_type(file) else 1)
    ]
    if len(sections) != len(expected) or not all(map(_belongs, expected, sections)):
        # The working tree moved, or renames pair otherwise in a part: take them one at a time.
        if len(files) == 1:
            found[files[0].path] = [hunk for section in sections for hunk in _hunks(section)]
        else:
            for file in files:
                _read_batch(repo, sides, [file], found)
        return len(patch)
    for file, section in zip(expected, sections, strict=True):
        found.setdefault(file.path, []).extend(_hunks(section))
    return len(patch)


def _belongs(file: FileDiff, section: list[bytes]) -> bool:
    """Whether a section begins with the file's old content, as far as its header says."""
    for line in section:
        if line.startswith(b"index "):
            old = line[6:].partition(b"..")[0].decode()
            if old.strip("0"):
                return file.old_blob.startswith(old)
            return file.status == "added" or _changes_type(file)
        if line.startswith(b"@@ "):
            break
    return True


def _changes_type(file: FileDiff) -> bool:
    return bool(file.old_mode and file.new_mode) and file.old_mode != file.new_mode


def _sections(patch: bytes) -> list[list[bytes]]:
    """Split a patch into its files. In a hunk, no line begins with a ``d``."""
    sections: list[list[bytes]] = []
    for line in patch.split(b"\n"):
        if line.startswith(b"diff --git "):
            sections.append([])
        elif sections:
            sections[-1].append(line)
    return sections


def _hunks(section: list[bytes]) -> list[Hunk]:
    """Parse one file's hunks with unidiff.

    Bytes travel as Latin-1, and lines are split here at LF alone, so that form feeds,
    bare CRs and U+2028 stay inside their line.
    """
    start = next((i for i, line in enumerate(section) if line.startswith(b"@@ ")), None)
    if start is None:
        return []
    from unidiff.patch import PatchSet

    body = section[start:]
    if body and body[-1] == b"":
        body.pop()
    lines = ["--- a/x\n", "+++ b/x\n", *(line.decode("latin-1") + "\n" for line in body)]
    return [_hunk(hunk) for file in PatchSet(lines) for hunk in file]


def _hunk(hunk: object) -> Hunk:
    from unidiff.patch import Hunk as Parsed

    assert isinstance(hunk, Parsed)
    lines = tuple(
        line.line_type + _text(line.value.removesuffix("\n"))
        for line in hunk
        if line.line_type in " +-"
    )
    return Hunk(
        hunk.source_start,
        hunk.source_length,
        hunk.target_start,
        hunk.target_length,
        _text(hunk.section_header),
        lines,
    )


def _text(latin: str) -> str:
    return latin.encode("latin-1").decode("utf-8", "replace")


def _untracked(
    repo: GitRepo, head: View, pathspecs: Sequence[str], skipped: list[Skipped]
) -> Iterator[FileDiff]:
    """Untracked files are additions that git does not diff."""
    wanted = set(repo.untracked(pathspecs))
    left = MAX_PATCH_BYTES
    for entry in head.untracked:
        if entry.path not in wanted:
            continue
        ((_, size, data),) = read(repo, head, [entry.blob], MAX_DIFFED_BYTES)
        hunks: tuple[Hunk, ...] = ()
        if entry.mode == MODE_SYMLINK and data is not None:
            kind, hunks = "symlink", (_addition(data),)
        elif data is None:
            kind = "text"
            skipped.append(Skipped(entry.path, _TOO_LARGE if size > 0 else _GONE))
        elif is_binary(data):
            kind = "binary"
        elif size == 0:
            kind = "empty"
        else:
            kind = "text"
            left -= size
            if left > 0:
                hunks = (_addition(data),)
            else:
                skipped.append(Skipped(entry.path, _CHANGE_TOO_LARGE))
        yield FileDiff(
            entry.path,
            entry.path,
            "added",
            kind,
            0,
            entry.mode,
            "0" * len(entry.blob),
            entry.blob,
            hunks,
        )


def _addition(data: bytes) -> Hunk:
    lines = data.removesuffix(b"\n").split(b"\n")
    text = tuple("+" + line.decode("utf-8", "replace") for line in lines)
    return Hunk(0, 0, 1, len(lines), "", text)
