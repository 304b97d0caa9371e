"""Drills: each breaks the real thing, and ends in a pack with the diff and an honest header.

The ladder and what has no other place stand here; those marked ``drill`` take real time
(``pytest -m drill``). Others stand with what they break:

- what is told of a step down, in which places: test_limited, with models, grammars, git, a
  history and disks that are broken from outside, and with everything down
- models missing, truncated, of a wrong digest or raising: test_dense, test_rerank, test_models
- stores that are damaged, of another version, on a full or read-only disk: test_store
- parsers that crash, hang or are killed: test_workers
- blobs that a clone lacks, paths that are too long: test_hostile
- a history that is cut off: test_history
"""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import coderag_ci
from coderag_ci import change, ci, models, names, pipeline, queries, search, store
from coderag_ci.config import Config
from coderag_ci.deadline import IN_CI, LINKS, RERANK, SEARCH, Deadline
from coderag_ci.errors import EXIT_DEGRADED, EXIT_SETUP
from coderag_ci.gitrepo import GitRepo
from coderag_ci.job import Job
from coderag_ci.pack import Pack
from coderag_ci.progress import Progress
from tests.conftest import Command
from tests.packs import pack_of, shop
from tests.repository import Repository


class Clock:
    """A clock that stands still until a test moves it."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        """Return the time."""
        return self.now


def _patiently(event: threading.Event, _: float) -> bool:
    return event.wait()


def _late(event: threading.Event, seconds: float) -> bool:
    """Wait for the diff alone, of 60 seconds."""
    return event.wait() if seconds == 60 else False


def timed(repository: Repository, deadline: Deadline, **settings: Any) -> Pack:
    """Make the pack of the topic by a deadline."""
    repo = GitRepo(str(repository.path))
    made = change.resolve(repo, change.Wanted("main"), ci.CI(False))
    directory = repository.path / ".git" / "coderag-ci"
    return pipeline.make_pack(
        Job(repo, made, Config(**settings), directory, deadline, Progress(True))
    )


def of_names(pack: Pack) -> bool:
    """Whether all evidence was found by name, and there is some."""
    found = {channel.name for piece in pack.evidence for channel in piece.channels}
    return found == {"names"}


# ---- the ladder


def test_where_no_time_is_left_to_follow_names_words_alone_are_searched(
    repository: Repository,
) -> None:
    """A large change near its deadline still shows what reads alike, and says what it lacks."""
    shop(repository)
    timed(repository, Deadline(0))
    pack = timed(repository, Deadline(LINKS, Clock(), _patiently))
    assert pack.degradations == (
        "no history: deadline",
        "no facts: deadline",
        "words alone were searched: deadline",
    )
    found = {channel.name for piece in pack.evidence for channel in piece.channels}
    assert found
    assert found <= {"subject", "diff", "deleted", "changed", "enclosing"}
    last = timed(repository, Deadline(RERANK, Clock(), _patiently))
    assert last.degradations == (*pack.degradations, "not reranked: deadline")


def test_a_search_that_is_late_leaves_the_diff_and_its_names(repository: Repository) -> None:
    """What hangs in C, or in git, would hold the build until CI kills it without a pack."""
    shop(repository)
    pack = timed(repository, Deadline(60, Clock(), _late))
    assert pack.degradations == ("no search of the index: deadline; names alone were searched for",)
    assert [file.path for file in pack.diff] == [
        file.path for file in timed(repository, Deadline(0)).diff
    ]
    assert of_names(pack)
    assert [stage.note for stage in pack.trace.stages if stage.note] == list(pack.degradations)


@pytest.mark.parametrize("kind", ["--worktree", "--staged", ""])
def test_a_bug_in_the_search_leaves_the_diff_and_its_names(
    repository: Repository, command: Command, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """A bug costs the evidence, not the build; where it is stands in the pack's header."""
    shop(repository)
    if kind:
        repository.git("reset", "-q", "--soft" if kind == "--staged" else "--mixed", "main")

    def explode(*_: object) -> None:
        raise ZeroDivisionError("one over none")

    monkeypatch.setattr(search, "Graph", explode)
    arguments = ["context", "--repo", str(repository.path), *filter(None, [kind])]
    arguments += [] if kind else ["--base", "main"]
    result = command(*arguments, "--format", "json")
    assert result.code == 0, result.err
    pack = json.loads(result.out)
    (line,) = pack["degradations"]
    assert line.startswith(
        "no search of the index: a bug, ZeroDivisionError: one over none (test_drills.py:"
    )
    assert pack["diff"]
    assert {c["name"] for piece in pack["evidence"] for c in piece["channels"]} == {"names"}
    assert command(*arguments, "--strict").code == EXIT_DEGRADED
    assert "Evidence limited:** no search of the index" in command(*arguments).out
    traced = command(*arguments, "--trace")
    assert "(no search of the index: a bug" in traced.err


def test_with_git_down_after_the_diff_the_diff_is_left(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With everything else gone, a reviewer still gets the change itself."""
    shop(repository)

    compare = pipeline._compare

    def gone(*_: object, **__: object) -> None:
        raise FileNotFoundError(2, "No such file or directory", "git")

    def compare_then_break(*given: Any) -> Any:
        found = compare(*given)
        head = pipeline._head_view(given[0], given[1])
        monkeypatch.setattr(GitRepo, "_popen", gone)
        return found[0], head

    monkeypatch.setattr(pipeline, "_compare", compare_then_break)
    pack = timed(repository, Deadline(0))
    assert len(pack.diff) == pack.change.files > 0
    assert pack.evidence == ()
    assert [line.split(":")[0] for line in pack.degradations] == [
        "no search of the index",
        "no search for names",
    ]


@pytest.fixture
def hanging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Return a function that makes a command of git hang until the test ends."""
    pipe = tmp_path / "hanging"
    os.mkfifo(pipe)
    end = os.open(pipe, os.O_RDWR)
    real = shutil.which("git")

    def hang(word: str) -> None:
        git = tmp_path / "bin" / "git"
        git.parent.mkdir()
        git.write_text(f'#!/bin/sh\ncase " $* " in *" {word} "*) exec cat {pipe};; esac\n')
        with git.open("a") as file:
            file.write(f'exec {real} "$@"\n')
        git.chmod(0o755)
        monkeypatch.setenv("PATH", f"{git.parent}:{os.environ['PATH']}")

    yield hang
    os.close(end)


@pytest.mark.parametrize("word", ["ls-tree", "grep"])
def test_a_git_that_hangs_after_the_diff_leaves_the_diff(
    repository: Repository, hanging: Any, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    """A file system that does not answer must not hold the build."""
    shop(repository)
    hanging(word)
    monkeypatch.setattr(names, "_MOST_SECONDS", 0.05)
    pack = timed(repository, Deadline(60, Clock(), _late))
    assert len(pack.diff) == pack.change.files > 0
    assert pack.evidence == ()
    assert pack.degradations[0].startswith("no search of the index: deadline")


def test_a_git_that_gives_no_diff_is_an_error_in_time(
    repository: Repository, hanging: Any, monkeypatch: pytest.MonkeyPatch, command: Command
) -> None:
    """Without a diff there is nothing to show: a line says so, and what to do."""
    shop(repository)
    hanging("--raw")
    monkeypatch.setattr("coderag_ci.deadline.DIFF", 0.05)
    arguments = ("context", "--repo", str(repository.path), "--base", "main")
    result = command(*arguments, "--deadline", "0.05")
    assert result.code == EXIT_SETUP
    assert "git gave no diff before the deadline" in result.err
    assert "--deadline" in result.err


def test_ci_has_a_deadline_and_a_laptop_has_none(
    repository: Repository, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that hangs for an hour costs minutes of CI; at a desk one sees it and decides."""
    shop(repository)
    given: list[float] = []

    class Noted(Deadline):
        def __init__(self, seconds: float) -> None:
            given.append(seconds)
            super().__init__(0)

    monkeypatch.setattr("coderag_ci.deadline.Deadline", Noted)
    at_home = pack_of(command, repository, "--base", "main")
    monkeypatch.setenv("CI", "true")
    in_ci = pack_of(command, repository, "--base", "main")
    pack_of(command, repository, "--base", "main", "--deadline", "0")
    pack_of(command, repository, "--base", "main", "--deadline", "7")
    assert given == [0, IN_CI, 0, 7]
    assert at_home["digest"] == in_ci["digest"]


# ---- a model's process


def _model_that(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    monkeypatch.setattr(models, "_COMMAND", (sys.executable, "-c", program))


@pytest.mark.parametrize("kind", ["embedding_model", "rerank_model"])
@pytest.mark.parametrize(
    ("program", "how"),
    [
        ("import os; os.kill(os.getpid(), 9)", "its process was killed by signal 9"),
        ("import os; os.abort()", "its process was killed by signal 6"),
        ("import sys; sys.stdout.buffer.write(b'abcdefgh')", "its process was ended with 0"),
    ],
)
def test_a_model_whose_process_dies_costs_its_step_alone(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, kind: str, program: str, how: str
) -> None:
    """A machine that is short of memory kills the model, and would take the pack with it."""
    shop(repository)
    _model_that(monkeypatch, program)
    pack = timed(repository, Deadline(0), **{kind: "bundled"})
    (line,) = pack.degradations
    assert f"bundled: {how}" in line
    assert pack.evidence
    assert not of_names(pack)


def test_a_model_that_hangs_is_given_up_by_the_deadline(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that never answers would hold the build until CI kills it."""
    shop(repository)
    _model_that(monkeypatch, "import threading; threading.Event().wait()")

    def wait(event: threading.Event, seconds: float) -> bool:
        return event.wait() if seconds in (60, 60 - SEARCH) else False

    both = {"embedding_model": "bundled", "rerank_model": "bundled"}
    pack = timed(repository, Deadline(60, Clock(), wait), **both)
    assert pack.degradations == (
        "no dense channel: deadline",
        "no cross-encoder: deadline; ranked without it",
    )
    assert pack.evidence


# ---- the store and git


def test_a_store_that_another_process_locks_costs_the_cache_alone(
    repository: Repository, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that hangs with the lock in its hand would hold all others."""
    shop(repository)
    free = pack_of(command, repository, "--base", "main")
    folder = repository.path / ".git" / "coderag-ci"
    monkeypatch.setattr(store, "_BUSY_SECONDS", 0.01)
    with sqlite3.connect(folder / store.FILE_NAME, isolation_level=None) as db:
        db.execute("PRAGMA locking_mode=EXCLUSIVE")
        db.execute("BEGIN EXCLUSIVE")
        assert pack_of(command, repository, "--base", "main")["digest"] == free["digest"]
        db.execute("ROLLBACK")
    db.close()
    with store._lock(folder / "lock"):
        held = pack_of(command, repository, "--base", "main")
    assert held["digest"] == free["digest"]
    assert held["trace"]["notes"] == ["index not saved: another process holds its lock"]


def test_a_git_that_is_killed_while_it_reads_leaves_a_pack(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system may kill any process; what could not be read is told."""
    shop(repository)
    compare, popen = pipeline._compare, GitRepo._popen

    def killed(self: GitRepo, *arguments: str, trees: bool = False) -> Any:
        process = popen(self, *arguments, trees=trees)
        process.kill()
        return process

    def compare_then_break(*given: Any) -> Any:
        found, _ = compare(*given)
        head = pipeline._head_view(given[0], given[1])
        monkeypatch.setattr(GitRepo, "_popen", killed)
        return found, head

    monkeypatch.setattr(pipeline, "_compare", compare_then_break)
    pack = timed(repository, Deadline(0))
    assert pack.diff[0].hunks
    assert {skip.reason for skip in pack.skipped} == {"not in this clone"}


# ---- changes that no one reviews


def test_a_hunk_beyond_all_bounds_still_asks(
    repository: Repository, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file rewritten from end to end is one hunk; its first functions would find their users."""

    def module(sign: str) -> str:
        return "".join(f"def price_{n}({sign}):\n    return {sign}\n" for n in range(40))

    repository.commit({"prices.py": module("a"), "shop.py": "from prices import price_0\n"})
    repository.commit({"prices.py": module("b")})
    monkeypatch.setattr(queries, "_MOST_HUNK_LINES", 60)
    pack = pack_of(command, repository, "--base", "HEAD~1")
    assert "shop.py" in {piece["path"] for piece in pack["evidence"]}
    assert any("beyond 60 were not searched for" in skip["reason"] for skip in pack["skipped"])


# ---- in real time

# The real command, whose search hangs in Python, with a process of its own that hangs, too.
HANGING = """\
import subprocess, sys, threading
from coderag_ci import search
def hang(*_):
    child = subprocess.Popen(["sleep", "1000"])
    print(child.pid, file=sys.stderr, flush=True)
    threading.Event().wait()
search.Graph = hang
from coderag_ci.cli import main
main(sys.argv[1:])
"""
HOME = Path(coderag_ci.__file__).resolve().parent.parent


@pytest.mark.drill
def test_a_run_that_hangs_ends_by_its_deadline(repository: Repository) -> None:
    """The deadline holds for the whole run, and no process is left."""
    shop(repository)
    start = time.monotonic()
    arguments = ["context", "--repo", str(repository.path), "--base", "main", "--deadline", "4"]
    done = subprocess.run(
        [sys.executable, "-c", HANGING, *arguments], cwd=HOME, capture_output=True, check=False
    )
    assert time.monotonic() - start < 5
    assert done.returncode == 0, done.stderr
    assert "no search of the index: deadline" in done.stdout.decode()
    stat = Path(f"/proc/{int(done.stderr.split()[0])}/stat")
    assert not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] == "Z"


@pytest.mark.drill
@pytest.mark.parametrize("kilobytes", [50_000, 150_000, 250_000])
def test_a_model_without_memory_costs_its_channel(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, kilobytes: int
) -> None:
    """Whether Python, numpy or onnxruntime runs out of it."""
    shop(repository)
    command = f"ulimit -v {kilobytes}; exec {sys.executable} -m coderag_ci.inference"
    monkeypatch.setattr(models, "_COMMAND", ("sh", "-c", command))
    pack = timed(repository, Deadline(60), embedding_model="bundled")
    (line,) = pack.degradations
    assert line.startswith("no dense channel: bundled")
    assert pack.evidence


@pytest.mark.drill
def test_a_model_that_is_stopped_is_given_up_in_time(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A frozen process looks like a slow one until the deadline."""
    shop(repository)
    _model_that(monkeypatch, "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)")
    start = time.monotonic()
    pack = timed(repository, Deadline(8), embedding_model="bundled")
    assert time.monotonic() - start < 8
    assert pack.degradations[0] == "no dense channel: deadline"
