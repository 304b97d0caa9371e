"""Asks a forge's API, and never gives its token to another host or to a reader of the log."""

from __future__ import annotations

import http.client
import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar
from urllib.parse import urljoin, urlsplit

from coderag_ci import __version__
from coderag_ci.errors import SetupError

Wait = Callable[[float], None]
Answered = TypeVar("Answered")

_SECONDS = 30.0  # for an answer
_MOST_ANSWER = 8 << 20
_MOST_PAGES = 100
_MOST_REDIRECTS = 3
_REDIRECTS = (301, 302, 303, 307, 308)
_TRIES = 5
_LONGEST_WAIT = 60.0  # seconds between two tries
_NEXT = re.compile(r'<([^<>]*)>\s*;[^,]*\brel="?next\b')


class Refused(SetupError):  # noqa: N818  # it says what the forge did
    """The forge does not do what it was asked. ``status``: of HTTP; 0 where none came."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class Busy(Refused):
    """It may do so later: in so many ``seconds`` where it said when, else -1."""

    def __init__(self, message: str, status: int, seconds: float) -> None:
        super().__init__(message, status)
        self.seconds = seconds


def patiently(ask: Callable[[], Answered], wait: Wait = time.sleep) -> Answered:
    """Ask until the forge is not busy: five times, after 1, 2, 4 and 8 seconds or as it says.

    What is asked has to be right to do twice, since an answer may be lost after the deed.
    """
    for number in range(_TRIES - 1):
        try:
            return ask()
        except Busy as error:
            if error.seconds > _LONGEST_WAIT:
                raise
            wait(error.seconds if error.seconds >= 0 else 2.0**number)
    return ask()


class Client:
    """An API at an address. ``secret``: the headers with the token, for that host alone."""

    def __init__(self, name: str, url: str, secret: Mapping[str, str]) -> None:
        self._name = name
        self._url = url.rstrip("/")
        self._secret = dict(secret)
        if not _is_address(url):
            raise SetupError(f"the address of {name} is none: {url}")
        if not all(value.isascii() and value.isprintable() for value in secret.values()):
            raise SetupError(f"the token for {name} has characters that no token has")

    def get(self, path: str) -> Any:
        """Return what stands at a path. Raises Refused."""
        return self.send("GET", path)

    def pages(self, path: str) -> Iterator[Any]:
        """Yield the items of a list, following the links to its next pages. Raises Refused."""
        url = f"{self._url}/{path}"
        for _ in range(_MOST_PAGES):
            data, headers = self._ask("GET", url, None, _MOST_ANSWER)
            found = _decoded(data, self._name)
            yield from found if isinstance(found, list) else ()
            following = _NEXT.search(headers.get("Link", ""))
            if not following:
                return
            url = _joined(url, following[1])
            if _origin(url) != _origin(self._url):
                raise Refused(f"{self._name} links to pages elsewhere", 0)

    def send(self, method: str, path: str, content: Mapping[str, str] | None = None) -> Any:
        """Send JSON, or nothing; return the answer. Raises Refused."""
        url = f"{self._url}/{path}" if path else self._url
        data = None if content is None else json.dumps(content).encode()
        return _decoded(self._ask(method, url, data, _MOST_ANSWER)[0], self._name)

    def read(self, path: str, most: int) -> bytes:
        """Return the bytes at a path, or where it leads, up to so many. Raises Refused."""
        return self._ask("GET", f"{self._url}/{path}", None, most)[0]

    def _ask(
        self, method: str, url: str, data: bytes | None, most: int
    ) -> tuple[bytes, Mapping[str, str]]:
        """Return body and headers of an answer; another host gets no token and is only read."""
        opener = _opener()
        what = f"{method} {urlsplit(url).path}"
        for _ in range(_MOST_REDIRECTS + 1):
            at_home = _origin(url) == _origin(self._url)
            headers = {"User-Agent": f"coderag-ci/{__version__}"}
            if data is not None:
                headers["Content-Type"] = "application/json"
            headers |= self._secret if at_home else {}
            # the address is what the runner says of its forge; a redirect keeps to its scheme
            request = urllib.request.Request(url, data, headers, method=method)  # noqa: S310
            try:
                with opener.open(request, timeout=_SECONDS) as answer:
                    return answer.read(most), answer.headers
            except urllib.error.HTTPError as error:
                with error:
                    place = _joined(url, error.headers.get("Location", ""))
                    moved = error.code in _REDIRECTS and _scheme(place) == _scheme(url)
                    if not moved or (method != "GET" and error.code not in (307, 308)):
                        raise self._refused(what, error) from None
                    if method != "GET" and _origin(place) != _origin(self._url):
                        raise self._refused(what, error) from None
                    url = place
            except (OSError, http.client.HTTPException, ValueError) as error:
                reason = getattr(error, "reason", None) or error
                raise Busy(self._redacted(f"{what}: {reason}"), 0, -1) from None
        raise Refused(f"{self._name}: {what}: too many redirects", 0)

    def _refused(self, what: str, error: urllib.error.HTTPError) -> Refused:
        """Return the error that an answer stands for."""
        message = self._redacted(f"{what}: {error.code} {_reason(error)}")
        after = error.headers.get("Retry-After", "")
        spent = error.headers.get("X-RateLimit-Remaining") == "0"
        limited = error.code == 429 or (error.code == 403 and (after or spent))
        if limited or error.code >= 500:
            seconds = float(after) if after.isascii() and after.isdigit() else -1
            return Busy(message, error.code, seconds)
        return Refused(message, error.code)

    def _redacted(self, text: str) -> str:
        for value in self._secret.values():
            if token := value.rpartition(" ")[2]:
                text = text.replace(token, "***")
        return f"{self._name}: {text}"


def _opener() -> urllib.request.OpenerDirector:
    """Return what asks on the web alone, and follows no redirect: it would send the token along."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler,
        urllib.request.HTTPHandler,
        urllib.request.HTTPSHandler,
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPErrorProcessor,
    ):
        opener.add_handler(handler())
    return opener


def _decoded(data: bytes, name: str) -> Any:
    try:
        return json.loads(data) if data else None
    except (ValueError, RecursionError):
        raise Refused(f"{name} answers what is no JSON", 0) from None


def _reason(error: urllib.error.HTTPError) -> str:
    """Return what the forge says of its refusal, in a few words."""
    try:
        said = json.loads(error.read(1 << 16))
        message = said.get("message") or said.get("error") if isinstance(said, dict) else ""
    except (OSError, http.client.HTTPException, ValueError, RecursionError):
        message = ""
    return str(message or error.reason)[:200]


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        sound = url.isascii() and url.isprintable() and " " not in url and parts.port != 0
        return sound and parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:  # half an IPv6 address, a port that is no number
        return False


def _joined(url: str, place: str) -> str:
    """Return where a place leads to from an address; empty where to none."""
    try:
        found = urljoin(url, place)
    except ValueError:
        return ""
    return found if _is_address(found) else ""


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc


def _scheme(url: str) -> str:
    return urlsplit(url).scheme
