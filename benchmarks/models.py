"""What the embedding model costs: seconds to load, texts a second, memory over thousands of texts.

    python benchmarks/models.py [MODEL] --index-dir DIR [--texts 5000] [--repo CLONE]

Embeds the first chunks of a clone as the product does, one text a call, and prints the peak RSS
every fifth of the way. ``taskset -c 0`` in front gives the figures of one CPU.
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path

from coderag_ci import index, store
from coderag_ci.config import Config
from coderag_ci.dense import passage
from coderag_ci.gitrepo import GitRepo
from coderag_ci.models import Embedder
from coderag_ci.pathrules import PathRules
from coderag_ci.text import Texts
from coderag_ci.view import commit_view
from coderag_ci.workers import cpu_count


def main() -> None:
    """Read the arguments, embed, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", default="bundled")
    parser.add_argument("--texts", type=int, default=5000)
    parser.add_argument("--repo", default=".")
    parser.add_argument("--index-dir", type=Path, required=True)
    given = parser.parse_args()
    repo, rules = GitRepo(given.repo), PathRules(Config())
    view = commit_view(repo, repo.resolve("HEAD"), rules)
    kept = store.Store(given.index_dir)
    _, fresh = index.update(repo, view, kept)
    found = index.open_index(view, kept, rules, fresh).index
    texts = Texts(repo, view)
    passages = []
    for number in range(min(given.texts, found.size)):
        texts.load([found.doc(number).blob])
        passages.append(passage(found.doc(number), texts))
    kept.close()
    began = time.perf_counter()
    embedder = Embedder(given.model)
    embedder.embed(["one"])
    print(f"CPUs {cpu_count()}, loaded in {time.perf_counter() - began:.2f} s, peak {rss()} MB")
    began, step = time.perf_counter(), max(1, len(passages) // 5)
    for start in range(0, len(passages), step):
        for at in range(start, min(start + step, len(passages)), 32):
            embedder.embed(passages[at : min(at + 32, start + step)])
        done = min(start + step, len(passages))
        rate = done / (time.perf_counter() - began)
        print(f"{done} texts, {rate:.1f} a second, peak {rss()} MB", flush=True)


def rss() -> int:
    """Return the peak RSS of this process in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


if __name__ == "__main__":
    main()
