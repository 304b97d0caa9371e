"""Options that several subcommands share, and what they are turned into."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from coderag_ci.change import Wanted
    from coderag_ci.ci import CI
    from coderag_ci.config import Resolved
    from coderag_ci.gitrepo import GitRepo
    from coderag_ci.job import Job
    from coderag_ci.sarif import Result

F = TypeVar("F", bound=Callable[..., Any])
_NO_FILES = ("none", "bundled", "heuristic", "learned", "estimate")  # whatever the work tree has


quiet = click.option("--quiet", "-q", is_flag=True, help="Say nothing on stderr but errors.")
config_file = click.option(
    "--config",
    "config_file",
    metavar="FILE",
    envvar="CODERAG_CONFIG",
    help="Read settings from FILE instead of .coderag.yml.",
)


sarif = click.option(
    "--sarif",
    metavar="FILE",
    multiple=True,
    help="Findings of a linter, as SARIF 2.1.0: show those on changed lines; repeatable.",
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
            help="heuristic, learned, none, a directory, or a model's name.",
        ),
        click.option(
            "--embedding-model",
            metavar="NAME",
            help="none, bundled, a directory, or a model's name.",
        ),
    ):
        function = option(function)
    return function


def change(function: F) -> F:
    """Add what says which change is meant: --base, --head, --staged, --worktree, --paths."""
    for option in (
        click.option(
            "--paths", metavar="PATHSPEC", multiple=True, help="Only these paths; repeatable."
        ),
        click.option("--worktree", is_flag=True, help="Compare the working tree with HEAD."),
        click.option("--staged", is_flag=True, help="Compare the staged changes with HEAD."),
        click.option("--head", metavar="REF", help="The change. [default: HEAD]"),
        click.option(
            "--base",
            metavar="REF",
            help="What the change is made from. [default: the default branch]",
        ),
    ):
        function = option(function)
    return function


def ranking(function: F) -> F:
    """Add the settings that decide what a pack shows."""
    for option in (
        click.option("--no-redact", is_flag=True, help="Leave secrets in; the pack says so."),
        click.option(
            "--deadline",
            type=float,
            metavar="SECONDS",
            help="Give what there is by then; 0: never. [default: 120 in CI, else 0]",
        ),
        click.option(
            "--no-channel", "switched_off", multiple=True, metavar="NAME", help="Switch one off."
        ),
        click.option(
            "--channel", "switched_on", multiple=True, metavar="NAME", help="Switch a channel on."
        ),
        click.option(
            "--rerank",
            type=int,
            metavar="DEPTH",
            help="Candidates reranked; 0: none. [default: 50]",
        ),
        click.option(
            "--weight", "weights", multiple=True, metavar="CHANNEL=W", help="Weight of a channel."
        ),
        click.option(
            "--recall", type=int, metavar="N", help="Candidates a channel. [default: 1000]"
        ),
        click.option(
            "--top-k", type=int, metavar="N", help="Most pieces of evidence. [default: 40]"
        ),
        click.option(
            "--budget", type=int, metavar="TOKENS", help="Tokens of the whole pack. [default: 8000]"
        ),
    ):
        function = option(function)
    return function


def job_of(given: Mapping[str, Any]) -> Job:
    """Return what a pack is made from, of the options of a command that takes all of the above.

    Raises CoderagError.
    """
    from coderag_ci import change as changes
    from coderag_ci.errors import UsageError
    from coderag_ci.gitrepo import GitRepo

    flags = _flags(given)
    repo = GitRepo(given["repo"])
    wanted = changes.Wanted(
        given["base"] or "",
        given["head"] or "",
        given["staged"],
        given["worktree"],
        [repo.from_root(p) for p in given["paths"]],
    )
    made = job_for(repo, wanted, given, flags, redact=not given["no_redact"])
    if "dense" in given["switched_on"] and made.config.embedding_model == "none":
        raise UsageError("the channel dense needs a model", "name one with --embedding-model")
    return made


def job_for(
    repo: GitRepo,
    wanted: Wanted,
    given: Mapping[str, Any],
    flags: Mapping[str, Any],
    limit: float = 0,
    *,
    redact: bool = True,
) -> Job:
    """Return what a pack of a change is made from; its deadline is in ``limit`` seconds at most.

    Raises CoderagError.
    """
    from coderag_ci import change as changes
    from coderag_ci import ci
    from coderag_ci import config as settings
    from coderag_ci.deadline import IN_CI, Deadline
    from coderag_ci.job import Job
    from coderag_ci.progress import Progress

    progress = Progress(given["quiet"])
    for line in settings.unknown(os.environ):
        progress.say(line)
    surroundings = ci.detect(os.environ)
    made = changes.resolve(repo, wanted, surroundings)
    read = read_config(repo, given["config_file"], flags, surroundings, made.merge_base)
    config = read.config
    directory = index_directory(repo, given["index_dir"])
    unsaid = surroundings.active and read.sources["deadline"] == "default"
    seconds = IN_CI if unsaid else config.deadline
    end = Deadline(min((time for time in (seconds, limit) if time), default=0))
    return Job(repo, made, config, directory, end, progress, redact=redact)


def results_of(files: Sequence[str], repo: GitRepo) -> list[Result] | None:
    """Return the findings in the reports named; None where none is. Raises SetupError."""
    if not files:
        return None
    from coderag_ci import sarif

    return [result for file in files for result in sarif.read(file, repo.root)]


def _flags(given: Mapping[str, Any]) -> dict[str, Any]:
    """Turn flags into dotted config keys, each checked against its type."""
    from coderag_ci.config import CHANNEL_NAMES, Config, convert, value_of
    from coderag_ci.errors import UsageError

    values: dict[str, Any] = {
        key: given[key.replace("-", "_")]
        for key in (
            "budget",
            "top-k",
            "recall",
            "rerank",
            "deadline",
            "embedding-model",
            "rerank-model",
        )
    }
    for name in (*given["switched_on"], *given["switched_off"]):
        if name not in CHANNEL_NAMES:
            raise UsageError(f"unknown channel: {name}", f"known: {', '.join(CHANNEL_NAMES)}")
    for name in given["switched_on"]:
        values[f"weights.{name}"] = value_of(Config(), f"weights.{name}")
    for item in given["weights"]:
        name, equals, number = item.partition("=")
        if not equals:
            raise UsageError(f"--weight {item}: expected CHANNEL=W", "for example uses=2")
        if name not in CHANNEL_NAMES:
            raise UsageError(f"unknown channel: {name}", f"known: {', '.join(CHANNEL_NAMES)}")
        values[f"weights.{name}"] = convert(f"weights.{name}", number, "--weight", strict=False)
    for name in given["switched_off"]:
        values[f"weights.{name}"] = 0.0
    return {
        key: value if key.startswith("weights.") else convert(key, value, f"--{key}", strict=False)
        for key, value in values.items()
        if value is not None
    }


def index_directory(repo: GitRepo, given: str | None) -> Path:
    """Return where the index is kept."""
    if not given:
        return repo.common_dir / "coderag-ci"
    return Path(os.path.expanduser(given)).absolute()


def read_config_file(path: str) -> str:
    """Return the text of a config file that was named. Raises SetupError."""
    from coderag_ci.files import read_whole

    return read_whole(path, "name a config file that exists with --config").decode(
        "utf-8", "replace"
    )


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
    given_flags = {key: value for key, value in flags.items() if value is not None}
    read = config.resolve(text, label, os.environ, given_flags)
    if ci.active:
        _refuse_files_of_the_change(repo, read)
    return read


def _refuse_files_of_the_change(repo: GitRepo, read: Resolved) -> None:
    """In CI no model and no tokenizer comes out of the work tree, where the change has its files.

    Raises UsageError.
    """
    from coderag_ci.config import value_of
    from coderag_ci.errors import UsageError

    for key in ("embedding-model", "rerank-model", "tokenizer"):
        name = value_of(read.config, key)
        place = Path(os.path.expanduser(name)).resolve()
        if name in _NO_FILES or repo.root is None:
            continue
        if place.exists() and place.is_relative_to(repo.root):
            raise UsageError(
                f"{key}: {name} ({read.sources[key]}) is in the work tree, where a change may "
                "bring its own",
                "in CI, keep it outside of the checkout",
            )
