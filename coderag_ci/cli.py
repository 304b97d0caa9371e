"""The command line: one group, one file a subcommand, errors turned into exit codes here."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Sequence

import click

from coderag_ci import __version__, children, workflow
from coderag_ci.commands.ci import ci
from coderag_ci.commands.config import config
from coderag_ci.commands.context import context
from coderag_ci.commands.doctor import doctor
from coderag_ci.commands.eval import evaluate
from coderag_ci.commands.explain import explain
from coderag_ci.commands.hook import hook
from coderag_ci.commands.index import index
from coderag_ci.commands.models import models
from coderag_ci.commands.publish import publish
from coderag_ci.commands.verify import verify
from coderag_ci.errors import (
    EXIT_BUG,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_SETUP,
    EXIT_TERMINATED,
    EXIT_USAGE,
    CoderagError,
    SetupError,
    Terminated,
)
from coderag_ci.files import discard_stdout
from coderag_ci.progress import printable, to_stderr

_EPILOG = """\b
Exit codes:
  0   a pack, also a degraded one and one without changes; publish: also no permission to comment
  1   hook run: a dangling name, under --fail-on dangling
  2   flags, environment or config that make no sense
  3   something to mend: not a repository, unknown ref, no merge base, a damaged model
  4   degraded, under --strict
  5   verify: the pack made again differs
  6   eval run: worse than the baseline, or below --fail-below
  70  a bug, with a report to paste into an issue
  130 interrupted
  143 terminated: SIGTERM
"""


@click.group(
    epilog=_EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="coderag-ci")
def cli() -> None:
    """Turn a git diff into an evidence pack for whoever reviews the change."""


for command in (
    context,
    explain,
    publish,
    index,
    hook,
    ci,
    config,
    models,
    doctor,
    verify,
    evaluate,
):
    cli.add_command(command)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with a documented code.

    What was given up, for a signal or a deadline, still runs in a thread: it is not waited for.
    """
    signal.signal(signal.SIGTERM, _terminate)
    code = run(sys.argv[1:] if arguments is None else list(arguments))
    if threading.active_count() > 1:
        children.end_all()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                stream.flush()
        os._exit(code)
    sys.exit(code)


def _terminate(*_: object) -> None:
    raise Terminated


def run(arguments: list[str]) -> int:
    """Run the command line and return its exit code."""
    try:
        code = cli.main(arguments, prog_name="coderag-ci", standalone_mode=False)
        if sys.stdout is not None:  # closed by the caller
            sys.stdout.flush()
        return code if isinstance(code, int) else EXIT_OK
    except click.exceptions.Abort:
        return _interrupted()
    except click.ClickException as error:
        to_stderr(_usage(error))
        return EXIT_USAGE
    except CoderagError as error:
        _complain(error)
        return error.exit_code
    except KeyboardInterrupt:
        return _interrupted()
    except Terminated:
        return _terminated()
    except (BrokenPipeError, SystemExit):  # how click says that the reader left
        discard_stdout()
        return EXIT_OK
    except OSError as error:
        where = f": {error.filename}" if isinstance(error.filename, str) else ""
        _complain(SetupError(f"{error.strerror or error}{where}", "make room or mend its rights"))
        return EXIT_SETUP
    except Exception as error:
        _report(error, arguments)
        return EXIT_BUG


def _usage(error: click.ClickException) -> str:
    """Return click's complaint as it would print it; without a command, the help alone."""
    if (text := error.format_message()).startswith("Usage: "):
        return text
    text = f"Error: {text}"
    context = getattr(error, "ctx", None)
    if context is None:
        return text
    return f"{context.get_usage()}\nTry '{context.command_path} --help' for help.\n\n{text}"


def _complain(error: CoderagError) -> None:
    to_stderr(f"coderag-ci: error: {printable(error.message)}")
    if error.hint:
        to_stderr(f"coderag-ci: hint: {printable(error.hint)}")
    if workflow.is_github(os.environ):
        hint = f"; {error.hint}" if error.hint else ""
        workflow.annotate(os.environ, "error", error.message + hint)


def _interrupted() -> int:
    to_stderr("coderag-ci: interrupted")
    return EXIT_INTERRUPTED


def _terminated() -> int:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough
    children.end_all()
    to_stderr("coderag-ci: terminated")
    return EXIT_TERMINATED


def _report(error: Exception, arguments: list[str]) -> None:
    import platform
    import traceback

    trace = "".join(traceback.format_exception(error)).rstrip()
    to_stderr(
        "coderag-ci: this is a bug; please paste what follows into an issue\n"
        f"coderag-ci {__version__}, Python {platform.python_version()}, {platform.platform()}\n"
        f"arguments: {' '.join(map(printable, arguments))}\n{_safe(trace)}"
    )


def _safe(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
