"""What is said to a GitHub workflow: outputs of a step, and lines that stand out in its log."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from coderag_ci.errors import SetupError
from coderag_ci.progress import printable, to_stderr

MOST_SUMMARY = 1 << 20  # bytes of one step
_CUT = "\n*Cut here: a summary holds no more. The artifact has all of it.*\n"


def is_github(environment: Mapping[str, str]) -> bool:
    """Whether a GitHub workflow, or one that speaks like it, runs us."""
    return environment.get("GITHUB_ACTIONS") == "true"


def annotate(environment: Mapping[str, str], level: str, text: str) -> None:
    """Say something to whoever reads the run. ``level``: notice, warning or error."""
    text = printable(text)
    if not is_github(environment):
        to_stderr(f"coderag-ci: {text}")
        return
    to_stderr(f"::{level} title=coderag-ci::{text.replace('%', '%25')}")


def set_outputs(environment: Mapping[str, str], outputs: Mapping[str, str]) -> None:
    """Set outputs of the step; without a workflow they are printed. Raises SetupError."""
    lines = [f"{name}={' '.join(value.splitlines())}\n" for name, value in outputs.items()]
    path = environment.get("GITHUB_OUTPUT", "")
    try:
        if path:
            with open(path, "a", encoding="utf-8", errors="backslashreplace") as file:
                file.writelines(lines)
        else:
            print("".join(lines), end="")
    except OSError as error:
        raise SetupError(f"outputs can not be written to {path}: {error.strerror}") from error


def add_summary(environment: Mapping[str, str], text: str) -> None:
    """Append Markdown to the summary of the step, as much as it holds; else print it.

    Raises SetupError.
    """
    path = environment.get("GITHUB_STEP_SUMMARY", "")
    if not path:
        print(text, end="")
        return
    try:
        there = os.path.getsize(path) if os.path.exists(path) else 0
        with open(path, "ab") as file:
            file.write(cut(text, MOST_SUMMARY - there).encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise SetupError(f"the summary can not be written to {path}: {error.strerror}") from error


def cut(text: str, most: int) -> str:
    """Cut Markdown to so many bytes before a blank line that is in no code and nothing folded.

    Fences have to be closed by one of their own length, as ours are.
    """
    if _size(text) <= most:
        return text
    left = most - _size(_CUT)
    used = sound = 0
    fence = ""
    folded = 0
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if not line and not fence and not folded:
            sound = number
        used += _size(line) + 1
        if used > left:
            break
        if fence:
            fence = "" if line == fence else fence
        elif opened := re.match("`{3,}", line):
            fence = opened[0]
        else:
            folded += line.startswith("<details")
            folded -= line == "</details>"
    return "".join(f"{line}\n" for line in lines[:sound]) + _CUT if left > 0 else ""


def _size(text: str) -> int:
    return len(text.encode("utf-8", "backslashreplace"))
