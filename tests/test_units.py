"""What a file is cut into: line ranges, kinds, symbols and signatures."""

from __future__ import annotations

import itertools
import re
import struct
import textwrap
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tree_sitter import Query

from coderag_ci.parse import row as rows
from coderag_ci.parse.content import MAX_BYTES
from coderag_ci.parse.languages import (
    LANGUAGES,
    NAME_KINDS,
    REFERENCE_KINDS,
    RELATION_KINDS,
    UNIT_KINDS,
    grammar,
    language_of,
    query_source,
)
from coderag_ci.parse.parser import parse
from coderag_ci.parse.windows import BYTES_A_LINE, LIMIT

PARSED = [language.name for language in LANGUAGES if language.module]
few = settings(max_examples=60, deadline=None)


class Part(NamedTuple):
    """One chunk, as a row keeps it."""

    lines: tuple[int, int]
    kind: str
    symbol: str
    signature: tuple[int, int]
    unit: tuple[int, int]


def cut(language: str, source: str | bytes) -> list[Part]:
    """Parse source as a language and return its chunks."""
    data = source if isinstance(source, bytes) else source.encode()
    row = parse(data, language)
    assert row.skipped == ""
    return [
        Part((c[0], c[1]), rows.CHUNK_KINDS[c[6]], row.names[c[7]], (c[4], c[5]), (c[2], c[3]))
        for c in struct.iter_unpack("<8I", row.chunks)
    ]


def told(language: str, source: str | bytes) -> list[tuple[int, int, str, str]]:
    """Return (first line, last line, kind, symbol) of each chunk; a text is dedented first."""
    if isinstance(source, str):
        source = textwrap.dedent(source).lstrip("\n")
    return [(*part.lines, part.kind, part.symbol) for part in cut(language, source)]


def signatures(language: str, source: str) -> dict[str, tuple[int, int]]:
    """Return the lines of the signature of each symbol."""
    parts = cut(language, textwrap.dedent(source).lstrip("\n"))
    return {part.symbol: part.signature for part in parts if part.symbol}


# --- units


def test_a_class_without_its_methods_is_its_header():
    """What a class holds besides methods is of the class; blank lines at the ends are in none."""
    source = """
    import os

    LIMIT = 3


    class Queue(Base):
        \"\"\"A queue.\"\"\"

        size: int = LIMIT

        def push(self, job):
            self.jobs.append(job)

        def pop(self):
            return self.jobs.pop()

        done = True


    def main(): pass
    """
    assert told("python", source) == [
        (1, 3, "toplevel", ""),
        (6, 9, "class", "Queue"),
        (11, 12, "method", "Queue.push"),
        (14, 15, "method", "Queue.pop"),
        (17, 17, "class", "Queue"),
        (20, 20, "function", "main"),
    ]


def test_a_part_knows_the_lines_of_its_whole_unit():
    """A class header spans the class, a method spans itself."""
    source = "class A:\n    x = 1\n\n    def f(self):\n        pass\n\n    y = 2\n"
    assert [(part.lines, part.unit) for part in cut("python", source)] == [
        ((1, 2), (1, 7)),
        ((4, 5), (4, 5)),
        ((7, 7), (1, 7)),
    ]


def test_decorators_and_leading_comments_belong_to_the_unit():
    """They are attached where they touch it, and a blank line detaches them."""
    source = """
    # Not of the class.

    # Keeps jobs.
    @register
    @dataclass(frozen=True)
    class Queue:
        size = 1

        # Adds one,
        # at the end.
        @traced
        def push(self): pass

        # Stands alone.

        def pop(self): pass
    """
    assert told("python", source) == [
        (1, 1, "toplevel", ""),
        (3, 7, "class", "Queue"),
        (9, 12, "method", "Queue.push"),
        (14, 14, "class", "Queue"),
        (16, 16, "method", "Queue.pop"),
    ]


@pytest.mark.parametrize(
    "source",
    ["/*\n * Adds.\n */\nint f(void) {}\n", "// Adds.\n// Two.\n/* b */\n/* c */ int f() {}\n"],
)
def test_comments_of_several_lines_belong_to_the_unit_whole(source):
    """One that begins on the unit's first line does not hide those above it."""
    assert told("c", source) == [(1, 4, "function", "f")]


def test_a_comment_behind_code_does_not_belong_to_the_next_unit():
    """Only a comment on rows of its own is attached."""
    source = "package a\n\nvar x = 1 // One.\nfunc f() {}\n"
    assert told("go", source) == [(1, 3, "toplevel", ""), (4, 4, "function", "f")]


@pytest.mark.parametrize(
    ("language", "source"),
    [
        ("python", "class A:\n    # First.\n    # More.\n    def f(self):\n        pass\n"),
        ("python", "class A:\n    # First.\n    @property\n    def f(self):\n        pass\n"),
        ("ruby", "class A\n  # First.\n  # More.\n  def f\n  end\nend\n"),
        ("javascript", "class A {\n  // First.\n  // More.\n  f() {\n  }\n}\n"),
        ("java", "class A {\n  // First.\n  // More.\n  void f() {\n  }\n}\n"),
        ("rust", "impl A {\n  // First.\n  #[inline]\n  fn f() {\n  }\n}\n"),
    ],
)  # fmt: skip
def test_the_first_comment_in_a_body_belongs_to_the_first_method(language, source):
    """Some grammars put it before the body, which changes nothing: the header ends above it."""
    header, method = cut(language, source)
    assert (header.lines, header.symbol, header.signature) == ((1, 1), "A", (1, 1))
    assert (method.lines, method.symbol, method.signature[1]) == ((2, 5), "A.f", 4)


def test_units_that_share_a_line_are_one_chunk():
    """A line is in one chunk only, that of the unit that begins on it first."""
    assert told("go", "package a\nfunc f() {}; func g() {\n\tx()\n}\n") == [
        (1, 1, "toplevel", ""),
        (2, 2, "function", "f"),
        (3, 4, "function", "g"),
    ]


# --- long units


def long_function(statements: int) -> str:
    """Write a Python function whose statements take three lines each."""
    body = "".join(
        f"    value_{n} = compute(\n        first_argument={n},\n    )\n" for n in range(statements)
    )
    return f"def f(\n    a,\n    b,\n):\n{body}"


def test_a_long_function_is_split_at_the_borders_of_statements():
    """Each part begins where a statement does, and knows the signature and the whole unit."""
    source = long_function(60)
    lines = source.splitlines()
    parts = cut("python", source)
    assert len(parts) > 2
    assert parts[0].lines[0] == 1
    assert all(re.match(r"    value_\d+ = ", lines[part.lines[0] - 1]) for part in parts[1:])
    assert {part.signature for part in parts} == {(1, 4)}
    assert {part.unit for part in parts} == {(1, len(lines))}
    assert {(part.kind, part.symbol) for part in parts} == {("function", "f")}
    assert_covered(source.encode(), parts)


@pytest.mark.parametrize(
    ("language", "head", "statement", "tail"),
    [
        ("python", "def f():", ["    value = ('-'", "    '-'", "    '-')"], ""),
        ("python", "def f():", ["    value = ('-'", "    and '-'", "    and '-')"], ""),
        ("python", "def f():", ["    'value'.join('-'", "    and '-'", "    and '-')"], ""),
        ("javascript", "function f() {", ["  value()", "  .then('-')", "  .then('-');"], "}"),
        ("javascript", "function f() {", ["  value('-'); /*", "select '-'", "  from '-' */"], "}"),
        ("php", "<?php\nfunction f() {", ["  value(", "  '-',", "  '-');"], "}"),
    ],
)
@pytest.mark.parametrize("width", range(40, 47))
def test_no_part_begins_within_a_statement(language, head, statement, tail, width):
    """Text, operators and arguments may stand as far left as statements, or further."""
    body = "\n".join(line.replace("-'", "-" * width + "'") for line in statement)
    source = f"{head}\n" + f"{body}\n" * 40 + tail
    lines = source.splitlines()
    parts = [part for part in cut(language, source) if part.symbol == "f"]
    assert len(parts) > 2
    assert all("value" in lines[part.lines[0] - 1] for part in parts[1:])


def test_a_function_just_short_enough_is_one_chunk():
    """The limit is on bytes, so lines that fit are not split."""
    source = "def f():\n" + "    a = 1\n" * 50
    assert told("python", source) == [(1, 51, "function", "f")]


def test_functions_within_a_long_function_are_chunks_of_their_own():
    """A short function keeps its inner ones; a long one is what is left without them."""
    inner = "    def g():\n        return 1\n\n"
    filler = "    # " + "x" * 94 + "\n"
    short = f"def f():\n{filler * 14}\n{inner}    return g\n"
    assert told("python", short) == [(1, 20, "function", "f")]
    long = f"def f():\n    x = 1\n{filler * 10}\n{inner}{filler * 6}    return g\n"
    assert told("python", long) == [
        (1, 12, "function", "f"),
        (14, 15, "function", "f.g"),
        (17, 23, "function", "f"),
    ]


def test_a_long_class_header_is_split_with_its_signature():
    """Fields of a class are split like statements are."""
    source = "class A(\n    B,\n):\n" + "".join(f"    field_{n} = {n}\n" for n in range(120))
    parts = cut("python", source)
    assert len(parts) > 1
    assert {(part.kind, part.symbol, part.signature) for part in parts} == {("class", "A", (1, 3))}


# --- signatures


@pytest.mark.parametrize(
    ("language", "source", "symbol", "lines"),
    [
        ("python", "def f(a): return a\n", "f", (1, 1)),
        ("python", "def f(\n    a,\n    b,\n) -> int:\n    return a\n", "f", (1, 4)),
        ("python", "@cached\nasync def f(\n    a,\n):\n    return a\n", "f", (2, 4)),
        ("python", "def f(a):\n    # Says why.\n\n    return a\n", "f", (1, 1)),
        ("c", "static int\nf(int a,\n  int b)\n{\n  return a;\n}\n", "f", (1, 3)),
        ("c", "struct job *\nf(void) {\n}\n", "f", (1, 2)),
        ("cpp", "template <typename T,\n  typename U>\ninline T\nf(U u) {\n}\n", "f", (1, 4)),
        ("cpp", "template <class T>\nclass A {\n  int x;\n};\n", "A", (1, 2)),
        ("cpp", "struct A {\n  template <class T>\n  T f(T a) {}\n};\n", "A.f", (2, 3)),
        ("java", "class A {\n  @Override\n  int f(int a,\n  int b)\n  {\n  }\n}\n", "A.f", (2, 4)),
        ("rust", "#[cold]\nfn f<T>(\n  a: T,\n) -> T\nwhere\n  T: Copy,\n{\n}\n", "f", (2, 6)),
        ("go", "package a\n\nfunc (s *S) F(\n\tx T,\n) error {\n\treturn nil\n}\n", "S.F", (3, 5)),
        ("ruby", "def f(a,\n  b)\n  # Says why.\n  a\nend\n", "f", (1, 2)),
        ("javascript", "const f = (\n  a\n) => a;\n", "f", (1, 3)),
        ("javascript", "export const f = async (\n a,\n b) => {\n  a;\n};\n", "f", (1, 3)),
        ("javascript", "export function f(\n a,\n) {\n  a;\n}\n", "f", (1, 3)),
        ("javascript", "A.f = function (\n a,\n) {\n  a;\n};\n", "A.f", (1, 3)),
        ("typescript", "export const f = async <T>(\n  a: T,\n): X<T> => {\n};\n", "f", (1, 3)),
        ("tsx", "class A {\n  f = (\n    e: E,\n  ) => {\n    e();\n  };\n}\n", "A.f", (2, 4)),
    ],
)  # fmt: skip
def test_a_signature_reaches_from_the_definition_to_its_body(language, source, symbol, lines):
    """Return types, templates and parameters on rows of their own are in it; decorators not."""
    assert signatures(language, source)[symbol] == lines


def test_a_signature_is_cut_where_it_is_too_long():
    """At most eight lines after that of the name are kept."""
    source = "def f(\n" + "".join(f"    a{n},\n" for n in range(20)) + "):\n    return 1\n"
    assert signatures("python", source) == {"f": (1, 9)}


def test_top_level_lines_have_no_signature():
    """Zero stands for none."""
    assert [part.signature for part in cut("python", "x = 1\n")] == [(0, 0)]


# --- every line in one chunk

CLOSING = re.compile(rb"[ \t\r\f{}()\[\];,]*(end)?[ \t\r\f{}()\[\];,]*")


def assert_covered(data: bytes, parts: list[Part]) -> None:
    """Check that chunks are in order and disjoint, and which lines are in none."""
    lines = data.split(b"\n")
    covered: set[int] = set()
    last = 0
    for part in parts:
        first, end = part.lines
        assert last < first <= end <= len(lines)
        assert part.unit[0] <= first
        assert part.unit[1] >= end
        assert lines[first - 1].strip()
        assert lines[end - 1].strip()
        size = sum(len(line) for line in lines[first - 1 : end])
        assert size <= LIMIT or first == end
        assert end - first <= LIMIT // BYTES_A_LINE
        covered.update(range(first, end + 1))
        last = end
    for number, line in enumerate(lines, 1):
        assert number in covered or not line.strip() or CLOSING.fullmatch(line), (number, line)


def indented(block: list[str], by: str) -> list[str]:
    """Indent the lines of a block that are not blank."""
    return [by + line if line else line for line in block]


def flat(parts: list[list[str]]) -> list[str]:
    """Join lists of lines."""
    return list(itertools.chain.from_iterable(parts))


def blocks_of(leaf: st.SearchStrategy[list[str]], heads: list[str], end: str, by: str):
    """Build sources: leaves, and heads around bodies that are built the same way."""

    def around(inner):
        body = st.lists(inner, min_size=1, max_size=4).map(flat)
        return st.builds(
            lambda head, lines: [*head.split("\n"), *indented(lines, by), *([end] if end else [])],
            st.sampled_from(heads),
            body,
        )

    block = st.recursive(leaf, around, max_leaves=25)
    return st.lists(block, max_size=6).map(lambda parts: "\n".join(flat(parts)))


def leaves(*texts: str) -> st.SearchStrategy[list[str]]:
    """Short statements, some of them many times over so that units grow long."""
    return st.builds(
        lambda text, times: text.split("\n") * times,
        st.sampled_from(texts),
        st.sampled_from([1, 1, 1, 2, 5, 70]),
    )


SOURCES = {
    "python": blocks_of(
        leaves("x = call(1)", "# note", "return x", "f(\n    a,\n)", '"""a\nb"""', "@a", "y: A"),
        ["def f(a):", "class A(B):", "@deco\ndef g(\n    a,\n):", "if x:", "with a as b:", "else:"],
        "",
        "    ",
    ),
    "go": blocks_of(
        leaves("x := call(1)", "// note", "return x", "f(\n\ta,\n)", "var a int", "type T int", ""),
        ["func f() {", "func (s *S) G(\n\ta int,\n) error {", "type S struct {", "if x {", "{"],
        "}",
        "\t",
    ),
    "javascript": blocks_of(
        leaves("x = call(1);", "// note", "/* a\n b */", "f(\n  a,\n);", "`a\n${b}`", ""),
        ["function f() {", "class A extends B {", "m(a,\n  b) {", "const f = async (a) => {", "{"],
        "}",
        "  ",
    ),
    "ruby": blocks_of(
        leaves("x = call 1", "# note", "attr_reader :a", "f(\n  a,\n)", "A = 1", "end", ""),
        ["def f(a)", "class A < B", "module M", "f do |x|", "if x"],
        "end",
        "  ",
    ),
    "markdown": blocks_of(
        leaves("text", "# One #", "## Two", "Three\n===", "Four\n---", "- item", "```\n# a\n```"),
        ["> quote", "- item", "### Five"],
        "",
        "  ",
    ),
}


@pytest.mark.parametrize("language", SOURCES)
@given(data=st.data())
@settings(few, max_examples=30)
def test_every_line_of_a_program_is_in_one_chunk(language, data):
    """Only blank lines and lines that close something may be in none."""
    source = data.draw(SOURCES[language]).encode()
    if source:
        assert_covered(source, cut(language, source))


@given(
    st.sampled_from([language.name for language in LANGUAGES]),
    st.one_of(
        st.text(min_size=1),
        st.text("aA1 \t\n\r\f\v{}()[]<>;:,.#@*/-=\"'`\\|$&", min_size=1, max_size=200),
    ),
)
@few
def test_every_line_of_any_text_is_in_one_chunk(language, text):
    """What no grammar understands is cut up all the same."""
    data = text.encode()
    if b"\0" not in data:
        assert_covered(data, cut(language, data))


@given(
    st.sampled_from(["yaml", "text", "sql"]),
    st.lists(st.integers(0, 2000), min_size=1, max_size=200),
    st.data(),
)
@few
def test_windows_are_bounded_whatever_the_lengths_of_lines(language, lengths, data):
    """Only a single line may be longer than a window."""
    indent = data.draw(st.sampled_from([b"", b"  ", b"\t"]))
    source = b"\n".join(indent + b"x" * length for length in lengths)
    if source:
        assert_covered(source, cut(language, source))


# --- what a line is


@pytest.mark.parametrize(
    "between", ["\f", "\r", "\u2028", "\u2029", "\x0b", "\x85", "\x1c", "\r\r"]
)
def test_lines_end_at_lf_alone(between):
    """No other separator shifts the lines below it, in a comment or in a string."""
    source = f'# a{between}b\nx = "a{between}b"\n\n\ndef f():\n    pass\n'
    assert told("python", source.encode()) == [(1, 2, "toplevel", ""), (5, 6, "function", "f")]
    assert parse(source.encode(), "python").lines == 6


def test_crlf_is_one_line_end():
    """The CR is part of the line, and a line of CR alone is blank."""
    source = b"x = 1\r\n\r\n\r\ndef f():\r\n    pass\r\n\r\nclass A:\r\n    y = 1\r\n"
    assert told("python", source) == [
        (1, 1, "toplevel", ""),
        (4, 5, "function", "f"),
        (7, 8, "class", "A"),
    ]


def test_a_form_feed_between_units_is_a_blank_line():
    """GNU sources separate their pages with it."""
    source = b"int f(void) { return 1; }\n\f\nint g(void) { return 2; }\n"
    assert told("c", source) == [(1, 1, "function", "f"), (3, 3, "function", "g")]


def test_the_last_line_needs_no_newline():
    """A file cut short ends at its last line all the same."""
    for source in (b"def f():\n    pass", b"def f():\n    pass\n"):
        row = parse(source, "python")
        assert row.lines == 2
        assert told("python", source) == [(1, 2, "function", "f")]


# --- odd content


def test_a_file_need_not_be_utf_8():
    """Bytes that are none are replaced in names, and lines stay as they are."""
    source = "# é\nx = 'ÿ'\n\ndef f(): pass\n\nclass Größe:\n    y = 1\n".encode("latin-1")
    parts = told("python", source)
    assert parts[:2] == [(1, 2, "toplevel", ""), (4, 4, "function", "f")]
    assert_covered(source, cut("python", source))


@pytest.mark.parametrize("language", ["python", "markdown", "yaml", "text"])
def test_an_empty_file_is_skipped(language):
    """There is nothing to find in it."""
    row = parse(b"", language)
    assert (row.skipped, row.lines, row.chunks) == ("empty", 0, b"")


@pytest.mark.parametrize("language", ["python", "go", "markdown", "yaml", "text"])
def test_a_file_of_blank_lines_has_no_chunks(language):
    """Its lines count nevertheless."""
    assert cut(language, b"\n") == []
    assert parse(b"\n", language).lines == 1
    assert cut(language, b"\n \n\t\n") == []
    assert parse(b"\n \n\t\n", language).lines == 3


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"x" * 3_000_000, "larger than 1 MiB"),
        (b"x = 1\n" * (MAX_BYTES // 6 + 1), "larger than 1 MiB"),
        (b"x = 1\n" + b"y" * 20_001, "a line longer than 20,000 bytes"),
        (b"x = 1\r" * 4_000, "a line longer than 20,000 bytes"),
        (b"x = 1\n\0", "binary"),
        (b"x" * 7_999 + b"\0", "binary"),
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
            "Git LFS pointer",
        ),
    ],
    ids=["one-line", "large", "long-line", "cr", "nul", "late-nul", "lfs"],
)
@pytest.mark.parametrize("language", ["javascript", "json"])
def test_what_is_not_source_is_skipped_with_a_reason(language, data, reason):
    """A row says why it has no chunks, with or without a grammar."""
    row = parse(data, language)
    assert (row.skipped, row.chunks, row.terms) == (reason, b"", b"")


def test_what_is_just_within_the_limits_is_parsed():
    """A NUL after the first 8,000 bytes, a line of 20,000 bytes and a whole MiB are no reasons."""
    for data in (
        b"x\n" * 4_000 + b"\0",
        b"x" * 20_000,
        (b"\n" * MAX_BYTES)[:-1] + b"x",
    ):
        assert parse(data, "text").skipped == ""


@pytest.mark.parametrize(
    ("language", "depth", "opening"),
    [("java", 3000, "class A%d {\n"), ("javascript", 1000, "function f%d() {\n")],
)
def test_units_in_units_in_units_are_cut_to_a_depth(language, depth, opening):
    """What is deeper than some thirty units stays in the unit around it."""
    source = "".join(opening % n for n in range(depth)) + "}\n" * depth
    parts = cut(language, source)
    assert_covered(source.encode(), parts)
    assert max(len(part.symbol.split(".")) for part in parts) == 32


@pytest.mark.parametrize("opening", ["(", "[", "{", "f(", "if (x) {", "- ", "> ", "<a>", "a < "])
def test_brackets_that_never_close_are_no_failure(opening):
    """Every grammar copes with a thousand of them."""
    for language in PARSED:
        source = f"{opening}\n" * 1000
        assert_covered(source.encode(), cut(language, source))


# --- broken sources


@pytest.mark.parametrize(
    ("language", "source", "parts"),
    [
        (
            "python",
            """
            def f():
                return 1

            x = = 2

            class A:
                def g(self):
                    return 1 +

                def h(self): pass
            """,
            [
                (1, 2, "function", "f"),
                (4, 4, "toplevel", ""),
                (6, 6, "class", "A"),
                (7, 8, "method", "A.g"),
                (10, 10, "method", "A.h"),
            ],
        ),
        (
            "java",
            """
            class A {
                void f() { x(; }

                void g() { y(); }
            }
            """,
            [(1, 1, "class", "A"), (2, 2, "method", "A.f"), (4, 4, "method", "A.g")],
        ),
        (
            "go",
            """
            package a

            func f() {
                x := := 2
            }

            func g() {}
            """,
            [(1, 1, "toplevel", ""), (3, 5, "function", "f"), (7, 7, "function", "g")],
        ),
        (
            "c",
            "int f(void) {\n  x = = 2;\n}\n\nint g(void) { return 1; }\n",
            [(1, 3, "function", "f"), (5, 5, "function", "g")],
        ),
    ],
    ids=["python", "java", "go", "c"],
)
def test_units_around_a_syntax_error_are_found(language, source, parts):
    """An error costs what it is in and no more."""
    assert told(language, source) == parts


# --- grammars and queries


@pytest.mark.parametrize("name", PARSED)
def test_every_grammar_loads_and_its_query_compiles(name):
    """Captures are of the kinds that are known, and each pattern tells one."""
    query = Query(grammar(name), query_source(name))
    known = {f"definition.{kind}" for kind in (*UNIT_KINDS, *NAME_KINDS)}
    known |= {f"reference.{kind}" for kind in REFERENCE_KINDS}
    read = (*RELATION_KINDS, "path", "default", "exported")
    known |= {f"relation.{kind}" for kind in read}
    captures = {query.capture_name(index) for index in range(query.capture_count)}
    assert {name for name in captures if "." in name} <= known
    parts = {"name", "scope", "module", "imported", "alias", "path"}
    assert {name for name in captures if "." not in name and name[0] != "_"} <= parts


# --- files without a grammar


PARAGRAPHS = [
    "\n".join(f"key_{block}_{line}: {'v' * 40}" for line in range(8)) for block in range(6)
]


@pytest.mark.parametrize(
    "path",
    ["ci.yml", "conf/app.yaml", "pyproject.toml", "schema.sql", "deploy/Dockerfile", "LICENSE"],
)
def test_files_without_a_grammar_are_windows_cut_at_blank_lines(path):
    """A window takes in as many paragraphs as fit."""
    source = "\n\n".join(PARAGRAPHS) + "\n"
    parts = cut(language_of(path).name, source)
    assert parts == [Part(lines, "window", "", (0, 0), lines) for lines in [(1, 26), (28, 53)]]


def test_a_window_without_blank_lines_is_cut_at_the_least_indentation():
    """A key of the outer mapping begins the next window."""
    block = "job_%d:\n" + "  step: run something long enough to fill a window\n" * 7
    source = "".join(block % number for number in range(6))
    starts = [part.lines[0] for part in cut("yaml", source)]
    assert starts[0] == 1
    assert len(starts) > 1
    assert all(start % 8 == 1 for start in starts)


@pytest.mark.parametrize("width", range(80, 95))
def test_no_window_begins_with_a_closing_bracket(width):
    """It belongs to what it closes, although it stands as far left as what is next."""
    source = f"a {{\n  x: y;\n}} /* {'z' * width} */\n" * 60
    starts = [part.lines[0] for part in cut("css", source)]
    assert len(starts) > 2
    assert all(start % 3 == 1 for start in starts)


def test_a_long_line_is_a_window_by_itself():
    """It can not be cut, so that it alone may exceed the limit."""
    source = "a: 1\n" + "b: " + "x" * 5000 + "\n" + "c: 1\n"
    assert [part.lines for part in cut("yaml", source)] == [(1, 1), (2, 2), (3, 3)]


def test_a_window_has_no_more_than_sixty_lines():
    """Short lines are many, and what is shown should stay readable."""
    assert [part.lines for part in cut("text", "a\n" * 150)] == [(1, 60), (61, 120), (121, 150)]
