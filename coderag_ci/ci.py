"""The one module that reads what a CI system says of itself. Takes a mapping, not os.environ."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

_MOST_EVENT_BYTES = 8 << 20


class CI(NamedTuple):
    """What CI knows of the change; empty strings where it says nothing."""

    active: bool
    base: str = ""
    title: str = ""


class Run(NamedTuple):
    """What a run of a GitHub workflow is about; empty strings where the event says nothing.

    ``default_push``: it is a push to the default branch, whose caches every branch reads.
    """

    event: str
    base: str
    head: str
    pull_request: int
    default_branch: str
    default_push: bool


def github_run(environment: Mapping[str, str]) -> Run:
    """Read the event of a GitHub workflow: which commits it compares, and for which pull request.

    The head of a pull request is its own commit, not the merge that GitHub tries.
    """
    event = _event(environment.get("GITHUB_EVENT_PATH", ""))
    name = environment.get("GITHUB_EVENT_NAME", "")
    default = _text(event, "repository", "default_branch")
    base = head = ""
    number = 0
    if "pull_request" in event:
        base = _text(event, "pull_request", "base", "sha")
        head = _text(event, "pull_request", "head", "sha")
        found = _at(event, "pull_request", "number")
        number = found if isinstance(found, int) else 0
    elif name == "merge_group":
        base = _text(event, "merge_group", "base_sha")
        head = _text(event, "merge_group", "head_sha")
    elif name == "push":
        base, head = _text(event, "before"), _text(event, "after")
    pushed = name == "push" and bool(default) and _text(event, "ref") == f"refs/heads/{default}"
    head = head or environment.get("GITHUB_SHA", "")
    return Run(name, base if base.strip("0") else "", head, number, default, pushed)


class Forge(NamedTuple):
    """Where a forge's API is, and what a run there is about; empty where the CI says nothing."""

    url: str
    graphql: str
    project: str
    token: str
    pull_request: int
    head: str


def github(environment: Mapping[str, str]) -> Forge:
    """Read where a GitHub workflow's forge is, whose token is in GITHUB_TOKEN."""
    url = (environment.get("GITHUB_API_URL") or "https://api.github.com").rstrip("/")
    run = github_run(environment)
    return Forge(
        url,
        environment.get("GITHUB_GRAPHQL_URL") or f"{url}/graphql",  # Gitea's runner: empty
        environment.get("GITHUB_REPOSITORY", ""),
        environment.get("GITHUB_TOKEN", "").strip(),
        run.pull_request,
        run.head,
    )


def gitlab(environment: Mapping[str, str]) -> Forge:
    """Read where a GitLab job's forge is; the token is one that may comment, in GITLAB_TOKEN."""

    def said(*names: str) -> str:
        return next((environment[name] for name in names if environment.get(name)), "")

    number = said("CI_MERGE_REQUEST_IID")
    return Forge(
        said("CI_API_V4_URL").rstrip("/") or "https://gitlab.com/api/v4",
        "",
        said("CI_MERGE_REQUEST_PROJECT_ID", "CI_PROJECT_ID"),  # of a fork's, where it is to go
        said("GITLAB_TOKEN").strip(),
        int(number) if number.isascii() and number.isdigit() and len(number) < 20 else 0,
        said("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA", "CI_COMMIT_SHA"),
    )


class WorkflowRun(NamedTuple):
    """The run whose end began this one, as GitHub knows it. ``owner``: of the head's repository."""

    number: int
    event: str
    head: str
    owner: str
    branch: str


def finished_run(environment: Mapping[str, str]) -> WorkflowRun | None:
    """Read a ``workflow_run`` event; None for any other."""
    event = _event(environment.get("GITHUB_EVENT_PATH", ""))
    number = _at(event, "workflow_run", "id")
    if not isinstance(number, int):
        return None
    return WorkflowRun(
        number,
        _text(event, "workflow_run", "event"),
        _text(event, "workflow_run", "head_sha"),
        _text(event, "workflow_run", "head_repository", "owner", "login"),
        _text(event, "workflow_run", "head_branch"),
    )


def _at(event: Mapping[str, Any], *keys: str) -> Any:
    """Return what stands at nested keys of an event; None where there is nothing."""
    found: Any = event
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found


def _text(event: Mapping[str, Any], *keys: str) -> str:
    found = _at(event, *keys)
    return found if isinstance(found, str) else ""


def detect(environment: Mapping[str, str]) -> CI:
    """Read GitHub's or GitLab's variables, or the generic ``CI``."""
    if environment.get("GITHUB_ACTIONS") == "true":
        event = _event(environment.get("GITHUB_EVENT_PATH", ""))
        pull = event.get("pull_request")
        pull = pull if isinstance(pull, dict) else {}
        branch = environment.get("GITHUB_BASE_REF", "")
        return CI(True, f"origin/{branch}" if branch else "", str(pull.get("title") or ""))
    if environment.get("GITLAB_CI") == "true":
        return CI(
            True,
            environment.get("CI_MERGE_REQUEST_DIFF_BASE_SHA", ""),
            environment.get("CI_MERGE_REQUEST_TITLE", ""),
        )
    return CI(environment.get("CI", "").lower() in ("true", "1"))


def _event(path: str) -> dict[str, Any]:
    try:
        file = Path(path)
        if not path or not file.is_file() or file.stat().st_size > _MOST_EVENT_BYTES:
            return {}
        event = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return event if isinstance(event, dict) else {}
