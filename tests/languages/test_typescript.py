"""What the TypeScript query file finds; it serves TSX too."""

import pytest

from tests.languages.reading import read

SOURCE = """
import type { Model } from "models";
import React, { useState as state } from "react";
import fs = require("fs");
import * as path from "path";
import Item = Shop.Item;
export { Router } from "./router";
const { join, sep: slash } = require("path");
const http = require("http");

export const LIMIT: number = 3;
const seed = 1;
let clock: Date;
var legacy = 1;
export let port = 80;
export var host = "a";
declare const VERSION: string;
declare let mode: Mode;
declare var root: Root;
export declare const BUILD: string;
export const { add, drop } = slice.actions;

/** A shape. */
export interface Shape<T extends Base> extends Sized, Named<T> {
  readonly id: Key;
  area(scale: Factor): number;
}
interface Local {}
declare interface Window { title: string }
export declare interface Global {}

export type Result<T> = { value: T } | Failure;
type Plain = Shape[];
declare type Ambient = string;
export declare type Shared = string;

export enum Color { Red, Blue = 2 }
enum Size { Small }
declare enum Kind {}
export declare enum Flag {}

namespace Geometry { export const unit = 1; }
export namespace Outer.Inner { export function deep() {} }
declare namespace Lib { function load(name: string): void; }
export declare namespace Typed {}
declare module "plugin" {
  export function run(): void;
}

// Doubles.
export function double(x: string): string;
export function double(x: number): number;
export function double(x: any) {
  return x as Doubled;
}
declare function external(): void;
export declare function published(): void;
function local(x: Shape): x is Circle { return true; }
function overloaded(x: string): void;
function overloaded(x: any) {}
function* ids() {}
export function* exported() {}

@Injectable()
export abstract class Service<T> extends Parent<T> implements Runnable, Closable<T> {
  private static count: number = 0;
  #hidden = 1;
  @Input() size!: Size;

  constructor(private db: Database, readonly name: string, public tag?: Tag) {
    super();
    this.state = db;
  }

  abstract stop(): void;
  find(id: string): Model;
  find(id: any) {
    this.#hidden++;
    return this.db!.query<Row>(id);
  }

  handle = async (event: Click): Promise<void> => {
    this.total += 1;
  };

  @ns.Cached
  get length() { return 1; }
}
class Plainer {}
abstract class Abstract {}
export class Shown extends models.Base {}
declare class Declared { ready(): void }
declare abstract class Partial {}
export declare class Exposed {}
export declare abstract class Half {}
const Anonymous = class extends Parent {};
export const Mixed = class {};
register(class Nested {});

export const serve = async (req: Request) => {
  return new Response(new http.Body(req.text));
};
const halve = function (n: number) {};
var old = function () {}, twice = (n: number) => n * 2;
var single = () => {};
export const Card = memo<Props>((props) => { return null; });
const Wrapped = memo(function () {});

Service.prototype.reset = function () {};
Service.create = () => done!();
module.exports.start = function () { ready!.go!(); };

const api = {
  load(id: string) { return id; },
  save: async function () { this.dirty = true; },
  many: () => { return load(LIMIT); },
};
export const routes = { home() {}, away: () => { leave(); } } satisfies Routes;
const frozen = { once() {}, later: function () {} } as const;
use({ inline() {}, short: () => 1 });
"""


def test_definitions_are_found_with_their_qualified_names():
    """Exported and ambient definitions count, and overload signatures do too."""
    assert read("typescript", SOURCE).definitions == {
        ("LIMIT", "constant", 10),
        ("seed", "constant", 11),
        ("clock", "variable", 12),
        ("legacy", "variable", 13),
        ("port", "variable", 14),
        ("host", "variable", 15),
        ("VERSION", "constant", 16),
        ("mode", "variable", 17),
        ("root", "variable", 18),
        ("BUILD", "constant", 19),
        ("add", "constant", 20),
        ("drop", "constant", 20),
        ("Shape", "interface", 23),
        ("Shape.id", "field", 24),
        ("Shape.area", "field", 25),
        ("Local", "interface", 27),
        ("Window", "interface", 28),
        ("Window.title", "field", 28),
        ("Global", "interface", 29),
        ("Result", "type", 31),
        ("Result.value", "field", 31),
        ("Plain", "type", 32),
        ("Ambient", "type", 33),
        ("Shared", "type", 34),
        ("Color", "enum", 36),
        ("Color.Red", "field", 36),
        ("Color.Blue", "field", 36),
        ("Size", "enum", 37),
        ("Size.Small", "field", 37),
        ("Kind", "enum", 38),
        ("Flag", "enum", 39),
        ("Geometry", "module", 41),
        ("Geometry.unit", "constant", 41),
        ("Outer.Inner", "module", 42),
        ("Outer.Inner.deep", "function", 42),
        ("Lib", "module", 43),
        ("Lib.load", "function", 43),
        ("Typed", "module", 44),
        ("plugin", "module", 45),
        ("plugin.run", "function", 46),
        ("double", "function", 50),
        ("double", "function", 51),
        ("double", "function", 52),
        ("external", "function", 55),
        ("published", "function", 56),
        ("local", "function", 57),
        ("overloaded", "function", 58),
        ("overloaded", "function", 59),
        ("ids", "function", 60),
        ("exported", "function", 61),
        ("Service", "class", 64),
        ("Service.count", "field", 65),
        ("Service.#hidden", "field", 66),
        ("Service.size", "field", 67),
        ("Service.constructor", "method", 69),
        ("Service.constructor.db", "field", 69),
        ("Service.constructor.name", "field", 69),
        ("Service.constructor.tag", "field", 69),
        ("Service.constructor.state", "field", 71),
        ("Service.stop", "method", 74),
        ("Service.find", "method", 75),
        ("Service.find", "method", 76),
        ("Service.handle", "method", 81),
        ("Service.length", "method", 86),
        ("Plainer", "class", 88),
        ("Abstract", "class", 89),
        ("Shown", "class", 90),
        ("Declared", "class", 91),
        ("Declared.ready", "method", 91),
        ("Partial", "class", 92),
        ("Exposed", "class", 93),
        ("Half", "class", 94),
        ("Anonymous", "class", 95),
        ("Mixed", "class", 96),
        ("Nested", "class", 97),
        ("serve", "function", 99),
        ("halve", "function", 102),
        ("old", "function", 103),
        ("twice", "function", 103),
        ("single", "function", 104),
        ("Card", "function", 105),
        ("Wrapped", "function", 106),
        ("Service.reset", "method", 108),
        ("Service.create", "function", 109),
        ("start", "function", 110),
        ("api", "constant", 112),
        ("api.load", "method", 113),
        ("api.save", "method", 114),
        ("api.many", "method", 115),
        ("routes", "constant", 117),
        ("routes.home", "method", 117),
        ("routes.away", "method", 117),
        ("frozen", "constant", 118),
        ("frozen.once", "method", 118),
        ("frozen.later", "method", 118),
        ("inline", "method", 119),
    }


@pytest.mark.parametrize("language", ["typescript", "tsx"])
def test_default_exports_without_a_name_are_units_called_default(language):
    """Importers name a default export, so it has no name of its own."""
    assert read(language, "export default () => {};").definitions == {("default", "function", 1)}
    assert read(language, "export default class {}").definitions == {("default", "class", 1)}
    assert read(language, "export default interface Named {}").definitions == {
        ("Named", "interface", 1)
    }


def test_calls_are_found_with_type_arguments_and_assertions():
    """Neither a type argument nor a non-null assertion hides the call."""
    parsed = read("typescript", SOURCE)
    called = {name for name, kind, _ in parsed.references if kind == "call"}
    assert called == {
        "Body", "Cached", "Injectable", "Input", "Response", "done", "go", "leave", "load",
        "memo", "query", "register", "require", "use",
    }  # fmt: skip
    assert read("typescript", "@Sealed class A {}").uses("Sealed") == {("call", 1)}


def test_a_jsx_element_calls_its_component():
    """A lower-case element is plain HTML, and a comparison is no element."""
    parsed = read(
        "tsx", "const a = <Panel x={b} {...c}>{d}<Icon/><ui.Box/><p>e</p></Panel>;\nif (f < MAX) {}"
    )
    assert parsed.references == {
        ("Panel", "call", 1), ("Icon", "call", 1), ("Box", "call", 1), ("ui", "read", 1),
        ("b", "read", 1), ("c", "read", 1), ("d", "read", 1), ("f", "read", 2),
        ("MAX", "read", 2),
    }  # fmt: skip


def test_writes_and_imports_are_told_apart():
    """A field that a parameter declares is a definition and not a write."""
    parsed = read("typescript", SOURCE)
    written = {name for name, kind, _ in parsed.references if kind == "write"}
    assert written == {"#hidden", "total", "dirty", "short"}
    imported = {name for name, kind, _ in parsed.references if kind == "import"}
    assert imported == {
        "Model", "React", "useState", "fs", "path", "Item", "Router", "join", "sep", "http",
    }  # fmt: skip
    source = "a = b; c += d; e++; f.g = 1; h.i -= 1; --j.k"
    assert {use for use in read("typescript", source).references if use[1] == "write"} == {
        ("a", "write", 1), ("c", "write", 1), ("e", "write", 1), ("g", "write", 1),
        ("i", "write", 1), ("k", "write", 1),
    }  # fmt: skip


def test_a_type_is_used_wherever_it_is_written():
    """Annotations, heritage, arguments and assertions all name a type."""
    parsed = read("typescript", SOURCE)
    typed = {name for name, kind, _ in parsed.references if kind == "type"}
    assert typed == {
        "Base", "Circle", "Click", "Closable", "Database", "Date", "Doubled", "Factor",
        "Failure", "Key", "Mode", "Model", "Named", "Parent", "Promise", "Props", "Request",
        "Root", "Routes", "Row", "Runnable", "Shape", "Size", "Sized", "T", "Tag",
    }  # fmt: skip


@pytest.mark.parametrize("language", ["typescript", "tsx"])
def test_an_identifier_is_read_wherever_its_value_is_taken(language):
    """Names that are bound (parameters, loop variables, targets) are not read."""
    source = """
    f(a1, ...a2); [a3]; x = () => a4; x = a5; x += a6;
    function g(p = a7, { a8 = a9, a10: q, a11 }: P, o?: typeof a12) { return a13; }
    await a14; a15 + 1; ({ [a16]: a17, a18 });
    export { a19 }; class C { field = a20; }
    for (const item of a21) {}
    if (a22) {} else { (a23, 1); }
    a24[a25]; switch (0) { case a26: }
    `${a27}`; a28 ? a29 : a30; throw a31;
    !a32; let z: a33.T = a34; function* h() { yield a35; }
    a36.a37; a38!; a39 as T; a40 satisfies T; enum E { M = a41 }
    const s = a42<T>; let k = (p?: T, o = a43) => 1; x = a44!.a45;
    function opt(p: T = a46) {} const [u = a48] = [];
    export default a47;
    """
    reads = {name for name, kind, _ in read(language, source).references if kind == "read"}
    assert reads == {f"a{number}" for number in range(1, 49)}
    assert read(language, "export = a;").references == {("a", "read", 1)}


def test_an_old_style_assertion_reads_its_value():
    """Only plain TypeScript has it: in TSX it would open an element."""
    assert read("typescript", "f(<T>a);").uses("a") == {("read", 1)}


def test_an_exported_definition_is_one_chunk_with_its_comment():
    """The export keyword, comments and decorators belong to the unit."""
    chunks = read("typescript", SOURCE).chunks
    assert (22, 26, "interface", "Shape") in chunks
    assert (49, 50, "function", "double") in chunks
    assert (52, 54, "function", "double") in chunks
    assert (63, 67, "class", "Service") in chunks
    assert (85, 86, "method", "Service.length") in chunks
    assert (99, 101, "function", "serve") in chunks


@pytest.mark.parametrize("language", ["typescript", "tsx"])
@pytest.mark.parametrize(
    "statement",
    [
        "function f(): void",
        "function f() {}",
        "class F {}",
        "abstract class F {}",
        "interface F {}",
        "type F = A",
        "enum F {}",
        "namespace F {}",
        "module F {}",
        "module F.G {}",
        "const f = () => {}",
        "const F = class {}",
        "function* f() {}",
    ],
)
def test_the_comment_above_belongs_to_the_unit(language, statement):
    """The whole statement is the unit, so what stands above it touches it."""
    prefixes = ["", "export "]
    if not statement.startswith(("const", "function f() {", "function*", "module")):
        prefixes += ["declare ", "export declare "]
    for prefix in prefixes:
        for end in ("", ";"):
            chunks = read(language, f"x;\n// Note.\n{prefix}{statement}{end}\ny;\n").chunks
            assert [chunk[:2] for chunk in chunks] == [(1, 1), (2, 3), (4, 4)], prefix + end
