"""A model hub on localhost: enough of its API to list a repository's files and to give them."""

from __future__ import annotations

import hashlib
import http.server
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

REVISION = "a" * 40


class Hub:
    """What the hub has by path, which files it gives out altered, and what was asked of it."""

    def __init__(self, repo: str, files: Mapping[str, bytes]) -> None:
        self.repo = repo
        self.files = dict(files)
        self.altered: set[str] = set()
        self.status = 200
        self.asked: list[str] = []
        self.url = ""

    def about(self) -> bytes:
        """Return what the API says of the repository: weights by SHA-256, others by blob id."""
        siblings = []
        for name, data in self.files.items():
            one: dict[str, object] = {"rfilename": name, "size": len(data)}
            if name.endswith(".onnx"):
                digest = hashlib.sha256(data).hexdigest()
                one["lfs"] = {"sha256": digest, "size": len(data), "pointerSize": 130}
            blob = b"blob %d\0" % len(data) + data
            one["blobId"] = hashlib.sha1(blob, usedforsecurity=False).hexdigest()
            siblings.append(one)
        return json.dumps({"id": self.repo, "sha": REVISION, "siblings": siblings}).encode()


@contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    """Serve the hub until the block ends."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_HEAD(self) -> None:
            self._answer(body=False)

        def do_GET(self) -> None:
            hub.asked.append(self.path)
            self._answer(body=True)

        def _answer(self, *, body: bool) -> None:
            path = self.path.partition("?")[0]
            data, headers = b"", {}
            status = hub.status
            if path == f"/api/models/{hub.repo}":
                data, headers = hub.about(), {"Content-Type": "application/json"}
            elif path.startswith(f"/{hub.repo}/resolve/{REVISION}/"):
                name = path.split(f"/resolve/{REVISION}/")[1]
                data = hub.files[name]
                if name in hub.altered:
                    data = data[:-1] + bytes([data[-1] ^ 1])
                headers = {"ETag": '"etag"', "X-Repo-Commit": REVISION}
            else:
                status = 404
            self.send_response(status)
            for key, value in headers.items():
                self.send_header(key, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if body:
                self.wfile.write(data)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    hub.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
