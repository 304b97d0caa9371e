"""What is said on the way to a pack names no content and no secret, and nothing reaches out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import coderag_ci
from coderag_ci import progress, workflow
from coderag_ci.errors import EXIT_OK
from tests.conftest import Command
from tests.packs import SHOP, shop
from tests.repository import Repository

ROOT = Path(coderag_ci.__file__).resolve().parent.parent
TOKEN = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"

# Loaded by every Python that is started: what reaches out is told, and refused.
_WITHOUT_SOCKETS = """
import os, socket, sys

NAMES = ("connect", "sendto", "sendmsg", "getaddrinfo", "gethostbyname")
OUT = {f"socket.{name}" for name in NAMES}

def refuse(event, arguments):
    if event in OUT:
        with open(os.environ["SOCKETS"], "a") as file:
            file.write(f"{event} {arguments}\\n")
        raise OSError("no sockets here")

sys.addaudithook(refuse)
"""


def lose(repository: Repository, path: str) -> None:
    """Take the content of a path out of the repository, so that it is skipped by name."""
    blob = repository.git("rev-parse", f"HEAD:{path}")
    (repository.path / ".git" / "objects" / blob[:2] / blob[2:]).unlink()


# ---- logs


@pytest.mark.parametrize("how", [(), ("--strict",), ("--format", "json")])
def test_what_is_said_by_default_names_no_content(
    repository: Repository, command: Command, how: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log is kept longer than a pack, and read by more people."""
    repository.commit({"a.py": "x = 1\n", **SHOP, "long.py": "canaryline = 1\n" * 80_000})
    repository.git("checkout", "-q", "-b", "topic")
    broken = "def canaryname(:\n    'canaryliteral'  # canarycomment\n"
    repository.commit({"a.py": broken, "b.bin": b"\x00canarybinary"}, "Canarytitle")
    monkeypatch.setenv("CI", "true")
    done = command("context", "--base", "main", *how, cwd=repository.path)
    assert "canaryliteral" in done.out
    assert "canary" not in done.err.lower()
    for words in (("index",), ("doctor",), ("index", "--stats")):
        done = command(*words, cwd=repository.path)
        assert "canary" not in (done.out + done.err).lower()


def test_no_log_line_has_a_secret(
    repository: Repository, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paths, refs, addresses and what git says of them are printed where something fails."""
    repository.commit({f"{TOKEN}.py": "x = 2\n", "a.py": "x = 1\n"})
    lose(repository, f"{TOKEN}.py")
    said = [
        command("index", cwd=repository.path).err,
        command("context", "--base", f"https://ada:{TOKEN}@forge.example", cwd=repository.path).err,
        command("context", "--base", TOKEN, cwd=repository.path).err,
        command("context", "--config", TOKEN, cwd=repository.path).err,
        command("context", "--trace", "--worktree", "--base", "HEAD", cwd=repository.path).err,
    ]

    def fail(*_: object) -> None:
        raise RuntimeError(f"token={TOKEN}")

    monkeypatch.setattr("coderag_ci.pipeline.make_pack", fail)
    said.append(command("context", cwd=repository.path).err)
    assert "RuntimeError: token=‹redacted: github-token 1›" in said[-1]
    assert "skipped ‹redacted: github-token 1›.py" in said[0]
    for text in said:
        assert TOKEN not in text


def test_a_path_with_a_newline_is_one_line(repository: Repository, command: Command) -> None:
    """It could forge a line of ours, or a command to the runner of a workflow."""
    name = "a\n::error::forged.py"
    repository.commit({name: "x = 1\n"})
    lose(repository, name)
    said = command("index", cwd=repository.path).err
    assert "skipped a ::error::forged.py" in said
    assert not any(line.startswith("::") for line in said.splitlines())


def test_a_line_of_a_log_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A title, or what a forge answers, could do the same."""
    for speak in (
        progress.Progress(quiet=False).say,
        lambda text: workflow.annotate({}, "notice", text),
        lambda text: workflow.annotate({"GITHUB_ACTIONS": "true"}, "notice", text),
    ):
        speak("one\n::error::two\r::error::three\x1b[31m")
        assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize("options", [(), ("--bare",)])
def test_a_repository_in_a_folder_with_a_newline(
    tmp_path: Path, command: Command, options: tuple[str, ...]
) -> None:
    """Anyone may name a folder so; what is said of it stays one line."""
    origin = shop(Repository.create(tmp_path / "origin"))
    place = tmp_path / "new\nline"
    origin.git("clone", "-q", *options, ".", str(place))
    done = command("context", "--base", "origin/main" if not options else "main", cwd=place)
    assert done.code == EXIT_OK, done.err
    assert "shop/tax.py" in done.out
    told = command("doctor", cwd=place).out.splitlines()
    assert any(line.startswith("store") and "new line" in line for line in told)
    assert not any(line.startswith("line") for line in told)


def test_a_variable_that_is_no_setting_is_said(
    repository: Repository, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slip in a workflow would go unnoticed, and what it was to set with it."""
    shop(repository)
    monkeypatch.setenv("CODERAG_BUGDET", "10")
    done = command("context", "--base", "main", cwd=repository.path)
    assert done.code == EXIT_OK
    assert "CODERAG_BUGDET is no setting; did you mean CODERAG_BUDGET?" in done.err
    assert command("context", "--base", "main", "--quiet", cwd=repository.path).err == ""


# ---- the network


def test_no_socket_is_opened(repository: Repository, tmp_path: Path) -> None:
    """Code that leaves the machine would leave it unseen: nothing but a pack is made."""
    shop(repository)
    for name in ("https://192.0.2.1/o/r.git", "ssh://git@192.0.2.1/o/r.git"):
        repository.git("remote", "add", f"r{len(name)}", name)
    repository.git("remote", "add", "origin", "https://192.0.2.1/o/r.git")
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(_WITHOUT_SOCKETS)
    told = tmp_path / "sockets"
    environment = {
        **os.environ,
        "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}",
        "SOCKETS": str(told),
        "GIT_TRACE2_EVENT": str(tmp_path / "trace"),
        "CI": "true",
    }

    def run(*arguments: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [sys.executable, *arguments], cwd=repository.path, env=environment,
            capture_output=True, check=False,
        )  # fmt: skip

    assert run("-c", "import socket; socket.create_connection(('192.0.2.1', 9))").returncode
    assert told.read_text().startswith("socket.")  # the guard works
    told.unlink()
    for words in (
        ("context", "--base", "main", "--embedding-model", "bundled"),
        ("context", "--base", "main", "--format", "json", "--rerank-model", "learned"),
        ("index",),
        ("hook", "run"),
    ):
        done = run("-m", "coderag_ci", *words)
        assert done.returncode == EXIT_OK, done.stderr.decode()
    assert not told.exists(), told.read_text()
    started = [json.loads(line) for line in (tmp_path / "trace").read_text().splitlines()]
    programs = {tuple(event["argv"][:1]) for event in started if event["event"] == "child_start"}
    assert not {("git-remote-https",), ("ssh",)} & programs
    assert any(event["event"] == "cmd_name" for event in started)
