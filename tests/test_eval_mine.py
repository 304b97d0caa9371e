"""``eval mine``: which commits become cases, and that their gold is where the change was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from coderag_ci.eval.missed import references
from coderag_ci.gitrepo import GitRepo
from tests.conftest import Command, Result
from tests.repository import Repository

RATE = """RATES = {"de": 19}


def tax_rate(country):
    return RATES[country]
"""
CART = """import tax


class Cart:
    def __init__(self):
        self.items = []

    def total(self, country):
        net = sum(self.items)
        return net + tax.tax_rate(country)

    def clear(self):
        self.items = []


def empty_cart():
    return Cart()
"""
TEST = """from cart import Cart


def test_total():
    assert Cart().total("de") == 0
"""
BASE: dict[str, str | bytes | None] = {"tax.py": RATE, "cart.py": CART, "tests/test_cart.py": TEST}
NEW_RATE = RATE.replace("country", "land, year").replace('{"de"', '{"canary_dict"')
NEW_CART = CART.replace("tax_rate(country)", "tax_rate(country, canary_year)")


def mine(command: Command, repository: Repository, tmp_path: Path, *arguments: str) -> Result:
    """Run ``eval mine`` on a repository; the cases go to cases.jsonl."""
    place = ("--repo", str(repository.path), "--out", str(tmp_path / "cases.jsonl"))
    return command("eval", "mine", *place, *arguments)


def read(tmp_path: Path) -> list[dict[str, Any]]:
    """Return the cases that were written."""
    return [json.loads(line) for line in (tmp_path / "cases.jsonl").read_text().splitlines()]


def mined(
    command: Command, repository: Repository, tmp_path: Path, *arguments: str
) -> list[dict[str, Any]]:
    """Mine, and return the cases."""
    result = mine(command, repository, tmp_path, *arguments)
    assert result.code == 0, result.err
    return read(tmp_path)


def places(case: dict[str, Any]) -> list[tuple[str, str, list[list[int]]]]:
    """Return path, symbol and hunks of each gold item."""
    return [(item["path"], item["symbol"], item["hunks"]) for item in case["gold"]]


def test_a_modified_line_is_gold_in_its_unit_as_it_was_before(
    repository: Repository, command: Command, tmp_path: Path
) -> None:
    """Gold is the smallest unit around a change, in lines of the tree that is searched."""
    base = repository.commit(BASE)
    head = repository.commit({"tax.py": NEW_RATE, "cart.py": NEW_CART}, "Rates change by year")
    (case,) = mined(command, repository, tmp_path)
    assert (case["base"], case["head"], case["subject"]) == (base, head, "Rates change by year")
    assert (case["query_files"], case["language"], case["kind"]) == (
        ["tax.py"], "python", "cochange",
    )  # fmt: skip
    assert places(case) == [("cart.py", "Cart.total", [[10, 10]])]
    (gold,) = case["gold"]
    assert (gold["start"], gold["end"], gold["insert_only"]) == (8, 10, False)
    assert (case["gold_has_test"], case["gold_has_nontest"]) == (False, True)
    assert (case["n_code_files"], case["n_changed_lines"]) == (2, 8)


def test_an_insertion_stands_between_two_lines_of_the_unit_it_extends(
    repository: Repository, command: Command, tmp_path: Path
) -> None:
    """Lines appended to a function belong to it, not to what follows."""
    repository.commit(BASE)
    longer = CART.replace("def total", "def clear_first(self):\n        pass\n\n    def total")
    longer = longer.replace("import tax\n", "import os\nimport tax\n", 1)
    longer = longer.replace("    return Cart()\n", "    print(1)\n    return Cart()\n")
    longer = longer.replace(
        "        self.items = []\n\n\n", "        self.items = []\n        x()\n\n\n"
    )
    rate = NEW_RATE + "".join(f"R{n} = {n}\n" for n in range(9))
    repository.commit({"tax.py": rate, "cart.py": longer})
    (case,) = mined(command, repository, tmp_path)
    found = {item["symbol"]: item for item in case["gold"]}
    assert {symbol: item["hunks"] for symbol, item in found.items()} == {
        "": [[0, 1]],
        "Cart": [[7, 8]],
        "Cart.clear": [[13, 14]],
        "empty_cart": [[16, 17]],
    }
    assert {symbol for symbol, item in found.items() if item["file_only"]} == {"Cart"}
    assert all(item["insert_only"] for item in found.values())


def test_an_added_test_counts_for_its_file_alone(
    repository: Repository, command: Command, tmp_path: Path
) -> None:
    """Nobody can foresee at which line of a file a new test is put."""
    repository.commit(BASE)
    more = TEST + '\n\ndef test_more():\n    assert Cart().total("fr") == 0\n'
    repository.commit({"tax.py": NEW_RATE, "cart.py": NEW_CART, "tests/test_cart.py": more})
    (case,) = mined(command, repository, tmp_path)
    last = case["gold"][-1]
    assert (last["path"], last["is_test"], last["insert_only"], last["file_only"]) == (
        "tests/test_cart.py", True, True, True,
    )  # fmt: skip
    assert (case["gold_has_test"], case["gold_has_nontest"]) == (True, True)


def test_an_added_test_is_known_where_the_diff_begins_with_the_end_of_the_one_above(
    repository: Repository, command: Command, tmp_path: Path
) -> None:
    """Which of two closing braces is new is git's choice, and says nothing of the test above."""
    test = "package a\n\nfunc TestA() {\n\tfor {\n\t\ta()\n\t}\n}\n"
    repository.commit({"a.go": "package a\n\nfunc a() {\n\tb()\n}\n", "a_test.go": test, **BASE})
    more = test + "\nfunc TestB() {\n\tfor {\n\t\tb()\n\t}\n}\n"
    change = {"a.go": "package a\n\nfunc a() {\n\tc()\n}\n", "a_test.go": more}
    repository.commit({**change, "cart.py": NEW_CART})
    (case,) = mined(command, repository, tmp_path)
    assert [item["file_only"] for item in case["gold"] if item["path"] == "a_test.go"] == [True]


def test_the_query_is_the_most_changed_file_that_is_no_test(
    repository: Repository, command: Command, tmp_path: Path
) -> None:
    """A reviewer starts from the code that was written, whatever the size of its test."""
    repository.commit(BASE)
    test = TEST.replace('total("de") == 0', 'total(\n        "de",\n    ) == 1\n    print(2)')
    repository.commit({"tax.py": NEW_RATE, "cart.py": NEW_CART, "tests/test_cart.py": test})
    (case,) = mined(command, repository, tmp_path)
    assert case["query_files"] == ["tax.py"]
    assert [item["path"] for item in case["gold"]] == ["cart.py", "tests/test_cart.py"]


def test_what_changes_white_space_alone_is_no_gold(
    repository: Repository, command: Command, tmp_path: Path
) -> None:
    """A file that was only indented again holds nothing to be found."""
    repository.commit(BASE)
    spaced = CART.replace("self.items = []", "self.items  =  []")
    repository.commit({"tax.py": NEW_RATE, "cart.py": spaced})
    result = mine(command, repository, tmp_path)
    assert (result.code, "1 fewer than 2 code files" in result.err) == (3, True)


def test_a_share_of_hunks_that_change_the_same_words_is_told(
    repository: Repository, command: Command, tmp_path: Path
) -> None:
    """A renaming swept through all files measures nothing but a search for words."""
    repository.commit(BASE)
    repository.commit(
        {name: text.replace("tax_rate", "vat_rate") for name, text in BASE.items() if text}
        | {"tests/test_cart.py": TEST.replace("== 0", "== 9")}
    )
    (case,) = mined(command, repository, tmp_path)
    assert case["mech_share"] == 0.5


def test_commits_that_are_no_case_are_counted_by_reason(
    repository: Repository, command: Command, tmp_path: Path
) -> None:
    """Whoever mines a history learns why most of it gave nothing."""
    repository.commit(BASE)
    both: dict[str, str | bytes | None] = {"tax.py": NEW_RATE, "cart.py": NEW_CART}
    repository.commit(both, "Rates change by year")
    repository.commit(BASE, 'Revert "Rates change by year"')
    repository.commit(both, "Bump tax from 1.0 to 1.1")
    repository.commit({"tax.py": RATE}, "one file")
    repository.commit({f"many/{n}.py": f"x = {n}\n" for n in range(31)}, "many files")
    repository.commit({"notes.md": "a\n", "more.md": "b\n"}, "no code")
    repository.git("checkout", "-q", "-b", "side")
    repository.commit({"side.py": "x = 1\n"}, "on the side")
    repository.git("checkout", "-q", "main")
    repository.git("merge", "-q", "--no-ff", "-m", "Merge side", "side")
    result = mine(command, repository, tmp_path)
    assert result.code == 0
    assert result.out.startswith("1 cochange cases from 9 commits of ")
    assert result.out.rstrip().endswith(
        "left out: 2 fewer than 2 files, 1 fewer than 2 code files, 1 merge, "
        "1 more than 30 files, 1 no parent, 1 revert, 1 version bump"
    )
    assert [case["subject"] for case in read(tmp_path)] == ["Rates change by year"]


def test_the_newest_cases_come_first_and_no_more_than_wanted(
    repository: Repository, command: Command, tmp_path: Path
) -> None:
    """A limit takes what is nearest to the code of today."""
    repository.commit(BASE)
    repository.commit({"tax.py": NEW_RATE, "cart.py": NEW_CART}, "older")
    repository.commit({"tax.py": RATE, "cart.py": CART}, "newer")
    assert [case["subject"] for case in mined(command, repository, tmp_path)] == ["newer", "older"]
    (case,) = mined(command, repository, tmp_path, "--limit", "1")
    assert case["subject"] == "newer"
    (case,) = mined(command, repository, tmp_path, "--ref", "HEAD~1")
    assert case["subject"] == "older"


def test_no_code_is_written_to_the_file(
    repository: Repository, command: Command, tmp_path: Path
) -> None:
    """Cases can be shared where the code can not."""
    repository.commit(BASE)
    repository.commit({"tax.py": NEW_RATE, "cart.py": NEW_CART})
    mined(command, repository, tmp_path)
    text = (tmp_path / "cases.jsonl").read_text()
    assert "canary" not in text
    assert "return" not in text


def fixed(repository: Repository, between: str, after: str, message: str) -> tuple[str, str]:
    """Commit a change of tax.py, then cart.py twice; ``message`` has {} for the first's id."""
    repository.commit(BASE)
    broke = repository.commit({"tax.py": NEW_RATE}, "Rates change by year (#7)")
    repository.commit({"cart.py": between}, "Say what a cart is")
    return broke, repository.commit({"cart.py": after}, message.format(broke[:12]))


def test_a_repair_is_gold_in_lines_of_the_commit_that_it_repairs(
    repository: Repository, command: Command, tmp_path: Path
) -> None:
    """Code that has moved between the two is found where a reviewer would have seen it."""
    moved = "# A cart.\n# It holds items.\n" + CART
    after = moved.replace("tax_rate(country)", "tax_rate(country, 2024)")
    broke, fix = fixed(repository, moved, after, "Pass the year\n\nFixes: {}")
    (case,) = mined(command, repository, tmp_path, "--kind", "missed")
    assert (case["head"], case["fix"], case["reference"]) == (broke, fix, "fixes")
    assert (case["query_files"], case["kind"]) == (["tax.py"], "missed")
    assert places(case) == [("cart.py", "Cart.total", [[10, 10]])]
    assert case["gold"][0]["in_query_file"] is False


def test_lines_that_came_or_changed_later_are_no_gold(
    repository: Repository, command: Command, tmp_path: Path
) -> None:
    """What was not there when a change was reviewed can not have been missed."""
    between = CART.replace("net + tax", "net - tax")
    after = between.replace("tax_rate(country)", "tax_rate(country, 2024)")
    fixed(repository, between, after, "Pass the year\n\nFixes: {}")
    result = mine(command, repository, tmp_path, "--kind", "missed")
    assert result.code == 3
    assert "repairs the same lines, or lines that came later" in result.err


def test_lines_that_the_repaired_commit_changed_are_no_gold(
    repository: Repository, command: Command, tmp_path: Path
) -> None:
    """A reviewer has these lines in the diff already."""
    repository.commit(BASE)
    broke = repository.commit({"tax.py": NEW_RATE, "cart.py": NEW_CART}, "Rates change by year")
    after = NEW_CART.replace("canary_year", "2024").replace("return Cart()", "return Cart(2024)")
    repository.commit({"cart.py": after}, f"Name the year\n\nThis was broken by {broke[:10]}.")
    (case,) = mined(command, repository, tmp_path, "--kind", "missed")
    assert places(case) == [("cart.py", "empty_cart", [[17, 17]])]
    assert (case["reference"], case["gold"][0]["in_query_file"]) == ("broken by", True)


def test_a_revert_is_no_repair(repository: Repository, command: Command, tmp_path: Path) -> None:
    """What was taken back as a whole shows no place that was overlooked."""
    message = "Undo it\n\nThis reverts commit {0}, a regression in {0}."
    fixed(repository, CART + "\n", NEW_CART, message)
    result = mine(command, repository, tmp_path, "--kind", "missed")
    assert (result.code, "1 revert" in result.err) == (3, True)


def test_a_pull_request_is_named_by_its_number(
    repository: Repository, command: Command, tmp_path: Path
) -> None:
    """Hosts that squash leave no other trace of which change was repaired."""
    after = CART.replace("tax_rate(country)", "tax_rate(country, 2024)") + "\n"
    broke, _ = fixed(repository, CART + "\n", after, "Pass the year, a follow-up to #7")
    (case,) = mined(command, repository, tmp_path, "--kind", "missed")
    assert (case["head"], case["reference"]) == (broke, "follow-up to")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('Fixes: 0123abcd ("x")', [("0123abcd", "fixes")]),
        ("x\n\nA regression in\n0123abcd.", [("0123abcd", "regression in")]),
        ("Fix a leak\n\nWe lose it since 0123abcd.", [("0123abcd", "since")]),
        ("Use it\n\nIt is there since 0123abcd.", []),
        ("x\n\nThis fixes it. See also 0123abcd.", []),
        ("x\n\nfixes " + "word " * 20 + "0123abcd", []),
        ("x\n\nFixes #12, closes #13", []),
        ("x\n\nFollow up to #12", [("#12", "follow up to")]),
        ("x\n\nbroken by #12", [("#12", "broken by")]),
    ],
)  # fmt: skip
def test_words_that_name_a_repaired_commit(text: str, expected: list[tuple[str, str]]) -> None:
    """Messages mention commits and issues for many reasons; few say what was broken."""
    assert list(references(text)) == expected


@pytest.mark.parametrize("kind", ["cochange", "missed"])
def test_mined_cases_can_be_run(
    repository: Repository, command: Command, tmp_path: Path, kind: str
) -> None:
    """What is mined is what ``eval run`` takes, without a case skipped."""
    fixed(repository, NEW_CART + "# end\n", NEW_CART.replace("= []", "= list()"), "Fixes: {}")
    repository.commit({"tax.py": RATE, "cart.py": CART})
    mined(command, repository, tmp_path, "--kind", kind)
    result = command(
        "eval", "run", "--cases", str(tmp_path / "cases.jsonl"), "--repo", str(repository.path),
        "--jobs", "1", "--index-dir", str(tmp_path / "index"),
    )  # fmt: skip
    assert (result.code, "skipped" in result.err) == (0, False)


def test_a_shallow_clone_ends_at_its_boundary_and_says_so(
    repository: Repository, command: Command, tmp_path: Path
) -> None:
    """A short history is no proof that there are no more cases."""
    repository.commit(BASE)
    repository.commit({"tax.py": NEW_RATE, "cart.py": NEW_CART}, "older")
    repository.commit({"tax.py": RATE, "cart.py": CART}, "newer")
    source = repository.path.as_uri()
    repository.git("clone", "-q", "--depth", "2", source, str(tmp_path / "shallow"))
    shallow = Repository(tmp_path / "shallow")
    result = mine(command, shallow, tmp_path)
    assert [case["subject"] for case in read(tmp_path)] == ["newer"]
    assert "the clone is shallow" in result.err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--ref", "nowhere"), 3, "unknown ref: nowhere"),
        (("--ref", "-x"), 2, "not a ref"),
        (("--limit", "0"), 2, "--limit"),
        ((), 3, "no commit of 1 gives a cochange case (1 no parent)"),
        (("--kind", "missed"), 3, "no commit of 1 gives a missed case"),
    ],
)
def test_what_can_not_be_mined_is_said_and_nothing_written(
    repository: Repository,
    command: Command,
    tmp_path: Path,
    arguments: tuple[str, ...],
    code: int,
    message: str,
) -> None:
    """A file without cases would only fail later, in another command."""
    repository.commit(BASE)
    result = mine(command, repository, tmp_path, *arguments)
    assert (result.code, message in result.err) == (code, True), result.err
    assert not (tmp_path / "cases.jsonl").exists()


def test_a_folder_that_is_no_repository_is_refused(command: Command, tmp_path: Path) -> None:
    """A wrong folder is the most common slip."""
    result = command("eval", "mine", "--repo", str(tmp_path), "--out", str(tmp_path / "cases"))
    assert (result.code, "not a git repository" in result.err) == (3, True)


def test_a_history_is_read_with_bodies_merges_and_odd_paths(repository: Repository) -> None:
    """Whatever a message or a path holds, the next commit is read right."""
    repository.commit({"a\nb:c.py": "x = 1\n"}, "first")
    repository.commit({"a\nb:c.py": None, "d é.py": "x = 1\n"}, "second\n\n:100644 body\n\nmore")
    head = repository.commit({"e.py": "x\n"}, "third")
    found = list(GitRepo(str(repository.path)).history(head, changes=True))
    assert [one.subject for one in found] == ["third", "second", "first"]
    assert found[1].body == ":100644 body\n\nmore\n"
    assert [(c.status, c.old_path, c.path) for c in found[1].changes] == [
        ("R", "a\nb:c.py", "d é.py")
    ]
    assert [c.path for c in found[2].changes] == ["a\nb:c.py"]
