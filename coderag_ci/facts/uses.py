"""Which uses of a name can mean one definition: all that the facts by name rest on."""

from __future__ import annotations

import builtins
import re
from typing import NamedTuple

from coderag_ci.index import Index, Use
from coderag_ci.pack import Place
from coderag_ci.parse.languages import language_of
from coderag_ci.parse.terms import name_hash

_FAMILIES = {"tsx": "javascript", "typescript": "javascript", "cpp": "c"}
CONSTRUCTORS = frozenset({"__init__", "__new__", "constructor", "initialize", "__construct"})
_PRIVATE = re.compile(r"(?<![\w$])private(?![\w$])")
_STATIC = re.compile(r"(?<!\w)static(?!\w)")
# Of several words, so that they look telling, and yet everyone's: standard libraries' names.
_COMMON = frozenset(
    """
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
    """.split()
)


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


def is_telling(target: Target) -> bool:
    """Whether a name says enough for its uses to mean this definition.

    Methods are called on objects whose type is unknown, so a method's name has to be
    made of several words; ``get`` or ``close`` mean something else elsewhere.
    """
    name = target.called
    if name.startswith("__") or len(name) < 4 or name in _COMMON or hasattr(builtins, name):
        return False
    several = "_" in name.strip("_") or any(c.isupper() for c in name[1:])
    return several or (len(name) > 6 and target.kind != "method")


def uses(index: Index, target: Target, kinds: set[str]) -> list[Use]:
    """Return the uses of a name, of some kinds, by code that could mean this definition."""
    return [
        use
        for use in index.references(name_hash(target.called))
        if use.kind in kinds and _reaches(target, index.doc(use.doc).path)
    ]


def place_of(index: Index, use: Use) -> Place:
    """Return where a use is."""
    doc = index.doc(use.doc)
    return Place(doc.path, use.line, doc.symbol)


def _reaches(target: Target, path: str) -> bool:
    """Whether code in a path could name the definition: same family of languages, not hidden."""
    language, other = language_of(target.path).name, language_of(path).name
    if _FAMILIES.get(language, language) != _FAMILIES.get(other, other):
        return False
    if path == target.path:
        return True
    if language == "go" and target.called[:1].islower():
        return path.rpartition("/")[0] == target.path.rpartition("/")[0]
    if language in ("c", "cpp") and target.kind == "function" and not target.path.endswith(".h"):
        return not _STATIC.search(target.signature)
    if language == "rust" and target.kind == "function" and target.signature:
        return target.signature.startswith("pub")
    return not _PRIVATE.search(target.signature)
