"""What holds without a model, each kind where it is told and where it must not be."""

from __future__ import annotations

import json
from pathlib import Path
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
        {"shop/tax.py": RENAMED + "\n\ntax_rate = rate_of_tax\n"},
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
    wanted = "from shop.tax import tax_rate\n\n\n"
    users = {
        f"use/u{n:02}.py": f"{wanted}def u{n}():\n    return tax_rate({n})\n" for n in range(20)
    }
    found = facts_of(command, repository, {**SHOP, **users}, {"shop/tax.py": RENAMED})
    (fact,) = found["dangling"]
    assert len(fact["places"]) == 8
    assert fact["more"] == 44 - 8
    assert "44 places" in fact["text"]


def test_many_facts_are_bounded_and_the_rest_is_counted(
    repository: Repository, command: Command
) -> None:
    """A change that breaks fifty names has to say that there are fifty."""
    before = {
        "a.py": "".join(f"def broken_name_{n}():\n    return {n}\n\n\n" for n in range(30)),
        "b.py": "from a import *\n\n\n"
        + "".join(f"def use_{n}():\n    return broken_name_{n}()\n\n\n" for n in range(30)),
    }
    repository.commit(before)
    repository.commit({"a.py": None})
    pack = pack_of(command, repository, "--base", "HEAD~1", "--budget", "20000")
    # and that the file is gone, and where the lines came from
    assert len(pack["facts"]) + pack["facts_more"] == 32
    tight = pack_of(command, repository, "--base", "HEAD~1", "--budget", "2000")
    assert len(tight["facts"]) + tight["facts_more"] == 32
    assert 0 < len(tight["facts"]) < len(pack["facts"])
    assert tight["budget"]["used_facts"] <= 600


# ---- files that are imported and gone

BODY = "".join(f"    total = total * {n} + 1\n" for n in range(12))
MODULE = f"def rate(total):\n{BODY}    return total\n"
JS = "export function rate(total) {\n" + BODY.replace("1\n", "1;\n") + "  return total;\n}\n"
GO = "package tax\n\nfunc Rate(total int) int {\n" + BODY + "\treturn total\n}\n"
JAVA = "package shop.tax;\n\npublic class Rate {\n  int of(int total) {\n    return 1;\n  }\n}\n"
PHP = "<?php\nnamespace Shop\\Tax;\n\nclass Rate {\n  function of($t) {\n    return 1;\n  }\n}\n"
CS = "namespace Shop.Tax {\n  class Rate {\n    int Of(int t) {\n      return 1;\n    }\n  }\n}\n"
# By case: before, the path that goes, where it goes, what is said to be gone, and the places.
GONE = {
    "python": (
        {
            "shop/__init__.py": "",
            "shop/tax.py": MODULE,
            "a.py": "import shop.tax\n\nx = shop.tax.rate(1)\n",
            "b.py": "from shop.tax import (\n    rate,\n)\n",
            "c.py": "from shop import (\n    other,\n    tax,\n)\n",
            "shop/d.py": "from . import tax\n",
            "shop/e.py": "from .tax import rate as r\n",
            "shop/f.py": "try:\n    from .tax import rate\nexcept ImportError:\n    rate = None\n",
            "g.py": "from cash import tax\n\nfrom cash.tax import rate\n",
        },
        "shop/tax.py", "shop/duty.py", "shop/tax.py",
        [("a.py", 1), ("b.py", 1), ("c.py", 3), ("shop/d.py", 1), ("shop/e.py", 1)],
    ),
    "typescript": (
        {
            "src/tax.ts": JS,
            "src/a.ts": "import { rate } from './tax';\n",
            "src/b.ts": "import {\n  rate,\n} from '../src/tax.js';\n",
            "c.js": "const { rate } = require('./src/tax');\n",
            "src/d.ts": "import { rate } from 'tax';\n",
        },
        "src/tax.ts", "src/duty.ts", "src/tax.ts", [("c.js", 1), ("src/a.ts", 1), ("src/b.ts", 3)],
    ),
    "go": (
        {
            "tax/tax.go": GO,
            "a.go": 'package shop\n\nimport (\n\t"fmt"\n\n\t"ex.com/shop/tax"\n)\n',
            "b.go": 'package shop\n\nimport "golang.org/x/text"\n',
        },
        "tax/tax.go", "duty/tax.go", "tax", [("a.go", 6)],
    ),
    "java": (
        {
            "src/shop/tax/Rate.java": JAVA,
            "src/shop/tax/Other.java": "package shop.tax;\n\nclass Other {}\n",
            "src/A.java": "package a;\n\nimport shop.tax.Other;\nimport shop.tax.Rate;\n",
        },
        "src/shop/tax/Rate.java", "src/shop/duty/Rate.java", "shop.tax.Rate", [("src/A.java", 4)],
    ),
    "c#": (
        {"Tax/Rate.cs": CS, "A.cs": "using System;\nusing Shop.Tax;\n\nclass A { }\n"},
        "Tax/Rate.cs", "Duty/Rate.cs", "Shop.Tax", [("A.cs", 2)],
    ),
    "php": (
        {"Tax/Rate.php": PHP, "a.php": "<?php\nuse Shop\\Tax\\Rate;\n\n$x = new Rate();\n"},
        "Tax/Rate.php", "Duty/Rate.php", "Shop\\Tax\\Rate", [("a.php", 2)],
    ),
    "c": (
        {
            "tax.h": "int rate(int total);\nint more(int total);\nint most(int total);\n",
            "tax.c": '#include "tax.h"\n\nint rate(int total) {\n    return total;\n}\n',
            "a.c": "#include <tax.h>\n",
        },
        "tax.h", "duty.h", "tax.h", [("tax.c", 1)],
    ),
    "ruby": (
        {
            "lib/tax.rb": f"def rate(total)\n{BODY}end\n",
            "lib/a.rb": "require_relative 'tax'\n",
            "b.rb": "require 'tax'\n",
        },
        "lib/tax.rb", "lib/duty.rb", "lib/tax.rb", [("lib/a.rb", 1)],
    ),
}  # fmt: skip


@pytest.mark.parametrize("moved", [True, False], ids=["moved", "deleted"])
@pytest.mark.parametrize("case", GONE)
def test_a_file_that_is_gone_and_still_imported_is_reported(
    repository: Repository, command: Command, case: str, moved: bool
) -> None:
    """A module moves and one importer is forgotten: the program fails when it starts."""
    before, old, new, name, where = GONE[case]
    text = before[old].replace("shop.tax", "shop.duty").replace("Shop\\Tax", "Shop\\Duty")
    after = {old: None, new: text.replace("Shop.Tax", "Shop.Duty")} if moved else {old: None}
    found = facts_of(command, repository, before, after)["dangling"]
    (fact,) = [one for one in found if f"`{name}` is gone" in one["text"]]
    assert places(fact) == where
    assert (f"`{name}` is gone (now {new})" in fact["text"]) == (moved and name == old)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"a.py": "import tax\n"}, {"tax/__init__.py": MODULE}),
        ({"a.py": "import tax\n"}, {"src/tax.py": MODULE}),
        ({"a.py": "import tax\n"}, {"requirements.txt": "requests\ntax>=2\n"}),
        ({"a.py": "import tax\n"}, {".gitignore": "tax.py\n"}),
        ({"a.py": "import tax\n"}, {"tax.py.in": MODULE}),
        ({"a.py": "import tax\n"}, {"a.py": "import duty as tax\n"}),
        ({"a.py": "import cash.tax\nfrom cash import tax\n"}, {"duty.py": MODULE}),
    ],
    ids=["package", "other root", "library", "built", "template", "mended", "other"],
)
def test_a_file_that_is_found_otherwise_is_not_reported(
    repository: Repository,
    command: Command,
    before: dict[str, str],
    after: dict[str, str | None],
) -> None:
    """A module becomes a package, a library or a product of the build, and imports go on."""
    before = {"tax.py": MODULE, **before}
    assert "dangling" not in facts_of(command, repository, before, {"tax.py": None, **after})


def test_a_package_that_gives_what_was_its_module_is_not_reported(
    repository: Repository, command: Command
) -> None:
    """``from shop import tax`` works as long as the package has something of that name."""
    before = {
        "shop/__init__.py": "",
        "shop/tax.py": MODULE,
        "shop/duty.py": "x = 1\n",
        "a.py": "from shop import tax\n",
    }
    after = {"shop/tax.py": None, "shop/__init__.py": "from . import duty as tax\n"}
    assert "dangling" not in facts_of(command, repository, before, after)


# ---- names that any code could have, imported by name

SHARED = "def shared(a):\n    return a\n"
USES_SHARED = "from lib import shared\n\n\ndef run():\n    return shared(1)\n"
# By language: before, the changed files after, and the places of the fact.
SHORT = {
    "python": (
        {"lib.py": SHARED, "a.py": USES_SHARED, "b.py": "def run(shared):\n    shared(1)\n"},
        {"lib.py": SHARED.replace("(a)", "(a, b)")},
        [("a.py", 5)],
    ),
    "another name": (
        {"lib.py": SHARED, "a.py": "from lib import shared as s\n\nx = s(1)\n"},
        {"lib.py": SHARED.replace("(a)", "(a, b)")},
        [("a.py", 3)],
    ),
    "a class": (
        {
            "lib.py": "class Till:\n    def __init__(self, a):\n        self.a = a\n",
            "a.py": "import lib\n\nx = lib.Till(1)\n",
            "b.py": "from unittest import mock\n\nimport lib\n\nx = mock.Till(1)\n",
        },
        {"lib.py": "class Till:\n    def __init__(self, a, b):\n        self.a = a\n"},
        [("a.py", 3)],
    ),
    "many of that name": (
        {"a.py": USES_SHARED, "lib.py": SHARED, **{f"m{n}.py": SHARED for n in range(40)}},
        {"lib.py": SHARED.replace("(a)", "(a, b)")},
        [("a.py", 5)],
    ),
    "typescript": (
        {
            "src/lib.ts": "export function get(a: string) {\n  return a;\n}\n",
            "src/a.ts": "import { get } from './lib';\n\nexport const x = get('1');\n",
            "src/b.ts": "export const y = (map: Map<string, string>) => map.get('1');\n",
        },
        {"src/lib.ts": "export function get(a: string, b: string) {\n  return a;\n}\n"},
        [("src/a.ts", 3)],
    ),
    "go": (
        {
            "tax/tax.go": "package tax\n\nfunc Of(a int) int {\n\treturn a\n}\n",
            "a.go": 'package shop\n\nimport "ex.com/shop/tax"\n\n'
            "func run() int {\n\treturn tax.Of(1)\n}\n",
        },
        {"tax/tax.go": "package tax\n\nfunc Of(a, b int) int {\n\treturn a\n}\n"},
        [("a.go", 6)],
    ),
}


@pytest.mark.parametrize("case", SHORT)
def test_a_changed_signature_of_a_short_name_that_is_imported_is_reported(
    repository: Repository, command: Command, case: str
) -> None:
    """An import says which function is meant, however short or common its name is."""
    before, after, where = SHORT[case]
    (fact,) = facts_of(command, repository, before, {**after})["signature"]
    assert places(fact) == where


def test_thousands_of_users_are_counted_and_not_said_to_be_unknown(
    repository: Repository, command: Command
) -> None:
    """What everything calls is what must not be changed lightly."""
    repository.commit({"lib.py": SHARED, **{f"u{n}.py": USES_SHARED for n in range(400)}})
    repository.commit({"lib.py": SHARED.replace("(a)", "(a, b)")})
    pack = pack_of(command, repository, "--base", "HEAD~1")
    (fact,) = [f for f in pack["facts"] if f["kind"] == "signature"]
    assert "400 units outside the changed lines call it" in fact["text"]
    (reason,) = [s["reason"] for s in pack["skipped"] if "`shared`" in s["reason"]]
    assert reason == "used in so many units that it ranks none of them: `shared` (800)"


@pytest.mark.parametrize(
    "after",
    [
        {"lib.py": "x = 1\n"},
        {"lib.py": "x = 1\n", "new.py": SHARED},
        {"lib.py": "x = 1\n", "new.py": SHARED, "c.py": "from new import shared\n"},
    ],
    ids=["nowhere", "elsewhere", "elsewhere, and imported from there"],
)
def test_a_short_name_that_is_still_imported_is_reported(
    repository: Repository, command: Command, after: dict[str, str | None]
) -> None:
    """The import fails, whatever else has the same name."""
    before = {
        "lib.py": SHARED + "\n\nx = 1\n",
        "a.py": USES_SHARED,
        "b.py": "def run(shared):\n    return shared(1)\n",
        "c.py": "y = 1\n",
    }
    (fact,) = facts_of(command, repository, before, after)["dangling"]
    assert places(fact) == [("a.py", 1), ("a.py", 5)]
    assert ("defined nowhere now" if "new.py" not in after else "not there now") in fact["text"]


@pytest.mark.parametrize(
    "lib",
    [
        "from new import shared\n",
        "from new import *\n",
        "import new\n\n\ndef __getattr__(name):\n    return getattr(new, name)\n",
        "import new\n\nshared = new.shared\n",
    ],
)
def test_a_name_that_its_file_still_gives_is_not_reported(
    repository: Repository, command: Command, lib: str
) -> None:
    """Who moves a function and leaves its name at the old place breaks nothing."""
    before = {"lib.py": SHARED, "a.py": USES_SHARED}
    after: dict[str, str | None] = {"lib.py": lib, "new.py": SHARED}
    assert "dangling" not in facts_of(command, repository, before, after)


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


@pytest.mark.parametrize(("extends", "told"), [("extends Till ", True), ("", False)])
def test_a_call_without_a_receiver_counts_in_a_subclass(
    repository: Repository, command: Command, extends: str, told: bool
) -> None:
    """In another class, a method of the same name is that class's own or a stranger's."""
    till = "class Till {\n    int closeNow(int a) {\n        return a;\n    }\n}\n"
    desk = f"class Desk {extends}{{\n    int run() {{\n        return closeNow(1);\n    }}\n}}\n"
    after: dict[str, str | None] = {"Till.java": till.replace("int a)", "int a, int b)")}
    found = facts_of(command, repository, {"Till.java": till, "Desk.java": desk}, after)
    assert ("signature" in found) == told


def test_a_signature_without_a_body_is_read_to_its_end(
    repository: Repository, command: Command
) -> None:
    """An interface's method that is only laid out anew must not look changed."""
    one = "<?php\ninterface Jar {\n    public function takeCookies(int $a, int $b): void;\n}\n"
    more = one.replace("(int $a, int $b)", "(\n        int $a,\n        int $b,\n    )")
    use = "<?php\nfunction run(Jar $jar) {\n    $jar->takeCookies(1, 2);\n}\n"
    assert "signature" not in facts_of(
        command, repository, {"a.php": one, "b.php": use}, {"a.php": more}
    )


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
    assert fact["text"] == "no test refers by name to `tax_rate`"


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


def test_a_name_that_the_change_imports_from_elsewhere_is_not_reported(
    repository: Repository, command: Command
) -> None:
    """A home-made function that gave way to a library's of the same name is no loss."""
    run = "def run(x):\n    return parse_the_date(x)\n"
    before = {
        "a.py": "def parse_the_date(x):\n    return x\n\n\n" + run.replace("run", "day"),
        "b.py": "from a import parse_the_date\n\n\n" + run,
    }
    after: dict[str, str | None] = {
        "a.py": "from dates import parse_the_date\n\n\n" + run.replace("run", "day")
    }
    assert "dangling" not in facts_of(command, repository, before, after)


def test_the_name_of_a_builtin_is_not_reported(repository: Repository, command: Command) -> None:
    """``isinstance`` is still there when a home-made one is gone."""
    before = {
        "a.py": "def isinstance(x, y):\n    return True\n",
        "b.py": "from a import isinstance\n\n\ndef run(x):\n    return isinstance(x, int)\n",
    }
    assert "dangling" not in facts_of(command, repository, before, {"a.py": "x = 1\n"})


def test_a_name_that_three_files_defined_is_not_reported(
    repository: Repository, command: Command
) -> None:
    """What everyone defines belongs to no one, and its uses can mean anything."""
    define = "class Job{}:\n    def run_it_now(self):\n        return {}\n"
    before = {f"j{n}.py": define.format(n, n) for n in range(3)}
    before["use.py"] = "def go(job):\n    return job.run_it_now()\n"
    after: dict[str, str | None] = dict.fromkeys((f"j{n}.py" for n in range(3)), "x = 1\n")
    assert "dangling" not in facts_of(command, repository, before, after)


def test_a_name_of_a_module_that_is_not_meant_is_not_reported(
    repository: Repository, command: Command
) -> None:
    """``money.tax_rate`` of a library is not the function of that name that is gone here."""
    before = {
        "shop/tax.py": TAX,
        "other.py": "import money\n\n\ndef run(x):\n    return money.tax_rate(x)\n",
        "third.py": "def run(tax_rate):\n    return tax_rate(1)\n",
    }
    assert "dangling" not in facts_of(command, repository, before, {"shop/tax.py": RENAMED})


def test_a_macro_for_want_of_another_is_not_reported(
    repository: Repository, command: Command
) -> None:
    """What was defined ``#ifndef`` comes from a header elsewhere."""
    before = {
        "a.c": "#ifndef TEXT_LENGTH\n#define TEXT_LENGTH(s) strlen(s)\n#endif\n\nint x;\n",
        "b.c": "int run(char *s) {\n    return TEXT_LENGTH(s);\n}\n",
    }
    assert "dangling" not in facts_of(command, repository, before, {"a.c": "int x;\n"})


def test_a_function_inside_a_function_is_not_reported(
    repository: Repository, command: Command
) -> None:
    """Nothing outside can name it, so what looks like its use is something else's."""
    before = {
        "a.py": "def outer():\n    def inner_wrapper(x):\n        return x\n    return 1\n",
        "b.py": "from a import *\n\n\ndef run():\n    return inner_wrapper(1)\n",
    }
    after: dict[str, str | None] = {"a.py": "def outer():\n    return 1\n"}
    assert "dangling" not in facts_of(command, repository, before, after)


# ---- twins

LOCK = '''def lock_{0}(rows):
    """Lock what is about to change."""
    return rows.order_by("pk").select_for_update(of=(["self"]))
'''
NEW_LOCK = LOCK.replace('(["self"])', '["self"]')


def test_the_old_pattern_that_is_still_elsewhere_is_reported(
    repository: Repository, command: Command
) -> None:
    """Two of three places were mended; the third is what a reviewer would look for."""
    names = ("cart", "page", "order")
    before: dict[str, str] = {f"{name}/locks.py": LOCK.format(name) for name in names}
    before |= {f"plain{n}.py": f"def plain_{n}():\n    return {n}\n" for n in range(30)}
    after: dict[str, str | None] = {f"{n}/locks.py": NEW_LOCK.format(n) for n in names[:2]}
    (fact,) = facts_of(command, repository, before, after)["twin"]
    assert places(fact) == [("order/locks.py", 3)]
    assert '`(of=(["self`' in fact["text"]
    assert "2 lines of 2 files, and the same tokens are still in 1 place" in fact["text"]


@pytest.mark.parametrize("mended", [1, 3])
def test_a_pattern_that_went_once_or_everywhere_is_not_reported(
    repository: Repository, command: Command, mended: int
) -> None:
    """One line that changed may be about that one place; three of three leave nothing."""
    names = ("cart", "page", "order")
    before = {f"{name}/locks.py": LOCK.format(name) for name in names}
    after: dict[str, str | None] = {f"{n}/locks.py": NEW_LOCK.format(n) for n in names[:mended]}
    assert "twin" not in facts_of(command, repository, before, after)


def test_a_pattern_that_much_of_the_repository_has_is_not_reported(
    repository: Repository, command: Command
) -> None:
    """An idiom is no forgotten place."""
    before = {f"m{n}/locks.py": LOCK.format(f"m{n}") for n in range(60)}
    after: dict[str, str | None] = {f"m{n}/locks.py": NEW_LOCK.format(f"m{n}") for n in range(2)}
    assert "twin" not in facts_of(command, repository, before, after)


# ---- partners


def together(repository: Repository, times: int, alone: int, *others: str) -> None:
    """Commit changes of a.py with other files, then some of a.py alone."""
    repository.commit({"README": "x", "a.py": "x = 0\n", **dict.fromkeys(others, "x = 0\n")})
    for n in range(1, times + 1):
        repository.commit(dict.fromkeys(("a.py", *others), f"x = {n}\n"))
    for n in range(times + 1, times + alone + 1):
        repository.commit({"a.py": f"x = {n}\n"})


def test_a_file_that_went_with_a_changed_one_is_reported(
    repository: Repository, command: Command
) -> None:
    """Who changes the model and not the schema has most often forgotten it."""
    together(repository, 8, 2, "schema.py")
    (fact,) = facts_of(command, repository, {}, {"a.py": "x = 99\n"})["partner not changed"]
    assert "`schema.py` was changed in 8 of the last 10 commits that changed `a.py`" in fact["text"]
    assert places(fact) == [("schema.py", 1)]


@pytest.mark.parametrize(
    ("times", "alone", "others", "after"),
    [
        (8, 2, ("s.py",), {"a.py": "x = 99\n", "s.py": "x = 99\n"}),
        (8, 2, ("s.py",), {"a.py": "x = 99\n", "s.py": None}),
        (6, 0, ("s.py",), {"a.py": "x = 99\n"}),
        (7, 3, ("s.py",), {"a.py": "x = 99\n"}),
        (9, 0, ("CHANGELOG.md", "yarn.lock", "vendor/s.py"), {"a.py": "x = 99\n"}),
        (9, 0, tuple(f"s{n}.py" for n in range(30)), {"a.py": "x = 99\n"}),
    ],
    ids=["changed", "gone", "seldom", "not mostly", "not written", "sweeps"],
)
def test_what_is_no_partner_is_not_reported(
    repository: Repository,
    command: Command,
    times: int,
    alone: int,
    others: tuple[str, ...],
    after: dict[str, str | None],
) -> None:
    """Changed with it, gone, seldom together, not written by people, or together in sweeps."""
    together(repository, times, alone, *others)
    assert "partner not changed" not in facts_of(command, repository, {}, after)


# ---- why it was so


def test_the_commits_that_the_deleted_lines_came_with_are_named(
    repository: Repository, command: Command
) -> None:
    """Why a line is there is said by the commit that brought it."""
    lines = [f"line_{n} = {n}" for n in range(9)]
    repository.commit({"README": "x"})
    first = repository.commit({"a.py": "\n".join(lines) + "\n"}, "Say `why` at first")
    lines[4] = "line_4 = 'four'"
    second = repository.commit({"a.py": "\n".join(lines) + "\n"}, "Make it four")
    lines[3:5] = ["line_x = 1"]
    found = facts_of(command, repository, {}, {"a.py": "\n".join(lines) + "\n"})
    (fact,) = found["why it was so"]
    assert f"{first[:10]} `Say 'why' at first` (2023-11-1" in fact["text"]
    assert f"{second[:10]} `Make it four` (2023-11-1" in fact["text"]
    assert "1 line)" in fact["text"]
    assert places(fact) == [("a.py", 4)]


def test_neither_config_nor_attributes_change_what_is_blamed(
    repository: Repository, command: Command
) -> None:
    """A program named there would run, and a file that is missing would stop git."""
    repository.git("config", "blame.ignoreRevsFile", "missing")
    repository.git("config", "diff.odd.textconv", "touch ran; cat")
    attributes = {".gitattributes": "* diff=odd\n"}
    repository.commit({**attributes, "-L1.py": "first = 1\n"}, "Begin")
    found = facts_of(command, repository, {}, {"-L1.py": "first = 2\n"})
    assert "`Begin`" in found["why it was so"][0]["text"]
    assert not (repository.path / "ran").exists()


def test_a_shallow_clone_says_that_it_does_not_know(
    repository: Repository, command: Command, tmp_path: Path
) -> None:
    """The last commit that is here is not where the lines came from."""
    repository.commit({"a.py": "first = 1\nsecond = 2\n"}, "Begin")
    repository.commit({"a.py": "first = 1\nsecond = 'two'\n"}, "Two in words")
    repository.commit({"b.py": "x = 1\n"})
    repository.commit({"a.py": "third = 3\n"}, "Begin anew")
    shallow = tmp_path / "shallow"
    url = f"file://{repository.path}"
    repository.git("clone", "-q", "--depth", "3", url, str(shallow))
    assert "why it was so" not in {f["kind"] for f in _facts_in(command, shallow)}
    repository.git("clone", "-q", "--depth", "9", url, str(tmp_path / "whole"))
    (fact,) = [f for f in _facts_in(command, tmp_path / "whole") if f["kind"] == "why it was so"]
    assert "`Begin`" in fact["text"]
    assert "shallow" not in fact["text"]


def _facts_in(command: Command, path: Path) -> list[dict[str, Any]]:
    result = command("context", "--repo", str(path), "--base", "HEAD~1", "--format", "json")
    assert result.code == 0, result.err
    found: list[dict[str, Any]] = json.loads(result.out)["facts"]
    return found


# ---- documented elsewhere


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("Call tax_rate with a country.", True),
        ("The tax rate of a country, and tax_rates.", False),
    ],
)
def test_a_section_that_names_what_changed_is_reported(
    repository: Repository, command: Command, text: str, told: bool
) -> None:
    """What the documentation promises may no longer hold."""
    before: dict[str, Any] = {**SHOP, "docs/use.md": f"# Use\n\n## Taxes\n\n{text}\n"}
    after: dict[str, str | None] = {"shop/tax.py": TAX.replace("RATES[country]", "0")}
    found = facts_of(command, repository, before, after).get("documented elsewhere", [])
    assert [places(fact) for fact in found] == ([[("docs/use.md", 5)]] if told else [])


def test_one_word_counts_in_backticks_alone(repository: Repository, command: Command) -> None:
    """``render`` is a word of any text, and a name in code."""
    before = {
        "a.py": "def render(x):\n    return x\n",
        "one.md": "# One\n\nWe render pages.\n",
        "two.md": "# Two\n\nCall `render(page)`.\n",
    }
    found = facts_of(command, repository, before, {"a.py": "def render(x):\n    return 1\n"})
    (fact,) = found["documented elsewhere"]
    assert places(fact) == [("two.md", 3)]


def test_a_section_that_the_change_mends_is_not_reported(
    repository: Repository, command: Command
) -> None:
    """Who changed the documentation, too, has done everything right."""
    before: dict[str, Any] = {**SHOP, "docs/use.md": "# Use\n\nCall tax_rate with a country.\n"}
    after: dict[str, str | None] = {
        "shop/tax.py": TAX.replace("RATES[country]", "0"),
        "docs/use.md": "# Use\n\nCall tax_rate with any country.\n",
    }
    assert "documented elsewhere" not in facts_of(command, repository, before, after)


# ---- the order


def test_no_kind_displaces_another(repository: Repository, command: Command) -> None:
    """Thirty names that dangle must not hide that the documentation names one of them."""
    before = {
        "a.py": "".join(f"def broken_name_{n}():\n    return {n}\n\n\n" for n in range(30)),
        "b.py": "from a import *\n\n\n"
        + "".join(f"def use_{n}():\n    return broken_name_{n}()\n\n\n" for n in range(30)),
        "c.md": "# Names\n\nCall broken_name_7.\n",
    }
    repository.commit(before)
    repository.commit({"a.py": None})
    kinds = [f["kind"] for f in pack_of(command, repository, "--base", "HEAD~1")["facts"]]
    assert kinds[:3] == ["dangling", "why it was so", "documented elsewhere"]


# ---- hidden characters


def test_hidden_characters_that_a_change_adds_are_named(
    repository: Repository, command: Command
) -> None:
    """What is shown to a reviewer and what a program does can differ by a character."""
    found = facts_of(
        command,
        repository,
        {"a.py": "x = 1\ny = '\u200b'\n", "crlf.txt": "a\r\n"},
        {
            "a.py": "x = 1\ny  = '\u200b'\nif user != 'x\u202e \u2066':\n    z = '\u202e'\n",
            "crlf.txt": "b\r\n",
            "emoji.md": "\ufeff# ❤\ufe0f 👩\u200d🚀\n",
        },
    )
    (fact,) = found["hidden characters"]
    assert fact["text"] == (
        "3 invisible or direction-changing characters in 2 added lines: U+202E (2×), U+2066"
    )
    assert places(fact) == [("a.py", 3), ("a.py", 4)]


def test_a_new_path_with_hidden_characters_is_named(
    repository: Repository, command: Command
) -> None:
    """Two paths that look the same are not the same file."""
    found = facts_of(command, repository, {"a.py": "x = 1\n"}, {"a\u200b.py": "x = 1\n"})
    assert "U+200B" in found["hidden characters"][0]["text"]


# ---- our own settings


def test_a_change_of_our_settings_is_told(repository: Repository, command: Command) -> None:
    """In CI it is judged by the old ones: a reviewer has to see that they will be others."""
    before = {"a.py": "x = 1\n", ".coderag.yml": "budget: 20000\n"}
    after = {"a.py": "x = 2\n", ".coderag.yml": "budget: 20000\nexclude: [a.py]\nrecall: 5\n"}
    (fact,) = facts_of(command, repository, before, after)["settings"]
    assert fact["text"] == (
        ".coderag.yml changes recall, exclude; in CI those of the base count, not these"
    )
    assert places(fact) == [(".coderag.yml", 1)]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, "changes top-k; in CI those of the base count, not these"),
        ("top-k: 7 # seven\n", "is changed, but no setting in it"),
        ("top-k: [", "is changed, and one side of it is not valid; in CI"),
    ],
)
def test_other_changes_of_our_settings(
    repository: Repository,
    command: Command,
    content: str | None,
    text: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A file that goes, that says the same, or that can not be read is told as what it is."""
    monkeypatch.setenv("CI", "true")
    found = facts_of(command, repository, {".coderag.yml": "top-k: 7\n"}, {".coderag.yml": content})
    assert found["settings"][0]["text"].startswith(f".coderag.yml {text}")
