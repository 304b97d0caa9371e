"""What holds without a model: dangling names, changed signatures, no test by name."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conftest import Command
from tests.packs import SHOP, TAX, pack_of
from tests.repository import Repository


def facts_of(
    command: Command,
    repository: Repository,
    before: dict[str, str],
    after: dict[str, str | None],
) -> dict[str, list[dict[str, Any]]]:
    """Commit two states and return the facts of the change by kind."""
    repository.commit(before)
    repository.commit(after)
    found: dict[str, list[dict[str, Any]]] = {}
    for fact in pack_of(command, repository, "--base", "HEAD~1", "--budget", "20000")["facts"]:
        found.setdefault(fact["kind"], []).append(fact)
    return found


def places(fact: dict[str, Any]) -> list[tuple[str, int]]:
    """Return path and line of each place of a fact."""
    return [(place["path"], place["line"]) for place in fact["places"]]


RENAMED = TAX.replace("def tax_rate", "def rate_of_tax")


# ---- dangling names


def test_a_renamed_function_that_is_still_called_is_reported(
    repository: Repository, command: Command
) -> None:
    """A forgotten caller is the most common way in which a rename breaks a program."""
    (fact,) = facts_of(command, repository, SHOP, {"shop/tax.py": RENAMED})["dangling"]
    assert "`tax_rate` (function) was defined in shop/tax.py" in fact["text"]
    assert places(fact) == [
        ("shop/invoice.py", 4), ("shop/invoice.py", 10), ("shop/price.py", 3), ("shop/price.py", 9),
    ]  # fmt: skip
    assert fact["places"][-1]["symbol"] == "total_price"
    assert "4 places" in fact["text"]
    assert fact["more"] == 0


def test_a_deleted_file_leaves_its_names_dangling(repository: Repository, command: Command) -> None:
    """Deleting a module that something still imports is the same mistake."""
    found = facts_of(command, repository, SHOP, {"shop/tax.py": None})
    assert "`tax_rate`" in found["dangling"][0]["text"]


@pytest.mark.parametrize(
    "after",
    [
        {"shop/tax.py": RENAMED, "shop/old.py": "def tax_rate(c):\n    return 0\n"},
        {"shop/tax.py": RENAMED + "\n\ntax_rate = rate_of_tax\n"},
        {"shop/tax.py": None, "shop/moved.py": TAX},
        {"shop/tax.py": TAX.replace("def tax_rate(country)", "def tax_rate(land)")},
    ],
)
def test_a_name_that_is_still_defined_somewhere_is_not_reported(
    repository: Repository, command: Command, after: dict[str, str | None]
) -> None:
    """A moved function is no mistake; a false alarm teaches people to skip the facts."""
    assert "dangling" not in facts_of(command, repository, SHOP, after)


def test_a_name_that_nothing_uses_any_more_is_not_reported(
    repository: Repository, command: Command
) -> None:
    """Who renamed all callers has done everything right."""
    after: dict[str, str | None] = {
        path: str(text).replace("tax_rate", "rate_of_tax") for path, text in SHOP.items()
    }
    assert "dangling" not in facts_of(command, repository, SHOP, after)


def test_a_common_method_name_is_not_reported(repository: Repository, command: Command) -> None:
    """``close`` of one class says nothing about the ``close`` that is called elsewhere."""
    before = {
        "a.py": (
            "class Till:\n    def close(self):\n        return 1\n\n"
            "    def open(self):\n        return 2\n"
        ),
        "b.py": "def run(file):\n    file.close()\n",
    }
    after: dict[str, str | None] = {"a.py": before["a.py"].replace("def close", "def shut")}
    assert "dangling" not in facts_of(command, repository, before, after)


def test_a_name_in_another_language_is_not_the_same_name(
    repository: Repository, command: Command
) -> None:
    """A script that calls something of the same name does not call this."""
    before = {**SHOP, "web/use.js": "export function show() { return tax_rate(1); }\n"}
    (fact,) = facts_of(command, repository, before, {"shop/tax.py": RENAMED})["dangling"]
    assert not [path for path, _ in places(fact) if path.endswith(".js")]


def test_many_places_are_bounded_and_the_rest_is_counted(
    repository: Repository, command: Command
) -> None:
    """A thousand callers would fill the pack, and hiding them would belittle the change."""
    use = "def u():\n    return tax_rate(1)\n\n\nfrom shop.tax import tax_rate\n"
    users = {f"use/u{n:02}.py": use for n in range(10)}
    found = facts_of(command, repository, {**SHOP, **users}, {"shop/tax.py": RENAMED})
    (fact,) = found["dangling"]
    assert len(fact["places"]) == 8
    assert fact["more"] == 24 - 8
    assert "24 places" in fact["text"]


def test_many_facts_are_bounded_and_the_rest_is_counted(
    repository: Repository, command: Command
) -> None:
    """A change that breaks fifty names has to say that there are fifty."""
    before = {
        "a.py": "".join(f"def broken_name_{n}():\n    return {n}\n\n\n" for n in range(30)),
        "b.py": "from a import *\n"
        + "".join(f"def use_{n}():\n    return broken_name_{n}()\n\n\n" for n in range(30)),
    }
    repository.commit(before)
    repository.commit({"a.py": "x = 1\n"})
    pack = pack_of(command, repository, "--base", "HEAD~1", "--budget", "20000")
    assert len(pack["facts"]) + pack["facts_more"] == 30
    tight = pack_of(command, repository, "--base", "HEAD~1", "--budget", "2000")
    assert len(tight["facts"]) + tight["facts_more"] == 30
    assert 0 < len(tight["facts"]) < len(pack["facts"])
    assert tight["budget"]["used_facts"] <= 600


# ---- signatures


def test_a_changed_signature_is_reported_with_the_calls_outside_the_change(
    repository: Repository, command: Command
) -> None:
    """A new parameter breaks the callers that were not touched."""
    after: dict[str, str | None] = {
        "shop/tax.py": TAX.replace("def tax_rate(country)", "def tax_rate(country, day)"),
        "shop/price.py": str(SHOP["shop/price.py"]).replace("rate(country)", "rate(country, 1)"),
    }
    (fact,) = facts_of(command, repository, SHOP, after)["signature"]
    assert "from `def tax_rate(country)` to `def tax_rate(country, day)`" in fact["text"]
    assert places(fact) == [("shop/invoice.py", 10)]  # price.py was adapted
    assert "1 unit outside the changed lines calls it" in fact["text"]


def test_a_signature_that_is_only_laid_out_anew_is_not_reported(
    repository: Repository, command: Command
) -> None:
    """A formatter changes white space and nothing else."""
    after: dict[str, str | None] = {
        "shop/tax.py": TAX.replace("def tax_rate(country)", "def  tax_rate(country)"),
    }
    assert "signature" not in facts_of(command, repository, SHOP, after)


def test_a_changed_body_is_no_changed_signature(repository: Repository, command: Command) -> None:
    """The fact says that parameters changed; it must not be there when they did not."""
    after: dict[str, str | None] = {"shop/tax.py": TAX.replace("RATES[country]", "0")}
    assert "signature" not in facts_of(command, repository, SHOP, after)


# ---- tests


def test_a_changed_unit_that_no_test_names_is_reported(
    repository: Repository, command: Command
) -> None:
    """Where no test names a function, a green build says nothing about it."""
    after: dict[str, str | None] = {"shop/tax.py": TAX.replace("RATES[country]", "0")}
    (fact,) = facts_of(command, repository, SHOP, after)["no test by name"]
    assert places(fact) == [("shop/tax.py", 6)]
    assert "1 changed unit" in fact["text"]


def test_a_changed_unit_that_a_test_names_is_not_reported(
    repository: Repository, command: Command
) -> None:
    """The fact has to be one that can be mended by writing a test."""
    after: dict[str, str | None] = {
        "shop/price.py": str(SHOP["shop/price.py"]).replace("net + net", "net - net")
    }
    assert "no test by name" not in facts_of(command, repository, SHOP, after)


def test_a_repository_without_tests_is_not_told_so_at_each_change(
    repository: Repository, command: Command
) -> None:
    """It is no news there, and not what the change is about."""
    before = {path: str(text) for path, text in SHOP.items() if not path.startswith("tests/")}
    after: dict[str, str | None] = {"shop/tax.py": TAX.replace("RATES[country]", "0")}
    assert "no test by name" not in facts_of(command, repository, before, after)


def test_changed_tests_themselves_need_no_test(repository: Repository, command: Command) -> None:
    """A test that nothing calls is the normal case."""
    after: dict[str, str | None] = {
        "tests/test_price.py": str(SHOP["tests/test_price.py"]).replace("== 0", "== 1")
    }
    assert "no test by name" not in facts_of(command, repository, SHOP, after)
