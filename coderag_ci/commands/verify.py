"""``coderag-ci verify``: make a pack again and say whether it is the same."""

from __future__ import annotations

import click

from coderag_ci.commands import options
from coderag_ci.errors import EXIT_DIFFERS, EXIT_OK, SetupError


@click.command()
@click.argument("file", metavar="PACK.json")
@options.repository
@options.quiet
@options.sarif
def verify(
    file: str, repo: str | None, index_dir: str | None, quiet: bool, sarif: tuple[str, ...]
) -> int:
    """Make the pack in PACK.json again; if it differs, say which stage differs first.

    Settings are those of the pack: the environment and config files do not count. A pack that
    was made with --sarif needs the same files.
    """
    import msgspec

    from coderag_ci import __version__, change, ci, job, pack, pipeline
    from coderag_ci.config import keys, resolve
    from coderag_ci.deadline import Deadline
    from coderag_ci.files import read_whole
    from coderag_ci.gitrepo import GitRepo
    from coderag_ci.progress import Progress
    from coderag_ci.render import as_json

    given = as_json.read(read_whole(file, "name a file that exists"), file)
    git = GitRepo(repo)
    kind = given.change.kind
    wanted = change.Wanted(
        given.change.base,
        given.change.head if kind == "commits" else "",
        kind == "staged",
        kind == "worktree",
        given.change.paths,
    )
    made = change.resolve(git, wanted, ci.CI(False, "", given.change.title))
    try:
        if unknown := given.settings.keys() - set(keys()):
            raise SetupError(f"{file}: unknown setting: {min(unknown)}", "make the pack again")
        flags = {key: msgspec.json.decode(text) for key, text in given.settings.items()}
        config = resolve(None, "pack", {}, flags).config
    except (msgspec.MsgspecError, RecursionError) as error:
        raise SetupError(f"{file}: settings: {error}", "make the pack again") from error
    directory = options.index_directory(git, index_dir)
    results = options.results_of(sarif, git)
    if given.lint is not None and results is None:
        raise SetupError(f"{file}: made with --sarif", "name the same files with --sarif")
    redact = given.redacted is not None
    again = pipeline.make_pack(
        job.Job(git, made, config, directory, Deadline(0), Progress(quiet), results, redact)
    )
    if again.digest == given.digest == pack.sealed(given).digest:
        click.echo(f"same: {again.digest}")
        return EXIT_OK
    edited = pack.sealed(given).digest != given.digest
    if edited:
        click.echo(f"{file} was changed after it was made: its digest is not that of its content")
    if given.tool.version != __version__:
        click.echo(f"made by {given.tool.version}, this is {__version__}")
    stage = pipeline.first_difference(given, again)
    digests = "" if edited else f": {given.digest} was made, now {again.digest}"
    click.echo(f"differs: first in {stage}{digests}")
    return EXIT_DIFFERS
