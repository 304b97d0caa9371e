"""Where an import leads, as far as the paths of the view and the packages of its files tell.

A *place* is a path, ``dir:DIR`` for a Go package, or ``ns:NAME`` for a package or namespace
that files declare. What leads out of the view has no place.
"""

from __future__ import annotations

import functools
import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Sequence

from coderag_ci.parse.languages import language_of

_FAMILIES = {"tsx": "javascript", "typescript": "javascript", "cpp": "c"}
_NAMESPACES = frozenset({"java", "csharp", "php"})
_REMEMBERED = 1 << 15
_MOST_PLACES = 8  # of one import; a file name that many folders have leads nowhere
_SCRIPTS = (".ts", ".tsx", ".d.ts", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts")
_SCRIPT_ENDING = re.compile(r"\.[cm]?[jt]sx?$")
_ROOTS = frozenset({"", "src", "lib", "python"})
# First parts of Go's own packages: only a path that has a dot, or none of these, can be ours.
_GO_FIRST_PARTS = (
    "archive bufio bytes cmp compress container context crypto database debug embed encoding "
    "errors expvar flag fmt go hash html image io iter log maps math mime net os path plugin "
    "reflect regexp runtime slices sort strconv strings structs sync syscall testing text time "
    "unicode unique unsafe weak"
)
_GO_STANDARD = frozenset(_GO_FIRST_PARTS.split())


@functools.lru_cache(maxsize=1 << 16)
def family(path: str) -> str:
    """Return the language family of a path: those whose files can name each other's code."""
    name = language_of(path).name
    return _FAMILIES.get(name, name)


def module_name(path: str) -> str:
    """Return what a file is called as a module: its stem, or its folder's name."""
    folder, name = posixpath.split(path)
    stem = name.partition(".")[0]
    return posixpath.basename(folder) if stem in ("__init__", "index", "lib", "mod") else stem


class Resolver:
    """Finds the places that imports lead to; answers are remembered."""

    def __init__(self, paths: Iterable[str], package_of: Callable[[str], str]) -> None:
        """``package_of`` gives the package or namespace that a path declares, or nothing."""
        self._paths = frozenset(paths)
        self._package_of = functools.lru_cache(maxsize=_REMEMBERED)(package_of)
        self._finders: dict[str, Callable[[str, str], Collection[str]]] = {
            "c": self._c,
            "go": self._go,
            "javascript": self._javascript,
            "python": self._python,
            "ruby": self._ruby,
            "rust": self._rust,
        }
        self.resolve = functools.lru_cache(maxsize=_REMEMBERED)(self._resolve)
        self.places_of = functools.lru_cache(maxsize=_REMEMBERED)(self._places_of)
        self.neighbours = functools.lru_cache(maxsize=_REMEMBERED)(self._neighbours)

    def _places_of(self, path: str, owner: str = "") -> frozenset[str]:
        """Return the places at which the definitions of a file (in a class) stand."""
        places = {path}
        kind = family(path)
        if kind == "go":
            places.add(f"dir:{posixpath.dirname(path)}")
        elif kind in _NAMESPACES:
            package = self._package_of(path)
            places.add(f"ns:{package}")
            if owner:
                places.add(f"ns:{package}{'.' if package else ''}{owner}")
        return frozenset(places)

    def _neighbours(self, path: str) -> set[str]:
        """Return the places whose definitions a file sees without an import."""
        kind = family(path)
        if kind == "go":
            return {f"dir:{posixpath.dirname(path)}"}
        if kind in _NAMESPACES:
            package = self._package_of(path)
            parts = package.split(".") if kind == "csharp" else [package]
            return {f"ns:{'.'.join(parts[: n + 1])}" for n in range(len(parts)) if parts[0]}
        if kind == "python":  # what pytest's fixtures are found by
            folders = _folders(path)
            return {found for folder in folders if (found := f"{folder}conftest.py") in self._paths}
        return set()

    def _resolve(self, path: str, module: str) -> Sequence[str]:
        """Return the places of a module that a file names; empty where none is in the view."""
        kind = family(path)
        if kind in _NAMESPACES:
            return (f"ns:{module}",) if module in self._packages else ()
        find = self._finders.get(kind)
        found = sorted(find(path, module)) if find is not None else []
        return tuple(found) if len(found) <= _MOST_PLACES else ()

    # ---- what is looked up, made when it is first needed

    @functools.cached_property
    def _packages(self) -> frozenset[str]:
        """Packages that files declare; a class of one can be named like a package."""
        found: set[str] = set()
        for path in self._paths:
            if family(path) in _NAMESPACES and (package := self._package_of(path)):
                stem = posixpath.basename(path).partition(".")[0]
                found.update((package, f"{package}.{stem}"))
        return frozenset(found)

    @functools.cached_property
    def _by_last(self) -> dict[str, list[str]]:
        """Paths by their last part."""
        found: dict[str, list[str]] = {}
        for path in sorted(self._paths):
            found.setdefault(posixpath.basename(path), []).append(path)
        return found

    @functools.cached_property
    def _folders_by_last(self) -> dict[str, list[str]]:
        """Folders that hold files, at any depth, by their last part."""
        every = {folder[:-1] for path in self._paths for folder in _folders(path)}
        found: dict[str, list[str]] = {}
        for folder in sorted(every):
            found.setdefault(posixpath.basename(folder), []).append(folder)
        return found

    def _ending_in(self, suffix: str) -> list[str]:
        """Return the paths that are or end in a relative path."""
        found = self._by_last.get(posixpath.basename(suffix), [])
        return [path for path in found if path == suffix or path.endswith(f"/{suffix}")]

    def _first(self, paths: Iterable[str]) -> list[str]:
        return [path for path in paths if path in self._paths][:1]

    # ---- languages

    def _python(self, path: str, module: str) -> Collection[str]:
        name = module.lstrip(".")
        inner = name.replace(".", "/")
        files = [f"{inner}.py", f"{inner}.pyi", f"{inner}/__init__.py"] if name else ["__init__.py"]
        if level := len(module) - len(name):
            folder = posixpath.dirname(path)
            for _ in range(level - 1):
                folder = posixpath.dirname(folder)
            return self._first(posixpath.join(folder, file) for file in files)
        found = []
        for file in files:
            for match in self._ending_in(file):
                root = match[: -len(file)].rstrip("/")
                inside = f"{root}/__init__.py" in self._paths
                known = root in _ROOTS or "." in name or path.startswith(f"{root}/")
                if not inside and known:
                    found.append(match)
        return found

    def _script(self, target: str) -> list[str]:
        """Return the script that a path without an ending, or of a folder, stands for."""
        bare = _SCRIPT_ENDING.sub("", target)
        names = [target, *(bare + ending for ending in _SCRIPTS if bare != target)]
        names += [target + ending for ending in _SCRIPTS]
        for folder in ("", "src/", "lib/"):
            names += [posixpath.join(target, f"{folder}index{ending}") for ending in _SCRIPTS]
        return self._first(names)

    def _javascript(self, path: str, module: str) -> Collection[str]:
        if module.startswith("."):
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), module))
            return [] if target.startswith("..") else self._script("" if target == "." else target)
        inner = re.sub(r"^(?:@/|~/|@[^/]+/)", "", module)
        last = posixpath.basename(inner)
        stem = _SCRIPT_ENDING.sub("", last)
        files = [
            file
            for ending in _SCRIPTS
            for file in self._ending_in(posixpath.join(posixpath.dirname(inner), stem + ending))
            if "/" in inner or module.startswith(("@/", "~/"))
        ]
        folders = [
            folder
            for folder in self._folders_by_last.get(last, [])
            if folder == inner or folder.endswith(f"/{inner}")
        ]
        return files or [file for folder in folders for file in self._script(folder)]

    def _go(self, _: str, module: str) -> Collection[str]:
        parts = module.split("/")
        if "." not in parts[0] and parts[0] in _GO_STANDARD:
            return []
        for start in range(len(parts)):
            folder = "/".join(parts[start:])
            if folder in self._go_folders:
                return [f"dir:{folder}"]
        name = parts[-2] if len(parts) > 1 and re.fullmatch(r"v\d+", parts[-1]) else parts[-1]
        name = re.sub(r"\.v\d+$", "", name)
        return ["dir:"] if name == self._go_folders.get("") else []

    @functools.cached_property
    def _go_folders(self) -> dict[str, str]:
        """Folders with Go files, and the package that the first that is no test declares."""
        found: dict[str, str] = {}
        for path in sorted(self._paths, key=lambda path: (path.endswith("_test.go"), path)):
            if path.endswith(".go") and posixpath.dirname(path) not in found:
                found[posixpath.dirname(path)] = self._package_of(path)
        return found

    def _ruby(self, path: str, module: str) -> Collection[str]:
        return self._included(path, module if module.endswith(".rb") else f"{module}.rb")

    def _c(self, path: str, module: str) -> Collection[str]:
        found = self._included(path, module)
        pairs = []
        for header in found if len(found) == 1 else ():
            stem = posixpath.splitext(posixpath.basename(header))[0]
            for ending in (".c", ".cc", ".cpp", ".cxx"):
                pairs += self._by_last.get(stem + ending, [])
            beside = [p for p in pairs if posixpath.dirname(p) == posixpath.dirname(header)]
            pairs = beside or (pairs if len(pairs) == 1 else [])
        return [*found, *pairs]

    def _included(self, path: str, module: str) -> list[str]:
        beside = posixpath.normpath(posixpath.join(posixpath.dirname(path), module))
        if beside in self._paths:
            return [beside]
        return self._ending_in(re.sub(r"^(?:\.{1,2}/)+", "", module))

    def _rust(self, path: str, module: str) -> Collection[str]:
        first, *parts = module.split("::")
        own = _rust_folder(path)
        if first == "crate":
            return self._rust_module(self._rust_root(path), parts)
        if first in ("self", "super"):
            while first == "super":
                own = posixpath.dirname(own)
                if not parts or parts[0] != "super":
                    break
                parts = parts[1:]
            return self._rust_module(own, parts)
        child = posixpath.join(own, first)
        if self._first((f"{child}.rs", f"{child}/mod.rs")):
            return self._rust_module(own, [first, *parts])
        names = {first, first.replace("_", "-"), first.rpartition("_")[2]}
        crates = [f for name in names for f in self._folders_by_last.get(name, [])]
        roots = [root for crate in crates if (root := f"{crate}/src/lib.rs") in self._paths]
        if not roots and "src/" not in path and "src/lib.rs" in self._paths:
            roots = ["src/lib.rs"]  # tests and examples name their own crate
        return [
            file
            for root in sorted(roots, key=lambda r: (not path.startswith(r[: -len("lib.rs")]), r))
            for file in self._rust_module(posixpath.dirname(root), parts)
        ][:1]

    def _rust_root(self, path: str) -> str:
        """Return the folder of a file's crate: the nearest above that holds its root."""
        for folder in reversed(_folders(path)):
            if not self._paths.isdisjoint((f"{folder}lib.rs", f"{folder}main.rs")):
                return folder.rstrip("/")
        return posixpath.dirname(path)

    def _rust_module(self, root: str, parts: list[str]) -> list[str]:
        """Return the file of a module; the last parts may be modules or types inside it."""
        for end in range(len(parts), 0, -1):
            inner = posixpath.join(root, *parts[:end])
            if found := self._first((f"{inner}.rs", f"{inner}/mod.rs")):
                return found
        own = [posixpath.join(root, name) for name in ("lib.rs", "main.rs", "mod.rs")]
        return self._first([*own, f"{root}.rs"])


def _folders(path: str) -> list[str]:
    """Return the folders of a path with a slash at the end, the root as nothing, inner last."""
    return [path[: match.end()] for match in re.finditer(r"^|/", path)]


def _rust_folder(path: str) -> str:
    """Return the folder in which a file's child modules are."""
    folder, name = posixpath.split(path)
    if name in ("mod.rs", "lib.rs", "main.rs"):
        return folder
    return path.removesuffix(".rs")
