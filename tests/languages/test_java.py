"""What the Java query file finds."""

import pytest

from tests.languages.reading import read

SOURCE = """
package com.acme.store;

import static java.util.Objects.requireNonNull;
import java.util.List;
import java.util.Map;

/** Keeps orders in memory. */
@Service(scope = Scope.SINGLETON)
public class OrderStore<K extends Key> extends BaseStore<K> implements Closeable, audit.Traced {
    private static final int LIMIT = 50;
    private final Map<String, List<Order>> byCustomer = emptyMap;
    protected int hits, misses;

    /** Opens a store. */
    public OrderStore(Clock clock) throws StoreException {
        super(clock);
        this.clock = clock;
    }

    // Finds what a customer ordered.
    @Override
    public <T> List<Order> find(final String customer, int... pages) {
        hits++;
        this.misses += pages.length;
        List<Order> found = byCustomer.get(customer);
        if (found == null || closed) {
            throw failure;
        }
        for (Order order : found) {
            visit(order, Order::total);
        }
        pages[start] = LIMIT;
        return new ArrayList<>(found);
    }

    @Nullable
    private Object choose(Object value) {
        Runnable task = () -> fallback;
        try (Session s = session) {
            assert ready;
            synchronized (lock) {
                value = (Order) raw;
            }
        }
        Object[] all = {first, new Order(last), new Object[size]};
        return switch (value) {
            case Line(int x, Order o) -> o.parent.id;
            case PENDING -> { yield later; }
            default -> !open ? left : right;
        };
    }

    enum State {
        NEW(1), DONE(2);

        final int code;

        State(int code) { this.code = code; }
    }

    record Line(int quantity, Product product) {
        Line {
            check(quantity);
        }
    }

    interface Visitor {
        int DEPTH = 3;

        boolean accept(Order order);
    }

    @interface Audited {
        String by() default "x";
    }
}
"""


def test_definitions_are_found_with_their_qualified_names():
    """Every kind of definition counts; parameters and locals do not."""
    assert read("java", SOURCE).definitions == {
        ("OrderStore", "class", 9),
        ("OrderStore.LIMIT", "field", 10),
        ("OrderStore.byCustomer", "field", 11),
        ("OrderStore.hits", "field", 12),
        ("OrderStore.misses", "field", 12),
        ("OrderStore.OrderStore", "method", 15),
        ("OrderStore.find", "method", 22),
        ("OrderStore.choose", "method", 37),
        ("OrderStore.State", "enum", 53),
        ("OrderStore.State.DONE", "constant", 54),
        ("OrderStore.State.NEW", "constant", 54),
        ("OrderStore.State.code", "field", 56),
        ("OrderStore.State.State", "method", 58),
        ("OrderStore.Line", "class", 61),
        ("OrderStore.Line.product", "field", 61),
        ("OrderStore.Line.quantity", "field", 61),
        ("OrderStore.Line.Line", "method", 62),
        ("OrderStore.Visitor", "interface", 67),
        ("OrderStore.Visitor.DEPTH", "constant", 68),
        ("OrderStore.Visitor.accept", "method", 70),
        ("OrderStore.Audited", "interface", 73),
        ("OrderStore.Audited.by", "field", 74),
    }


def test_chunks_are_units_with_their_comments():
    """A member is a chunk of its own, its container holds the rest; blank lines are in none."""
    assert read("java", SOURCE).chunks == [
        (1, 5, "toplevel", ""),
        (7, 12, "class", "OrderStore"),
        (14, 18, "method", "OrderStore.OrderStore"),
        (20, 34, "method", "OrderStore.find"),
        (36, 51, "method", "OrderStore.choose"),
        (53, 56, "enum", "OrderStore.State"),
        (58, 58, "method", "OrderStore.State.State"),
        (61, 61, "class", "OrderStore.Line"),
        (62, 64, "method", "OrderStore.Line.Line"),
        (67, 68, "interface", "OrderStore.Visitor"),
        (70, 70, "method", "OrderStore.Visitor.accept"),
        (73, 75, "interface", "OrderStore.Audited"),
    ]


def test_calls_writes_imports_types_and_reads_are_told_apart():
    """A name used in several ways is recorded once for each."""
    parsed = read("java", SOURCE)
    assert parsed.uses("ArrayList") == {("call", 33)}
    assert parsed.uses("visit") == {("call", 30)}
    assert parsed.uses("hits") == {("write", 23)}
    assert parsed.uses("misses") == {("write", 24)}
    assert parsed.uses("List") == {("import", 4), ("type", 11), ("type", 22)}
    assert parsed.uses("requireNonNull") == {("import", 3)}
    assert parsed.uses("Traced") == {("type", 9)}
    assert parsed.uses("Override") == {("type", 21)}
    assert parsed.uses("LIMIT") == {("read", 32)}
    assert parsed.uses("total") == {("read", 30)}
    assert parsed.uses("Order") == {
        ("type", 11), ("type", 22), ("read", 30), ("type", 42), ("call", 45), ("type", 70)
    }  # fmt: skip
    assert parsed.uses("OrderStore") == set()


@pytest.mark.parametrize(
    "statement",
    [
        "f(x);", "x.f();", "x.f = 1;", "g(A::x);", "a[x] = 1;", "a = new int[x];", "a = x;",
        "int a = x;", "int[] a = {x};", "try (R r = x) {}", "for (A a : x) {}", "a = b + x;",
        "a = !x;", "a = x ? b : c;", "a = (A) x;", "if (x instanceof A) {}", "if (x) {}",
        "r = () -> x;", "switch (a) { case 1 -> x; }", "switch (a) { case x: }", "return x;",
        "throw x;", "assert x;", "synchronized (x) {}", "a = b.x;", "@A(x) int a;",
        "@A(k = x) int a;", "a = switch (b) { default: yield x; };",
    ],
)  # fmt: skip
def test_a_name_in_value_position_is_read(statement):
    """Wherever a value can stand, a plain name there is a read."""
    uses = read("java", f"class C {{ void m() {{ {statement} }} }}").uses("x")
    assert {kind for kind, _ in uses} == {"read"}


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("new x();", "call"), ("new a.x();", "call"), ("new x<B>();", "call"),
        ("new a.x<B>();", "call"), ("this.x = 1;", "write"), ("x = 1;", "write"),
        ("this.x++;", "write"), ("--x;", "write"), ("a.<B>x();", "call"), ("A<x> a;", "type"),
        ("x.Inner a;", "type"), ("a = b -> switch (b) { case x(int c) -> 1; };", "type"),
    ],
)  # fmt: skip
def test_other_uses_of_a_name(statement, kind):
    """Creating is a call; assigning and counting are writes."""
    uses = read("java", f"class C {{ void m() {{ {statement} }} }}").uses("x")
    assert {found for found, _ in uses} == {kind}
