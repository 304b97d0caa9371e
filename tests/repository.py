"""Builds real git repositories for the tests."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

_IDENTITY = {
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.com",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.com",
}


class Repository:
    """A repository in a folder; its commits have fixed dates, so that ids are stable."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._clock = 1_700_000_000

    @classmethod
    def create(cls, path: Path, *options: str) -> Repository:
        """Make an empty repository on branch main."""
        path.mkdir(parents=True)
        repository = cls(path)
        repository.git("init", "-q", "-b", "main", *options, ".")
        return repository

    def git(self, *arguments: str, stdin: bytes = b"", check: bool = True) -> str:
        """Run git here and return its stripped output."""
        self._clock += 60
        date = f"{self._clock} +0000"
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.path,
            input=stdin,
            capture_output=True,
            check=False,
            env={
                **os.environ, **_IDENTITY, "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date
            },
        )  # fmt: skip
        if check and done.returncode:
            raise AssertionError(f"git {arguments}: {done.stderr.decode()}")
        return done.stdout.decode("utf-8", "surrogateescape").strip()

    def write(self, files: Mapping[str, str | bytes | None]) -> None:
        """Write files to the work tree; None removes one."""
        for name, content in files.items():
            target = self.path / name
            if content is None:
                target.unlink()
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.encode() if isinstance(content, str) else content)

    def commit(
        self, files: Mapping[str, str | bytes | None] | None = None, message: str = "change"
    ) -> str:
        """Write files, commit everything and return the commit's id."""
        self.write(files or {})
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")
