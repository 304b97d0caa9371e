"""What CI says of a change, what is fetched for it, and which saved index it may start from."""

from __future__ import annotations

import json
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from coderag_ci import cachekey, ci, deepen, store, workflow
from coderag_ci.commands.ci import _header
from coderag_ci.config import Config, resolve
from coderag_ci.errors import EXIT_SETUP, EXIT_USAGE, SetupError
from coderag_ci.gitrepo import GitRepo
from tests.conftest import Command
from tests.packs import SHOP
from tests.repository import Repository

ZEROS = "0" * 40


def run_of(tmp_path: Path, name: str, event: dict[str, Any]) -> ci.Run:
    """Return what is read of an event."""
    path = tmp_path / "event.json"
    path.write_text(json.dumps(event))
    return ci.github_run(
        {"GITHUB_EVENT_NAME": name, "GITHUB_EVENT_PATH": str(path), "GITHUB_SHA": "merge"}
    )


@pytest.mark.parametrize(
    ("name", "event", "expected"),
    [
        (
            "pull_request",
            {"pull_request": {"number": 7, "base": {"sha": "b"}, "head": {"sha": "h"}}},
            ("b", "h", 7, False),
        ),
        (
            "push",
            {"before": "b", "after": "a", "ref": "refs/heads/main"},
            ("b", "a", 0, True),
        ),
        ("push", {"before": ZEROS, "after": "a", "ref": "refs/heads/x"}, ("", "a", 0, False)),
        ("push", {"before": "b", "after": "a", "ref": "refs/tags/main"}, ("b", "a", 0, False)),
        ("merge_group", {"merge_group": {"base_sha": "b", "head_sha": "h"}}, ("b", "h", 0, False)),
        ("workflow_dispatch", {"inputs": {}}, ("", "merge", 0, False)),
        ("schedule", {"schedule": "0 0 * * *"}, ("", "merge", 0, False)),
        ("pull_request", {"pull_request": [1]}, ("", "merge", 0, False)),
    ],
)
def test_what_an_event_says(
    tmp_path: Path, name: str, event: dict[str, Any], expected: tuple[object, ...]
) -> None:
    """The head is the pull request's own, never the merge; only main's pushes may save."""
    found = run_of(tmp_path, name, {"repository": {"default_branch": "main"}, **event})
    assert (found.base, found.head, found.pull_request, found.default_push) == expected


# ---- fetching


@pytest.fixture
def upstream(repository: Repository) -> Repository:
    """Return a repository whose main and topic parted 240 commits ago."""
    lines = ["blob\nmark :1\ndata 6\nx = 1\n\n"]
    mark = 1

    def commits(branch: str, number: int, start: str) -> None:
        nonlocal mark
        for i in range(number):
            parent = f"from {start}\n" if i == 0 and start else ""
            mark += 1
            lines.append(
                f"commit refs/heads/{branch}\nmark :{mark}\n"
                f"committer Ada <a@example.com> {1_700_000_000 + mark} +0000\n"
                f"data 1\nx\n{parent}M 100644 :1 {branch}{i}.py\n"
            )

    commits("main", 400, "")
    commits("topic", 240, ":401")
    commits("main", 240, ":401")
    repository.git("fast-import", "--quiet", stdin="".join(lines).encode())
    repository.git("config", "uploadpack.allowAnySHA1InWant", "true")
    repository.git("reset", "-q", "--hard", "main")
    return repository


def clone(upstream: Repository, target: Path, *options: str) -> GitRepo:
    """Clone over file://, which honours --depth."""
    upstream.git("clone", "-q", *options, f"file://{upstream.path}", str(target))
    return GitRepo(str(target))


def test_a_shallow_clone_is_deepened_to_the_merge_base(
    upstream: Repository, tmp_path: Path
) -> None:
    """Both ends are fetched, then as much history as the merge base takes, and no more."""
    said: list[str] = []
    repo = clone(upstream, tmp_path / "clone", "--depth=1")
    bring = deepen.Clone(repo, "", said.append)
    topic = upstream.git("rev-parse", "topic")
    head, base = bring.commit([topic]), bring.commit(["refs/heads/main"])
    assert head == topic
    assert bring.merge_base(base, head) == upstream.git("merge-base", "main", "topic")
    assert repo.shallow
    assert said == ["deepening the clone by 50 commits", "deepening the clone by 200 commits"]


def test_a_full_clone_is_never_cut(upstream: Repository, tmp_path: Path) -> None:
    """What a full clone lacks comes with all of its history."""
    repo = clone(upstream, tmp_path / "clone", "--single-branch")
    bring = deepen.Clone(repo, "", lambda _: None)
    head = bring.commit([upstream.git("rev-parse", "topic")])
    assert bring.merge_base(repo.resolve("HEAD"), head)
    assert not repo.shallow
    assert repo.count_commits(repo.merge_base("HEAD", head), head) == 240


def test_what_can_not_be_fetched_names_the_depth(upstream: Repository, tmp_path: Path) -> None:
    """Where the remote is gone or does not know a commit, the hint says what to set."""
    repo = clone(upstream, tmp_path / "clone", "--depth=1")
    bring = deepen.Clone(repo, "", lambda _: None)
    topic = bring.commit(["topic"])
    with pytest.raises(SetupError, match="can not be fetched") as caught:
        bring.commit(["1" * 40])
    assert "fetch-depth: 0" in caught.value.hint
    upstream.path.rename(tmp_path / "gone")
    with pytest.raises(SetupError, match="merge base is not in this clone") as caught:
        bring.merge_base(repo.resolve("HEAD"), topic)
    assert "fetch-depth: 0" in caught.value.hint


def test_unrelated_histories_are_told(upstream: Repository, tmp_path: Path) -> None:
    """All of the history is fetched once before it is said that there is no common commit."""
    upstream.git("checkout", "-q", "--orphan", "other")
    other = upstream.commit({"o.py": "x = 1\n"})
    repo = clone(upstream, tmp_path / "clone", "--depth=1", "--branch=main")
    bring = deepen.Clone(repo, "", lambda _: None)
    with pytest.raises(SetupError, match="no commit in common"):
        bring.merge_base(repo.resolve("HEAD"), bring.commit([other]))
    assert not repo.shallow


def test_a_token_goes_to_its_own_server_alone(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The token authenticates fetches from the workflow's server, not from one named like it."""
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://example.com")
    repository.git("remote", "add", "origin", "https://example.com/o/r")
    assert "secret" not in _header(GitRepo(str(repository.path)))
    assert _header(GitRepo(str(repository.path))).startswith("AUTHORIZATION: basic ")
    repository.git("remote", "set-url", "origin", "https://example.com.evil.test/o/r")
    assert _header(GitRepo(str(repository.path))) == ""


# ---- the saved index


def test_the_key_of_a_saved_index() -> None:
    """What changes the rows changes the key; what does not, does not."""
    plain = cachekey.key(Config())

    def of(flags: dict[str, Any]) -> str:
        return cachekey.key(resolve(None, "", {}, flags).config)

    assert of({"budget": 5}) == plain
    assert of({"chunk-size": 900}) != plain
    assert of({"embedding-model": "bundled"}) != plain
    assert of({"embedding-model": "some/model"}) != of({"embedding-model": "bundled"})


@pytest.mark.parametrize(
    ("indexed", "reused", "worth"),
    [(19, 0, False), (20, 0, True), (20, 1000, False), (200, 1000, True), (0, 0, False)],
)
def test_an_index_is_saved_where_enough_is_new(indexed: int, reused: int, worth: bool) -> None:
    """A tenth of all blobs, and twenty at least: else saved caches push each other out."""
    assert cachekey.is_worth_saving(indexed, reused) == worth


def test_a_sound_index_is_kept(repository: Repository, command: Command) -> None:
    """A store that the command made is taken, and one that is not there is no problem."""
    commit = repository.commit(SHOP)
    path = repository.path / ".git/coderag-ci" / store.FILE_NAME
    assert cachekey.unsound(path) == ""
    command("index", "--ref", commit, "--repo", str(repository.path))
    assert cachekey.unsound(path) == ""


def _made(path: Path, sql: str) -> None:
    store.Store(path.parent).close()
    with sqlite3.connect(path) as db:
        db.executescript(sql)
    db.close()


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda path: path.write_bytes(b"nonsense" * 1000), "not a database"),
        (lambda path: path.symlink_to("/etc/passwd"), "not a regular file"),
        (lambda path: path.mkdir(), "not a regular file"),
        (lambda path: _made(path, "PRAGMA user_version=99"), "another schema"),
        (
            lambda path: _made(
                path,
                "CREATE TRIGGER t AFTER INSERT ON rows BEGIN DELETE FROM rows; END",
            ),
            "not with our tables alone",
        ),
        (lambda path: _made(path, "CREATE VIEW v AS SELECT 1"), "not with our tables alone"),
    ],
    ids=["no database", "link", "folder", "schema", "trigger", "view"],
)
def test_a_restored_index_that_is_not_ours_is_discarded(
    tmp_path: Path, command: Command, spoil: Any, reason: str
) -> None:
    """Bytes from a cache are looked at before they are used, and go where they are wrong."""
    path = tmp_path / "index" / store.FILE_NAME
    path.parent.mkdir()
    spoil(path)
    assert reason in cachekey.unsound(path)
    done = command("ci", "check-index", "--index-dir", str(path.parent))
    assert done.code == 0
    assert "the saved index was discarded" in done.err
    assert not os.path.lexists(path)


# ---- what a workflow is told


def test_annotations_and_outputs_are_one_line_each(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A line end in a value can not begin a command or an output of its own."""
    path = tmp_path / "output"
    environment = {"GITHUB_ACTIONS": "true", "GITHUB_OUTPUT": str(path)}
    workflow.annotate(environment, "notice", "50 %\n::error::no")
    assert capfd.readouterr().err == "::notice title=coderag-ci::50 %25 ::error::no\n"
    workflow.set_outputs(environment, {"a": "1\nb=2", "c": ""})
    assert path.read_text() == "a=1 b=2\nc=\n"
    workflow.annotate({}, "notice", "plain")
    workflow.set_outputs({}, {"a": "1"})
    assert capfd.readouterr() == ("a=1\n", "coderag-ci: plain\n")
    with pytest.raises(SetupError, match="outputs can not be written"):
        workflow.set_outputs({"GITHUB_OUTPUT": str(tmp_path)}, {"a": "1"})


def test_an_error_in_a_workflow_is_an_annotation(
    tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a person can mend stands out in the run, with the hint."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    done = command("context", cwd=tmp_path)
    assert done.code == EXIT_SETUP
    assert "::error title=coderag-ci::" in done.err


# ---- one pack in several formats


def test_one_pack_in_several_formats(
    repository: Repository, command: Command, tmp_path: Path
) -> None:
    """--also writes the same pack again without making it again."""
    repository.commit(SHOP)
    repository.commit({"shop/tax.py": "x = 1\n"})
    file = tmp_path / "pack.json"
    made = command("context", "--base", "HEAD~1", "--also", f"json={file}", cwd=repository.path)
    assert made.code == 0
    assert json.loads(file.read_text())["digest"] in made.out


@pytest.mark.parametrize("item", ["json", "json=", "pdf=x", "=x"])
def test_a_format_that_is_none_is_refused(
    repository: Repository, command: Command, item: str
) -> None:
    """A misspelt --also costs a line before anything is made."""
    done = command("context", "--also", item, cwd=repository.path)
    assert done.code == EXIT_USAGE
    assert "expected FORMAT=FILE" in done.err
