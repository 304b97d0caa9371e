"""A pack out of an artifact that anybody may have made: read with limits, checked, made ours.

The run of a fork's pull request executes what the fork says, so nothing that it uploads is
believed. What a reader would take for a statement of ours (kinds, flags, counts, links) has to
have the form that ours have; what is text of the repository is escaped where it is shown.
"""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any

import msgspec

from coderag_ci import pack
from coderag_ci.errors import SetupError
from coderag_ci.redact import redacted

MOST_BYTES = 20 << 20
MEMBER = "pack.json"
_MOST_ITEMS = 10_000
_MOST_NUMBER = 1 << 31
_LONGEST = 100_000  # characters of what is no line of code
_WORD = re.compile(r"[A-Za-z0-9_+. -]{0,60}")
_ID = re.compile(r"[0-9a-f]{0,64}")
_PHRASE = re.compile(r"(?!.*(?://|www\.))[\w ,.:;'’()/%…–-]{0,300}", re.DOTALL)
_PATH = re.compile(r"(?!/)(?!(?:.*/)?\.\.(?:/|$))[^\x00-\x1f\x7f]{0,4096}", re.DOTALL)
_FORMS = {
    **dict.fromkeys(("path", "old_path"), _PATH),
    **dict.fromkeys(("blob", "base", "head", "merge_base"), _ID),
    **dict.fromkeys(
        ("kind", "status", "old_mode", "new_mode", "language", "name", "side", "flags"), _WORD
    ),
    **dict.fromkeys(("version", "tokenizer"), _WORD),
    **dict.fromkeys(("dense", "history"), _PHRASE),
}

_SCORES = frozenset({"fused", "rerank", "final"})


def read(archive: bytes, head: str, remote: str) -> pack.Pack:
    """Return the pack in an artifact, which has to be of the commit ``head``.

    Links lead to ``remote``, whatever the pack says. Raises SetupError.
    """
    from coderag_ci.render import as_json

    found = as_json.read(_member(archive), "the artifact")
    if found.change.kind != "commits" or found.change.head != head:
        raise _refused("its pack is of another commit")
    for place, value in _walk(msgspec.to_builtins(found), ""):
        _check(place, value)
    if any(len(fact.text) > _LONGEST for fact in found.facts):
        raise _refused("a fact is longer than ours ever are")
    for item in found.dropped:
        if not _PHRASE.fullmatch(item.reason):
            raise _refused("a reason is no phrase of ours")
    trace = pack.Trace((), 0, 0, ())
    return pack.sealed(redacted(msgspec.structs.replace(found, remote=remote, trace=trace)))


def _member(archive: bytes) -> bytes:
    """Return the one file that is wanted, out of memory: nothing is unpacked to anywhere."""
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            members = [info for info in opened.infolist() if info.filename == MEMBER]
            if len(members) != 1:
                raise _refused(f"it has {len(members)} files named {MEMBER}")
            with opened.open(members[0]) as file:
                data = file.read(MOST_BYTES + 1)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as error:
        raise _refused(f"it can not be read: {error}") from error
    except (RuntimeError, NotImplementedError) as error:  # encrypted, an unknown compression
        raise _refused(f"it can not be read: {error}") from error
    if len(data) > MOST_BYTES:
        raise _refused(f"{MEMBER} is larger than {MOST_BYTES >> 20} MiB")
    return data


def _walk(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield every value with the name of its field."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _walk(item, key)
    elif isinstance(value, (list, tuple)):
        if len(value) > _MOST_ITEMS:
            raise _refused(f"it lists more than {_MOST_ITEMS:,} items")
        for item in value:
            yield from _walk(item, name)
    else:
        yield name, value


def _check(name: str, value: object) -> None:
    form = _FORMS.get(name)
    if isinstance(value, str) and len(value) > _LONGEST and name not in ("text", "lines"):
        raise _refused(f"{name} is longer than ours ever are")
    if isinstance(value, str) and form and not form.fullmatch(value):
        raise _refused(f"{name} has a value that ours never have")
    if isinstance(value, (int, float)) and not -1 <= value < _MOST_NUMBER and name not in _SCORES:
        raise _refused(f"{name} is a number that ours never are")


def _refused(reason: str) -> SetupError:
    return SetupError(f"the artifact is refused: {reason}", "nothing is posted")
