"""The index: each blob is read once, and what it held before never shows in a pack."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from coderag_ci import index, workers
from tests.conftest import Command
from tests.packs import NEW_TAX, SHOP, TAX, indexed, pack_of, shop
from tests.repository import Repository


def counts_of(command: Command, repository: Repository, *arguments: str) -> tuple[int, int]:
    """Run ``index`` and return (blobs indexed, blobs reused)."""
    result = command("index", "--repo", str(repository.path), *arguments)
    assert result.code == 0, result.err
    found = re.search(r"(\d+) blobs indexed, (\d+) reused", result.out)
    assert found, result.out
    return int(found[1]), int(found[2])


def snapshots(repository: Repository) -> list[Path]:
    """Return the snapshot files of the repository's own index."""
    return sorted((repository.path / ".git" / "coderag-ci" / "snapshots").glob("*.snap"))


def replaced(path: str, old: str, new: str) -> str:
    """Return a file of the shop with some text replaced."""
    text = str(SHOP[path])
    assert old in text
    return text.replace(old, new)


# ---- what is read


def test_a_commit_reads_only_the_blobs_that_it_changes(
    repository: Repository, command: Command
) -> None:
    """On a large repository a push would take minutes if unchanged files were parsed again."""
    repository.commit(SHOP)
    assert counts_of(command, repository) == (len(SHOP), 0)
    repository.commit({"shop/tax.py": NEW_TAX})
    assert indexed(pack_of(command, repository, "--base", "HEAD~1")) == 1
    repository.commit(
        {
            "shop/cart.py": replaced("shop/cart.py", "add_item", "put_item"),
            "shop/price.py": replaced("shop/price.py", "net", "netto"),
            "shop/new.py": "def new_arrival():\n    return 1\n",
        }
    )
    pack = pack_of(command, repository, "--base", "HEAD~1")
    assert indexed(pack) == 3
    assert pack["trace"]["blobs_reused"] == len(SHOP) - 2 + 2
    assert indexed(pack_of(command, repository, "--base", "HEAD~1")) == 0


def test_switching_branches_back_and_reverting_read_nothing(
    repository: Repository, command: Command
) -> None:
    """CI that alternates between branches would pay for the whole tree each time."""
    repository.commit(SHOP)
    counts_of(command, repository)
    repository.git("checkout", "-q", "-b", "topic")
    repository.commit(
        {"shop/tax.py": NEW_TAX, "shop/cart.py": replaced("shop/cart.py", "add_item", "put_item")}
    )
    assert counts_of(command, repository) == (2, len(SHOP) - 2)
    repository.git("checkout", "-q", "main")
    assert counts_of(command, repository) == (0, len(SHOP))
    repository.git("checkout", "-q", "topic")
    repository.git("revert", "--no-edit", "HEAD")
    assert counts_of(command, repository) == (0, len(SHOP))
    assert indexed(pack_of(command, repository, "--base", "HEAD~1")) == 0


def test_a_rebase_reads_only_what_the_new_base_brings(
    repository: Repository, command: Command
) -> None:
    """A rebased topic has new commit ids but the same blobs; parsing them again is waste."""
    shop(repository)
    counts_of(command, repository)
    repository.git("checkout", "-q", "main")
    repository.commit({"shop/price.py": replaced("shop/price.py", "net", "netto")})
    repository.git("checkout", "-q", "topic")
    repository.git("rebase", "-q", "main")
    pack = pack_of(command, repository, "--base", "main")
    # The new price.py; main's own tax.py is what the change deleted lines of.
    assert indexed(pack) == 2
    assert [file["path"] for file in pack["diff"]] == ["shop/tax.py"]
    assert indexed(pack_of(command, repository, "--base", "main")) == 0


def test_renamed_and_moved_files_read_nothing(repository: Repository, command: Command) -> None:
    """Moving a directory would cost as much as indexing it for the first time."""
    repository.commit(SHOP)
    counts_of(command, repository)
    repository.git("mv", "shop", "store")
    repository.git("mv", "README.md", "ABOUT.md")
    repository.commit()
    pack = pack_of(command, repository, "--base", "HEAD~1")
    assert indexed(pack) == 0
    assert {file["status"] for file in pack["diff"]} == {"renamed"}
    counts_of(command, repository)
    repository.commit({"store/tax.py": NEW_TAX})
    pack = pack_of(command, repository, "--base", "HEAD~1")
    assert {piece["path"] for piece in pack["evidence"]} >= {"store/price.py", "store/invoice.py"}
    assert not [piece for piece in pack["evidence"] if piece["path"].startswith("shop/")]


def test_a_renamed_file_of_another_language_is_parsed_anew(
    repository: Repository, command: Command
) -> None:
    """A header that becomes C++ would otherwise keep the units that C found in it."""
    source = "namespace shop {\nclass Till {\n public:\n  int open_till() { return 1; }\n};\n}\n"
    repository.commit({"till.h": source, **SHOP})
    counts_of(command, repository)
    repository.git("mv", "till.h", "till.hpp")
    repository.commit()
    assert counts_of(command, repository) == (1, len(SHOP))


def test_files_with_equal_content_are_each_found(repository: Repository, command: Command) -> None:
    """A vendored or copied twin would vanish, or be shown under the other's path."""
    twin = "from shop.tax import tax_rate\n\n\ndef copied_rate(land):\n    return tax_rate(land)\n"
    repository.commit({**SHOP, "one/twin.py": twin, "two/twin.py": twin, "odd.txt": twin})
    assert counts_of(command, repository) == (len(SHOP) + 2, 0)  # python once, text once
    repository.commit({"shop/tax.py": NEW_TAX})
    pack = pack_of(command, repository, "--base", "HEAD~1")
    shown = {(piece["path"], piece["symbol"]) for piece in pack["evidence"]}
    assert {("one/twin.py", "copied_rate"), ("two/twin.py", "copied_rate")} <= shown
    alone = pack_of(
        command, repository, "--base", "HEAD~1", "--index-dir", str(repository.path / "x")
    )
    assert alone["digest"] == pack["digest"]


# ---- what is found does not depend on what was there before


def _other_branch(repository: Repository) -> None:
    """Add a branch with names, tests and a language of its own."""
    repository.git("checkout", "-q", "-b", "other", "main")
    repository.commit(
        {
            "shop/secret_plan.py": "def tax_rate(country):\n    return unreleased_rate(country)\n",
            "pkg/rates_test.go": 'package pkg\n\nfunc TestTaxRate() { tax_rate("de") }\n',
            **{f"more/m{n}.py": f"def more_{n}():\n    return tax_rate({n})\n" for n in range(9)},
        }
    )
    repository.git("checkout", "-q", "topic")


def _warm(command: Command, repository: Repository, *_: object) -> None:
    pack_of(command, repository, "--base", "main")


def _delta(command: Command, repository: Repository, *_: object) -> None:
    counts_of(command, repository, "--ref", "main")
    assert len(snapshots(repository)) == 1


def _rebuilt(command: Command, repository: Repository, patch: pytest.MonkeyPatch) -> None:
    counts_of(command, repository, "--ref", "main")
    patch.setattr(index, "_REBUILD_DOCS", 0)
    patch.setattr(index, "_REBUILD_SHARE", 0.0)


def _no_snapshots(command: Command, repository: Repository, *_: object) -> None:
    counts_of(command, repository, "--ref", "topic")
    shutil.rmtree(snapshots(repository)[0].parent)


def _of_other_branch(command: Command, repository: Repository, *_: object) -> None:
    counts_of(command, repository, "--ref", "other")


def _far_and_near(command: Command, repository: Repository, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(index, "_REBUILD_DOCS", 0)
    patch.setattr(index, "_REBUILD_SHARE", 0.0)
    for ref in ("other", "main", "other"):
        counts_of(command, repository, "--ref", ref)
    patch.setattr(index, "_REBUILD_DOCS", 2000)


def _pruned(command: Command, repository: Repository, *_: object) -> None:
    counts_of(command, repository, "--ref", "other")
    pack_of(command, repository, "--base", "main")
    assert command("index", "--repo", str(repository.path), "--prune").code == 0


@pytest.mark.parametrize(
    "prepare", [_warm, _delta, _rebuilt, _no_snapshots, _of_other_branch, _far_and_near, _pruned]
)
def test_a_pack_does_not_depend_on_the_state_of_the_index(
    repository: Repository,
    command: Command,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    prepare: Callable[[Command, Repository, pytest.MonkeyPatch], None],
) -> None:
    """Two people who review the same change would be shown different evidence."""
    shop(repository)
    _other_branch(repository)
    repository.commit(
        {"pkg/rates.go": "package pkg\n\nfunc LookUp(c string) float64 { return tax_rate(c) }\n"}
    )
    cold = pack_of(command, repository, "--base", "main", "--index-dir", str(tmp_path / "cold"))
    assert cold["evidence"]
    prepare(command, repository, monkeypatch)
    again = pack_of(command, repository, "--base", "main")
    assert {k: v for k, v in again.items() if k != "trace"} == {
        k: v for k, v in cold.items() if k != "trace"
    }


def test_a_run_that_was_cut_short_leaves_nothing_out_of_the_next(
    repository: Repository, command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Files that one hurried run did not read would be missing from every later pack."""
    shop(repository)
    cold = pack_of(command, repository, "--base", "main", "--index-dir", str(tmp_path / "cold"))
    hurried = pack_of(command, repository, "--base", "main", "--deadline", "2.9")
    assert any("deadline" in line for line in hurried["degradations"])
    with monkeypatch.context() as patch:
        patch.setattr(workers._Worker, "ask", lambda *_: workers.DIED)
        broken = pack_of(command, repository, "--base", "main")
    assert {skip["path"] for skip in broken["skipped"]} >= {"shop/tax.py", "shop/price.py"}
    assert pack_of(command, repository, "--base", "main")["digest"] == cold["digest"]


def test_names_of_another_branch_never_show_up(repository: Repository, command: Command) -> None:
    """A pack that goes to a public review would leak work from a private branch."""
    shop(repository)
    _other_branch(repository)
    counts_of(command, repository, "--ref", "other")
    counts_of(command, repository, "--ref", "main")
    for form in ("json", "markdown", "prompt"):
        result = command(
            "context", "--repo", str(repository.path), "--base", "main", "--format", form
        )
        assert result.code == 0
        for name in ("secret_plan", "unreleased_rate", "rates_test", "more_3", "more/"):
            assert name not in result.out


# ---- views that are not commits


def test_the_staged_view_reads_what_is_staged(repository: Repository, command: Command) -> None:
    """A pre-commit check would review the file on disk instead of what is committed."""
    repository.commit(SHOP)
    counts_of(command, repository)
    repository.write({"shop/tax.py": NEW_TAX})
    repository.git("add", "-A")
    repository.write(
        {
            "shop/tax.py": TAX.replace("RATES[country]", "unstaged_rate(country)"),
            "shop/invoice.py": "def print_invoice(order):\n    later_idea(tax_rate(order))\n",
        }
    )
    result = command("context", "--repo", str(repository.path), "--staged", "--format", "json")
    pack = pack_of(command, repository, "--staged")
    assert result.code == 0
    assert "unstaged_rate" not in result.out
    assert "later_idea" not in result.out
    assert pack["change"]["kind"] == "staged"
    assert [file["path"] for file in pack["diff"]] == ["shop/tax.py"]
    assert "print_invoice" in {piece["symbol"] for piece in pack["evidence"]}
    assert indexed(pack) == 0  # the first run read the one new blob


def test_the_working_tree_is_read_from_disk_and_git_is_left_alone(
    repository: Repository, command: Command
) -> None:
    """A local run would miss what is being typed, or litter the object database."""
    repository.commit(SHOP)
    counts_of(command, repository)
    repository.write(
        {
            "shop/tax.py": NEW_TAX,
            "shop/fresh.py": "def fresh_use():\n    return tax_rate('de')\n",
            "shop/invoice.py": replaced(
                "shop/invoice.py", "folder.append(order)", "folder.add(order)"
            ),
        }
    )
    before = repository.git("count-objects")
    pack = pack_of(command, repository, "--worktree")
    assert indexed(pack) == 3
    assert {file["path"] for file in pack["diff"]} == {
        "shop/tax.py", "shop/fresh.py", "shop/invoice.py",
    }  # fmt: skip
    shown = {(p["path"], p["symbol"]) for p in pack["evidence"]}
    assert ("shop/invoice.py", "print_invoice") in shown
    assert ("shop/price.py", "total_price") in shown
    assert repository.git("count-objects") == before
    assert pack_of(command, repository, "--worktree")["digest"] == pack["digest"]


# ---- the command


def test_index_says_what_it_did_and_stats_say_what_is_kept(
    repository: Repository, command: Command
) -> None:
    """Without numbers nobody can tell whether CI's cache of the index works."""
    shop(repository)
    result = command("index", "--repo", str(repository.path), "--ref", "main")
    assert result.code == 0
    assert f"{len(SHOP)} blobs indexed, 0 reused" in result.out
    assert repository.git("rev-parse", "main")[:12] in result.out
    assert f"indexing: {len(SHOP)} of {len(SHOP)}" in result.err
    quiet = command("index", "--repo", str(repository.path), "--quiet")
    assert (quiet.code, quiet.err) == (0, "")
    stats = dict(
        line.split(maxsplit=1)
        for line in command("index", "--repo", str(repository.path), "--stats").out.splitlines()
    )
    assert stats["store"] == str(repository.path / ".git" / "coderag-ci" / "store.sqlite")
    assert (stats["blobs"], stats["views"], stats["vectors"]) == (str(len(SHOP) + 1), "2", "0")
    assert stats["snapshots"].startswith("1,")


def test_prune_drops_what_no_recent_view_uses(
    repository: Repository, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An index in a CI cache would grow with every commit for ever."""
    monkeypatch.setattr("coderag_ci.store._KEPT_VIEWS", 2)
    repository.commit(SHOP)
    counts_of(command, repository)
    for n in range(3):
        repository.commit({"shop/tax.py": TAX.replace("0.19", f"0.{n}")})
        counts_of(command, repository)
    result = command("index", "--repo", str(repository.path), "--prune")
    assert result.code == 0
    assert result.out.startswith("dropped 2 blobs")  # of the first two of four views
    assert counts_of(command, repository) == (0, len(SHOP))
    assert counts_of(command, repository, "--ref", "HEAD~3") == (1, len(SHOP) - 1)


def test_prune_drops_commits_of_no_branch(repository: Repository, command: Command) -> None:
    """A repository whose branches are rebased every day would keep each of their commits."""
    repository.commit(SHOP)
    repository.commit({"shop/tax.py": TAX.replace("0.19", "0.1")})
    repository.commit({"shop/tax.py": TAX.replace("0.19", "0.2")})
    kept = pack_of(command, repository, "--base", "HEAD~1")
    repository.git("reset", "-q", "--hard", "HEAD~1")
    repository.commit({"shop/tax.py": TAX.replace("0.19", "0.3")})
    repository.commit({"shop/tax.py": TAX.replace("0.19", "0.4")})
    pack_of(command, repository, "--base", "HEAD~1")
    repository.git("reset", "-q", "--hard", "HEAD~2")
    result = command("index", "--repo", str(repository.path), "--prune")
    assert " 1 commits, " in result.out, result.out
    assert kept["evidence"]


def test_stats_and_prune_do_not_take_a_ref(repository: Repository, command: Command) -> None:
    """A flag that is silently ignored makes people believe that it worked."""
    repository.commit(SHOP)
    for flag in ("--stats", "--prune"):
        result = command("index", "--repo", str(repository.path), flag, "--ref", "HEAD")
        assert result.code == 2
        assert "--ref" in result.err


def test_index_of_an_unknown_ref_says_so(repository: Repository, command: Command) -> None:
    """A typo in a CI file has to end in a line that names it."""
    repository.commit(SHOP)
    result = command("index", "--repo", str(repository.path), "--ref", "no-such-branch")
    assert result.code == 3
    assert "no-such-branch" in result.err
