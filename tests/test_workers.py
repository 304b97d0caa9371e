"""Parser processes: one that hangs or dies costs the file that it was on, no more."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

import coderag_ci
from coderag_ci import workers
from coderag_ci.parse.row import decode_row
from tests.conftest import Command
from tests.packs import NEW_TAX, SHOP, pack_of
from tests.repository import Repository

SECONDS = 2.0  # also what a process may take to start on a busy machine
# Speaks the protocol of coderag_ci.parse.worker, and misbehaves where the content says so.
FAKE = """\
import os, pathlib, sys, threading
sys.path.insert(0, {home!r})
from coderag_ci.parse import parser, worker
from coderag_ci.parse.row import encode_row
import msgspec
log = pathlib.Path({log!r})
with log.open("a") as out:
    print(os.getpid(), file=out)
while (frame := worker.read_frame(sys.stdin.buffer)) is not None:
    language, data, limit = msgspec.msgpack.decode(frame, type=tuple[str, bytes, int])
    if b"HANG" in data:
        threading.Event().wait()
    if b"ONCE" in data and len(log.read_text().split()) == 1:
        os._exit(9)
    if b"DIE" in data:
        os._exit(9)
    if b"HALF" in data:
        sys.stdout.buffer.write(b"\\xff\\0\\0\\0half an answer")
        sys.stdout.flush()
        os._exit(0)
    if b"CRASH" in data:
        os.abort()
    worker.write_frame(sys.stdout.buffer, encode_row(parser.parse(data, language, limit)))
    if b"DEAF" in data:
        threading.Event().wait()
"""


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Replace the parser process by one that misbehaves; returns its log of process ids."""
    home = str(Path(coderag_ci.__file__).resolve().parent.parent)
    log = tmp_path / "pids"
    program = tmp_path / "worker.py"
    program.write_text(FAKE.format(home=home, log=str(log)))
    launcher = tmp_path / "python"
    launcher.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{program}"\n')
    launcher.chmod(launcher.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(sys, "executable", str(launcher))
    return log


def parse(contents: list[bytes], seconds: float = SECONDS) -> list[str]:
    """Parse contents as Python; returns why each was skipped, in order of the contents."""
    jobs = [(number, "python", data) for number, data in enumerate(contents)]
    found = dict(workers.parse_all(jobs, len(jobs), seconds))
    assert sorted(found) == list(range(len(contents)))
    return [decode_row(found[number]).skipped for number in range(len(contents))]


def gone(pids: Path) -> bool:
    """Whether all logged processes have ended and been waited for."""
    if not pids.exists():  # no process came so far as to write its id
        return True
    return not any(os.path.exists(f"/proc/{pid}") for pid in pids.read_text().split())


@pytest.mark.parametrize(
    ("marker", "reason", "started"),
    [
        (b"HANG", "parser took longer than", 2),
        (b"DIE", "parser died", 3),
        (b"HALF", "parser died", 3),
        (b"CRASH", "parser died", 3),
    ],
)
def test_a_parser_that_fails_costs_one_file(
    fake: Path, marker: bytes, reason: str, started: int
) -> None:
    """One strange file would stop the index of a whole repository; a death is tried twice."""
    good = b"def fine():\n    return 1\n"
    first, bad, last = parse([good, b"# " + marker + b"\n" + good, good])
    assert (first, last) == ("", "")
    assert bad.startswith(reason)
    assert len(fake.read_text().split()) == started
    assert gone(fake)


def test_a_parser_that_was_killed_from_outside_is_tried_again(fake: Path) -> None:
    """A machine that is short of memory kills a process that did nothing wrong."""
    good = b"def fine():\n    return 1\n"
    assert parse([good, b"# ONCE\n" + good, good]) == ["", "", ""]
    assert len(fake.read_text().split()) == 2
    assert gone(fake)


def test_after_three_hung_files_the_rest_gets_little_time(
    fake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hundred files made to hang would otherwise hold a run for a quarter of an hour."""
    monkeypatch.setattr(workers, "_HURRIED_SECONDS", 0.2)
    asked: list[float] = []
    real = workers._Worker.ask

    def ask(self: workers._Worker, what: tuple[str, bytes, int], seconds: float) -> bytes | str:
        asked.append(seconds)
        return real(self, what, seconds)

    monkeypatch.setattr(workers._Worker, "ask", ask)
    hanging = [b"# HANG %d\n" % number for number in range(4)]
    reasons = parse([*hanging, b"def fine():\n    return 1\n"], 0.3)
    assert asked == [0.3, 0.3, 0.3, 0.2, 0.2]
    assert all(reason.startswith(workers.HUNG) for reason in reasons[:4])
    assert gone(fake)


def test_a_parser_that_stops_reading_does_not_block_the_index(fake: Path) -> None:
    """A file larger than a pipe would hang the run for ever when nobody reads it."""
    good = b"def fine():\n    return 1\n"
    large = good + b"# filler\n" * 40_000
    first, second, last = parse([b"# DEAF\n" + good, large, good])
    assert (first, last) == ("", "")
    assert second.startswith("parser took longer than")
    assert gone(fake)


def test_many_files_are_parsed_by_several_processes(
    fake: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One file that fails while others are under way must not take theirs with it."""
    monkeypatch.setattr(workers, "cpu_count", lambda: 3)
    contents = [b"def f_%d():\n    return 1\n" % n for n in range(60)]
    contents[10] += b"# DIE\n"
    contents[40] += b"# HANG\n"
    skipped = parse(contents)
    assert {n for n, reason in enumerate(skipped) if reason} == {10, 40}
    assert 2 <= len(fake.read_text().split()) <= 5
    assert gone(fake)


def test_an_abandoned_run_ends_its_processes(fake: Path) -> None:
    """Each interrupted run would leave processes behind that eat memory."""
    jobs = [(n, "python", b"def f_%d():\n    return 1\n" % n) for n in range(400)]
    answers = workers.parse_all(jobs, len(jobs), SECONDS)
    next(answers)
    answers.close()
    assert gone(fake)


def test_an_error_while_files_are_read_reaches_the_caller(fake: Path) -> None:
    """An error of git on the way would end in an index that silently lacks files."""

    def broken():
        yield 0, "python", b"def fine():\n    return 1\n"
        raise ValueError("git ended early")

    with pytest.raises(ValueError, match="git ended early"):
        list(workers.parse_all(broken(), 2, SECONDS))
    assert gone(fake)


def test_nothing_to_parse_starts_nothing(fake: Path) -> None:
    """A warm index would pay for a process that has nothing to do."""
    assert list(workers.parse_all([], 0, SECONDS)) == []
    assert not fake.exists()


@pytest.mark.usefixtures("fake")
def test_a_file_that_hangs_the_parser_is_listed_in_the_pack(
    repository: Repository, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader would take silence about a file as: there is nothing of interest in it."""
    real = workers.parse_all
    monkeypatch.setattr(workers, "parse_all", lambda jobs, n, *_: real(jobs, n, SECONDS))
    repository.commit({**SHOP, "shop/odd.py": "# HANG\ndef odd():\n    return tax_rate()\n"})
    repository.commit({"shop/tax.py": NEW_TAX})
    pack = pack_of(command, repository, "--base", "HEAD~1")
    assert pack["skipped"] == [{"path": "shop/odd.py", "reason": "deadline: no time to parse"}]
    assert {piece["path"] for piece in pack["evidence"]} >= {"shop/price.py", "shop/invoice.py"}
    shown = command("context", "--repo", str(repository.path), "--base", "HEAD~1")
    assert "shop/odd.py" in shown.out
    assert "no time to parse" in shown.out
    result = command("index", "--repo", str(repository.path))
    assert result.code == 0
    assert "skipped shop/odd.py: deadline: no time to parse" in result.err


def test_nothing_of_the_analysed_repository_is_imported(
    repository: Repository, command: Command
) -> None:
    """Reviewing a stranger's change would run the stranger's code with CI's secrets."""
    trap = f"open({str(repository.path / 'ran')!r}, 'w').close()\nraise SystemExit(1)\n"
    names = ("numpy.py", "msgspec.py", "tree_sitter.py", "tree_sitter_python.py", "encodings.py")
    repository.commit(
        {
            **SHOP,
            **dict.fromkeys(names, trap),
            "coderag_ci/__init__.py": trap,
            "coderag_ci/parse/__init__.py": trap,
            "coderag_ci/parse/worker.py": trap,
            "sitecustomize.py": trap,
            "usercustomize.py": trap,
        }
    )
    repository.commit({"shop/tax.py": NEW_TAX})
    result = command("context", "--base", "HEAD~1", "--format", "json", cwd=repository.path)
    assert result.code == 0, result.err
    assert not (repository.path / "ran").exists()
    assert '"path": "shop/price.py"' in result.out
    assert '"skipped": []' in result.out
