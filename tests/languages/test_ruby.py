"""What the Ruby query file finds."""

import pytest

from tests.languages.reading import read

SOURCE = """
require "json"
require_relative 'store/base'

# Orders and what is done with them.
module Acme::Store
  LIMIT = 50
  A, B = FIRST, 2

  # Keeps orders.
  class Orders < Base::Store
    include Enumerable
    attr_reader :name, "size"
    attr_accessor :state
    DEFAULTS ||= Set.new
    @@count = 0

    # Opens a store.
    def initialize(db, clock = default_clock, *rest, page: first_page)
      @db = db
      @hits += 1
      $last = self
      @@count, self.state = count, Config::OPEN
    end

    def self.open(path)
      store = new(path)
      store.name = title
      store.size += 1
      store
    end

    class << self
      def build(*args) = Builder.new(*args, **options, &block)
    end

    def [](key)
      @items[key] || fetch(key, default: fallback)
    end

    def name=(value)
      @name = value
    end

    # Goes over all.
    private def each_open
      return enum unless block_given?
      raise NotOpen, "no #{what}" if closed
      @orders.each { |order| order }
      open? ? [yes, :a] : { key => no }
      case status
      when done then finish
      else other
      end
      while busy do step! end
      if ready
        early
      elsif late
        (grouped)
      end
      call(1..upper, -offset)
    rescue Errors::Lost, Timeout => e
      log(e)
    ensure
      cleanup
    end

    private_class_method def self.reset; end

    alias all each_open
    alias_method :list, :each_open
  end

  class ::Top; end
  class Deep::Er::Still; end
  module Plain; end

  Point = Struct.new(:x, :y) do
    def dist
      x
    end
  end
end
"""


def test_definitions_are_found_with_their_qualified_names():
    """Every kind of definition counts; parameters and locals do not."""
    assert read("ruby", SOURCE).definitions == {
        ("Acme.Store", "module", 5),
        ("Acme.Store.LIMIT", "constant", 6),
        ("Acme.Store.A", "constant", 7),
        ("Acme.Store.B", "constant", 7),
        ("Acme.Store.Orders", "class", 10),
        ("Acme.Store.Orders.name", "field", 12),
        ("Acme.Store.Orders.size", "field", 12),
        ("Acme.Store.Orders.state", "field", 13),
        ("Acme.Store.Orders.DEFAULTS", "constant", 14),
        ("Acme.Store.Orders.initialize", "method", 18),
        ("Acme.Store.Orders.open", "method", 25),
        ("Acme.Store.Orders.build", "method", 33),
        ("Acme.Store.Orders.[]", "method", 36),
        ("Acme.Store.Orders.name", "method", 40),
        ("Acme.Store.Orders.each_open", "method", 45),
        ("Acme.Store.Orders.reset", "method", 67),
        ("Acme.Store.Orders.all", "field", 69),
        ("Acme.Store.Orders.list", "field", 70),
        ("Acme.Store.Top", "class", 73),
        ("Acme.Store.Deep::Er.Still", "class", 74),
        ("Acme.Store.Plain", "module", 75),
        ("Acme.Store.Point", "class", 77),
        ("Acme.Store.Point.dist", "method", 78),
    }


def test_chunks_are_units_with_their_comments():
    """A member is a chunk of its own, its container holds the rest; blank lines are in none."""
    assert read("ruby", SOURCE).chunks == [
        (1, 2, "toplevel", ""),
        (4, 7, "module", "Acme.Store"),
        (9, 15, "class", "Acme.Store.Orders"),
        (17, 23, "method", "Acme.Store.Orders.initialize"),
        (25, 30, "method", "Acme.Store.Orders.open"),
        (32, 32, "class", "Acme.Store.Orders"),
        (33, 33, "method", "Acme.Store.Orders.build"),
        (36, 38, "method", "Acme.Store.Orders.[]"),
        (40, 42, "method", "Acme.Store.Orders.name"),
        (44, 65, "method", "Acme.Store.Orders.each_open"),
        (67, 67, "method", "Acme.Store.Orders.reset"),
        (69, 71, "class", "Acme.Store.Orders"),
        (73, 73, "class", "Acme.Store.Top"),
        (74, 74, "class", "Acme.Store.Deep::Er.Still"),
        (75, 75, "module", "Acme.Store.Plain"),
        (77, 77, "class", "Acme.Store.Point"),
        (78, 80, "method", "Acme.Store.Point.dist"),
    ]


def test_calls_writes_imports_types_and_reads_are_told_apart():
    """Without a receiver or arguments a name may be a variable, so it is only read."""
    parsed = read("ruby", SOURCE)
    assert parsed.uses("json") == {("import", 1)}
    assert parsed.uses("store/base") == {("import", 2)}
    assert parsed.uses("Store") == {("type", 10)}
    assert parsed.uses("Base") == {("read", 10)}
    assert parsed.uses("Set") == {("call", 14)}
    assert parsed.uses("Builder") == {("call", 33)}
    assert parsed.uses("fetch") == {("call", 37)}
    assert parsed.uses("Lost") == {("type", 61)}
    assert parsed.uses("NotOpen") == {("read", 47)}
    assert parsed.uses("early") == {("read", 56)}
    assert parsed.uses("each_open") == {("read", 69)}
    assert parsed.uses("LIMIT") == set()


def test_instance_class_and_global_variables_are_read_and_written():
    """Their names lose the sigil: a variable and the attribute over it are one name."""
    parsed = read("ruby", SOURCE)
    assert parsed.uses("items") == {("read", 37)}
    assert parsed.uses("name") == {("write", 27), ("write", 41)}
    assert parsed.uses("hits") == {("write", 20)}
    assert parsed.uses("count") == {("write", 15), ("write", 22), ("read", 22)}
    assert parsed.uses("last") == {("write", 21)}


def test_assigning_an_attribute_writes_it():
    """`x.y = 1` calls a setter, and reads as a write of `y`."""
    parsed = read("ruby", SOURCE)
    assert parsed.uses("name") == {("write", 27), ("write", 41)}
    assert parsed.uses("size") == {("write", 28)}
    assert parsed.uses("state") == {("write", 22)}


@pytest.mark.parametrize(
    ("source", "definition"),
    [
        ("module A::B::C; end", ("A::B.C", "module")),
        ("module ::A; end", ("A", "module")),
        ("class A::B; end", ("A.B", "class")),
        ("A = Class.new { def m; end }", ("A.m", "method")),
        ("def A; end", ("A", "function")),
        ("def self.A; end", ("A", "method")),
        ("def self.+(a); end", ("+", "method")),
        ("def <=>(a); end", ("<=>", "function")),
        ("def <<(a); end", ("<<", "function")),
        ("def <=(a); end", ("<=", "function")),
        ("alias_method :<=>, :a", ("<=>", "field")),
        ("alias_method :[], :a", ("[]", "field")),
        ("def self.a=(b); end", ("a", "method")),
        ("private def a=(b); end", ("a", "function")),
        ("private def +(b); end", ("+", "function")),
        ("memo def self.a=(b); end", ("a", "method")),
        ("memo def self.+(b); end", ("+", "method")),
        ("A::B = 1", ("A.B", "constant")),
        ("alias :a :b", ("a", "field")),
        ("define_method(:a) { 1 }", ("a", "field")),
    ],
)
def test_other_ways_to_define(source, definition):
    """Operators, setters, scopes and generated methods count."""
    assert definition in {(name, kind) for name, kind, _ in read("ruby", source).definitions}


@pytest.mark.parametrize(
    "statement",
    [
        "f(x)", "x.f", "a = x", "a += x", "a, b = x, 1", "def m(a = x); end", "def m(a: x); end",
        "f(k: x)", "f(x => 1)", "a = [x]", "a = x + b", "a = !x", "a = x..b", "a = x ? b : c",
        "a = x[1]", "a = b[x]", "a = (x)", 'a = "#{x}"', "f(*x)", "f(**x)", "f(&x)",
        "def m\n x\nend", "f { x }", "if a then x end", "if a\nelse x\nend", "def m() = x",
        "if x\nend", "if a\nelsif x\nend", "unless x\nend", "while x\nend", "until x\nend",
        "f if x", "f unless x", "case x\nwhen 1 then 2\nend", "case a\nwhen x then 2\nend",
        "begin\n1\nensure\nx\nend", "return x", "yield x",
    ],
)  # fmt: skip
def test_a_name_in_value_position_is_read(statement):
    """Wherever a value can stand, a plain name there is a read."""
    assert {kind for kind, _ in read("ruby", statement).uses("x")} == {"read"}


@pytest.mark.parametrize(
    ("statement", "name", "kind"),
    [
        ("X(1)", "X", "call"), ("X.new", "X", "call"), ("A::X.new(1)", "X", "call"),
        ("x 1", "x", "call"), ("a.x", "x", "call"), ("a&.x 1", "x", "call"),
        ("@x, a = 1, 2", "x", "write"), ("$x, a = 1, 2", "x", "write"),
        ("@@x += 1", "x", "write"), ("$x ||= 1", "x", "write"), ("@x ||= 1", "x", "write"),
        ("class A < X; end", "X", "type"), ("begin\nrescue X\nend", "X", "type"),
        ("f(A::X)", "X", "read"), ("alias :a :x", "x", "read"), ("a = X", "X", "read"),
        ("load 'x'", "x", "import"),
    ],
)  # fmt: skip
def test_other_uses_of_a_name(statement, name, kind):
    """Creating is a call of the class too."""
    assert {found for found, _ in read("ruby", statement).uses(name)} == {kind}
