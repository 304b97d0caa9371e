"""``coderag-ci doctor``: what is here, what is missing, and the command that mends it."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable

import click

from coderag_ci import __version__
from coderag_ci.commands import options
from coderag_ci.errors import EXIT_OK, EXIT_SETUP, CoderagError
from coderag_ci.progress import printable

_PACKAGES = (
    "GitPython", "unidiff", "tree-sitter", "rank-bm25", "fastembed", "onnxruntime", "numpy",
    "msgspec", "PyYAML", "pathspec", "click", "rich",
)  # fmt: skip


@click.command()
@options.repository
@options.config_file
@options.models
def doctor(
    repo: str | None,
    config_file: str | None,
    index_dir: str | None,
    embedding_model: str | None,
    rerank_model: str | None,
) -> int:
    """Say what is installed and found, and how to mend what is not."""
    problems: list[str] = []
    click.echo(f"coderag-ci   {__version__}")
    click.echo(
        f"python       {platform.python_version()} on {platform.system()} {platform.machine()}"
    )
    _packages(problems)
    _grammars(problems)
    flags = {"embedding-model": embedding_model, "rerank-model": rerank_model}
    try:
        _repository(repo, config_file, index_dir, flags, problems)
    except CoderagError as error:
        problems.append(f"{error.message}. {error.hint}")
    click.echo("")
    for problem in problems:
        click.echo(printable(f"to mend: {problem}"))
    click.echo("nothing to mend" if not problems else f"{len(problems)} to mend")
    return EXIT_SETUP if problems else EXIT_OK


def _packages(problems: list[str]) -> None:
    import importlib.metadata

    found = []
    for name in _PACKAGES:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            problems.append(f"{name} is not installed. pip install {name}")
    click.echo(f"packages     {', '.join(found)}")


def _grammars(problems: list[str]) -> None:
    from coderag_ci.parse.languages import LANGUAGES, grammar

    loaded = []
    for language in LANGUAGES:
        if not language.module:
            continue
        try:
            grammar(language.name)
            loaded.append(language.name)
        except Exception as error:
            name = language.distribution
            problems.append(
                f"grammar {language.name}: {error}. pip install --force-reinstall {name}"
            )
    click.echo(f"grammars     {', '.join(loaded)}")


def _repository(
    repo: str | None,
    config_file: str | None,
    index_dir: str | None,
    flags: dict[str, str | None],
    problems: list[str],
) -> None:
    from coderag_ci import ci, store
    from coderag_ci.gitrepo import GitRepo

    git = GitRepo(repo)
    click.echo(f"git          {git.version()}")
    head = git.head()
    state = [
        "bare" if git.bare else f"work tree {git.root}",
        f"HEAD {head[:12]}" if head else "no commits yet",
        f"branch {git.branch()}" if git.branch() else "detached",
    ]
    if git.shallow:
        state.append("shallow")
        problems.append(
            "the clone is shallow: history and merge bases may be missing. git fetch --unshallow"
        )
    click.echo(printable(f"repository   {', '.join(state)}"))
    default = git.default_branch()
    click.echo(printable(f"default      {default or 'none found'}"))
    if default is None and head:
        problems.append("no default branch was found. git remote set-head origin --auto")
    kept = store.Store(options.index_directory(git, index_dir))
    counts = kept.counts()
    kept.close()
    size = f"{counts['rows']} blobs, {counts['bytes'] / 1e6:.1f} MB"
    click.echo(printable(f"store        {kept.path} ({size})"))
    problems += [f"{note}. Name a folder with --index-dir" for note in kept.notes]
    settings = options.read_config(git, config_file, flags, ci.detect({**os.environ, "CI": ""}), "")
    _models(settings.config.embedding_model, settings.config.rerank_model, problems)


def _models(embedding: str, rerank: str, problems: list[str]) -> None:
    from coderag_ci import ranker
    from coderag_ci.models import CrossEncoder, Embedder, ModelUnavailable

    def describe(
        label: str, name: str, plain: tuple[str, ...], load: Callable[[str], object]
    ) -> None:
        if name in plain:
            click.echo(printable(f"{label:12} {name}"))
            return
        try:
            load(name)
            click.echo(printable(f"{label:12} {name} (loads)"))
        except ModelUnavailable as error:
            click.echo(printable(f"{label:12} {name} (not available)"))
            problems.append(f"{label}: {error}. Name a directory with the model's files, or none")

    describe("embedding", embedding, ("none",), Embedder)
    describe("rerank", rerank, ("none", "heuristic", "learned"), CrossEncoder)
    if rerank == "learned":
        try:
            ranker.load()
        except ranker.RankerUnavailableError as error:
            problems.append(f"fitted ranker: {error}. Install coderag-ci anew")
