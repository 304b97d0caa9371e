"""What changes cost that no one reviews: thousands of files, lines, hunks, renames, functions.

    python benchmarks/pathological.py [CASE ...] [--deadline SECONDS]

Each case is built in a temporary repository; the real command makes the pack of its last commit,
with an empty index and once more. Printed are the wall seconds of both runs, the peak resident
memory of the largest process of the first, the pack's tokens, and what its header says was cut.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

IDENTITY = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]
Write = Callable[[str, str], None]


def module(number: int, tax: int) -> str:
    """Return a small module that others use and that uses others."""
    return (
        f'"""Part {number} of the shop."""\n\n'
        f"from shop.part_{number // 2} import total_{number // 2}\n\n\n"
        f"def total_{number}(items, country):\n"
        f'    """Sum what part {number} holds."""\n'
        f"    net = total_{number // 2}(items, country) + {number}\n"
        f"    return net * {tax} / 100\n"
    )


def user(number: int) -> str:
    """Return a module that is never changed and uses a part."""
    return (
        f"from shop.part_{number} import total_{number}\n\n\n"
        f"def show_{number}(order):\n    print(total_{number}(order.items, order.country))\n"
    )


def users(write: Write) -> None:
    """Write what stands around each change."""
    for number in range(50):
        write(f"app/user_{number}.py", user(number))


def files(write: Write, after: bool) -> None:
    """10,000 files, one line changed in each."""
    for number in range(10_000):
        write(f"shop/part_{number}.py", module(number, 119 if after else 100))


def lines(write: Write, after: bool) -> None:
    """One file of 200,000 lines, all changed."""
    factor = 3 if after else 2
    body = "".join(
        f"def total_{n}(items):\n    net = sum(items)\n"
        f"    net *= {factor}\n    return net + {n}\n\n"
        for n in range(40_000)
    )
    write("shop/part_0.py", body)


def hunks(write: Write, after: bool) -> None:
    """One file of 5,000 hunks."""
    factor = 3 if after else 2
    body = "".join(
        f"def total_{n}(a, b, c):\n    a += 1\n    b += 1\n    c += 1\n    a *= {factor}\n"
        "    b += 2\n    c += 2\n    a += 3\n    return a + b + c\n\n\n"
        for n in range(5_000)
    )
    write("shop/part_0.py", body)


def functions(write: Write, after: bool) -> None:
    """5,000 changed functions in one file that takes 300 kB."""
    name = "items" if after else "things"
    body = "".join(
        f"def total_{n}({name}):\n    return sum({name}) + {n}\n\n" for n in range(5_000)
    )
    write("shop/part_0.py", body)


def renames(write: Write, after: bool) -> None:
    """5,000 files moved to another folder, a word changed in every second."""
    folder = "store" if after else "shop"
    for number in range(5_000):
        tax = 119 if after and number % 2 else 100
        write(f"{folder}/part_{number}.py", module(number, tax))


def vendored(write: Write, after: bool) -> None:
    """Vendored tree of 5,000 files added beside one changed line."""
    write("shop/part_0.py", module(0, 119 if after else 100))
    for number in range(5_000 if after else 0):
        write(f"vendor/big/part_{number}.py", module(number, 100) * 10)


CASES = {case.__name__: case for case in (files, lines, hunks, functions, renames, vendored)}


def build(directory: Path, case: Callable[[Write, bool], None]) -> None:
    """Make a repository of two commits: before and after."""

    def git(*arguments: str) -> None:
        command = ["git", "-C", str(directory), *IDENTITY, *arguments]
        subprocess.run(command, check=True, capture_output=True)

    def write(name: str, text: str) -> None:
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    git("init", "-q", "-b", "main", ".")
    for after in (False, True):
        for path in [p for p in directory.iterdir() if p.name != ".git"]:
            subprocess.run(["rm", "-rf", str(path)], check=True)
        users(write)
        case(write, after)
        git("add", "-A")
        git("commit", "-q", "-m", "Taxes rise" if after else "A shop")


def run(directory: Path, out: Path, deadline: float) -> tuple[float, int, int]:
    """Make the pack; returns wall seconds, peak memory in MB and the exit code."""
    command = [sys.executable, "-m", "coderag_ci", "context", "--repo", str(directory)]
    command += ["--base", "HEAD~1", "--format", "json", "--output", str(out), "--quiet"]
    start = time.perf_counter()
    process = subprocess.Popen([*command, "--deadline", str(deadline)])
    _, status, used = os.wait4(process.pid, 0)
    scale = 1 << 20 if sys.platform == "darwin" else 1 << 10
    seconds = time.perf_counter() - start
    return seconds, used.ru_maxrss // scale, os.waitstatus_to_exitcode(status)


def cut(pack: dict[str, object]) -> Iterator[str]:
    """Say what of the change and of the search is not in the pack."""
    shown = pack["diff"]
    change = pack["change"]
    assert isinstance(shown, list)
    assert isinstance(change, dict)
    yield f"{len(shown)} of {change['files']} files named"
    for what in ("hunks", "lines"):
        yield f"{sum(file[f'cut_{what}'] for file in shown)} {what} of these cut"
    for name in ("evidence", "facts"):
        found = pack[name]
        assert isinstance(found, list)
        yield f"{len(found)} {name}"
    for line in pack["degradations"]:  # type: ignore[attr-defined]
        yield f"DEGRADED {line}"
    for skip in pack["skipped"][:6]:  # type: ignore[index]
        yield f"skipped {skip['path']}: {skip['reason']}"


def main() -> None:
    """Build and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("cases", nargs="*", choices=[*CASES, []], default=list(CASES))
    parser.add_argument("--deadline", type=float, default=120)
    given = parser.parse_args()
    for name in given.cases:
        with tempfile.TemporaryDirectory() as folder:
            directory = Path(folder, "repo")
            directory.mkdir()
            build(directory, CASES[name])
            out = Path(folder, "pack.json")
            cold, memory, code = run(directory, out, given.deadline)
            warm, _, _ = run(directory, out, given.deadline)
            pack = json.loads(out.read_text(encoding="utf-8"))
            budget = pack["budget"]
            tokens = sum(budget[key] for key in ("used_diff", "used_facts", "used_evidence"))
            print(
                f"{name}: {cold:.1f} s, again {warm:.1f} s, {memory} MB, exit {code}, "
                f"{tokens} of {budget['total']} tokens, {out.stat().st_size // 1024} kB of JSON"
            )
            for line in cut(pack):
                print(f"    {line}")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
