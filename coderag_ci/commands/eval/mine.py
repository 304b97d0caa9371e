"""``coderag-ci eval mine``: make cases of a repository's own history."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from coderag_ci.commands import options
from coderag_ci.errors import EXIT_OK, SetupError

if TYPE_CHECKING:
    from collections import Counter


@click.command()
@click.option("--repo", metavar="DIR", help="The repository. [default: the current one]")
@click.option("--ref", metavar="REF", default="HEAD", help="Whose history. [default: HEAD]")
@click.option(
    "--kind",
    type=click.Choice(("cochange", "missed")),
    default="cochange",
    show_default=True,
    help="What one commit changed together, or what a later commit says it had to repair.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    default=200,
    show_default=True,
    help="The N newest cases.",
)
@click.option("--out", metavar="FILE", required=True, help="Write the cases there, JSON Lines.")
@options.quiet
def mine(repo: str | None, ref: str, kind: str, limit: int, out: str, quiet: bool) -> int:
    """Make cases for ``eval run`` of what the commits of a history changed.

    No line of code is kept, but paths, names of symbols and subjects of commits are.
    """
    from coderag_ci.eval import cases
    from coderag_ci.eval.mine import mine as mine_cases
    from coderag_ci.gitrepo import GitRepo
    from coderag_ci.progress import Progress

    git = GitRepo(repo)
    commit = git.resolve(ref)
    progress = Progress(quiet)
    mined = mine_cases(git, commit, kind, limit, progress)
    told = _told(mined.left_out)
    if not mined.cases:
        raise SetupError(
            f"no commit of {mined.commits:,} gives a {kind} case ({told})", _hint(kind, git.shallow)
        )
    cases.write(out, mined.cases)
    if git.shallow and len(mined.cases) < limit:
        progress.say("the clone is shallow: what is older was not looked at")
    click.echo(
        f"{len(mined.cases):,} {kind} cases from {mined.commits:,} commits of {commit[:12]}"
        + (f"; left out: {told}" if told else "")
    )
    return EXIT_OK


def _told(left_out: Counter[str]) -> str:
    """Say how many commits were left out for which reason, the most common first."""
    ordered = sorted(left_out.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{count:,} {reason}" for reason, count in ordered)


def _hint(kind: str, shallow: bool) -> str:
    if shallow:
        return "the clone is shallow: fetch the rest with git fetch --unshallow"
    if kind == "missed":
        return "its messages name no commit that they repair; try --kind cochange"
    return "it takes commits that change two files of code; name another history with --ref"
