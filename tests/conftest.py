"""Fixtures: real git repositories, the real command, and a guard around every test."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from coderag_ci.cli import run
from tests.repository import Repository

_LEAKY = ("GIT_", "CODERAG_", "GITHUB_", "GITLAB_", "CI_", "XDG_")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --update-golden: write what the renderers give to tests/golden instead of comparing."""
    parser.addoption("--update-golden", action="store_true", help="rewrite tests/golden")


@pytest.fixture(scope="session")
def home() -> str:
    """Return the home folder that the tests are kept away from."""
    return os.environ.get("HOME", "")


@pytest.fixture(autouse=True)
def guard(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep a test away from the network, the home folder, the user's git config and any CI."""
    for name in [name for name in os.environ if name.startswith(_LEAKY) or name == "CI"]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")

    connect = socket.socket.connect

    def refuse(self: socket.socket, address: tuple[str, int]) -> None:
        if address[0] != "127.0.0.1":  # a server of the test
            raise AssertionError(f"a test reached for the network: {address}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    """Return an empty git repository on branch main."""
    return Repository.create(tmp_path / "repo")


class Result:
    """What a run of the command gave."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code = code
        self.out = out
        self.err = err


Command = Callable[..., Result]


@pytest.fixture
def command(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Return a function that runs ``coderag-ci`` in this process, from a folder if one is given."""

    def invoke(*arguments: str, cwd: Path | None = None) -> Result:
        capfdbinary.readouterr()
        with monkeypatch.context() as patch:
            if cwd is not None:
                patch.chdir(cwd)
            code = run(list(arguments))
        out, err = capfdbinary.readouterr()
        return Result(code, out.decode("utf-8", "replace"), err.decode("utf-8", "replace"))

    return invoke
