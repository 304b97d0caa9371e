"""Asks GitHub which pull request a workflow run was for, and for the artifact that it left.

Both come from what GitHub says of the run; nothing is asked of the artifact itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from urllib.parse import quote

from coderag_ci import ci
from coderag_ci.client import Answered, Client, Refused, patiently
from coderag_ci.errors import SetupError


class Api:
    """A forge that speaks GitHub's API, at the address and with the token of the environment."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        forge = ci.github(environment)
        secret = {"Authorization": f"Bearer {forge.token}"}
        self._client = Client("GitHub", f"{forge.url}/repos/{quote(forge.project)}", secret)

    def pull_requests(self, run: ci.WorkflowRun) -> list[int]:
        """Return the open pull requests whose head is the commit that a run was for."""
        branch = quote(f"{run.owner}:{run.branch}")
        some = self._ask(
            lambda: list(self._client.pages(f"pulls?state=open&per_page=100&head={branch}"))
        )
        return [
            pull["number"]
            for pull in some
            if pull.get("head", {}).get("sha") == run.head and isinstance(pull.get("number"), int)
        ]

    def artifact(self, run: ci.WorkflowRun, name: str, most: int) -> bytes | None:
        """Return the one artifact of a run with a name; None where there is none.

        Raises SetupError where there are several, or it is larger than ``most`` bytes.
        """
        listing = f"actions/runs/{run.number}/artifacts?per_page=100&name={quote(name)}"
        answer = self._ask(lambda: self._client.get(listing))
        some = [one for one in answer.get("artifacts", []) if one.get("name") == name]
        if not some or some[0].get("expired"):
            return None
        if len(some) > 1:
            raise SetupError(f"the run has {len(some)} artifacts named {name}")
        if some[0].get("size_in_bytes", 0) <= most:
            place = f"actions/artifacts/{int(some[0]['id'])}/zip"
            data = self._ask(lambda: self._client.read(place, most + 1))
            if len(data) <= most:
                return data
        raise SetupError(f"the artifact is larger than {most >> 20} MiB")

    def _ask(self, ask: Callable[[], Answered]) -> Answered:
        try:
            return patiently(ask)
        except Refused as error:
            error.hint = "the job needs the permissions actions: read and pull-requests: write"
            raise
