"""Plain git hooks: scripts that call ``coderag-ci hook run``, after the hook that was there."""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from coderag_ci.errors import SetupError
from coderag_ci.files import write_whole

STAGES = ("pre-commit", "pre-push")
_MARK = "# Written by coderag-ci hook install; coderag-ci hook uninstall takes it away."
_KEPT = ".before-coderag-ci"

_PRE_COMMIT = """\
#!/bin/sh
{mark}
if [ -x "$0{kept}" ]; then
    "$0{kept}" "$@" || exit $?
fi
command={command}
[ -x "$command" ] || command=$(command -v coderag-ci) || {{
    echo "coderag-ci: not found, so nothing is shown; coderag-ci hook install mends it" >&2
    exit 0
}}
exec "$command" hook run {arguments}
"""
_PRE_PUSH = """\
#!/bin/sh
{mark}
pushed=$(cat)
lines() {{
    [ -z "$pushed" ] || printf '%s\\n' "$pushed"
}}
if [ -x "$0{kept}" ]; then
    lines | "$0{kept}" "$@" || exit $?
fi
command={command}
[ -x "$command" ] || command=$(command -v coderag-ci) || {{
    echo "coderag-ci: not found, so nothing is shown; coderag-ci hook install mends it" >&2
    exit 0
}}
lines | "$command" hook run {arguments} -- "$@"
"""
_SCRIPTS = {"pre-commit": _PRE_COMMIT, "pre-push": _PRE_PUSH}


class Status(NamedTuple):
    """What stands where git looks for a hook.

    ``kept``: the hook that ours runs first; ``foreign``: there is one that is not ours.
    """

    stage: str
    path: Path
    ours: bool
    foreign: bool
    kept: Path | None


def status(directory: Path, stage: str) -> Status:
    """Say what stands in a hooks directory for a stage."""
    path = directory / stage
    ours = _is_ours(path)
    kept = path.with_name(path.name + _KEPT)
    exists = os.path.lexists(path)
    return Status(stage, path, ours, exists and not ours, kept if os.path.lexists(kept) else None)


def install(directory: Path, stage: str, arguments: Sequence[str]) -> Status:
    """Write our hook; one that is there is moved aside and run first.

    Raises SetupError where that would overwrite what we did not write.
    """
    if directory.name == "_" and directory.parent.name == ".husky":
        raise SetupError(
            f"husky writes {directory} anew at each install",
            f"put this line into .husky/{stage} instead: coderag-ci hook run --stage {stage}",
        )
    found = status(directory, stage)
    kept = found.path.with_name(found.path.name + _KEPT)
    if found.foreign and found.kept:
        raise SetupError(
            f"{found.path} and {kept.name} beside it are both hooks that others wrote",
            f"make one of the two, and remove {kept.name}",
        )
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if found.foreign:
            os.rename(found.path, kept)
        try:
            script = _script(stage, arguments).encode("utf-8", "surrogateescape")
            write_whole(str(found.path), script)
            mode = found.path.stat().st_mode
            found.path.chmod(mode | (mode & 0o444) >> 2)  # may be run by whoever may read it
        except BaseException:
            if found.foreign:
                os.rename(kept, found.path)
            raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise SetupError(
            f"hooks can not be written to {directory}: {reason}",
            "make it writable, or set core.hooksPath to a folder that is",
        ) from error
    return status(directory, stage)


def uninstall(directory: Path, stage: str) -> Status:
    """Take our hook away and put the one that was there back; returns what was found before.

    A hook that is not ours is left as it is. Raises SetupError.
    """
    found = status(directory, stage)
    if not found.ours:
        return found
    try:
        if found.kept:
            os.replace(found.kept, found.path)
        else:
            found.path.unlink()
    except OSError as error:
        raise SetupError(f"{found.path} can not be removed: {error.strerror}") from error
    return found


def _script(stage: str, arguments: Sequence[str]) -> str:
    return _SCRIPTS[stage].format(
        mark=_MARK,
        kept=_KEPT,
        command=shlex.quote(_command()),
        arguments=shlex.join(["--stage", stage, *arguments]),
    )


def _command() -> str:
    """Return the path of our command: the one that runs, the one beside Python, or its name.

    Never ``python -m``, which would import what lies in the repository.
    """
    name = "coderag-ci"
    for path in (sys.argv[0], os.path.join(os.path.dirname(sys.executable), name)):
        if os.path.basename(path) == name and os.path.isabs(path) and os.access(path, os.X_OK):
            return path
    return shutil.which(name) or name


def _is_ours(path: Path) -> bool:
    with contextlib.suppress(OSError), path.open(encoding="utf-8", errors="replace") as file:
        return [file.readline(), file.readline()][1].rstrip("\n") == _MARK
    return False
