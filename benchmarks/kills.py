"""Many processes on one index, killed at random: what is lost, damaged or different.

    python benchmarks/kills.py [--repo DIR] [--processes N] [--kills N] [--seed N]

The changes are 12 commits of a repository's history, spread over its newest 1,000; without one,
those of a repository that is made in a temporary folder: 240 files on main, and 12 branches of
ten new and ten changed files each. The pack of each change is made alone first, with an index
of its own. Then N processes at a time make packs of random changes on one index, which is
empty at first; one in ten runs begins with the snapshots deleted, one in twenty is ``index
--prune``. Every second process gets a SIGKILL at a random moment of its run, until there
were as many kills as asked for. At last each change is made once more.

Printed: runs that finished and that were killed, the packs that differ from the one made alone,
what was said on stderr, whether SQLite finds the file whole, and how many blobs the last runs
parsed: all, and those of changes that had been finished before. Ends with 1 where a pack
differs, a run fails, the file was damaged, or something that was kept is lost.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.repository import Repository  # noqa: E402  # after the path is set

COMMAND = [sys.executable, "-m", "coderag_ci"]
FILES, CHANGES, OF_A_CHANGE = 240, 12, 10
NEWEST = 1_000  # commits


@dataclass
class Tally:
    """What came of the runs so far."""

    killed: int = 0
    finished: Counter[int] = field(default_factory=Counter)  # by change
    pruned: int = 0
    differ: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    said: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)


def module(number: int, salt: str) -> str:
    """Return a file that uses its neighbours."""
    near = (number * 7 + 3) % FILES
    body = "".join(
        f"\n\ndef step_{number}_{k}_{salt}(order):\n    return total_{near}(order) + {k}\n"
        for k in range(12)
    )
    return (
        f"from shop.m{near} import total_{near}\n\n\n"
        f"def total_{number}(order):\n    return order.{salt} + {number}\n{body}"
    )


def build(folder: Path) -> Repository:
    """Make the repository."""
    repository = Repository.create(folder)
    files = {f"shop/m{n}.py": module(n, "net") for n in range(FILES)}
    repository.commit(files, "Open the shop")
    for branch in range(CHANGES):
        repository.git("checkout", "-q", "-b", f"b{branch}", "main")
        changed = {
            f"shop/m{(branch * OF_A_CHANGE + k) % FILES}.py": module(
                (branch * OF_A_CHANGE + k) % FILES, f"gross{branch}"
            )
            for k in range(OF_A_CHANGE)
        }
        new = {
            f"shop/n{branch}_{k}.py": module(FILES + k, f"new{branch}") for k in range(OF_A_CHANGE)
        }
        repository.commit({**changed, **new}, f"Work on {branch}")
    return repository


@dataclass(frozen=True)
class Subject:
    """A repository, and the changes whose packs are made: base and head of each."""

    path: Path
    changes: list[tuple[str, str]]


def made_up(folder: Path) -> Subject:
    """Return the repository that is made here."""
    return Subject(build(folder).path, [("main", f"b{n}") for n in range(CHANGES)])


def real(path: Path) -> Subject:
    """Return commits of a history, the same each time. Merges count from their first parent."""
    done = subprocess.run(
        ["git", "rev-list", "--first-parent", f"-{NEWEST}", "HEAD"],
        cwd=path,
        capture_output=True,
        check=True,
        text=True,
    )
    commits = done.stdout.split()[:-1]
    chosen = commits[:: len(commits) // CHANGES][:CHANGES]
    return Subject(path.resolve(), [(f"{one}~1", one) for one in chosen])


def command(subject: Subject, change: int, index: Path) -> list[str]:
    """Return the command that makes the pack of a change."""
    base, head = subject.changes[change]
    place = ["--repo", str(subject.path), "--index-dir", str(index)]
    return [*COMMAND, "context", "--format", "json", "--base", base, "--head", head, *place]


def start(arguments: list[str]) -> subprocess.Popen[bytes]:
    """Start a command."""
    return subprocess.Popen(
        arguments,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def made(subject: Subject, change: int, index: Path) -> tuple[str, int]:
    """Make a pack; its digest and the blobs that were parsed."""
    done = subprocess.run(
        command(subject, change, index), cwd=ROOT, capture_output=True, check=True
    )
    pack = json.loads(done.stdout)
    return pack["digest"], pack["trace"]["blobs_indexed"]


def work(
    subject: Subject, index: Path, alone: list[str], kills: int, seed: int, tally: Tally
) -> None:
    """Run and kill, one process at a time, until there were enough kills."""
    chance = random.Random(seed)  # noqa: S311  # no secret
    while tally.killed < kills:
        change = chance.randrange(CHANGES)
        prune = chance.random() < 0.05
        arguments = command(subject, change, index)
        if prune:
            place = ["--repo", str(subject.path), "--index-dir", str(index)]
            arguments = [*COMMAND, "index", "--prune", *place]
        elif chance.random() < 0.1:
            shutil.rmtree(index / "snapshots", ignore_errors=True)
        began = time.monotonic()
        process = start(arguments)
        patience = None
        if chance.random() < 0.5:
            with tally.lock:
                usual = statistics.median(tally.seconds[-50:]) if tally.seconds else 10.0
            patience = chance.uniform(0, 1.2 * usual)
        try:
            out, err = process.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            with tally.lock:
                tally.killed += 1
            continue
        with tally.lock:
            tally.said.update(_kind(line) for line in err.decode().splitlines())
            if process.returncode:
                tally.failed.append(f"{process.returncode}: {err.decode()[-400:]}")
            elif prune:
                tally.pruned += 1
            else:
                tally.finished[change] += 1
                tally.seconds.append(time.monotonic() - began)
                if (digest := json.loads(out)["digest"]) != alone[change]:
                    tally.differ.append(f"{change}: {digest}, alone {alone[change]}")


def _kind(line: str) -> str:
    """Return a line without what differs from run to run."""
    return "".join("#" if c.isdigit() else c for c in line)


def damage(index: Path) -> str:
    """Return what SQLite says of the file; ``ok`` where it is whole."""
    with contextlib.closing(sqlite3.connect(index / "store.sqlite")) as db:
        return str(db.execute("PRAGMA integrity_check").fetchone()[0])


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--repo", type=Path)
    parser.add_argument("--processes", type=int, default=16)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        subject = real(given.repo) if given.repo else made_up(Path(folder) / "repo")
        own, index = Path(folder) / "own", Path(folder) / "index"
        alone = [made(subject, change, own)[0] for change in range(CHANGES)]
        shutil.rmtree(own)
        began = time.monotonic()
        threads = [
            threading.Thread(
                target=work,
                args=(subject, index, alone, given.kills, given.seed * 1000 + n, tally),
            )
            for n in range(given.processes)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        seconds = time.monotonic() - began
        last = [made(subject, change, index) for change in range(CHANGES)]
        tally.differ += [f"{n} at last" for n, (digest, _) in enumerate(last) if digest != alone[n]]
        whole = damage(index)
        aside = len(list(index.glob("*damaged*")))
    print(f"{given.processes} processes, {seconds:.0f} s")
    print(f"killed {tally.killed}, finished {tally.finished.total()}, pruned {tally.pruned}")
    print(f"differ from the pack made alone: {len(tally.differ)}", *tally.differ[:5])
    print(f"failed: {len(tally.failed)}", *tally.failed[:5])
    print(f"SQLite: {whole}; set aside: {aside}")
    lost = sum(parsed for n, (_, parsed) in enumerate(last) if tally.finished[n])
    print(f"parsed at last: {sum(n for _, n in last)}, of finished changes {lost}")
    for line, times in tally.said.most_common(10):
        print(f"{times:5} × {line}")
    bad = tally.differ or tally.failed or whole != "ok" or aside or lost
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())
