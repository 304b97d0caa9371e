"""Commits that may become missed cases: a later one repaired what they broke or forgot.

A commit FIX refers to an earlier commit A where its subject or body names A's id (7 or more
digits) after words such as "Fixes:" or "regression in", at most 60 characters and no end of a
sentence between them. Where the words may tell of mere origin ("since", "introduced in"), the
subject or the paragraph has to speak of a fault. It may name A by its pull request "#123", after
words that can not speak of an issue, if one earlier commit alone has a subject that ends in
"(#123)". A pair is left out where one of these does not hold:

- FIX refers to at most three commits: more is a sweep, whose places belong to none of them;
- FIX and A have one parent each and change 1 to 30 files; FIX is no revert, A an ancestor of FIX;
- FIX changed code (see ``gold.is_code``) that is there in A under the same path, in lines that
  stood in A as they did before FIX, and that A did not change, nor the lines beside them;
- A changed code, too, and these lines give 1 to 20 units of gold (see ``gold``).

A case's query is all of A; its gold is in lines of A's tree.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from coderag_ci import diff
from coderag_ci.diff import FileDiff
from coderag_ci.eval.cases import Case
from coderag_ci.eval.gold import Candidate, Edit, Place, edits_of, is_code
from coderag_ci.gitrepo import Commit, GitRepo, Sides
from coderag_ci.parse.languages import language_of
from coderag_ci.pathrules import PathRules

_MOST_FILES = 30
_MOST_REFERENCES = 3
_NEAR = 60  # characters between the words and the commit that they speak of
_STRONG = (
    r"regress(?:ion|ed) (?:in|from|of|by|since)|broken? (?:by|in|since)|caused by"
    r"|follow(?:-| )?up (?:to|of|for|on)|missed (?:in|by)|forgotten in|overlooked in"
)
_WORDS = re.compile(
    rf"\b(?:(?P<origin>since|introduced (?:in|by|with))|fixe[sd]|{_STRONG})\b", re.IGNORECASE
)
_PULL_WORDS = re.compile(rf"\b(?:(?P<origin>introduced (?:in|by))|{_STRONG})\b", re.IGNORECASE)
_FAULT = re.compile(
    r"\b(?:fix(?:ed|ing)?|bugs?|regress\w*|broken?|breaks?|crash\w*|segfault\w*|leak\w*|wrong\w*"
    r"|incorrect\w*|forg[eo]t\w*|overlook\w*|missed|accidental\w*|unintention\w*)\b",
    re.IGNORECASE,
)
_COMMIT = re.compile(r"(?<![\w/.-])[0-9a-f]{7,64}(?![\w-])")
_PULL = re.compile(r"(?<![\w/])#(\d+)\b")
_OF_PULL = re.compile(r"\(#(\d+)\)$")
_STOP = re.compile(r"[.;!?]\s|\n\s*\n")
_REVERTS = re.compile(r"^(?:revert\b|this (?:partially )?reverts)", re.IGNORECASE | re.MULTILINE)


class _Known(NamedTuple):
    """What is kept of each commit of a history."""

    id: str
    parents: tuple[str, ...]
    date: str
    subject: str
    references: tuple[tuple[str, str], ...]  # (an id's beginning or #123, the words before it)
    reverts: bool


def candidates(
    repo: GitRepo, commit: str, rules: PathRules, name: str
) -> Iterator[Candidate | str]:
    """Yield for each commit of a history a candidate, or why it is none.

    A commit that refers to several others is yielded as often.
    """
    history = _History([_known(one) for one in repo.history(commit, changes=False)])
    for position, fix in enumerate(history.commits):
        reason = _why_not(fix)
        if reason:
            yield reason
            continue
        pairs: dict[_Known, str] = {}
        for target, words in fix.references:
            earlier = history.find(target, position)
            if earlier is not None and history.reaches(fix, earlier):
                pairs.setdefault(earlier, words)
        if not pairs:
            yield "refers to no earlier commit"
        if len(pairs) > _MOST_REFERENCES:
            yield f"refers to more than {_MOST_REFERENCES} commits"
            continue
        for earlier, words in pairs.items():
            yield _candidate(repo, fix, earlier, rules, name, words)


def _known(commit: Commit) -> _Known:
    text = f"{commit.subject}\n\n{commit.body}"
    return _Known(
        commit.id,
        commit.parents,
        commit.date,
        commit.subject,
        tuple(references(text)),
        bool(_REVERTS.search(text)),
    )


def references(text: str) -> Iterator[tuple[str, str]]:
    """Yield the commits and pull requests that a message says it repairs, and in which words."""
    for pattern, words in ((_COMMIT, _WORDS), (_PULL, _PULL_WORDS)):
        for target in pattern.finditer(text):
            before = text[max(0, target.start() - 2 * _NEAR) : target.start()]
            for said in list(words.finditer(before))[-1:]:  # the last are the nearest
                gap = before[said.end() :]
                if len(gap) > _NEAR or _STOP.search(gap):
                    continue
                if said["origin"] is None or _FAULT.search(_around(text, target.start())):
                    yield target.group(), " ".join(said.group().lower().split())


def _around(text: str, place: int) -> str:
    """Return a message's subject and the paragraph that a place is in."""
    start = text.rfind("\n\n", 0, place) + 1
    end = text.find("\n\n", place)
    return text.partition("\n")[0] + "\n" + text[start : end if end >= 0 else None]


class _History:
    """The commits of a history, the newest first, by id and by pull request."""

    def __init__(self, commits: Sequence[_Known]) -> None:
        self.commits = commits
        self._ids = sorted((commit.id, position) for position, commit in enumerate(commits))
        self._parents = {commit.id: commit.parents for commit in commits}
        self._pulls: dict[str, list[int]] = {}
        for position, commit in enumerate(commits):
            if found := _OF_PULL.search(commit.subject):
                self._pulls.setdefault(found.group(1), []).append(position)

    def find(self, target: str, after: int) -> _Known | None:
        """Return the one earlier commit that an id's beginning or #123 names."""
        if target.startswith("#"):
            places = [place for place in self._pulls.get(target[1:], ()) if place > after]
        else:
            at = bisect_left(self._ids, (target, -1))
            some = self._ids[at : at + 2]
            places = [place for commit, place in some if commit.startswith(target)]
        return self.commits[places[0]] if len(places) == 1 and places[0] > after else None

    def reaches(self, commit: _Known, ancestor: _Known) -> bool:
        """Whether a commit descends from another."""
        waiting, seen = [commit.id], {commit.id}
        while waiting:
            for parent in self._parents.get(waiting.pop(), ()):
                if parent == ancestor.id:
                    return True
                if parent not in seen:
                    seen.add(parent)
                    waiting.append(parent)
        return False


def _why_not(fix: _Known) -> str:
    """Say what, of the commit itself, keeps it from being a repair."""
    if len(fix.parents) != 1:
        return "merge" if fix.parents else "no parent"
    if not fix.references:
        return "refers to no earlier commit"
    return "revert" if fix.reverts else ""


def _candidate(
    repo: GitRepo, fix: _Known, earlier: _Known, rules: PathRules, name: str, words: str
) -> Candidate | str:
    if len(earlier.parents) != 1:
        return "repairs a merge or a first commit"
    repairs = [
        file for file in _changed(repo, fix) if _modified(file) and is_code(file.path, rules)
    ]
    if not repairs:
        return "changes no code, or too many files"
    change = _changed(repo, earlier)
    code = [file for file in change if file.kind == "text" and is_code(file.path, rules)]
    if not code:
        return "repairs a change of no code, or of too many files"
    places = _places(repo, fix, earlier, repairs, {file.path: file for file in change})
    if not places:
        return "repairs the same lines, or lines that came later"
    query = min(code, key=lambda file: (-(file.added + file.deleted), file.path))
    case = Case(
        id=f"{name.rpartition('/')[2]}-mi-{earlier.id[:12]}-{fix.id[:12]}",
        kind="missed",
        repo=name,
        base=earlier.parents[0],
        head=earlier.id,
        language=language_of(query.path).name,
        date=earlier.date,
        query_files=tuple(sorted(file.path for file in change)),
        subject=earlier.subject,
        n_code_files=len(code),
        n_changed_lines=sum(file.added + file.deleted for file in code),
        fix=fix.id,
        reference=words,
    )
    return Candidate(case, tuple(edit for file in code for edit in edits_of(file)), places)


def _changed(repo: GitRepo, commit: _Known) -> tuple[FileDiff, ...]:
    """Return what a commit changed; nothing where that is more than a person repairs."""
    sides = Sides(commit.parents[0], commit.id)
    if len(repo.raw_diff(sides)) > _MOST_FILES:
        return ()
    return diff.compute(repo, sides, None).files


def _modified(file: FileDiff) -> bool:
    regular = all(mode & 0o170000 == 0o100000 for mode in (file.old_mode, file.new_mode))
    return file.status == "modified" and file.kind == "text" and regular and bool(file.hunks)


def _places(
    repo: GitRepo,
    fix: _Known,
    earlier: _Known,
    repairs: Sequence[FileDiff],
    change: dict[str, FileDiff],
) -> tuple[Place, ...]:
    """Return what FIX changed, in lines of A, without what A itself changed."""
    between = {}
    if fix.parents[0] != earlier.id:
        sides = Sides(earlier.id, fix.parents[0])
        paths = [f":(top,literal){file.path}" for file in repairs]
        between = {file.path: file for file in diff.compute(repo, sides, None, paths).files}
    places = []
    for file in repairs:
        moved = between.get(file.path)
        if moved is not None and not _modified(moved):
            continue
        touched = change[file.path].touched_lines() if file.path in change else set()
        later = edits_of(moved) if moved is not None else []
        back = (_mapped(edit, later) for edit in edits_of(file) if edit.counts)
        edits = tuple(e for e in back if e is not None and touched.isdisjoint(_lines(e)))
        if edits:
            old_blob = moved.old_blob if moved is not None else file.old_blob
            places.append(Place(file.path, old_blob, file.new_blob, edits))
    return tuple(places)


def _lines(edit: Edit) -> range:
    first, last = edit.lines
    return range(first, last + 1)


def _mapped(edit: Edit, later: Sequence[Edit]) -> Edit | None:
    """Return an edit in lines of A; None where a later edit is in or between its lines.

    ``later``: what changed between A and the state before FIX.
    """
    first, last = edit.lines
    shift = 0
    for other in later:
        until = other.new + len(other.added)  # the first line behind it
        if other.new > last:
            break
        if until > first:
            return None
        shift = other.old + len(other.deleted) - until
    return edit._replace(old=edit.old + shift)
