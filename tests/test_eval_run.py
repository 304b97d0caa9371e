"""``eval run``: cases on real repositories, resumable, compared, and honest about what it skips."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import msgspec
import pytest

from coderag_ci.config import CHANNEL_NAMES, Config
from coderag_ci.eval import outcome, run
from coderag_ci.eval.cases import Case
from coderag_ci.eval.sight import see
from coderag_ci.gitrepo import GitRepo
from coderag_ci.pathrules import PathRules
from tests.cases import TAX, raw_case, shop, write_cases
from tests.conftest import Command, Result
from tests.repository import Repository


@pytest.fixture
def evaluate(command: Command, repository: Repository, tmp_path: Path) -> Any:
    """Return a function that runs ``eval run`` on cases and gives result and JSON."""

    def invoke(*cases: dict[str, Any] | str, flags: tuple[str, ...] = ()) -> tuple[Result, Any]:
        file = write_cases(tmp_path / "cases.jsonl", *cases)
        out = tmp_path / "results.json"
        out.unlink(missing_ok=True)
        found = command(
            "eval", "run", "--cases", str(file), "--repo", str(repository.path),
            "--jobs", "1", "--out", str(out), *flags,
        )  # fmt: skip
        return found, json.loads(out.read_text()) if out.exists() else None

    return invoke


def test_it_says_where_the_gold_is_in_every_ranking(evaluate: Any, repository: Repository) -> None:
    """The caller and the test of a changed function, by channel, fused, reranked and final."""
    result, found = evaluate(raw_case(*shop(repository)))
    assert result.code == 0
    assert found["cases"] == 1
    assert found["skipped"] == []
    overall = found["overall"]
    for ranking in ("channel:diff", "channel:uses", "fused", "reranked", "final"):
        levels = overall[ranking]
        assert set(levels["chunk"]) == {
            "hit@1", "hit@5", "hit@10", "hit@20", "recall@10", "mrr", "ndcg@10"
        }  # fmt: skip
        assert set(levels["file"]) == {"hit@10", "recall@10", "mrr"}
        assert {"recall@2000", "recall@4000", "recall@8000"} <= set(levels["pack"])
        assert levels["chunk"]["recall@10"] == {"value": 1.0, "low": 1.0, "high": 1.0}
    assert overall["final"]["pack"]["recall@budget"]["value"] == 1
    assert found["nontest"]["final"]["chunk"]["mrr"]["value"] == 1
    assert found["seconds"]["median"] > 0
    assert set(found["by_language"]) == {"python"}
    assert found["by_repo"]["acme/shop"]["cases"] == 1
    assert "final" in result.out
    assert "R@10" in result.out
    assert found["tokens"] > 0
    assert f"first ten chunks: {found['tokens']:.0f}" in result.out


def test_the_view_holds_no_answer(repository: Repository) -> None:
    """Only the query file is seen as it became; all else is as it was before the change."""
    base, head = shop(repository)
    case = msgspec.convert(raw_case(base, head), Case)
    repo = GitRepo(str(repository.path))
    seen = see(repo, case, PathRules(Config())).view
    blobs = {entry.path: entry.blob for entry in seen.entries}
    assert blobs["src/tax.py"] == repository.git("rev-parse", f"{head}:src/tax.py")
    for path in ("src/invoice.py", "tests/test_tax.py"):
        assert blobs[path] == repository.git("rev-parse", f"{base}:{path}")


def test_a_missed_case_sees_the_whole_change_in_the_tree_that_it_made(
    evaluate: Any, repository: Repository
) -> None:
    """Gold in files that the change touched counts apart from that in others."""
    base, head = shop(repository)
    later = repository.commit({"src/tax.py": TAX.replace("0.9", "0.8")}, "Fix discount")
    gold = [
        {"path": "src/rates.py", "start": 4, "end": 5, "hunks": [[5, 5]]},
        {"path": "src/tax.py", "start": 6, "end": 7, "hunks": [[7, 7]], "in_query_file": True},
    ]
    files = ["src/invoice.py", "src/tax.py", "tests/test_tax.py"]
    case = raw_case(base, head, kind="missed", gold=gold, query_files=files, fix=later)
    result, found = evaluate(case)
    assert result.code == 0
    assert found["untouched"]["cases"] == 1
    assert found["untouched"]["final"]["pack"]["hit@4000"]["value"] == 1
    assert found["by_kind"]["missed"]["cases"] == 1
    seen = see(GitRepo(str(repository.path)), msgspec.convert(case, Case), PathRules(Config()))
    assert [file.path for file in seen.diff.files] == files


def test_a_question_is_a_query(evaluate: Any, repository: Repository) -> None:
    """Without any diff, in a user's own words."""
    base, _ = shop(repository)
    gold = [{"path": "src/rates.py", "start": 4, "end": 5, "hunks": [[4, 5]]}]
    case = raw_case(
        base, base, kind="query", query="where does the rate of a country come from?",
        gold=gold, query_files=[], not_gold=["src/other1.py"],
    )  # fmt: skip
    result, found = evaluate(case)
    assert result.code == 0
    assert found["overall"]["final"]["chunk"]["hit@5"]["value"] == 1
    assert found["overall"]["final"]["pack"]["not_gold@budget"]["value"] == 0
    assert found["by_kind"]["query"]["cases"] == 1


def test_the_share_of_packs_that_show_what_they_should_not(
    evaluate: Any, repository: Repository
) -> None:
    """A case may name paths that are wrong, and nothing that is right."""
    base, head = shop(repository)
    wrong = raw_case(base, head, gold=[], not_gold=["tests/"])
    fine = raw_case(base, head, id="shop-2", gold=[], not_gold=["vendor/"])
    result, found = evaluate(wrong, fine)
    assert result.code == 0
    assert found["overall"]["final"]["pack"]["not_gold@budget"]["value"] == 0.5
    assert "chunk" not in found["overall"]["final"]
    assert "show a path they should not: 0.500" in result.out


def test_a_docstring_is_not_in_what_is_searched(repository: Repository) -> None:
    """It is the query: found in the view it would lead straight to the answer."""
    text = 'def tax(amount):\n    """Levy the duty.\n\n    Twice.\n    """\n    return amount\n'
    base = repository.commit({"tax.py": text})
    gold = [{"path": "tax.py", "start": 1, "end": 6, "hunks": [[1, 6]]}]
    case = msgspec.convert(
        raw_case(base, base, kind="docstring", query="Levy the duty.", gold=gold, docstring=[2, 5]),
        Case,
    )
    seen = see(GitRepo(str(repository.path)), case, PathRules(Config())).view
    ((blob, content),) = seen.contents.items()
    assert [entry.blob for entry in seen.entries] == [blob]
    assert content == b"def tax(amount):\n\n\n\n\n    return amount\n"


@pytest.mark.parametrize("layout", ["acme/shop", "acme+shop", "shop"])
@pytest.mark.parametrize("bare", [False, True])
def test_repositories_are_found_by_name(
    command: Command, repository: Repository, tmp_path: Path, layout: str, bare: bool
) -> None:
    """In a folder as owner/name, owner+name or name; a work tree or bare."""
    case = raw_case(*shop(repository))
    place = tmp_path / "repos" / layout
    place.parent.mkdir(parents=True)
    flags = ["--bare"] if bare else []
    subprocess.run(["git", "clone", "-q", *flags, repository.path, place], check=True)
    file = write_cases(tmp_path / "cases.jsonl", case)
    result = command(
        "eval", "run", "--cases", str(file), "--repos", str(tmp_path / "repos"), "--jobs", "1"
    )
    assert result.code == 0
    assert "all: 1 cases" in result.out


def test_a_folder_inside_a_repository_is_not_the_repository(
    command: Command, repository: Repository, tmp_path: Path
) -> None:
    """Git would find the outer one, and every case would be skipped for another reason."""
    case = raw_case(*shop(repository))
    (repository.path / "shop").mkdir()
    file = write_cases(tmp_path / "cases.jsonl", case)
    result = command("eval", "run", "--cases", str(file), "--repos", str(repository.path))
    assert result.code == 3
    assert "no repository found for acme/shop" in result.err


def test_what_can_not_be_run_is_named_by_line_and_the_rest_is_run(
    evaluate: Any, repository: Repository
) -> None:
    """Never silently: each reason, counted in the JSON."""
    base, head = shop(repository)
    good = raw_case(base, head)
    gone = raw_case(base, head, id="gone", gold=[{**good["gold"][0], "path": "src/gone.py"}])
    result, found = evaluate(
        json.dumps(good)[:80],
        raw_case("f" * 40, head, id="no-commit"),
        raw_case(base, "--output=x", id="no-id"),
        raw_case(base, head, id="no-path", query_files=["src/none.py"]),
        gone,
        raw_case(base, head, id="empty", query_files=["src/rates.py"]),
        good,
        "",
        good,
        raw_case(base, head, id="kind", kind="other"),
        "[" * 100_000,
        raw_case(base, head, id="hunks", gold=[{**good["gold"][0], "hunks": [[9, 3]]}]),
        raw_case(base, head, id="nothing", gold=[]),
    )
    assert result.code == 0
    assert found["cases"] == 1
    reasons = {skip["line"]: skip["reason"] for skip in found["skipped"]}
    assert sorted(reasons) == [1, 2, 3, 4, 5, 6, 9, 10, 11, 12, 13]
    assert reasons[1].startswith("not a case")
    assert "not in the repository" in reasons[2]
    assert "not in the repository" in reasons[3]
    assert "src/none.py" in reasons[4]
    assert "src/gone.py" in reasons[5]
    assert reasons[6] == "its change is empty"
    assert reasons[9] == "the same id as line 7"
    assert "lines, first and last" in reasons[12]
    assert reasons[13] == "neither gold nor not_gold"
    for line, reason in reasons.items():
        assert f"line {line}" in result.err
        assert reason in result.err


def test_a_repository_that_is_not_there_is_listed_once(
    command: Command, repository: Repository, tmp_path: Path
) -> None:
    """Sixty cases of it are one line."""
    base, head = shop(repository)
    others = [raw_case(base, head, id=f"x{n}", repo="other/thing") for n in range(60)]
    file = write_cases(tmp_path / "cases.jsonl", *others, raw_case(base, head))
    (tmp_path / "repos").mkdir()
    (tmp_path / "repos" / "shop").symlink_to(repository.path)
    result = command(
        "eval", "run", "--cases", str(file), "--repos", str(tmp_path / "repos"), "--jobs", "1"
    )
    assert result.code == 0
    assert result.err.count("other/thing") == 1
    assert "60 cases" in result.err


def test_with_no_case_left_it_is_an_error(evaluate: Any, repository: Repository) -> None:
    """A green run that measured nothing would be a lie."""
    shop(repository)
    result, found = evaluate(raw_case("f" * 40, "e" * 40))
    assert result.code == 3
    assert "no case could be run" in result.err
    assert found is None


def test_a_stopped_run_goes_on_where_it_was(
    evaluate: Any, repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was done is on disk, is not done again, and the figures are those of one run."""
    base, head = shop(repository)
    cases = [raw_case(base, head, id=f"c{n}") for n in range(12)]
    _, whole = evaluate(*cases)
    real, seen = run.measure, []

    def stopping(*arguments: Any) -> Any:
        if len(seen) == 9:
            raise KeyboardInterrupt
        seen.append(arguments[1].id)
        return real(*arguments)

    monkeypatch.setattr(run, "measure", stopping)
    stopped, nothing = evaluate(*cases)
    assert stopped.code == 130
    assert nothing is None
    partial = tmp_path / "results.json.partial"
    with partial.open("ab") as file:
        file.write(b'["half a li')
    done = set(seen)
    monkeypatch.setattr(run, "measure", lambda *a: (seen.append(a[1].id), real(*a))[1])
    seen.clear()
    result, found = evaluate(*cases)
    assert result.code == 0
    assert "goes on from" in result.err
    assert len(seen) == 3
    assert done.isdisjoint(seen)
    assert _figures(found) == _figures(whole)
    assert not partial.exists()


def test_a_run_with_other_settings_does_not_go_on_with_these(
    evaluate: Any, repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Figures of two configurations must not be mixed."""
    base, head = shop(repository)
    cases = [raw_case(base, head, id=f"c{n}") for n in range(3)]
    real = run.measure

    def stopping(*arguments: Any) -> Any:
        if arguments[1].id == "c1":
            raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(run, "measure", stopping)
    evaluate(*cases)
    assert (tmp_path / "results.json.partial").exists()
    seen: list[str] = []
    monkeypatch.setattr(run, "measure", lambda *a: (seen.append(a[1].id), real(*a))[1])
    result, _ = evaluate(*cases, flags=("--set", "rrf-k=10"))
    assert result.code == 0
    assert seen == ["c0", "c1", "c2"]


def test_processes_give_the_figures_of_one(evaluate: Any, repository: Repository) -> None:
    """In the order of the file, whichever came first."""
    base, head = shop(repository)
    cases = [raw_case(base, head, id=f"c{n}", date=f"2026-01-{30 - n}") for n in range(20)]
    _, alone = evaluate(*cases)
    result, found = evaluate(*cases, flags=("--jobs", "2"))
    assert result.code == 0
    assert _figures(found) == _figures(alone)
    ids = [one["outcome"]["id"] for one in found["variants"][0]["outcomes"]]
    assert ids == [case["id"] for case in cases]


def test_several_values_of_a_key_are_a_sweep(evaluate: Any, repository: Repository) -> None:
    """Each combination is compared with the first, case by case."""
    case = raw_case(*shop(repository))
    flags = ("--set", "chunk-size=1500", "--set", "chunk-size=100", "--set", "weights.uses=0")
    result, found = evaluate(case, flags=flags)
    assert result.code == 0
    labels = [variant["label"] for variant in found["variants"]]
    assert labels == ["chunk-size=1500", "chunk-size=100"]
    assert found["settings"] == {"chunk-size": 1500, "weights.uses": 0.0}
    assert "channel:uses" not in found["overall"]
    assert found["variants"][1]["comparison"]["verdict"] == "no difference"
    assert found["variants"][0]["comparison"] is None
    chunks = [variant["outcomes"][0]["outcome"]["chunks"] for variant in found["variants"]]
    assert chunks[1] > chunks[0]
    assert "chunk-size=100:" in result.out


def test_ablation_leaves_out_one_part_at_a_time(evaluate: Any, repository: Repository) -> None:
    """Each channel that is on, the reranker and the floor; no model, no dense channel."""
    result, found = evaluate(raw_case(*shop(repository)), flags=("--ablate",))
    assert result.code == 0
    assert [variant["label"] for variant in found["variants"]] == [
        "as configured",
        *(f"without channel:{name}" for name in CHANNEL_NAMES if name != "dense"),
        "without rerank",
        "without floor",
    ]
    assert found["variants"][2]["settings"] == {"weights.uses": 0}


def test_worse_than_the_baseline_ends_with_6(
    evaluate: Any, repository: Repository, tmp_path: Path
) -> None:
    """Better and no difference do not; the verdict is in the JSON and on stdout."""
    base, head = shop(repository)
    cases = [raw_case(base, head, id=f"c{n}") for n in range(4)]
    _, good = evaluate(*cases)
    good_file, bad_file = tmp_path / "good.json", tmp_path / "bad.json"
    good_file.write_text(json.dumps(good))
    crippled = ("--set", "top-k=1")
    result, bad = evaluate(*cases, flags=(*crippled, "--baseline", str(good_file)))
    assert result.code == 6
    assert bad["comparison"]["verdict"] == "worse"
    assert "worse (by final.pack.recall@4000)" in result.out
    bad_file.write_text(json.dumps(bad))
    result, found = evaluate(*cases, flags=("--baseline", str(bad_file)))
    assert (result.code, found["comparison"]["verdict"]) == (0, "better")
    result, found = evaluate(*cases, flags=("--baseline", str(good_file)))
    assert (result.code, found["comparison"]["verdict"]) == (0, "no difference")
    compared = found["comparison"]["metrics"]["final.chunk.mrr"]
    assert compared == {"value": 0, "low": 0, "high": 0, "verdict": "no difference"}


def test_a_baseline_of_other_cases_is_an_error(
    evaluate: Any, repository: Repository, tmp_path: Path
) -> None:
    """The same id with other gold is another case."""
    base, head = shop(repository)
    case = raw_case(base, head)
    _, found = evaluate(case)
    file = tmp_path / "baseline.json"
    file.write_text(json.dumps(found))
    result, _ = evaluate({**case, "gold": case["gold"][:1]}, flags=("--baseline", str(file)))
    assert result.code == 3
    assert "no case in common" in result.err
    file.write_text("{}")
    result, _ = evaluate(case, flags=("--baseline", str(file)))
    assert result.code == 3
    assert "not the results of eval run" in result.err


def test_a_figure_below_its_floor_ends_with_6(evaluate: Any, repository: Repository) -> None:
    """Results are written all the same: they say what happened."""
    case = raw_case(*shop(repository))
    result, found = evaluate(
        case, flags=("--set", "top-k=1", "--fail-below", "final.pack.recall@4000=0.9")
    )
    assert result.code == 6
    assert "final.pack.recall@4000 is 0.5000, below 0.9" in result.err
    assert found["cases"] == 1
    result, _ = evaluate(case, flags=("--fail-below", "nontest.final.chunk.mrr=0.9"))
    assert result.code == 0


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--fail-below", "final.pack.recall@4000"), "expected METRIC=VALUE"),
        (("--fail-below", "final.pack.recall@4000=7"), "expected METRIC=VALUE"),
        (("--fail-below", "final.pack.recal=0.4"), "unknown figure"),
        (("--fail-below", "best.chunk.mrr=0.4"), "unknown figure"),
        (("--set", "rrf_k=10"), "did you mean rrf-k?"),
        (("--set", "rrf-k"), "expected KEY=VALUE"),
        (("--set", "rrf-k=fast"), "rrf-k"),
        (("--set", "languages=klingon"), "unknown language"),
        (("--set", "rrf-k=1", "--set", "rrf-k=2", "--ablate"), "exclude each other"),
        (("--limit", "0"), "--limit"),
    ],
)
def test_flags_that_make_no_sense_are_told_before_anything_runs(
    evaluate: Any, repository: Repository, flags: tuple[str, ...], said: str
) -> None:
    """An hour later would be too late."""
    result, found = evaluate(raw_case(*shop(repository)), flags=flags)
    assert result.code == 2
    assert said in result.err
    assert found is None


def test_files_that_can_not_be_read_or_written(
    command: Command, repository: Repository, tmp_path: Path
) -> None:
    """One line and exit code 3."""
    shop(repository)
    empty = tmp_path / "empty.jsonl"
    empty.write_text("\n\n")
    for file, said in ((tmp_path / "none.jsonl", "No such file"), (empty, "holds no case")):
        result = command("eval", "run", "--cases", str(file), "--repo", str(repository.path))
        assert result.code == 3
        assert said in result.err
    cases = write_cases(tmp_path / "cases.jsonl", "\ufeff{")
    where = ("--cases", str(cases), "--repo", str(repository.path))
    result = command("eval", "run", *where)
    assert "line 1: not a case: " in result.err
    for out in (tmp_path, tmp_path / "none" / "r.json"):
        result = command("eval", "run", *where, "--out", str(out))
        assert result.code == 3
        assert f"can not write {out}" in result.err
    result = command("eval", "run", "--cases", str(empty))
    assert result.code == 2
    assert "no repositories named" in result.err


def test_two_runs_do_not_write_to_one_file(
    evaluate: Any, repository: Repository, tmp_path: Path
) -> None:
    """The second says so and leaves the first alone; when that ended, the name is free."""
    case = raw_case(*shop(repository))
    partial = tmp_path / "results.json.partial"
    with partial.open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        result, found = evaluate(case)
        assert (result.code, found) == (3, None)
        assert "another run writes to" in result.err
    assert partial.read_bytes() == b""
    assert evaluate(case)[0].code == 0


@pytest.mark.parametrize("kind", ["link", "pipe"])
def test_what_stands_in_the_place_of_the_partial_results_is_not_written_to(
    evaluate: Any, repository: Repository, tmp_path: Path, kind: str
) -> None:
    """A link that somebody left there would lead the run to another file, a pipe would hold it."""
    partial, other = tmp_path / "results.json.partial", tmp_path / "precious"
    other.write_text("keep")
    if kind == "link":
        partial.symlink_to(other)
    else:
        os.mkfifo(partial)
    result, found = evaluate(raw_case(*shop(repository)))
    assert (result.code, found) == (3, None)
    assert f"can not write {partial}" in result.err
    assert other.read_text() == "keep"


@pytest.mark.parametrize("flag", ["--cases", "--baseline", "--config"])
def test_a_pipe_that_nobody_writes_to_is_not_waited_for(
    evaluate: Any, repository: Repository, tmp_path: Path, flag: str
) -> None:
    """A run that waits for ever says nothing."""
    os.mkfifo(tmp_path / "pipe")
    result, _ = evaluate(raw_case(*shop(repository)), flags=(flag, str(tmp_path / "pipe")))
    assert result.code == 3
    assert "a pipe that nobody writes to" in result.err


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda text: text.replace('"schema_version": 1', '"schema_version": 9'), "reads 1"),
        (lambda text: text.replace('"chunk": [', '"chunk": [1, '), "its ranks are not those"),
        (lambda text: text.replace('"low": ', '"lower": '), "is not the results of eval run"),
        (lambda text: text.replace("acme", "acm\udce9"), "is not the results of eval run"),
        (lambda text: text[: len(text) // 2], "is not the results of eval run"),
    ],
    ids=["version", "ranks", "figures", "not UTF-8", "cut"],
)
def test_a_baseline_that_was_edited_is_refused(
    evaluate: Any, repository: Repository, tmp_path: Path, edit: Any, said: str
) -> None:
    """One line, before anything runs, and not a report of a bug."""
    case = raw_case(*shop(repository))
    evaluate(case)
    baseline = tmp_path / "baseline.json"
    text = edit((tmp_path / "results.json").read_text())
    baseline.write_bytes(text.encode("utf-8", "surrogateescape"))
    result, found = evaluate(case, flags=("--baseline", str(baseline)))
    assert (result.code, found) == (3, None)
    assert said in result.err


def test_what_a_partial_clone_lacks_is_told(
    command: Command, repository: Repository, tmp_path: Path
) -> None:
    """Figures of a clone without blobs would be taken for those of the ranking."""
    cases = write_cases(tmp_path / "cases.jsonl", raw_case(*shop(repository)))
    repository.git("config", "uploadpack.allowFilter", "true")
    clone = Repository.create(tmp_path / "clone")
    clone.git("remote", "add", "origin", f"file://{repository.path}")
    clone.git("fetch", "-q", "--filter=blob:none", "origin")
    arguments = ("--cases", str(cases), "--repo", str(clone.path), "--jobs", "1")
    result = command("eval", "run", *arguments)
    assert result.code == 0, result.err
    assert "degraded in 1 cases: not in this clone: " in result.out


def test_an_index_that_can_not_be_kept_is_told(
    evaluate: Any, repository: Repository, tmp_path: Path
) -> None:
    """Each case would parse everything anew, and nobody would know why it takes hours."""
    (tmp_path / "file").touch()
    flags = ("--index-dir", str(tmp_path / "file"))
    result, found = evaluate(raw_case(*shop(repository)), flags=flags)
    assert result.code == 0
    assert any(text.startswith("index ") for text in found["degradations"])


def test_quiet_still_says_why_it_fails(evaluate: Any, repository: Repository) -> None:
    """An exit code alone sends a reader to look for what it means."""
    case = raw_case(*shop(repository))
    floor = ("--quiet", "--set", "top-k=1", "--fail-below", "final.pack.recall@2000=1")
    result, _ = evaluate(case, flags=floor)
    assert (result.code, "below 1" in result.err) == (6, True)
    result, _ = evaluate(raw_case("f" * 40, "e" * 40), flags=("--quiet",))
    assert result.code == 3
    assert "is not in the repository" in result.err


def test_a_name_can_not_write_to_the_terminal(evaluate: Any, repository: Repository) -> None:
    """What stands in a file of cases is shown, not obeyed."""
    result, _ = evaluate(raw_case(*shop(repository)), flags=("--set", "query-prefix=\x1b[31m,b"))
    assert result.code == 0
    assert "\x1b" not in result.out


def test_a_repository_with_a_long_name_is_one_that_is_not_there(
    command: Command, repository: Repository, tmp_path: Path
) -> None:
    """No folder has such a name; with --repo its index gets a shorter one."""
    for name in ("x" * 300, "ß" * 90):
        case = raw_case(*shop(repository), repo=name)
        cases = write_cases(tmp_path / "cases.jsonl", case)
        common = ("eval", "run", "--cases", str(cases), "--jobs", "1")
        result = command(*common, "--repos", str(tmp_path))
        assert result.code == 3
        assert "no repository found for" in result.err
        where = ("--repo", str(repository.path), "--index-dir", str(tmp_path / "index"))
        assert command(*common, *where).code == 0


def test_only_flags_and_a_named_config_decide(
    evaluate: Any, repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Figures do not depend on a variable of the shell or on what some base configured."""
    monkeypatch.setenv("CODERAG_TOP_K", "1")
    repository.write({".coderag.yml": "top-k: 1\n"})
    case = raw_case(*shop(repository))
    _, found = evaluate(case)
    assert found["settings"] == {}
    assert found["overall"]["final"]["pack"]["recall@4000"]["value"] == 1
    config = tmp_path / "one.yml"
    config.write_text("top-k: 1\n")
    _, found = evaluate(case, flags=("--config", str(config)))
    assert found["settings"] == {"top-k": 1}
    assert found["overall"]["final"]["pack"]["recall@4000"]["value"] == 0.5


def test_a_case_written_by_hand_needs_no_more_than_it_says(
    evaluate: Any, repository: Repository
) -> None:
    """A question, its commit, and where the answer is."""
    base, _ = shop(repository)
    case = {
        "id": "by-hand",
        "kind": "query",
        "repo": "acme/shop",
        "base": base,
        "query": "where does the rate of a country come from?",
        "gold": [{"path": "src/rates.py", "start": 4, "end": 5}],
    }
    result, found = evaluate(case)
    assert result.code == 0
    assert found["skipped"] == []
    assert found["overall"]["final"]["chunk"]["hit@5"]["value"] == 1
    assert "channel:uses" not in result.out  # a channel that does not apply is no row of zeros


def test_the_limit_is_of_each_repository(evaluate: Any, repository: Repository) -> None:
    """The first cases in the file."""
    base, head = shop(repository)
    cases = [raw_case(base, head, id=f"a{n}") for n in range(3)]
    cases += [raw_case(base, head, id=f"b{n}", repo="acme/other") for n in range(3)]
    _, found = evaluate(*cases, flags=("--limit", "2"))
    ids = [one["outcome"]["id"] for one in found["variants"][0]["outcomes"]]
    assert ids == ["a0", "a1", "b0", "b1"]


def test_the_index_of_context_is_left_alone(evaluate: Any, repository: Repository) -> None:
    """Views of old commits would push out what the next pull request needs."""
    evaluate(raw_case(*shop(repository)))
    assert not (repository.path / ".git" / "coderag-ci").exists()
    assert (repository.path / ".git" / "coderag-ci-eval").is_dir()


def test_what_is_measured_is_what_context_shows(
    evaluate: Any, command: Command, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same evidence in the same order; the case asks for other files than its own."""
    base = shop(repository)[0]
    repository.git("checkout", "-q", base)
    head = repository.commit({"src/tax.py": TAX.replace("* rate", "* rate * 2")}, "Double")
    packs: list[Any] = []
    real = outcome._of_pack
    monkeypatch.setattr(outcome, "_of_pack", lambda *a: (packs.append(a[3].evidence), real(*a))[1])
    evaluate(raw_case(base, head, subject="Double"))
    made = command(
        "context", "--repo", str(repository.path), "--base", base, "--head", head,
        "--format", "json",
    )  # fmt: skip
    evidence = json.loads(made.out)["evidence"]
    shown = [(e["path"], e["ranges"]) for e in evidence if e["path"] != "src/tax.py"]
    assert len(shown) < len(evidence)
    assert [(e.path, [list(r) for r in e.ranges]) for e in packs[0]] == shown
    assert shown


def _figures(found: Any) -> Any:
    """Return results without what differs from run to run: the clock."""
    if isinstance(found, dict):
        return {k: _figures(v) for k, v in found.items() if k not in ("seconds", "stages")}
    return [_figures(item) for item in found] if isinstance(found, list) else found
