"""``coderag-ci eval report``: results as a page."""

from __future__ import annotations

import click

from coderag_ci.errors import EXIT_OK, SetupError


@click.command()
@click.argument("results_file", metavar="RESULTS.json")
@click.option("--out", metavar="FILE.html", help="Write to FILE.html instead of stdout.")
def report(results_file: str, out: str | None) -> int:
    """Turn the results of eval run into one HTML page with tables and plots."""
    try:
        import matplotlib  # noqa: F401, ICN001
    except ImportError as error:
        raise SetupError("the plots need matplotlib", "pip install 'coderag-ci[eval]'") from error
    from coderag_ci.commands.context import write
    from coderag_ci.eval import results
    from coderag_ci.eval.report import page_of

    write(page_of(results.read(results_file)), out)
    return EXIT_OK
