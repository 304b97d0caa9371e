"""A forge on localhost that behaves as GitHub and GitLab do, as far as a comment needs it.

    with serving(Forge()) as forge:
        run(..., env=forge.environment())
        forge.comments[0].body

It serves both APIs over the same comments. What goes wrong is asked for beforehand:
``forge.answer("POST", 502)`` answers so once, and ``forge.meanwhile("PATCH", do)`` lets somebody
else act just before a request is served. An answer for which a client should wait takes the header
``Retry-After: 0``, or the test waits, too. Questions in GraphQL are of the method GRAPHQL there.
``forge.writable = False`` makes its token read-only.
"""

from __future__ import annotations

import http.server
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

TOKEN = "ghs_secretOfTheRun0123456789"
REPOSITORY = "o/r"
Headers = Mapping[str, str]
Answer = tuple[int, dict[str, str], bytes]


@dataclass
class Written:
    """A comment as the forge keeps it."""

    number: int
    author: str
    body: str


@dataclass
class Asked:
    """A request as it came in."""

    method: str
    path: str
    headers: dict[str, str]
    content: Any = None


@dataclass
class Forge:
    """What a forge has, how it behaves, and what was asked of it.

    ``speaks``: github or gitlab, which decides the environment. ``viewer``: whether it says who we
    are in GraphQL; else its address is empty, and ``GET /user`` does, but for no bot of GitHub's.
    ``a_page``: comments that a page has at most; ``most``: characters of a comment.
    """

    speaks: str = "github"
    token: str = TOKEN
    head: str = "1" * 40
    number: int = 7
    login: str = "github-actions[bot]"
    viewer: bool = True
    writable: bool = True
    a_page: int = 100
    most: int = 65_536
    comments: list[Written] = field(default_factory=list)
    pulls: list[dict[str, Any]] = field(default_factory=list)
    artifacts: dict[str, bytes] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)
    url: str = ""
    elsewhere: str = ""
    _answers: list[tuple[str, int, Headers, bytes]] = field(default_factory=list)
    _meanwhile: list[tuple[str, Callable[[], None]]] = field(default_factory=list)

    def environment(self) -> dict[str, str]:
        """Return the variables with which a job finds this forge."""
        if self.speaks == "gitlab":
            return {
                "GITLAB_CI": "true",
                "CI_API_V4_URL": f"{self.url}/api/v4",
                "CI_PROJECT_ID": "42",
                "CI_MERGE_REQUEST_IID": str(self.number),
                "CI_MERGE_REQUEST_SOURCE_BRANCH_SHA": self.head,
                "GITLAB_TOKEN": self.token,
            }
        return {
            "GITHUB_ACTIONS": "true",
            "GITHUB_SERVER_URL": self.url,
            "GITHUB_API_URL": f"{self.url}/api/v3",
            "GITHUB_GRAPHQL_URL": f"{self.url}/api/graphql" if self.viewer else "",
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_TOKEN": self.token,
        }

    def write(self, body: str, author: str = "") -> Written:
        """Add a comment, by us unless an author is named; return it."""
        number = 1 + max((one.number for one in self.comments), default=100)
        self.comments.append(Written(number, author or self.login, body))
        return self.comments[-1]

    def answer(
        self, method: str, status: int, headers: Headers | None = None, body: bytes = b""
    ) -> None:
        """Answer the next request of a method so, instead of serving it."""
        self._answers.append((method, status, headers or {}, body))

    def meanwhile(self, method: str, do: Callable[[], None]) -> None:
        """Let somebody else act before the next request of a method is served."""
        self._meanwhile.append((method, do))

    def changes(self) -> list[str]:
        """Return the methods of the requests that would change comments, in their order."""
        return [one.method for one in self.asked if one.method not in ("GET", "GRAPHQL")]

    def serve(self, asked: Asked) -> Answer:
        """Return status, headers and body for a request."""
        if asked.path.endswith("/graphql"):
            asked.method = "GRAPHQL"
        self.asked.append(asked)
        for number, (method, do) in enumerate(self._meanwhile):
            if method == asked.method:
                del self._meanwhile[number]
                do()
                break
        for number, (method, status, headers, body) in enumerate(self._answers):
            if method == asked.method:
                del self._answers[number]
                return status, dict(headers), body
        return self._serve(asked)

    def _serve(self, asked: Asked) -> Answer:
        parts = urlsplit(asked.path)
        query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
        blob = re.fullmatch(r"/blob/([\w.-]+)", parts.path)
        if blob and blob[1] in self.artifacts:
            return 200, {"Content-Type": "application/zip"}, self.artifacts[blob[1]]
        if self.token not in (
            asked.headers.get("private-token"),
            asked.headers.get("authorization", "").removeprefix("Bearer "),
        ):
            return said(401, {"message": "Bad credentials"})
        for method, pattern, handle in (*_ROUTES, *_GITLAB_ROUTES):
            found = re.fullmatch(pattern, parts.path)
            if method == asked.method and found:
                if method not in ("GET", "GRAPHQL") and not self.writable:
                    return said(403, {"message": "Resource not accessible by integration"})
                return handle(self, asked, query, found)
        return said(404, {"message": "Not Found"})

    def _viewer(self, *_: Any) -> Answer:
        if not self.viewer:
            return said(404, {"message": "Not Found"})
        return said(200, {"data": {"viewer": {"login": self.login}}})

    def _user(self, *_: Any) -> Answer:
        if self.login.endswith("[bot]"):
            return said(403, {"message": "Resource not accessible by integration"})
        return said(200, {"login": self.login, "username": self.login})

    def _pull(self, _: Asked, __: Any, found: re.Match[str]) -> Answer:
        if int(found[1]) != self.number:
            return said(404, {"message": "Not Found"})
        return said(200, {"number": self.number, "head": {"sha": self.head}, "sha": self.head})

    def _pulls(self, *_: Any) -> Answer:
        return said(200, self.pulls)

    def _list(self, asked: Asked, query: dict[str, str], _: Any) -> Answer:
        page = int(query.get("page", "1"))
        size = min(self.a_page, int(query.get("per_page", "30")))
        some = self.comments[(page - 1) * size : page * size]
        status, headers, body = said(200, [seen(one) for one in some])
        if page * size < len(self.comments):
            address = f"{self.url}{urlsplit(asked.path).path}?per_page={size}&page="
            headers["Link"] = f'<{address}1>; rel="first", <{address}{page + 1}>; rel="next"'
        return status, headers, body

    def _create(self, asked: Asked, *_: Any) -> Answer:
        if refused := self._too_long(asked):
            return refused
        return said(201, seen(self.write(asked.content["body"])))

    def _edit(self, asked: Asked, _: Any, found: re.Match[str]) -> Answer:
        if refused := self._too_long(asked):
            return refused
        for one in self.comments:
            if one.number == int(found[1]):
                one.body = asked.content["body"]
                return said(200, seen(one))
        return said(404, {"message": "Not Found"})

    def _delete(self, _: Asked, __: Any, found: re.Match[str]) -> Answer:
        kept = [one for one in self.comments if one.number != int(found[1])]
        gone = len(kept) < len(self.comments)
        self.comments[:] = kept
        return (204, {}, b"") if gone else said(404, {"message": "Not Found"})

    def _too_long(self, asked: Asked) -> Answer | None:
        if len(asked.content["body"]) <= self.most:
            return None
        return said(422, {"message": f"Body is too long (maximum is {self.most} characters)"})

    def _artifacts(self, _: Asked, query: dict[str, str], __: Any) -> Answer:
        found = [
            {"id": number, "name": name, "expired": False, "size_in_bytes": len(data)}
            for number, (name, data) in enumerate(self.artifacts.items(), 1)
            if query.get("name", name) == name
        ]
        return said(200, {"total_count": len(found), "artifacts": found})

    def _archive(self, _: Asked, __: Any, found: re.Match[str]) -> Answer:
        name = list(self.artifacts)[int(found[1]) - 1]
        return 302, {"Location": f"{self.elsewhere}/blob/{name}"}, b""


_API = r"/api/v3/repos/o/r"
_ROUTES = (
    ("GRAPHQL", r"/api/graphql", Forge._viewer),
    ("GET", r"/api/v[34]/user", Forge._user),
    ("GET", rf"{_API}/pulls", Forge._pulls),
    ("GET", rf"{_API}/pulls/(\d+)", Forge._pull),
    ("GET", rf"{_API}/issues/\d+/comments", Forge._list),
    ("POST", rf"{_API}/issues/\d+/comments", Forge._create),
    ("PATCH", rf"{_API}/issues/comments/(\d+)", Forge._edit),
    ("DELETE", rf"{_API}/issues/comments/(\d+)", Forge._delete),
    ("GET", rf"{_API}/actions/runs/\d+/artifacts", Forge._artifacts),
    ("GET", rf"{_API}/actions/artifacts/(\d+)/zip", Forge._archive),
)
_REQUEST = r"/api/v4/projects/\d+/merge_requests"
_GITLAB_ROUTES = (
    ("GET", rf"{_REQUEST}/(\d+)", Forge._pull),
    ("GET", rf"{_REQUEST}/\d+/notes", Forge._list),
    ("POST", rf"{_REQUEST}/\d+/notes", Forge._create),
    ("PUT", rf"{_REQUEST}/\d+/notes/(\d+)", Forge._edit),
    ("DELETE", rf"{_REQUEST}/\d+/notes/(\d+)", Forge._delete),
)


def said(status: int, content: object) -> Answer:
    """Return an answer in JSON."""
    return status, {"Content-Type": "application/json"}, json.dumps(content).encode()


def seen(one: Written) -> dict[str, Any]:
    """Return a comment as both forges show it."""
    who = {"login": one.author, "username": one.author}
    return {"id": one.number, "user": who, "author": who, "body": one.body}


@contextmanager
def serving(forge: Forge) -> Iterator[Forge]:
    """Serve a forge until the block ends; a second port of it is another host to a client."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def _serve(self) -> None:
            data = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            headers = {name.lower(): value for name, value in self.headers.items()}
            asked = Asked(self.command, self.path, headers, json.loads(data) if data else None)
            with lock:
                status, answered, body = forge.serve(asked)
            self.send_response(status)
            for name, value in answered.items():
                self.send_header(name, value)
            if status != 204:
                self.send_header("Content-Length", str(len(body)))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _serve  # noqa: N815

    lock = threading.Lock()
    servers = [http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) for _ in range(2)]
    threads = [threading.Thread(target=one.serve_forever, args=(0.05,)) for one in servers]
    for thread in threads:
        thread.start()
    forge.url, forge.elsewhere = (f"http://127.0.0.1:{one.server_port}" for one in servers)
    try:
        yield forge
    finally:
        for server, thread in zip(servers, threads, strict=True):
            server.shutdown()
            server.server_close()
            thread.join()
