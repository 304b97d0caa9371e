"""The comments of a pull request, on forges that speak GitHub's or GitLab's API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote

from coderag_ci.ci import Forge
from coderag_ci.client import Busy, Client, Refused


class Comment(NamedTuple):
    """A comment that is there."""

    number: int
    author: str
    body: str


class PullRequest(Protocol):
    """A pull request, or merge request. All of it raises Refused.

    ``most``: characters that a comment may have.
    """

    most: int

    def me(self) -> str:
        """Return the name that comments made with our token have."""

    def head(self) -> str:
        """Return the commit that is its head now."""

    def comments(self) -> Iterator[Comment]:
        """Yield all its comments."""

    def create(self, body: str) -> Comment:
        """Make a comment."""

    def edit(self, number: int, body: str) -> None:
        """Change a comment."""

    def delete(self, number: int) -> None:
        """Remove a comment."""


class GitHub:
    """A pull request on GitHub, GitHub Enterprise or what speaks its API."""

    most = 65_536

    def __init__(self, forge: Forge) -> None:
        secret = {"Authorization": f"Bearer {forge.token}"}
        self._client = Client("GitHub", forge.url, secret)
        self._graphql = Client("GitHub", forge.graphql, secret)
        self._repository = f"repos/{quote(forge.project)}"
        self._number = forge.pull_request

    def me(self) -> str:
        """Ask GraphQL, which answers a workflow's own token, too; else the user."""
        try:
            answer = self._graphql.send("POST", "", {"query": "{ viewer { login } }"})
            return str(answer["data"]["viewer"]["login"])
        except Busy:
            raise
        except (Refused, TypeError, KeyError):
            return _text(self._client.get("user"), "login")

    def head(self) -> str:
        """Return the head's commit."""
        pull = self._client.get(f"{self._repository}/pulls/{self._number}")
        return _text(pull, "head", "sha")

    def comments(self) -> Iterator[Comment]:
        """Yield the comments that are on no line."""
        path = f"{self._repository}/issues/{self._number}/comments?per_page=100"
        for one in self._client.pages(path):
            yield _github_comment(one)

    def create(self, body: str) -> Comment:
        """Make a comment."""
        path = f"{self._repository}/issues/{self._number}/comments"
        return _github_comment(self._client.send("POST", path, {"body": body}))

    def edit(self, number: int, body: str) -> None:
        """Change a comment."""
        path = f"{self._repository}/issues/comments/{number}"
        self._client.send("PATCH", path, {"body": body})

    def delete(self, number: int) -> None:
        """Remove a comment."""
        self._client.send("DELETE", f"{self._repository}/issues/comments/{number}")


class GitLab:
    """A merge request on GitLab."""

    most = 1_000_000

    def __init__(self, forge: Forge) -> None:
        self._client = Client("GitLab", forge.url, {"PRIVATE-TOKEN": forge.token})
        project = quote(forge.project, safe="")
        self._request = f"projects/{project}/merge_requests/{forge.pull_request}"

    def me(self) -> str:
        """Return the user of the token."""
        return _text(self._client.get("user"), "username")

    def head(self) -> str:
        """Return the head's commit."""
        return _text(self._client.get(self._request), "sha")

    def comments(self) -> Iterator[Comment]:
        """Yield the notes."""
        for one in self._client.pages(f"{self._request}/notes?per_page=100"):
            yield _gitlab_comment(one)

    def create(self, body: str) -> Comment:
        """Make a note."""
        return _gitlab_comment(self._client.send("POST", f"{self._request}/notes", {"body": body}))

    def edit(self, number: int, body: str) -> None:
        """Change a note."""
        self._client.send("PUT", f"{self._request}/notes/{number}", {"body": body})

    def delete(self, number: int) -> None:
        """Remove a note."""
        self._client.send("DELETE", f"{self._request}/notes/{number}")


def _github_comment(one: Any) -> Comment:
    return Comment(_number(one), _text(one, "user", "login"), _text(one, "body"))


def _gitlab_comment(one: Any) -> Comment:
    return Comment(_number(one), _text(one, "author", "username"), _text(one, "body"))


def _number(answer: Any) -> int:
    number = answer.get("id") if isinstance(answer, dict) else None
    if not isinstance(number, int):
        raise Refused("the forge answers what is no comment", 0)
    return number


def _text(answer: Any, *keys: str) -> str:
    """Return text at nested keys; empty where there is none, such as of a deleted user."""
    for key in keys:
        answer = answer.get(key) if isinstance(answer, dict) else None
    return answer if isinstance(answer, str) else ""
