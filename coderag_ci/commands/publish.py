"""``coderag-ci publish``: put a pack where a reviewer sees it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from coderag_ci import workflow
from coderag_ci.errors import SetupError, UsageError

if TYPE_CHECKING:
    from coderag_ci.pack import Pack


@click.command()
@click.argument("file", metavar="PACK.json")
@click.option(
    "--to",
    "target",
    type=click.Choice(["summary", "file"]),
    required=True,
    help="The summary of a GitHub run (the whole pack), or a file (the comment).",
)
@click.option(
    "--when",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="Comment where something was found, always, or never.",
)
@click.option(
    "--tokens",
    type=click.IntRange(min=200),
    default=2000,
    show_default=True,
    metavar="N",
    help="Tokens of the comment.",
)
@click.option("--link", default="", metavar="URL", help="Where the whole pack is.")
@click.option("--output", "-o", metavar="FILE", help="With --to file: FILE instead of stdout.")
def publish(file: str, target: str, when: str, tokens: int, link: str, output: str | None) -> None:
    """Put a pack, made with --format json, where a reviewer sees it.

    In short form, as a comment of so many tokens: the facts, then the ten best pieces.
    """
    if output and target != "file":
        raise UsageError("--output goes with --to file")
    if link and not link.startswith(("https://", "http://")):
        raise UsageError(f"--link {link}: expected an address")
    pack = read(file)
    if target == "summary":
        _summarise(pack)
    else:
        _write(pack, when, tokens, link, output)


def read(file: str) -> Pack:
    """Read a pack from a file. Raises SetupError."""
    from coderag_ci.render import as_json

    try:
        return as_json.read(Path(file).read_bytes(), file)
    except OSError as error:
        raise SetupError(f"{file}: {error.strerror}", "name a file that exists") from error


def _summarise(pack: Pack) -> None:
    from coderag_ci.render import render

    workflow.add_summary(os.environ, render(pack, "markdown"))


def _write(pack: Pack, when: str, tokens: int, link: str, output: str | None) -> None:
    """Write the comment; an empty file where there is none to make."""
    from coderag_ci.commands.context import write
    from coderag_ci.render import comment

    wanted = when == "always" or (when == "auto" and comment.found(pack))
    write(comment.render(pack, tokens, link=link) if wanted else "", output)
