"""``coderag-ci publish``: put a pack where a reviewer sees it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from coderag_ci import workflow
from coderag_ci.errors import UsageError
from coderag_ci.progress import to_stderr

if TYPE_CHECKING:
    from coderag_ci.ci import Forge
    from coderag_ci.pack import Pack

_LONGEST_LINK = 2000  # characters


@click.command()
@click.argument("file", metavar="PACK.json")
@click.option(
    "--to",
    "target",
    type=click.Choice(["github", "gitlab", "summary", "file"]),
    required=True,
    help="A comment in a pull request or merge request, the summary of a GitHub run, a file.",
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
@click.option(
    "--pull-request",
    type=click.IntRange(min=1),
    metavar="N",
    help="The pull request; by default what the CI says.",
)
@click.option("--head", metavar="SHA", help="Its head when the pack was made; likewise.")
@click.option("--output", "-o", metavar="FILE", help="With --to file: FILE instead of stdout.")
def publish(
    file: str,
    target: str,
    when: str,
    tokens: int,
    link: str,
    pull_request: int | None,
    head: str | None,
    output: str | None,
) -> None:
    """Put a pack, made with --format json, where a reviewer sees it.

    As a comment in short form: the facts, then the ten best pieces; a summary has all of it. The
    token for a forge is taken from GITHUB_TOKEN or GITLAB_TOKEN. Without permission to comment,
    or where the forge is too busy, that is said, and the exit code is 0.
    """
    if output and target != "file":
        raise UsageError("--output goes with --to file")
    if link and not (link.startswith(("https://", "http://")) and len(link) <= _LONGEST_LINK):
        raise UsageError(f"--link {link[:100]}: expected an address")
    pack = read(file)
    if target == "summary":
        _summarise(pack)
    elif target == "file":
        _write(pack, when, tokens, link, output)
    elif when == "never":
        _say("nothing is posted: --when never")
    else:
        _post(pack, _forge(target, pull_request, head), target, when, tokens, link)


def read(file: str) -> Pack:
    """Read a pack from a file. Raises SetupError."""
    from coderag_ci.files import read_whole
    from coderag_ci.render import as_json

    return as_json.read(read_whole(file, "name a file that exists"), file)


def _summarise(pack: Pack) -> None:
    from coderag_ci.render import render

    workflow.add_summary(os.environ, render(pack, "markdown"))


def _write(pack: Pack, when: str, tokens: int, link: str, output: str | None) -> None:
    """Write the comment; an empty file where there is none to make."""
    from coderag_ci.commands.context import write
    from coderag_ci.render import comment

    wanted = when == "always" or (when == "auto" and comment.found(pack))
    write(comment.render(pack, tokens, link=link) if wanted else "", output)


def _forge(target: str, pull_request: int | None, head: str | None) -> Forge:
    """Return which pull request of which forge is meant. Raises UsageError without a token."""
    from coderag_ci import ci

    known = (ci.github if target == "github" else ci.gitlab)(os.environ)
    if not known.token:
        name = f"{target.upper()}_TOKEN"
        raise UsageError(f"{name} is not set", "give the step a token that may comment")
    return known._replace(pull_request=pull_request or known.pull_request, head=head or known.head)


def _post(pack: Pack, forge: Forge, target: str, when: str, tokens: int, link: str) -> None:
    """Make or edit the comment, and set the output comment-id. Raises SetupError."""
    from coderag_ci.client import Busy, Refused, patiently
    from coderag_ci.forges import GitHub, GitLab
    from coderag_ci.render import comment
    from coderag_ci.sticky import settle

    if not forge.pull_request:
        return _say("nothing is posted: the run is for no pull request")
    if pack.change.head != forge.head:
        raise UsageError(
            f"the pack is of {pack.change.head[:12] or 'no commit'}, not of {forge.head[:12]}",
            "make it with --head of the pull request's head",
        )
    pull = (GitHub if target == "github" else GitLab)(forge)
    text = comment.render(pack, tokens, pull.most, link)
    create = when == "always" or comment.found(pack)
    try:
        settled = patiently(lambda: settle(pull, text, pack.digest, forge.head, create=create))
    except Busy as error:
        return _say(f"no comment, the pack is in the run's summary and artifact: {error}")
    except Refused as error:
        if error.status not in (403, 422):
            error.hint = "see whether token, repository and number of the pull request are right"
            raise
        return _say(f"no comment, the pack is in the run's summary and artifact: {error}")
    if settled.number:
        workflow.set_outputs(os.environ, {"comment-id": str(settled.number)})
    return to_stderr(f"coderag-ci: {settled.done}")


def _say(text: str) -> None:
    workflow.annotate(os.environ, "notice", text)
