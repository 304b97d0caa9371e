"""How long a pack takes, cold and warm, against a yardstick run in the same minute.

    python benchmarks/speed.py CLONE [--runs N] [--embedding-model DIR]

CLONE is a work tree or a bare repository. The change is its newest commit of one file.
Printed are the median wall seconds over the runs of ``context`` with an empty index
(cold), with an index of the commit before (one file) and once more (warm), the peak
resident memory of the largest process of a cold run, the size of the index, and each
time as a ratio to two yardsticks:

``read``   ``git cat-file --batch`` over all blobs of the commit, output discarded
``bare``   read, parse and walk every file that has a grammar with its query, count its
           words; in as many processes as there are CPUs, and nothing kept
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

COMMAND = [sys.executable, "-m", "coderag_ci"]


def git(clone: str, *arguments: str, stdin: bytes = b"") -> bytes:
    """Run git in the clone."""
    return subprocess.run(
        ["git", "-C", clone, *arguments], input=stdin, capture_output=True, check=True
    ).stdout


def blobs(clone: str, commit: str) -> list[tuple[str, str]]:
    """List (blob, path) of a commit's files."""
    found = []
    for record in git(clone, "ls-tree", "-r", "-z", commit).split(b"\0"):
        meta, _, path = record.partition(b"\t")
        if b" blob " in meta:
            found.append((meta.split()[2].decode(), path.decode("utf-8", "replace")))
    return found


def read_all(clone: str, ids: list[str]) -> float:
    """Seconds that git takes to hand out all blobs."""
    start = time.perf_counter()
    git(clone, "cat-file", "--batch", "--buffer", stdin="\n".join(ids).encode())
    return time.perf_counter() - start


def bare(clone: str, files: list[tuple[str, str]]) -> float:
    """Seconds of the bare prototype."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    start = time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(cpus) as pool:
        pool.starmap(_bare_part, [(clone, files[i::cpus]) for i in range(cpus)])
    return time.perf_counter() - start


def _bare_part(clone: str, files: list[tuple[str, str]]) -> int:
    import tree_sitter

    from coderag_ci.parse.languages import grammar, language_of, query_source

    word = re.compile(rb"\w+")
    out = git(
        clone, "cat-file", "--batch", "--buffer", stdin="\n".join(b for b, _ in files).encode()
    )
    at = total = 0
    queries: dict[str, tree_sitter.Query] = {}
    for _, path in files:
        line_end = out.index(b"\n", at)
        size = int(out[at:line_end].split()[2])
        data = out[line_end + 1 : line_end + 1 + size]
        at = line_end + size + 2
        language = language_of(path)
        if not language.module or size > 1 << 20:
            continue
        name = language.name
        if name not in queries:
            queries[name] = tree_sitter.Query(grammar(name), query_source(name))
        tree = tree_sitter.Parser(grammar(name)).parse(data)
        total += len(tree_sitter.QueryCursor(queries[name]).captures(tree.root_node))
        total += len(Counter(word.findall(data)))
    return total


def context(clone: str, index_dir: str, extra: list[str]) -> tuple[float, dict[str, object]]:
    """Seconds of one run, and its pack."""
    with tempfile.NamedTemporaryFile(suffix=".json") as output:
        start = time.perf_counter()
        subprocess.run(
            [*COMMAND, "context", "--repo", clone, "--index-dir", index_dir, "--quiet",
             "--format", "json", "--output", output.name, *extra],
            check=True,
        )  # fmt: skip
        seconds = time.perf_counter() - start
        return seconds, json.loads(Path(output.name).read_text(encoding="utf-8"))


def peak(clone: str, index_dir: str, extra: list[str]) -> float:
    """Peak RSS in MB of the largest process of one run, in a child of its own."""
    code = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    )
    out = subprocess.run(
        [sys.executable, "-c", code, *COMMAND, "context", "--repo", clone, "--index-dir", index_dir,
         "--quiet", "--output", os.devnull, *extra],
        check=True, capture_output=True,
    ).stdout  # fmt: skip
    scale = 1024 if sys.platform != "darwin" else 1024 * 1024
    return int(out) / scale


def warm_index(clone: str, index_dir: str, commit: str) -> None:
    """Bring an index up to date with a commit."""
    subprocess.run(
        [*COMMAND, "index", "--repo", clone, "--index-dir", index_dir, "--quiet", "--ref", commit],
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip


def one_file_commit(clone: str) -> str:
    """Return the newest commit that changes one file that has a grammar."""
    from coderag_ci.parse.languages import language_of

    log = git(clone, "log", "--no-merges", "--max-count=500", "--name-only", "--format=%x00%H")
    for record in log.decode("utf-8", "replace").split("\0")[1:]:
        commit, *paths = record.split()
        if len(paths) == 1 and language_of(paths[0]).module:
            return commit
    raise SystemExit("no commit of one file among the last 500")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clone")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--embedding-model", default="none")
    given = parser.parse_args()
    clone, commit = given.clone, one_file_commit(given.clone)
    model = ["--embedding-model", given.embedding_model]
    extra = ["--base", f"{commit}~1", "--head", commit, *model]
    files = blobs(clone, commit)
    times: dict[str, list[float]] = {name: [] for name in ("cold", "one file", "warm")}
    reads: list[float] = []
    bares: list[float] = []
    memory = 0.0
    for _ in range(given.runs):
        with tempfile.TemporaryDirectory() as directory:
            index, other = str(Path(directory, "a")), str(Path(directory, "b"))
            reads.append(read_all(clone, [blob for blob, _ in files]))
            bares.append(bare(clone, files))
            seconds, pack = context(clone, index, extra)
            times["cold"].append(seconds)
            times["warm"].append(context(clone, index, extra)[0])
            size = sum(f.stat().st_size for f in Path(index).rglob("*") if f.is_file()) / 1e6
            warm_index(clone, other, f"{commit}~1")
            times["one file"].append(context(clone, other, extra)[0])
            memory = max(memory, peak(clone, str(Path(directory, "c")), extra))
    read, prototype = statistics.median(reads), statistics.median(bares)
    print(f"{clone} at {commit[:12]}: {len(files)} files, {pack['index']['chunks']} chunks")
    print(f"yardsticks: read {read:.2f} s, bare {prototype:.2f} s ({given.runs} runs, medians)")
    for label, values in times.items():
        value = statistics.median(values)
        ratios = f"{value / read:6.1f} × read  {value / prototype:5.2f} × bare"
        print(f"{label:9} {value:6.2f} s  {ratios}")
    print(f"index {size:.1f} MB, peak RSS {memory:.0f} MB")


if __name__ == "__main__":
    main()
