"""Asks GitHub which pull request a workflow run was for, and for the artifact that it left.

Both come from what GitHub says of the run; nothing is asked of the artifact itself.
"""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import IO, Any, cast
from urllib.parse import quote, urlsplit

from coderag_ci import __version__
from coderag_ci.ci import WorkflowRun
from coderag_ci.errors import SetupError

_SECONDS = 30.0
_MOST_ANSWER = 8 << 20
_REDIRECTS = (301, 302, 303, 307, 308)


class Api:
    """A forge that speaks GitHub's API, at the address and with the token of the environment."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._url = environment.get("GITHUB_API_URL", "https://api.github.com").rstrip("/")
        self._token = environment.get("GITHUB_TOKEN", "")
        self._repository = quote(environment.get("GITHUB_REPOSITORY", ""))

    def pull_requests(self, run: WorkflowRun) -> list[int]:
        """Return the open pull requests whose head is the commit that a run was for."""
        branch = quote(f"{run.owner}:{run.branch}")
        some = self._json(f"pulls?state=open&per_page=100&head={branch}")
        return [
            pull["number"]
            for pull in some
            if pull.get("head", {}).get("sha") == run.head and isinstance(pull.get("number"), int)
        ]

    def artifact(self, run: WorkflowRun, name: str, most: int) -> bytes | None:
        """Return the one artifact of a run with a name; None where there is none.

        Raises SetupError where there are several, or it is larger than ``most`` bytes.
        """
        answer = self._json(f"actions/runs/{run.number}/artifacts?per_page=100&name={quote(name)}")
        some = [one for one in answer.get("artifacts", []) if one.get("name") == name]
        if not some or some[0].get("expired"):
            return None
        if len(some) > 1:
            raise SetupError(f"the run has {len(some)} artifacts named {name}")
        if some[0].get("size_in_bytes", 0) <= most:
            data = self._read(f"actions/artifacts/{int(some[0]['id'])}/zip", most + 1)
            if len(data) <= most:
                return data
        raise SetupError(f"the artifact is larger than {most >> 20} MiB")

    def _json(self, path: str) -> Any:
        return json.loads(self._read(path, _MOST_ANSWER))

    def _read(self, path: str, most: int) -> bytes:
        """Read an answer up to some bytes. Raises SetupError."""
        try:
            with self._open(f"{self._url}/repos/{self._repository}/{path}") as answer:
                return answer.read(most)
        except (OSError, ValueError) as error:  # what urllib raises are OSErrors
            reason = getattr(error, "reason", None) or error
            raise SetupError(
                f"GitHub does not give {path.partition('?')[0]}: {reason}",
                "the job needs the permissions actions: read and pull-requests: write",
            ) from error

    def _open(self, url: str) -> IO[bytes]:
        """Open an address; where it leads elsewhere, that place does not get the token."""
        headers = {
            "Accept": "application/vnd.github+json",
            "Authorization": f"Bearer {self._token}",
            "User-Agent": f"coderag-ci/{__version__}",
            "X-GitHub-Api-Version": "2022-11-28",
        }
        opener = urllib.request.build_opener(_Stay)
        # the address is what the runner says of its forge; a redirect keeps to its scheme
        request = urllib.request.Request(url, headers=headers)  # noqa: S310
        try:
            return cast("IO[bytes]", opener.open(request, timeout=_SECONDS))
        except urllib.error.HTTPError as error:
            place = error.headers.get("Location", "")
            if error.code not in _REDIRECTS or urlsplit(place).scheme != urlsplit(url).scheme:
                raise
        elsewhere = urllib.request.Request(place)  # noqa: S310
        return cast("IO[bytes]", opener.open(elsewhere, timeout=_SECONDS))


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows no redirect by itself: it would send the token along."""

    def redirect_request(self, *_: Any) -> None:
        return None
