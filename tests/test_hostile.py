"""What an attacker, or bad luck, lays in the way: nothing is run, followed or lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest

import coderag_ci
from coderag_ci import snapshot
from coderag_ci.errors import EXIT_OK, EXIT_SETUP
from tests.conftest import Command
from tests.packs import pack_of, shop
from tests.repository import Repository

ROOT = Path(coderag_ci.__file__).resolve().parent.parent


def test_no_filter_of_the_repository_is_run(repository: Repository, command: Command) -> None:
    """Attributes of a change choose which program git runs over a file of the work tree."""
    marker = repository.path.parent / "marker"
    program = repository.path.parent / "filter.sh"
    program.write_text(f"#!/bin/sh\ntouch {marker}\ncat\n")
    program.chmod(0o755)
    repository.commit({"a.py": "x = 1\n"})
    for key in ("clean", "process", "smudge"):
        repository.git("config", f"filter.odd=name.{key}", str(program))
    repository.git("config", "filter.odd=name.required", "true")
    repository.write({"a.py": "x = 2\n", ".gitattributes": "*.py filter=odd=name\n"})
    result = command("context", "--repo", str(repository.path), "--format", "json")
    assert result.code == EXIT_OK
    assert [f["path"] for f in json.loads(result.out)["diff"]] == [".gitattributes", "a.py"]
    assert not marker.exists()


def test_a_stderr_that_nobody_reads_does_not_cost_the_pack(
    repository: Repository, tmp_path: Path
) -> None:
    """A log collector that dies would otherwise take the pack with it."""
    shop(repository)
    read, write = os.pipe()
    os.close(read)
    pack = tmp_path / "pack.md"
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "coderag_ci",
            "context",
            "--base",
            "main",
            "--trace",
            "-o",
            str(pack),
        ],
        cwd=repository.path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=write,
        check=False,
    )
    os.close(write)
    assert done.returncode == EXIT_OK
    assert pack.read_text().startswith("# Evidence pack")


def test_a_clone_without_blobs_names_what_it_lacks(
    repository: Repository, command: Command, tmp_path: Path
) -> None:
    """A partial clone is no damaged repository, and nothing is fetched for it."""
    shop(repository)
    repository.git("config", "uploadpack.allowFilter", "true")
    clone = Repository.create(tmp_path / "clone")
    clone.git("remote", "add", "origin", f"file://{repository.path}")
    clone.git("fetch", "-q", "--filter=blob:none", "origin")
    head = repository.git("rev-parse", "HEAD")
    arguments = ("--base", "origin/main", "--head", head)
    pack = pack_of(command, clone, *arguments)
    assert {skip["reason"] for skip in pack["skipped"]} >= {"not in this clone"}
    assert any(line.startswith("not in this clone: ") for line in pack["degradations"])
    assert pack["diff"]


def test_a_link_in_the_place_of_the_lock_is_not_written_through(
    repository: Repository, command: Command, tmp_path: Path
) -> None:
    """An index directory that came from a cache could point anywhere."""
    shop(repository)
    precious = tmp_path / "precious"
    precious.write_text("keep")
    index = tmp_path / "index"
    index.mkdir()
    (index / "lock").symlink_to(precious)
    result = command(
        "context", "--repo", str(repository.path), "--base", "main", "--index-dir", str(index)
    )
    assert result.code == EXIT_OK
    assert "index kept in" in result.err
    assert precious.read_text() == "keep"


@pytest.mark.parametrize(
    "spoil",
    [
        {"table": 0xFFFFFFFF},
        {"file_of": 0xFFFFFFFF},
        {"lengths": None},
    ],
)
def test_a_snapshot_whose_numbers_lead_nowhere_is_discarded(
    repository: Repository, command: Command, spoil: dict[str, int | None]
) -> None:
    """A checksum says that a file arrived whole, not that it is true."""
    shop(repository)
    first = pack_of(command, repository, "--base", "main")
    (path,) = (repository.path / ".git/coderag-ci/snapshots").glob("*.snap")
    segment = snapshot.load(path)
    ((name, value),) = spoil.items()
    array = getattr(segment, name)
    wrong = array[:-1] if value is None else np.full_like(array, value)
    object.__setattr__(segment, name, wrong)
    snapshot.save(segment, path)
    with pytest.raises(ValueError, match="fit together"):
        snapshot.load(path)
    assert pack_of(command, repository, "--base", "main")["digest"] == first["digest"]


def test_a_path_too_long_for_a_command_line_is_skipped_by_name(
    repository: Repository, command: Command
) -> None:
    """Anyone can push one; it must not end in a crash."""
    base = repository.commit({"a.py": "x = 1\n"})
    blob = repository.git("hash-object", "-w", "--stdin", stdin=b"y = 1\n")
    name = "/".join(["d" * 200] * 600)
    stream = (
        f"commit refs/heads/long\ncommitter A <a@example.com> 1 +0000\ndata 1\nx\nfrom {base}\n"
        f"M 100644 {blob} {name}.py\nM 100644 {blob} b.py\n"
    )
    repository.git("fast-import", "--quiet", stdin=stream.encode())
    result = command(
        "context", "--repo", str(repository.path), "--base", "main", "--head", "long",
        "--format", "json",
    )  # fmt: skip
    assert result.code == EXIT_OK
    pack = json.loads(result.out)
    assert any(skip["reason"].startswith("its path is too long") for skip in pack["skipped"])
    assert "b.py" in [file["path"] for file in pack["diff"]]


def test_hostile_settings_of_a_pack_are_refused(
    repository: Repository, command: Command, tmp_path: Path
) -> None:
    """A pack that verify reads may come from anyone."""
    shop(repository)
    pack = pack_of(command, repository, "--base", "main")
    pack["settings"] = {"budget": "[" * 100_000}
    file = tmp_path / "pack.json"
    file.write_bytes(msgspec.json.encode(pack))
    result = command("verify", str(file), "--repo", str(repository.path))
    assert result.code == EXIT_SETUP
    assert len(result.err.splitlines()) == 2
