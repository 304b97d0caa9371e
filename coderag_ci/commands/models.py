"""``coderag-ci models``: which models there are, whether they are whole, and getting another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from coderag_ci.errors import EXIT_OK, EXIT_SETUP

if TYPE_CHECKING:
    from pathlib import Path

    from coderag_ci.pull import Known


@click.group()
def models() -> None:
    """List, check and download the models that embed and rerank."""


@models.command("list")
def list_models() -> int:
    """Show every model that can be named, with its licence, its size, and whether it is here."""
    from coderag_ci import modelfiles, pull

    rows = [("NAME", "KIND", "LICENCE", "MB", "HERE")]
    folder = modelfiles.bundled()
    try:
        manifest = modelfiles.manifest_of(folder)
    except modelfiles.DamagedError:
        rows.append((modelfiles.BUNDLED, "?", "?", "?", "damaged"))
    else:
        size = _megabytes(folder)
        rows.append((modelfiles.BUNDLED, manifest.kind, manifest.license, size, "bundled"))
    for model in pull.known():
        here = "pulled" if modelfiles.folder_of(model.name).is_dir() else "-"
        rows.append((model.name, model.kind, _licence(model), str(model.megabytes), here))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        click.echo("  ".join(cells).rstrip())
    return EXIT_OK


@models.command()
def verify() -> int:
    """Compare the files of each model that is here with its manifest; exit 3 where one differs."""
    from coderag_ci import modelfiles

    wrong = 0
    pulled = ((folder.name.replace("+", "/"), folder) for folder in modelfiles.pulled())
    for name, folder in ((modelfiles.BUNDLED, modelfiles.bundled()), *pulled):
        try:
            digest = modelfiles.checked(folder).digest
        except modelfiles.DamagedError as error:
            wrong += 1
            click.echo(f"damaged  {name}: {error} ({folder})")
        else:
            click.echo(f"ok       {name} {digest[:12]}")
    return EXIT_SETUP if wrong else EXIT_OK


@models.command()
@click.argument("name")
def pull(name: str) -> int:
    """Download the model NAME, so that it can be used offline."""
    from coderag_ci import pull as pulling
    from coderag_ci.progress import to_stderr

    model = pulling.named(name)
    if model.is_non_commercial:
        to_stderr(f"coderag-ci: {name}: its licence, {model.license}, forbids commercial use")
    folder = pulling.pull(model)
    click.echo(f"{name} ({model.license}) is in {folder}")
    return EXIT_OK


def _megabytes(folder: Path) -> str:
    return str(round(sum(file.stat().st_size for file in folder.iterdir()) / 1e6))


def _licence(model: Known) -> str:
    return f"{model.license} (non-commercial)" if model.is_non_commercial else model.license
