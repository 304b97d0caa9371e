"""``coderag-ci context``: make the evidence pack of a change."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from coderag_ci.commands import options
from coderag_ci.errors import EXIT_DEGRADED, EXIT_OK, UsageError

if TYPE_CHECKING:
    from coderag_ci.pack import Pack


@click.command()
@options.repository
@options.config_file
@options.quiet
@options.models
@click.option(
    "--base", metavar="REF", help="What the change is made from. [default: the default branch]"
)
@click.option("--head", metavar="REF", help="The change. [default: HEAD]")
@click.option("--staged", is_flag=True, help="Compare the staged changes with HEAD.")
@click.option("--worktree", is_flag=True, help="Compare the working tree with HEAD.")
@click.option("--paths", metavar="PATHSPEC", multiple=True, help="Only these paths; repeatable.")
@click.option(
    "--budget", type=int, metavar="TOKENS", help="Tokens of the whole pack. [default: 8000]"
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["markdown", "json", "prompt"]),
    default="markdown",
    show_default=True,
    help="For people, for programs, for a model.",
)
@click.option("--output", "-o", metavar="FILE", help="Write to FILE instead of stdout.")
@click.option("--top-k", type=int, metavar="N", help="Most pieces of evidence. [default: 40]")
@click.option("--recall", type=int, metavar="N", help="Candidates a channel. [default: 1000]")
@click.option(
    "--weight", "weights", multiple=True, metavar="CHANNEL=W", help="Weight of a channel."
)
@click.option(
    "--rerank", type=int, metavar="DEPTH", help="Candidates reranked; 0: none. [default: 50]"
)
@click.option(
    "--channel", "switched_on", multiple=True, metavar="NAME", help="Switch a channel on."
)
@click.option("--no-channel", "switched_off", multiple=True, metavar="NAME", help="Switch one off.")
@click.option("--deadline", type=float, metavar="SECONDS", help="Give what there is by then.")
@click.option("--strict", is_flag=True, help="Exit with 4 when the pack is degraded.")
@click.option("--trace", is_flag=True, help="Print what each stage did to stderr.")
def context(**given: Any) -> int:
    """Make the evidence pack of a change.

    With no flags: what HEAD adds to the default branch, from their merge base; where
    nothing was committed since, the working tree. Channels: subject, uses, gone,
    co-changed-lines, diff, co-change, deleted, defines, kept, changed, new, test, dense.
    """
    from coderag_ci import change, ci, job, pipeline
    from coderag_ci.deadline import Deadline
    from coderag_ci.gitrepo import GitRepo
    from coderag_ci.progress import Progress
    from coderag_ci.render import render

    flags = _flags(given)
    repo = GitRepo(given["repo"])
    surroundings = ci.detect(os.environ)
    wanted = change.Wanted(
        given["base"] or "",
        given["head"] or "",
        given["staged"],
        given["worktree"],
        [repo.from_root(p) for p in given["paths"]],
    )
    made = change.resolve(repo, wanted, surroundings)
    settings = options.read_config(repo, given["config_file"], flags, surroundings, made.merge_base)
    if "dense" in given["switched_on"] and settings.config.embedding_model == "none":
        raise UsageError("the channel dense needs a model", "name one with --embedding-model")
    progress = Progress(given["quiet"])
    pack = pipeline.make_pack(
        job.Job(
            repo,
            made,
            settings.config,
            options.index_directory(repo, given["index_dir"]),
            Deadline(settings.config.deadline),
            progress,
        )
    )
    for note in pack.trace.notes:
        progress.say(note)
    if given["trace"]:
        _print_trace(pack)
    write(render(pack, given["form"]), given["output"])
    if not pack.change.files and not (given["base"] or given["paths"]) and made.kind == "commits":
        progress.say("nothing was committed since the default branch; --base HEAD~1 looks further")
    if pack.degradations and given["strict"]:
        return EXIT_DEGRADED
    return EXIT_OK


def _flags(given: dict[str, Any]) -> dict[str, Any]:
    """Turn flags into dotted config keys, each checked against its type."""
    from coderag_ci.config import CHANNEL_NAMES, Config, convert, value_of

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


def _print_trace(pack: Pack) -> None:
    from coderag_ci.progress import to_stderr

    for stage in pack.trace.stages:
        counts = ", ".join(f"{key} {value}" for key, value in stage.counts.items())
        to_stderr(f"{stage.name:10} {stage.seconds:7.3f} s  {counts}")
    for query in pack.trace.queries:
        to_stderr(f"query      {query['path']} {query['unit']}")


def write(text: str, output: str | None) -> None:
    """Write a pack to stdout, or to a file: beside it first, then renamed.

    Raises SetupError where the file can not be written.
    """
    data = text.encode("utf-8", "backslashreplace")
    from coderag_ci.files import write_stdout, write_whole

    if output is None:
        write_stdout(data)
    else:
        write_whole(output, data)
