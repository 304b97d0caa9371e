"""The embedded store: one SQLite file of rows keyed by (blob, language, maker).

Several processes may use it at once (WAL, short write transactions); a killed one
leaves it whole. A file that is not ours or is damaged is set aside, rebuilt and reported.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import sqlite3
import stat
import tempfile
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from coderag_ci.errors import SetupError

SCHEMA = 1
FILE_NAME = "store.sqlite"
_BUSY_SECONDS = 5.0
_LOOK_SECONDS = 0.02  # between two tries for the lock
_BATCH = 500
_KEPT_VIEWS = 30

TABLES = """
CREATE TABLE IF NOT EXISTS rows (
  blob BLOB NOT NULL, language TEXT NOT NULL, maker TEXT NOT NULL, data BLOB NOT NULL,
  PRIMARY KEY (blob, language, maker));
CREATE TABLE IF NOT EXISTS vectors (
  text BLOB NOT NULL, model TEXT NOT NULL, vector BLOB NOT NULL,
  PRIMARY KEY (text, model));
CREATE TABLE IF NOT EXISTS commits (id BLOB PRIMARY KEY, data BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS views (
  digest TEXT PRIMARY KEY, used REAL NOT NULL, keys BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS models (model TEXT PRIMARY KEY, used REAL NOT NULL);
"""

RowKey = tuple[str, str, str]  # blob, language, maker


class Pruned(NamedTuple):
    """What was dropped, and the bytes that are free now."""

    rows: int
    commits: int
    vectors: int
    freed: int


class Store:
    """Rows and vectors, read and written in short transactions.

    Raises SetupError only where no directory at all can be written to.
    """

    def __init__(self, directory: Path) -> None:
        self.notes: list[str] = []
        self.rebuilt = 0  # times that damage was found after rows had been read
        self.directory = self._writable(directory)
        self.path = self.directory / FILE_NAME
        self._full = False
        self._db = self._start()

    # ---- opening

    def _writable(self, wanted: Path) -> Path:
        """Return the wanted directory, or one in the cache or temporary folder, said once."""
        identity = hashlib.blake2b(os.fsencode(wanted), digest_size=8).hexdigest()
        choices = [wanted, *(place / identity for place in _caches())]
        problem: OSError | None = None
        for choice in choices:
            try:
                choice.mkdir(parents=True, exist_ok=True, mode=0o700)
                if choice != wanted and choice.parent.lstat().st_uid != os.getuid():
                    continue  # somebody else made it first
                _plain_files(choice)
                with tempfile.TemporaryFile(dir=choice) as probe:
                    probe.write(b"\0")
                    probe.flush()
            except OSError as error:
                problem = problem or error
                continue
            if choice != wanted:
                reason = problem.strerror if problem else "not writable"
                self.notes.append(f"index kept in {choice}: {wanted}: {reason}")
            return choice
        raise SetupError(
            f"the index can not be written: {wanted}: {problem}", "name a folder with --index-dir"
        )

    def _start(self) -> sqlite3.Connection:
        """Open the file; a damaged one is set aside, and on a full disk memory takes its place."""
        try:
            with _lock(self.directory / "lock"):
                for last in (False, True):
                    try:
                        return self._open(str(self.path))
                    except sqlite3.DatabaseError as error:
                        if last or any(word in str(error) for word in ("I/O", "full", "readonly")):
                            self.notes.append(f"index not saved: {error}")
                            break
                        self._set_aside(error)
        except TimeoutError:
            self.notes.append("index not saved: another process holds its lock")
        return self._open(":memory:")

    def _open(self, path: str) -> sqlite3.Connection:
        self._inode = _inode(self.path)
        db = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
        try:
            db.execute("PRAGMA trusted_schema=OFF")
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("PRAGMA synchronous=NORMAL")
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, SCHEMA):
                raise sqlite3.DatabaseError(f"schema {version}, expected {SCHEMA}")
            db.executescript(TABLES)
            db.execute(f"PRAGMA user_version={SCHEMA}")
            self._inode = _inode(self.path)
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) and "busy" not in str(error):
                db.close()
                raise
        except sqlite3.DatabaseError:
            db.close()
            raise
        return db

    def _set_aside(self, error: Exception) -> None:
        """Move a damaged store away; the caller holds the lock, so two processes do it once."""
        if _inode(self.path) != self._inode and _readable(self.path):
            return  # another process has already rebuilt it
        aside = self.path.with_suffix(f".damaged-{int(time.time())}-{os.getpid()}")
        for suffix in ("-wal", "-shm"):
            with contextlib.suppress(OSError):
                os.unlink(f"{self.path}{suffix}")
        with contextlib.suppress(FileNotFoundError):
            os.replace(self.path, aside)
        for old in sorted(self.directory.glob("store.damaged-*"))[:-1]:
            with contextlib.suppress(OSError):
                old.unlink()
        self.notes.append(f"index was damaged ({error}), set aside as {aside.name}, rebuilt")

    def _recover(self, error: Exception) -> None:
        """Start anew after damage that shows only when rows are read."""
        self.rebuilt += 1
        with contextlib.suppress(sqlite3.Error):
            self._db.close()
        with contextlib.suppress(TimeoutError), _lock(self.directory / "lock"):
            self._set_aside(error)
        self._db = self._start()

    def close(self) -> None:
        """Checkpoint the log into the file, so that copying the file alone is enough."""
        with contextlib.suppress(sqlite3.Error):
            self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        with contextlib.suppress(sqlite3.Error):
            self._db.close()

    # ---- rows

    def missing(self, keys: Iterable[RowKey]) -> list[RowKey]:
        """Return the keys that have no row, in order, each once."""
        unique = list(dict.fromkeys(keys))
        present: set[RowKey] = set()
        for languages, batch in _by_maker(unique):
            language, maker = languages
            for found in self._select(
                "SELECT blob FROM rows WHERE language=? AND maker=? AND blob IN",
                batch,
                language,
                maker,
            ):
                present.add((found[0].hex(), language, maker))
        return [key for key in unique if key not in present]

    def rows(self, keys: Iterable[RowKey]) -> Iterator[tuple[RowKey, bytes]]:
        """Yield (key, row bytes) of those keys that have a row, in no particular order."""
        for (language, maker), batch in _by_maker(dict.fromkeys(keys)):
            for blob, data in self._select(
                "SELECT blob, data FROM rows WHERE language=? AND maker=? AND blob IN",
                batch,
                language,
                maker,
            ):
                if (whole := _unsealed(data, blob, language, maker)) is None:
                    self._recover(_DamageError("a row does not match its checksum"))
                    return
                yield (blob.hex(), language, maker), whole

    def add_rows(self, rows: Sequence[tuple[RowKey, bytes]]) -> None:
        """Keep rows; on a full disk they are only not kept, which is noted once."""
        self._write(
            "INSERT OR IGNORE INTO rows VALUES (?,?,?,?)",
            [
                (key := bytes.fromhex(blob), language, maker, _sealed(data, key, language, maker))
                for (blob, language, maker), data in rows
            ],
        )

    # ---- vectors

    def vectors(self, texts: Sequence[bytes], model: str) -> dict[bytes, bytes]:
        """Return the stored vectors of some text digests, made by one model."""
        found: dict[bytes, bytes] = {}
        for start in range(0, len(texts), _BATCH):
            batch = texts[start : start + _BATCH]
            for text, data in self._select(
                "SELECT text, vector FROM vectors WHERE model=? AND text IN", batch, model
            ):
                if (vector := _unsealed(data, text, model)) is None:
                    self._recover(_DamageError("a vector does not match its checksum"))
                    return {}
                found[text] = vector
        return found

    def vector_count(self, model: str) -> int:
        """Return how many vectors of a model are kept."""
        return self._count("SELECT count(*) FROM vectors WHERE model=?", model)

    def touch_model(self, model: str) -> None:
        """Note that a model was used, for ``prune``."""
        self._write("INSERT OR REPLACE INTO models VALUES (?,?)", [(model, time.time())])

    def add_vectors(self, vectors: Sequence[tuple[bytes, bytes]], model: str) -> None:
        """Keep vectors (float32 bytes) by text digest."""
        self._write(
            "INSERT OR IGNORE INTO vectors VALUES (?,?,?)",
            [(text, model, _sealed(vector, text, model)) for text, vector in vectors],
        )

    # ---- commits

    def commits(self, ids: Sequence[str]) -> dict[str, bytes]:
        """Return what is kept of some commits, by id."""
        found: dict[str, bytes] = {}
        keys = [bytes.fromhex(commit) for commit in ids]
        for start in range(0, len(keys), _BATCH):
            batch = keys[start : start + _BATCH]
            for commit, data in self._select("SELECT id, data FROM commits WHERE id IN", batch):
                if (whole := _unsealed(data, commit)) is None:
                    self._recover(_DamageError("a commit does not match its checksum"))
                    return {}
                found[commit.hex()] = whole
        return found

    def add_commits(self, commits: Sequence[tuple[str, bytes]]) -> None:
        """Keep what commits changed."""
        self._write(
            "INSERT OR IGNORE INTO commits VALUES (?,?)",
            [(key := bytes.fromhex(commit), _sealed(data, key)) for commit, data in commits],
        )

    # ---- views

    def touch_view(self, digest: str, blobs: Iterable[str]) -> None:
        """Note that a view was used, with the blobs it needs, for ``prune``."""
        if self._fetch("SELECT 1 FROM views WHERE digest=?", digest):
            self._write("UPDATE views SET used=? WHERE digest=?", [(time.time(), digest)])
            return
        joined = b"".join(sorted({bytes.fromhex(blob) for blob in blobs}))
        self._write("INSERT OR REPLACE INTO views VALUES (?,?,?)", [(digest, time.time(), joined)])
        self._write(
            "DELETE FROM views WHERE digest NOT IN "
            "(SELECT digest FROM views ORDER BY used DESC LIMIT ?)",
            [(_KEPT_VIEWS,)],
        )

    def prune(self, parsers: set[str], blob_bytes: int, commits: Iterable[str]) -> Pruned:
        """Drop what nothing needs any more.

        That is rows that no recent view uses or that an old parser made, commits other than
        the given ones, and vectors of every model but the one that was used last.
        """
        kept: set[bytes] = set()
        for (keys,) in self._fetch("SELECT keys FROM views"):
            kept.update(keys[i : i + blob_bytes] for i in range(0, len(keys), blob_bytes))
        before = self.size()
        rows = [
            key
            for *key, maker in self._fetch("SELECT blob, language, maker, maker FROM rows")
            if key[0] not in kept or maker.partition("-")[0] not in parsers
        ]
        self._write("DELETE FROM rows WHERE blob=? AND language=? AND maker=?", rows)
        known = {bytes.fromhex(commit) for commit in commits}
        old = [key for key in self._fetch("SELECT id FROM commits") if key[0] not in known]
        self._write("DELETE FROM commits WHERE id=?", old)
        last = self._fetch("SELECT model FROM models ORDER BY used DESC, model LIMIT 1")
        others = self._count("SELECT count(*) FROM vectors WHERE model<>?", *last[0]) if last else 0
        self._write("DELETE FROM vectors WHERE model<>?", last)
        self._write("DELETE FROM models WHERE model<>?", last)
        self._fetch("VACUUM")
        self._fetch("PRAGMA wal_checkpoint(TRUNCATE)")
        return Pruned(len(rows), len(old), others, max(0, before - self.size()))

    def counts(self) -> dict[str, int]:
        """Return the number of rows, vectors, commits and views, and the bytes on disk."""
        names = ("rows", "vectors", "commits", "views")
        counts = {name: self._count(f"SELECT count(*) FROM {name}") for name in names}  # noqa: S608
        return {**counts, "bytes": self.size()}

    def size(self) -> int:
        """Bytes of the file and its log."""
        files = (self.path, self.path.with_name(FILE_NAME + "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    # ---- statements

    def _select(self, sql: str, batch: Sequence[bytes], *arguments: str) -> list[tuple[Any, ...]]:
        marks = ",".join("?" * len(batch))
        return self._fetch(f"{sql} ({marks})", *arguments, *batch)

    def _count(self, sql: str, *arguments: str) -> int:
        found = self._fetch(sql, *arguments)
        return int(found[0][0]) if found else 0

    def _fetch(self, sql: str, *arguments: object) -> list[tuple[Any, ...]]:
        """Run a statement; a locked store or a full disk gives nothing, damage is mended."""
        try:
            return self._db.execute(sql, arguments).fetchall()
        except sqlite3.OperationalError as error:
            if any(word in str(error) for word in ("locked", "busy", "full")):
                self._db.execute("PRAGMA busy_timeout=0")  # waited for once is enough
                return []
            self._recover(error)
        except sqlite3.DatabaseError as error:
            self._recover(error)
        return []

    def _write(self, sql: str, rows: Sequence[Sequence[object]]) -> None:
        if self._full or not rows:
            return
        try:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany(sql, rows)
            self._db.execute("COMMIT")
        except sqlite3.OperationalError as error:
            with contextlib.suppress(sqlite3.Error):
                self._db.execute("ROLLBACK")
            self._full = True
            self.notes.append(f"index not saved: {error}")
        except sqlite3.DatabaseError as error:
            self._recover(error)


class _DamageError(Exception):
    """What is stored is not what was written."""


def _sealed(data: bytes, key: bytes, *names: str) -> bytes:
    """Append a checksum of the data and its key: SQLite keeps none."""
    checksum = zlib.crc32("\0".join(names).encode(), zlib.crc32(key))
    return data + zlib.crc32(data, checksum).to_bytes(4, "little")


def _unsealed(data: bytes, key: bytes, *names: str) -> bytes | None:
    """Take the checksum off; None where it does not match."""
    return data[:-4] if data == _sealed(data[:-4], key, *names) else None


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except OSError:
        return None


def _caches() -> Iterator[Path]:
    """Yield the folders that stand in where the wanted one can not be written."""
    with contextlib.suppress(RuntimeError):  # no home and no entry for the user
        yield Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "coderag-ci"
    with contextlib.suppress(FileNotFoundError):
        yield Path(tempfile.gettempdir()) / f"coderag-ci-{os.getuid()}"


def _plain_files(directory: Path) -> None:
    """Raise OSError where a file of ours is a link, a pipe or a folder that somebody laid there."""
    for name in ("lock", FILE_NAME, f"{FILE_NAME}-wal", f"{FILE_NAME}-shm"):
        with contextlib.suppress(FileNotFoundError):
            mode = (directory / name).lstat().st_mode
            if name == FILE_NAME and stat.S_ISDIR(mode):
                continue  # set aside like any damaged store
            if not stat.S_ISREG(mode):
                raise OSError(errno.EINVAL, f"{name} is not a regular file")


def _by_maker(keys: Iterable[RowKey]) -> Iterator[tuple[tuple[str, str], list[bytes]]]:
    groups: dict[tuple[str, str], list[bytes]] = {}
    for blob, language, maker in keys:
        groups.setdefault((language, maker), []).append(bytes.fromhex(blob))
    for group, blobs in groups.items():
        for start in range(0, len(blobs), _BATCH):
            yield group, blobs[start : start + _BATCH]


def _readable(path: Path) -> bool:
    try:
        with contextlib.closing(sqlite3.connect(path, timeout=_BUSY_SECONDS)) as db:
            version = db.execute("PRAGMA user_version").fetchone()[0]
            return bool(
                version == SCHEMA and db.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok"
            )
    except sqlite3.Error:
        return False


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Hold an advisory lock between processes; raises TimeoutError where another keeps it."""
    import fcntl

    end = time.monotonic() + _BUSY_SECONDS

    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= end:
                    raise TimeoutError from None
                time.sleep(_LOOK_SECONDS)
        yield
    finally:
        os.close(descriptor)  # ends the lock, too
