"""The store: damage, full disks, read-only places, killed and competing processes."""

from __future__ import annotations

import errno
import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import coderag_ci
from coderag_ci import store
from tests.conftest import Command
from tests.packs import indexed, pack_of, shop
from tests.repository import Repository


def index_of(repository: Repository) -> Path:
    """Return the folder of the repository's index."""
    return repository.path / ".git" / "coderag-ci"


def run_context(
    command: Command, repository: Repository, *arguments: str
) -> tuple[dict[str, Any], str]:
    """Run ``context`` on the topic; returns the pack and what was said on stderr."""
    result = command(
        "context", "--repo", str(repository.path), "--base", "main", "--format", "json", *arguments
    )
    assert result.code == 0, result.err
    return json.loads(result.out), result.err


# The real command, behind a limit on the size of the files that it may write (0: none).
PROGRAM = """\
import resource, sys
if limit := int(sys.argv[1]):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
from coderag_ci.cli import main
main(sys.argv[2:])
"""


def start(*arguments: str, limit: int = 0) -> subprocess.Popen[bytes]:
    """Start the real command in a process of its own."""
    home = str(Path(coderag_ci.__file__).parent.parent)
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(limit), *arguments],
        cwd=home,
        env={**os.environ, "PYTHONPATH": home, "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


# ---- damage


def _truncated(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:5000])


def _text(file: Path) -> None:
    file.write_text("no database, but a note that someone left here\n" * 100)


def _from_the_future(file: Path) -> None:
    with sqlite3.connect(file) as db:
        db.execute(f"PRAGMA user_version={store.SCHEMA + 1}")
    db.close()


def _a_directory(file: Path) -> None:
    file.unlink()
    file.mkdir()
    (file / "kept.txt").write_text("x")


def _other_tables(file: Path) -> None:
    file.unlink()
    with sqlite3.connect(file) as db:
        db.execute("CREATE TABLE rows (something INTEGER)")
    db.close()


def _wrong_pages(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[4096:] = b"\xa5" * (len(data) - 4096)
    file.write_bytes(data)


@pytest.mark.parametrize(
    "damage", [_truncated, _text, _from_the_future, _a_directory, _other_tables, _wrong_pages]
)
def test_a_damaged_store_is_set_aside_and_reported(
    repository: Repository, command: Command, damage: Callable[[Path], None]
) -> None:
    """A damaged cache would fail every later build until someone deletes it by hand."""
    shop(repository)
    whole, _ = run_context(command, repository)
    damage(index_of(repository) / store.FILE_NAME)
    shutil.rmtree(index_of(repository) / "snapshots")
    mended, err = run_context(command, repository)
    assert mended["digest"] == whole["digest"]
    said = [line for line in err.splitlines() if "damaged" in line]
    assert len(said) == 1
    assert "rebuilt" in said[0]
    assert len(list(index_of(repository).glob("store.damaged-*"))) == 1
    after, err = run_context(command, repository)
    assert (after["digest"], indexed(after), err) == (whole["digest"], 0, "")


def test_no_flipped_bit_changes_a_pack(
    repository: Repository, command: Command, tmp_path: Path
) -> None:
    """A bad disk would give a reviewer other evidence, or a crash, without a word."""
    shop(repository)
    whole, _ = run_context(command, repository, "--index-dir", str(tmp_path / "whole"))
    chance = random.Random(7)
    size = (tmp_path / "whole" / store.FILE_NAME).stat().st_size
    for number, at in enumerate(sorted(chance.randrange(size) for _ in range(24))):
        folder = tmp_path / str(number)
        shutil.copytree(tmp_path / "whole", folder)
        if number % 2:
            shutil.rmtree(folder / "snapshots")
        data = bytearray((folder / store.FILE_NAME).read_bytes())
        data[at] ^= 1 << chance.randrange(8)
        (folder / store.FILE_NAME).write_bytes(data)
        pack, err = run_context(command, repository, "--index-dir", str(folder))
        assert pack["digest"] == whole["digest"], f"byte {at}"
        assert "damaged" in err or not err


def test_a_row_that_does_not_match_its_checksum_is_never_used(
    repository: Repository, command: Command
) -> None:
    """SQLite does not notice a changed byte inside a value; the pack would show wrong lines."""
    shop(repository)
    whole, _ = run_context(command, repository)
    shutil.rmtree(index_of(repository) / "snapshots")
    with sqlite3.connect(index_of(repository) / store.FILE_NAME) as db:
        for blob, data in db.execute("SELECT blob, data FROM rows").fetchall():
            changed = data[:-20] + bytes(20)
            db.execute("UPDATE rows SET data=? WHERE blob=?", (changed, blob))
    db.close()
    pack, err = run_context(command, repository)
    assert pack["digest"] == whole["digest"]
    assert err.count("index was damaged") == 1
    assert "checksum" in err


def test_only_the_last_damaged_store_is_kept(repository: Repository, command: Command) -> None:
    """A store that breaks again and again would fill the disk with what was set aside."""
    shop(repository)
    run_context(command, repository)
    for number in range(3):
        (index_of(repository) / f"store.damaged-{number}-1").write_text("old")
    _text(index_of(repository) / store.FILE_NAME)
    run_context(command, repository)
    assert len(list(index_of(repository).glob("store.damaged-*"))) == 1


@pytest.mark.parametrize("flag", ["--stats", "--prune"])
def test_stats_and_prune_report_a_damaged_store(
    repository: Repository, command: Command, flag: str
) -> None:
    """Numbers of an empty store would look as if the cache had never worked."""
    shop(repository)
    run_context(command, repository)
    _text(index_of(repository) / store.FILE_NAME)
    result = command("index", "--repo", str(repository.path), flag)
    assert result.code == 0
    assert "damaged" in result.err


def _cut_short(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-64])


def _changed_inside(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[-9] ^= 1
    file.write_bytes(data)


def _changed_header(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[60] ^= 1
    file.write_bytes(data)


def _emptied(file: Path) -> None:
    file.write_bytes(b"")


@pytest.mark.parametrize("damage", [_cut_short, _changed_inside, _changed_header, _emptied, _text])
def test_a_damaged_snapshot_is_discarded_without_a_word(
    repository: Repository, command: Command, damage: Callable[[Path], None]
) -> None:
    """A snapshot is only a faster way to the same pack: nobody has to know that one broke."""
    shop(repository)
    whole, _ = run_context(command, repository)
    (snapshot,) = (index_of(repository) / "snapshots").glob("*.snap")
    size = snapshot.stat().st_size
    damage(snapshot)
    pack, err = run_context(command, repository)
    assert (pack["digest"], indexed(pack), err) == (whole["digest"], 0, "")
    assert snapshot.stat().st_size == size  # made anew


# ---- places that can not be written to


def _refuse(patch: pytest.MonkeyPatch, folder: Path, number: int) -> None:
    """Make every attempt to create something in a folder fail, as the system would."""
    real_mkdir, real_file = Path.mkdir, tempfile.TemporaryFile

    def mkdir(self: Path, *arguments: Any, **options: Any) -> None:
        if self.is_relative_to(folder) and not self.exists():
            raise OSError(number, os.strerror(number), str(self))
        real_mkdir(self, *arguments, **options)

    def temporary(*arguments: Any, **options: Any) -> Any:
        if Path(options["dir"]).is_relative_to(folder):
            raise OSError(number, os.strerror(number), options["dir"])
        return real_file(*arguments, **options)

    patch.setattr(Path, "mkdir", mkdir)
    patch.setattr(tempfile, "TemporaryFile", temporary)


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOSPC])
def test_an_index_that_can_not_be_written_is_kept_elsewhere(
    repository: Repository, command: Command, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """A checkout that CI mounts read-only would give no pack at all."""
    shop(repository)
    whole, _ = run_context(command, repository, "--index-dir", str(repository.path / "x"))
    shutil.rmtree(repository.path / "x")
    _refuse(monkeypatch, repository.path, number)
    pack, err = run_context(command, repository)
    assert pack["digest"] == whole["digest"]
    (line,) = err.splitlines()
    cache = Path(os.environ["HOME"]) / ".cache" / "coderag-ci"
    assert f"index kept in {cache}" in line
    assert os.strerror(number) in line
    again, err = run_context(command, repository)
    assert indexed(again) == 0  # it was kept
    assert len(err.splitlines()) == 1
    monkeypatch.setenv("XDG_CACHE_HOME", str(repository.path / "no"))
    monkeypatch.setattr(tempfile, "tempdir", str(Path(os.environ["HOME"]) / "tmp"))
    last, err = run_context(command, repository)
    assert last["digest"] == whole["digest"]
    assert f"index kept in {os.environ['HOME']}/tmp/coderag-ci-" in err


def test_where_nothing_can_be_written_the_pack_says_what_to_do(
    repository: Repository, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A build without a writable folder gets the diff, and learns that a flag helps."""
    shop(repository)
    _refuse(monkeypatch, Path("/"), errno.EROFS)
    pack = pack_of(command, repository, "--base", "main")
    (line,) = pack["degradations"]
    assert "Read-only file system" in line
    assert "--index-dir" in line
    assert pack["diff"]
    result = command("index", "--repo", str(repository.path))
    assert result.code == 3
    assert "--index-dir" in result.err
    assert "Traceback" not in result.err


class _FullDisk:
    """A connection whose disk fills up when rows are written."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def executemany(self, *_: object) -> None:
        """Write nothing, and say why."""
        raise sqlite3.OperationalError("database or disk is full")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)


def test_a_disk_that_fills_up_costs_the_cache_not_the_pack(
    repository: Repository, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk on a build machine would take every review down with it."""
    shop(repository)
    whole, _ = run_context(command, repository, "--index-dir", str(repository.path / "x"))
    shutil.rmtree(repository.path / "x")
    real = store.Store._open
    monkeypatch.setattr(store.Store, "_open", lambda self, path: _FullDisk(real(self, path)))
    pack, err = run_context(command, repository)
    assert pack["digest"] == whole["digest"]
    assert len([line for line in err.splitlines() if "index not saved" in line]) == 1
    assert "full" in err


@pytest.mark.parametrize("limit", [1, 4096, 20_000, 60_000])
def test_a_real_limit_on_file_sizes_costs_the_cache_not_the_pack(
    repository: Repository, command: Command, limit: int
) -> None:
    """What a quota does to SQLite and to snapshots must not reach the pack."""
    shop(repository)
    whole, _ = run_context(command, repository, "--index-dir", str(repository.path / "x"))
    shutil.rmtree(repository.path / "x")
    process = start(
        "context", "--repo", str(repository.path), "--base", "main", "--format", "json",
        limit=limit,
    )  # fmt: skip
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err.decode()
    assert json.loads(out)["digest"] == whole["digest"]
    assert b"Traceback" not in err
    if limit < 20_000:
        assert b"index not saved" in err or b"index kept" in err
    healthy, _ = run_context(command, repository)
    assert healthy["digest"] == whole["digest"]


# ---- more than one process


def test_several_processes_on_one_cold_store_agree(
    repository: Repository, command: Command
) -> None:
    """Jobs of one build that share a cache would fail, or give different packs."""
    shop(repository)
    repository.commit(
        {f"more/m{n}.py": f"def more_{n}(x):\n    return tax_rate(x, {n})\n" for n in range(60)}
    )
    whole, _ = run_context(command, repository, "--index-dir", str(repository.path / ".git" / "x"))
    arguments = ("context", "--repo", str(repository.path), "--base", "main", "--format", "json")
    processes = [start(*arguments) for _ in range(4)]
    ended = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0] * 4, ended
    assert {json.loads(out)["digest"] for out, _ in ended} == {whole["digest"]}
    assert not any(b"damaged" in err or b"Traceback" in err for _, err in ended)
    warm, err = run_context(command, repository)
    assert (warm["digest"], indexed(warm), err) == (whole["digest"], 0, "")


def test_several_processes_on_one_damaged_store_agree(
    repository: Repository, command: Command
) -> None:
    """Two jobs that find the same damage must not set aside each other's rebuilt store."""
    shop(repository)
    whole, _ = run_context(command, repository)
    _text(index_of(repository) / store.FILE_NAME)
    arguments = ("context", "--repo", str(repository.path), "--base", "main", "--format", "json")
    processes = [start(*arguments) for _ in range(3)]
    ended = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0] * 3, ended
    assert {json.loads(out)["digest"] for out, _ in ended} == {whole["digest"]}
    assert sum(b"damaged" in err for _, err in ended) == 1
    warm, err = run_context(command, repository)
    assert (warm["digest"], indexed(warm), err) == (whole["digest"], 0, "")


def test_a_killed_process_leaves_a_whole_store(repository: Repository, command: Command) -> None:
    """A cancelled job would leave a cache behind that breaks the next one."""
    repository.commit({f"m{n}.py": f"def name_{n}():\n    return {n}\n" for n in range(1100)})
    process = start("index", "--repo", str(repository.path))
    assert process.stderr is not None
    line = process.stderr.readline()
    assert line.startswith(b"coderag-ci: indexing: 1000 of 1100"), line
    process.send_signal(signal.SIGKILL)
    process.communicate()
    file = index_of(repository) / store.FILE_NAME
    copy = repository.path / ".git" / "copy"
    shutil.copytree(index_of(repository), copy)
    with sqlite3.connect(copy / store.FILE_NAME) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert db.execute("SELECT count(*) FROM rows").fetchone()[0] >= 800
    db.close()
    assert file.exists()
    result = command("index", "--repo", str(repository.path))
    found = re.search(r"(\d+) blobs indexed, (\d+) reused", result.out)
    assert found
    assert int(found[1]) + int(found[2]) == 1100
    assert int(found[2]) >= 800
    assert "damaged" not in result.err


# ---- what is kept


def test_no_line_of_source_is_kept(repository: Repository, command: Command) -> None:
    """A cache that travels to a shared storage would take secrets in the source with it."""
    repository.commit(
        {
            "a.py": (
                '"""Canarydocstring here."""\n\n'
                'KEY = "canaryliteral-4711"  # canarycomment\n\n\n'
                "def named_function(argument):\n"
                "    # canaryinner comment\n"
                '    return call_it("canaryargument", f"canaryformat {argument}")\n'
            ),
            "b.js": (
                "// canaryjsline\n/* canaryjsblock */\n"
                "export function jsFunction() { return `canarytemplate` + 'canaryjsliteral'; }\n"
            ),
            "c.go": 'package c\n\n// canarygoline\nfunc R() string { return "canarygoliteral" }\n',
            "d.rb": "# canaryrubyline\ndef run\n  puts 'canaryrubyliteral', :ok\nend\n",
            "e.yml": "token: canaryyaml\n",
            "f.md": "# Heading\n\ncanaryparagraph\n\n```\ncanaryfenced\n```\n",
            "g.txt": "canaryplain text\n",
            "h.rs": '/// canaryrustdoc\nfn run() -> &\'static str { "canaryrustliteral" }\n',
            "i.java": 'class I { /** canaryjavadoc */ String s() { return "canaryjava"; } }\n',
            "j.c": '/* canarycblock */\nchar *s(void) { return "canarycliteral"; }\n',
            "k.php": "<?php\n// canaryphpline\nfunction s() { return 'canaryphpliteral'; }\n",
            "l.cs": 'class L { // canarycsline\n string S() { return "canarycsliteral"; } }\n',
            "m.ts": "// canarytsline\nexport const s = (): string => 'canarytsliteral';\n",
        },
        "Canarytitle of the commit",
    )
    repository.commit({"a.py": 'OTHER = "canarychanged"\n'})
    pack = pack_of(command, repository, "--base", "HEAD~1")
    assert "canarychanged" in json.dumps(pack["diff"])
    kept = [path for path in index_of(repository).rglob("*") if path.is_file()]
    assert {path.suffix for path in kept} >= {".sqlite", ".snap"}
    for path in kept:
        assert b"canary" not in path.read_bytes().lower(), path
    assert any(b"named_function" in path.read_bytes() for path in kept)  # the search does work
