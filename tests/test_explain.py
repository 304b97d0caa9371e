"""``explain``: why a unit is, or is not, in the pack."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from coderag_ci.errors import EXIT_USAGE
from tests.conftest import Command, Result
from tests.packs import NEW_TAX, SHOP, pack_of, shop
from tests.repository import Repository


def explain(command: Command, repository: Repository, *arguments: str) -> Result:
    """Run ``explain`` on a repository."""
    return command("explain", "--repo", str(repository.path), *arguments)


def told(command: Command, repository: Repository, *arguments: str) -> dict[str, Any]:
    """Run ``explain --format json`` against main and return what it says."""
    result = explain(command, repository, "--base", "main", "--format", "json", *arguments)
    assert (result.code, result.err) == (0, "")
    found: dict[str, Any] = json.loads(result.out)
    return found


def outcomes(found: dict[str, Any]) -> dict[str, str]:
    """Return the outcome of each unit by symbol."""
    return {unit["symbol"]: unit["outcome"] for unit in found["units"]}


# ---- units


def test_a_piece_of_the_pack_comes_with_what_it_owes_its_place_to(
    repository: Repository, command: Command
) -> None:
    """Channels, weights and terms have to add up to the score that ranked the piece."""
    shop(repository)
    piece = next(
        e
        for e in pack_of(command, repository, "--base", "main")["evidence"]
        if e["symbol"] == "print_invoice"
    )
    (unit,) = told(command, repository, "shop/invoice.py:9")["units"]
    assert (unit["outcome"], unit["symbol"], unit["start"]) == ("in-pack", "print_invoice", 7)
    assert unit["scores"] == pytest.approx(piece["scores"])
    ranks = {c["name"]: c["rank"] for c in unit["channels"] if c["rank"]}
    assert ranks == {c["name"]: c["rank"] for c in piece["channels"]}
    adds = sum(channel["adds"] for channel in unit["channels"])
    assert adds == pytest.approx(unit["scores"]["fused"])
    terms = [score for name, score in unit["scores"].items() if name != "final"]
    assert sum(terms) == pytest.approx(unit["scores"]["final"])
    assert all(channel["reason"] for channel in unit["channels"])
    text = explain(command, repository, "shop/invoice.py:9", "--base", "main").out
    assert "in-pack: the pack shows lines 7–10" in text
    assert "calls `tax_rate` (line 10)" in text
    assert "not found: its file is not named like a changed one" in text
    assert " = fused " in text
    assert "by the fitted ranker" not in text
    learned = ("--base", "main", "--rerank-model", "learned")
    (unit,) = told(command, repository, "shop/invoice.py:9", *learned[2:])["units"]
    assert sum(unit["learned"].values()) == pytest.approx(unit["scores"]["final"], abs=1e-4)
    text = explain(command, repository, "shop/invoice.py:9", *learned).out
    assert "by the fitted ranker: " in text


def test_what_is_below_the_floor_is_told_with_the_figures(
    repository: Repository, command: Command, tmp_path: Path
) -> None:
    """Who wonders where a file went has to see how little it shares."""
    repository.commit({"notes.md": "# Notes\n\nThe way is unknown.\n"})
    shop(repository)
    settings = tmp_path / "high.yml"
    settings.write_text("floor: 0.9\n")
    (unit,) = told(command, repository, "notes.md:3", "--config", str(settings))["units"]
    assert unit["outcome"] == "below-floor"
    assert "in subject and 0." in unit["why"]
    assert unit["why"].endswith("below the floor of 0.9 of the best possible")
    assert unit["rank"] > 0


def test_what_does_not_fit_is_told_with_what_was_taken_before(
    repository: Repository, command: Command
) -> None:
    """A budget is raised by whom it cost something; the figures say by how much."""
    shop(repository)
    found = [
        told(command, repository, path, "--budget", "700")
        for path in ("shop/invoice.py", "shop/price.py", "shop/cart.py", "tests/test_price.py")
    ]
    units = [unit for one in found for unit in one["units"]]
    late = [unit for unit in units if unit["outcome"] == "does-not-fit"]
    assert late
    for unit in late:
        tried = unit["tried"]
        assert tried["tokens"] > tried["left"] >= 0
        assert f"takes {tried['tokens']} tokens, and {tried['left']} of" in unit["why"]
        taken = unit["taken_before"]
        assert all(one["tokens"] <= one["left"] for one in taken)
    assert any(unit["taken_before"] for unit in late)
    path = next(one["path"] for one in found if late[0] in one["units"])
    place = f"{path}:{late[0]['start']}"
    text = explain(command, repository, place, "--base", "main", "--budget", "700").out
    assert f"taken before it: {len(late[0]['taken_before'])}" in text


def test_what_ranks_beyond_top_k_is_told(repository: Repository, command: Command) -> None:
    """The other limit than the budget."""
    shop(repository)
    found = told(command, repository, "shop/invoice.py", "--top-k", "1")
    more = told(command, repository, "shop/price.py", "--top-k", "1")
    both = {**outcomes(found), **outcomes(more)}
    assert sorted([both["print_invoice"], both["total_price"]]) == ["beyond-top-k", "in-pack"]


def test_a_changed_line_is_no_evidence(repository: Repository, command: Command) -> None:
    """It is in the diff, so that nobody looks for it below."""
    shop(repository)
    (unit,) = told(command, repository, "shop/tax.py:8")["units"]
    assert (unit["symbol"], unit["outcome"]) == ("tax_rate", "changed")
    assert unit["why"].startswith("a changed line: the diff shows it")
    assert unit["channels"] == []


def test_the_rest_of_a_changed_unit_is_told_apart_from_its_changed_line(
    repository: Repository, command: Command
) -> None:
    """Both stand in one function, and only one of them can be evidence."""
    steps = "".join(f"    step_{n} = prepare(items, {n})\n" for n in range(20))
    source = f"def settle(items):\n{steps}    return step_0\n"
    repository.commit({**SHOP, "shop/settle.py": source})
    repository.git("checkout", "-q", "-b", "topic")
    repository.commit({"shop/settle.py": source.replace("prepare(items, 10)", "prepare(items)")})
    (changed,) = told(command, repository, "shop/settle.py:12")["units"]
    assert changed["outcome"] == "changed"
    assert "of its unit, the pack shows lines 1–8, 16–22" in changed["why"]
    (rest,) = told(command, repository, "shop/settle.py:2")["units"]
    assert rest["outcome"] == "in-pack"
    assert rest["why"].endswith("as the rest of a changed unit")
    (context,) = told(command, repository, "shop/settle.py:10")["units"]
    assert context["why"].endswith("line 10 not among them")


def test_vendored_code_is_hidden(repository: Repository, command: Command) -> None:
    """It was found, so the rule that keeps it out has to be named."""
    repository.commit({"vendor/lib.py": "def use():\n    return tax_rate('de')\n"})
    shop(repository)
    (unit,) = told(command, repository, "vendor/lib.py:2")["units"]
    assert (unit["outcome"], unit["rank"]) == ("hidden", 0)
    assert "vendored" in unit["why"]


def test_what_no_channel_found_says_so_for_each(repository: Repository, command: Command) -> None:
    """Twelve channels looked, and each for something else."""
    repository.commit({"odd.txt": "zyx wvu\n"})
    shop(repository)
    (unit,) = told(command, repository, "odd.txt:1", "--no-channel", "new")["units"]
    assert (unit["outcome"], unit["rank"], unit["scores"]) == ("not-found", 0, {})
    reasons = {channel["name"]: channel["reason"] for channel in unit["channels"]}
    assert reasons.pop("new") == reasons.pop("dense") == "off"
    assert len(set(reasons.values())) == len(reasons)


def test_a_file_without_a_line_gives_one_line_a_unit(
    repository: Repository, command: Command
) -> None:
    """The quick look at what a change means for a file."""
    shop(repository)
    result = explain(command, repository, "shop/invoice.py", "--base", "main")
    lines = result.out.splitlines()
    assert lines[0] == "shop/invoice.py"
    assert len(lines) == 4  # imports and two functions
    assert "7–10    print_invoice: #" in lines[2]
    assert "in-pack" in lines[2]


# ---- what is compared, and where


def test_a_staged_change_is_explained_as_it_would_be_committed(
    repository: Repository, command: Command
) -> None:
    """Before a commit is the best time to look."""
    repository.commit(SHOP)
    repository.write({"shop/tax.py": NEW_TAX})
    repository.git("add", "-A")
    repository.write({"shop/invoice.py": None})
    result = explain(command, repository, "shop/invoice.py:8", "--staged", "--format", "json")
    assert outcomes(json.loads(result.out)) == {"print_invoice": "in-pack"}


def test_a_bare_repository_is_explained(
    repository: Repository, command: Command, tmp_path: Path
) -> None:
    """A server has no working tree."""
    shop(repository)
    bare = tmp_path / "bare.git"
    repository.git("clone", "-q", "--bare", ".", str(bare))
    result = command(
        "explain", "--repo", str(bare), "shop/invoice.py:8", "--base", "main", "--head", "topic"
    )
    assert result.code == 0
    assert "in-pack" in result.out


@pytest.mark.parametrize("path", ["invoice.py:8", "./invoice.py:8", "shop/invoice.py:8"])
def test_a_path_counts_from_here_or_from_the_top(
    repository: Repository, command: Command, path: str
) -> None:
    """A completed path is typed as often as one copied from a pack."""
    shop(repository)
    result = command("explain", path, "--base", "main", cwd=repository.path / "shop")
    assert result.code == 0
    assert result.out.startswith("shop/invoice.py:8\nprint_invoice: function, lines 7–10\n")


def test_an_empty_change_has_no_evidence_to_explain(
    repository: Repository, command: Command
) -> None:
    """As ``context``, it is no error."""
    shop(repository)
    found = told(command, repository, "shop/tax.py:1", "--head", "main")
    assert (found["outcome"], found["units"]) == ("empty-change", [])


# ---- paths and lines that hold no unit


def test_a_path_that_is_not_searched_is_told_with_the_rule(
    repository: Repository, command: Command
) -> None:
    """Lock files, binaries, large files and what the change took away."""
    repository.commit(
        {
            "uv.lock": "a\n",
            "logo.png": b"\x89PNG\0",
            "blob.py": b"x = 1\0\n",
            "large.py": "x = 1\n" * 200_000,
            "empty.py": "",
            "old.py": "def old():\n    return 1\n",
            "moved.py": "def moved():\n    return 'somewhere else'\n",
            ".gitignore": "build.py\n",
        }
    )
    shop(repository)
    repository.git("mv", "moved.py", "there.py")
    repository.commit({"old.py": None})
    repository.write({"build.py": "x = 1\n"})
    expected = {
        "uv.lock": ("not-indexed", "lock file"),
        "logo.png": ("not-indexed", "binary by name"),
        "blob.py": ("not-indexed", "binary"),
        "large.py": ("not-indexed", "larger than 1 MiB"),
        "empty.py": ("n", ""),
        "old.py": ("deleted", "the change deletes it"),
        "moved.py": ("renamed", "there.py"),
        "build.py": ("not-in-view", "git ignores or does not know it"),
    }
    for path, (outcome, why) in expected.items():
        found = told(command, repository, path)
        assert found["outcome"].startswith(outcome), path
        assert why in found["why"], path
        assert found["units"] == []


def test_a_blank_line_between_units_is_told(repository: Repository, command: Command) -> None:
    """It belongs to nothing."""
    shop(repository)
    assert told(command, repository, "shop/invoice.py:11")["outcome"] == "blank"


@pytest.mark.parametrize(
    ("place", "message", "hint"),
    [
        ("shop/invoices.py:3", "no such path", "shop/invoice.py"),
        ("invoice.py", "no such path", "shop/invoice.py"),
        ("zzz.zzz", "no such path", "name a path"),
        ("shop/invoice.py:99", "has no line 99", "it has 14 lines"),
        ("shop/invoice.py:0", "lines count from 1", "name a line"),
        ("shop", "is a folder", "PATH:LINE"),
    ],
)
def test_a_place_that_is_not_there_is_a_usage_error(
    repository: Repository, command: Command, place: str, message: str, hint: str
) -> None:
    """A slip of the finger is answered with what is near."""
    shop(repository)
    result = explain(command, repository, place, "--base", "main")
    assert (result.code, result.out) == (2, "")
    error, help_ = result.err.splitlines()
    assert message in error
    assert hint in help_


def test_bytes_that_are_no_text_are_escaped_in_json(
    repository: Repository, command: Command
) -> None:
    """A path in Latin-1 stands in reasons, too, and no program may fail on it."""
    shop(repository)
    odd = os.path.join(os.fsencode(repository.path), b"bad\xff.py")
    with open(odd, "wb") as file:
        file.write(b"def use_rate():\n    return tax_rate('de')\n")
    repository.commit()
    name = os.fsdecode(b"bad\xff.py")
    for given in (name, f"{name}:1"):
        found = told(command, repository, given)
        assert found["path"] == "bad\\udcff.py"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("shop/tax.py:" + "9" * 5000, "no such path in what is compared"),
        ("x" * 5000, "no such path in what is compared"),
        ("/etc/passwd:1", "outside the repository"),
        ("/", "outside the repository"),
        ("../x" + "y" * 5000, "outside the repository"),
        (".", ". is a folder"),
        ("", ". is a folder"),
        ("linked/tax.py:1", "linked is a symbolic link, which is not followed"),
        ("part/lib.py", "part is a submodule, which is not followed"),
    ],
)
def test_what_can_be_no_place_in_the_repository_is_a_usage_error(
    given: str, said: str, repository: Repository, command: Command
) -> None:
    """Endless numbers and names, and files elsewhere, also by a link: one short line."""
    (repository.path / "linked").symlink_to("shop")
    (repository.path / "part").mkdir()
    repository.commit()
    commit = repository.git("rev-parse", "HEAD")
    repository.git("update-index", "--add", "--cacheinfo", f"160000,{commit},part")
    shop(repository)
    result = explain(command, repository, given, "--base", "main")
    assert result.code == EXIT_USAGE
    assert said in result.err
    assert len(result.err) < 500
