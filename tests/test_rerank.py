"""The second look at the first candidates."""

from __future__ import annotations

import pytest

from coderag_ci.overlap import Overlap
from coderag_ci.pathrules import stem_of
from coderag_ci.queries import Asked, Query
from tests.conftest import Command
from tests.packs import pack_of, shop
from tests.repository import Repository
from tests.views import search_of


class Lines:
    """Stands in for the texts of a view: every blob holds the same line."""

    def __init__(self, lines: dict[str, str]) -> None:
        self._lines = lines

    def load(self, blobs: object) -> None:
        """Nothing has to be read."""

    def lines(self, blob: str) -> list[str]:
        """Return the lines of a blob."""
        return [self._lines.get(blob, "")]


def asked(*names: str, added: str = "return rate") -> Asked:
    """Return what a change of one unit asks."""
    name = names[0] if names else ""
    return Asked([Query("x.py", name, "function", (1, 2), added=[added])], "")


def scores(symbols: list[str], lines: list[str], what: Asked) -> list[float]:
    """Return the score of units, each in a file of its own with one line."""
    files = {f"{n}.py": ([symbol], [["word"]]) for n, symbol in enumerate(symbols)}
    search = search_of(files)
    texts = Lines({search.index.doc(n).blob: line for n, line in enumerate(lines)})
    return [one.gain() for one in Overlap(search, texts).terms(what, range(len(symbols)))]


def test_a_unit_of_a_like_name_gains_the_share_of_common_parts() -> None:
    """The twin in another backend is what a reviewer has to look at."""
    found = scores(["Other.tax_rate", "rate_table", "cart"], ["", "", ""], asked("Shop.tax_rate"))
    assert found == pytest.approx([1.0, 1 / 5, 0.0])


def test_a_unit_with_a_sequence_of_the_changed_lines_gains_by_its_rarity() -> None:
    """Two units with the same line as the change, one with one that stands in it alone."""
    change = asked(added="a = f(b, c)")
    lines = ["a = f(b, c)", "a = f(b, c)", "f(b, c) or f(b, d)", "x y z"]
    found = scores(["p", "q", "r", "s"], lines, change)
    assert found[0] == found[1] > found[2] > found[3] == 0


def test_a_sequence_does_not_reach_over_the_end_of_a_line() -> None:
    """Lines that stand together by accident are no pattern."""
    assert scores(["p"], ["a b"], asked(added="a b")) == [0.0]


def test_without_candidates_names_or_words_nothing_fails() -> None:
    """A change of blank lines has no words at all."""
    assert scores([], [], asked()) == []
    assert scores(["f"], ["x"], Asked([], "")) == [0.0]
    assert scores([""], ["x"], asked(added="")) == [0.0]


@pytest.mark.parametrize(
    "path",
    [
        "src/tax.py", "test_tax.py", "tax_test.go", "tax.spec.ts", "tax.test.tsx", "TaxTest.java",
        "tax_spec.rb", "TaxTests.cs", "tests/Tax.php", "TaxIT.java",
    ],
)  # fmt: skip
def test_a_test_has_the_stem_of_what_it_tests(path: str) -> None:
    """Each language names tests in its own way."""
    assert stem_of(path) == "tax"


def test_rerank_0_and_none_leave_the_fused_order(repository: Repository, command: Command) -> None:
    """Someone who measures recall alone needs a way to switch the rest off."""
    shop(repository)
    for name, sums in (("heuristic", True), ("learned", False)):
        reranked = pack_of(command, repository, "--base", "main", "--rerank-model", name)
        scored = [e["scores"] for e in reranked["evidence"] if e["scores"]]
        same = [s["final"] == pytest.approx(s["fused"] + s["overlap"]) for s in scored]
        assert scored
        assert all(same) if sums else not any(same)
    for flag in (("--rerank", "0"), ("--rerank-model", "none")):
        pack = pack_of(command, repository, "--base", "main", *flag)
        scored = [e["scores"] for e in pack["evidence"] if e["scores"]]
        assert scored
        assert all(s == {"fused": s["fused"], "final": s["fused"]} for s in scored)


def test_what_still_has_the_code_before_the_change_gains_most() -> None:
    """It may have to follow; what has the new code already does."""
    what = Asked(
        [Query("x.py", "f", "function", (1, 2), added=["n(a, b)"], deleted=["o(a, b)"])], ""
    )
    search = search_of({f"{n}.py": ([f"s{n}"], [["word"]]) for n in range(3)})
    held = ["o(a, b)", "n(a, b)", "y"]
    lines = Lines({search.index.doc(n).blob: line for n, line in enumerate(held)})
    old, new, neither = Overlap(search, lines).terms(what, range(3))
    assert old.gain() > new.gain() > neither.gain() == 0
    assert old.before > 0 == new.before
