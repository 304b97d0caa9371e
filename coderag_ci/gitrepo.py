"""The one module that talks to git. Bytes in, bytes out; paths are str with surrogate escapes.

Every call runs with the same hardened settings, so that neither the user's git config
nor anything in the repository changes what comes back or makes git run a program.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import itertools
import os
import re
import secrets
import stat
import subprocess
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from coderag_ci.errors import CoderagError, SetupError, UsageError

try:
    import git
    from git.exc import GitCommandError
except ImportError as error:  # GitPython looks for the git executable when imported
    raise SetupError("git was not found", "install git and put it on PATH") from error

MODE_SYMLINK = 0o120000
MODE_SUBMODULE = 0o160000

_SETTINGS = (
    "core.quotePath=false",
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.precomposeUnicode=false",
    "core.attributesFile=/dev/null",
    "diff.external=",
    "diff.suppressBlankEmpty=false",
    "diff.autoRefreshIndex=true",
    "i18n.logOutputEncoding=UTF-8",
    "diff.renameLimit=1000",
    "submodule.recurse=false",
)
_ENVIRONMENT = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_DIFF_OPTS": "",
    "GIT_LITERAL_PATHSPECS": "0",
    "GIT_GLOB_PATHSPECS": "0",
    "GIT_NOGLOB_PATHSPECS": "0",
    "GIT_ICASE_PATHSPECS": "0",
    "GIT_TRACE": "0",
    "GIT_GRAFT_FILE": os.devnull,
    "LC_ALL": "C",
}
_OF_A_HOOK = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_PREFIX",
)
_MOST_PATHS = 50_000  # characters of paths on one command line
_MOST_PATCH_BYTES = 8 << 20
_MOST_KEPT_COMMITS = 50_000  # 4,000 are read of one history
_MOST_OUTPUT_BYTES = 4 << 20  # of git grep and git blame
_MOST_RESTARTS = 40  # of git cat-file, in a clone that lacks objects
_DEEPEN = (
    "set fetch-depth: 0 in actions/checkout (GIT_DEPTH: 0 in GitLab), or run: git fetch --unshallow"
)
_DIFF = (
    "-r",
    "--no-ext-diff",
    "--find-renames=50%",
    "--no-abbrev",
    "--no-relative",
    "--ignore-submodules=dirty",  # also overrides what .gitmodules says of it
)
_PATCH = (
    "-p",
    "--no-textconv",
    "--no-color",
    "--text",
    "--submodule=short",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--unified=3",
    "--inter-hunk-context=0",
    "--diff-algorithm=myers",
    "--indent-heuristic",
)


_CHANGES = ("--raw", *_DIFF, "-O/dev/null")
_COMMIT = "%H%x00%P%x00%cs%x00%s%x00%b"


class Entry(NamedTuple):
    """One path of a tree, of the index or of the working tree."""

    path: str
    mode: int
    blob: str


class RawChange(NamedTuple):
    """One line of ``git diff --raw``: a side that does not exist has mode 0."""

    old_mode: int
    new_mode: int
    old_blob: str
    new_blob: str
    status: str
    old_path: str
    path: str


class Commit(NamedTuple):
    """A commit of a history. ``date``: YYYY-MM-DD, when it was committed.

    ``changes``, where they were asked for, are those from its one parent; a merge has none.
    """

    id: str
    parents: tuple[str, ...]
    date: str
    subject: str
    body: str
    changes: tuple[RawChange, ...]


class Blamed(NamedTuple):
    """A commit that some lines came with, and how many. ``date``: YYYY-MM-DD, UTC.

    ``cut``: the history ends there, so that they may be older.
    """

    commit: str
    subject: str
    date: str
    lines: int
    cut: bool


def decode_path(raw: bytes) -> str:
    """Decode a path as git gives it; bytes that are not UTF-8 survive as surrogates."""
    return raw.decode("utf-8", "surrogateescape")


def encode_path(path: str) -> bytes:
    """Undo ``decode_path``."""
    return path.encode("utf-8", "surrogateescape")


class GitRepo:
    """A repository, found from a directory in it; work tree or bare."""

    def __init__(self, directory: str | None = None) -> None:
        """Open the repository that holds ``directory`` (default: the current one).

        Raises SetupError where there is none, or where git refuses it.
        """
        try:
            start = os.path.abspath(directory or os.getcwd())
        except FileNotFoundError as error:
            raise SetupError("the current directory is gone", "change to another") from error
        if not os.path.isdir(start):
            raise SetupError(f"no such directory: {directory}", "name a repository with --repo")
        named = directory is not None
        bare, git_dir, common_dir, top = self._find(start, named)
        self.git_dir = Path(git_dir).resolve()
        self.common_dir = Path(start, common_dir).resolve()
        self.root = Path(top).resolve() if top and bare == "false" else None
        self._cwd = str(self.root or self.git_dir)
        self._start = Path(start).resolve()
        self._environment = {**_ENVIRONMENT, "GIT_DIR": str(self.git_dir)}
        if self.root is not None:
            self._environment["GIT_WORK_TREE"] = str(self.root)
            self._environment.update(self._without_filters())
        if named:
            self._environment["GIT_INDEX_FILE"] = str(self.git_dir / "index")
            self._environment["GIT_COMMON_DIR"] = str(self.common_dir)
            self._environment["GIT_OBJECT_DIRECTORY"] = str(self.common_dir / "objects")
            self._environment["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = ""

    def _without_filters(self) -> dict[str, str]:
        """Return the variables that keep git from running a configured filter on a file.

        Attributes choose filters, and attributes can come with the change. Names may hold
        any sign, so they travel in the environment rather than in ``-c``.
        """
        pattern = r"^filter\..*\.(clean|process|smudge|required)$"
        out = self._try("config", "--null", "--name-only", "--get-regexp", pattern) or ""
        count = _config_count(os.environ)
        found = {}
        for name in dict.fromkeys(name for name in out.split("\0") if name):
            found[f"GIT_CONFIG_KEY_{count}"] = name
            found[f"GIT_CONFIG_VALUE_{count}"] = "false" if name.endswith(".required") else ""
            count += 1
        return {**found, "GIT_CONFIG_COUNT": str(count)} if found else {}

    def _find(self, start: str, named: bool) -> list[str]:
        """Say whether it is bare, its directory, the common one and its top, if it has one.

        The variables of a hook speak of another repository than one that was named.
        """
        environment = {**os.environ, **_ENVIRONMENT}
        for name in _OF_A_HOOK if named else ():
            environment.pop(name, None)
        between = f"--{secrets.token_hex(8)}"  # git prints it; a folder's name may hold a newline
        arguments = ["rev-parse", "--is-bare-repository", between, "--absolute-git-dir", between]
        arguments += ["--git-common-dir", between]
        arguments.append("--show-toplevel")  # comes last: it fails where there is no working tree
        try:
            done = subprocess.run(
                self._command(arguments),
                cwd=start,
                env=environment,
                capture_output=True,
                check=False,
            )
        except OSError as error:
            raise SetupError(f"git could not be started: {error}") from error
        found = os.fsdecode(done.stdout).split(f"{between}\n")
        if len(found) < 4:
            raise _git_error(arguments, done.stderr)
        return [text.removesuffix("\n") for text in found]

    @property
    def bare(self) -> bool:
        """Whether there is no working tree."""
        return self.root is None

    # ---- plumbing

    def _command(self, arguments: Sequence[str]) -> list[str]:
        settings = [word for setting in _SETTINGS for word in ("-c", setting)]
        return ["git", "--no-pager", *settings, *arguments]

    def _run(self, *arguments: str, literal: bool = False, trees: bool = False) -> bytes:
        """Run git and return stdout; raises SetupError with git's own first line."""
        cwd, environment = self._surroundings(trees)
        if literal:
            arguments = ("--literal-pathspecs", *arguments)
        try:
            status, out, err = git.Git(cwd).execute(
                self._command(arguments),
                with_extended_output=True,
                with_exceptions=False,
                stdout_as_string=False,
                strip_newline_in_stdout=False,
                env=environment,
            )
        except GitCommandError as error:
            raise SetupError(f"git could not be started: {error.stderr or error}") from error
        except (OSError, ValueError) as error:  # too long, or with a NUL
            raise SetupError(f"git could not be started: {error}", "name less") from error
        if status:
            raise _git_error(arguments, err)
        return bytes(out)

    def _surroundings(self, trees: bool) -> tuple[str, dict[str, str]]:
        """Return the directory and the variables that git runs with.

        ``trees``: away from the working tree and its index, whose .gitattributes would
        otherwise choose what a hunk of two commits is headed with.
        """
        if not trees:
            return self._cwd, self._environment
        cwd = str(self.git_dir)
        environment = {**self._environment, "GIT_INDEX_FILE": os.path.join(cwd, "no-index")}
        environment["GIT_IMPLICIT_WORK_TREE"] = "0"
        environment.pop("GIT_WORK_TREE", None)
        return cwd, environment

    def _try(self, *arguments: str) -> str | None:
        """Run git; its stripped output, or None where it failed."""
        try:
            return self._run(*arguments).decode("utf-8", "surrogateescape").strip()
        except SetupError as error:
            if "dubious ownership" in error.message:
                raise
            return None

    def from_root(self, pathspec: str) -> str:
        """Make a pathspec count from the top of the work tree, as git does from a subfolder.

        One with magic (``:``) counts from the top already.
        """
        if self.root is not None and os.path.isabs(pathspec):
            return os.path.relpath(os.path.realpath(pathspec), self.root)
        if (
            self.root is None
            or pathspec.startswith(":")
            or not self._start.is_relative_to(self.root)
        ):
            return pathspec
        joined = os.path.normpath(self._start.relative_to(self.root) / pathspec)
        return "." if joined == "." else joined + "/" * pathspec.endswith("/")

    # ---- refs

    def resolve(self, ref: str) -> str:
        """Return the commit id of a ref. Raises SetupError (unknown), UsageError (an option)."""
        if ref.startswith("-") or "\0" in ref or not ref.strip():
            raise UsageError(f"not a ref: {ref!r}", "a ref does not begin with '-'")
        found = self._commit(ref)
        if found and found.isalnum():  # ^REF excludes a commit
            return found
        if ".." in ref:
            raise UsageError(f"not one commit: {ref}", "use --base A --head B")
        if self.head() is None and ref == "HEAD":
            raise SetupError("the repository has no commits yet", "commit once, then run again")
        name = ref + "^{object}"
        other = self._try("rev-parse", "--verify", "--quiet", "--end-of-options", name) or ""
        if other.isalnum():
            raise SetupError(f"not a commit: {ref}", "name a commit, a branch or a tag")
        hint = "fetch it (git fetch origin), or name one that exists"
        if self.shallow:
            hint = f"the clone is shallow; {_DEEPEN}"
        raise SetupError(f"unknown ref: {ref}", hint)

    def exists(self, ref: str) -> bool:
        """Whether a ref names a commit that is here."""
        return bool(self._commit(ref))

    def head(self) -> str | None:
        """Return the commit of HEAD; None while it is unborn."""
        return self._commit("HEAD") or None

    def _commit(self, ref: str) -> str | None:
        name = ref + "^{commit}"
        return self._try("rev-parse", "--verify", "--quiet", "--end-of-options", name)

    def branch(self) -> str:
        """Return the name of the branch that is checked out; empty when detached."""
        return self._try("symbolic-ref", "--short", "--quiet", "HEAD") or ""

    @property
    def shallow(self) -> bool:
        """Whether history has been cut off."""
        return (self.common_dir / "shallow").exists()

    def default_branch(self) -> str | None:
        """Return the ref of the default branch: origin/HEAD, else main, else master."""
        named = self._try("symbolic-ref", "--quiet", "refs/remotes/origin/HEAD")
        candidates = [named] if named else []
        candidates += ["origin/main", "main", "origin/master", "master"]
        return next((ref for ref in candidates if self.exists(ref)), None)

    def merge_base(self, base: str, head: str) -> str:
        """Return the best common ancestor of two commits; raises SetupError where none is known."""
        found = self._try("merge-base", "--end-of-options", base, head)
        if found:
            return found.splitlines()[0]
        if self.shallow:
            raise SetupError("the merge base is not in this shallow clone", _DEEPEN)
        self._run("rev-list", "--count", base, head, "--")  # what git says of a damaged history
        raise SetupError(
            f"{base[:12]} and {head[:12]} have no commit in common",
            "name a base that the change was made from",
        )

    def pushed_base(self, head: str, remote: str) -> str | None:
        """Return what a remote has of a commit's history; None where all of it is new to it.

        That is the parent of the oldest commit that no tracking branch of the remote has, or
        the commit itself where one has it.
        """
        out = self._run(
            "rev-list", "--topo-order", "--reverse", head, "--not", f"--remotes={remote}"
        )
        oldest = out.split(b"\n", 1)[0].decode()
        return self._commit(f"{oldest}^") if oldest else head

    def subjects(self, base: str, head: str, limit: int = 20) -> list[str]:
        """Return the subjects of the commits in ``base..head``, newest first, without merges."""
        out = self._run(
            "log",
            "--no-merges",
            "--no-show-signature",
            f"--max-count={limit}",
            "--format=%s",
            f"{base}..{head}",
            "--",
        )
        return [line for line in out.decode("utf-8", "replace").split("\n") if line]

    def count_commits(self, base: str, head: str) -> int:
        """Return how many commits ``base..head`` has, merges left out."""
        out = self._run("rev-list", "--count", "--no-merges", f"{base}..{head}", "--")
        return int(out)

    def history(self, commit: str, *, changes: bool) -> Iterator[Commit]:
        """Yield a commit and its ancestors, the newest first, as git finds them.

        One process serves all of them and ends where no more are taken. Raises SetupError
        where git fails on the way.
        """
        raw = _CHANGES if changes else ("--no-patch",)
        return self._log(*raw, "--end-of-options", commit, "--")

    def commits(self, ids: Sequence[str]) -> Iterator[Commit]:
        """Yield some commits with their changes. Raises SetupError where git fails on the way."""
        return self._log("--no-walk=unsorted", "--stdin", *_CHANGES, ids=ids) if ids else iter(())

    def recent(self, commit: str, limit: int) -> list[tuple[str, int]]:
        """Return a commit and its ancestors, the newest first: (id, number of parents).

        Where the history is cut off, the last commits have no parents. Empty where it can not
        be read.
        """
        found = self._try(
            "rev-list", "--parents", f"--max-count={limit}", "--end-of-options", commit, "--"
        )
        lines = (line.split() for line in (found or "").splitlines())
        return [(commit, len(parents)) for commit, *parents in lines]

    def newest(self) -> list[str]:
        """Return the newest commits of all branches and tags, and of HEAD."""
        out = self._run("rev-list", "--all", f"--max-count={_MOST_KEPT_COMMITS}", "--")
        return out.decode().split()

    def _log(self, *arguments: str, ids: Sequence[str] = ()) -> Iterator[Commit]:
        process = self._popen("log", "-z", "--no-show-signature", f"--format={_COMMIT}", *arguments)
        assert process.stdin is not None
        assert process.stdout is not None
        feeder = threading.Thread(target=_feed, args=(process.stdin, ids), daemon=True)
        feeder.start()
        try:
            yield from _commits(_fields(process.stdout))
            failed = process.wait() != 0
        finally:
            process.kill()
            process.stdout.close()
            process.wait()
            feeder.join()
        if failed:
            raise SetupError("git log failed: part of the history is not here", "run git fsck")

    def added_lines(self, commits: Sequence[str]) -> Iterator[dict[str, list[str]]]:
        """Yield what each of some commits added, by path; merges and binary files add nothing.

        No more than 8 MiB of patches are read.
        """
        if not commits:
            return
        process = self._popen(
            *("log", "--no-walk=unsorted", "--stdin", "--no-show-signature", "--format=%x00"),
            *(*_DIFF, *_PATCH, "--unified=0", "-O/dev/null"),
        )
        assert process.stdin is not None
        assert process.stdout is not None
        feeder = threading.Thread(target=_feed, args=(process.stdin, commits), daemon=True)
        feeder.start()
        try:
            out = process.stdout.read(_MOST_PATCH_BYTES)
        finally:
            process.kill()
            process.stdout.close()
            process.wait()
            feeder.join()
        for patch in out.split(b"\0\n")[1:]:
            yield _added(patch)

    def blame(
        self, commit: str, path: str, ranges: Sequence[tuple[int, int]], seconds: float
    ) -> list[Blamed] | None:
        """Say which commits some lines of a path at a commit came with; None: it took too long.

        Ranges are lines, first and last. Raises SetupError where git has no such lines.
        """
        if seconds <= 0:
            return None
        wanted = [f"-L{first},{last}" for first, last in ranges]
        out, status = self._output(
            seconds,
            *("blame", "--porcelain", "--no-ignore-revs-file", "--no-textconv", "--no-progress"),
            *(*wanted, commit, "--", path),
            trees=True,
        )
        if status is None:
            return None
        if status:
            raise SetupError(f"git blame failed for {path}", "run git fsck if it persists")
        return list(_blamed(out, shallow=self.shallow))

    def grep(
        self, names: Sequence[str], sides: Sides, seconds: float
    ) -> Iterator[tuple[str, int, str]]:
        """Yield (path, line number, line) where a name stands as a word on the newer side.

        What was found within some seconds, 4 MiB at most.
        """
        where = [sides.head] if sides.head is not None else ["--untracked"]
        out, _ = self._output(
            seconds,
            *("grep", "--line-number", "--null", "-I", "--word-regexp", "--fixed-strings"),
            *("--no-color", "--full-name", "--no-textconv", "--no-recurse-submodules"),
            *(word for name in names for word in ("-e", name)),
            *(["--cached"] if sides.staged else where),
            "--",
        )
        before = f"{sides.head}:" if sides.head is not None else ""
        for record in out.split(b"\n")[:-1]:
            path, _, rest = record.partition(b"\0")
            found = re.match(rb"(\d+)[:\0](.*)", rest)
            if found:
                name = decode_path(path).removeprefix(before)
                yield name, int(found[1]), found[2].decode("utf-8", "replace")

    def _output(
        self, seconds: float, *arguments: str, trees: bool = False
    ) -> tuple[bytes, int | None]:
        """Run git for some seconds; its output, 4 MiB at most, and its status, None where late."""
        process = self._popen(*arguments, trees=trees)
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        late = threading.Event()

        def give_up() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(seconds, give_up)
        timer.start()
        try:
            out = process.stdout.read(_MOST_OUTPUT_BYTES)
            status = process.wait() if len(out) < _MOST_OUTPUT_BYTES else 0
        finally:
            timer.cancel()
            process.kill()
            process.stdout.close()
            process.wait()
        return out, None if status and late.is_set() else status

    def remote_url(self) -> str:
        """Return the URL of ``origin``; empty where there is none."""
        return self._try("config", "--get", "remote.origin.url") or ""

    def fetch(self, wanted: Sequence[str], *options: str, header: str = "") -> str:
        """Fetch refs or commits from origin; returns the id of the first. Raises SetupError.

        ``header`` authenticates with the remote; it travels in the environment, where no list
        of processes shows it, and takes the place of headers that the config has for it.
        """
        environment = {**self._environment, "GIT_NO_LAZY_FETCH": "0"}
        if header:
            count = _config_count({**os.environ, **environment})
            url = self.remote_url().split("/")
            name = f"http.{'/'.join(url[:3])}/.extraheader"
            for number, value in enumerate(("", header), count):
                environment[f"GIT_CONFIG_KEY_{number}"] = name
                environment[f"GIT_CONFIG_VALUE_{number}"] = value
            environment["GIT_CONFIG_COUNT"] = str(count + 2)
        arguments = ("fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-auto-gc")
        done = subprocess.run(
            self._command([*arguments, *options, "--end-of-options", "origin", *wanted]),
            cwd=self._cwd,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        if done.returncode:
            raise _git_error(arguments, done.stderr)
        return self._commit("FETCH_HEAD") or ""

    def hooks_directory(self) -> Path:
        """Return where git looks for hooks: core.hooksPath, else ``hooks`` in its directory."""
        named = self._try("config", "--null", "--type=path", "--get-all", "core.hooksPath") or ""
        paths = [path for path in named.split("\0") if path]
        if len(paths) < 2:  # the last one is our own, which switches hooks off
            return self.common_dir / "hooks"
        return Path(self._cwd, paths[-2])

    def version(self) -> str:
        """Return what ``git --version`` prints."""
        return self._try("version") or ""

    # ---- trees

    def tree(self, commit: str, paths: Sequence[str] = ()) -> list[Entry]:
        """List every blob, link and submodule of a commit, or those of some literal paths."""
        if sum(map(len, paths)) > _MOST_PATHS:  # a command line is not endless
            wanted = set(paths)
            return [entry for entry in self.tree(commit) if entry.path in wanted]
        out = self._run("ls-tree", "-r", "-z", "--full-tree", commit, "--", *paths, literal=True)
        entries = []
        for record in out.split(b"\0"):
            if record:
                meta, _, path = record.partition(b"\t")
                mode, _, blob = meta.split(b" ")
                entries.append(Entry(decode_path(path), int(mode, 8), blob.decode()))
        return entries

    def file_at(self, commit: str, path: str) -> bytes | None:
        """Return a regular file's content at a commit; None where there is none.

        Raises SetupError where it is larger than 1 MiB, or missing in a partial clone.
        """
        entry = next((e for e in self.tree(commit, [path]) if e.path == path), None)
        if entry is None or entry.mode & 0o170000 != 0o100000:
            return None
        ((_, size, data),) = self.blobs([entry.blob], 1 << 20)
        if data is None:
            reason = "it is larger than 1 MiB" if size > 0 else "its content is not in this clone"
            raise SetupError(f"{path} of {commit[:12]} can not be read: {reason}")
        return data

    def index(self) -> tuple[list[Entry], list[str]]:
        """List the staged entries, and the paths left out because they are in conflict."""
        entries, conflicts = [], set()
        for record in self._run("ls-files", "--stage", "-z", "--full-name", ":/").split(b"\0"):
            if record:
                meta, _, raw = record.partition(b"\t")
                mode, blob, stage = meta.split(b" ")
                if stage == b"0":
                    entries.append(Entry(decode_path(raw), int(mode, 8), blob.decode()))
                else:
                    conflicts.add(decode_path(raw))
        return entries, sorted(conflicts)

    def working_changes(self) -> list[str]:
        """List tracked paths whose file differs from the index, as git converts line endings."""
        out = self._run(
            "diff",
            "--name-only",
            "-z",
            "--no-ext-diff",
            "--no-textconv",
            "--no-relative",
            "-O/dev/null",
            "--ignore-submodules=all",
        )
        return sorted({decode_path(path) for path in out.split(b"\0") if path})

    def untracked(self, pathspecs: Sequence[str] = ()) -> list[str]:
        """List untracked files that are not ignored, nested repositories left out."""
        out = self._run(
            "ls-files",
            "--others",
            "--exclude-standard",
            "-z",
            "--full-name",
            "--",
            *(pathspecs or (":/",)),
        )
        paths = [decode_path(path) for path in out.split(b"\0") if path]
        return [path for path in paths if not path.endswith("/")]

    def dirty(self) -> bool:
        """Whether the index or the working tree differs from HEAD, untracked files included."""
        out = self._run(
            "status", "--porcelain", "-z", "--ignore-submodules=dirty", "--untracked-files=normal"
        )
        return bool(out)

    def read_file(self, path: str, max_bytes: int) -> tuple[int, bytes | None] | None:
        """Read a working-tree file: (mode, content); a link gives its target; None if gone.

        Content is None over ``max_bytes``. No link is followed, neither the file itself nor
        a directory on the way to it.
        """
        opened = self._open_file(path)
        if opened is None:
            return None
        mode, found = opened
        if isinstance(found, bytes):
            return mode, found
        with found as file:
            data = file.read(max_bytes + 1)
        return mode, data if len(data) <= max_bytes else None

    def hash_file(self, path: str) -> tuple[int, str] | None:
        """Return (mode, blob id) of a working-tree file, read in pieces; None if gone."""
        opened = self._open_file(path)
        if opened is None:
            return None
        mode, found = opened
        if isinstance(found, bytes):
            return mode, self.hash(found)
        with found as file:
            state = self._hasher(os.fstat(file.fileno()).st_size)
            while piece := file.read(1 << 20):
                state.update(piece)
        return mode, state.hexdigest()

    def _open_file(self, path: str) -> tuple[int, bytes | IO[bytes]] | None:
        """Open a working-tree file without following links; a link gives its target."""
        assert self.root is not None
        full = os.path.join(os.fsencode(self.root), encode_path(path))
        parent = os.path.dirname(full)
        if os.path.realpath(parent) != parent:
            return None
        try:
            info = os.lstat(full)
            if stat.S_ISLNK(info.st_mode):
                return MODE_SYMLINK, os.readlink(full)
            if not stat.S_ISREG(info.st_mode):
                return None
            descriptor = os.open(full, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        except OSError:
            return None
        return 0o100755 if info.st_mode & 0o100 else 0o100644, os.fdopen(descriptor, "rb")

    def hash(self, data: bytes) -> str:
        """Return the blob id of some content, in memory, in the repository's object format."""
        state = self._hasher(len(data))
        state.update(data)
        return state.hexdigest()

    def _hasher(self, size: int) -> hashlib._Hash:
        name = "sha256" if self._object_format() == "sha256" else "sha1"
        return hashlib.new(name, b"blob %d\0" % size, usedforsecurity=False)

    def _object_format(self) -> str:
        if not hasattr(self, "_format"):
            self._format = self._try("rev-parse", "--show-object-format") or "sha1"
        return self._format

    # ---- blobs

    def blobs(self, ids: Iterable[str], max_bytes: int) -> Iterator[tuple[str, int, bytes | None]]:
        """Yield (id, size, content) in order; content is None over ``max_bytes`` or if missing.

        A missing blob has size -1. One ``git cat-file --batch`` serves all of them; where it is
        killed, a second one goes on.
        """
        wanted = list(ids)
        killed = False
        for _ in range(_MOST_RESTARTS):
            if not wanted:
                return
            done = 0
            again = False
            try:
                for found in self._batch(wanted, max_bytes):
                    done += 1
                    yield found
            except _KilledError:
                again, killed = not killed, True
            wanted = wanted[done:]
            if (
                wanted and not again
            ):  # git gives up at an object that a partial clone has only been promised
                yield wanted.pop(0), -1, None
        yield from ((blob, -1, None) for blob in wanted)

    def _batch(self, wanted: list[str], max_bytes: int) -> Iterator[tuple[str, int, bytes | None]]:
        """Run ``git cat-file --batch`` once; ends early where git does.

        Raises _KilledError where a signal ended it.
        """
        process = self._popen("cat-file", "--batch", "--buffer")
        assert process.stdin is not None
        assert process.stdout is not None
        feeder = threading.Thread(target=_feed, args=(process.stdin, wanted), daemon=True)
        feeder.start()
        try:
            for blob in wanted:
                header = process.stdout.readline().split()
                if not header:
                    break
                if len(header) != 3:
                    yield blob, -1, None
                    continue
                size = int(header[2])
                data = _take(process.stdout, size, max_bytes)
                if data is None and size <= max_bytes:
                    break
                yield blob, size, data
            else:
                return
            if process.wait() < 0:
                raise _KilledError
        finally:
            process.kill()
            process.stdout.close()
            process.wait()
            feeder.join()

    def _popen(self, *arguments: str, trees: bool = False) -> subprocess.Popen[bytes]:
        cwd, environment = self._surroundings(trees)
        return subprocess.Popen(
            self._command(arguments),
            cwd=cwd,
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    # ---- diffs

    def raw_diff(self, sides: Sides, pathspecs: Sequence[str] = ()) -> list[RawChange]:
        """List the changes between two sides; pathspecs are the user's and may use magic."""
        out = self._run(
            *sides.command(),
            "--raw",
            "-z",
            *_DIFF,
            *sides.trees(),
            "--",
            *pathspecs,
            trees=sides.head is not None,
        )
        return list(_raw_changes(out))

    def patch(self, sides: Sides, paths: Sequence[str]) -> bytes:
        """Return the patch of some literal paths between two sides."""
        return self._run(
            *sides.command(),
            *_DIFF,
            *_PATCH,
            *sides.trees(),
            "--",
            *paths,
            literal=True,
            trees=sides.head is not None,
        )

    def empty_tree(self) -> str:
        """Return the id of the tree without entries, which git knows in every repository."""
        name = "sha256" if self._object_format() == "sha256" else "sha1"
        return hashlib.new(name, b"tree 0\0", usedforsecurity=False).hexdigest()


def _config_count(environment: Mapping[str, str]) -> int:
    """Return how many settings the environment gives git."""
    try:
        return int(environment.get("GIT_CONFIG_COUNT") or 0)
    except ValueError:
        return 0


class Sides(NamedTuple):
    """What is compared: ``base`` with a commit, the index (``staged``) or the working tree."""

    base: str
    head: str | None = None
    staged: bool = False

    def command(self) -> tuple[str, ...]:
        """Return the plumbing command that compares these sides."""
        if self.head is not None:
            return ("diff-tree",)
        return ("diff-index", "--cached") if self.staged else ("diff-index",)

    def trees(self) -> tuple[str, ...]:
        """Return the trees to name on the command line."""
        return (self.base, self.head) if self.head is not None else (self.base,)


class _KilledError(Exception):
    """A signal ended a process of git."""


def _not_a_repository() -> SetupError:
    return SetupError(
        "not a git repository", "run inside a repository, or name one with --repo DIR"
    )


def _raw_changes(out: bytes) -> Iterator[RawChange]:
    fields = iter(out.split(b"\0"))
    for field in fields:
        if field.startswith(b":"):
            yield _raw_change(field, fields)


def _raw_change(field: bytes, fields: Iterator[bytes]) -> RawChange:
    """Read one change; its paths are the next fields."""
    old_mode, new_mode, old_blob, new_blob, status = field[1:].decode().split(" ")
    first = decode_path(next(fields))
    second = decode_path(next(fields)) if status[0] in "RC" else first
    return RawChange(
        int(old_mode, 8), int(new_mode, 8), old_blob, new_blob, status[0], first, second
    )


def _fields(stdout: IO[bytes]) -> Iterator[bytes]:
    """Yield what stands before each NUL; what a git that was stopped left half-written is lost."""
    rest = b""
    while piece := stdout.read(1 << 16):
        *whole, rest = (rest + piece).split(b"\0")
        yield from whole


def _commits(fields: Iterator[bytes]) -> Iterator[Commit]:
    """Read the commits of a log: five fields each, then the changes, which begin with a colon."""
    head = next(fields, None)
    while head is not None:
        words = [head, *itertools.islice(fields, 4)]
        if len(words) < 5:
            return
        commit, parents, date, subject, body = (w.decode("utf-8", "replace") for w in words)
        changes = []
        while (head := next(fields, None)) is not None and head.lstrip(b"\n")[:1] == b":":
            try:
                changes.append(_raw_change(head.lstrip(b"\n"), fields))
            except StopIteration:
                return
        yield Commit(commit, tuple(parents.split()), date, subject, body, tuple(changes))


def _added(patch: bytes) -> dict[str, list[str]]:
    """Read the added lines of a patch by path; paths that git has to quote are left out."""
    found: dict[str, list[str]] = {}
    lines: list[str] | None = None
    head = False
    for line in patch.split(b"\n"):
        first = line[:1]
        if first == b"+":
            if head and line.startswith(b"+++ b/"):
                lines = found.setdefault(decode_path(line[6:].rstrip(b"\t")), [])
            elif lines is not None and not head:
                lines.append(line[1:].decode("utf-8", "replace"))
        elif first == b"@":
            head = False
        elif first == b"d" and line.startswith(b"diff --git "):
            lines, head = None, True
    return found


def _blamed(out: bytes, *, shallow: bool) -> Iterator[Blamed]:
    """Read ``git blame --porcelain``: a commit is described where it comes first."""
    lines: dict[str, int] = {}
    about: dict[str, dict[str, str]] = {}
    commit = ""
    for line in out.split(b"\n"):
        name, _, rest = line.partition(b" ")
        if line.startswith(b"\t"):
            lines[commit] = lines.get(commit, 0) + 1
            commit = ""
        elif commit:
            about[commit][name.decode("utf-8", "replace")] = rest.decode("utf-8", "replace")
        elif line:
            commit = name.decode()
            about.setdefault(commit, {})
    for commit, number in lines.items():
        told = about[commit]
        when = int(told.get("committer-time", "0"))
        day = dt.datetime.fromtimestamp(when, dt.timezone.utc).date().isoformat()
        cut = shallow and "boundary" in told
        yield Blamed(commit, told.get("summary", ""), day, number, cut)


def _feed(stdin: IO[bytes], ids: Sequence[str]) -> None:
    """Write the wanted ids; the reader may leave early."""
    try:
        for start in range(0, len(ids), 1000):
            stdin.write("".join(f"{blob}\n" for blob in ids[start : start + 1000]).encode())
        stdin.close()
    except (BrokenPipeError, ValueError, OSError):
        pass


def _take(stdout: IO[bytes], size: int, max_bytes: int) -> bytes | None:
    """Read one object and the newline after it; large ones are passed over in pieces."""
    if size <= max_bytes:
        data = stdout.read(size + 1)
        return data[:size] if len(data) == size + 1 else None
    left = size + 1
    while left > 0 and (piece := stdout.read(min(left, 1 << 20))):
        left -= len(piece)
    return None


def _git_error(arguments: Sequence[str], err: str | bytes) -> CoderagError:
    text = err.decode("utf-8", "replace") if isinstance(err, bytes) else err
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    first = next((line for line in lines if "fatal:" in line or "error:" in line), "no message")
    if "dubious ownership" in text:
        return SetupError(
            "git refuses the repository: dubious ownership",
            'git config --global --add safe.directory "$PWD"',
        )
    if "not a git repository" in text:
        return _not_a_repository()
    if "pathspec" in first or "is outside repository" in first:
        return UsageError(
            f"--paths: {first.removeprefix('fatal: ')}", "git help glossary describes a pathspec"
        )
    words = [word for word in arguments if not word.startswith("-")]
    return SetupError(
        f"git {words[0] if words else ''} failed: {first}", "run git fsck if it persists"
    )
