"""What the JavaScript query file finds."""

import pytest

from tests.languages.reading import read

SOURCE = """
import express, { json as parse } from "express";
import * as path from "path";
const http = require("http");
const { join, sep: slash } = require("path");
export { Router } from "./router";

export const LIMIT = 3;
let started = false, clock;
var legacy = 1;
export let port = 80;
export var host = "a";
export const { add, drop } = slice.actions;

// Serves one user.
export const serve = async (req, res) => {
  started = true;
  return res.json(req.user);
};

const halve = function (n) { return n / 2; }
var first = 1, twice = (n) => n * 2;
var old = function* () {};
function* ids() {}
export function* exported() {}

export const Card = memo(({ title }) => {
  return <Panel.Box onClick={serve}><Icon kind={title} /><p>{LIMIT}</p></Panel.Box>;
});
const Plain = memo(function () {});

/** A user. */
@sealed
@ns.entity()
class User extends models.Base {
  static table = "users";
  #secret = 1;

  constructor(name) {
    super();
    this.name = name;
  }

  onClick = () => {
    this.#secret += 1;
  };

  @ns.cached
  get size() {
    return this.rows.length;
  }

  "quoted"() {}
}

const Guest = class extends User {};
export const Admin = class extends User {};
register(class Inner {});
function plain() {}

User.prototype.greet = function () {
  return new Greeting(new text.Line(this.name));
};
User.create = () => new User();
module.exports.start = function () {};
app.get = app.head = function () {};

const api = {
  load(id) { return id; },
  save: async function () { this.count++; },
  many: () => { return api.load(LIMIT); },
  short: () => 1,
};
User.prototype = { reset() {} };
handlers = { stop: () => { exit(); } };
module.exports = { stopAll() {}, LIMIT };
"""


def test_definitions_are_found_with_their_qualified_names():
    """Functions count however they are bound, and what is required is not defined here."""
    assert read("javascript", SOURCE).definitions == {
        ("LIMIT", "constant", 7),
        ("started", "variable", 8),
        ("clock", "variable", 8),
        ("legacy", "variable", 9),
        ("port", "variable", 10),
        ("host", "variable", 11),
        ("add", "constant", 12),
        ("drop", "constant", 12),
        ("serve", "function", 15),
        ("halve", "function", 20),
        ("first", "variable", 21),
        ("twice", "function", 21),
        ("old", "function", 22),
        ("ids", "function", 23),
        ("exported", "function", 24),
        ("Card", "function", 26),
        ("Plain", "function", 29),
        ("User", "class", 34),
        ("User.table", "field", 35),
        ("User.#secret", "field", 36),
        ("User.constructor", "method", 38),
        ("User.constructor.name", "field", 40),
        ("User.onClick", "method", 43),
        ("User.size", "method", 48),
        ("User.quoted", "method", 52),
        ("Guest", "class", 55),
        ("Admin", "class", 56),
        ("Inner", "class", 57),
        ("plain", "function", 58),
        ("User.greet", "method", 60),
        ("User.create", "function", 63),
        ("start", "function", 64),
        ("head", "function", 65),
        ("api", "constant", 67),
        ("api.load", "method", 68),
        ("api.save", "method", 69),
        ("api.many", "method", 70),
        ("User.reset", "method", 73),
        ("handlers.stop", "method", 74),
        ("stopAll", "method", 75),
    }


def test_default_exports_without_a_name_are_units_called_default():
    """Importers name a default export, so it has no name of its own."""
    assert read("javascript", "export default function () { return 1; }").definitions == {
        ("default", "function", 1)
    }
    assert read("javascript", "export default () => {};").definitions == {
        ("default", "function", 1)
    }
    assert read("javascript", "export default class extends Base {}").definitions == {
        ("default", "class", 1)
    }
    assert read("javascript", "export default function named() {}").definitions == {
        ("named", "function", 1)
    }
    assert read("javascript", "export default class Named {}").definitions == {
        ("Named", "class", 1)
    }


def test_calls_are_found_on_members_constructors_decorators_and_elements():
    """An element in JSX calls its component, but a lower-case one is plain HTML."""
    parsed = read("javascript", SOURCE)
    called = {name for name, kind, _ in parsed.references if kind == "call"}
    assert called == {
        "Box", "Greeting", "Icon", "Line", "User", "cached", "entity", "exit", "json", "load",
        "memo", "register", "require", "sealed",
    }  # fmt: skip


def test_writes_imports_and_types_are_told_apart():
    """A function put in place is a definition and not a write."""
    parsed = read("javascript", SOURCE)
    assert parsed.uses("started") == {("write", 16)}
    assert parsed.uses("#secret") == {("write", 44)}
    assert parsed.uses("count") == {("write", 69)}
    assert parsed.uses("short") == {("write", 71)}
    assert parsed.uses("greet") == set()
    imported = {name for name, kind, _ in parsed.references if kind == "import"}
    assert imported == {"express", "json", "path", "http", "join", "sep", "Router"}
    assert parsed.uses("Base") == {("type", 34)}
    assert parsed.uses("User") == {
        ("type", 55), ("type", 56), ("read", 60), ("read", 63), ("call", 63), ("read", 73),
    }  # fmt: skip
    assert read("javascript", "a = b; c += d; e++; f.g = 1; h.i -= 1; --j.k").references == {
        ("a", "write", 1), ("b", "read", 1), ("c", "write", 1), ("d", "read", 1),
        ("e", "write", 1), ("f", "read", 1), ("g", "write", 1), ("h", "read", 1),
        ("i", "write", 1), ("j", "read", 1), ("k", "write", 1),
    }  # fmt: skip


def test_an_identifier_is_read_wherever_its_value_is_taken():
    """Names that are bound (parameters, loop variables, targets) are not read."""
    source = """
    f(a1, ...a2); [a3]; x = () => a4; x = a5; x += a6;
    function g(p = a7, { a8 = a9, a10: q, a11 }) { return a12; }
    await a13; a14 + 1; ({ [a15]: a16, a17 });
    export { a18 }; class C { field = a19; }
    for (const item of a20) {}
    <p title={a21}>{a22}</p>;
    if (a23) {} else { (a24, 1); }
    a25[a26]; switch (0) { case a27: }
    `${a28}`; a29 ? a30 : a31; throw a32;
    !a33; let z = a34; function* h() { yield a35; }
    a36.a37; a38?.a39();
    export default a40;
    """
    reads = {name for name, kind, _ in read("javascript", source).references if kind == "read"}
    assert reads == {f"a{number}" for number in range(1, 41)} - {"a39"}


def test_an_exported_function_is_one_chunk_with_its_comment():
    """The export keyword, comments and decorators belong to the unit."""
    chunks = read("javascript", SOURCE).chunks
    assert (14, 18, "function", "serve") in chunks
    assert (31, 36, "class", "User") in chunks
    assert (47, 50, "method", "User.size") in chunks
    assert (60, 62, "method", "User.greet") in chunks
    assert (1, 12, "toplevel", "") in chunks


@pytest.mark.parametrize(
    "statement",
    [
        "export function f() {}",
        "export function* f() {}",
        "export const f = () => {};",
        "const f = () => {};",
        "var f = function () {};",
        "export const f = memo(() => {});",
        "const f = memo(() => {});",
        "export default function () {}",
        "export default () => {};",
        "A.prototype.f = () => {};",
        "A.f = () => {};",
        "exports.f = () => {};",
        "exports.f = exports.g = () => {};",
        "export class F {}",
        "const F = class {};",
        "export const F = class {};",
        "export default class {}",
    ],
)
def test_the_comment_above_belongs_to_the_unit(statement):
    """The whole statement is the unit, so what stands above it touches it."""
    chunks = read("javascript", f"x;\n// Note.\n{statement}\ny;\n").chunks
    assert [chunk[:2] for chunk in chunks] == [(1, 1), (2, 3), (4, 4)]
