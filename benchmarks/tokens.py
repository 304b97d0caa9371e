"""The token estimate against o200k_base, on passages of 40 lines from given clones.

    python benchmarks/tokens.py O200K_RANKS CLONE [CLONE …]

O200K_RANKS is tiktoken's ``o200k_base.tiktoken`` file (token in base64, rank), or
``o200k_base.cjs`` of the npm package js-tiktoken. Needs tiktoken.
"""

from __future__ import annotations

import base64
import json
import random
import re
import subprocess
import sys
from pathlib import Path

import tiktoken

from coderag_ci.tokens import estimate

_PATTERN = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
    r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_LINES = 40
_FILES = 60
_SUFFIXES = (
    ".py", ".go", ".ts", ".tsx", ".js", ".c", ".h", ".rs", ".tcl", ".md", ".rst", ".json", ".toml",
    ".yaml", ".graphql",
)  # fmt: skip


def ranks(path: Path) -> dict[bytes, int]:
    """Read the vocabulary."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".cjs":
        pairs = (line.split() for line in text.splitlines() if line)
        return {base64.b64decode(token): int(rank) for token, rank in pairs}
    match = re.search(r'bpe_ranks"?:\s*("(?:[^"\\]|\\.)*")', text)
    assert match
    found = {}
    for line in json.loads(match[1]).split("\n"):
        if line:
            _, first, *tokens = line.split(" ")
            for offset, token in enumerate(tokens):
                found[base64.b64decode(token)] = int(first) + offset
    return found


def passages(clone: str) -> list[str]:
    """Return passages of some files of a clone, the same ones each time."""
    out = subprocess.run(
        ["git", "-C", clone, "ls-tree", "-r", "--name-only", "-z", "HEAD"],
        capture_output=True, check=True,
    ).stdout  # fmt: skip
    paths = sorted(p for p in out.decode("utf-8", "replace").split("\0") if p.endswith(_SUFFIXES))
    random.Random(1).shuffle(paths)  # noqa: S311  # the same passages each time
    found = []
    for path in paths[:_FILES]:
        data = subprocess.run(
            ["git", "-C", clone, "show", f"HEAD:{path}"], capture_output=True, check=True
        ).stdout
        lines = data.decode("utf-8", "replace").split("\n")
        parts = ("\n".join(lines[i : i + _LINES]) for i in range(0, len(lines), _LINES))
        found += [part for part in parts if len(part) > 200]
    return found


def main() -> None:
    """Measure and print."""
    encoding = tiktoken.Encoding(
        "o200k_base",
        pat_str=_PATTERN,
        mergeable_ranks=ranks(Path(sys.argv[1])),
        special_tokens={"<|endoftext|>": 199999},
    )
    texts = [text for clone in sys.argv[2:] for text in passages(clone)]
    true = [len(encoding.encode(text, disallowed_special=())) for text in texts]
    ratios = sorted(estimate(text) / count for text, count in zip(texts, true, strict=True))
    total = sum(map(estimate, texts)) / sum(true)
    print(f"{len(texts)} passages; estimate / o200k_base: smallest {ratios[0]:.3f}, ", end="")
    print(
        f"median {ratios[len(ratios) // 2]:.3f}, largest {ratios[-1]:.3f}, total {total:.3f}; ",
        end="",
    )
    print(f"below 1: {sum(ratio < 1 for ratio in ratios)}")


if __name__ == "__main__":
    main()
