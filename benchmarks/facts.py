"""How often a fact is right: real commits, each with one file's hunks left out.

    python benchmarks/facts.py --repos DIR --index-dir DIR [--half report] [--out FILE] [NAME …]

DIR holds clones, ``owner+name`` each. Of a commit that changed several files, one is left out:
its hunks are not in the change, and the view is that of the commit with this file as it was.
So names dangle, calls lack an argument and partners are missing for real, and the whole commit
says what should have been changed. A fact is *confirmed* where the commit changed one of its
places in the left-out file (a use's line, a call within three lines, a twin's line), or, for a
partner, where it is the left-out file. What is not confirmed may still be right: the commit may
have forgotten it, and a call of a changed function need not change. So the share that is
confirmed is a lower bound. A statement that several left-out files of a commit give counts once.

A repository is in the half ``tune`` or ``report`` by a digest of its name.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import itertools
import json
import math
import re
import subprocess
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from coderag_ci import diff, history, index, view
from coderag_ci.config import Config
from coderag_ci.diff import Diff, FileDiff
from coderag_ci.eval import cochange
from coderag_ci.eval.gold import is_code
from coderag_ci.eval.sight import with_one_file
from coderag_ci.facts import dangling, partner, signature, twin
from coderag_ci.facts.given import Given
from coderag_ci.gitrepo import Commit, Entry, GitRepo, Sides
from coderag_ci.graph import Graph, packages
from coderag_ci.pack import Fact
from coderag_ci.pathrules import TEST, PathRules
from coderag_ci.store import Store
from coderag_ci.text import Texts, Tokens

_MOST_NAMES = 10  # that a change may have removed, looked up in head
_MOST_COMMITS = 400  # of a repository that are looked at
_MOST_LEFT_OUT = 4  # code files of a commit that are left out in turn
_NEAR = {"dangling": 1, "signature": 3, "twin": 1}  # lines around a place
MODULES = {"dangling": dangling, "signature": signature, "twin": twin, "partner": partner}
_WORD = re.compile(r"\w+")
_DEFINES = re.compile(
    r"\b(?:def|class|func|fn|function|interface|struct|enum|trait|type|module|define)"
    r"\s+(?:\([^)]*\)\s*)?(?:self\.)?(\w{4,})"
    r"|\b(?:const|let|var)\s+(\w{4,})\s*=\s*(?:async\b|function\b|\()"
    r"|\b(?!(?:return|new|await|throw|else|case|yield|not|and|or|in|if)\s)[\w>\]&*]+"
    r"\s+[*&]?(\w{4,})\s*\([^;]*$"
    r"|^.\s*(?:static |async )*(\w{4,})\s*\([^;]*\)\s*\{"
)


class Stated(NamedTuple):
    """A fact that a change without one file gave."""

    repo: str
    commit: str
    left_out: str
    kind: str
    text: str
    places: list[tuple[str, int]]
    confirmed: int

    @property
    def statement(self) -> tuple[str, str, str, str]:
        """What is stated, whichever file was left out."""
        return self.repo, self.commit, self.kind, self.text.split("`")[1]


def half_of(name: str) -> str:
    """Return the half that a repository is in."""
    return ("tune", "report")[hashlib.sha256(name.encode()).digest()[0] % 2]


def wilson(right: int, of: int) -> tuple[float, float]:
    """Return the 95 % score interval of a share (Wilson, 1927)."""
    z, share = 1.96, right / of
    middle = share + z * z / (2 * of)
    spread = z * math.sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    return (middle - spread) / (1 + z * z / of), (middle + spread) / (1 + z * z / of)


def commits(repo: GitRepo, rules: PathRules) -> Iterator[Commit]:
    """Yield the commits of a few files, two of them code that was there before, newest first."""
    for commit in repo.history("HEAD", changes=True):
        stays = [c for c in commit.changes if c.status == "M" and is_code(c.path, rules)]
        if cochange.why_not(commit) or len(stays) < 2:
            continue
        if not all(rules.flags(change.path) & TEST for change in stays):
            yield commit


def kinds_of(repo: GitRepo, commit: Commit, whole: Diff, kinds: Iterable[str]) -> set[str]:
    """Return the kinds of which a change can give a fact at all, right or wrong.

    Dangling: a file went or moved; or a name is on a deleted line that defines it, on no line of
    head (or of that file's) that does, and yet in head or in the deleted lines of another file.
    Signature: a name is defined on a
    deleted and on an added line of one file. Twin: lines of two files were replaced that
    had tokens in common which no added line has.
    """
    gone: dict[str, set[str]] = {}
    here: set[str] = set()
    found = set(kinds) & {"partner"}
    if _repeats(whole):
        found.add("twin")
    words: dict[str, set[str]] = {}
    moved: dict[str, set[str]] = {}
    for file in whole.files:
        old, new = _defined(file, "-"), _defined(file, "+")
        if old & new and file.status == "modified":
            found.add("signature")
        here |= new
        for name in old:
            gone.setdefault(name, set()).add(file.path)
        for name in old - new:
            moved.setdefault(name, set()).add(file.path)
        deleted = (line for hunk in file.hunks for line in hunk.lines if line[0] == "-")
        words[file.path] = {word for line in deleted for word in _WORD.findall(line)}
    if any(file.status in ("deleted", "renamed") for file in whole.files) or any(
        name in words[path] for name in moved for path in words.keys() - moved[name]
    ):
        found.add("dangling")
    elif "dangling" in kinds:
        names = sorted(gone.keys() - here)[:_MOST_NAMES]
        if any(
            _stays(repo, commit, name, any(name in words[p] for p in words.keys() - gone[name]))
            for name in names
        ):
            found.add("dangling")
    return found & set(kinds)


def _repeats(whole: Diff) -> bool:
    lines = (line for file in whole.files for hunk in file.hunks for line in hunk.lines)
    added = twin.grams(line[1:] for line in lines if line[0] == "+")
    files: dict[Tokens, set[str]] = {}
    for file in whole.files:
        if file.kind == "text" and twin.is_source(file.old_path):
            for _, text in twin.replaced(file):
                for tokens, _ in twin.gone(text, added):
                    files.setdefault(tokens, set()).add(file.old_path)
    return any(len(paths) >= twin.FEWEST_FILES for paths in files.values())


def _stays(repo: GitRepo, commit: Commit, name: str, forgotten: bool) -> bool:
    """Whether head has a name, or would have it but for a file, and nothing that defines it."""
    command = ["git", "-C", str(repo.git_dir), "grep", "-hwF", "-e", name, commit.id, "--"]
    out = subprocess.run(command, check=False, capture_output=True).stdout
    lines = out.decode("utf-8", "replace").split("\n")[:-1]
    return (bool(lines) or forgotten) and not any(name in _names(f"+{line}") for line in lines)


def _names(line: str) -> set[str]:
    """Return the names that a line of a diff may define."""
    return {name for some in _DEFINES.findall(line) for name in some if name}


def _defined(file: FileDiff, sign: str) -> set[str]:
    lines = (line for hunk in file.hunks for line in hunk.lines if line[0] == sign)
    return {name for line in lines for name in _names(line)}


class Bench:
    """One repository, its index and the rules."""

    def __init__(self, name: str, place: Path, index_dir: Path) -> None:
        self.name = name
        self.repo = GitRepo(str(place))
        self.rules = PathRules(Config())
        self.kept = Store(index_dir / name)
        self.seconds: dict[str, list[float]] = {kind: [] for kind in MODULES}

    def measure(self, kinds: Sequence[str], most: int) -> Iterator[Stated]:
        """Yield what is stated of some kinds, with each file of a commit left out in turn."""
        chosen: dict[str, list[tuple[Commit, Diff]]] = {kind: [] for kind in kinds}
        for commit in itertools.islice(commits(self.repo, self.rules), _MOST_COMMITS):
            wanted = [kind for kind, some in chosen.items() if len(some) < most]
            if not wanted:
                break
            whole = diff.compute(self.repo, Sides(commit.parents[0], commit.id), None)
            for kind in kinds_of(self.repo, commit, whole, wanted):
                chosen[kind].append((commit, whole))
        self._parse([one for some in chosen.values() for one in some])
        for kind, some in chosen.items():
            for commit, whole in some:
                yield from self._of(commit, whole, kind)

    def _parse(self, chosen: Sequence[tuple[Commit, Diff]]) -> None:
        """Parse what several commits need at once, so that parsers start once for all."""
        entries: dict[Entry, None] = {}
        for commit, whole in chosen:
            entries.update(
                dict.fromkeys(view.commit_view(self.repo, commit.id, self.rules).entries)
            )
            entries.update(
                (Entry(file.old_path, file.old_mode, file.old_blob), None)
                for file in whole.files
                if file.kind == "text" and file.status != "added"
            )
        seen = view.View(tuple(entries), chunk_size=self.rules.chunk_size)
        index.update(self.repo, seen, self.kept)

    def _of(self, commit: Commit, whole: Diff, kind: str) -> Iterator[Stated]:
        base = commit.parents[0]
        past = history.Past()
        if kind == "partner":
            paths = [file.path for file in whole.files]
            past = history.read(self.repo, base, paths, self.kept)
        files = [f for f in whole.files if f.status == "modified" and f.kind == "text"]
        if kind != "partner":
            files = [file for file in files if is_code(file.path, self.rules)]
            files.sort(key=lambda f: hashlib.sha256(f.path.encode()).digest())
            files = files[:_MOST_LEFT_OUT]
        given: Given | None = None
        for file in files:
            rest = Diff(tuple(f for f in whole.files if f is not file), ())
            if kind == "partner":  # which looks at paths alone
                given = given or self._given(
                    base, whole, view.commit_view(self.repo, commit.id, self.rules), past
                )
                given = dataclasses.replace(given, diff=rest)
            else:
                seen = with_one_file(self.repo, commit.id, base, file.path, self.rules)
                given = self._given(base, rest, seen, past)
            started = time.monotonic()
            found = MODULES[kind].facts(given)
            self.seconds[kind].append(time.monotonic() - started)
            for one in found:
                yield self._stated(commit, file, one)

    def _given(self, base: str, change: Diff, seen: view.View, past: history.Past) -> Given:
        texts = Texts(self.repo, seen)
        old = view.of_paths(
            self.repo, base, [f.old_path for f in change.files if f.status != "added"], self.rules
        )
        both = view.View(
            tuple(dict.fromkeys([*seen.entries, *old.entries])), chunk_size=seen.chunk_size
        )
        _, fresh = index.update(self.repo, both, self.kept)
        opened = index.open_index(seen, self.kept, self.rules, fresh).index
        size = seen.chunk_size
        new_rows = index.rows_of(
            self.kept, [(f.path, f.new_blob) for f in change.files], size, fresh
        )
        old_rows = index.rows_of(
            self.kept, [(f.old_path, f.old_blob) for f in change.files], size, fresh
        )
        graph = Graph(opened, packages(old_rows))
        paths = frozenset(entry.path for entry in seen.entries)
        return Given(
            self.repo,
            base,
            change,
            new_rows,
            old_rows,
            paths,
            opened,
            graph,
            texts,
            self.rules,
            past,
        )

    def _stated(self, commit: Commit, file: FileDiff, one: Fact) -> Stated:
        places = [(place.path, place.line) for place in one.places]
        if one.kind in _NEAR:
            changed = _old_lines(file)
            near = range(-_NEAR[one.kind], _NEAR[one.kind] + 1)
            confirmed = sum(
                path == file.path and any(line + n in changed for n in near)
                for path, line in places
            )
            if one.kind == "dangling":  # the file that was left out may define it again
                name = one.text.split("`")[1].rpartition(".")[2]
                confirmed += name in _defined(file, "+")
        else:
            confirmed = int(places[0][0] == file.path)
        return Stated(self.name, commit.id, file.path, one.kind, one.text, places, confirmed)


def _old_lines(file: FileDiff) -> set[int]:
    """Return the lines of the old side that are deleted or stand next to added ones."""
    found: set[int] = set()
    for hunk in file.hunks:
        for sign, old, _, _ in hunk.numbered():
            if sign == "-":
                found.add(old)
            elif sign == "+":
                found.update((old - 1, old))
    return found


def line_of(kind: str, stated: Sequence[Stated]) -> str:
    """Say of a kind: statements, those confirmed, the interval, changes and repositories."""
    best: dict[tuple[str, str, str, str], Stated] = {}
    for one in stated:
        known = best.get(one.statement)
        if known is None or one.confirmed > known.confirmed:
            best[one.statement] = one
    right = sum(one.confirmed > 0 for one in best.values())
    if not best:
        return f"{kind}: nothing stated"
    low, high = wilson(right, len(best))
    changes = len({(one.repo, one.commit) for one in best.values()})
    repos = len({one.repo for one in best.values()})
    return (
        f"{kind}: {right} of {len(best)} confirmed = {right / len(best):.3f} "
        f"[{low:.3f}, {high:.3f}]; {changes} changes of {repos} repositories"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", help="repositories in DIR; all by default")
    parser.add_argument("--repos", type=Path, required=True)
    parser.add_argument("--index-dir", type=Path, required=True, help="for the indexes; kept")
    parser.add_argument("--kinds", default=",".join(MODULES))
    parser.add_argument("--commits", type=int, default=20, help="of each repository and kind")
    parser.add_argument("--most-files", type=int, default=1500, help="of a repository")
    parser.add_argument("--half", choices=("tune", "report", "all"), default="all")
    parser.add_argument("--out", type=Path, help="what was stated, as JSON Lines")
    options = parser.parse_args()
    kinds = options.kinds.split(",")
    stated: list[Stated] = []
    seconds: dict[str, list[float]] = {kind: [] for kind in kinds}
    for name in options.names or sorted(path.name for path in options.repos.iterdir()):
        if options.half not in ("all", half_of(name)):
            continue
        bench = Bench(name, options.repos / name, options.index_dir)
        if len(bench.repo.tree("HEAD")) > options.most_files:
            continue
        started = time.monotonic()
        stated += bench.measure(kinds, options.commits)
        bench.kept.close()
        for kind in kinds:
            seconds[kind] += bench.seconds[kind]
        took = time.monotonic() - started
        print(f"{name}: {took:.0f} s, {len(stated)} stated so far", flush=True)
        if options.out is not None:
            lines = (json.dumps(one._asdict()) + "\n" for one in stated)
            options.out.write_text("".join(lines), encoding="utf-8")
    for kind in kinds:
        print(line_of(kind, [one for one in stated if one.kind.startswith(kind)]))
        if took_of := sorted(seconds[kind]):
            middle, late = took_of[len(took_of) // 2], took_of[int(len(took_of) * 0.95)]
            print(f"  seconds a change: median {middle:.3f}, 95th percentile {late:.3f}")


if __name__ == "__main__":
    main()
