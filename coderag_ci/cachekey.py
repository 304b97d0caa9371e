"""Which saved index CI may start from, whether one is worth saving, and whether one is sound."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import sqlite3
import stat
import sys
from pathlib import Path

import msgspec

from coderag_ci import modelfiles, store
from coderag_ci.config import Config, value_of
from coderag_ci.errors import CoderagError
from coderag_ci.parse.languages import BY_NAME, parser_digest

_STORED = ("chunk-size", "exclude", "languages", "paths", "embedding-model")
_MOST_BYTES = 2 << 30
_FEWEST = 20  # blobs: parsing so few takes less time than an upload
_SHARE = 10  # a tenth of all blobs


def key(config: Config) -> str:
    """Return what a saved index is kept under, without the commit.

    Schema and parsers, system, model, and those settings that decide what is stored: with
    others the rows in it would be read by nobody.
    """
    makers = _digest("".join(parser_digest(name) for name in sorted(BY_NAME)))
    settings = msgspec.json.encode([value_of(config, name) for name in _STORED]).decode()
    system = f"{sys.platform}-{platform.machine()}"
    model = _model(config.embedding_model)
    return f"coderag-ci-{store.SCHEMA}-{makers}-{system}-{model}-{_digest(settings)}"


def is_worth_saving(indexed: int, reused: int) -> bool:
    """Whether so many blobs were new that the next run gains more than an upload costs."""
    return indexed >= max(_FEWEST, (indexed + reused) // _SHARE)


def unsound(path: Path) -> str:
    """Say what is wrong with a restored store; empty where it is sound, or is not there.

    Its bytes come from elsewhere: it has to be a file, of bearable size, undamaged, with our
    tables and nothing else in it. What its rows hold is checked when they are read.
    """
    try:
        info = path.lstat()
    except FileNotFoundError:
        return ""
    if not stat.S_ISREG(info.st_mode):
        return "not a regular file"
    if info.st_size > _MOST_BYTES:
        return "larger than 2 GiB"
    try:
        with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as db:
            db.execute("PRAGMA trusted_schema=OFF")
            if db.execute("PRAGMA user_version").fetchone()[0] != store.SCHEMA:
                return "of another schema"
            if _tables(db) != _own_tables():
                return "not with our tables alone"
            if db.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
                return "damaged"
    except (sqlite3.Error, TypeError) as error:
        return str(error)
    return ""


def discard(directory: Path) -> None:
    """Remove a restored store and what SQLite laid beside it."""
    for path in directory.glob(f"{store.FILE_NAME}*"):
        if path.is_dir() and not path.is_symlink():
            os.rename(path, path.with_suffix(".discarded"))
        else:
            path.unlink()


def _tables(db: sqlite3.Connection) -> list[tuple[str, str, str]]:
    found = db.execute("SELECT type, name, sql FROM sqlite_master ORDER BY type, name")
    return [(kind, name, " ".join((sql or "").split())) for kind, name, sql in found]


def _own_tables() -> list[tuple[str, str, str]]:
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        db.executescript(store.TABLES)
        return _tables(db)


def _model(name: str) -> str:
    """Return the digest of an embedding model, as far as it is here."""
    if name == "none":
        return "none"
    folder = modelfiles.bundled() if name == modelfiles.BUNDLED else Path(name)
    with contextlib.suppress(OSError, CoderagError):
        for directory in (folder, modelfiles.folder_of(name)):
            if directory.is_dir():
                return modelfiles.digest_of(directory)[:12]
    return _digest(name)


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "backslashreplace"), digest_size=6).hexdigest()
