"""``coderag-ci index``: warm the store, say what is in it, drop what is not used."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import click

from coderag_ci.commands import options
from coderag_ci.errors import EXIT_DEGRADED, EXIT_OK, UsageError
from coderag_ci.progress import printable

if TYPE_CHECKING:
    from coderag_ci.config import Config
    from coderag_ci.gitrepo import GitRepo
    from coderag_ci.store import Store


@click.command()
@options.repository
@options.config_file
@options.quiet
@options.models
@click.option("--ref", metavar="REF", help="The commit to index. [default: HEAD]")
@click.option("--stats", is_flag=True, help="Say what the store holds, and index nothing.")
@click.option("--prune", is_flag=True, help="Drop what no recent view uses, and index nothing.")
def index(
    repo: str | None,
    config_file: str | None,
    index_dir: str | None,
    quiet: bool,
    embedding_model: str | None,
    rerank_model: str | None,
    ref: str | None,
    stats: bool,
    prune: bool,
) -> int:
    """Bring the index up to date with a commit, so that ``context`` finds it warm.

    Only blobs that it has never seen are read. Where an embedding model is configured,
    every chunk gets its vector.
    """
    from coderag_ci import ci, store
    from coderag_ci.gitrepo import GitRepo
    from coderag_ci.progress import Progress

    if sum((bool(ref), stats, prune)) > 1:
        raise UsageError("--ref, --stats and --prune exclude each other", "give one")
    git = GitRepo(repo)
    kept = store.Store(options.index_directory(git, index_dir))
    try:
        if stats:
            _print_stats(kept)
        if prune:
            _prune(git, kept)
        if stats or prune:
            for note in kept.notes:
                Progress(quiet).say(note)
            return EXIT_OK
        commit = git.resolve(ref or "HEAD")
        surroundings = ci.detect(os.environ)
        flags = {"embedding-model": embedding_model, "rerank-model": rerank_model}
        settings = options.read_config(git, config_file, flags, surroundings, commit)
        return _warm(git, kept, commit, settings.config, quiet)
    finally:
        kept.close()


def _warm(git: GitRepo, kept: Store, commit: str, config: Config, quiet: bool) -> int:
    from coderag_ci import index as indexing
    from coderag_ci import view
    from coderag_ci.models import ModelUnavailable
    from coderag_ci.pathrules import PathRules
    from coderag_ci.progress import Progress
    from coderag_ci.recall import embed_all

    start = time.perf_counter()
    rules = PathRules(config)
    progress = Progress(quiet)
    seen = view.commit_view(git, commit, rules)
    for _ in range(2):
        with progress.task("indexing", worth=True) as advance:
            update, fresh = indexing.update(git, seen, kept, advance)
        opened = indexing.open_index(seen, kept, rules, fresh)
        if not kept.rebuilt:  # else rows were lost on the way: once more
            break
    kept.touch_view(seen.digest, [entry.blob for entry in seen.entries])
    code = EXIT_OK
    vectors = ""
    if config.embedding_model != "none":
        try:
            made = embed_all(git, seen, opened.index, kept, config, progress)
            vectors = f", {made} vectors made"
        except ModelUnavailable as error:
            progress.say(f"no vectors: {error}")
            code = EXIT_DEGRADED
    for skip in (*update.skipped, *opened.skipped):
        progress.say(f"skipped {skip.path}: {skip.reason}")
    for note in kept.notes:
        progress.say(note)
    click.echo(
        f"{commit[:12]}: {update.indexed} blobs indexed, {update.reused} reused, "
        f"{opened.index.size} chunks{vectors}, {time.perf_counter() - start:.1f} s"
    )
    return code


def _print_stats(kept: Store) -> None:
    counts = kept.counts()
    click.echo(printable(f"store      {kept.path}"))
    click.echo(f"blobs      {counts['rows']}")
    click.echo(f"vectors    {counts['vectors']}")
    click.echo(f"commits    {counts['commits']}")
    click.echo(f"views      {counts['views']}")
    click.echo(f"size       {counts['bytes'] / 1e6:.1f} MB")
    snapshots = list((kept.directory / "snapshots").glob("*.snap"))
    size = sum(file.stat().st_size for file in snapshots)
    click.echo(f"snapshots  {len(snapshots)}, {size / 1e6:.1f} MB")


def _prune(git: GitRepo, kept: Store) -> None:
    from coderag_ci.parse.languages import BY_NAME, parser_digest

    parsers = {parser_digest(name) for name in BY_NAME}
    done = kept.prune(parsers, len(bytes.fromhex(git.hash(b""))), git.newest())
    click.echo(
        f"dropped {done.rows} blobs, {done.commits} commits, {done.vectors} vectors, "
        f"{done.freed / 1e6:.1f} MB"
    )
