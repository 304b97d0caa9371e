"""What the Rust query file finds."""

from tests.languages.reading import read

SOURCE = """
//! Crate.
use std::{io::{self, Read}, fmt as text, collections::HashMap};
use serde::de::{Deserialize as De, ser::Serialize};
use anyhow::*;
use log;
use prelude::*;
extern crate alloc;
mod config;

const LIMIT: usize = DEFAULT;
static mut COUNT: u32 = START;

/// A stack.
#[derive(Debug, Clone)]
pub struct Stack<T: Bound> {
    items: Vec<T>,
    pub owner: models::Owner,
}

struct Pair(Left, Right);

union Bits { raw: u32 }

enum Shape {
    Circle,
    Square(Side),
    Line { from: Point },
}

trait Area: Named {
    const SIDES: u8;
    type Unit;
    /// Required.
    fn area(&self) -> f64;
    fn twice(&self) -> f64 {
        self.area() * 2.0
    }
}

impl<T> Stack<T> {
    const MAX: usize = 8;

    /// Makes one.
    #[inline]
    pub fn new(owner: Owner) -> Stack<T> {
        Stack { items: Vec::new(), owner, ..base }
    }

    fn push(&mut self, item: T) {
        self.items.push(item);
        self.count += 1;
        self.top = item;
        total = LIMIT;
        seen += 1;
    }
}

impl Area for Pair {
    type Unit = Meter;
}

impl Area for models::Owner {}
impl<T> Area for models::List<T> {}
impl<'a> Area for &'a Shape {}
impl<'a, T> Area for &'a Heap<T> {}
impl<'a> Area for &'a models::Node {}
impl dyn Plugin {}
impl dyn models::Hook {}
impl Area for [u8] {}
impl Area for u32 {}

mod inner {
    pub type Short = Long;
    pub fn helper() {}
}

macro_rules! square {
    ($x:expr) => { multiply($x) };
}

type Outcome<T> = Result<T, Failure>;

extern "C" { fn ffi(x: i32); }

#[tokio::main]
#[test]
fn main() {
    start(); queue.drain(); fs::read();
    parse::<u8>(); list.collect::<Bag>(); mem::take::<Bag>();
    println!("{}", shown(hidden)); log::warn!("x");
}
"""


def test_definitions_are_found_with_the_implemented_type_as_scope():
    """An impl is named by its type, whether generic, borrowed or a path."""
    assert read("rust", SOURCE).definitions == {
        ("LIMIT", "constant", 10),
        ("COUNT", "constant", 11),
        ("Stack", "struct", 15),
        ("Stack.items", "field", 16),
        ("Stack.owner", "field", 17),
        ("Pair", "struct", 20),
        ("Bits", "struct", 22),
        ("Bits.raw", "field", 22),
        ("Shape", "enum", 24),
        ("Shape.Circle", "field", 25),
        ("Shape.Square", "field", 26),
        ("Shape.Line", "field", 27),
        ("Shape.from", "field", 27),
        ("Area", "trait", 30),
        ("Area.SIDES", "constant", 31),
        ("Area.Unit", "field", 32),
        ("Area.area", "method", 34),
        ("Area.twice", "method", 35),
        ("Stack", "impl", 40),
        ("Stack.MAX", "constant", 41),
        ("Stack.new", "method", 45),
        ("Stack.push", "method", 49),
        ("Pair", "impl", 58),
        ("Pair.Unit", "field", 59),
        ("Owner", "impl", 62),
        ("List", "impl", 63),
        ("Shape", "impl", 64),
        ("Heap", "impl", 65),
        ("Node", "impl", 66),
        ("Plugin", "impl", 67),
        ("Hook", "impl", 68),
        ("[u8]", "impl", 69),
        ("u32", "impl", 70),
        ("inner", "module", 72),
        ("inner.Short", "type", 73),
        ("inner.helper", "function", 74),
        ("square", "macro", 77),
        ("Outcome", "type", 81),
        ("ffi", "function", 83),
        ("main", "function", 87),
    }


def test_calls_include_paths_macros_attributes_and_what_a_macro_is_given():
    """The arguments of a macro are bare tokens: a name before a group is a call."""
    parsed = read("rust", SOURCE)
    called = {(name, line) for name, kind, line in parsed.references if kind == "call"}
    assert called == {
        ("derive", 14), ("area", 36), ("inline", 44), ("new", 46), ("push", 50),
        ("multiply", 78), ("main", 85), ("test", 86), ("start", 88), ("drain", 88),
        ("read", 88), ("parse", 89), ("collect", 89), ("take", 89), ("println", 90),
        ("shown", 90), ("warn", 90),
    }  # fmt: skip


def test_writes_imports_and_types_are_told_apart():
    """A field that a struct expression sets is written."""
    parsed = read("rust", SOURCE)
    written = {(name, line) for name, kind, line in parsed.references if kind == "write"}
    assert written == {("items", 46), ("count", 51), ("top", 52), ("total", 53), ("seen", 54)}
    imported = {name for name, kind, _ in parsed.references if kind == "import"}
    assert imported == {
        "std", "io", "Read", "fmt", "HashMap", "de", "Deserialize", "Serialize", "anyhow",
        "log", "prelude", "alloc", "config",
    }  # fmt: skip
    assert read("rust", "use a::{b as c};\nuse d::e::*;\nuse f::g;\nuse h as i;").references == {
        ("a", "import", 1), ("b", "import", 1), ("d", "read", 2), ("e", "import", 2),
        ("f", "read", 3), ("g", "import", 3), ("h", "import", 4),
    }  # fmt: skip
    assert parsed.uses("Clone") == {("type", 14)}
    assert parsed.uses("Bound") == {("type", 15)}
    assert parsed.uses("Owner") == {("type", 17), ("type", 45)}
    assert parsed.uses("Area") >= {("type", 58), ("type", 70)}
    assert parsed.uses("Failure") == {("type", 81)}
    assert parsed.uses("Side") == {("type", 26)}


def test_an_identifier_is_read_wherever_its_value_is_taken():
    """Names that are bound (parameters, patterns, loop variables) are not read."""
    source = """
    const C: u8 = a1;
    static S: u8 = a2;
    fn f(p: a3::T) -> u8 {
        g(a4, &a5, [a6, a7], (a8, a9));
        x = a10; x += a11; a12.await; a13?;
        let S { a14, a15: q } = S { k: a16, a17, ..a18 };
        let y = a19; let z = a46 + (-a20);
        loop { break a21; }
        h(|v| a22);
        for i in a23 {}
        if a24 {} else if let a25(w) = a26 {}
        match a27 { a28::a29 => a30, A31 => 1, other => 2 }
        a32[a33]; a34..a35; a36.a37; a38.m(); while a39 {}
        m!(a40, a41); a42 as u8; (a43); return a44;
        { a45 }
    }
    """
    reads = {name.lower() for name, kind, _ in read("rust", source).references if kind == "read"}
    assert reads == {f"a{number}" for number in range(1, 47)}


def test_a_unit_begins_at_its_doc_comment_and_attributes():
    """Docs and attributes belong to what is below them, and impl headers to no method."""
    chunks = read("rust", SOURCE).chunks
    assert (13, 18, "struct", "Stack") in chunks
    assert (33, 34, "method", "Area.area") in chunks
    assert (40, 41, "impl", "Stack") in chunks
    assert (43, 47, "method", "Stack.new") in chunks
    assert (58, 60, "impl", "Pair") in chunks
    assert (85, 91, "function", "main") in chunks
