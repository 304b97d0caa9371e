"""Options that several subcommands share, and what they are turned into."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from coderag_ci.ci import CI
    from coderag_ci.config import Resolved
    from coderag_ci.gitrepo import GitRepo

F = TypeVar("F", bound=Callable[..., Any])


quiet = click.option("--quiet", "-q", is_flag=True, help="Say nothing on stderr but errors.")
config_file = click.option(
    "--config",
    "config_file",
    metavar="FILE",
    envvar="CODERAG_CONFIG",
    help="Read settings from FILE instead of .coderag.yml.",
)


def repository(function: F) -> F:
    """Add --repo and --index-dir."""
    for option in (
        click.option(
            "--index-dir",
            metavar="DIR",
            envvar="CODERAG_INDEX_DIR",
            help="Where the index is kept. [default: the repository's git directory]",
        ),
        click.option("--repo", metavar="DIR", help="The repository. [default: the current one]"),
    ):
        function = option(function)
    return function


def models(function: F) -> F:
    """Add --embedding-model and --rerank-model."""
    for option in (
        click.option(
            "--rerank-model",
            metavar="NAME",
            help="heuristic, none, a directory, or a model's name.",
        ),
        click.option(
            "--embedding-model", metavar="NAME", help="none, a directory, or a model's name."
        ),
    ):
        function = option(function)
    return function


def index_directory(repo: GitRepo, given: str | None) -> Path:
    """Return where the index is kept."""
    if not given:
        return repo.common_dir / "coderag-ci"
    return Path(os.path.expanduser(given)).absolute()


def read_config_file(path: str) -> str:
    """Return the text of a config file that was named. Raises SetupError."""
    from coderag_ci.errors import SetupError

    try:
        return Path(path).read_bytes().decode("utf-8", "replace")
    except OSError as error:
        raise SetupError(
            f"config file {path}: {error.strerror}", "name one that exists with --config"
        ) from error


def read_config(
    repo: GitRepo, given: str | None, flags: Mapping[str, Any], ci: CI, base: str
) -> Resolved:
    """Read the config: in CI from the base commit, never from the change; else from the work tree.

    ``base`` is the merge base, empty where there is none. Raises CoderagError.
    """
    from coderag_ci import config
    from coderag_ci.errors import UsageError
    from coderag_ci.gitrepo import MODE_SYMLINK

    text: str | None = None
    label = config.FILE_NAME
    if given:
        label, text = given, read_config_file(given)
    elif ci.active or repo.bare:
        data = repo.file_at(base, config.FILE_NAME) if base else None
        text = data.decode("utf-8", "replace") if data else None
        label = f"{config.FILE_NAME} of {base[:12]}"
    elif (found := repo.read_file(label, config.MAX_BYTES)) and found[0] != MODE_SYMLINK:
        if found[1] is None:
            raise UsageError(f"{label} is larger than 64 KiB", "keep only settings in it")
        text = found[1].decode("utf-8", "replace")
    return config.resolve(
        text, label, os.environ, {k: v for k, v in flags.items() if v is not None}
    )
