"""The exceptions that cross module borders, and the exit codes they end in.

CoderagError                what a person did or can mend; printed as one line and a hint
├── UsageError      exit 2  flags, environment or config that make no sense
└── SetupError      exit 3  not a repository, unknown ref, no merge base, store not writable

Anything else that escapes is a bug: exit 70, with a report to paste into an issue.
"""

from __future__ import annotations

EXIT_OK = 0
EXIT_FOUND = 1
EXIT_USAGE = 2
EXIT_SETUP = 3
EXIT_DEGRADED = 4
EXIT_DIFFERS = 5
EXIT_WORSE = 6
EXIT_BUG = 70
EXIT_INTERRUPTED = 130
EXIT_TERMINATED = 143


class CoderagError(Exception):
    """Something that the person running the command can mend."""

    exit_code = EXIT_SETUP

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class Terminated(BaseException):  # like KeyboardInterrupt: nothing may swallow it
    """Somebody asked the process to end, with SIGTERM."""


class UsageError(CoderagError):
    """A flag, an environment variable or a config value that makes no sense."""

    exit_code = EXIT_USAGE


class SetupError(CoderagError):
    """The repository or the machine is not in a state in which the job can be done."""


def where_raised(error: BaseException) -> str:
    """Return an exception in one line: its type, what it says, and where it was raised."""
    text = " ".join(str(error).split())[:160]
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    name = type(error).__name__
    told = f"{name}: {text}" if text else name
    if trace is None:
        return told
    file = trace.tb_frame.f_code.co_filename.replace("\\", "/").rpartition("/")[2]
    return f"{told} ({file}:{trace.tb_lineno})"
