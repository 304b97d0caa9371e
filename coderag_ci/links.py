"""Web links to lines of a repository, from the URL of its remote."""

from __future__ import annotations

import re
from urllib.parse import quote

_SCP = re.compile(r"^(?:[^@/]+@)?([\w.-]+):(?!/)(.+)$")
_SSH = re.compile(r"^(?:ssh|git)://(?:[^@/]+@)?([\w.-]+)(?::\d+)?/(.+)$")
_HTTP = re.compile(r"^https?://(?:[^@/]+@)?([\w.-]+(?::\d+)?)/(.+)$")


def web_address(remote: str) -> str:
    """Return the https address of a repository, without credentials; empty if there is none."""
    match = _HTTP.match(remote) or _SSH.match(remote) or _SCP.match(remote)
    if not match or "/" not in match[2] or "." not in match[1]:  # a host alias is no address
        return ""
    path = match[2].rstrip("/").removesuffix(".git")
    if any(sign in path for sign in "@?#"):  # what stands there may be a secret
        return ""
    return f"https://{match[1]}/{quote(path)}"


def permalink(address: str, commit: str, path: str, start: int, end: int) -> str:
    """Return a link to lines of a file at a commit; empty where address or commit are unknown."""
    if not address or not commit:
        return ""
    blob = "/-/blob/" if "gitlab" in address else "/blob/"
    safe = quote(path.encode("utf-8", "surrogateescape"))
    lines = f"#L{start}" if start == end else f"#L{start}-L{end}"
    if "gitlab" in address:
        lines = lines.replace("-L", "-")
    return f"{address}{blob}{commit}/{safe}{lines}"
