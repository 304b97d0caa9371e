"""Builds a repository with a made-up history, the same each time, to mine cases from.

    python benchmarks/synthetic.py DIR [--commits N]

Forty modules of a shop, each with functions that call those of others, and their tests. Each
commit does what real ones do across files: a function gets a parameter and its callers and its
test follow, a function is renamed, or a rule that is written in several places changes. Only a
ranker that follows names, words and twins finds what goes together.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

NOUNS = [
    "invoice",
    "order",
    "basket",
    "customer",
    "address",
    "parcel",
    "shipment",
    "refund",
    "voucher",
    "coupon",
    "catalog",
    "product",
    "variant",
    "price",
    "tax",
    "currency",
    "stock",
    "warehouse",
    "supplier",
    "delivery",
    "return",
    "payment",
    "account",
    "session",
    "wishlist",
    "review",
    "rating",
    "campaign",
    "newsletter",
    "banner",
    "menu",
    "page",
    "asset",
    "locale",
    "channel",
    "audit",
    "report",
    "ledger",
    "quota",
    "token",
]
VERBS = ("load", "store", "check", "merge", "format", "count")
PARAMETERS = ("region", "moment", "tenant", "limit", "reason", "dry_run", "tolerance", "origin")
RULES = ("rounding", "timeout", "retry", "batch", "grace")
_SEED = 7


@dataclass
class Function:
    """A function: what it takes, what it calls, and the rule that it copies, if any."""

    noun: str
    verb: str
    parameters: list[str] = field(default_factory=lambda: ["item"])
    calls: list[Function] = field(default_factory=list)
    rule: str = ""

    @property
    def name(self) -> str:
        """Its name, unique in the repository."""
        return f"{self.verb}_{self.noun}"


def modules(random_: random.Random) -> list[Function]:
    """Return every function of the first commit."""
    functions = [Function(noun, verb) for noun in NOUNS for verb in VERBS]
    for number, function in enumerate(functions):
        earlier = [f for f in functions[:number] if f.noun != function.noun]
        function.calls = random_.sample(earlier, min(len(earlier), random_.randint(0, 2)))
        if random_.random() < 0.15:
            function.rule = random_.choice(RULES)
    return functions


def call_of(function: Function) -> str:
    """Return how a function is called: each further parameter under its own name."""
    first, *more = function.parameters
    return f"{function.name}({', '.join([first, *(f'{name}=None' for name in more)])})"


def render(functions: list[Function], rules: dict[str, int]) -> dict[str, str]:
    """Return the files of a state."""
    files = {}
    for noun in NOUNS:
        own = [f for f in functions if f.noun == noun]
        used = sorted({(c.noun, c.name) for f in own for c in f.calls})
        lines = [f"from shop.{module} import {name}" for module, name in used]
        for function in own:
            lines += ["", "", f"def {function.name}({', '.join(function.parameters)}):"]
            lines.append(f'    """{function.verb.capitalize()} the {noun}s that an item has."""')
            lines.append(f"    {noun}s = [row for row in item if row.{noun} is not None]")
            for called in function.calls:
                lines.append(f"    {noun}s.append({call_of(called)})")
            if function.rule:
                value = rules[function.rule]
                lines.append(f"    if len({noun}s) % {value} != {function.rule}_floor({value}):")
                lines.append(f'        raise ValueError("{function.rule} of {value} exceeded")')
            lines += [
                f"    for {p} in {noun}s:\n        {p}.seen = True" for p in function.parameters[1:]
            ]
            lines.append(f"    return {function.verb}_all({noun}s)")
        files[f"shop/{noun}.py"] = "\n".join(lines).lstrip("\n") + "\n"
        tests = [f"from shop.{noun} import {', '.join(f.name for f in own)}"]
        for function in own:
            tests += ["", "", f"def test_{function.name}(item):"]
            tests.append(f"    assert {call_of(function)} == item.{noun}_{function.verb}")
        files[f"tests/test_{noun}.py"] = "\n".join(tests) + "\n"
    return files


def change(functions: list[Function], rules: dict[str, int], random_: random.Random) -> str:
    """Change a state in place; returns the commit's subject."""
    kind = random_.choice(("parameter", "parameter", "rename", "rule"))
    if kind == "rule":
        name = random_.choice(RULES)
        rules[name] += random_.randint(1, 9)
        return f"Be stricter about {name}"
    called = [f for f in functions if any(f in other.calls for other in functions)]
    function = random_.choice(called)
    if kind == "rename":
        old = function.name
        function.verb = f"{function.verb}_{random_.choice(('every', 'known', 'open', 'recent'))}"
        return f"Say what {old} really does"
    free = [p for p in PARAMETERS if p not in function.parameters]
    if not free:
        return "Touch nothing"
    function.parameters.append(random_.choice(free))
    return f"Know the {function.parameters[-1]} of {function.noun}s"


def git(folder: Path, clock: int, *arguments: str) -> None:
    """Run git with a fixed identity and date, so that ids are the same each time."""
    date = f"{1_700_000_000 + 3600 * clock} +0000"
    names = {f"GIT_{who}_NAME": "Ada" for who in ("AUTHOR", "COMMITTER")}
    mails = {f"GIT_{who}_EMAIL": "ada@example.com" for who in ("AUTHOR", "COMMITTER")}
    dates = {f"GIT_{who}_DATE": date for who in ("AUTHOR", "COMMITTER")}
    subprocess.run(
        ["git", *arguments], cwd=folder, check=True, env={**os.environ, **names, **mails, **dates}
    )


def main() -> None:
    """Build it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--commits", type=int, default=90)
    given = parser.parse_args()
    random_ = random.Random(_SEED)  # noqa: S311  # the same history each time
    functions, rules = modules(random_), dict.fromkeys(RULES, 10)
    given.folder.mkdir(parents=True)
    git(given.folder, 0, "init", "-q", "-b", "main")
    subject = "A shop"
    for number in range(given.commits + 1):
        for path, text in render(functions, rules).items():
            target = given.folder / path
            target.parent.mkdir(exist_ok=True)
            target.write_text(text, encoding="utf-8")
        git(given.folder, number, "add", "-A")
        git(given.folder, number, "commit", "-q", "--allow-empty", "-m", subject)
        subject = change(functions, rules, random_)


if __name__ == "__main__":
    main()
