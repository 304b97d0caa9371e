"""What is broken for real is told wherever a pack is read: formats, JSON, trace, exit code.

Each of these breaks a thing from outside, runs the real command, and ends in the diff. The ladder
itself is held by test_drills, what a damaged store costs by test_store.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import coderag_ci
from coderag_ci import deadline, modelfiles, models, pipeline, workers
from tests.conftest import Command
from tests.packs import limited, pack_of, shop
from tests.repository import Repository

HOME = Path(coderag_ci.__file__).resolve().parent.parent
# The real process of a model, but for what onnxruntime does when it is asked to load one.
INFERENCE = """\
import os, runpy, threading
import onnxruntime
def load(*_, **__):
    {load}
onnxruntime.InferenceSession = load
runpy.run_module("coderag_ci.inference", run_name="__main__")
"""
# A file whose branches of the preprocessor are never closed: the C grammar's time for it is
# quadratic, 10 s for 60 kB and 70 s for 120 kB.
UNBALANCED = "#elif C\n/* c\nint a;\n#if A\n"


class Impatient(deadline.Deadline):
    """A deadline of 60 seconds by a clock that stands still: what a model does is not waited for.

    All else is, however slow the machine is.
    """

    def __init__(self, seconds: float) -> None:
        waited = (seconds - deadline.SEARCH, seconds - min(seconds, deadline.DIFF), seconds)

        def wait(event: Any, left: float) -> bool:
            return event.wait() if left in waited else False

        super().__init__(seconds, lambda: 100.0, wait)


# ---- models


def _gone(folder: Path) -> None:
    shutil.rmtree(folder)


def _truncated(folder: Path) -> None:
    data = (folder / "model.onnx").read_bytes()
    (folder / "model.onnx").write_bytes(data[: len(data) // 2])


def _another_byte(folder: Path) -> None:
    data = bytearray((folder / "model.onnx").read_bytes())
    data[len(data) // 2] ^= 1
    (folder / "model.onnx").write_bytes(data)


@pytest.mark.parametrize("damage", [_gone, _truncated, _another_byte])
def test_a_model_that_is_not_whole(
    repository: Repository,
    command: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    damage: Callable[[Path], None],
) -> None:
    """A cache that lost a model, half of it or a bit of it costs the channel of meanings alone."""
    shop(repository)
    folder = tmp_path / "model"
    shutil.copytree(modelfiles.bundled(), folder)
    damage(folder)
    monkeypatch.setattr(modelfiles, "bundled", lambda: folder)
    pack = limited(command, repository, "--embedding-model", "bundled")
    (line,) = pack["degradations"]
    assert line.startswith(("no dense channel: bundled: damaged", f"no dense channel: {folder}: "))
    assert pack["evidence"]


@pytest.mark.parametrize(
    ("load", "how"),
    [
        ("raise RuntimeError('no kernel for this')", "no kernel for this"),
        ("os.kill(os.getpid(), 9)", "its process was killed by signal 9"),
        ("threading.Event().wait()", "deadline"),
    ],
)
@pytest.mark.parametrize(
    ("flag", "step"), [("--embedding-model", "dense channel"), ("--rerank-model", "cross-encoder")]
)
def test_an_onnxruntime_that_raises_hangs_or_is_killed(
    repository: Repository,
    command: Command,
    monkeypatch: pytest.MonkeyPatch,
    load: str,
    how: str,
    flag: str,
    step: str,
) -> None:
    """What a library does in its own process costs one step, which is named."""
    shop(repository)
    program = INFERENCE.format(load=load)
    monkeypatch.setattr(models, "_COMMAND", (sys.executable, "-c", program))
    if how == "deadline":
        monkeypatch.setattr(deadline, "Deadline", Impatient)
    pack = limited(command, repository, flag, str(modelfiles.bundled()))
    (line,) = pack["degradations"]
    assert line.startswith(f"no {step}: ")
    assert how in line
    assert pack["evidence"]


# ---- parsers


LAUNCHER = """\
#!{python}
import ctypes, os, runpy, sys
sys.path.insert(0, {home!r})
from coderag_ci.parse import parser
def crash(*_):
    {crash}
parser.grammar = crash
runpy.run_module("coderag_ci.parse.worker", run_name="__main__")
"""


@pytest.mark.parametrize("crash", ["ctypes.string_at(8)", "os.kill(os.getpid(), 9)", "os._exit(0)"])
def test_a_grammar_that_crashes_its_process(
    repository: Repository,
    command: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    crash: str,
) -> None:
    """A grammar of another ABI crashes on every file: a pack without evidence says why."""
    shop(repository)
    launcher = tmp_path / "python"
    text = LAUNCHER.format(python=sys.executable, home=str(HOME), crash=crash)
    launcher.write_text(text)
    launcher.chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", str(launcher))
        pack = limited(command, repository)
    assert pack["degradations"] == ["the parser failed on 6 files"]
    assert {skip["reason"] for skip in pack["skipped"]} == {workers.DIED}
    assert pack_of(command, repository, "--base", "main")["degradations"] == []  # tried again


def test_a_grammar_that_takes_for_ever(
    repository: Repository, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A C file of a megabyte can take the grammar hours: it gets its time, and is told."""
    shop(repository)
    repository.commit({"big.c": UNBALANCED * 30_000, "small.c": "int one(void) { return 1; }\n"})
    given = workers.parse_all
    monkeypatch.setattr(workers, "parse_all", lambda jobs, n, _, size: given(jobs, n, 2.0, size))
    pack = pack_of(command, repository, "--base", "main", "--strict", code=4)
    assert pack["degradations"] == ["deadline: 1 file not indexed"]
    assert {"path": "big.c", "reason": "deadline: no time to parse"} in pack["skipped"]
    assert {file["path"] for file in pack["diff"]} == {"big.c", "small.c", "shop/tax.py"}
    assert "shop/price.py" in {piece["path"] for piece in pack["evidence"]}


# ---- git


CUT_SHORT = """\
#!/bin/sh
case " $* " in *" cat-file "*)
    if {once}; then {git} "$@" | head -c 150; kill -9 $$; fi;;
esac
exec {git} "$@"
"""


def killing(tmp_path: Path, once: str) -> str:
    """Return a PATH whose git is killed within the first file that it gives."""
    git = tmp_path / "bin" / "git"
    git.parent.mkdir()
    git.write_text(CUT_SHORT.format(git=shutil.which("git"), once=once))
    git.chmod(0o755)
    return f"{git.parent}{os.pathsep}{os.environ['PATH']}"


def test_a_git_that_is_killed_within_a_file(
    repository: Repository, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the system did to one process of git is made good by the next."""
    shop(repository)
    whole = pack_of(command, repository, "--base", "main", "--index-dir", str(tmp_path / "a"))
    monkeypatch.setenv("PATH", killing(tmp_path, f'mkdir "{tmp_path}/once" 2>/dev/null'))
    pack = pack_of(command, repository, "--base", "main")
    assert (tmp_path / "once").exists()
    assert (pack["digest"], pack["degradations"]) == (whole["digest"], [])


def test_a_git_that_is_killed_again_and_again(
    repository: Repository, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a file must be neither searched nor remembered as one that is too large."""
    shop(repository)
    with monkeypatch.context() as patch:
        patch.setenv("PATH", killing(tmp_path, f'[ -e "{tmp_path}/armed" ]'))
        compare = pipeline._compare

        def compare_then_arm(*given: Any) -> Any:
            found = compare(*given)
            (tmp_path / "armed").touch()
            return found

        patch.setattr(pipeline, "_compare", compare_then_arm)
        pack = pack_of(command, repository, "--base", "main", "--strict", code=4)
    assert pack["diff"][0]["hunks"]
    assert pack["degradations"][0].startswith("not in this clone: ")
    assert {skip["reason"] for skip in pack["skipped"]} == {"not in this clone"}
    after = pack_of(command, repository, "--base", "main")
    assert (after["degradations"], after["skipped"]) == ([], [])
    assert "shop/price.py" in {piece["path"] for piece in after["evidence"]}


def test_a_history_that_is_damaged(repository: Repository, command: Command) -> None:
    """What git gives of it counts; how many commits it does not give is told."""
    repository.commit({"shop/tax.py": "def rate():\n    return 0\n"})
    lost = repository.commit({"shop/tax.py": "def rate():\n    return 1\n"})
    for number in range(2, 5):
        repository.commit({"shop/tax.py": f"def rate():\n    return {number}\n"})
    shop(repository)
    tree = repository.git("rev-parse", f"{lost}^{{tree}}")
    (repository.path / ".git" / "objects" / tree[:2] / tree[2:]).unlink()
    pack = limited(command, repository)
    assert pack["degradations"] == ["history: 2 commits could not be read"]
    (repository.path / ".git" / "objects" / lost[:2] / lost[2:]).unlink()
    pack = limited(command, repository)
    assert pack["degradations"] == ["no history: git can not read it"]
    assert pack["evidence"]


def test_a_merge_base_that_git_can_not_find(repository: Repository, command: Command) -> None:
    """Two commits of a damaged history are not said to have nothing in common."""
    lost = repository.commit({"a.py": "x = 1\n"})
    repository.commit({"a.py": "x = 2\n"})
    base = repository.commit({"a.py": "x = 3\n"})
    repository.git("checkout", "-q", "-b", "topic", "HEAD~1")
    repository.commit({"a.py": "x = 4\n"})
    (repository.path / ".git" / "objects" / lost[:2] / lost[2:]).unlink()
    result = command("context", "--repo", str(repository.path), "--base", base)
    if result.code:  # newer versions of git find it all the same
        assert "no commit in common" not in result.err
        assert result.err.startswith("coderag-ci: error: git rev-list failed: ")


# ---- disks


MOUNTED = """\
mount -t tmpfs -o size={size} tmpfs "$1" && {then} && shift && exec "$@"
"""


def mounted(folder: Path, size: str, then: str, *arguments: str) -> dict[str, Any]:
    """Make a pack with a file system of its own on a folder; skips where no user may mount."""
    if (
        not shutil.which("unshare")
        or subprocess.run(["unshare", "-rm", "true"], check=False).returncode
    ):
        pytest.skip("no right to mount")
    folder.mkdir()
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", MOUNTED.format(size=size, then=then), "sh", str(folder),
         sys.executable, "-m", "coderag_ci", "context", "--format", "json", *arguments],
        cwd=HOME, capture_output=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    assert b"Traceback" not in done.stderr
    pack: dict[str, Any] = json.loads(done.stdout)
    return {**pack, "said": done.stderr.decode()}


@pytest.mark.parametrize(
    ("size", "then", "said"),
    [
        ("48k", "true", "index not saved: "),
        ("4k", 'head -c 4096 /dev/zero > "$1/full"', "index kept in "),
        ("1m", 'mount -o remount,ro "$1"', "index kept in "),
    ],
)
def test_a_disk_that_is_full_or_read_only(
    repository: Repository, command: Command, tmp_path: Path, size: str, then: str, said: str
) -> None:
    """A real file system without room, or that takes nothing, costs the cache and not the pack."""
    shop(repository)
    whole = pack_of(command, repository, "--base", "main")
    disk = tmp_path / "disk"
    place = ("--repo", str(repository.path), "--base", "main", "--index-dir", str(disk))
    pack = mounted(disk, size, then, *place)
    assert pack["digest"] == whole["digest"]
    assert pack["said"].startswith(f"coderag-ci: {said}")


# ---- all at once


def test_with_everything_down_there_is_the_diff_and_a_search_for_its_names(
    repository: Repository, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No model, no parser, no place for an index: the reviewer still sees who calls it."""
    shop(repository)
    nowhere = tmp_path / "nowhere"
    nowhere.touch()
    flags = [("--index-dir", nowhere), ("--embedding-model", nowhere), ("--rerank-model", nowhere)]
    with monkeypatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(nowhere))
        patch.setattr(tempfile, "tempdir", str(nowhere))
        patch.setattr(sys, "executable", "/bin/false")
        pack = limited(command, repository, *(str(part) for flag in flags for part in flag))
    (line,) = pack["degradations"]
    assert line.startswith("no search of the index: the index can not be written: ")
    assert line.endswith("; names alone were searched for")
    found = {piece["path"]: piece["channels"] for piece in pack["evidence"]}
    assert set(found) >= {"shop/price.py", "shop/invoice.py"}
    assert {one["name"] for channels in found.values() for one in channels} == {"names"}
