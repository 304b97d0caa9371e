"""What is said to a GitHub workflow: outputs of a step, and lines that stand out in its log."""

from __future__ import annotations

from collections.abc import Mapping

from coderag_ci.errors import SetupError
from coderag_ci.progress import to_stderr


def is_github(environment: Mapping[str, str]) -> bool:
    """Whether a GitHub workflow, or one that speaks like it, runs us."""
    return environment.get("GITHUB_ACTIONS") == "true"


def annotate(environment: Mapping[str, str], level: str, text: str) -> None:
    """Say something to whoever reads the run. ``level``: notice, warning or error."""
    if not is_github(environment):
        to_stderr(f"coderag-ci: {text}")
        return
    escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    to_stderr(f"::{level} title=coderag-ci::{escaped}")


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
