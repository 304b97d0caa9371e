"""``coderag-ci hook``: the pack of what is about to be committed or pushed, and plain git hooks."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from coderag_ci.commands import options
from coderag_ci.errors import EXIT_FOUND, EXIT_OK, CoderagError
from coderag_ci.hooks import STAGES
from coderag_ci.progress import printable, to_stderr

if TYPE_CHECKING:
    from coderag_ci.change import Wanted
    from coderag_ci.gitrepo import GitRepo
    from coderag_ci.pack import Pack

_SECONDS = 10.0
_LONGEST = 3600.0
_SHARE = 0.8  # of the deadline, after which the pipeline takes short cuts

fail_on = click.option(
    "--fail-on",
    type=click.Choice(["dangling"]),
    help="Exit with 1 where a name is gone that is still used. [default: never]",
)


@click.group()
def hook() -> None:
    """Show the pack of what is about to be committed or pushed; install plain git hooks."""


@hook.command("run")
@options.config_file
@click.option("--stage", type=click.Choice(STAGES), default="pre-commit", show_default=True)
@fail_on
@click.option(
    "--deadline",
    type=click.FloatRange(min=0, min_open=True),
    default=_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="Print what there is by then, whatever happens.",
)
@click.argument("remote", nargs=-1)
def run(**given: Any) -> int:
    """Print the facts and the five best pieces, write the whole pack to a file, and exit with 0.

    pre-commit looks at the staged changes; pre-push at what the remote does not have yet: of
    the lines on stdin where git names a REMOTE, else as pre-commit says.
    """
    given["deadline"] = min(_LONGEST, given["deadline"])  # also where it is no number
    made, late = _by(given["deadline"], lambda: _make(given))
    if late:
        to_stderr(
            f"coderag-ci: no pack within {given['deadline']:g} s; coderag-ci index takes the time"
            " it needs once"
        )
        return EXIT_OK  # what still runs, in C or in git, is not waited for
    if isinstance(made, CoderagError):
        to_stderr(f"coderag-ci: no pack: {printable(made.message)}")
        if made.hint:
            to_stderr(f"coderag-ci: hint: {printable(made.hint)}")
        return EXIT_OK
    if isinstance(made, Exception):
        problem = f"{type(made).__name__}: {made}"
        to_stderr(f"coderag-ci: no pack, for a bug: {printable(problem)}")
        to_stderr("coderag-ci: hint: coderag-ci context prints a report to paste into an issue")
        return EXIT_OK
    assert made is not None
    click.echo(made.text)
    return EXIT_FOUND if given["fail_on"] in made.kinds else EXIT_OK


class _Shown(NamedTuple):
    """What is printed, and the kinds of facts in it."""

    text: str
    kinds: frozenset[str] = frozenset()


def _by(seconds: float, make: Callable[[], _Shown]) -> tuple[_Shown | Exception | None, bool]:
    """Make something in a thread that is given up after some seconds.

    Returns it, or what it raised, and whether the time was up.
    """
    made: list[_Shown | Exception] = []

    def work() -> None:
        try:
            made.append(make())
        except Exception as error:  # handed to the thread that waits
            made.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(seconds)
    return (made[0], False) if made else (None, True)


def _make(given: dict[str, Any]) -> _Shown:
    """Make the pack of the stage, write it to a file and return what is shown of it."""
    from coderag_ci.change import Wanted
    from coderag_ci.gitrepo import GitRepo

    repo = GitRepo()
    if given["stage"] == "pre-commit":
        return _shown(repo, Wanted(staged=True), given)
    from coderag_ci import pushed

    if given["remote"]:
        lines = sys.stdin.read().splitlines() if sys.stdin else []
        found = pushed.of_lines(repo, given["remote"][0], lines)
    else:
        found = [pushed.of_pre_commit(repo, os.environ)]
    if not found:
        return _Shown("coderag-ci: no branch is pushed")
    first = found[0]
    others = "".join(f"\ncoderag-ci: not looked at: {printable(one.name)}" for one in found[1:])
    if first.base is None:
        return _Shown(
            f"coderag-ci: all of {printable(first.name)} is new to the remote: nothing to compare"
            f" it with{others}"
        )
    shown = _shown(repo, Wanted(base=first.base, head=first.head), given)
    return shown._replace(text=shown.text + others)


def _shown(repo: GitRepo, wanted: Wanted, given: dict[str, Any]) -> _Shown:
    from coderag_ci import pipeline
    from coderag_ci.render import brief

    settings = {**given, "index_dir": None, "quiet": True}
    job = options.job_for(repo, wanted, settings, {}, given["deadline"] * _SHARE)
    pack = pipeline.make_pack(job)
    text = brief.render(pack)
    if pack.change.files:
        text += f"\n  the whole pack: {printable(_write(repo, given['stage'], pack))}"
    if pack.degradations:  # where files were not read, a name may be defined in one of them
        if given["fail_on"]:
            text += f"\n  --fail-on {given['fail_on']} does not count: the evidence is limited"
        return _Shown(text)
    return _Shown(text, frozenset(fact.kind for fact in pack.facts))


def _write(repo: GitRepo, stage: str, pack: Pack) -> str:
    """Write the pack beside the index, within the git directory, and return its path."""
    from coderag_ci.commands.context import write
    from coderag_ci.render import render

    directory = repo.git_dir / "coderag-ci"
    directory.mkdir(mode=0o700, exist_ok=True)
    path = directory / f"{stage}.md"
    write(render(pack, "markdown"), str(path))
    return os.path.relpath(path) if path.is_relative_to(os.getcwd()) else str(path)


stages = click.option(
    "--stage",
    "stages",
    type=click.Choice(STAGES),
    multiple=True,
    help="Which hook; repeatable. [default: pre-commit]",
)
repository = click.option(
    "--repo", metavar="DIR", help="The repository. [default: the current one]"
)


@hook.command()
@repository
@stages
@fail_on
def install(repo: str | None, stages: tuple[str, ...], fail_on: str | None) -> None:
    """Write a hook to where git looks for it; one that is there is kept and runs first."""
    from coderag_ci import hooks
    from coderag_ci.gitrepo import GitRepo

    git = GitRepo(repo)
    directory = git.hooks_directory()
    for stage in stages or STAGES[:1]:
        arguments = ["--fail-on", fail_on] if fail_on else []
        _say(hooks.install(directory, stage, arguments), "installed")
    if directory.resolve() != git.common_dir / "hooks":
        click.echo("core.hooksPath names this folder: the hook runs wherever that is set")


@hook.command()
@repository
@stages
def uninstall(repo: str | None, stages: tuple[str, ...]) -> None:
    """Take our hooks away, and put those back that were there before; others stay."""
    from coderag_ci import hooks
    from coderag_ci.gitrepo import GitRepo

    directory = GitRepo(repo).hooks_directory()
    for stage in stages or STAGES:
        found = hooks.uninstall(directory, stage)
        if found.ours:
            back = "; the hook that was there is back" if found.kept else ""
            click.echo(f"{stage}: removed{back}: {printable(str(found.path))}")
        else:
            _say(found, "")


@hook.command()
@repository
def status(repo: str | None) -> None:
    """Say of each hook whether it is ours, somebody else's, or not there."""
    from coderag_ci import hooks
    from coderag_ci.gitrepo import GitRepo

    directory = GitRepo(repo).hooks_directory()
    for stage in STAGES:
        _say(hooks.status(directory, stage), "installed")


def _say(found: Any, ours: str) -> None:
    where = printable(str(found.path))
    if found.ours:
        after = f", after {found.kept.name}" if found.kept else ""
        click.echo(f"{found.stage}: {ours}{after}: {where}")
    else:
        what = "another hook, not ours" if found.foreign else "not installed"
        click.echo(f"{found.stage}: {what}: {where}")
