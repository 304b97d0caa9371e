"""The symbol graph: which definition a use can mean, and how sure that is."""

from __future__ import annotations

import textwrap
import time
from typing import Any

import numpy as np
import pytest

from coderag_ci import snapshot
from coderag_ci.graph import Graph, Level
from coderag_ci.index import Index
from coderag_ci.parse.parser import parse
from coderag_ci.segment import SourceFile, build
from tests.conftest import Command
from tests.languages.reading import read
from tests.packs import pack_of
from tests.repository import Repository
from tests.views import parsed

Found = set[tuple[str, int, str]]


def users(files: dict[str, str], name: str, path: str, owner: str = "") -> Found:
    """Return (path, line, level) of the uses linked to what a path defines, imports left out."""
    index = parsed(files)
    links = Graph(index).users(name, path, "", owner).links
    return {
        (index.doc(link.use.doc).path, link.use.line, link.level.name.lower())
        for link in links
        if link.use.kind != "import"
    }


# ---- one way that a name comes from another file, language by language

IMPORTED = {
    "python alias": (
        {
            "src/shop/tax.py": "def rate(x):\n    return x\n",
            "src/other/tax.py": "def rate(x):\n    return x\n",
            "app.py": "from shop.tax import rate as tax_rate\n\n\ndef f():\n    tax_rate(1)\n",
        },
        "rate", "src/shop/tax.py", {("app.py", 5, "imported")},
    ),
    "python relative": (
        {
            "shop/tax.py": "def rate(x):\n    return x\n",
            "tax.py": "def rate(x):\n    return x\n",
            "shop/sub/cart.py": "from ..tax import rate\n\n\ndef f():\n    return rate(1)\n",
        },
        "rate", "shop/tax.py", {("shop/sub/cart.py", 5, "imported")},
    ),
    "python re-export, module attribute": (
        {
            "shop/__init__.py": "from .tax import rate\n",
            "shop/tax.py": "def rate(x):\n    return x\n",
            "a.py": "from shop import rate\n\n\ndef f():\n    return rate(1)\n",
            "b.py": "import shop\n\n\ndef f():\n    return shop.rate(1)\n",
            "c.py": "import shop.tax as t\n\n\ndef f():\n    return t.rate(1)\n",
            "d.py": "from numpy import rate\n\n\ndef f():\n    return rate(1)\n",
            "e.py": "def f(rate):\n    return rate(1)\n",
        },
        "rate", "shop/tax.py",
        {("a.py", 5, "imported"), ("b.py", 5, "imported"), ("c.py", 5, "imported")},
    ),
    "typescript index, ending left out, re-export": (
        {
            "src/lib/tax.ts": "export function rate(x: number) { return x; }\n",
            "src/lib/index.ts": "export { rate as taxRate } from './tax.js';\n",
            "src/all.ts": "export * from './lib';\n",
            "src/app.tsx": "import { taxRate as t } from './all';\nconst f = () => { t(1); };\n",
            "src/b.ts": "import * as tax from './lib/tax';\nconst g = () => { tax.rate(2); };\n",
            "src/c.ts": "import { rate } from 'rates';\nexport const h = () => { rate(3); };\n",
        },
        "rate", "src/lib/tax.ts", {("src/b.ts", 2, "imported")},
    ),
    "javascript default export": (
        {
            "lib/app.js": "exports = module.exports = create;\nfunction create() { return 1; }\n",
            "index.js": "module.exports = require('./lib/app');\n",
            "test/app.js": "var express = require('../')\nvar app = express();\n",
        },
        "create", "lib/app.js", {("lib/app.js", 1, "same_file"), ("test/app.js", 2, "imported")},
    ),
    "go package": (
        {
            "tax/tax.go": "package tax\n\nfunc Rate(x int) int { return x }\n",
            "tax/more.go": "package tax\n\nfunc More() int { return Rate(2) }\n",
            "other/o.go": "package other\n\nfunc Rate(x int) int { return x }\n",
            "main.go": 'package main\n\nimport t "x.io/shop/tax"\n\nfunc m() { t.Rate(1) }\n',
        },
        "Rate", "tax/tax.go", {("main.go", 5, "imported"), ("tax/more.go", 3, "same_package")},
    ),
    "rust crate path": (
        {
            "src/lib.rs": "mod tax;\nmod cart;\npub use tax::rate;\n",
            "src/tax.rs": "pub fn rate(x: u8) -> u8 { x }\n",
            "src/cart.rs": "use crate::tax::{self, rate as r};\n"
            "fn f() { r(1); }\nfn g() { tax::rate(1); }\n",
            "src/sub/mod.rs": "use super::tax::rate;\nfn f() { rate(1); }\n",
            "src/outer.rs": "use std::rate;\nfn f() { rate(1); }\n",
        },
        "rate", "src/tax.rs",
        {("src/cart.rs", 2, "imported"), ("src/cart.rs", 3, "imported"),
         ("src/sub/mod.rs", 2, "imported")},
    ),
    "rust crate without a src folder": (
        {
            "core/main.rs": "mod flags;\n",
            "core/flags/mod.rs": "pub fn parse() {}\n",
            "core/flags/deep/a.rs": "use crate::flags::parse;\nfn f() { parse(); }\n",
            "other/lib.rs": "pub fn parse() {}\n",
        },
        "parse", "core/flags/mod.rs", {("core/flags/deep/a.rs", 2, "imported")},
    ),
    "java import and package": (
        {
            "a/Tax.java": "package shop.tax;\nclass Tax { int rate() { return 1; } }\n",
            "b/Tax.java": "package other;\nclass Tax { }\n",
            "a/More.java": "package shop.tax;\nclass More { Tax t; }\n",
            "c/App.java": "package app;\nimport shop.tax.Tax;\nclass App { Tax t; }\n",
            "c/All.java": "package app;\nimport shop.tax.*;\nclass All { Tax t; }\n",
            "c/No.java": "package app;\nimport com.lib.Tax;\nclass No { Tax t; }\n",
        },
        "Tax", "a/Tax.java",
        {("a/More.java", 2, "same_package"), ("c/App.java", 3, "imported"),
         ("c/All.java", 3, "imported")},
    ),
    "csharp namespace": (
        {
            "Tax.cs": "namespace Shop.Tax;\nclass Rate { }\n",
            "Other.cs": "namespace Other;\nclass Rate { }\n",
            "A.cs": "using Shop.Tax;\nnamespace App;\nclass A { void F(Rate r) { } }\n",
            "B.cs": "namespace Shop.Tax.Inner;\nclass B { void F(Rate r) { } }\n",
        },
        "Rate", "Tax.cs", {("A.cs", 3, "imported"), ("B.cs", 2, "same_package")},
    ),
    "php namespace": (
        {
            "src/Rate.php": "<?php\nnamespace Shop\\Tax;\nclass Rate { }\n",
            "src/Other.php": "<?php\nnamespace Other;\nclass Rate { }\n",
            "src/A.php": "<?php\nnamespace App;\nuse Shop\\Tax\\{Rate};\nnew Rate();\n",
            "src/B.php": "<?php\nnamespace Shop\\Tax;\nfunction f() { return new Rate(); }\n",
        },
        "Rate", "src/Rate.php",
        {("src/A.php", 4, "imported"), ("src/B.php", 3, "same_package")},
    ),
    "c header of an implementation": (
        {
            "src/tax.h": "int rate(int x);\n",
            "src/tax.c": '#include "tax.h"\nint rate(int x) { return x; }\n',
            "deps/tax.h": "int rate(int x);\n",
            "deps/tax.c": '#include "tax.h"\nint rate(int x) { return x; }\n',
            "src/all.h": '#include "tax.h"\n',
            "src/main.c": '#include "all.h"\nint main(void) { return rate(1); }\n',
        },
        "rate", "src/tax.c", {("src/main.c", 2, "imported")},
    ),
    "ruby require": (
        {
            "lib/shop/tax.rb": "module Shop\n  class Tax\n  end\nend\n",
            "lib/other/tax.rb": "module Other\n  class Tax\n  end\nend\n",
            "app.rb": "require 'shop/tax'\ndef f\n  Tax.new\nend\n",
            "lib/shop/cart.rb": "require_relative 'tax'\ndef g\n  Tax.new\nend\n",
        },
        "Tax", "lib/shop/tax.rb", {("app.rb", 3, "imported"), ("lib/shop/cart.rb", 3, "imported")},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", IMPORTED)
def test_a_use_means_the_definition_that_its_file_imports(case):
    """Another definition of the name, or another file's own name, would be a false caller."""
    files, name, path, expected = IMPORTED[case]
    assert users(files, name, path) == expected


def test_a_renamed_re_export_is_followed_from_where_it_is_used():
    """The barrel file gives the name another one, under which it is used."""
    files, _, _, _ = IMPORTED["typescript index, ending left out, re-export"]
    found = Graph(parsed(files)).definers("t", "src/app.tsx")
    assert [(d.path, d.name, level) for d, level in found] == [
        ("src/lib/tax.ts", "rate", Level.IMPORTED)
    ]


# ---- methods


def test_calls_of_go_methods_are_found():
    """A method is only ever called on something: without these a method has no callers."""
    files = {
        "stack.go": "package s\n\ntype Stack struct{ n int }\n\nfunc (s *Stack) PushAll() {}\n",
        "use.go": "package s\n\nfunc f(s *Stack) {\n\ts.PushAll()\n\tg().\n\t\tPushAll()\n}\n",
        "far/use.go": "package far\n\nfunc f(x any) { x.PushAll() }\nfunc g() { PushAll() }\n",
    }
    found = users(files, "PushAll", "stack.go")
    assert found == {("use.go", 4, "same_package"), ("far/use.go", 3, "only_definition")}
    assert read("go", "package p\nfunc f() { x.Foo(); pkg.y.Bar() }").accesses >= {
        ("Foo", "call", "member"),
        ("Bar", "call", "member"),
    }


SHAPES = {
    "shapes.py": """
        class Shape:
            def area_of(self):
                return self.scale_by(1)

            def scale_by(self, n):
                return n


        class Other:
            def area_of(self):
                return self.area_of()
        """,
    "square.py": """
        from shapes import Shape as Base


        class Square(Base):
            def area_of(self):
                return self.scale_by(2)
        """,
    "cube.py": """
        import square


        class Cube(square.Square):
            def area_of(self):
                return 3
        """,
}


def test_overrides_and_bases_are_found_through_the_names_that_files_give_classes():
    """A changed method of a base class is changed for what overrides it, and the other way."""
    graph = Graph(parsed(SHAPES))
    below = graph.overrides("area_of", "shapes.py", "Shape")
    assert {d.owner for d in below} == {"Square", "Cube"}
    found = graph.overrides("area_of", "square.py", "Square")
    assert {(d.path, d.owner) for d in found} == {("shapes.py", "Shape"), ("cube.py", "Cube")}
    assert {d.name for d in graph.bases("Cube", "cube.py")} == {"Square", "Shape"}
    assert graph.overrides("area_of", "shapes.py", "Other") == []


def test_a_call_on_the_own_object_means_the_own_class_and_its_bases():
    """Two classes of a file can have methods of one name."""
    assert users(SHAPES, "scale_by", "shapes.py") == {
        ("shapes.py", 3, "same_file"),
        ("square.py", 6, "inherited"),
    }
    assert users(SHAPES, "area_of", "shapes.py", "Other") == {("shapes.py", 11, "same_file")}
    assert users(SHAPES, "area_of", "shapes.py", "Shape") == set()


@pytest.mark.parametrize(
    ("language", "source", "base"),
    [
        ("python", "class A(b.B):\n    pass\n", "B"),
        ("typescript", "class A<T> extends C implements B<T> {}\n", "B"),
        ("javascript", "class A extends b.B {}\n", "B"),
        ("go", "package p\ntype A struct {\n\t*q.B\n\tn int\n}\n", "B"),
        ("rust", "impl<T> m::B<T> for A<T> {}\n", "B"),
        ("java", "class A extends C<D> implements B {}\n", "B"),
        ("cpp", "class A : public n::B<C> {};\n", "B"),
        ("csharp", "class A : C, B<D> {}\n", "B"),
        ("ruby", "class A < C\n  include M::B\nend\n", "B"),
        ("php", "<?php class A extends C { use B; }\n", "B"),
    ],
)
def test_bases_are_read(language, source, base):
    """Each language says in its own way what a class derives from."""
    assert ("base", "A", base, "") in read(language, source).relations


def test_a_method_that_all_objects_have_is_linked_to_no_call_on_an_unknown_object():
    """`get` of a cache has nothing to do with each `get` of a dictionary."""
    files = {
        "cache.py": "class Cache:\n    def get(self, k):\n        return self.get(k)\n",
        "a.py": "def f(d):\n    return d.get(1)\n\n\ndef g(d):\n    return d.get(2)\n",
    }
    found = Graph(parsed(files)).users("get", "cache.py")
    assert [link.level for link in found.links] == [Level.SAME_FILE]
    assert found.unlinked == 2


@pytest.mark.parametrize(("classes", "level"), [(1, "ONLY_DEFINITION"), (3, "ONE_OF_SEVERAL")])
def test_few_definitions_are_each_what_is_meant(classes, level):
    """Where nothing says whose method it is, two or three are worth a look."""
    files = {f"c{n}.py": f"class C{n}:\n    def tax_for(self): pass\n" for n in range(classes)}
    files["use.py"] = "def f(x):\n    return x.tax_for()\n"
    found = Graph(parsed(files)).users("tax_for", "c0.py")
    assert [(link.level.name, link.of) for link in found.links] == [(level, classes)]


def test_many_definitions_without_an_import_are_not_linked_but_counted():
    """One of forty is noise."""
    files = {f"c{n}.py": f"class C{n}:\n    def tax_for(self): pass\n" for n in range(4)}
    files["use.py"] = "def f(x):\n    return x.tax_for()\n"
    files["sure.py"] = "from c0 import C0\n\n\ndef f(x):\n    return C0().tax_for()\n"
    found = Graph(parsed(files)).users("tax_for", "c0.py")
    assert [link.level for link in found.links] == [Level.IMPORTED]
    assert found.unlinked == 1


def test_a_method_is_not_a_function_of_the_same_name():
    """`self.run_it()` does not call the function beside the class."""
    files = {"a.py": "def run_it(): pass\n\n\nclass A:\n    def m(self):\n        self.run_it()\n"}
    assert users(files, "run_it", "a.py") == set()


def test_a_function_is_not_the_attribute_that_is_called_like_it():
    """`self.run_it` is set in the class below, and is not the function."""
    source = """
        def run_it(): pass


        class A:
            def __init__(self, run_it):
                self.run_it = run_it

            def m(self):
                return self.run_it
        """
    index = parsed({"a.py": source, "b.py": "from a import run_it\n\nrun_it()\n"})
    links = Graph(index).users("run_it", "a.py", "function").links
    assert {
        (link.use.line, link.use.access) for link in links if link.use.access == "self"
    } == set()
    assert any(index.doc(link.use.doc).path == "b.py" for link in links)


def test_an_imported_name_is_not_the_property_that_is_called_like_it():
    """`send(req)` inside of `res.sendFile` is the package's, not `res.send`."""
    source = """
        var send = require('send');
        res.send = function send(body) { return body; };
        res.sendFile = function sendFile(path) { return send(path); };
        res.json = function json(body) { return this.send(body); };
        """
    assert users({"lib/res.js": source}, "send", "lib/res.js") == {("lib/res.js", 4, "same_file")}


def test_what_is_gone_is_known_by_those_who_import_it():
    """A deleted module is still imported somewhere: that is the finding."""
    index = parsed({"use.py": "from old.tax import rate\n\n\ndef f():\n    return rate(1)\n"})
    assert Graph(index).users("rate", "old/tax.py", "function").links == ()
    links = Graph(index, {"old/tax.py": ""}).users("rate", "old/tax.py", "function").links
    assert {link.use.line for link in links} == {1, 5}


# ---- hostile input


def test_a_file_of_a_hundred_thousand_imports_stays_small():
    """A machine-made file must not decide how long a pack takes."""
    source = "".join(f"from m{n} import n{n}\n" for n in range(100_000)).encode()
    row = parse(source[: 1 << 20], "python")
    assert len(row.relations) // 16 <= 4_000


def test_re_exports_in_a_circle_end():
    """Two modules that export each other are legal, and endless."""
    files = {
        f"m{n}.py": f"from m{(n + 1) % 90} import *\nfrom m{(n + 7) % 90} import thing\n"
        for n in range(90)
    }
    files["use.py"] = "from m0 import thing\n\n\nthing()\n"
    start = time.perf_counter()
    Graph(parsed(files)).users("thing", "m50.py", "function")
    assert time.perf_counter() - start < 10


def test_classes_that_derive_from_each_other_end():
    """So are these in a broken file."""
    files = {"a.py": "class A(B):\n    def m(self): self.m()\nclass B(A):\n    def m(self): pass\n"}
    graph = Graph(parsed(files))
    assert [d.owner for d in graph.overrides("m", "a.py", "A")] == ["B"]


# ---- the snapshot


def test_relations_survive_the_snapshot_and_damaged_ones_are_refused(tmp_path):
    """A cache can come from anywhere: a number that points nowhere must not be followed."""
    files, name, path, _ = IMPORTED["python alias"]
    rows = [(SourceFile(p, "0" * 40, "python", 0), parse(t.encode(), "python"))
            for p, t in sorted(files.items())]  # fmt: skip
    segment = build(rows)
    snapshot.save(segment, tmp_path / "a.snap")
    loaded = snapshot.load(tmp_path / "a.snap")
    index = Index([(loaded, np.ones(len(loaded.table), bool))])
    assert Graph(index).users(name, path).links
    segment.relations[0, 1] = 99
    snapshot.save(segment, tmp_path / "b.snap")
    with pytest.raises(ValueError, match="fit together"):
        snapshot.load(tmp_path / "b.snap")


# ---- in a pack


def test_a_pack_says_what_links_a_use_and_which_names_were_not_followed(
    repository: Repository, command: Command
) -> None:
    """A reader weighs a caller that imports the function otherwise than one of a like name."""
    tax = (
        "def rate_of(x):\n    return x\n\n\nclass Cache:\n    def get(self, k):\n        return k\n"
    )
    use = "from tax import rate_of\n\n\ndef total(x, d):\n    return rate_of(x) + d.get(x)\n"
    repository.commit({"tax.py": tax, "use.py": use})
    repository.commit({"tax.py": tax.replace("return", "return 1 *")})
    pack = pack_of(command, repository, "--base", "HEAD~1")
    reasons = [c["reason"] for e in pack["evidence"] for c in e["channels"] if c["name"] == "uses"]
    assert "calls `rate_of` (line 5), imported from it" in reasons
    assert any("not followed: `get` (1)" in skip["reason"] for skip in pack["skipped"])


def uses_of(pack: dict[str, Any]) -> dict[str, list[str]]:
    """Return by path what the pack says of uses."""
    found: dict[str, list[str]] = {}
    for one in pack["evidence"]:
        said = [c["reason"] for c in one["channels"] if c["name"] == "uses"]
        found.setdefault(one["path"], []).extend(said)
    return found


def test_a_pack_has_the_methods_above_and_below_a_changed_method(
    repository: Repository, command: Command
) -> None:
    """What overrides a method has to keep its promise; nothing calls it by its class."""
    repository.commit({path: textwrap.dedent(text).lstrip() for path, text in SHAPES.items()})
    square = textwrap.dedent(SHAPES["square.py"]).lstrip()
    repository.commit({"square.py": square.replace("scale_by(2)", "scale_by(4)")})
    found = uses_of(pack_of(command, repository, "--base", "HEAD~1"))
    assert found["cube.py"] == ["overrides `Square.area_of`"]
    assert "is overridden by `Square.area_of`" in found["shapes.py"]


def test_a_pack_has_the_uses_that_import_the_old_path_of_a_renamed_file(
    repository: Repository, command: Command
) -> None:
    """They are what a rename breaks."""
    tax = "def rate_of(x):\n    return x\n" + "".join(f"# note {n}\n" for n in range(30))
    use = "from shop.tax import rate_of\n\n\ndef total(x):\n    return rate_of(x)\n"
    repository.commit({"shop/tax.py": tax, "use.py": use, "z.py": "def rate_of(y):\n    pass\n"})
    moved = tax.replace("return x", "return x + 1")
    repository.commit({"shop/tax.py": None, "shop/duty.py": moved})
    found = uses_of(pack_of(command, repository, "--base", "HEAD~1"))
    assert "calls `rate_of` (line 5), imported from it" in found["use.py"]
