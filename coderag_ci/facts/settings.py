"""A change to our own settings: in CI it is judged by those of its base, which is worth knowing."""

from __future__ import annotations

from coderag_ci.config import FILE_NAME, keys, resolve, value_of
from coderag_ci.diff import FileDiff
from coderag_ci.errors import UsageError
from coderag_ci.facts.given import Given, fact
from coderag_ci.pack import Fact, Place


def facts(given: Given) -> list[Fact]:
    """Return one fact where the change has our config file: which settings it changes."""
    return [
        fact("settings", f"{FILE_NAME} {_how(given, file)}", [Place(file.path, 1)])
        for file in given.diff.files
        if FILE_NAME in (file.path, file.old_path)
    ]


def _how(given: Given, file: FileDiff) -> str:
    note = "; in CI those of the base count, not these"
    try:
        before, after = (
            _values(given, path, blob)
            for path, blob in ((file.old_path, file.old_blob), (file.path, file.new_blob))
        )
    except UsageError:
        return f"is changed, and one side of it is not valid{note}"
    changed = [key for key in keys() if before[key] != after[key]]
    if not changed:
        return "is changed, but no setting in it"
    return f"changes {', '.join(changed)}{note}"


def _values(given: Given, path: str, blob: str) -> dict[str, object]:
    """Return the settings of one side; the defaults where it has no such file."""
    there = path == FILE_NAME and blob.strip("0")
    text = "\n".join(given.texts.lines(blob)) if there else None
    found = resolve(text, path, {}, {}).config
    return {key: value_of(found, key) for key in keys()}
