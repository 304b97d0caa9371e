"""``coderag-ci ci``: the steps of the GitHub Action, one command each. Not for people."""

from __future__ import annotations

import base64
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from coderag_ci import workflow
from coderag_ci.commands import options, publish
from coderag_ci.errors import SetupError

if TYPE_CHECKING:
    from coderag_ci.ci import WorkflowRun
    from coderag_ci.config import Config
    from coderag_ci.gitrepo import GitRepo
    from coderag_ci.pack import Pack


@click.group(hidden=True)
def ci() -> None:
    """Run a step of the GitHub Action, which takes its inputs from the environment."""


@ci.command()
@click.option("--base", envvar="INPUT_BASE", default="")
@click.option("--head", envvar="INPUT_HEAD", default="")
@click.option("--config", "config_file", envvar="INPUT_CONFIG", default="")
@click.option("--work", envvar="CODERAG_WORK", required=True, help="A folder for files.")
def prepare(base: str, head: str, config_file: str, work: str) -> None:
    """Decide what is compared, fetch what the clone lacks of it, and name the saved index."""
    from coderag_ci import ci, deepen
    from coderag_ci.cachekey import key
    from coderag_ci.gitrepo import GitRepo

    repo = GitRepo()
    run = ci.github_run(os.environ)
    clone = deepen.Clone(repo, _header(repo), lambda text: click.echo(f"coderag-ci: {text}"))
    tip = clone.commit([head or run.head or "HEAD"])
    if base:
        start = clone.commit([base])
    else:
        branch = f"refs/heads/{run.default_branch}" if run.default_branch else "HEAD"
        start = clone.commit([*([run.base] if run.base else ()), branch])
    merge_base = clone.merge_base(start, tip)
    path = _config_of_base(repo, merge_base, config_file, work)
    trusted = tip if run.default_push else merge_base
    outputs = {
        "base": start,
        "head": tip,
        "config": path,
        "key": key(_config(repo, trusted, path)),
        "may-save": str(run.default_push).lower(),
        "pull-request": str(run.pull_request or ""),
    }
    workflow.set_outputs(os.environ, outputs)
    click.echo(f"coderag-ci: {merge_base[:12]} (merge base with {start[:12]}) → {tip[:12]}")


@ci.command("check-index")
@click.option("--index-dir", envvar="CODERAG_INDEX_DIR", required=True)
def check_index(index_dir: str) -> None:
    """Discard a restored index that is not one of ours, whole and undamaged."""
    from coderag_ci import cachekey, store

    directory = Path(index_dir)
    if reason := cachekey.unsound(directory / store.FILE_NAME):
        cachekey.discard(directory)
        workflow.annotate(os.environ, "notice", f"the saved index was discarded: {reason}")


@ci.command()
@click.argument("file", metavar="PACK.json")
def outputs(file: str) -> None:
    """Set the outputs of the action from a pack."""
    from coderag_ci.cachekey import is_worth_saving

    pack = publish.read(file)
    path = Path(file)
    workflow.set_outputs(
        os.environ,
        {
            "pack-path": str(path.with_suffix(".md")),
            "json-path": str(path),
            "digest": pack.digest,
            "degraded": str(bool(pack.degradations)).lower(),
            "truncated": str(_is_truncated(pack)).lower(),
            "worth-saving": str(
                is_worth_saving(pack.trace.blobs_indexed, pack.trace.blobs_reused)
            ).lower(),
        },
    )


@ci.command()
@click.option("--artifact-name", envvar="INPUT_ARTIFACT_NAME", required=True)
@click.option("--work", envvar="CODERAG_WORK", required=True, help="A folder for files.")
def receive(artifact_name: str, work: str) -> None:
    """Take the pack that the run of a fork's pull request left, for the step that posts it.

    Where there is none, or not one pull request that it belongs to, that is said and no
    output is set.
    """
    from coderag_ci import ci

    run = ci.finished_run(os.environ)
    if run is None or run.event != "pull_request":
        return _nothing("this is not the end of a pull request's run")
    try:
        return _receive(run, artifact_name, Path(work, "received", "pack.json"))
    except SetupError as error:
        return _nothing(error.message, "warning")


def _receive(run: WorkflowRun, name: str, path: Path) -> None:
    from coderag_ci import artifact, received
    from coderag_ci.files import write_whole
    from coderag_ci.render import as_json

    api = artifact.Api(os.environ)
    pulls = api.pull_requests(run)
    if len(pulls) != 1:
        reason = "its head has moved, or it is closed" if not pulls else f"there are {len(pulls)}"
        return _nothing(f"not one open pull request has the head {run.head[:12]}: {reason}")
    archive = api.artifact(run, name, received.MOST_BYTES)
    if archive is None:
        return _nothing(f"the run left no artifact named {name}")
    server, repository = (os.environ.get(f"GITHUB_{n}", "") for n in ("SERVER_URL", "REPOSITORY"))
    pack = received.read(archive, run.head, f"{server}/{repository}")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(str(path), as_json.render(pack).encode())
    workflow.set_outputs(
        os.environ,
        {"pull-request": str(pulls[0]), "head": run.head, "json-path": str(path)},
    )
    return None


def _nothing(reason: str, level: str = "notice") -> None:
    workflow.annotate(os.environ, level, f"nothing is posted: {reason}")


def _header(repo: GitRepo) -> str:
    """Return what authenticates a fetch from the server of the workflow; empty elsewhere."""
    token = os.environ.get("GITHUB_TOKEN", "")
    server = os.environ.get("GITHUB_SERVER_URL", "")
    if not token or not server or not repo.remote_url().startswith(server.rstrip("/") + "/"):
        return ""
    encoded = base64.b64encode(f"x-access-token:{token}".encode()).decode()
    return f"AUTHORIZATION: basic {encoded}"


def _config_of_base(repo: GitRepo, base: str, path: str, work: str) -> str:
    """Copy a config file of the base to where the change can not reach; return the path.

    Empty where none was named. Raises SetupError where the base has no such file.
    """
    from coderag_ci.files import write_whole

    if not path:
        return ""
    data = repo.file_at(base, path)
    if data is None:
        raise SetupError(
            f"the base {base[:12]} has no file {path}",
            "config names a file of the base, since a change must not choose its own settings",
        )
    target = Path(work, "coderag.yml")
    target.parent.mkdir(parents=True, exist_ok=True)
    write_whole(str(target), data)
    return str(target)


def _config(repo: GitRepo, commit: str, path: str) -> Config:
    from coderag_ci import ci

    surroundings = ci.CI(active=True)
    return options.read_config(repo, path or None, {}, surroundings, commit).config


def _is_truncated(pack: Pack) -> bool:
    """Whether something of the change itself, or of what is known of it, had to be cut."""
    cut = any(file.cut_lines or file.cut_hunks for file in pack.diff)
    return cut or len(pack.diff) < pack.change.files or pack.facts_more > 0
