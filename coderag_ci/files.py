"""Files that somebody named: read at once, written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import sys
import tempfile

from coderag_ci.characters import visible
from coderag_ci.errors import SetupError

_MOST_BYTES = 1 << 30
_PLAIN = os.O_NOFOLLOW | os.O_NONBLOCK  # no link is followed, no pipe waited for


def read_whole(path: str, hint: str) -> bytes:
    """Read a file; a pipe, too, if somebody writes to it.

    Raises SetupError, with what the system said and a hint.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # else a pipe waits for a writer
        with os.fdopen(descriptor, "rb") as file:
            os.set_blocking(descriptor, True)
            data = file.read(_MOST_BYTES + 1)
            idle = not data and stat.S_ISFIFO(os.fstat(descriptor).st_mode)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = error.strerror if isinstance(error, OSError) else error
        raise SetupError(f"{path}: {reason}", hint) from error
    if idle:
        raise SetupError(f"{path}: a pipe that nobody writes to", hint)
    if len(data) > _MOST_BYTES:
        raise SetupError(f"{path} is larger than 1 GiB", hint)
    return data


class Journal:
    """Lines that several processes of one run add to a file; no other run may, meanwhile."""

    def __init__(self, path: str) -> None:
        """Open it and keep other runs out.

        Raises SetupError where another run has it, or where it is no plain file.
        """
        self.path = path
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _PLAIN, 0o666)
            if not stat.S_ISREG(os.fstat(self._descriptor).st_mode):
                raise OSError(errno.EINVAL, "it is not a regular file")
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise SetupError(
                f"another run writes to {path}", "wait, or name another file"
            ) from error
        except OSError as error:
            raise _unwritable(path, error) from error

    def read(self) -> bytes:
        """Return what is in it."""
        with os.fdopen(os.dup(self._descriptor), "rb") as file:
            file.seek(0)
            return file.read()

    def cut(self, size: int) -> None:
        """Keep the first bytes alone."""
        os.ftruncate(self._descriptor, size)

    def remove(self) -> None:
        """Delete the file."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.path)

    def close(self) -> None:
        """Let other runs in."""
        os.close(self._descriptor)


def add_line(path: str, line: bytes) -> None:
    """Add a line to a journal in one call, so that lines of several processes do not mix.

    Raises SetupError.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | _PLAIN)
        try:
            os.write(descriptor, line + b"\n")
        finally:
            os.close(descriptor)
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: str, error: OSError) -> SetupError:
    return SetupError(f"can not write {path or repr(path)}: {error.strerror}", "name another file")


def write_whole(path: str, data: bytes) -> None:
    """Write beside the place, then rename; what is no regular file is written to directly.

    Raises SetupError, with what the system said.
    """
    try:
        if not os.path.basename(path):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
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
        raise _unwritable(path, error) from error


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
