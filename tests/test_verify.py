"""``verify``: a pack made again is the same, or the first stage that differs is named."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Command, Result
from tests.packs import NEW_TAX, SHOP, pack_of, shop
from tests.repository import Repository


def kept(tmp_path: Path, pack: dict[str, Any]) -> str:
    """Write a pack to a file."""
    file = tmp_path / "pack.json"
    file.write_text(json.dumps(pack))
    return str(file)


def verify(command: Command, repository: Repository, file: str, *arguments: str) -> Result:
    """Run ``verify`` on a file."""
    return command("verify", file, "--repo", str(repository.path), *arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--base", "main"),
        ("--base", "main", "--head", "topic", "--budget", "900", "--weight", "uses=0.5"),
        ("--base", "main", "--paths", "shop", "--top-k", "2", "--rerank", "0"),
    ],
)
def test_a_pack_of_commits_is_the_same_again(
    repository: Repository, command: Command, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    """A pack is only evidence if someone else can make the same one."""
    shop(repository)
    pack = pack_of(command, repository, *arguments)
    repository.commit({"shop/later.py": "def later():\n    return tax_rate(1)\n"})
    repository.git("checkout", "-q", "main")
    shutil.rmtree(repository.path / ".git" / "coderag-ci")
    result = verify(command, repository, kept(tmp_path, pack))
    assert (result.code, result.out) == (0, f"same: {pack['digest']}\n")


def test_staged_and_worktree_packs_are_the_same_until_something_changes(
    repository: Repository, command: Command, tmp_path: Path
) -> None:
    """A pack of uncommitted work has to say that it is out of date."""
    repository.commit(SHOP)
    repository.write({"shop/tax.py": NEW_TAX})
    repository.git("add", "-A")
    repository.write({"shop/fresh.py": "def fresh():\n    return tax_rate(1)\n"})
    staged = pack_of(command, repository, "--staged")
    worktree = pack_of(command, repository, "--worktree")
    assert verify(command, repository, kept(tmp_path, staged)).code == 0
    assert verify(command, repository, kept(tmp_path, worktree)).code == 0
    repository.write({"shop/fresh.py": "def fresher():\n    return tax_rate(2)\n"})
    assert verify(command, repository, kept(tmp_path, staged)).code == 0
    result = verify(command, repository, kept(tmp_path, worktree))
    assert result.code == 5
    assert result.out.startswith("differs: first in queries: " + worktree["digest"])
    repository.write({"shop/another.py": "x = 1\n"})
    assert "first in change" in verify(command, repository, kept(tmp_path, worktree)).out


def test_the_title_that_ci_gave_is_part_of_the_pack(
    repository: Repository, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pack from CI could never be checked on a laptop."""
    shop(repository)
    with monkeypatch.context() as patch:
        patch.setenv("GITLAB_CI", "true")
        patch.setenv("CI_MERGE_REQUEST_TITLE", "A title from the merge request")
        patch.setenv("CI_MERGE_REQUEST_DIFF_BASE_SHA", repository.git("rev-parse", "main"))
        pack = pack_of(command, repository)
    assert pack["change"]["title"] == "A title from the merge request"
    assert verify(command, repository, kept(tmp_path, pack)).code == 0


def test_settings_are_those_of_the_pack(
    repository: Repository, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """My own config must not decide whether your pack is right."""
    shop(repository)
    pack = pack_of(command, repository, "--base", "main")
    monkeypatch.setenv("CODERAG_BUDGET", "333")
    repository.write({".coderag.yml": "top-k: 1\n"})
    assert verify(command, repository, kept(tmp_path, pack)).code == 0


@pytest.mark.parametrize(
    ("stage", "path", "value"),
    [
        ("change", ("change", "deleted"), 0),
        ("queries", ("change", "title"), "Another title"),
        ("settings", ("settings",), {"top-k": "40"}),
        ("index", ("index", "chunks"), 1),
        ("facts", ("facts",), []),
        ("recall", ("evidence", 0, "channels", 0, "rank"), 99),
        ("recall", ("evidence", 0, "path"), "shop/elsewhere.py"),
        ("fuse", ("evidence", 0, "scores", "fused"), 0.5),
        ("rerank", ("evidence", 0, "scores", "final"), 0.5),
        ("degradations", ("degradations",), ["something"]),
        ("assemble", ("evidence", 0, "text"), "def harmless(): pass"),
    ],
)
def test_an_edited_pack_differs_and_the_stage_is_named(
    repository: Repository,
    command: Command,
    tmp_path: Path,
    stage: str,
    path: tuple[Any, ...],
    value: object,
) -> None:
    """Whoever changes the evidence of a pack would have it confirmed as the same."""
    repository.commit(SHOP)
    repository.commit({"shop/tax.py": NEW_TAX.replace("(country)", "(land, *, day=None)")})
    pack = pack_of(command, repository, "--base", "HEAD~1")
    assert pack["facts"]
    place: Any = pack
    for key in path[:-1]:
        place = place[key]
    assert place[path[-1]] != value
    place[path[-1]] = value
    result = verify(command, repository, kept(tmp_path, pack))
    assert result.code == 5
    assert f"differs: first in {stage}\n" in result.out
    assert "was changed after it was made" in result.out


def test_a_pack_of_another_version_says_so(
    repository: Repository, command: Command, tmp_path: Path
) -> None:
    """A difference between versions is no sign of tampering."""
    shop(repository)
    pack = pack_of(command, repository, "--base", "main")
    pack["tool"]["version"] = "0.0.1"
    result = verify(command, repository, kept(tmp_path, pack))
    assert result.code == 5
    assert "made by 0.0.1" in result.out


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "not a pack"),
        ("no json", "not a pack"),
        ("[1, 2]", "not a pack"),
        ("{}", "schema version None"),
        ('{"schema_version": 99}', "schema version 99"),
        ('{"schema_version": 1}', "not a pack"),
        ("[" * 100_000, "not a pack"),
        ("\xff\xfe", "not a pack"),
    ],
)
def test_what_is_not_a_pack_is_refused_with_a_reason(
    repository: Repository, command: Command, tmp_path: Path, content: str, said: str
) -> None:
    """The wrong file, or one that was cut off, must not end in a traceback."""
    repository.commit(SHOP)
    file = tmp_path / "pack.json"
    file.write_bytes(content.encode("latin-1"))
    result = verify(command, repository, str(file))
    assert result.code == 3, result.err
    assert said in result.err
    assert "Traceback" not in result.err


def test_a_missing_file_and_a_directory_are_refused(
    repository: Repository, command: Command, tmp_path: Path
) -> None:
    """A typo in a file name has to end in a line that names it."""
    repository.commit(SHOP)
    for file in (tmp_path / "missing.json", tmp_path):
        result = verify(command, repository, str(file))
        assert result.code == 3
        assert str(file) in result.err


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"no-such-key": "1"}, 3),
        ({"budget": "not json"}, 3),
        ({"budget": "-5"}, 3),
        ({"budget": "5", "budget.x": "1"}, 3),
        ({"languages": '["klingon"]'}, 2),
    ],
)
def test_settings_that_make_no_sense_are_refused(
    repository: Repository, command: Command, tmp_path: Path, settings: dict[str, str], code: int
) -> None:
    """A pack comes from somewhere else: what it says is not to be trusted."""
    shop(repository)
    pack = pack_of(command, repository, "--base", "main")
    pack["settings"] = settings
    result = verify(command, repository, kept(tmp_path, pack))
    assert result.code == code, result.err
    assert "Traceback" not in result.err


def test_a_pack_whose_commits_are_gone_says_so(
    repository: Repository, command: Command, tmp_path: Path
) -> None:
    """After a force push the commit is often not there any more."""
    shop(repository)
    pack = pack_of(command, repository, "--base", "main")
    pack["change"]["head"] = "1" * 40
    result = verify(command, repository, kept(tmp_path, pack))
    assert result.code == 3
    assert "1" * 40 in result.err
    pack["change"]["head"] = "--output=/tmp/x"
    assert verify(command, repository, kept(tmp_path, pack)).code == 2
