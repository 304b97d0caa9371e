"""pre-commit itself runs the hooks: in an environment that it makes, at commits and at pushes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.packs import SHOP
from tests.repository import Repository

pytest.importorskip("pre_commit", reason="pre-commit comes with the extra dev")

ROOT = Path(__file__).resolve().parent.parent
HOOKS = ROOT / ".pre-commit-hooks.yaml"
TAX = "shop/tax.py"


@pytest.fixture
def shop(repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    """Return the shop with a staged change that leaves a name in the air."""
    monkeypatch.setenv("PRE_COMMIT_HOME", str(tmp_path / "pre-commit"))
    scripts = os.path.dirname(sys.executable)
    monkeypatch.setenv("PATH", f"{scripts}{os.pathsep}{os.environ['PATH']}")
    repository.commit(SHOP, "Add the shop")
    repository.write({TAX: str(SHOP[TAX]).replace("def tax_rate(", "def rate_of_tax(")})
    repository.git("add", "-A")
    return repository


def run(where: Path, *command: str) -> str:
    """Run a command without a terminal and return all that it prints; fails where it does."""
    done = subprocess.run(
        command,
        cwd=where,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        env={
            **os.environ,
            "GIT_AUTHOR_NAME": "Ada",
            "GIT_AUTHOR_EMAIL": "ada@example.com",
            "GIT_COMMITTER_NAME": "Ada",
            "GIT_COMMITTER_EMAIL": "ada@example.com",
        },
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.slow
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="pre-commit clones a git repository")
def test_pre_commit_installs_and_runs_the_hook(
    shop: Repository, monkeypatch: pytest.MonkeyPatch, home: str
) -> None:
    """What a user's pre-commit clones can be installed, and shows what the staged change breaks."""
    monkeypatch.setenv("HOME", home)  # where pip finds which index it uses
    out = run(shop.path, "pre-commit", "try-repo", str(ROOT), "coderag-ci", "--verbose")
    assert "Passed" in out
    assert "dangling: `tax_rate`" in out
    assert (shop.path / ".git/coderag-ci/pre-commit.md").exists()


def test_pre_commit_runs_the_hooks_at_commits_and_pushes(shop: Repository, tmp_path: Path) -> None:
    """Both hooks show what they find: at a commit, at a first push and at a second one."""
    hooks = [{**hook, "language": "system"} for hook in yaml.safe_load(HOOKS.read_text())]
    config = {"repos": [{"repo": "local", "hooks": hooks}]}
    shop.write({".pre-commit-config.yaml": yaml.safe_dump(config)})
    shop.git("add", ".pre-commit-config.yaml")
    types = ("--hook-type", "pre-commit", "--hook-type", "pre-push")
    run(shop.path, "pre-commit", "install", *types)
    assert "dangling: `tax_rate`" in run(shop.path, "git", "commit", "-m", "Rename")
    remote = Repository.create(tmp_path / "remote.git", "--bare")
    shop.git("remote", "add", "origin", str(remote.path))
    assert "all of main is new to the remote" in run(shop.path, "git", "push", "origin", "main")
    shop.git("rm", "-q", "shop/invoice.py")
    assert "1 file, +0" in run(shop.path, "git", "commit", "-m", "Remove")
    assert "1 file, +0" in run(shop.path, "git", "push", "origin", "main")
