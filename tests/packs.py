"""Makes packs for tests: a small shop in git, and the command's JSON read back."""

from __future__ import annotations

import json
import re
from typing import Any

from coderag_ci.errors import EXIT_DEGRADED, EXIT_OK
from tests.conftest import Command
from tests.repository import Repository

SHOP: dict[str, str | bytes | None] = {
    "shop/cart.py": '''"""The cart."""

from shop.price import total_price


class Cart:
    """What a customer wants to buy."""

    def __init__(self):
        self.items = []

    def add_item(self, item):
        self.items.append(item)

    def checkout_total(self, country):
        return total_price(self.items, country)
''',
    "shop/price.py": '''"""Prices."""

from shop.tax import tax_rate


def total_price(items, country):
    """Sum the prices of items and add the tax of a country."""
    net = sum(item.price for item in items)
    return net + net * tax_rate(country)
''',
    "shop/tax.py": '''"""Taxes."""

RATES = {"de": 0.19, "fr": 0.2}


def tax_rate(country):
    """Return the rate of value added tax of a country."""
    return RATES[country]
''',
    "shop/invoice.py": '''"""Invoices."""

from shop.price import total_price
from shop.tax import tax_rate


def print_invoice(order):
    """Print what an order costs, with the tax on a line of its own."""
    print(total_price(order.items, order.country))
    print(tax_rate(order.country))


def archive_invoice(order, folder):
    folder.append(order)
''',
    "tests/test_price.py": """from shop.price import total_price


def test_total_price():
    assert total_price([], "de") == 0
""",
    "README.md": "# Shop\n\nSells things, and knows the tax of each country.\n",
}
TAX = str(SHOP["shop/tax.py"])
NEW_TAX = TAX.replace("return RATES[country]", "return RATES.get(country.lower(), 0.0)")


def shop(repository: Repository) -> Repository:
    """Commit the shop on main, and on branch topic a change to how a tax rate is looked up."""
    repository.commit(SHOP, "Open the shop")
    repository.git("checkout", "-q", "-b", "topic")
    repository.commit({"shop/tax.py": NEW_TAX}, "Do not fail for unknown countries")
    return repository


def pack_of(
    command: Command, repository: Repository, *arguments: str, code: int = 0
) -> dict[str, Any]:
    """Run ``context --format json`` and return the pack; the exit code has to be ``code``."""
    result = command("context", "--repo", str(repository.path), "--format", "json", *arguments)
    assert result.code == code, result.err
    pack: dict[str, Any] = json.loads(result.out)
    return pack


def limited(command: Command, repository: Repository, *arguments: str) -> dict[str, Any]:
    """Return the pack of the topic, which has to be degraded, and to say so wherever it is read.

    That is: in the header of each format, in the JSON, in the trace, and by the exit code under
    ``--strict`` alone. The diff is there.
    """
    arguments = ("--base", "main", "--deadline", "60", *arguments)
    pack = pack_of(command, repository, *arguments, "--strict", code=EXIT_DEGRADED)
    lines = pack["degradations"]
    assert lines
    assert [file["path"] for file in pack["diff"]] == ["shop/tax.py"]
    assert pack["diff"][0]["hunks"]
    noted = "; ".join(stage["note"] for stage in pack["trace"]["stages"] if stage["note"])
    assert noted == "; ".join(lines)
    for form in ("markdown", "prompt", "html"):
        place = ("--repo", str(repository.path), "--format", form, "--trace")
        shown = command("context", *place, *arguments)
        assert shown.code == EXIT_OK, shown.err
        header, _, _ = shown.out.partition("RATES")
        assert len(re.findall("vidence (?:is )?limited:", header)) == len(lines)
        assert all(line in shown.err for line in lines)
    return pack


def indexed(pack: dict[str, Any]) -> int:
    """Return how many blobs were read and parsed for a pack."""
    number: int = pack["trace"]["blobs_indexed"]
    return number
