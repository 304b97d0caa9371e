"""``coderag-ci eval``: one file a subcommand."""

from __future__ import annotations

import click

from coderag_ci.commands.eval.docstrings import docstrings
from coderag_ci.commands.eval.mine import mine
from coderag_ci.commands.eval.report import report
from coderag_ci.commands.eval.run import run


@click.group("eval")
def evaluate() -> None:
    """Measure recall, ranking and packs on cases from real histories."""


for command in (docstrings, mine, report, run):
    evaluate.add_command(command)
