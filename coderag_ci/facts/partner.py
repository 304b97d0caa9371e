"""Files that went with a changed file in most of its past changes, and are not in this one."""

from __future__ import annotations

from collections import Counter

from coderag_ci.facts.given import Given, fact
from coderag_ci.pack import Fact, Place

_NEWEST = 10  # commits of a changed file that are looked at
_FEWEST = 7  # of them in which the partner was, too; of fewer, half were in the next commit
_SHARE = 0.8  # of them in which it was, at least


def facts(given: Given) -> list[Fact]:
    """Return one fact a partner, by the changed file that it goes with most; surest first."""
    changed = {path for file in given.diff.files for path in (file.path, file.old_path)}
    best: dict[str, tuple[float, int, int, str]] = {}
    for path in sorted(changed & given.past.others.keys()):
        commits = given.past.others[path][:_NEWEST]
        times = Counter(other for files in commits for other in files)
        for other, together in times.items():
            if (
                together < _FEWEST
                or together < _SHARE * len(commits)
                or other in changed
                or not given.index.docs_of(other)
                or not given.written(other)
            ):
                continue
            sure = (together + 1) / (len(commits) + 2)
            best[other] = max(
                best.get(other, (0.0, 0, 0, "")), (sure, together, len(commits), path)
            )
    ordered = sorted(best.items(), key=lambda item: (-item[1][0], item[0]))
    return [
        fact(
            "partner not changed",
            f"`{other}` was changed in {together} of the last {of} commits that changed "
            f"`{path}`, and is not in this change",
            [Place(other, given.index.doc(given.index.docs_of(other)[0]).start)],
        )
        for other, (_, together, of, path) in ordered
    ]
