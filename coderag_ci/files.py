"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
import tempfile

from coderag_ci.characters import visible
from coderag_ci.errors import SetupError


def write_whole(path: str, data: bytes) -> None:
    """Write beside the place, then rename; what is no regular file is written to directly.

    Raises SetupError, with what the system said.
    """
    try:
        if os.path.exists(path) and not stat.S_ISREG(os.stat(path).st_mode):
            with open(path, "wb") as device:
                device.write(data)
            return
        target = os.path.realpath(path)
        descriptor, beside = tempfile.mkstemp(dir=os.path.dirname(target), prefix=".coderag-")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            os.chmod(beside, _mode_of(target))
            os.replace(beside, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(beside)
            raise
    except OSError as error:
        raise SetupError(f"can not write {path}: {error.strerror}", "name another file") from error


def write_stdout(data: bytes) -> None:
    """Write to stdout; on a terminal, what it would act on is written out.

    Raises SetupError, unless the reader has left: then BrokenPipeError.
    """
    if sys.stdout is None:
        raise SetupError("stdout is closed", "name a file with --output")
    try:
        sys.stdout.flush()
        if sys.stdout.isatty():
            data = visible(data.decode("utf-8", "replace")).encode()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        discard_stdout()
        raise SetupError(f"can not write to stdout: {error.strerror}") from error


def discard_stdout() -> None:
    """Send what is still buffered nowhere, so that the end of the process does not fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _mode_of(path: str) -> int:
    """Return the mode of a file, or the one that a new file gets."""
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
