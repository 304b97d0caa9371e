"""The second look at the first candidates."""

from __future__ import annotations

import pytest

from coderag_ci.queries import Query
from coderag_ci.rerank import Heuristic, blend
from tests.conftest import Command
from tests.packs import pack_of, shop
from tests.repository import Repository
from tests.views import search_of


def query(path: str, *names: str, added: str = "return rate") -> Query:
    """Return what a changed unit asks."""
    return Query(
        path,
        names[0] if names else "",
        "function",
        (1, 2),
        added=[added],
        names=dict.fromkeys(names),
    )


def best(files: dict, asked: Query) -> str:
    """Return the path of the doc that the heuristic puts first."""
    search = search_of(files)
    docs = list(range(search.index.size))
    scores = Heuristic(search).scores([asked], docs)
    return search.index.doc(max(docs, key=lambda doc: scores[doc])).path


def test_a_unit_of_the_same_name_comes_first() -> None:
    """The twin in another backend is what a reviewer has to look at."""
    unit = ["rate", "country"]
    files = {
        "a/other.py": (["print_invoice"], [unit]),
        "b/twin.py": (["tax_rate"], [unit]),
        "c/third.py": (["open_till"], [unit]),
    }
    assert best(files, query("x/tax.py", "tax_rate")) == "b/twin.py"


@pytest.mark.parametrize(
    ("changed", "test"),
    [
        ("src/tax.py", "z/test_tax.py"),
        ("src/tax.go", "z/tax_test.go"),
        ("src/tax.ts", "z/tax.spec.ts"),
        ("src/Tax.java", "z/TaxTest.java"),
        ("src/tax.rb", "z/tax_spec.rb"),
        ("src/Tax.cs", "z/TaxTests.cs"),
    ],
)
def test_the_mirrored_test_comes_first(changed: str, test: str) -> None:
    """The test of a changed file is named after it, each language in its own way."""
    unit = ["rate", "country"]
    files = {"a/cart.py": (["one"], [unit]), "b/price.py": (["two"], [unit]), test: (["x"], [unit])}
    assert best(files, query(changed)) == test


def test_a_neighbour_comes_before_a_stranger() -> None:
    """Of two equal hits, the one in the same folder is more likely to matter."""
    unit = ["rate", "country"]
    files = {"a/cart.py": (["one"], [unit]), "shop/price.py": (["two"], [unit])}
    assert best(files, query("shop/tax.py")) == "shop/price.py"


def test_shared_rare_words_come_before_shared_common_ones() -> None:
    """A word that is everywhere says little about where to look."""
    files = {f"a/f{n}.py": (["f"], [["rate", "common"]]) for n in range(8)}
    files["z/special.py"] = (["g"], [["reverse_charge", "common"]])
    asked = query("x/tax.py", added="common reverse_charge")
    assert best(files, asked) == "z/special.py"


def test_without_candidates_or_words_nothing_fails() -> None:
    """A change of blank lines has no words at all."""
    search = search_of({"a/b.py": (["f"], [["rate"]])})
    assert Heuristic(search).scores([query("x.py", added="")], []) == []
    assert len(Heuristic(search).scores([query("x.py", added="")], [0])) == 1
    assert Heuristic(search).scores([], [0]) == [0.0]


def test_the_blend_keeps_the_fused_order_as_the_weight_goes_to_nothing() -> None:
    """A reranker that is given little say must not overturn the recall."""
    search = search_of({f"{n}/a.py": (["f"], [["rate"]]) for n in range(6)})
    docs = [3, 1, 4, 0, 5, 2]
    reverse = [float(n) for n in range(6)]
    for weight in (0.0, 1e-9, 1e-4):
        assert [doc for doc, _ in blend(docs, reverse, weight, search)] == docs
    assert [doc for doc, _ in blend(docs, reverse, 1000.0, search)] == docs[::-1]


def test_the_blend_is_computed_as_described() -> None:
    """Both orders count by rank with k = 10; the scores themselves never do."""
    search = search_of({f"{n}/a.py": (["f"], [["rate"]]) for n in range(2)})
    found = dict(blend([0, 1], [0.1, 1e9], 0.5, search))
    assert found == pytest.approx({0: 1 / 11 + 0.5 / 12, 1: 1 / 12 + 0.5 / 11})


def test_equal_scores_keep_the_fused_order() -> None:
    """A reranker that can not tell has no say."""
    search = search_of({f"{n}/a.py": (["f"], [["rate"]]) for n in range(4)})
    assert [doc for doc, _ in blend([2, 0, 3, 1], [1.0] * 4, 1.0, search)] == [2, 0, 3, 1]


def test_rerank_0_and_none_leave_the_fused_order(repository: Repository, command: Command) -> None:
    """Someone who measures recall alone needs a way to switch the rest off."""
    shop(repository)
    reranked = pack_of(command, repository, "--base", "main")
    assert all("rerank" in e["scores"] for e in reranked["evidence"] if e["scores"])
    for flag in (("--rerank", "0"), ("--rerank-model", "none")):
        pack = pack_of(command, repository, "--base", "main", *flag)
        scored = [e["scores"] for e in pack["evidence"] if e["scores"]]
        assert scored
        assert all(s == {"fused": s["fused"], "final": s["fused"]} for s in scored)


def test_only_the_first_candidates_are_reranked(repository: Repository, command: Command) -> None:
    """Depth bounds what a slow cross-encoder costs."""
    shop(repository)
    pack = pack_of(command, repository, "--base", "main", "--rerank", "1")
    scored = [e["scores"] for e in pack["evidence"] if e["scores"]]
    assert sum("rerank" in s for s in scored) == 1
    assert [s["final"] for s in scored if "rerank" not in s] == [0.0] * (len(scored) - 1)
