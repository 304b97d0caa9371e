"""``doctor``: what is here, what is missing, and the command that mends it."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest

from coderag_ci import __version__
from coderag_ci.parse import languages
from tests.conftest import Command
from tests.packs import SHOP, shop
from tests.repository import Repository


def test_a_healthy_place_has_nothing_to_mend(repository: Repository, command: Command) -> None:
    """Before looking for a bug elsewhere one wants to know that the set-up is right."""
    shop(repository)
    result = command("doctor", "--repo", str(repository.path))
    assert result.code == 0, result.out
    assert result.out.endswith("nothing to mend\n")
    for part in (__version__, "git version", "branch topic", "main", "tree-sitter", "python, java"):
        assert part in result.out
    assert str(repository.path / ".git" / "coderag-ci" / "store.sqlite") in result.out


def test_a_model_that_is_not_there_is_named_with_what_to_do(
    repository: Repository, command: Command, tmp_path: Path
) -> None:
    """A pack without its dense channel looks like any other; here one finds out why."""
    shop(repository)
    missing = str(tmp_path / "models" / "missing")
    for flag, label in (("--embedding-model", "embedding"), ("--rerank-model", "rerank")):
        result = command("doctor", "--repo", str(repository.path), flag, missing)
        assert result.code == 3
        (line,) = [line for line in result.out.splitlines() if line.startswith("to mend")]
        assert missing in line
        assert label in line
        assert "no such directory" in line
        assert "Name a directory" in line
        assert result.out.endswith("1 to mend\n")
    (tmp_path / "models" / "missing").mkdir(parents=True)
    result = command("doctor", "--repo", str(repository.path), "--embedding-model", missing)
    assert "model.onnx is missing" in result.out


def test_a_package_and_a_grammar_that_are_not_there_are_named(
    repository: Repository, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An installation that broke half-way has to name the half that is missing."""
    shop(repository)
    version, grammar = importlib.metadata.version, languages.grammar

    def no_rich(name: str) -> str:
        if name == "rich":
            raise importlib.metadata.PackageNotFoundError(name)
        return version(name)

    def no_ruby(name: str) -> object:
        if name == "ruby":
            raise ValueError("Incompatible Language version 99")
        return grammar(name)

    monkeypatch.setattr(importlib.metadata, "version", no_rich)
    monkeypatch.setattr(languages, "grammar", no_ruby)
    result = command("doctor", "--repo", str(repository.path))
    assert result.code == 3
    assert "rich is not installed. pip install rich" in result.out
    assert "Incompatible Language version 99. pip install --force-reinstall" in result.out
    assert "tree-sitter-ruby" in result.out


def test_a_shallow_clone_without_default_branch_is_explained(
    repository: Repository, command: Command, tmp_path: Path
) -> None:
    """The usual checkout of CI lacks what a comparison needs."""
    repository.commit(SHOP)
    repository.commit({"a.txt": "a\n"})
    repository.git("branch", "-m", "trunk")
    clone = tmp_path / "clone"
    repository.git("clone", "-q", "--depth", "1", f"file://{repository.path}", str(clone))
    here = Repository(clone)
    here.git("remote", "remove", "origin")
    result = command("doctor", "--repo", str(clone))
    assert result.code == 3
    assert "git fetch --unshallow" in result.out
    assert "git remote set-head origin --auto" in result.out


def test_outside_of_a_repository_and_in_an_empty_one(
    repository: Repository, command: Command, tmp_path: Path
) -> None:
    """The first thing that someone new tries is the command in the wrong place."""
    result = command("doctor", "--repo", str(tmp_path))
    assert result.code == 3
    assert "to mend: not a git repository" in result.out
    result = command("doctor", "--repo", str(repository.path))
    assert result.code == 0
    assert "no commits yet" in result.out


def test_a_damaged_store_is_reported(repository: Repository, command: Command) -> None:
    """Numbers of a store that was just rebuilt would say that nothing was ever indexed."""
    shop(repository)
    folder = repository.path / ".git" / "coderag-ci"
    folder.mkdir()
    (folder / "store.sqlite").write_text("no database" * 200)
    result = command("doctor", "--repo", str(repository.path))
    assert result.code == 3
    assert "index was damaged" in result.out


def test_a_config_that_makes_no_sense_is_reported(repository: Repository, command: Command) -> None:
    """A typo in the config shows up in CI, far from where it was made."""
    shop(repository)
    repository.write({".coderag.yml": "budgett: 5\n"})
    result = command("doctor", "--repo", str(repository.path))
    assert result.code == 3
    assert "budgett" in result.out
    assert "did you mean budget?" in result.out
