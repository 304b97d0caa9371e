"""What the pack shows: the diff within its quota, then evidence, and what was left out."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coderag_ci import assemble
from coderag_ci.assemble import assemble_diff
from coderag_ci.config import CHANNEL_NAMES, Config
from coderag_ci.diff import Diff, FileDiff, Hunk
from coderag_ci.index import Doc
from coderag_ci.pathrules import PathRules
from coderag_ci.tokens import estimate
from tests.conftest import Command
from tests.packs import SHOP, pack_of, shop
from tests.repository import Repository

RULES = PathRules(Config())


def file_of(path: str, *sizes: int, text: str = "value = call(1)") -> FileDiff:
    """Return a changed file whose hunks add that many lines."""
    hunks = []
    start = 1
    for size in sizes:
        lines = tuple(f"+{text} {n}" for n in range(size))
        hunks.append(Hunk(start, 0, start, size, "", lines))
        start += size + 10
    return FileDiff(path, path, "modified", "text", 0o100644, 0o100644, "a", "b", tuple(hunks))


def cost(file: FileDiff) -> int:
    """Return the tokens of a file's hunks."""
    return sum(estimate("\n".join(hunk.lines)) for hunk in file.hunks)


# ---- the diff


def test_the_diff_is_shown_whole_where_it_fits() -> None:
    """Nothing of a change may go missing while there is room for it."""
    files = (file_of("a.py", 3, 4), file_of("b.py", 2))
    shown, used = assemble_diff(Diff(files, ()), 4000, estimate, RULES)
    assert [file.hunks for file in shown] == [file.hunks for file in files]
    assert all(file.cut_hunks == file.cut_lines == 0 for file in shown)
    assert sum(map(cost, files)) < used <= 4000


def test_a_hunk_that_does_not_fit_is_cut_and_counted() -> None:
    """A reader has to know that there is more of a change than is shown."""
    file = file_of("a.py", 5, 400, 300)
    (shown,), used = assemble_diff(Diff((file,), ()), 600, estimate, RULES)
    lines = sum(len(hunk.lines) for hunk in shown.hunks)
    assert 0 < lines < 705
    assert shown.cut_lines == 705 - lines
    assert shown.cut_hunks == 3 - len(shown.hunks)
    assert (shown.added, used <= 600) == (705, True)
    assert shown.hunks[0] == file.hunks[0]
    part = shown.hunks[1]
    assert part.lines == file.hunks[1].lines[: len(part.lines)]
    assert part.new_count == len(part.lines)


def test_code_comes_before_tests_and_generated_files_come_last() -> None:
    """A thousand generated lines would push the ten that were written out of the pack."""
    files = (
        file_of("a_pb2.py", 60),
        file_of("b.lock", 2),
        file_of("src/core.py", 60),
        file_of("tests/test_core.py", 60),
        file_of("vendor/lib.py", 60),
    )
    quota = int(cost(files[2]) * 1.4) + 400
    shown, _ = assemble_diff(Diff(files, ()), quota, estimate, RULES)
    cut = {file.path: file.cut_lines for file in shown}
    assert cut["src/core.py"] == 0
    assert 0 < cut["tests/test_core.py"] < 60 or cut["tests/test_core.py"] == 60
    assert all(cut.get(path, 60) == 60 for path in ("a_pb2.py", "vendor/lib.py"))
    assert [file.path for file in shown] == sorted(file.path for file in shown)


def test_lock_files_are_named_without_their_hunks(repository: Repository, command: Command) -> None:
    """A new dependency changes thousands of lines that nobody reads, but it has to be seen."""
    lock = "".join(f'"dep-{n}@1.0":\n  version "1.0"\n' for n in range(500))
    repository.commit({**SHOP, "yarn.lock": lock})
    repository.commit({"yarn.lock": lock.replace("1.0", "1.1"), "shop/tax.py": "RATES = {}\n"})
    pack = pack_of(command, repository, "--base", "HEAD~1")
    (lock_file,) = [file for file in pack["diff"] if file["path"] == "yarn.lock"]
    assert lock_file["hunks"] == []
    assert lock_file["cut_hunks"] >= 1
    assert lock_file["added"] == 1000
    assert lock_file["cut_lines"] >= 2000
    assert "yarn.lock" in command("context", "--repo", str(repository.path), "--base", "HEAD~1").out


def test_what_the_diff_does_not_use_goes_to_evidence(
    repository: Repository, command: Command
) -> None:
    """A small change in a large repository is the common case; half a pack would stay empty."""
    long = "".join(f"    value_{n} = tax_rate(country_{n}) + {n}\n" for n in range(22))
    users = {f"use/u{n:02}.py": f"def user_{n}():\n{long}    return 1\n" for n in range(14)}
    shop(repository)
    repository.git("checkout", "-q", "main")
    repository.commit(users)
    repository.git("checkout", "-q", "topic")
    repository.git("rebase", "-q", "main")
    pack = pack_of(command, repository, "--base", "main", "--budget", "3000")
    budget = pack["budget"]
    assert budget["used_diff"] < 400
    frame = 400  # header and footer
    assert budget["evidence"] == 3000 - budget["used_diff"] - budget["used_facts"] - frame
    assert budget["used_evidence"] > 1600
    assert {piece["reason"] for piece in pack["dropped"]} >= {"does not fit the budget"}


def test_evidence_never_takes_from_the_diff(repository: Repository, command: Command) -> None:
    """The change itself is what the reader can least do without."""
    rates = "".join(f"def rate_{n}():\n    return tax_rate({n})\n\n\n" for n in range(80))
    shop(repository)
    repository.commit({"shop/rates.py": rates})
    pack = pack_of(command, repository, "--base", "main", "--budget", "2000")
    alone, _ = _without_evidence(command, repository)
    assert pack["diff"] == alone["diff"]
    assert pack["budget"]["used_diff"] == alone["budget"]["used_diff"]
    assert pack["budget"]["used_diff"] <= pack["budget"]["diff"] == 1000


def _without_evidence(command: Command, repository: Repository) -> tuple[dict[str, Any], None]:
    off = [f"--no-channel={name}" for name in CHANNEL_NAMES]
    return pack_of(command, repository, "--base", "main", "--budget", "2000", *off), None


@pytest.mark.parametrize("budget", [1, 20, 50, 120, 300])
def test_a_tiny_budget_is_kept(repository: Repository, command: Command, budget: int) -> None:
    """A budget that is exceeded ends in a prompt that the model refuses."""
    shop(repository)
    repository.commit({f"more/m{n}.py": f"def m{n}():\n    return {n}\n" for n in range(40)})
    pack = pack_of(command, repository, "--base", "main", "--budget", str(budget))
    used = pack["budget"]
    assert used["total"] == budget
    assert used["used_diff"] + used["used_evidence"] + used.get("used_facts", 0) <= budget
    shown = "\n".join(line for f in pack["diff"] for h in f["hunks"] for line in h["lines"])
    names = "".join(file["path"] for file in pack["diff"])
    assert estimate(shown) + estimate(names) <= budget
    assert pack["change"]["files"] == 41  # what is not shown is still counted
    assert all(piece["reason"] for piece in pack["dropped"])
    for form in ("markdown", "prompt"):
        text = command(
            "context", "--repo", str(repository.path), "--base", "main", "--budget", str(budget),
            "--format", form,
        )  # fmt: skip
        assert text.code == 0
        assert "41 files" in text.out


# ---- evidence


def test_a_small_unit_is_shown_whole(repository: Repository, command: Command) -> None:
    """A function that is cut at the line that was found can not be judged."""
    repository.commit(SHOP)
    body = "".join(f"    step_{n} = {n}\n\n" for n in range(35))
    repository.commit({"shop/long.py": f"def many_steps():\n{body}    return tax_rate('de')\n"})
    text = (repository.path / "shop/long.py").read_text()
    assert len(text) < 1500
    assert text.count("\n") > 60
    repository.commit({"shop/tax.py": str(SHOP["shop/tax.py"]).replace("country", "land")})
    pack = pack_of(command, repository, "--base", "HEAD~1")
    (piece,) = [e for e in pack["evidence"] if e["path"] == "shop/long.py"]
    assert piece["ranges"] == [[1, 72]]
    assert piece["text"] == text.rstrip("\n")


def test_distant_parts_of_a_unit_are_one_entry_with_a_gap(
    repository: Repository, command: Command
) -> None:
    """Three entries for one function read like three functions."""
    filler = "".join(
        f"    unrelated_step_number_{n} = another_helper_function({n}, None)\n" for n in range(100)
    )
    long = (
        'def long_story(country):\n    """Tell a story."""\n'
        f"{filler}    first = tax_rate(country)\n{filler}    return first\n"
    )
    repository.commit({**SHOP, "shop/story.py": long})
    repository.commit({"shop/tax.py": str(SHOP["shop/tax.py"]).replace("RATES[", "RATES.get(")})
    pack = pack_of(command, repository, "--base", "HEAD~1")
    (piece,) = [e for e in pack["evidence"] if e["path"] == "shop/story.py"]
    assert piece["symbol"] == "long_story"
    assert piece["ranges"][0][0] == 1  # the signature tells what the rest is part of
    assert len(piece["ranges"]) >= 2
    assert piece["text"].count("\n…\n") == len(piece["ranges"]) - 1
    assert "first = tax_rate(country)" in piece["text"]
    assert (piece["start"], piece["end"]) == (piece["ranges"][0][0], piece["ranges"][-1][1])


def test_the_rest_of_a_changed_unit_is_shown(repository: Repository, command: Command) -> None:
    """A hunk in the middle of a function says little without the lines around it."""
    steps = "".join(f"    step_{n} = prepare(items, {n})\n" for n in range(20))
    source = f"def settle(items):\n{steps}    return step_0\n"
    repository.commit({**SHOP, "shop/settle.py": source})
    repository.commit({"shop/settle.py": source.replace("prepare(items, 10)", "prepare(items)")})
    pack = pack_of(command, repository, "--base", "HEAD~1")
    (piece,) = [e for e in pack["evidence"] if e["path"] == "shop/settle.py"]
    assert [c["name"] for c in piece["channels"]] == ["enclosing"]
    (hunk,) = pack["diff"][0]["hunks"]
    last = hunk["new_start"] + hunk["new_count"]
    assert piece["ranges"] == [[1, hunk["new_start"] - 1], [last, 22]]


def test_pieces_of_one_file_stand_together(repository: Repository, command: Command) -> None:
    """Jumping between files for each piece makes a pack hard to read."""
    shop(repository)
    repository.commit({"shop/tax.py": "def tax_rate(place):\n    return 0\n"})
    paths = [e["path"] for e in pack_of(command, repository, "--base", "main")["evidence"]]
    assert len(paths) > 2
    runs = [path for n, path in enumerate(paths) if n == 0 or paths[n - 1] != path]
    assert len(runs) == len(set(runs))


def test_no_more_than_top_k_entries_and_the_rest_is_named(
    repository: Repository, command: Command
) -> None:
    """What was found and not shown is the reader's only hint to look further."""
    shop(repository)
    whole = pack_of(command, repository, "--base", "main")
    found = [e for e in whole["evidence"] if e["scores"]]
    pack = pack_of(command, repository, "--base", "main", "--top-k", "1")
    assert len([e for e in pack["evidence"] if e["scores"]]) == 1
    assert pack["evidence"][0]["path"] == found[0]["path"]
    assert pack["dropped"]
    assert {piece["reason"] for piece in pack["dropped"]} == {"below the first entries"}
    for piece in pack["dropped"]:
        assert piece["path"] in SHOP
        assert 1 <= piece["start"] <= piece["end"]


# ---- room for each kind of evidence

FLOOD = {
    f"flood/f{n:02}.py": f'def handle_{n}(place):\n    """Look up the rate of value added tax: do '
    f'not fail for unknown countries; a default {n} is returned."""\n    return place or {n}\n'
    for n in range(60)
}
CALLER = "from shop.tax import tax_rate\n\n\ndef odd_one():\n    return tax_rate('de') + 1\n"


def flooded(repository: Repository, files: dict[str, str]) -> Repository:
    """Commit files, then a change whose title and lines say much of what the flood says."""
    repository.commit({"shop/tax.py": SHOP["shop/tax.py"], **files}, "Open the shop")
    repository.git("checkout", "-q", "-b", "topic")
    new = str(SHOP["shop/tax.py"]).replace(
        "    return RATES[country]", "    return RATES.get(country, 0.0)"
    )
    title = "Look up the rate of value added tax: do not fail for unknown countries"
    repository.commit({"shop/tax.py": new}, title)
    return repository


def test_a_flood_of_like_words_does_not_push_the_only_caller_out(
    repository: Repository, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one place that the change can break was lost among sixty that only sound like it."""
    flooded(repository, {**FLOOD, "far/caller.py": CALLER})
    off = [f"--weight={name}=0.01" for name in ("uses", "new", "kept", "deleted", "co-change")]
    formula = ("--rerank-model", "heuristic")
    arguments = ("--base", "main", "--budget", "2800", *formula, *off)
    pack = pack_of(command, repository, *arguments)
    assert "far/caller.py" in [piece["path"] for piece in pack["evidence"]]
    with monkeypatch.context() as patch:
        patch.setattr(assemble, "_FLOORS", {})
        without = pack_of(command, repository, *arguments)
    assert "far/caller.py" not in [piece["path"] for piece in without["evidence"]]
    assert abs(len(without["evidence"]) - len(pack["evidence"])) <= 1


def test_room_that_no_kind_uses_goes_to_the_others(
    repository: Repository, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A repository without tests and documents would get a smaller pack."""
    flooded(repository, FLOOD)
    pack = pack_of(command, repository, "--base", "main", "--budget", "2600")
    with monkeypatch.context() as patch:
        patch.setattr(assemble, "_FLOORS", {})
        without = pack_of(command, repository, "--base", "main", "--budget", "2600")
    assert pack["budget"]["used_evidence"] > 0.8 * pack["budget"]["evidence"]
    assert pack["evidence"] == without["evidence"]


class Texts:
    """Stands in for the texts of a view: every blob has the same many lines."""

    def load(self, blobs: object) -> None:
        """Nothing has to be read."""

    def lines(self, _: str) -> list[str]:
        """Return the lines of a blob."""
        return [f"value_{n} = call({n})" for n in range(200)]


@st.composite
def hits(draw: st.DrawFn) -> list[assemble.Hit]:
    """Return units of any length, language and flag, found by any channels."""
    found = []
    for n in range(draw(st.integers(0, 30))):
        start = draw(st.integers(1, 150))
        end = start + draw(st.integers(0, 49))
        doc = Doc(
            f"p{draw(st.integers(0, 9))}.py", f"{n:040x}",
            draw(st.sampled_from(("python", "markdown"))), start, end,
            (start, end), (0, 0), "function", f"f{n}", draw(st.sampled_from((0, 1))),
        )  # fmt: skip
        ranks = draw(st.dictionaries(st.sampled_from(CHANNEL_NAMES), st.integers(1, 60)))
        score = draw(st.floats(0, 5))
        found.append(assemble.Hit(doc, {"final": score}, ranks, lambda: ()))
    return sorted(found, key=lambda hit: -hit.scores["final"])


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine
@given(hits(), st.integers(0, 6000), st.integers(1, 30))
def test_no_room_for_a_kind_exceeds_the_budget_or_top_k(
    found: list[assemble.Hit], quota: int, top_k: int
) -> None:
    """Whatever was found, a pack has the size that was asked for, and each try is accounted for."""
    texts: Any = Texts()
    made = assemble.assemble_evidence(found, [], Diff((), ()), quota, top_k, estimate, texts)
    taken = [one for one in made.tries if one.outcome == "taken"]
    assert made.used == sum(one.tokens for one in taken) <= quota
    assert len(made.evidence) == len(taken) <= top_k
    units = {assemble.unit_of(hit.doc) for hit in found}
    assert {one.unit for one in made.tries} == units
    assert len(made.tries) == len(units)
    hidden = [one for one in made.tries if one.outcome == "already shown"]
    assert len(units) == len(taken) + len(made.dropped) + len(hidden)
    assert all(one.tokens <= one.left for one in taken)


# ---- over random repositories


def _source(chance: random.Random, number: int) -> str:
    """Return a module of functions and classes, short ones and ones too long for one chunk."""
    parts = [
        f'"""Module {number}."""\n\nfrom m{(number + 1) % 5} import run_{(number + 1) % 5}_0\n\n'
    ]
    for unit in range(chance.randint(2, 5)):
        lines = chance.choice((2, 5, 12, 70, 130))
        body = "".join(
            f"    value_{n} = run_{chance.randrange(5)}_{chance.randrange(4)}(item, {n})\n"
            for n in range(lines)
        )
        if chance.random() < 0.4:
            body = "".join("    " + line + "\n" for line in body.splitlines())
            parts.append(
                f"class Kind{unit}:\n    size = {unit}\n\n"
                f"    def run_{number}_{unit}(self, item):\n{body}\n"
                f"    def other_{unit}(self):\n        return self.size\n\n\n"
            )
        else:
            parts.append(f"def run_{number}_{unit}(item):\n{body}    return value_0\n\n\n")
    return "".join(parts)


def _edited(chance: random.Random, source: str) -> str:
    lines = source.splitlines()
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(4, len(lines))
        indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())] or "# "
        kind = chance.random()
        if kind < 0.4:
            lines[at] = indent + f"changed_{at} = run_0_0(None)"
        elif kind < 0.7:
            lines.insert(at, indent + f"added_{at} = run_1_1(None)")
        else:
            del lines[at]
    return "\n".join(lines) + "\n"


def _added_lines(repository: Repository) -> dict[str, set[int]]:
    """Read the added lines of the last commit from git, by other means than ours."""
    found: dict[str, set[int]] = {}
    path = ""
    for line in repository.git("diff", "-U0", "HEAD~1", "HEAD").splitlines():
        if line.startswith("+++ b/"):
            path = line[6:]
        elif header := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            start, count = int(header[1]), int(header[2] or 1)
            found.setdefault(path, set()).update(range(start, start + count))
    return found


@pytest.mark.parametrize("seed", range(6))
def test_what_holds_for_every_pack(repository: Repository, command: Command, seed: int) -> None:
    """A changed line shown as evidence, or a line shown twice, misleads and wastes tokens."""
    chance = random.Random(seed)
    files = {f"m{n}.py": _source(chance, n) for n in range(5)}
    repository.commit(files)
    edited = {
        p: _edited(chance, s) for p, s in files.items() if chance.random() < 0.5 or p == "m0.py"
    }
    repository.commit(edited)
    changed = _added_lines(repository)
    for budget in (300, 1500, 20_000):
        pack = pack_of(command, repository, "--base", "HEAD~1", "--budget", str(budget))
        used = pack["budget"]
        assert used["used_diff"] + used["used_evidence"] + used.get("used_facts", 0) <= budget
        seen: dict[str, set[int]] = {}
        units = set()
        for piece in pack["evidence"]:
            lines = {n for first, last in piece["ranges"] for n in range(first, last + 1)}
            assert not lines & changed.get(piece["path"], set()), piece
            assert not lines & seen.setdefault(piece["path"], set()), piece
            seen[piece["path"]] |= lines
            if piece["symbol"]:
                assert (piece["path"], piece["symbol"]) not in units
                units.add((piece["path"], piece["symbol"]))
            _check_text(repository, piece)
        if budget == 20_000:
            assert not pack["dropped"] or pack["dropped"][0]["reason"] == "below the first entries"


def _check_text(repository: Repository, piece: dict[str, Any]) -> None:
    """Hold that the text is the lines that it says it is, and that ranges are apart."""
    source = (repository.path / piece["path"]).read_text().split("\n")
    parts = ["\n".join(source[first - 1 : last]) for first, last in piece["ranges"]]
    assert piece["text"] == "\n…\n".join(parts)
    for (_, end), (start, _) in zip(piece["ranges"], piece["ranges"][1:], strict=False):
        assert start > end + 1
    assert (piece["start"], piece["end"]) == (piece["ranges"][0][0], piece["ranges"][-1][1])
