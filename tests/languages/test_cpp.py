"""What the C++ query file finds."""

import pytest

from tests.languages.reading import read

SOURCE = r"""
#pragma once
#include <vector>
#include "net/socket.h"

#ifdef NET_DEBUG
int traces = 0;
#endif
#define NET_LIMIT 16
#define NET_CHECK(x) \
  if (!(x)) throw Failure(#x)

using std::string;

namespace net {

enum class State : int { kOpen, kClosed = NET_LIMIT };
using Callback = std::function<void(int)>;
template <typename T> using List = std::vector<T>;
typedef unsigned char byte_t;
constexpr int kRetries = kDefault;
extern int debug;

/// A pool of connections.
template <class T, int N = kSize>
class Pool : public Base<T>, private detail::Guard {
 public:
  explicit Pool(int size) : size_(size), Base<T>(size) {}
  virtual ~Pool() { close(); }

  // Takes one.
  template <class U>
  T* take(U&& hint) {
    return items_.template get<U>(std::forward<U>(hint));
  }

  bool operator==(const Pool& other) const { return id_ == other.id_; }
  operator bool() const { return open_; }
  int& count() { return count_; }
  int size() const;

 private:
  T* items_[4], *last_ = first;
  void (*hook_)(int);
  friend class Monitor;
};

struct Point { int x, y; } origin;

}  // namespace net

namespace net::io {

union Word { int i; float f; };
static Registry registry{first_entry};

}

typedef struct { int a; } Plain;
typedef struct tag { int b; } Tagged;
typedef enum { RED } Color;
typedef enum shade { DARK } shade;
typedef enum hue_tag { WARM } hue;
template <typename T> concept Sized = requires(T t) { t.size(); };
template <typename T> constexpr bool is_pod = T::value;

// Binds.
net::Socket::Socket(int fd) : fd_(fd) { fd_ = dup(fd); }

net::Socket::~Socket() { delete impl_; }

Socket& Socket::operator=(const Socket& other) {
  this->fd_ = other.fd_;
  Counter::total++;
  return *this;
}

Socket::operator bool() const { return ok; }

template <class T>
void Pool<T>::drain(byte_t level) {
  for (auto& item : items_) {
    item->close(level);
  }
  auto task = [this, &queue, w = weight](int n) { return table[n]; };
  auto* job = new Job(task);
  if (ready && !stopped) {
    switch (mode) {
      case State::kOpen: throw error;
    }
    size = (Size)raw ? big : small;
  }
  submit<Job>(job, net::io::registry, Options{verbose});
}

Token** Lexer::next() { return co; }

static std::string name_of(const Socket& s, int flags = kNone) {
  return s.name;
}

template <> struct std::hash<Socket> {
  size_t operator()(const Socket& s) const { return s.fd; }
};

template <class T>
T parse(const char* text) { co_return co_await text; }

class NET_EXPORT Server {
  void start() {}
};

TEST_F(PoolTest, TakesOne) {
  EXPECT_EQ(pool.take(1), one);
}
"""


def test_definitions_are_found_with_their_qualified_names():
    """Every kind of definition counts; parameters and locals do not."""
    assert read("cpp", SOURCE).definitions == {
        ("traces", "variable", 6),
        ("NET_LIMIT", "constant", 8),
        ("NET_CHECK", "macro", 9),
        ("net", "module", 14),
        ("net.State", "enum", 16),
        ("net.State.kClosed", "constant", 16),
        ("net.State.kOpen", "constant", 16),
        ("net.Callback", "type", 17),
        ("net.List", "type", 18),
        ("net.byte_t", "type", 19),
        ("net.kRetries", "variable", 20),
        ("net.Pool", "class", 25),
        ("net.Pool.Pool", "method", 27),
        ("net.Pool.~Pool", "method", 28),
        ("net.Pool.take", "method", 32),
        ("net.Pool.operator==", "method", 36),
        ("net.Pool.operator", "method", 37),
        ("net.Pool.count", "method", 38),
        ("net.Pool.items_", "field", 42),
        ("net.Pool.last_", "field", 42),
        ("net.Pool.hook_", "field", 43),
        ("net.Point", "struct", 47),
        ("net.Point.origin", "variable", 47),
        ("net.Point.x", "field", 47),
        ("net.Point.y", "field", 47),
        ("net.io", "module", 51),
        ("net.io.Word", "struct", 53),
        ("net.io.Word.f", "field", 53),
        ("net.io.Word.i", "field", 53),
        ("net.io.registry", "variable", 54),
        ("Plain", "struct", 58),
        ("Plain.a", "field", 58),
        ("tag", "struct", 59),
        ("tag.Tagged", "struct", 59),
        ("tag.Tagged.b", "field", 59),
        ("Color", "enum", 60),
        ("Color.RED", "constant", 60),
        ("shade", "enum", 61),
        ("shade.DARK", "constant", 61),
        ("hue_tag", "enum", 62),
        ("hue_tag.hue", "enum", 62),
        ("hue_tag.hue.WARM", "constant", 62),
        ("Sized", "type", 63),
        ("is_pod", "variable", 64),
        ("net.Socket.Socket", "method", 67),
        ("net.Socket.~Socket", "method", 69),
        ("Socket.operator=", "method", 71),
        ("Socket.operator", "method", 77),
        ("Pool.drain", "method", 80),
        ("Lexer.next", "method", 95),
        ("name_of", "function", 97),
        ("std.hash", "struct", 101),
        ("std.hash.operator()", "method", 102),
        ("parse", "function", 106),
        ("Server", "class", 108),
        ("Server.start", "method", 109),
        ("PoolTest.TakesOne", "function", 112),
    }


def test_chunks_are_units_with_their_comments():
    """A member is a chunk of its own, its container holds the rest; blank lines are in none."""
    assert read("cpp", SOURCE).chunks == [
        (1, 8, "toplevel", ""),
        (9, 10, "macro", "NET_CHECK"),
        (12, 12, "toplevel", ""),
        (14, 14, "module", "net"),
        (16, 16, "enum", "net.State"),
        (17, 17, "type", "net.Callback"),
        (18, 18, "type", "net.List"),
        (19, 19, "type", "net.byte_t"),
        (20, 21, "module", "net"),
        (23, 26, "class", "net.Pool"),
        (27, 27, "method", "net.Pool.Pool"),
        (28, 28, "method", "net.Pool.~Pool"),
        (30, 34, "method", "net.Pool.take"),
        (36, 36, "method", "net.Pool.operator=="),
        (37, 37, "method", "net.Pool.operator"),
        (38, 38, "method", "net.Pool.count"),
        (39, 45, "class", "net.Pool"),
        (47, 47, "struct", "net.Point"),
        (49, 49, "module", "net"),
        (51, 51, "module", "net.io"),
        (53, 53, "struct", "net.io.Word"),
        (54, 56, "module", "net.io"),
        (58, 58, "struct", "Plain"),
        (59, 59, "struct", "tag.Tagged"),
        (60, 60, "enum", "Color"),
        (61, 61, "enum", "shade"),
        (62, 62, "enum", "hue_tag.hue"),
        (63, 63, "type", "Sized"),
        (64, 64, "toplevel", ""),
        (66, 67, "method", "net.Socket.Socket"),
        (69, 69, "method", "net.Socket.~Socket"),
        (71, 75, "method", "Socket.operator="),
        (77, 77, "method", "Socket.operator"),
        (79, 93, "method", "Pool.drain"),
        (95, 95, "method", "Lexer.next"),
        (97, 99, "function", "name_of"),
        (101, 101, "struct", "std.hash"),
        (102, 102, "method", "std.hash.operator()"),
        (105, 106, "function", "parse"),
        (108, 108, "class", "Server"),
        (109, 109, "method", "Server.start"),
        (112, 114, "function", "PoolTest.TakesOne"),
    ]


@pytest.mark.parametrize(
    ("source", "definition"),
    [
        ("namespace a::b::c {}", ("a::b::c", "module")),
        ("class a::C {};", ("a.C", "class")),
        ("template <> class C<int> {};", ("C", "class")),
        ("template <> class a::C<int> {};", ("a.C", "class")),
        ("class C {} c;", ("C", "class")),
        ("struct EXPORT S { void f() {} };", ("S.f", "method")),
        ("struct EXPORT S : B { int a; };", ("S", "class")),
        ("struct a::S {};", ("a.S", "struct")),
        ("template <> struct S<int> {};", ("S", "struct")),
        ("template <class T> struct S {};", ("S", "struct")),
        ("union U { int a; } u;", ("U", "struct")),
        ("typedef union U { int a; } U;", ("U", "struct")),
        ("typedef union U_ { int a; } U;", ("U_.U", "struct")),
        ("typedef union { int a; } U;", ("U", "struct")),
        ("typedef a_t t;", ("t", "type")),
        ("typedef int t;", ("t", "type")),
        ("typedef a::b t;", ("t", "type")),
        ("typedef a<b> t;", ("t", "type")),
        ("typedef struct s t;", ("t", "type")),
        ("typedef union s t;", ("t", "type")),
        ("typedef enum s t;", ("t", "type")),
        ("typedef unsigned uint32_t;", ("uint32_t", "type")),
        ("typedef a *t;", ("t", "type")),
        ("typedef a t[2];", ("t", "type")),
        ("typedef int t(int);", ("t", "type")),
        ("typedef int (*t)(int);", ("t", "type")),
        ("template <> int f<int>(int a) {}", ("f", "function")),
        ("int f() {}", ("f", "function")),
        ("a& f() {}", ("f", "function")),
        ("a** f() {}", ("f", "function")),
        ("template <class T> T& f() {}", ("f", "function")),
        ("template <class T> T* f() {}", ("f", "function")),
        ("a& operator<<(a& b) {}", ("operator<<", "function")),
        ("a* operator+(a& b) {}", ("operator+", "function")),
        ("class C { T** f() {} };", ("C.f", "method")),
        ("template <class T> bool operator==(T a) {}", ("operator==", "function")),
        ("bool C::operator==(C a) {}", ("C.operator==", "method")),
        ("void a::b::C::f() {}", ("a.b.C.f", "method")),
        ("void a::C<int>::f() {}", ("a.C.f", "method")),
        ("a& b::C::f() {}", ("b.C.f", "method")),
        ("a* C::f() {}", ("C.f", "method")),
        ("a* b::C::f() {}", ("b.C.f", "method")),
        ("a* b::c::C::f() {}", ("b.c.C.f", "method")),
        ("template <class T> C<T>::~C() {}", ("C.~C", "method")),
        ("template <class T> void a::C<T>::f() {}", ("a.C.f", "method")),
        ("template <class T> T& C<T>::f() {}", ("C.f", "method")),
        ("template <class T> T* C<T>::f() {}", ("C.f", "method")),
        ("struct S { int a[2][2]; };", ("S.a", "field")),
        ("struct S { int& a; };", ("S.a", "field")),
        ("struct S { T** a; };", ("S.a", "field")),
        ("struct S { T* a[2]; };", ("S.a", "field")),
        ("struct S { void* (*a)(int); };", ("S.a", "field")),
        ("int v;", ("v", "variable")),
        ("int v[2];", ("v", "variable")),
        ("int* v;", ("v", "variable")),
        ("int C::v = 1;", ("C.v", "variable")),
        ("int v[] = {1};", ("v", "variable")),
        ("int& v = a;", ("v", "variable")),
        ("int* v = a;", ("v", "variable")),
        ("char* v[] = {a};", ("v", "variable")),
        ("namespace a { int v; }", ("a.v", "variable")),
        ("namespace { int v[2]; }", ("v", "variable")),
        ("namespace { int* v; }", ("v", "variable")),
        ("namespace { int v[] = {1}; }", ("v", "variable")),
        ("namespace { int& v = a; }", ("v", "variable")),
        ("namespace { int* v = a; }", ("v", "variable")),
        ("namespace { char* v[] = {a}; }", ("v", "variable")),
        ("#ifdef A\nint v;\n#endif", ("v", "variable")),
        ("TEST(Suite, Case) {}", ("Suite.Case", "function")),
    ],
)
def test_a_declarator_may_be_wrapped(source, definition):
    """Pointers, references, templates and scopes around a name do not hide its definition."""
    assert definition in {(name, kind) for name, kind, _ in read("cpp", source).definitions}


@pytest.mark.parametrize(
    "source",
    [
        "extern int v;",
        "int f(int a);",
        "class C;",
        "struct S { int f(); };",
        "#define A_HPP_",
    ],
)
def test_a_declaration_defines_no_function_or_variable(source):
    """Prototypes, forward and extern declarations and include guards are left out."""
    assert {name for name, _, _ in read("cpp", source).definitions} <= {"S"}


def test_calls_writes_imports_types_and_reads_are_told_apart():
    """Template and qualified names count by their last part."""
    parsed = read("cpp", SOURCE)
    assert parsed.uses("forward") == {("call", 33)}
    assert parsed.uses("get") == {("call", 33)}
    assert parsed.uses("Job") == {("call", 85), ("type", 92)}
    assert parsed.uses("submit") == {("call", 92)}
    assert parsed.uses("total") == {("write", 73)}
    assert parsed.uses("fd_") == {("write", 67), ("write", 72), ("read", 72)}
    assert parsed.uses("string") == {("import", 12), ("type", 97)}
    assert parsed.uses("net/socket.h") == {("import", 3)}
    assert parsed.uses("vector") == {("import", 2), ("type", 18)}
    assert parsed.uses("Base") == {("type", 25)}
    assert parsed.uses("Monitor") == {("type", 44)}
    assert parsed.uses("registry") == {("read", 92)}
    assert parsed.uses("kOpen") == {("read", 88)}
    assert parsed.uses("drain") == set()


@pytest.mark.parametrize(
    "statement",
    [
        "f(x);", "a = x->b;", "a = b.x;", "a = b + x;", "a = !x;", "a = *x;", "a = x ? b : c;",
        "a = (x);", "if (x) {}", "a = (b, x);", "a = (B)x;", "a = x[1];", "a = b[x];", "a = x;",
        "int a = x;", "B a{x};", "B a{.c = x};", "int a[x];", "enum { A = x };", "return x;",
        "switch (a) { case x: break; }", "for (auto a : x) {}", "f([x] {});", "f([a = x] {});",
        "throw x;", "delete x;", "co_return x;", "co_await x;", "a = B::x;", "a = b::C::x;",
        "struct B { int a = x; };", "auto a = [](int b = x) {};",
    ],
)  # fmt: skip
def test_a_name_in_value_position_is_read(statement):
    """Wherever a value can stand, a plain or qualified name there is a read."""
    uses = read("cpp", f"void m() {{ {statement} }}").uses("x")
    assert {kind for kind, _ in uses} == {"read"}


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ("x(a);", "call"), ("a.x(b);", "call"), ("a.x<B>(b);", "call"), ("x<B>(b);", "call"),
        ("a::x(b);", "call"), ("a::x<B>(b);", "call"), ("a::b::x(c);", "call"),
        ("a::b::x<C>(c);", "call"), ("a::b::c::x(d);", "call"), ("new x(a);", "call"),
        ("a::b::c::x<D>(d);", "call"), ("new a::x(b);", "call"), ("new x<B>(a);", "call"),
        ("new a::x<B>(b);", "call"), ("f(x{a});", "call"), ("f(x<B>{a});", "call"),
        ("f(a::x{b});", "call"), ("x = 1;", "write"), ("a::x = 1;", "write"),
        ("a->x += 1;", "write"), ("x++;", "write"), ("a::x++;", "write"), ("a.x--;", "write"),
        ("B a{.x = c};", "write"), ("using a::b::x;", "import"), ("using namespace x;", "import"),
        ("x::f();", "type"), ("struct x* a;", "type"), ("a = b<x>();", "type"),
    ],
)  # fmt: skip
def test_other_uses_of_a_name(statement, kind):
    """Creating is a call; assigning, counting and initialising a field are writes."""
    uses = read("cpp", f"void m() {{ {statement} }}").uses("x")
    assert {found for found, _ in uses} == {kind}


def test_conditions_of_the_preprocessor_are_read():
    """A macro that only a condition names is found there."""
    parsed = read("cpp", "#ifdef A\n#endif\n#if defined(B)\n#endif\n")
    assert parsed.references == {("A", "read", 1), ("B", "read", 3)}
