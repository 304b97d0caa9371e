"""Phrases that the formats share."""

from __future__ import annotations

from collections.abc import Callable

from coderag_ci.diff import Hunk
from coderag_ci.pack import Lint, Pack


def one_line(text: str) -> str:
    """Fold white space of any kind into single spaces."""
    return " ".join(text.split())


def counted(number: int, noun: str) -> str:
    """Return ``1 file`` or ``3 files``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def not_listed(lint: Lint) -> str:
    """Count the findings of linters that are not shown; empty where all are."""
    counts = {
        "more on changed lines": lint.more,
        "on other lines": lint.elsewhere,
        "outside the repository": lint.outside,
        "suppressed": lint.suppressed,
    }
    told = [f"{number:,} {where}" for where, number in counts.items() if number]
    return f"Not listed: {', '.join(told)}." if told else ""


def redaction(pack: Pack) -> str:
    """Say how many secrets of which kind were taken out, or that none were looked for."""
    if pack.redacted is None:
        return "Not redacted: secrets were left in, by --no-redact."
    told = ", ".join(f"{kind} ({number})" for kind, number in pack.redacted.items())
    return f"Redacted: {told}." if told else ""


def hunk_header(hunk: Hunk) -> str:
    """Return the ``@@`` line of a hunk."""
    section = f" {hunk.section}" if hunk.section else ""
    return f"@@ -{hunk.old_start},{hunk.old_count} +{hunk.new_start},{hunk.new_count} @@{section}"


def change_line(pack: Pack, mark: Callable[[str], str]) -> str:
    """Say what was compared and how large it is."""
    change = pack.change
    right = {"staged": "the staged changes", "worktree": "the working tree"}.get(
        change.kind, mark(change.head[:12])
    )
    left = mark(change.merge_base[:12]) if change.merge_base else "the empty tree"
    moved = ""
    if change.merge_base and change.base != change.merge_base:
        moved = f" (merge base with {mark(change.base[:12])})"
    return (
        f"{left}{moved} → {right}: {counted(change.files, 'file')}, "
        f"+{change.added} −{change.deleted}."
    )
