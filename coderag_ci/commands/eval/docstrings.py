"""``coderag-ci eval docstrings``: make cases from the docstrings of a repository."""

from __future__ import annotations

import click

from coderag_ci.commands import options
from coderag_ci.errors import EXIT_OK


@click.command()
@options.quiet
@click.option("--repo", "place", metavar="DIR", help="The repository. [default: the current one]")
@click.option("--ref", metavar="REF", default="HEAD", help="The commit. [default: HEAD]")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    default=200,
    help="At most N cases, spread over the repository. [default: 200]",
)
@click.option("--out", metavar="FILE", required=True, help="Write cases here, JSON Lines.")
def docstrings(quiet: bool, place: str | None, ref: str, limit: int, out: str) -> int:
    """Make a case of each docstring: find the unit that its first sentence describes."""
    from coderag_ci.config import Config
    from coderag_ci.eval import cases
    from coderag_ci.eval.docstrings import make
    from coderag_ci.files import write_stdout
    from coderag_ci.gitrepo import GitRepo
    from coderag_ci.pathrules import PathRules
    from coderag_ci.progress import Progress

    made = make(GitRepo(place), ref, PathRules(Config()), limit, Progress(quiet))
    cases.write(out, made.cases)
    write_stdout(
        f"{len(made.cases)} cases out of {made.units} documented units"
        f" in {made.files} files, written to {out}\n".encode()
    )
    return EXIT_OK
