"""Files that a change deletes or moves and that head still imports under their old paths."""

from __future__ import annotations

import functools
import posixpath
import re
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from coderag_ci.diff import FileDiff
from coderag_ci.facts.given import TYPES, Given, count, definitions, fact
from coderag_ci.facts.kept import Kept
from coderag_ci.graph import packages
from coderag_ci.pack import Fact, Place
from coderag_ci.parse.relations import Relation
from coderag_ci.resolve import Resolver, family

_GOES = ("deleted", "renamed")
_BY_PATH = frozenset({"python", "javascript", "go", "c", "ruby"})
_BY_PACKAGE = frozenset({"java", "csharp", "php"})
_TRIES = re.compile(r"\s*(?:\}\s*)?(?:try|except|catch|rescue|begin)\b|\s*with\s.*\bsuppress\b")
_IF_IT_IS_THERE = re.compile(r"#\s*(?:el)?if.*(?:HAVE_|__has_include)")


class _Broken(NamedTuple):
    """An import that leads nowhere now: to what, from where, how its line begins and goes on."""

    name: str
    path: str
    importer: str
    line: str  # a regular expression
    word: str = ""  # on that line, or on a later one of the same statement


def facts(given: Given) -> list[Fact]:
    """Return one fact for each file, folder, Go package, or type of a namespace."""
    if all(file.status not in _GOES for file in given.diff.files):
        return []
    kept = Kept(given)
    gone = _gone(given, kept)
    imports = _Imports(given)
    broken = [one for path in gone for one in imports.broken(path)]
    found: dict[str, dict[Place, None]] = {}
    for one, place in imports.places(broken):
        found.setdefault(_folder(one, kept) or one.name, {})[place] = None
    now = {path: file.path for path, file in gone.items() if file.status == "renamed"}
    return [
        fact(
            "dangling",
            f"`{name}` is gone{f' (now {now[name]})' if name in now else ''}, and is still "
            f"imported in {count(len(places), 'file')}",
            places,
        )
        for name, places in found.items()
    ]


def _gone(given: Given, kept: Kept) -> dict[str, FileDiff]:
    """Return the files that people wrote and that head has no more, by their old paths."""
    return {
        file.old_path: file
        for file in given.diff.files
        if file.status in _GOES
        and family(file.old_path) in _BY_PATH | _BY_PACKAGE
        and given.written(file.old_path)
        and not kept.stands_for(file.old_path)
    }


def _folder(broken: _Broken, kept: Kept) -> str:
    """Return the outermost folder that went with a file; empty where there is none."""
    outermost = ""
    folder = posixpath.dirname(broken.path)
    while folder and not kept.is_folder(folder):
        outermost, folder = folder, posixpath.dirname(folder)
    return f"{outermost}/" if outermost and broken.name == broken.path else ""


class _Imports:
    """Finds the imports of head that lead to files that are gone, and to nothing else."""

    def __init__(self, given: Given) -> None:
        index = given.index
        self._given = given
        self._packages = packages(given.base)
        self._head = Resolver(given.paths, index.package)
        self._base = Resolver(
            given.paths | {file.old_path for file in given.diff.files},
            lambda path: index.package(path) or self._packages.get(path, ""),
        )
        self._importers = functools.lru_cache(maxsize=None)(index.importers)

    def broken(self, path: str) -> Iterator[_Broken]:
        """Yield the imports that led to a file that is gone."""
        kind = family(path)
        find = self._by_package if kind in _BY_PACKAGE else self._by_path
        for key in _keys(path, self._packages.get(path, "")):
            for importer, relation in self._importers(key):
                if family(importer) == kind and self._given.written(importer):
                    broken = find(path, importer, relation)
                    if broken is not None:
                        yield broken

    def places(self, broken: Sequence[_Broken]) -> Iterator[tuple[_Broken, Place]]:
        """Yield where the imports stand, without those that a file can do without."""
        index = self._given.index
        docs = {one.importer: index.docs_of(one.importer) for one in broken}
        self._given.texts.load(index.doc(some[0]).blob for some in docs.values() if some)
        for one in broken:
            if place := self._place(one):
                yield one, place

    def _by_path(self, path: str, importer: str, relation: Relation) -> _Broken | None:
        kind = family(path)
        module = relation.module
        name = posixpath.dirname(path) if kind == "go" else path
        place = f"dir:{name}" if kind == "go" else path
        if self._leads_nowhere(importer, module, place):
            return _Broken(name, path, importer, _pattern(kind, module))
        if kind == "python" and relation.kind == "name":
            inner = f"{module}{'' if module.endswith('.') else '.'}{relation.name}"
            if self._leads_nowhere(importer, inner, place) and not self._gives(
                importer, module, relation.name
            ):
                return _Broken(name, path, importer, _pattern(kind, module), relation.name)
        return None

    def _leads_nowhere(self, importer: str, module: str, place: str) -> bool:
        """Whether a module was a place, and is none of head."""
        if family(importer) == "python" and module.partition(".")[0] in sys.stdlib_module_names:
            return False
        if family(importer) == "c" and module.rpartition("/")[2] != place.rpartition("/")[2]:
            return False  # only what is included, not what stands beside it
        return place in self._base.resolve(importer, module) and not self._head.resolve(
            importer, module
        )

    def _gives(self, importer: str, module: str, name: str) -> bool:
        """Whether a package of head has a name by another way than as a module."""
        word = re.compile(rf"\b{re.escape(name)}\b|\bimport\s+\*|__getattr__|__path__")
        return any(
            word.search(line)
            for place in self._head.resolve(importer, module)
            if place != importer
            for line in self._lines(place)
        )

    def _by_package(self, path: str, importer: str, relation: Relation) -> _Broken | None:
        package = self._packages[path]
        if relation.module != package:
            return None
        begins = rf"^\s*(?:global\s+)?(?:import|use|using)\b.*(?<![\w.\\]){re.escape(package)}"
        if relation.kind in ("star", "module"):
            left = any(one == package or one.startswith(f"{package}.") for one in self._declared)
            return None if left else _Broken(package, path, importer, begins)
        if relation.name not in self._types(path) or any(
            d.kind in TYPES and self._given.index.package(d.path) == package
            for d in self._given.graph.definitions(relation.name, family(path))
        ):
            return None
        joint = "\\" if family(path) == "php" else "."
        name = f"{package}{joint}{relation.name}"
        return _Broken(name, path, importer, begins, relation.name)

    @functools.cached_property
    def _declared(self) -> frozenset[str]:
        """The packages and namespaces that files of head declare."""
        paths = (path for path in self._given.paths if family(path) in _BY_PACKAGE)
        return frozenset(map(self._given.index.package, paths))

    def _types(self, path: str) -> set[str]:
        """Return the types that stood at the top of a file."""
        found = definitions(self._given.base.get(path))
        return {
            name.rpartition(".")[2]
            for name, kind in found.items()
            if kind in TYPES and found.get(name.rpartition(".")[0]) not in TYPES
        }

    def _lines(self, path: str) -> Sequence[str]:
        docs = self._given.index.docs_of(path)
        return self._given.texts.lines(self._given.index.doc(docs[0]).blob) if docs else ()

    def _place(self, broken: _Broken) -> Place | None:
        """Return where an import stands; None for one that its file can do without."""
        lines = self._lines(broken.importer)
        begins = re.compile(broken.line)
        word = re.compile(rf"(?<![\w$]){re.escape(broken.word)}(?![\w$])" if broken.word else "")
        for number, line in enumerate(lines, 1):
            if not begins.search(line) or _is_tried(lines, number):
                continue
            end = number
            while end < len(lines) and "(" in line and ")" not in lines[end - 1]:
                end += 1
            while end < len(lines) and "{" in line and "}" not in lines[end - 1]:
                end += 1
            at = next((n for n in range(number, end + 1) if word.search(lines[n - 1])), 0)
            if at:
                return Place(broken.importer, at, self._symbol(broken.importer, at))
        return None

    def _symbol(self, path: str, line: int) -> str:
        docs = (self._given.index.doc(number) for number in self._given.index.docs_of(path))
        return next((doc.symbol for doc in docs if doc.start <= line <= doc.end), "")


def _keys(path: str, package: str) -> list[str]:
    """Return the modules under whose last parts the imports of a file are found."""
    kind = family(path)
    if kind in _BY_PACKAGE:
        return [package] if package else []
    folder, name = posixpath.split(path)
    stem, ending = posixpath.splitext(name)
    if kind == "go":
        return [posixpath.basename(folder)]
    if kind == "c":
        return [ending[1:]]
    if kind == "ruby":
        return [stem]
    parts = [part for part in folder.split("/") if part]
    if stem not in ("__init__", "index"):
        parts.append(name.partition(".")[0])
    if kind == "python":
        return list(dict.fromkeys([*parts[-1:], *parts[-2:-1], ""]))
    return [*parts[-1:], ""] if stem == "index" else parts[-1:]


def _pattern(kind: str, module: str) -> str:
    """Return what finds the line that imports a module; a name that is looked up counts not."""
    written = re.escape(module)
    if kind == "python":
        return rf"^\s*(?:from\s+{written}\s+import\b|import\s(?:.*[\s,])?{written}(?![\w.]))"
    if kind == "c":  # what stands in angles may be the system's
        return rf"^\s*#\s*include\s*\"{written}\""
    if kind == "ruby":
        return rf"^\s*require_relative[\s(]*['\"]{written}['\"]"
    if kind == "go":
        return rf"^\s*(?:import\s+)?(?:[\w.]+\s+)?\"{written}\""
    if module.startswith("."):
        return rf"^(?!\s*(?://|\*)).*(?:\bfrom\b|\bimport\b|\brequire\b).*['\"`]{written}['\"`]"
    return "(?!)"


def _is_tried(lines: Sequence[str], number: int) -> bool:
    """Whether a statement stands where it may fail: the line that it is indented under says so."""
    own = lines[number - 1]
    before = next((line for line in reversed(lines[: number - 1]) if line.strip()), "")
    if _IF_IT_IS_THERE.match(before):
        return True
    indent = len(own) - len(own.lstrip())
    above = (line for line in reversed(lines[: number - 1]) if line.strip())
    under = next((line for line in above if len(line) - len(line.lstrip()) < indent), "")
    return bool(_TRIES.match(under)) or bool(_TRIES.match(own))
