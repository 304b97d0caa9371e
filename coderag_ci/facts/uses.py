"""Which uses of a name can mean one definition: all that the facts by name rest on."""

from __future__ import annotations

import builtins
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from coderag_ci.facts.given import Given, is_compound
from coderag_ci.graph import Level, Link
from coderag_ci.index import Index, Use
from coderag_ci.pack import Place
from coderag_ci.parse.languages import language_of
from coderag_ci.pathrules import TEST
from coderag_ci.resolve import family

CONSTRUCTORS = frozenset({"__init__", "__new__", "constructor", "initialize", "__construct"})
_PRIVATE = re.compile(r"(?<![\w$])private(?![\w$])")
_STATIC = re.compile(r"(?<!\w)static(?!\w)")
# Of several words, so that they look telling, and yet everyone's: standard libraries' names.
_COMMON_NAMES = """
addAll addClass addEventListener array_map array_merge asList as_bytes as_mut as_ref as_slice
as_str beforeEach afterEach charAt charCodeAt compareTo containsKey ContainsKey copyOf
createElement defineProperty each_with_index endsWith entrySet equalsIgnoreCase findIndex
forEach fromEntries from_str getattr getBytes getClass getElementById GetEnumerator
GetHashCode getItem getKey getLogger getMessage getName getOwnPropertyNames getPrototypeOf
getSimpleName GetType getValue hasAttribute hasattr hashCode hasNext hasOwnProperty in_array
includes IndexOf indexOf instance_of into_iter is_array is_empty is_err is_file is_none is_ok
is_some is_string isArray isDigit isEmpty isInstance isinstance isNaN isPresent issubclass
iter_mut keySet lastIndexOf lower_bound map_err mapToObj memcpy memset method_missing
nextLine ok_or orElse parseFloat parseInt preg_match preg_replace push_back push_str
putAll querySelector readFile readLine removeEventListener replaceAll respond_to
set_error setattr setItem setTimeout setUp shared_ptr size_t sizeof sort_by splitlines
sprintf startsWith startswith endswith str_replace strcmp string_view strlen subList
tearDown toArray ToArray ToList toList toLowerCase to_lowercase to_owned toString ToString
to_s to_string to_vec toUpperCase TryGetValue unique_ptr unwrap_or unwrap_or_else
valueOf with_capacity writeFile
"""
_COMMON = frozenset(_COMMON_NAMES.split())


_INHERITING = frozenset({"java", "csharp", "cpp"})  # a method needs no receiver in a subclass
_CAPITAL_FIELDS = frozenset({"csharp", "go"})
_HERE = frozenset({"self", "super", "crate", "Self", "this"})
_IMPORT = re.compile(r"^\s*(?:import|from|use|using|export|#include|\"|\w+ \")|\brequire\b")
_RELATIVE = re.compile(r"\bfrom\s+\.|['\"]\.")
_ALL = re.compile(r"\bimport\s+\*|^export\s+\*")


class Target(NamedTuple):
    """A definition whose uses are wanted; ``signature`` is empty where it is not known."""

    path: str
    name: str  # qualified
    kind: str
    signature: str = ""

    @property
    def called(self) -> str:
        """The name that a use of it is written with: a constructor goes by its class."""
        outer, _, last = self.name.rpartition(".")
        return outer.rpartition(".")[2] if last in CONSTRUCTORS and outer else last

    @property
    def owner(self) -> str:
        """The class, or other unit, that it is in; empty at the top of its file."""
        return self.name.rpartition(".")[0].rpartition(".")[2]

    @property
    def is_method(self) -> bool:
        """Whether it is called on an object; a constructor is not."""
        return self.kind == "method" and self.called != self.owner


def is_telling(target: Target) -> bool:
    """Whether a name alone says enough for its uses to mean this definition.

    Methods are called on objects whose type is unknown, so a method's name has to be
    made of several words; ``get`` or ``close`` mean something else elsewhere.
    """
    name = target.called
    if name.startswith("__") or len(name) < 4 or name in _COMMON or hasattr(builtins, name):
        return False
    return is_compound(name) or (len(name) > 6 and target.kind != "method")


def uses(given: Given, target: Target, kinds: set[str], *, by_name: bool) -> list[Use]:
    """Return the uses of a definition, of some kinds.

    Those by code that imports it, however short or common its name; with ``by_name`` also those
    by code that could mean it.
    """
    index = given.index
    if family(target.path) == "python" and hasattr(builtins, target.called):
        return []
    linked = given.graph.users(target.called, target.path, target.kind, target.owner).links
    own = given.rules.flags(target.path) & TEST
    some = [
        link
        for link in linked
        if (not own or index.is_test(link.use.doc))
        and _reaches(target, index.doc(link.use.doc).path)
    ]
    imports: dict[str, list[int]] = {}
    for link in some:
        if link.use.kind == "import":
            imports.setdefault(index.doc(link.use.doc).path, []).append(link.use.line)
    meaning = _Meaning(given, target, imports)
    return [
        link.use
        for link in some
        if link.use.kind in kinds
        and (meaning.is_imported(link) or (by_name and meaning.holds(link.use)))
    ]


def place_of(index: Index, use: Use) -> Place:
    """Return where a use is."""
    doc = index.doc(use.doc)
    return Place(doc.path, use.line, doc.symbol)


def _reaches(target: Target, path: str) -> bool:
    """Whether code in a path could name the definition: same family of languages, not hidden."""
    language = language_of(target.path).name
    if family(target.path) != family(path):
        return False
    if path == target.path:
        return True
    if language == "go" and target.called[:1].islower():
        return path.rpartition("/")[0] == target.path.rpartition("/")[0]
    if language in ("c", "cpp") and target.kind == "function":
        return not _STATIC.search(target.signature) or target.path.endswith((".h", ".hpp"))
    if language == "rust" and target.kind == "function" and target.signature:
        return target.signature.startswith("pub")
    return not _PRIVATE.search(target.signature)


class _Meaning:
    """Tells from a use's own line, and from what its file imports, whether it can be meant."""

    def __init__(self, given: Given, target: Target, imports: Mapping[str, Sequence[int]]) -> None:
        self._given = given
        self._target = target
        self._imports = imports
        self._family = family(target.path)
        self._owner = target.owner
        folder, _, name = target.path.rpartition("/")
        folders = set(folder.split("/")) - {"", "src", "lib"}
        self._names = folders | {name.partition(".")[0]}
        name = re.escape(target.called)
        self._at = re.compile(rf"(?:(\w+)\s*)?(\.|::|->)?\s*(?<![\w$]){name}(?![\w$])")

    def is_imported(self, link: Link) -> bool:
        """Whether the imports of a use's file lead to the definition, and to no other."""
        if link.level is not Level.IMPORTED or link.of > 1:
            return False
        if link.use.access == "bare":
            return not self._target.is_method
        if link.use.access not in ("module", "type"):
            return False
        path, lines, line = self._read(link.use)
        return any(
            found[1] == self._owner if self._target.is_method else self._is_ours(found, path, lines)
            for found in self._at.finditer(line)
        )

    def holds(self, use: Use) -> bool:
        """Whether a use can mean the definition."""
        path, lines, line = self._read(use)
        if use.kind == "import":
            return self._names_us(line)
        return any(self._is_ours(found, path, lines) for found in self._at.finditer(line))

    def _read(self, use: Use) -> tuple[str, list[str], str]:
        """Return the path of a use, the lines there, and its own."""
        doc = self._given.index.doc(use.doc)
        lines = self._given.texts.lines(doc.blob)
        return doc.path, lines, lines[use.line - 1] if use.line <= len(lines) else ""

    def _is_ours(self, found: re.Match[str], path: str, lines: Sequence[str]) -> bool:
        before, joint = found.group(1), found.group(2)
        if self._target.is_method:
            if joint is None:
                return path == self._target.path or self._inherits(path, lines)
            if before == self._owner or before is None:
                return True
            if before[:1].isupper() and self._family not in _CAPITAL_FIELDS:
                return before in ("Self", self._owner)
            return not _is_module(before, self._family, lines)
        if joint is None:
            return path == self._target.path or self._is_visible(path, lines)
        if self._family in ("c", "cpp"):
            return joint == "::"
        if before is None:
            return False
        return before in self._names | _HERE | {self._owner} or any(
            re.search(rf"\b{before}\b", line) and self._names_us(line)
            for line in lines
            if _IMPORT.search(line)
        )

    def _inherits(self, path: str, lines: Sequence[str]) -> bool:
        """Whether code of a file may call a method without a receiver."""
        if family(path) == "ruby":
            return True
        extends = re.compile(rf"(?:\bextends\b|\bimplements\b|:).*\b{re.escape(self._owner)}\b")
        return language_of(path).name in _INHERITING and any(map(extends.search, lines))

    def _is_visible(self, path: str, lines: Sequence[str]) -> bool:
        """Whether a file may write the name alone: it imports it, or the language needs none."""
        if self._family == "go":
            return path.rpartition("/")[0] == self._target.path.rpartition("/")[0]
        if self._family not in ("python", "javascript"):
            return True
        if any(self._names_us(lines[at - 1]) for at in self._imports.get(path, ())):
            return True
        return any(_ALL.search(line) and self._names_us(line) for line in lines)

    def _names_us(self, line: str) -> bool:
        """Whether an import may be of the definition's file; what goes on in other lines may."""
        if not _IMPORT.search(line) or _RELATIVE.search(line):
            return True
        return not (self._names | _HERE).isdisjoint(re.findall(r"\w+", line))


def _is_module(name: str, family: str, lines: Sequence[str]) -> bool:
    """Whether a name is that of an import rather than of an object."""
    if family == "go":
        quoted = re.compile(rf'^\s*(?:import\s+)?(?:{name}\s+"|(?:\w+\s+)?"(?:[^"]*/)?{name}")')
        return any(quoted.search(line) for line in lines)
    if family == "python":
        imported = re.compile(rf"^\s*import\s.*\b{name}\b")
        return any(imported.search(line) for line in lines)
    return False
