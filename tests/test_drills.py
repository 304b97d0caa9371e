"""Drills: each breaks the real thing, and ends in a pack with the diff and an honest header.

The ladder and what has no other place stand here; those marked ``drill`` take real time
(``pytest -m drill``). Others stand with what they break:

- models missing, truncated, of a wrong digest or raising: test_dense, test_rerank, test_models
- stores that are damaged, of another version, on a full or read-only disk: test_store
- parsers that crash, hang or are killed: test_workers
- blobs that a clone lacks, paths that are too long: test_hostile
"""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest

from coderag_ci import change, ci, pipeline, search
from coderag_ci.config import Config
from coderag_ci.deadline import IN_CI, LINKS, RERANK, Deadline
from coderag_ci.errors import EXIT_DEGRADED
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


def _late(_event: threading.Event, _seconds: float) -> bool:
    return False


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
