"""What a path says of a file: test, generated, vendored, not worth indexing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from coderag_ci.config import Config

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

TEST, GENERATED, VENDORED = 1, 2, 4
FLAG_NAMES = {TEST: "test", GENERATED: "generated", VENDORED: "vendored"}

_TEST = re.compile(
    r"(?:^|/)(?:tests?|__tests__|specs?|testing|testdata|e2e|testcases)/"
    r"|(?:^|/)(?:test_[^/]*|conftest)\.pyi?$"
    r"|_(?:test|tests|spec)\.\w+$"
    r"|[.-](?:test|tests|spec)\.[cm]?[jt]sx?$"
    r"|(?:Test|Tests|TestCase|IT|Spec)\.(?:java|kt|cs|php|scala|groovy|swift)$"
)
_TEST_AFFIX = re.compile(r"^tests?[_-]|[_.-]?(?:tests?|specs?)$|(?:Tests?|Spec|IT)$")
_GENERATED = re.compile(
    r"\.min\.(?:js|css)$|_pb2(?:_grpc)?\.pyi?$|\.pb\.(?:go|cc|h)$|\.g\.cs$|\.designer\.cs$"
    r"|[._]generated\.\w+$|^zz_generated|/zz_generated|(?:^|/)(?:__generated__|generated)/"
    r"|\.snap$|(?:^|/)__snapshots__/|(?:^|/)cassettes/",
    re.IGNORECASE,
)
_VENDORED = re.compile(
    r"(?:^|/)(?:vendor|vendored|_vendor|third[_-]party|node_modules|bower_components)/|^deps/"
)
_LOCK = re.compile(
    r"(?:^|/)(?:package-lock\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-lock\.ya?ml|poetry\.lock"
    r"|uv\.lock|pdm\.lock|Pipfile\.lock|Cargo\.lock|Gemfile\.lock|composer\.lock|go\.sum"
    r"|bun\.lockb?|packages\.lock\.json|flake\.lock)$"
)
_LOG = re.compile(
    r"(?:^|/)(?:CHANGES|CHANGELOG|HISTORY|NEWS|RELEASES?|RELEASE[_-]?NOTES)(?:\.\w+)?$",
    re.IGNORECASE,
)
_BINARY = re.compile(
    r"\.(?:png|jpe?g|gif|ico|bmp|webp|tiff?|pdf|zip|gz|bz2|xz|zst|7z|tar|jar|war|class|so|dylib"
    r"|dll|exe|o|a|lib|pyc|pyd|whl|woff2?|ttf|otf|eot|mp[34]|wav|ogg|flac|mov|avi|webm|bin|dat"
    r"|db|sqlite3?|parquet|npy|npz|onnx|pt|pkl|ser|mo|icns|psd|keystore|jks|p12)$",
    re.IGNORECASE,
)
_DATA = re.compile(r"\.(?:svg|po|pot|csv|tsv|map|ipynb|lock|sum)$", re.IGNORECASE)


class Skipped(msgspec.Struct, frozen=True):
    """A path that was left out, and why."""

    path: str
    reason: str


class PathRules:
    """The built-in rules and those of the config, compiled once."""

    def __init__(self, config: Config) -> None:
        self._exclude = _compile(config.exclude)
        self._test = _compile(config.paths.test)
        self._generated = _compile(config.paths.generated)
        self._vendored = _compile(config.paths.vendored)
        self._languages = frozenset(config.languages)
        self.chunk_size = config.chunk_size
        self.digest = repr((config.exclude, config.paths, sorted(config.languages)))

    def flags(self, path: str) -> int:
        """Return the sum of TEST, GENERATED and VENDORED that hold for a path."""
        return (
            TEST * _holds(self._test, path, _TEST)
            + GENERATED * _holds(self._generated, path, _GENERATED)
            + VENDORED * _holds(self._vendored, path, _VENDORED)
        )

    def why_not(self, path: str, language: str) -> str:
        """Say why a path is not indexed, without reading the file; empty where it is."""
        if _BINARY.search(path):
            return "binary by name"
        if _LOCK.search(path):
            return "lock file"
        if _LOG.search(path):
            return "changelog"
        if _DATA.search(path):
            return "data file"
        if self._languages and language not in self._languages:
            return "language not configured"
        if self._exclude is not None and self._exclude.match_file(path):
            return "excluded by config"
        return ""


def stem_of(path: str) -> str:
    """Return a file's name in lower case without its endings and without a test's affix."""
    name = path.rpartition("/")[2]
    dot = name.find(".", 1)
    return _TEST_AFFIX.sub("", name[:dot] if dot > 0 else name).lower()


def is_lock(path: str) -> bool:
    """Whether a path is a dependency lock file."""
    return bool(_LOCK.search(path))


def asks_nothing(path: str) -> bool:
    """Whether a changed file's words say nothing of code: lock files and changelogs."""
    return bool(_LOCK.search(path) or _LOG.search(path))


def flag_names(flags: int) -> tuple[str, ...]:
    """Names of the flags that are set."""
    return tuple(name for flag, name in FLAG_NAMES.items() if flags & flag)


def _compile(patterns: Sequence[str]) -> GitIgnoreSpec | None:
    if not patterns:
        return None
    import pathspec

    from coderag_ci.errors import UsageError

    try:
        return pathspec.GitIgnoreSpec.from_lines(patterns)
    except ValueError as error:
        raise UsageError(f"config: not a gitignore pattern: {error}") from error


def _holds(spec: GitIgnoreSpec | None, path: str, built_in: re.Pattern[str]) -> bool:
    if spec is not None:
        result = spec.check_file(path)
        if result.include is not None:
            return bool(result.include)
    return bool(built_in.search(path))
