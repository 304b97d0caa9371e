"""What the Go query file finds."""

import pytest

from tests.languages.reading import read

SOURCE = """
package store

import (
	"fmt"
	yaml "gopkg.in/yaml.v3"
)

const Low, High = 1, 2

const (
	Red Color = iota
	Blue
)

var debug, trace = false, os.Args

var (
	ErrGone = errors.New("gone")
	clean   = func(s string) string { return s }
)

var Open = func() {}

// Stack holds items.
type Stack[T any] struct {
	items, spare []T
	*Base
	Limits struct{ Max int }
}

type (
	// Color of a thing.
	Color int
	Shape interface {
		Area(scale Factor) float64
		fmt.Stringer
	}
	Point struct{ X int }
	Alias = Point
)

type Handler func(Point) error

type Reader interface{}

type Text = string

// Push adds an item.
func (s *Stack[T]) Push(x T) error {
	s.items = append(s.items, x)
	s.count++
	s.depth--
	total, _ = High, x
	return s.check(ErrGone)
}

func (p Point) Norm() {}

func (p *Point) Move() {}

func (Stack[T]) Len() {}

func Build(names ...Name) *Config {
	c := &Config{Name: prefix, Point: pkg.Point{X: Low}}
	m := map[Color]string{Red: label}
	list := []Point{{X: High}}
	defer c.mu.Unlock()
	go Map[int](names)
	slices.Sort[Name](names)
	pick[0](c)
	return c
}
"""


def test_definitions_are_found_with_the_receiver_as_scope():
    """Pointer, value and generic receivers all qualify a method by their type."""
    assert read("go", SOURCE).definitions == {
        ("Low", "constant", 8),
        ("High", "constant", 8),
        ("Red", "constant", 11),
        ("Blue", "constant", 12),
        ("debug", "variable", 15),
        ("trace", "variable", 15),
        ("ErrGone", "variable", 18),
        ("clean", "function", 19),
        ("Open", "function", 22),
        ("Stack", "struct", 25),
        ("Stack.items", "field", 26),
        ("Stack.spare", "field", 26),
        ("Stack.Limits", "field", 28),
        ("Stack.Max", "field", 28),
        ("Color", "type", 33),
        ("Shape", "interface", 34),
        ("Shape.Area", "field", 35),
        ("Point", "struct", 38),
        ("Point.X", "field", 38),
        ("Alias", "type", 39),
        ("Handler", "type", 42),
        ("Reader", "interface", 44),
        ("Text", "type", 46),
        ("Stack.Push", "method", 49),
        ("Point.Norm", "method", 57),
        ("Point.Move", "method", 59),
        ("Stack.Len", "method", 61),
        ("Build", "function", 63),
    }


def test_calls_are_found_plain_on_values_and_with_type_arguments():
    """A call with type arguments parses as a conversion, yet it is a call."""
    parsed = read("go", SOURCE)
    called = {(name, line) for name, kind, line in parsed.references if kind == "call"}
    assert called == {
        ("New", 18), ("append", 50), ("check", 54), ("Unlock", 67), ("Map", 68), ("Sort", 69),
        ("pick", 70),
    }  # fmt: skip
    assert read("go", "package p\nfunc f() { a.b[0](c) }").uses("b") == {("call", 2)}


def test_writes_include_the_fields_set_by_a_composite_literal():
    """A key of a map literal is read, a key of a struct literal is a field that is set."""
    parsed = read("go", SOURCE)
    written = {(name, line) for name, kind, line in parsed.references if kind == "write"}
    assert written == {
        ("items", 50), ("count", 51), ("depth", 52), ("total", 53), ("Name", 64), ("Point", 64),
        ("X", 64),
    }  # fmt: skip
    assert parsed.uses("Red") == {("read", 65)}
    source = "package p\nfunc f() { x++\ny-- \nz = a.B{C: 1}\nw = []D{{E: 2}} }"
    assert {use for use in read("go", source).references if use[1] == "write"} == {
        ("x", "write", 2), ("y", "write", 3), ("z", "write", 4), ("C", "write", 4),
        ("w", "write", 5), ("E", "write", 5),
    }  # fmt: skip


def test_types_and_named_imports_are_found():
    """Receivers, parameters, results, embedded fields and literals all name a type."""
    parsed = read("go", SOURCE)
    assert parsed.uses("yaml") == {("import", 5)}
    assert parsed.uses("Base") == {("type", 27)}
    assert parsed.uses("Factor") == {("type", 35)}
    assert parsed.uses("Stringer") == {("type", 36)}
    assert parsed.uses("Config") == {("type", 63)}
    assert parsed.uses("Stack") == {("type", 49), ("type", 61)}
    assert parsed.uses("Color") == {("type", 11), ("type", 65)}


def test_an_identifier_is_read_wherever_its_value_is_taken():
    """Names that are bound (parameters, loop variables, targets) are not read."""
    source = """
    package p
    var x = a1
    const y = a2
    func f(p T) T {
        g(a3, a4...)
        z := a5
        z = a6
        if a7 { return a8 }
        for a9 { z = a10 + -a11 }
        for i := 0; a12; i++ {}
        for i := range a13 {}
        switch a14 { case a15: }
        switch v := a16.(type) {}
        a17[a18] = a19[a20:a21]
        a22 <- (a23)
        return T{a24, a25.a26}
        _ = a27.(T)
        _ = []byte(a28)
    }
    """
    reads = {name for name, kind, _ in read("go", source).references if kind == "read"}
    assert reads == {f"a{number}" for number in range(1, 29)}


def test_a_type_declaration_is_one_chunk_and_a_group_is_cut_by_type():
    """The type keyword and the comment belong to the unit of a single type."""
    chunks = read("go", SOURCE).chunks
    assert (24, 29, "struct", "Stack") in chunks
    assert (32, 33, "type", "Color") in chunks
    assert (34, 37, "interface", "Shape") in chunks
    assert (48, 55, "method", "Stack.Push") in chunks
    assert (63, 72, "function", "Build") in chunks


@pytest.mark.parametrize(
    ("kind", "written"),
    [
        ("struct", "struct{}"),
        ("interface", "interface{}"),
        ("type", "= B"),
        ("type", "B"),
        ("type", "b.C"),
        ("type", "B[C]"),
        ("type", "*B"),
        ("type", "[2]B"),
        ("type", "[]B"),
        ("type", "map[B]C"),
        ("type", "chan B"),
        ("type", "func(B)"),
        ("type", "(B)"),
    ],
)
def test_each_form_of_type_is_a_unit_with_its_comment(kind, written):
    """The whole declaration is the unit, so what stands above it touches it."""
    source = f"package p\n\n// Note.\ntype A {written}\n\nvar x = 1\n"
    assert (3, 4, kind, "A") in read("go", source).chunks
    grouped = f"package p\n\ntype (\n\tZ int\n\tA {written}\n)\n"
    assert ("A", kind, 5) in read("go", grouped).definitions
