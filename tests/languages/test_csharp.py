"""What the C# query file finds."""

import pytest

from tests.languages.reading import read

SOURCE = """
using System;
using System.Collections.Generic;
using Json = System.Text.Json;

namespace Acme.Store
{
    public delegate void Changed(Order order);

    /// <summary>Keeps orders.</summary>
    [Service(Lifetime)]
    public class OrderStore<T> : BaseStore<T>, IStore where T : Entity
    {
        private const int Limit = Defaults;
        private readonly Dictionary<string, List<Order>> _orders = source;
        public event EventHandler<Order> Added;
        public int Count { get; private set; } = Initial;
        public bool Empty => _orders.Count == zero;

        // The name shown.
        public string Name
        {
            get { return _name; }
            set { _name = value; }
        }

        public event Handler Closed { add { _closed += value; } remove { } }

        public Order this[int index] => _list[index];

        public OrderStore(Clock clock) : base(clock)
        {
            this.Clock = clock;
        }

        ~OrderStore() { Release(); }

        public static bool operator ==(Point a, Point b) => a.Equals(b);

        public static implicit operator Point(OrderStore<T> s) => s.Origin;

        void IStore.Save() { }

        /// <summary>Finds orders.</summary>
        public async Task<Order> FindAsync(Query? query, int page = First, params Filter[] filters)
        {
            var found = await _db.Load<Order>(query);
            var made = new Order(found) { Parent = parent };
            var other = new Lists.Linked<Order>();
            _hits++;
            --this.Misses;
            (left, this.Right) = pair;
            int Local(int a) => a + offset;
            foreach (Order order in orders)
            {
                if (order is Special s && !done) { lock (gate) { } }
            }
            _cache?.Store(Local(1), out Order last);
            while (busy) { arr[i] = items[count]; }
            try { Run(name: label); }
            catch (StoreException e) when (e.Fatal) { throw error; }
            var text = $"{prefix}:{made.Id}";
            var kind = state switch { Open => opened, _ => fallback };
            switch (kind) { case Closed: break; }
            var q = from o in table where o.Open select o;
            object[] all = { one, (Order)raw, typeof(Order), two as Order };
            yield return result;
            return cond ? yes : (no);
        }
    }

    public struct Point { public int X; }

    public record Line(int Quantity, Product Product) : Base(Quantity);

    interface IStore { void Save(); }

    enum State : byte { Open, Closed = Open }
}
"""


def test_definitions_are_found_with_their_qualified_names():
    """Every kind of definition counts; parameters and locals do not."""
    assert read("csharp", SOURCE).definitions == {
        ("Acme.Store", "module", 5),
        ("Acme.Store.Changed", "type", 7),
        ("Acme.Store.OrderStore", "class", 11),
        ("Acme.Store.OrderStore.Limit", "field", 13),
        ("Acme.Store.OrderStore._orders", "field", 14),
        ("Acme.Store.OrderStore.Added", "field", 15),
        ("Acme.Store.OrderStore.Count", "field", 16),
        ("Acme.Store.OrderStore.Empty", "field", 17),
        ("Acme.Store.OrderStore.Name", "method", 20),
        ("Acme.Store.OrderStore.Closed", "method", 26),
        ("Acme.Store.OrderStore.this", "method", 28),
        ("Acme.Store.OrderStore.OrderStore", "method", 30),
        ("Acme.Store.OrderStore.OrderStore", "method", 35),
        ("Acme.Store.OrderStore.operator", "method", 37),
        ("Acme.Store.OrderStore.operator", "method", 39),
        ("Acme.Store.OrderStore.Save", "method", 41),
        ("Acme.Store.OrderStore.FindAsync", "method", 44),
        ("Acme.Store.OrderStore.FindAsync.Local", "function", 52),
        ("Acme.Store.Point", "struct", 71),
        ("Acme.Store.Point.X", "field", 71),
        ("Acme.Store.Line", "class", 73),
        ("Acme.Store.Line.Product", "field", 73),
        ("Acme.Store.Line.Quantity", "field", 73),
        ("Acme.Store.IStore", "interface", 75),
        ("Acme.Store.IStore.Save", "method", 75),
        ("Acme.Store.State", "enum", 77),
        ("Acme.Store.State.Closed", "constant", 77),
        ("Acme.Store.State.Open", "constant", 77),
    }


def test_chunks_are_units_with_their_comments():
    """A member is a chunk of its own, its container holds the rest; blank lines are in none."""
    assert read("csharp", SOURCE).chunks == [
        (1, 3, "toplevel", ""),
        (5, 6, "module", "Acme.Store"),
        (7, 7, "type", "Acme.Store.Changed"),
        (9, 17, "class", "Acme.Store.OrderStore"),
        (19, 24, "method", "Acme.Store.OrderStore.Name"),
        (26, 26, "method", "Acme.Store.OrderStore.Closed"),
        (28, 28, "method", "Acme.Store.OrderStore.this"),
        (30, 33, "method", "Acme.Store.OrderStore.OrderStore"),
        (35, 35, "method", "Acme.Store.OrderStore.OrderStore"),
        (37, 37, "method", "Acme.Store.OrderStore.operator"),
        (39, 39, "method", "Acme.Store.OrderStore.operator"),
        (41, 41, "method", "Acme.Store.OrderStore.Save"),
        (43, 68, "method", "Acme.Store.OrderStore.FindAsync"),
        (71, 71, "struct", "Acme.Store.Point"),
        (73, 73, "class", "Acme.Store.Line"),
        (75, 75, "method", "Acme.Store.IStore.Save"),
        (77, 77, "enum", "Acme.Store.State"),
    ]


def test_calls_writes_imports_types_and_reads_are_told_apart():
    """A property initialised in `new X { P = v }` is written."""
    parsed = read("csharp", SOURCE)
    assert parsed.uses("Load") == {("call", 46)}
    assert parsed.uses("Linked") == {("call", 48)}
    assert parsed.uses("Store") == {("call", 57)}
    assert parsed.uses("Local") == {("call", 57)}
    assert parsed.uses("Parent") == {("write", 47)}
    assert parsed.uses("Clock") == {("type", 30), ("write", 32)}
    assert parsed.uses("_hits") == {("write", 49)}
    assert parsed.uses("Misses") == {("write", 50)}
    assert parsed.uses("Right") == {("write", 51)}
    assert parsed.uses("Generic") == {("import", 2)}
    assert parsed.uses("System") == {("import", 1)}
    assert parsed.uses("Json") == {("import", 3)}
    assert parsed.uses("_name") == {("read", 22), ("write", 23)}
    assert parsed.uses("Entity") == {("type", 11)}
    assert parsed.uses("Service") == {("type", 10)}
    assert parsed.uses("Count") == {("read", 17)}
    assert parsed.uses("FindAsync") == set()


def test_a_file_scoped_namespace_leaves_the_file_as_it_is():
    """Only a namespace with a body is a unit."""
    parsed = read("csharp", "namespace A.B;\n\nclass C\n{\n    void M() { }\n}\n")
    assert parsed.chunks == [
        (1, 1, "toplevel", ""),
        (3, 4, "class", "C"),
        (5, 5, "method", "C.M"),
    ]


@pytest.mark.parametrize(
    "statement",
    [
        "F(x);", "F(a: x);", "x.F();", "x?.F();", "a = x[1];", "a = b[x];", "int a = x;",
        "a = x;", "a = x + b;", "a = !x;", "a = x!;", "a = x ? b : c;", "a = (x);", "a = (A)x;",
        "a = await x;", "a = x as A;", "if (x is A) { }", "if (a is x) { }", "F(b => x);",
        'a = $"{x}";', "int[] a = { x };", "a = new int[x];", "a = x switch { _ => 1 };",
        "a = b switch { _ => x };", "a = b switch { x => 1 };", "return x;", "yield return x;",
        "throw x;", "if (x) { }", "while (x) { }", "switch (x) { }", "foreach (var a in x) { }",
        "lock (x) { }", "a = from b in x select b;", "a = from b in c select x;",
        "switch (a) { case A b when x: break; }", "int L(int a = x) => 1;", "int L() => x;",
        "switch (a) { case x: break; }", "a = b.x;", "a = b?.x;", "if (a is { x: 1 }) { }",
    ],
)  # fmt: skip
def test_a_name_in_value_position_is_read(statement):
    """Wherever a value can stand, a plain name there is a read."""
    uses = read("csharp", f"class C {{ void M() {{ {statement} }} }}").uses("x")
    assert {kind for kind, _ in uses} == {"read"}


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("x();", "call"), ("x<A>();", "call"), ("a.x();", "call"), ("a.x<A>();", "call"),
        ("a?.x();", "call"), ("a?.x<A>();", "call"), ("new x();", "call"), ("new x<A>();", "call"),
        ("new a.x();", "call"), ("new a.x<A>();", "call"), ("x = 1;", "write"),
        ("a.x += 1;", "write"), ("(x, a) = b;", "write"), ("(a.x, b) = c;", "write"),
        ("x++;", "write"), ("a.x--;", "write"), ("++x;", "write"), ("--a.x;", "write"),
        ("x a;", "type"), ("a.x b;", "type"), ("x[] a;", "type"), ("a.x[] b;", "type"),
        ("x? a;", "type"), ("a.x? b;", "type"), ("A<x> a;", "type"), ("A<b.x> a;", "type"),
        ("a = (x)b;", "type"), ("a = (b.x)c;", "type"), ("F(typeof(x));", "type"),
        ("F(default(x));", "type"), ("F(out x a);", "type"), ("foreach (x a in b) { }", "type"),
        ("try { } catch (x e) { }", "type"), ("if (a is x b) { }", "type"), ("a = b as x;", "type"),
        ("if (a is x { B: 1 }) { }", "type"), ("(x A, int B) a = b;", "type"),
        ("x L() => 1;", "type"), ("void L(x a) { }", "type"), ("void L(a.x b) { }", "type"),
        ("void L(params x[] a) { }", "type"), ("void L<T>() where T : x { }", "type"),
    ],
)  # fmt: skip
def test_other_uses_of_a_name(statement, kind):
    """Creating is a call; assigning and counting are writes."""
    uses = read("csharp", f"class C {{ void M() {{ {statement} }} }}").uses("x")
    assert {found for found, _ in uses} == {kind}


@pytest.mark.parametrize(
    "member",
    [
        "x F;", "a.x F;", "x F() { }", "a.x F() { }", "x F { get; }", "a.x F { get; }",
        "x this[int i] => 1;", "event x F { add { } remove { } }", "delegate x F();",
        "static x operator +(int a, int b) => 1;", "static implicit operator x(int a) => 1;",
        "void x.F() { }", "class B : x { }", "class B : a.x { }", "record B(int C) : x(C);",
        "[x] int F;", "[a.x] int F;", "[x(1)] int F;", "void F(params x a) { }",
    ],
)  # fmt: skip
def test_the_types_of_members_are_recorded(member):
    """Return types, bases, attributes and explicit interfaces are types."""
    uses = read("csharp", f"class C {{ {member} }}").uses("x")
    assert {kind for kind, _ in uses} == {"type"}


@pytest.mark.parametrize(
    "member",
    [
        "int F { get; } = x;",
        "[A(x)] int F;",
        "int F => x;",
        "enum E { A = x }",
        "int F = x;",
    ],
)
def test_the_values_of_members_are_read(member):
    """Initialisers and attribute arguments are reads."""
    assert read("csharp", f"class C {{ {member} }}").uses("x") == {("read", 1)}
