"""The symbol graph: which definition a use can mean, and how sure that is.

Nothing is worked out ahead: what a question needs is read from the postings of its name and
from the relations of the files that use or define it, and remembered.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from coderag_ci.index import Doc, Index, Use
from coderag_ci.parse.languages import CONTAINERS, RELATION_KINDS, language_of
from coderag_ci.parse.relations import Relation
from coderag_ci.parse.row import RELATION_FIELDS, Row
from coderag_ci.parse.terms import name_hash
from coderag_ci.resolve import Resolver, family, module_name

_REMEMBERED = 1 << 14
_MOST_DEFINITIONS = 2_000  # of a name that are looked at
_MOST_USES = 20_000  # of a name that are looked at; the rest is counted as not linked
_MOST_CANDIDATES = 3  # definitions that one use can mean; one that can mean more means none
_MOST_HOMES = 24  # definitions of a name; of more, a use can mean its file's own or the asked one
_MOST_RELATED = 20  # of one class's and its bases' methods, which count as one
_MOST_STEPS = 64  # files that an import is followed through
_MOST_CLASSES = 200  # of a class's bases and of what derives from it

_MEMBERS = frozenset({"method", "field"})
_TYPES = CONTAINERS | {"type"}
# Where a bare call can be one of the own object's methods.
_IMPLICIT = frozenset({"java", "csharp", "cpp", "ruby"})
# Where a bare name is of the same file or package or is imported: there is no other way.
_STRICT = frozenset({"python", "go", "java", "rust"})
# Where what a module imports can be imported from it.
_PASSED_ON = frozenset({"python", "rust", "c", "ruby"})
# Where a function in another unit can be called on an object: `app.use = function`, a mixin.
_ATTACHED = frozenset({"javascript", "ruby"})
# Names of methods that the objects of every library have: a call on an unknown object says
# nothing. The second are so where objects have no types in the source.
_COMMON = (
    "add append clear clone close contains copy equals error format get hashcode insert is_empty "
    "items iter keys len length map name new next push put read remove run set size string "
    "tostring unwrap value values write"
)
_COMMON_UNTYPED = (
    "all any apply at call compare count data delete done each emit empty entries exists extend "
    "filter find first flush has id index init join key kind last list load lock log match on "
    "open parse pop post print recv render replace reset resolve result save search select send "
    "sort split start status stop strip sub then to_a to_h to_s trim type update url wait"
)
_EVERYWHERE = frozenset(_COMMON.split())
_EVERYWHERE_UNTYPED = _EVERYWHERE | frozenset(_COMMON_UNTYPED.split())
_UNTYPED = frozenset({"python", "javascript", "ruby"})


class Level(enum.IntEnum):
    """What links a use to a definition, the surest first."""

    SAME_FILE = 1
    INHERITED = 2
    IMPORTED = 3
    SAME_PACKAGE = 4
    ONLY_DEFINITION = 5
    ONE_OF_SEVERAL = 6


class Definition(NamedTuple):
    """A definition of a name; ``owner`` is the class, or other unit, that it is in."""

    path: str
    name: str
    kind: str
    owner: str = ""
    line: int = 0
    doc: int = -1


class Link(NamedTuple):
    """A use that can mean a definition, under ``name``: that of the definition or an alias.

    ``of`` is the number of definitions that the use can mean, this one included.
    """

    use: Use
    level: Level
    of: int
    name: str


class Users(NamedTuple):
    """The uses of a definition in order of doc, and how many uses of its name were not linked."""

    links: tuple[Link, ...]
    unlinked: int


class Graph:
    """Answers who uses what in an index. A graph is as old as its index."""

    def __init__(self, index: Index, gone: Mapping[str, str] | None = None) -> None:
        """``gone``: packages by path of files that may be no longer in the view.

        What imports them is then known to mean them.
        """
        self._index = index
        self._gone = gone or {}
        self._resolver = Resolver({*index.paths(), *self._gone}, self._package)
        self._relations = functools.lru_cache(maxsize=_REMEMBERED)(index.relations)
        self.definitions = functools.lru_cache(maxsize=_REMEMBERED)(self._definitions)
        self._origins = functools.lru_cache(maxsize=_REMEMBERED)(self._find_origins)
        self._wholes = functools.lru_cache(maxsize=_REMEMBERED)(self._find_wholes)
        self._relatives = functools.lru_cache(maxsize=_REMEMBERED)(self._find_relatives)
        self._whole = functools.lru_cache(maxsize=_REMEMBERED)(self._find_whole)
        self._kin = functools.lru_cache(maxsize=_REMEMBERED)(self._find_kin)
        self._naming = functools.lru_cache(maxsize=_REMEMBERED)(self._find_naming)
        self.users = functools.lru_cache(maxsize=_REMEMBERED)(self._users)

    # ---- what is asked

    def _users(self, name: str, path: str, kind: str = "", owner: str = "") -> Users:
        """Return the uses that can mean what a path defines under a name.

        ``owner`` restricts it to one class; with a ``kind`` and no owner, what stands alone is
        meant where the file has such. What is no longer in the view is named by its ``kind``
        (and ``owner``), and uses are then judged as if it still stood there.
        """
        known = self.definitions(name, family(path))
        here = [d for d in known if d.path == path]
        mine = [d for d in here if d.owner == owner or not (owner or kind)] or here
        if not mine:
            mine = [Definition(path, name, kind or "function", owner)]
            known = (*known, *mine)
        uses = self._index.references(name_hash(name))
        links, unlinked = self._linked(name, uses, known, mine)
        for alias, files in self._aliases(name, uses, mine).items():
            links += [
                Link(use, Level.IMPORTED, 1, alias)
                for use in self._index.references(name_hash(alias))
                if use.access in ("bare", "type")
                and use.kind != "import"
                and self._path(use) in files
            ]
        return Users(tuple(sorted(links, key=lambda link: link.use)), unlinked)

    def definers(self, name: str, path: str) -> list[tuple[Definition, Level]]:
        """Return the definitions that a name in a file can mean, the surest first.

        The name stands alone, or is reached through a module that the file imports.
        """
        free = [d for d in self.definitions(name, family(path)) if not _is_member(d)]
        found = self._best(self._plain(name, path, free, family(path)) or {})
        found = found or self._best(self._by_import(name, path, free, reached=True))
        for place, original in self._origins(path, name)[0]:
            if original != name:
                found |= {
                    d: Level.IMPORTED
                    for d in self.definitions(original, family(path))
                    if place in self._resolver.places_of(d.path, d.owner)
                }
        return sorted(found.items(), key=lambda pair: (pair[1], pair[0]))

    def bases(self, name: str, path: str) -> list[Definition]:
        """Return the classes that a class of a file derives from, all the way up."""
        return [d for d, up in self._relatives(name, path) if up]

    def overrides(self, name: str, path: str, owner: str) -> list[Definition]:
        """Return the methods of a name in the classes above and below the class of a method."""
        classes = self._kin(owner, path)
        return [
            d
            for d in self.definitions(name, family(path))
            if d.kind == "method" and (d.path, d.owner) in classes
        ]

    # ---- definitions

    def _definitions(self, name: str, kind: str) -> tuple[Definition, ...]:
        """Return the definitions of a name in a language family, each class's once."""
        found: dict[tuple[str, str], Definition] = {}
        for use in self._index.definitions(name_hash(name))[:_MOST_DEFINITIONS]:
            doc = self._index.doc(use.doc)
            if family(doc.path) != kind:
                continue
            owner = _owner(name, use.kind, doc)
            if owner != name:  # a constructor stands for its class
                found.setdefault(
                    (doc.path, owner),
                    Definition(doc.path, name, use.kind, owner, use.line, use.doc),
                )
        return tuple(found.values())

    def _package(self, path: str) -> str:
        return self._index.package(path) or self._gone.get(path, "")

    def _path(self, use: Use) -> str:
        return self._index.doc(use.doc).path

    # ---- uses

    def _linked(
        self,
        name: str,
        uses: list[Use],
        known: tuple[Definition, ...],
        mine: Collection[Definition],
    ) -> tuple[list[Link], int]:
        links: list[Link] = []
        unlinked = max(0, len(uses) - _MOST_USES)
        wanted = family(next(iter(mine)).path)
        same: dict[tuple[str, str, str, str | int], tuple[Level | None, int]] = {}
        many = len(known) > _MOST_HOMES
        at: dict[str, list[Definition]] = {}
        for d in known if many else ():
            if d not in mine:
                at.setdefault(d.path, []).append(d)
        for use in uses[:_MOST_USES]:
            doc = self._index.doc(use.doc)
            if family(doc.path) != wanted:
                continue
            place: str | int = doc.symbol if use.access in ("bare", "self") else ""
            key = doc.path, use.kind, use.access, use.doc if use.access == "type" else place
            if key not in same:
                among = [*mine, *at.get(doc.path, ())] if many else known
                meant = self._meant(name, use, doc.path, doc, among)
                least = Level.SAME_PACKAGE if many else Level.ONE_OF_SEVERAL
                levels = [meant[d] for d in mine if d in meant and meant[d] <= least]
                same[key] = min(levels, default=None), self._separate(meant)
            level, of = same[key]
            if level is None:
                unlinked += 1
            else:
                links.append(Link(use, level, of, name))
        return links, unlinked

    def _meant(
        self, name: str, use: Use, path: str, doc: Doc, known: Iterable[Definition]
    ) -> dict[Definition, Level]:
        """Return the definitions that a use can mean, of those that are known."""
        kind = family(path)
        plain = use.access in ("bare", "module") or use.kind in ("import", "type")
        free = [d for d in known if not _is_member(d)]
        if use.access == "module":
            return self._best(self._by_import(name, path, free, reached=True))
        if plain and not (use.kind == "write" and kind != "ruby"):
            found = self._plain(name, path, free, kind)
            if found is None:
                return {}
            if found or language_of(path).name not in _IMPLICIT or use.kind in ("import", "type"):
                return self._best(found)
            members = [d for d in known if _is_member(d)]
            imported = self._best(self._by_import(name, path, members))  # a static one of Java
            return imported or self._of_object(name, use, path, doc, known, kind)
        if use.access == "type":
            found = self._by_import(name, path, free, reached=True)
            if not found and kind not in _STRICT - {"rust", "java"}:
                found = self._by_owner(path, use, free)
            named = self._by_owner(path, use, [d for d in known if _is_member(d)])
            if found or named:
                return self._best({**found, **named})
        if kind == "javascript" and (imported := self._by_import(name, path, free)):
            return self._best(imported)  # `require("./a").name`
        if use.access == "bare":  # a field that is set where its object is made
            return self._unknown(name, path, [d for d in known if d.kind == "field"])
        return self._of_object(name, use, path, doc, known, kind)

    def _plain(
        self, name: str, path: str, free: list[Definition], kind: str
    ) -> dict[Definition, Level] | None:
        """Resolve a name that stands alone; None where the file says that it is from elsewhere."""
        here: dict[Definition, Level] = {d: Level.SAME_FILE for d in free if d.path == path}
        # A property, as in `res.send = function`, is not what its name alone means.
        if here and not (kind == "javascript" and all(d.owner for d in here)):
            return here
        if imported := self._by_import(name, path, free):
            return imported
        places, outside = self._origins(path, name)
        if outside:
            return None
        if here:
            return here
        near = self._resolver.neighbours(path)
        beside = {
            d: Level.SAME_PACKAGE
            for d in free
            if not near.isdisjoint(self._resolver.places_of(d.path))
        }
        if beside or (kind in _STRICT and not any(d.kind == "macro" for d in free)):
            return beside
        if kind == "javascript" and self._relations(path) and not places:
            return {}
        return self._few(free)

    def _by_import(
        self, name: str, path: str, among: Iterable[Definition], *, reached: bool = False
    ) -> dict[Definition, Level]:
        """Return the definitions that a file imports, by name or with all of their module.

        ``reached``: the name is reached through an imported module, or through its class.
        """
        named, _ = self._origins(path, name)
        whole = self._wholes(path, reached)
        if reached:
            named = named.union(*(self._origins(file, name)[0] for file in whole))
        found = {}
        for d in among:
            places = self._resolver.places_of(d.path, d.owner)
            if not places.isdisjoint(whole) or any((place, d.name) in named for place in places):
                found[d] = Level.IMPORTED
        return found

    def _by_owner(
        self, path: str, use: Use, among: Iterable[Definition]
    ) -> dict[Definition, Level]:
        """Return the definitions whose class, or else module, is named beside the use."""
        found = {}
        near = self._resolver.neighbours(path)
        for d in among:
            owner = d.owner or module_name(d.path)
            if use.doc in self._naming(owner):
                places = self._resolver.places_of(d.path)
                if d.path == path:
                    found[d] = Level.SAME_FILE
                elif any((place, d.owner) in self._origins(path, d.owner)[0] for place in places):
                    found[d] = Level.IMPORTED
                elif not places.isdisjoint(near):
                    found[d] = Level.SAME_PACKAGE
                else:
                    found[d] = Level.ONLY_DEFINITION
        if len(found) > 1:
            several = Level.ONE_OF_SEVERAL
            found = {d: several if v is Level.ONLY_DEFINITION else v for d, v in found.items()}
        return found

    def _find_naming(self, name: str) -> frozenset[int]:
        return frozenset(use.doc for use in self._index.references(name_hash(name)))

    def _of_object(
        self, name: str, use: Use, path: str, doc: Doc, known: Iterable[Definition], kind: str
    ) -> dict[Definition, Level]:
        """Resolve a name that is reached on an object: the own one, or one of an unknown class."""
        members = [d for d in known if _is_member(d) or (kind in _ATTACHED and d.owner)]
        if use.access in ("self", "bare"):
            own = self._of_own(path, doc, members)
            if own is not None:
                return own
        return self._unknown(name, path, members)

    def _of_own(
        self, path: str, doc: Doc, members: Iterable[Definition]
    ) -> dict[Definition, Level] | None:
        """Resolve a name on the own object; None where its class does not say enough."""
        owners = _classes(doc)
        if not owners:
            return None
        here = {(path, owner) for owner in owners}
        found = {}
        for d in members:
            if d.owner in owners and self._same_unit(path, d.path):
                found[d] = Level.SAME_FILE if d.path == path else Level.SAME_PACKAGE
            elif d.owner and not here.isdisjoint(self._kin(d.owner, d.path)):
                found[d] = Level.INHERITED
        return found or None

    def _same_unit(self, one: str, other: str) -> bool:
        """Whether parts of one class can stand in two files (Go, C# and Ruby have such)."""
        return one == other or family(one) in ("go", "csharp", "ruby", "c", "rust")

    def _unknown(self, name: str, path: str, members: list[Definition]) -> dict[Definition, Level]:
        """Resolve a name on an object of an unknown class."""
        if name.lower() in (_EVERYWHERE_UNTYPED if family(path) in _UNTYPED else _EVERYWHERE):
            return {}
        near = self._resolver.neighbours(path)
        found = {}
        for d in members:
            places = self._resolver.places_of(d.path)
            named = self._origins(path, d.owner)[0] if d.owner else frozenset()
            if d.path == path:
                found[d] = Level.SAME_FILE
            elif any((place, d.owner) in named for place in places) or not places.isdisjoint(
                self._wholes(path, True)
            ):
                found[d] = Level.IMPORTED
            elif not places.isdisjoint(near):
                found[d] = Level.SAME_PACKAGE
        sure = {d: level for d, level in found.items() if level <= Level.IMPORTED}
        if sure and self._separate(sure) <= _MOST_CANDIDATES:
            return sure
        return self._best(found) if found else self._few(members)

    def _best(self, found: dict[Definition, Level]) -> dict[Definition, Level]:
        """Keep the surest of the definitions that a use can mean; nothing where they are many."""
        best = min(found.values(), default=None)
        kept = {d: level for d, level in found.items() if level == best}
        return kept if self._separate(kept) <= _MOST_CANDIDATES else {}

    def _few(self, definitions: list[Definition]) -> dict[Definition, Level]:
        """Link to all definitions of a name where they are few."""
        separate = self._separate(definitions)
        if separate > _MOST_CANDIDATES:
            return {}
        level = Level.ONLY_DEFINITION if separate == 1 else Level.ONE_OF_SEVERAL
        return dict.fromkeys(definitions, level)

    def _separate(self, definitions: Collection[Definition]) -> int:
        """Count definitions; methods of classes that derive from one another count as one."""
        if not 1 < len(definitions) <= _MOST_RELATED:
            return len(definitions)
        groups: list[set[tuple[str, str]]] = []
        for d in definitions:
            classes = {(d.path, d.owner)}
            if d.owner and _is_member(d):
                classes |= self._kin(d.owner, d.path)
            for group in [g for g in groups if not g.isdisjoint(classes)]:
                groups.remove(group)
                classes |= group
            groups.append(classes)
        return len(groups)

    # ---- imports

    def _find_origins(self, path: str, name: str) -> tuple[frozenset[tuple[str, str]], bool]:
        """Follow a name to the (place, name) pairs that a file can have it from.

        Also whether the file imports it by name from outside the view only.
        """
        found: set[tuple[str, str]] = set()
        outside = False
        waiting = [(path, name)]
        seen = {(path, name)}
        while waiting and len(seen) <= _MOST_STEPS:
            file, wanted = waiting.pop(0)
            for place, original, explicit in self._steps(file, wanted, file != path):
                if not place:
                    outside |= explicit and file == path
                    continue
                found.add((place, original))
                if (place, original) not in seen and ":" not in place[:4]:
                    seen.add((place, original))
                    waiting.append((place, original))
        return frozenset(found), outside and not found

    def _steps(self, path: str, name: str, passed_on: bool) -> Iterator[tuple[str, str, bool]]:
        """Yield (place, name there, whether it is named) for each import that can bring a name.

        ``passed_on``: only what other files can have from this one.
        """
        exported = ("export", "reexport")
        for relation in self._relations(path):
            kind = relation.kind
            if passed_on and kind not in exported and family(path) not in _PASSED_ON:
                continue
            if kind == "export" and not relation.module and relation.alias == name:
                yield path, relation.name, False
            elif kind in ("name", "export") and relation.alias == name and relation.module:
                places = self._resolver.resolve(path, relation.module)
                for place in places:
                    yield place, relation.name, True
                if inner := self._submodule(path, relation):
                    places = (*places, *inner)
                    for place in inner:
                        yield place, "", True
                if not places:
                    yield "", "", True
            elif kind in ("star", "reexport"):  # what is included, all of it is
                for place in self._resolver.resolve(path, relation.module):
                    yield place, name, False

    def _submodule(self, path: str, relation: Relation) -> tuple[str, ...]:
        """Return the places of an imported name that is itself a module."""
        kind = family(path)
        if kind == "python":
            dot = "" if relation.module.endswith(".") else "."
            return tuple(self._resolver.resolve(path, f"{relation.module}{dot}{relation.name}"))
        if kind == "rust":
            found = self._resolver.resolve(path, f"{relation.module}::{relation.name}")
            return tuple(p for p in found if f"/{relation.name}" in p.removesuffix("/mod.rs"))
        return ()

    def _find_wholes(self, path: str, reached: bool) -> frozenset[str]:
        """Return the places all of whose names a file has, or can reach through a module."""
        found: set[str] = set()
        waiting = [path]
        while waiting and len(found) <= _MOST_STEPS:
            file = waiting.pop(0)
            for place in self._whole(file, reached and file == path, file != path):
                if place not in found:
                    found.add(place)
                    if ":" not in place[:4]:
                        waiting.append(place)
        return frozenset(found)

    def _find_whole(self, path: str, reached: bool, passed_on: bool) -> tuple[str, ...]:
        """Return the places that a file takes whole; ``passed_on``: and gives on to others."""
        passes = family(path) in _PASSED_ON
        found: list[str] = []
        for relation in self._relations(path):
            kind = relation.kind
            if kind in ("star", "include", "reexport"):
                if (kind == "reexport") == passed_on or (passed_on and passes):
                    found += self._resolver.resolve(path, relation.module)
            elif reached and kind in ("module", "name"):
                if kind == "module" or relation.name == "default":
                    found += self._resolver.resolve(path, relation.module)
                else:
                    found += self._submodule(path, relation)
        return tuple(dict.fromkeys(found))

    def _aliases(
        self, name: str, uses: Iterable[Use], mine: Collection[Definition]
    ) -> dict[str, set[str]]:
        """Return the aliases under which files have the definitions, with the files' paths."""
        files = {self._path(use) for use in uses if use.kind == "import"}
        default = family(next(iter(mine)).path) == "javascript"
        if default:
            for d in mine:
                files.update(path for path, _ in self._importers(d.path))
        wanted = {
            (place, d.name) for d in mine for place in self._resolver.places_of(d.path, d.owner)
        }
        found: dict[str, set[str]] = {}
        for file in sorted(files)[:_MOST_DEFINITIONS]:
            for relation in self._relations(file):
                if (
                    relation.kind == "name"
                    and relation.alias not in ("", name)
                    and relation.name in ((name, "default") if default else (name,))
                    and not wanted.isdisjoint(self._origins(file, relation.alias)[0])
                ):
                    found.setdefault(relation.alias, set()).add(file)
        return found

    def _importers(self, path: str) -> Iterator[tuple[str, Relation]]:
        """Yield the relations that can lead to a script, or to one that exports all of it."""
        for importer, relation in self._named_like(path):
            yield importer, relation
            if relation.kind == "reexport" and path in self._resolver.resolve(
                importer, relation.module
            ):
                yield from self._named_like(importer)

    def _named_like(self, path: str) -> list[tuple[str, Relation]]:
        *folders, last = path.split("/")
        stem = last.partition(".")[0]
        names = [*folders[-1:], ""] if stem == "index" else [stem]
        return [found for name in names for found in self._index.importers(name)]

    # ---- classes

    def _find_kin(self, name: str, path: str) -> frozenset[tuple[str, str]]:
        """Return the (path, name) of the classes above and below a class."""
        return frozenset((d.path, d.name) for d, _ in self._relatives(name, path))

    def _find_relatives(self, name: str, path: str) -> tuple[tuple[Definition, bool], ...]:
        """Return the classes above (True) and below a class of a file, bounded."""
        found: dict[Definition, bool] = {}
        for up in (True, False):
            step = self._above if up else self._below
            waiting = [(name, path)]
            while waiting and len(found) < _MOST_CLASSES:
                for d in step(*waiting.pop(0)):
                    if d not in found and (d.name, d.path) != (name, path):
                        found[d] = up
                        waiting.append((d.name, d.path))
        return tuple(found.items())

    def _above(self, name: str, path: str) -> Iterator[Definition]:
        for relation in self._relations(path):
            if relation.kind == "base" and relation.module == name:
                yield from self._classes_of(relation.name, path)

    def _below(self, name: str, path: str) -> Iterator[Definition]:
        uses = self._index.references(name_hash(name))
        aliases = self._aliases(name, uses, [Definition(path, name, "class")])
        for known_as in (name, *aliases):
            for file, relation in self._index.derived(known_as)[:_MOST_CLASSES]:
                if family(file) == family(path) and any(
                    (d.path, d.name) == (path, name) for d in self._classes_of(known_as, file)
                ):
                    yield Definition(file, relation.module, "class")

    def _classes_of(self, name: str, path: str) -> Iterator[Definition]:
        """Yield the classes that a name can mean in a file, without where in the file they are."""
        for d, _ in self.definers(name, path):
            if d.kind in _TYPES:
                yield Definition(d.path, d.name, "class")


def packages(rows: Mapping[str, Row]) -> dict[str, str]:
    """Return the package or namespace that each file declares, by path."""
    found = {}
    for path, row in rows.items():
        table = np.frombuffer(row.relations, "<u4").reshape(-1, RELATION_FIELDS)
        declares = len(table) and RELATION_KINDS[int(table[0, 0])] == "package"
        found[path] = row.names[int(table[0, 1])] if declares else ""
    return found


def _is_member(definition: Definition) -> bool:
    return definition.kind in _MEMBERS


def _owner(name: str, kind: str, doc: Doc) -> str:
    """Return the innermost unit around a definition of a doc; empty at the top of its file.

    A field that a method sets first is its class's.
    """
    parts = doc.symbol.split(".") if doc.symbol else []
    if parts and (parts[-1] == name or (kind == "field" and doc.kind not in CONTAINERS)):
        parts.pop()
    return parts[-1] if parts else ""


def _classes(doc: Doc) -> frozenset[str]:
    """Return the names of the classes that a doc can be in."""
    parts = doc.symbol.split(".") if doc.symbol else []
    return frozenset(parts if doc.kind in CONTAINERS else parts[:-1])
