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
