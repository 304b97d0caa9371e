"""Which findings of linters a pack shows: those on changed lines, as far as there is room."""

from __future__ import annotations

from collections.abc import Iterable

from coderag_ci.diff import Diff
from coderag_ci.pack import Finding, Lint
from coderag_ci.sarif import LEVELS, Result
from coderag_ci.tokens import Counter

_SHARE = 0.25  # of the diff's quota, at most
_OVERHEAD = 15  # tokens of what stands around a line: marks and its link


def of_change(
    results: Iterable[Result] | None, diff: Diff, quota: int, count: Counter
) -> tuple[Lint | None, int]:
    """Return what to show of the findings, the worst first, and the tokens it uses.

    ``quota`` is the diff's. What is not shown is counted once, whichever files repeat it. Where
    no report was given, results are None and nothing is said.
    """
    if results is None:
        return None, 0
    added = {file.path: file.added_lines() for file in diff.files}
    seen = tuple(dict.fromkeys(results))
    open_ = [result for result in seen if not result.suppressed]
    inside = [result for result in open_ if result.spots]
    here = [found for result in inside if (found := _on_changed_lines(result, added))]
    here.sort(key=lambda f: (LEVELS.index(f.level), f.path, f.line, f.tool, f.rule, f.message))
    shown: list[Finding] = []
    used = 0
    for finding in here:
        cost = count(finding.text) + _OVERHEAD
        if used + cost <= quota * _SHARE:
            shown.append(finding)
            used += cost
    return Lint(
        tuple(shown),
        more=len(here) - len(shown),
        elsewhere=len(inside) - len(here),
        outside=len(open_) - len(inside),
        suppressed=len(seen) - len(open_),
    ), used


def _on_changed_lines(result: Result, added: dict[str, set[int]]) -> Finding | None:
    """Return a finding at its first changed line."""
    for path, start, end in result.spots:
        lines = [line for line in added.get(path, ()) if start <= line <= end]
        if lines:
            tool, rule, level, message = result[:4]
            return Finding(path, min(lines), tool, rule, level, message)
    return None
