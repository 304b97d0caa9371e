"""``coderag-ci config``: what is in force, and where each value came from."""

from __future__ import annotations

import os

import click

from coderag_ci.commands import options
from coderag_ci.progress import printable


@click.command()
@options.repository
@options.config_file
@click.option("--base", metavar="REF", help="In CI: the base whose config is read.")
def config(
    repo: str | None, config_file: str | None, index_dir: str | None, base: str | None
) -> None:
    """Print every setting, its value and where it came from."""
    import msgspec

    from coderag_ci import ci
    from coderag_ci.config import keys, value_of
    from coderag_ci.gitrepo import GitRepo

    git = GitRepo(repo)
    surroundings = ci.detect(os.environ)
    named = base or surroundings.base or git.default_branch() or ""
    commit = git.resolve(named) if named and (surroundings.active or git.bare) else ""
    found = options.read_config(git, config_file, {}, surroundings, commit)
    width = max(map(len, keys()))
    for key in keys():
        value = msgspec.json.encode(value_of(found.config, key)).decode()
        click.echo(printable(f"{key:{width}}  {value}  ({found.sources[key]})"))
    click.echo(printable(f"{'index-dir':{width}}  {options.index_directory(git, index_dir)}"))
