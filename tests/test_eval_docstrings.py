"""Cases from docstrings: what is asked, which unit answers, and what may not be seen of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from coderag_ci.config import Config
from coderag_ci.eval import cases
from coderag_ci.eval.sight import see
from coderag_ci.gitrepo import GitRepo
from coderag_ci.pathrules import PathRules
from tests.conftest import Command, Result
from tests.repository import Repository

TAX = '''\
"""Taxes: a module is no unit."""


class Rates:
    """The rates of each country that we sell to."""

    def rate(self, country):
        """
        Return the rate of value added tax of a
        :class:`~shop.Country`, e.g. ``0.19``. More is said here.

        :param country: two letters
        """
        return self.known[country]


# kept for old callers
@cached
def gross(net):
    r"""Add the tax to a net price"""
    return net * 1.19
'''


def make(
    command: Command, repository: Repository, *arguments: str
) -> tuple[Result, list[dict[str, Any]]]:
    """Run ``eval docstrings``; returns its result and the cases that it wrote."""
    out = repository.path.parent / "cases.jsonl"
    out.unlink(missing_ok=True)
    result = command(
        "eval", "docstrings", "--repo", str(repository.path), "--out", str(out), *arguments
    )
    lines = out.read_text("utf-8").splitlines() if out.exists() else []
    return result, [json.loads(line) for line in lines]


def asked(
    command: Command, repository: Repository, path: str, text: str | bytes
) -> list[tuple[str, str, int, int, tuple[int, int]]]:
    """Commit one file; return (query, symbol, first line, last line, docstring) of its cases."""
    repository.commit({path: text})
    result, made = make(command, repository)
    assert result.code in (0, 3), result.err
    found = []
    for case in made:
        (gold,) = case["gold"]
        assert gold["path"] == path
        ((first, last),) = gold["hunks"]
        assert gold["start"] <= first <= last <= gold["end"]
        place = (gold["symbol"], gold["start"], gold["end"])
        found.append((case["query"], *place, tuple(case["docstring"])))
    return found


# ---- what is asked, by language


def test_python_asks_for_functions_methods_and_classes(
    repository: Repository, command: Command
) -> None:
    """A docstring is read without its markup, wherever its first sentence begins and ends."""
    assert asked(command, repository, "shop/tax.py", TAX) == [
        ("The rates of each country that we sell to.", "Rates", 4, 14, (5, 5)),
        (
            "Return the rate of value added tax of a Country, e.g. 0.19.",
            "Rates.rate",
            7,
            14,
            (8, 13),
        ),
        ("Add the tax to a net price", "gross", 17, 21, (20, 20)),
    ]


GO = """\
package shop

// Tax adds the tax of a [Country] to a net
// price. It never fails.
//
//go:noinline
func Tax(net int) int {
	return net * 119 / 100
}

// Cart holds what a customer wants to buy
type Cart struct {
	Items []string
}

// Add puts one more item into the cart.
func (c *Cart) Add(item string) {
	c.Items = append(c.Items, item)
}
"""
RUST = """\
/// A cart of [`Item`]s that a customer
/// wants to buy.
#[derive(Debug)]
pub struct Cart {
    items: Vec<String>,
}

impl Cart {
    /**
     * Puts one `&[u8]` into the cart.
     */
    pub fn add(&mut self, item: &[u8]) {
        self.items.push(item);
    }
}
"""
JAVA = """\
package shop;

/**
 * Holds what a customer wants to buy.
 * <p>
 * More of it.
 */
public class Cart {
    /** Puts {@code item} into the {@link Cart shopping cart}. */
    @Override
    public void add(String item) {
        items.add(item);
    }
}
"""
PHP = """\
<?php

class Cart
{
    /**
     * Put one more item into the cart.
     *
     * @param  string  $item
     * @return void
     */
    public function add($item)
    {
        $this->items[] = $item;
    }
}
"""
JAVASCRIPT = """\
/**
 * @description Adds the tax to a [net](https://example.com/net) price.
 * @param {number} net
 */
export function tax(net) {
  return net * 1.19
}
"""
TYPESCRIPT = """\
export class Cart {
  /**
   * `.add()` puts one item into the cart
   *
   * @example
   * cart.add("tea")
   */
  add = (item: string): void => {
    this.items.push(item)
  }
}
"""
CSHARP = """\
namespace Shop
{
    public class Cart
    {
        /// <summary>
        ///     Puts <paramref name="item" /> into the <see cref="T:Cart" /> &amp; saves.
        /// </summary>
        /// <param name="item">What is put there.</param>
        [Pure]
        public void Add(string item)
        {
            items.Add(item);
        }
    }
}
"""
C = """\
/* Add the tax to a net price, as [net][rate]
 * says. */
int tax(int net) {
    return net * 119 / 100;
}
"""
CPP = """\
namespace shop {
/// \\brief Adds the tax to a net price.
/// \\param net the price
int tax(int net) {
    return net * 119 / 100;
}
}
"""
RUBY = """\
module Shop
  # = Cart
  #
  # Holds what a +customer+ wants to buy.
  class Cart
    # Puts one more item into the cart.
    # rubocop:disable Style/Foo
    def add(item)
      @items << item
    end
  end
end
"""


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        (
            "tax.go",
            GO,
            [
                ("Tax adds the tax of a Country to a net price.", "Tax", 7, 9, (3, 6)),
                ("Cart holds what a customer wants to buy", "Cart", 12, 14, (11, 11)),
                ("Add puts one more item into the cart.", "Cart.Add", 17, 19, (16, 16)),
            ],
        ),
        (
            "cart.rs",
            RUST,
            [
                ("A cart of Items that a customer wants to buy.", "Cart", 3, 6, (1, 2)),
                ("Puts one &[u8] into the cart.", "Cart.add", 12, 14, (9, 11)),
            ],
        ),
        (
            "Cart.java",
            JAVA,
            [
                ("Holds what a customer wants to buy.", "Cart", 8, 14, (3, 7)),
                ("Puts item into the shopping cart.", "Cart.add", 10, 13, (9, 9)),
            ],
        ),
        ("cart.php", PHP, [("Put one more item into the cart.", "Cart.add", 11, 14, (5, 10))]),
        ("tax.js", JAVASCRIPT, [("Adds the tax to a net price.", "tax", 5, 7, (1, 4))]),
        (
            "cart.ts",
            TYPESCRIPT,
            [(".add() puts one item into the cart", "Cart.add", 8, 10, (2, 7))],
        ),
        (
            "Cart.cs",
            CSHARP,
            [("Puts item into the Cart & saves.", "Shop.Cart.Add", 9, 13, (5, 8))],
        ),
        ("tax.c", C, [("Add the tax to a net price, as [net][rate] says.", "tax", 3, 5, (1, 2))]),
        ("tax.cpp", CPP, [("Adds the tax to a net price.", "shop.tax", 4, 6, (2, 3))]),
        (
            "cart.rb",
            RUBY,
            [
                ("Holds what a customer wants to buy.", "Shop.Cart", 5, 11, (2, 4)),
                ("Puts one more item into the cart.", "Shop.Cart.add", 8, 10, (6, 7)),
            ],
        ),
    ],
)
def test_a_doc_comment_asks_for_the_definition_below_it(
    repository: Repository, command: Command, path: str, text: str, expected: list[object]
) -> None:
    """In every language the gold is the definition's own lines, since those above are blanked."""
    assert asked(command, repository, path, text) == expected


@pytest.mark.parametrize(("path", "text"), [("tax.py", TAX), ("tax.go", GO), ("cart.cs", CSHARP)])
def test_windows_line_endings_change_nothing(
    repository: Repository, command: Command, path: str, text: str
) -> None:
    """A repository with CRLF asks the same, of the same lines."""
    plain = asked(command, repository, path, text)
    assert len(plain) > 0
    assert asked(command, repository, path, text.replace("\n", "\r\n").encode()) == plain


def test_letters_that_are_not_ascii_stay_as_they_are(
    repository: Repository, command: Command
) -> None:
    """A sentence may be in any language that sets its words apart; bytes are not taken for text."""
    text = (
        'def größe(x):\n    """Liefert die Größe — in Zentimetern. Sonst nichts."""\n    return x\n'
    )
    assert asked(command, repository, "maße.py", text) == [
        ("Liefert die Größe — in Zentimetern.", "größe", 1, 3, (2, 2))
    ]
    latin = b'def f(x):\n    """Liefert die Gr\xf6\xdfe in Zentimetern."""\n    return x\n'
    repository.commit({"maße.py": None})
    assert asked(command, repository, "latin.py", latin) == []


def test_a_long_sentence_is_cut_between_words(repository: Repository, command: Command) -> None:
    """A page without a full stop would be no question."""
    words = " ".join(["word"] * 100)
    text = f'def f():\n    """{words}"""\n    return 1\n'
    (found,) = asked(command, repository, "long.py", text)
    assert found[0] == " ".join(["word"] * 60)


# ---- what is no question


ASKED = "Return the answer to everything."
PYTHON_F = f'def f(x):\n    """{ASKED}"""\n    return x\n'
C_F = "int f(void) {\n    return 1;\n}\n"
GO_F = "func F() int {\n\treturn 1\n}\n"
JAVA_F = "class F {\n    int x;\n}\n"
JS_F = "function f() {\n  return 1\n}\n"
RUST_F = "fn f() {\n    g();\n}\n"
RUBY_F = "def f\n  1\nend\n"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("f.py", PYTHON_F),
        ("f.c", f"/* {ASKED} */\n{C_F}"),
        ("f.go", f"package a\n\n// {ASKED}\n{GO_F}"),
        ("F.java", f"/** {ASKED} */\n{JAVA_F}"),
        ("f.js", f"/** {ASKED} */\n{JS_F}"),
        ("f.rs", f"/// {ASKED}\n#[inline]\n{RUST_F}"),
        ("f.rb", f"# {ASKED}\n{RUBY_F}"),
    ],
)
def test_what_is_left_out_below_is_asked_where_it_is_well_formed(
    repository: Repository, command: Command, path: str, text: str
) -> None:
    """Otherwise the next test would hold for any reason at all."""
    assert [found[0] for found in asked(command, repository, path, text)] == [ASKED]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("one_line.py", f'def f(): "{ASKED}"\n'),
        ("code_after.py", PYTHON_F.replace('."""', '."""; y = 1')),
        ("code_before.py", f'class A: """{ASKED}"""; x = 1\n'),
        ("empty.py", PYTHON_F.replace("    return x\n", "")),
        ("comment_only.py", PYTHON_F.replace("return x", "# end")),
        ("short.py", PYTHON_F.replace(" to everything", "")),
        ("tags.py", PYTHON_F.replace(ASKED, ":param x: the answer to everything")),
        ("bytes.py", PYTHON_F.replace('"""R', 'b"""R')),
        ("introduction.py", PYTHON_F.replace("everything.", "all these:\n\n    - a\n    ")),
        ("large.py", PYTHON_F + "#\n" * 100_000),
        ("tests/test_f.py", PYTHON_F),
        ("vendor/f.py", PYTHON_F),
        ("f_pb2.py", PYTHON_F),
        ("README.md", f"# Answers\n\n{ASKED}\n"),
        ("apart.go", f"package a\n\n// {ASKED}\n\n{GO_F}"),
        ("code.go", f"package a\n\n// if x == answer {{\n// to it all\n{GO_F}"),
        ("made.go", f"// Code generated by x. DO NOT EDIT.\npackage a\n\n// {ASKED}\n{GO_F}"),
        ("trailing.c", f"int x; /* {ASKED} */\n{C_F}"),
        ("code.c", f"/* return answer(to, every, thing); */\n{C_F}"),
        ("banner.c", f"/* -------- The answer to everything -------- */\n{C_F}"),
        ("pieces.c", f"/* Return the answer, */\n/* which is to everything. */\n{C_F}"),
        ("Licence.java", f"/**\n * Licensed under the Apache License, 2.0.\n */\n{JAVA_F}"),
        ("Plain.java", f"/* {ASKED} */\n{JAVA_F}"),
        ("Inherited.java", f"/** {{@inheritDoc}} {ASKED} */\n{JAVA_F}"),
        ("Deprecated.java", f"/** @deprecated use the other one instead */\n{JAVA_F}"),
        ("code_after.js", f"/** {ASKED} */ let x = 1\n{JS_F}"),
        ("lint.js", f"/** eslint-disable no-var and all others */\n{JS_F}"),
        ("lint.rb", f"# rubocop:disable Style/One, Style/Two and all\n{RUBY_F}"),
        ("pieces.rs", f"/// {ASKED}\n#[inline]\n/// And more of it.\n{RUST_F}"),
    ],
)
def test_what_is_no_question_is_left_out(
    repository: Repository, command: Command, path: str, text: str
) -> None:
    """A case without a fair question and one certain answer would only blur the figures."""
    assert asked(command, repository, path, text) == []


def test_a_sentence_that_stands_twice_is_asked_of_neither(
    repository: Repository, command: Command
) -> None:
    """Either unit would be a right answer, and one of them would count as wrong."""
    twice = 'def {}():\n    """Return the answer to everything."""\n    return 1\n'
    once = 'def three():\n    """Return the answer to nothing."""\n    return 3\n'
    text = "\n".join([twice.format("one"), twice.format("two").replace("Return", "return"), once])
    repository.commit({"a.py": text})
    result, made = make(command, repository)
    assert [case["gold"][0]["symbol"] for case in made] == ["three"]
    assert result.out.startswith("1 cases out of 3 documented units in 1 files")


def test_a_licence_above_a_doc_comment_does_not_hide_it(
    repository: Repository, command: Command
) -> None:
    """Only the comment next to the definition speaks of it."""
    text = f"/* Copyright (c) 2024 Ada. */\n/** {ASKED} */\n{JAVA_F}"
    assert asked(command, repository, "F.java", text) == [(ASKED, "F", 3, 5, (2, 2))]


def test_overloads_are_cases_of_their_own(repository: Repository, command: Command) -> None:
    """They share path and symbol; with one id for all of them, all but one would be skipped."""
    body = "    int f({} x) {{\n        return 1;\n    }}\n"
    text = (
        "class A {\n    /** Does it with an int. */\n"
        + body.format("int")
        + "    /** Does it with a long. */\n"
        + body.format("long")
        + "}\n"
    )
    repository.commit({"A.java": text})
    _, made = make(command, repository)
    assert [case["gold"][0]["symbol"] for case in made] == ["A.f", "A.f"]
    assert len({case["id"] for case in made}) == 2


# ---- which cases, and what they hold


def many(repository: Repository) -> str:
    """Commit ten files of four documented functions each; returns the commit."""
    one = 'def f{0}_{1}():\n    """Return the answer number {0} of row {1}."""\n    return {0}\n'
    return repository.commit(
        {f"p/m{n}.py": "\n\n".join(one.format(n, k) for k in range(4)) for n in range(10)}
    )


def test_a_limit_takes_from_the_whole_repository_and_always_the_same(
    repository: Repository, command: Command
) -> None:
    """The first files of a repository are not like the others; runs have to be comparable."""
    many(repository)
    result, made = make(command, repository, "--limit", "12")
    assert result.out.startswith("12 cases out of 40 documented units in 10 files, written to ")
    paths = [case["gold"][0]["path"] for case in made]
    assert len(made) == 12
    assert len(set(paths)) > 4
    order = [(case["gold"][0]["path"], case["docstring"]) for case in made]
    assert order == sorted(order)
    assert make(command, repository, "--limit", "12")[1] == made
    every = make(command, repository)[1]
    assert len(every) == 40
    assert {case["id"] for case in made} < {case["id"] for case in every}


def test_a_case_says_all_that_a_run_needs(repository: Repository, command: Command) -> None:
    """Commit, language and kinds are what results are split by."""
    repository.git("remote", "add", "origin", "https://example.com/ada/shop.git")
    first = repository.commit({"shop/tax.py": TAX})
    repository.commit({"shop/tax.py": "x = 1\n"})
    result, made = make(command, repository, "--ref", "HEAD~1", "-q")
    assert (result.code, result.err) == (0, "")
    case = made[1]
    assert case["id"].startswith("ada/shop-doc-")
    assert len(case["id"]) == len("ada/shop-doc-") + 10
    assert (case["kind"], case["repo"], case["language"]) == ("docstring", "ada/shop", "python")
    assert case["base"] == case["head"] == first
    assert (case["gold"][0]["kind"], case["gold"][0]["is_test"]) == ("method", False)


# ---- what may be seen of it


def test_a_word_of_the_docstring_alone_is_not_in_the_view(
    repository: Repository, command: Command
) -> None:
    """A docstring that leaks into the index answers its own question."""
    python = PYTHON_F.replace("the answer to", "the zyzzyva of\n    all the answers,")
    go = f"package b\n\n// F holds a quokkaword of answers.\n{GO_F}"
    repository.commit({"a.py": python, "b.go": go})
    out = repository.path.parent / "cases.jsonl"
    assert make(command, repository)[0].code == 0
    repo = GitRepo(str(repository.path))
    for (_, case), word in zip(cases.read(str(out))[0], (b"zyzzyva", b"quokkaword"), strict=True):
        assert word in case.query.encode()
        seen = see(repo, case, PathRules(Config())).view
        (blob,) = (entry.blob for entry in seen.entries if entry.path == case.gold[0].path)
        assert word not in seen.contents[blob]
        assert b"answers" not in seen.contents[blob]
        assert b"return " in seen.contents[blob]


def test_no_made_case_is_skipped_when_it_is_run(repository: Repository, command: Command) -> None:
    """Cases are for ``eval run``; one that it can not run would silently shrink a benchmark."""
    texts = (GO, RUST, JAVA, PHP, JAVASCRIPT, TYPESCRIPT, CSHARP, C, CPP, RUBY)
    ends = ("go", "rs", "java", "php", "js", "ts", "cs", "c", "cpp", "rb")
    folders = {f"{end}/cart.{end}": text for end, text in zip(ends, texts, strict=True)}
    repository.commit({"shop/tax.py": TAX, **folders})
    assert make(command, repository)[0].code == 0
    out, results = (repository.path.parent / name for name in ("cases.jsonl", "results.json"))
    place = str(repository.path)
    result = command(
        "eval", "run", "--cases", str(out), "--repo", place, "--jobs", "1", "--out", str(results)
    )
    assert result.code == 0, result.err
    assert "skipped" not in result.err
    made = json.loads(results.read_bytes())
    assert made["skipped"] == []
    assert made["overall"]["final"]["chunk"]["hit@20"]["value"] > 0


# ---- what goes wrong


@pytest.mark.parametrize("text", ["def f():\n    return 1\n", "# nothing\n"])
def test_a_repository_without_docstrings_writes_nothing(
    repository: Repository, command: Command, text: str
) -> None:
    """An empty file of cases would only fail later."""
    repository.commit({"a.py": text})
    result, made = make(command, repository)
    assert result.code == 3
    assert "no documented unit in" in result.err
    assert not (repository.path.parent / "cases.jsonl").exists()
    assert made == []


def test_an_unknown_ref_no_repository_and_no_place_to_write_are_said(
    repository: Repository, command: Command, tmp_path: Path
) -> None:
    """Each ends in the exit code that it has elsewhere."""
    repository.commit({"shop/tax.py": TAX})
    unknown, _ = make(command, repository, "--ref", "nowhere")
    assert (unknown.code, "unknown ref: nowhere" in unknown.err) == (3, True)
    option, _ = make(command, repository, "--ref=-x")
    assert (option.code, "not a ref" in option.err) == (2, True)
    empty = tmp_path / "empty"
    empty.mkdir()
    none = command("eval", "docstrings", "--repo", str(empty), "--out", str(tmp_path / "c.jsonl"))
    assert none.code == 3
    place = str(tmp_path / "gone" / "c.jsonl")
    lost = command("eval", "docstrings", "--repo", str(repository.path), "--out", place)
    assert (lost.code, "can not write" in lost.err) == (3, True)
    assert make(command, repository, "--limit", "0")[0].code == 2
