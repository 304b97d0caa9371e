"""``coderag-ci eval``: one file a subcommand."""

from __future__ import annotations

import click

from coderag_ci.commands.eval.run import run


@click.group("eval")
def evaluate() -> None:
    """Measure recall, ranking and packs on cases from real histories."""


for command in (run,):
    evaluate.add_command(command)
