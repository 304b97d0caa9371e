"""What may still stand at a path that git no longer has: it is built, or comes from elsewhere."""

from __future__ import annotations

import functools
import posixpath
import re
from collections.abc import Iterator

from coderag_ci.diff import FileDiff
from coderag_ci.facts.given import Given
from coderag_ci.pathrules import asks_nothing
from coderag_ci.resolve import family

_BY_NAME = frozenset({"python", "javascript", "ruby"})  # imported without their endings
_PROSE = re.compile(r"\.(?:md|markdown|rst|adoc)$", re.IGNORECASE)
_REQUIRES = re.compile(
    r"(?:^|/)(?:requirements[^/]*\.(?:txt|in)|pyproject\.toml|setup\.(?:py|cfg)|Pipfile"
    r"|environment\.ya?ml)$"
)
_MOST_LISTS = 50  # of required libraries that are read


class Kept:
    """Tells of paths of base whether an import of them may lead somewhere all the same."""

    def __init__(self, given: Given) -> None:
        self._given = given
        self._stems = {posixpath.splitext(path)[0] for path in given.paths}
        self._folders = _folders(given.paths)
        self._were = given.paths | {file.old_path for file in given.diff.files}
        self._ignored = {
            line.strip().strip("/")
            for file in given.diff.files
            if posixpath.basename(file.path) == ".gitignore"
            for line in _added(file)
        }

    def is_folder(self, path: str) -> bool:
        """Whether head has a file in a folder."""
        return path in self._folders

    def stands_for(self, path: str) -> bool:
        """Whether head has a file, or a like one: ``tax.vue``, ``tax.pyx``, ``tax.h.in``."""
        kind = family(path)
        stem = posixpath.splitext(path)[0].removesuffix("/__init__")
        if path in self._given.paths or path in self._stems:
            return True
        if kind in _BY_NAME and stem in self._stems:
            return True
        if kind == "python" and (stem in self._folders or self._is_library(stem)):
            return True
        folders = [path[: at.start()] for at in re.finditer("/", path)]
        name = posixpath.basename(path)
        if not self._ignored.isdisjoint({name, f"*{posixpath.splitext(name)[1]}", path, *folders}):
            return True
        built = rf"(?<![\w.-]){re.escape(name)}(?![\w./-])"
        return name in self._built and bool(re.search(built, self._built))

    def _is_library(self, stem: str) -> bool:
        """Whether a Python module's outermost package is none of ours now, and is required."""
        top = stem
        while (folder := posixpath.dirname(top)) and f"{folder}/__init__.py" in self._were:
            top = folder
        if top in self._folders or not self._required:
            return False
        name = re.escape(posixpath.basename(top)).replace("_", "[-_]")
        line = rf"(?mi)^[\s\"'-]*{name}\s*(?:[\"'<>=~!;,\[](?!.*:).*)?$"
        return bool(re.search(line, self._required))

    @functools.cached_property
    def _built(self) -> str:
        """What the change adds to files that are neither code nor prose: they may build a file."""
        return "\n".join(
            line
            for file in self._given.diff.files
            if not (asks_nothing(file.path) or _PROSE.search(file.path))
            and family(file.path) not in _BY_NAME | {"c", "go", "java", "csharp", "php"}
            for line in _added(file)
        )

    @functools.cached_property
    def _required(self) -> str:
        """The text of head's lists of required Python libraries."""
        index, texts = self._given.index, self._given.texts
        paths = sorted(path for path in self._given.paths if _REQUIRES.search(path))
        docs = [index.docs_of(path)[0] for path in paths[:_MOST_LISTS] if index.docs_of(path)]
        blobs = [index.doc(doc).blob for doc in docs]
        texts.load(blobs)
        return "\n".join(line for blob in blobs for line in texts.lines(blob))


def _added(file: FileDiff) -> Iterator[str]:
    for hunk in file.hunks:
        yield from (line[1:] for line in hunk.lines if line[0] == "+")


def _folders(paths: frozenset[str]) -> frozenset[str]:
    """Return the folders of some paths, at every depth."""
    found: set[str] = set()
    for path in paths:
        folder = posixpath.dirname(path)
        while folder and folder not in found:
            found.add(folder)
            folder = posixpath.dirname(folder)
    return frozenset(found)
