"""``coderag-ci eval run``: say how well the pipeline finds what it should."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from coderag_ci.commands import options
from coderag_ci.errors import EXIT_OK, EXIT_WORSE, SetupError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from coderag_ci.eval.cases import Skip
    from coderag_ci.eval.results import Results
    from coderag_ci.progress import Progress

_MOST_TOLD = 20


@click.command()
@options.quiet
@options.config_file
@click.option("--cases", "case_file", metavar="FILE", required=True, help="Cases, JSON Lines.")
@click.option(
    "--repos", metavar="DIR", help="Holds owner/name, owner+name or name; work trees or bare."
)
@click.option("--repo", metavar="DIR", help="The repository of all cases not found in --repos.")
@click.option(
    "--set",
    "given",
    metavar="KEY=VALUE",
    multiple=True,
    help="A setting, as in .coderag.yml; several values of a key are a sweep.",
)
@click.option("--ablate", is_flag=True, help="Run again without each channel, rerank and floor.")
@click.option(
    "--limit", type=click.IntRange(min=1), metavar="N", help="The first N cases of each repository."
)
@click.option(
    "--jobs", type=click.IntRange(1, 64), metavar="N", help="Processes. [default: one a CPU]"
)
@click.option("--out", metavar="FILE", help="Write results as JSON; a stopped run resumes there.")
@click.option("--baseline", metavar="FILE", help="Results to compare with; exit 6 where worse.")
@click.option(
    "--fail-below",
    metavar="METRIC=VALUE",
    multiple=True,
    help="Exit 6 where a figure is lower, for example final.pack.recall@4000=0.4.",
)
@click.option(
    "--index-dir", metavar="DIR", help="Where indexes are kept. [default: each git directory]"
)
def run(**given: Any) -> int:
    """Run the pipeline on cases and say where in each ranking their gold is."""
    from coderag_ci.eval import cases, places, results, settings, table
    from coderag_ci.eval.run import Kept, Plan, fingerprint
    from coderag_ci.eval.run import run as run_cases
    from coderag_ci.files import write_stdout, write_whole
    from coderag_ci.progress import Progress
    from coderag_ci.workers import cpu_count

    if not (given["repos"] or given["repo"]):
        raise UsageError("no repositories named", "give --repos DIR, or --repo DIR")
    floors = [_floor(item) for item in given["fail_below"]]
    base = _base_settings(given["config_file"])
    variants = settings.variants_of(given["given"], base, given["ablate"])
    baseline = (given["baseline"], results.read(given["baseline"])) if given["baseline"] else None
    read, skipped = cases.read(given["case_file"])
    wanted = _limited(read, given["limit"])
    found = places.find((case.repo for _, case in wanted), given["repos"], given["repo"])
    progress = Progress(given["quiet"])
    out = given["out"]
    if out and os.path.exists(out) and os.path.samefile(out, given["case_file"]):
        raise UsageError("--out is the file of cases", "name another file with --out")
    if out and os.path.isdir(out):
        raise SetupError(f"can not write {out}: it is a folder", "name a file with --out")
    lasting = out and (not os.path.exists(out) or os.path.isfile(out))
    partial = out + ".partial" if lasting else None
    kept = Kept(partial, fingerprint(variants, base))
    click.get_current_context().call_on_close(kept.close)
    if kept.resumed:
        progress.say(f"goes on from {partial}")
    index_dir = Path(given["index_dir"]).expanduser().absolute() if given["index_dir"] else None
    jobs = given["jobs"] or cpu_count()
    plan = Plan(wanted, variants, base, found, index_dir, jobs)
    outcomes, more = run_cases(plan, kept, progress)
    skipped = sorted([*skipped, *more], key=lambda skip: skip.line)
    none = not outcomes[variants[0].label]
    _tell(given["case_file"], skipped, Progress(quiet=False) if none else progress)
    if none:
        kept.drop()
        raise SetupError("no case could be run", "see what was skipped, above")
    made = results.results_of(
        [case for _, case in wanted], variants, outcomes, skipped, base, baseline
    )
    if given["out"]:
        write_whole(given["out"], results.encode(made))
        kept.drop()
    write_stdout((table.table_of(made) + "\n").encode())
    return _verdict(made, floors)


def _base_settings(config_file: str | None) -> dict[str, Any]:
    """Read the config file, if one is named; neither the environment nor a repository counts."""
    from coderag_ci import config

    if not config_file:
        return {}
    found = config.resolve(options.read_config_file(config_file), config_file, {}, {})
    return {
        key: config.value_of(found.config, key)
        for key, source in found.sources.items()
        if source != "default"
    }


def _limited(read: Sequence[tuple[int, Any]], limit: int | None) -> list[tuple[int, Any]]:
    seen: dict[str, int] = {}
    wanted = []
    for line, case in read:
        seen[case.repo] = seen.get(case.repo, 0) + 1
        if limit is None or seen[case.repo] <= limit:
            wanted.append((line, case))
    return wanted


def _floor(item: str) -> tuple[str, float]:
    from coderag_ci.eval import results

    name, equals, number = item.partition("=")
    try:
        value = float(number)
    except ValueError:
        value = float("nan")
    if not equals or not 0 <= value <= 1:
        raise UsageError(
            f"--fail-below {item}: expected METRIC=VALUE", f"for example {results.DECIDES}=0.4"
        )
    results.check_name(name)
    return name, value


def _tell(case_file: str, skipped: Sequence[Skip], progress: Progress) -> None:
    """Name what was skipped on stderr, by line."""
    for skip in skipped[:_MOST_TOLD]:
        where = f"{case_file}, line {skip.line}" + (f" ({skip.id})" if skip.id else "")
        progress.say(f"skipped {where}: {skip.reason}")
    if len(skipped) > _MOST_TOLD:
        progress.say(f"and {len(skipped) - _MOST_TOLD} more lines skipped; --out lists them")


def _verdict(made: Results, floors: Sequence[tuple[str, float]]) -> int:
    """Return the exit code; why it is not 0 is said also where --quiet is given."""
    from coderag_ci.eval import results
    from coderag_ci.progress import Progress

    progress = Progress(quiet=False)
    code = EXIT_OK
    for name, least in floors:
        value = results.look_up(made, name)
        if value is None:
            raise SetupError(f"--fail-below {name}: no case gives this figure", "name another")
        if value < least:
            progress.say(f"{name} is {value:.4f}, below {least:g}")
            code = EXIT_WORSE
    if made.comparison is not None and made.comparison.verdict == "worse":
        progress.say(f"worse than {made.comparison.against}")
        code = EXIT_WORSE
    return code
