"""What earlier commits say: co-changed files and lines, up to the base and never beyond."""

from __future__ import annotations

import json
from typing import Any

import pytest

from coderag_ci import history
from coderag_ci.gitrepo import GitRepo
from coderag_ci.store import Store
from tests.conftest import Command
from tests.repository import Repository


def read(path: Any, base: str, paths: list[str], index_dir: Any = None) -> history.Past:
    """Read the history of some paths, through a store."""
    kept = Store(index_dir or path / ".git" / "test-store")
    try:
        return history.read(GitRepo(str(path)), base, paths, kept)
    finally:
        kept.close()


def past_of(repository: Repository, base: str, *paths: str) -> history.Past:
    """Read the history of some paths."""
    return read(repository.path, base, list(paths))


def test_files_that_changed_together_count_by_how_many_did(repository: Repository) -> None:
    """A commit of two files says more than one of ten: 1 / √(files − 1) each."""
    repository.commit({"README": "a first commit says nothing", "a.py": "0", "z.py": "0"})
    repository.commit({"a.py": "1", "b.py": "1", "c.py": "1"})
    repository.commit({"a.py": "2", "b.py": "2"})
    repository.commit({"b.py": "3", "c.py": "3"})
    base = repository.commit({"a.py": "4", **{f"f{n}.py": "4" for n in range(9)}})
    past = past_of(repository, base, "a.py")
    assert past.together["b.py"] == pytest.approx(1 / 2**0.5 + 1)
    assert past.together["c.py"] == pytest.approx(1 / 2**0.5)
    assert past.together["f0.py"] == pytest.approx(1 / 3)
    assert (past.times["b.py"], past.of, past.commits) == (2, 3, 5)
    assert "z.py" not in past.together
    assert "a.py" not in past.together
    assert [len(files) for files in past.others["a.py"]] == [9, 1, 2]
    assert past.others["a.py"][1] == {"b.py"}


def test_a_sweep_says_nothing(repository: Repository) -> None:
    """A commit of more than thirty files changed them for a reason of its own."""
    base = repository.commit({f"f{n}.py": "1" for n in range(31)})
    past = past_of(repository, base, "f0.py")
    assert not past.together
    assert not past.others


def test_renames_are_followed(repository: Repository) -> None:
    """Of the changed file and of those that went with it."""
    text = "\n".join(f"line {n}" for n in range(20))
    repository.commit({"README": "x"})
    repository.commit({"old.py": text, "was.py": text.upper()})
    repository.commit({"old.py": text + "\nx", "was.py": text.upper() + "\nx"})
    repository.git("mv", "old.py", "new.py")
    repository.git("mv", "was.py", "is.py")
    base = repository.commit()
    past = past_of(repository, base, "new.py")
    assert past.times == {"is.py": 3}
    assert past.others == {"new.py": [frozenset({"is.py"})] * 3}


def test_nothing_after_the_base_is_read(repository: Repository) -> None:
    """In review, the future is not known."""
    base = repository.commit({"a.py": "1"})
    repository.commit({"a.py": "2", "b.py": "2"})
    assert not past_of(repository, base, "a.py").together


def test_a_shallow_clone_gives_what_it_has_and_says_so(
    repository: Repository, tmp_path: Any, command: Command
) -> None:
    """CI fetches a few commits; less history is no failure."""
    for n in range(5):
        repository.commit({"a.py": str(n), "b.py": str(n)})
    shallow = tmp_path / "shallow"
    repository.git("clone", "-q", "--depth", "2", f"file://{repository.path}", str(shallow))
    past = read(shallow, "HEAD", ["a.py"])
    assert past.commits == 2
    assert past.times["b.py"] >= 1
    assert (
        "History: 1 commit, the clone is shallow."
        in command("context", "--repo", str(shallow), "--base", "HEAD~1").out
    )
    assert (
        "History:" not in command("context", "--repo", str(repository.path), "--base", "HEAD~1").out
    )


def test_a_commit_is_read_once(repository: Repository, tmp_path: Any) -> None:
    """What a store has is not asked of git again; only what is new is added."""
    repository.commit({"README": "x"})
    for n in range(4):
        base = repository.commit({"a.py": str(n), "b.py": str(n)})
    index_dir = tmp_path / "index"
    past = read(repository.path, base, ["a.py"], index_dir)
    assert past.times == {"b.py": 4}
    kept = Store(index_dir)
    known = kept.counts()["commits"]
    kept.close()
    assert known == 4  # the first commit says nothing
    newer = repository.commit({"a.py": "x", "c.py": "x"})
    git = GitRepo(str(repository.path))
    asked: list[str] = []
    real = git.commits
    git.commits = lambda ids: (asked.extend(ids), real(ids))[1]  # type: ignore[method-assign,func-returns-value]
    kept = Store(index_dir)
    assert history.read(git, newer, ["a.py"], kept).times == {"b.py": 4, "c.py": 1}
    kept.close()
    assert asked == [newer]


def test_a_boundary_is_read_again_once_the_clone_is_deepened(
    repository: Repository, tmp_path: Any
) -> None:
    """At the cut a commit seems to add everything; that must not be kept."""
    repository.commit({"README": "x"})
    for n in range(3):
        base = repository.commit({"a.py": str(n), "b.py": str(n)})
    shallow = tmp_path / "shallow"
    repository.git("clone", "-q", "--depth", "1", f"file://{repository.path}", str(shallow))
    assert not read(shallow, base, ["a.py"]).together
    Repository(shallow).git("fetch", "-q", "--unshallow")
    assert read(shallow, base, ["a.py"]).times == {"b.py": 3}


def test_merges_count_by_the_commits_they_bring(repository: Repository) -> None:
    """A merge itself changes nothing, and a branch without a common past is read as it is."""
    repository.commit({"README": "x"})
    repository.git("checkout", "-q", "-b", "side")
    repository.commit({"a.py": "1", "b.py": "1"})
    repository.git("checkout", "-q", "main")
    repository.commit({"c.py": "1"})
    repository.git("merge", "-q", "--no-ff", "-m", "Merge side", "side")
    repository.git("checkout", "-q", "--orphan", "alone")
    repository.commit({"a.py": "2", "d.py": "2"})
    base = repository.commit({"a.py": "3", "d.py": "3"})
    assert past_of(repository, "main", "a.py").times == {"b.py": 1}
    assert past_of(repository, base, "a.py").times == {"d.py": 1}


def test_lines_that_came_with_the_changed_unit_lead_to_where_they_are(
    repository: Repository, command: Command
) -> None:
    """One commit wired two places; now one of them changes."""
    repository.commit({"README": "w"})
    plain = "\n\n".join(f"def other{n}():\n    return {n}\n" for n in range(30))
    repository.commit({"core.py": plain, "table.py": plain.replace("other", "row")})
    repository.commit(
        {
            "core.py": plain + "\n\ndef handle():\n    open_the_gate(7)\n",
            "table.py": plain.replace("other", "row") + "\n\ndef setup():\n    REGISTRY.add('h')\n",
        }
    )
    base = repository.commit({"README": "x"})
    repository.commit(
        {"core.py": plain + "\n\ndef handle():\n    open_the_gate(7)\n    close_again(7)\n"},
        "Close it",
    )
    result = command(
        "context", "--repo", str(repository.path), "--base", base, "--head", "HEAD",
        "--format", "json",
    )  # fmt: skip
    pack = json.loads(result.out)
    first = pack["evidence"][0]
    assert (first["path"], first["symbol"]) == ("table.py", "setup")
    reasons = {channel["name"]: channel["reason"] for channel in first["channels"]}
    assert "earlier commits added" in reasons["co-changed-lines"]
    assert (
        reasons["co-change"] == "its file changed in 2 of the last 2 commits of the changed files"
    )


def test_odd_paths_and_messages_do_not_mislead(repository: Repository) -> None:
    """A path with a quote, a tab or an umlaut, and a subject that looks like a patch."""
    names = ['q"uote.py', "ta\tb.py", "üml.py", "with space.py"]
    repository.commit({"README": "x"})
    repository.commit({"a.py": "first = 1\n"}, "+++ b/evil.py")
    base = repository.commit(
        {"a.py": "first = 1\nsecond = 2\n", **dict.fromkeys(names, "gold_line = 3\n")},
        "diff --git a/x b/x\n\n+++ b/evil.py\n+evil_line = 1",
    )
    past = past_of(repository, base, "a.py")
    assert set(past.times) == set(names)
    found = history.lines_with(GitRepo(str(repository.path)), past, {"a.py": {"second = 2"}})
    assert "evil.py" not in found
    assert found["üml.py"] == {"gold_line = 3": None}
    assert found["with space.py"] == {"gold_line = 3": None}
