"""``coderag-ci context``: make the evidence pack of a change."""

from __future__ import annotations

import dataclasses
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
@options.change
@options.ranking
@options.sarif
@click.option(
    "--format",
    "form",
    type=click.Choice(["markdown", "json", "prompt", "html"]),
    default="markdown",
    show_default=True,
    help="For people, for programs, for a model, a page for a browser.",
)
@click.option("--output", "-o", metavar="FILE", help="Write to FILE instead of stdout.")
@click.option(
    "--also",
    multiple=True,
    metavar="FORMAT=FILE",
    help="Write the same pack to FILE in another format, too; repeatable.",
)
@click.option("--strict", is_flag=True, help="Exit with 4 when the pack is degraded.")
@click.option("--trace", is_flag=True, help="Print what each stage did to stderr.")
def context(**given: Any) -> int:
    """Make the evidence pack of a change.

    With no flags: what HEAD adds to the default branch, from their merge base; where
    nothing was committed since, the working tree. Channels: subject, uses, gone,
    co-changed-lines, diff, co-change, deleted, defines, kept, changed, new, test, dense.
    """
    from coderag_ci import pipeline
    from coderag_ci.render import render

    others = [_other(item) for item in given["also"]]
    job = options.job_of(given)
    job = dataclasses.replace(job, results=options.results_of(given["sarif"], job.repo))
    pack = pipeline.make_pack(job)
    for note in pack.trace.notes:
        job.progress.say(note)
    if given["trace"]:
        _print_trace(pack)
    write(render(pack, given["form"]), given["output"])
    for form, file in others:
        write(render(pack, form), file)
    named = given["base"] or given["paths"]
    if not pack.change.files and not named and job.change.kind == "commits":
        job.progress.say(
            "nothing was committed since the default branch; --base HEAD~1 looks further"
        )
    if pack.degradations and given["strict"]:
        return EXIT_DEGRADED
    return EXIT_OK


def _other(item: str) -> tuple[str, str]:
    """Take a format and a file apart. Raises UsageError."""
    from coderag_ci.render import FORMATS

    form, _, file = item.partition("=")
    if form not in FORMATS or not file:
        raise UsageError(f"--also {item}: expected FORMAT=FILE", f"formats: {', '.join(FORMATS)}")
    return form, file


def _print_trace(pack: Pack) -> None:
    from coderag_ci.progress import printable, to_stderr

    for stage in pack.trace.stages:
        counts = ", ".join(f"{key} {value}" for key, value in stage.counts.items())
        note = f"  ({printable(stage.note)})" if stage.note else ""
        to_stderr(f"{stage.name:10} {stage.seconds:7.3f} s  {counts}{note}")
    for query in pack.trace.queries:
        to_stderr(f"query      {printable(query['path'])} {printable(query['unit'])}")


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
