"""Builds evaluation cases and outcomes for the tests."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from coderag_ci.eval.cases import Case, Gold
from coderag_ci.eval.outcome import Outcome, Ranks
from tests.repository import Repository

TAX = """\
def tax(amount, country):
    rate = rate_of(country)
    return amount * rate


def discount(amount):
    return amount * 0.9
"""
RATES = """\
RATES = {"de": 0.19}


def rate_of(country):
    return RATES[country]
"""
INVOICE = """\
from tax import tax


def invoice_total(lines, country):
    amount = sum(line.price for line in lines)
    return amount + tax(amount, country)
"""
TEST = """\
from tax import tax


def test_tax():
    assert tax(100, "de") == 19
"""


def shop(repository: Repository) -> tuple[str, str]:
    """Commit a small shop, then a change of ``tax`` with its caller and test; (base, head)."""
    base = repository.commit(
        {
            "src/tax.py": TAX,
            "src/rates.py": RATES,
            "src/invoice.py": INVOICE,
            "tests/test_tax.py": TEST,
            **{f"src/other{n}.py": f"def other{n}():\n    return {n}\n" for n in range(8)},
        },
        "shop",
    )
    head = repository.commit(
        {
            "src/tax.py": TAX.replace("amount, country", "amount, country, year"),
            "src/invoice.py": INVOICE.replace("tax(amount, country)", "tax(amount, country, 2026)"),
            "tests/test_tax.py": TEST.replace('tax(100, "de")', 'tax(100, "de", 2026)'),
        },
        "Tax rates depend on the year",
    )
    return base, head


def raw_case(base: str, head: str, **changed: Any) -> dict[str, Any]:
    """Return a case of the shop as it stands in a file: what goes with a change of tax.py."""
    return {
        "id": "shop-1",
        "kind": "cochange",
        "repo": "acme/shop",
        "language": "python",
        "base": base,
        "head": head,
        "date": "2026-01-01",
        "query_files": ["src/tax.py"],
        "subject": "Tax rates depend on the year",
        "gold": [
            _item("src/invoice.py", 4, 6, [[6, 6]], "invoice_total", False),
            _item("tests/test_tax.py", 4, 5, [[5, 5]], "test_tax", True),
        ],
        **changed,
    }


def _item(
    path: str, start: int, end: int, hunks: list[list[int]], symbol: str, is_test: bool
) -> dict[str, Any]:
    return {
        "path": path,
        "start": start,
        "end": end,
        "hunks": hunks,
        "symbol": symbol,
        "kind": "function",
        "is_test": is_test,
    }


def write_cases(path: Path, *cases: dict[str, Any] | str) -> Path:
    """Write cases, or lines as they are, one a line."""
    lines = [case if isinstance(case, str) else json.dumps(case) for case in cases]
    path.write_text("\n".join(lines) + "\n")
    return path


def case_of(gold: Sequence[Gold], name: str = "c1", repo: str = "a/b", **more: Any) -> Case:
    """Return a case with some gold."""
    return Case(name, "cochange", repo, "0" * 40, "1" * 40, tuple(gold), **more)


def gold_of(path: str, *hunks: tuple[int, int], **more: Any) -> Gold:
    """Return a gold item that spans its hunks."""
    return Gold(path, hunks[0][0], hunks[-1][1], hunks, **more)


def outcome_of(
    chunk: Sequence[int], name: str = "c1", shown: Sequence[int] = (), chunks: int = 100
) -> Outcome:
    """Return an outcome whose only ranking meets each item at a rank, each in a file of its own."""
    ranks = Ranks(
        tuple(chunk), tuple(chunk), tuple(chunk), tuple(chunk),
        {2000: tuple(shown), 4000: tuple(shown), 8000: tuple(shown), 0: tuple(shown)},
    )  # fmt: skip
    return Outcome(name, {"final": ranks}, chunks, {"recall": 0.5})
