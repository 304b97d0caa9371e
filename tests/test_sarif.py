"""Findings of linters, from SARIF: which are shown, how they are found, what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from coderag_ci import sarif
from coderag_ci.render.as_json import read as read_pack
from coderag_ci.render.html import render as html
from coderag_ci.render.markdown import render as markdown
from tests.conftest import Command
from tests.packs import pack_of
from tests.repository import Repository

BEFORE = "def rate(country):\n    return 0\n\n\ndef other():\n    return 1\n"
AFTER = BEFORE.replace("return 0", "return RATES[country]")
CHANGED = 2  # the line that the change adds, of shop/tax.py


def changed(repository: Repository) -> Repository:
    """Commit a change of one line."""
    repository.commit({"shop/tax.py": BEFORE, "shop/cart.py": "import tax\n"})
    repository.commit({"shop/tax.py": AFTER})
    return repository


def result(uri: str = "shop/tax.py", line: int = CHANGED, **other: Any) -> dict[str, Any]:
    """Return a result at a line of a file."""
    place = {"artifactLocation": {"uri": uri}, "region": {"startLine": line}}
    return {
        "ruleId": "R1",
        "level": "error",
        "message": {"text": "no such name"},
        "locations": [{"physicalLocation": place}],
        **other,
    }


def report(*results: dict[str, Any], **run: Any) -> dict[str, Any]:
    """Return a log of one run."""
    driver = {"driver": {"name": "lint"}}
    return {"version": "2.1.0", "runs": [{"tool": driver, "results": list(results), **run}]}


def lint_of(
    command: Command, repository: Repository, log: dict[str, Any], *more: str
) -> dict[str, Any]:
    """Return what the pack of the last commit says of a report."""
    file = repository.path.parent / "lint.sarif"
    file.write_text(json.dumps(log))
    pack = pack_of(command, repository, "--base", "HEAD~1", "--sarif", str(file), *more)
    lint: dict[str, Any] = pack["lint"]
    return lint


def counts(lint: dict[str, Any]) -> tuple[int, int, int, int, int]:
    """Return how many are shown, and how many are not, by reason."""
    others = (lint[name] for name in ("more", "elsewhere", "outside", "suppressed"))
    return (len(lint["found"]), *others)  # type: ignore[return-value]


# ---- what is shown


def test_findings_on_changed_lines_are_shown_and_the_rest_counted(
    repository: Repository, command: Command
) -> None:
    """A reviewer sees what a linter says of this change, and no list of old sins."""
    changed(repository)
    lint = lint_of(
        command,
        repository,
        report(
            result(), result(line=6), result("shop/cart.py", 1), result("/usr/lib/x.py"), result()
        ),
    )
    assert lint["found"] == [
        {
            "path": "shop/tax.py",
            "line": CHANGED,
            "tool": "lint",
            "rule": "R1",
            "level": "error",
            "message": "no such name",
        }
    ]
    assert counts(lint) == (1, 0, 2, 1, 0)


@pytest.mark.parametrize("form", ["markdown", "prompt", "html"])
def test_each_format_shows_them(form: str, repository: Repository, command: Command) -> None:
    """Whoever reads the pack, as whatever, knows what the linter said."""
    changed(repository)
    file = repository.path.parent / "lint.sarif"
    file.write_text(json.dumps(report(result(), result(line=6))))
    told = ("context", "--repo", str(repository.path), "--base", "HEAD~1", "--format", form)
    out = command(*told, "--sarif", str(file)).out
    assert "no such name" in out
    assert "Not listed: 1 on other lines." in out
    file.write_text(json.dumps(report()))
    assert "No findings on changed lines." in command(*told, "--sarif", str(file)).out
    assert "Linters" not in command(*told).out


def test_what_ruff_writes_is_read(repository: Repository, command: Command) -> None:
    """The report of a real linter, with absolute addresses."""
    changed(repository)
    file = repository.path.parent / "ruff.sarif"
    flags = ["--isolated", "--no-cache", "--select", "F821,D103", "--output-format", "sarif"]
    subprocess.run(
        [sys.executable, "-m", "ruff", "check", *flags, "--output-file", str(file), "."],
        cwd=repository.path,
        check=False,
        capture_output=True,
    )
    pack = pack_of(command, repository, "--base", "HEAD~1", "--sarif", str(file))
    (found,) = pack["lint"]["found"]
    assert (found["path"], found["line"], found["tool"]) == ("shop/tax.py", CHANGED, "ruff")
    assert (found["rule"], found["message"]) == ("F821", "Undefined name `RATES`")
    assert pack["lint"]["elsewhere"] == 2


def test_many_findings_leave_the_diff_its_room(repository: Repository, command: Command) -> None:
    """A linter that says much must not push the diff out; the worst of it is shown."""
    changed(repository)
    many = [result(message={"text": f"style {n} " * 9}, level="note") for n in range(500)]
    file = repository.path.parent / "lint.sarif"
    file.write_text(json.dumps(report(*many, result())))
    pack = pack_of(
        command, repository, "--base", "HEAD~1", "--sarif", str(file), "--budget", "2000"
    )
    lint = pack["lint"]
    assert lint["found"][0]["level"] == "error"
    assert 1 < len(lint["found"]) < 20
    assert len(lint["found"]) + lint["more"] == 501
    assert pack["diff"][0]["hunks"]
    assert pack["budget"]["used_diff"] <= pack["budget"]["diff"]


def test_a_finding_of_several_lines_stands_at_its_first_changed_one(
    repository: Repository, command: Command
) -> None:
    """A finding of a whole function is of the change where the function is."""
    changed(repository)
    log = report(result())
    region = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"]
    region.update(startLine=1, endLine=4_000_000_000)
    assert lint_of(command, repository, log)["found"][0]["line"] == CHANGED


def test_reports_are_added_up(repository: Repository, command: Command) -> None:
    """Several linters ran; the same report named twice counts once."""
    changed(repository)
    files = []
    for name in ("a", "b"):
        log = report(result())
        log["runs"][0]["tool"]["driver"]["name"] = name
        file = repository.path.parent / f"{name}.sarif"
        file.write_text(json.dumps(log))
        files += ["--sarif", str(file)]
    pack = pack_of(command, repository, "--base", "HEAD~1", *files, *files)
    assert [found["tool"] for found in pack["lint"]["found"]] == ["a", "b"]


def test_what_is_no_finding_is_left_out(repository: Repository, command: Command) -> None:
    """What passed, what is gone, and what somebody decided to live with."""
    changed(repository)
    log = report(
        result(kind="pass", level="none"),
        result(baselineState="absent"),
        result(suppressions=[{"kind": "inSource"}]),
        result(suppressions=[{"kind": "external", "status": "rejected"}]),
        result(suppressions=[], ruleId="R2"),
    )
    assert counts(lint_of(command, repository, log)) == (2, 0, 0, 0, 1)


def test_rules_are_found_as_codeql_refers_to_them(repository: Repository, command: Command) -> None:
    """CodeQL keeps rules in extensions, levels with the rules, and links in messages."""
    changed(repository)
    rule = {"id": "py/sqli", "defaultConfiguration": {"level": "note"}}
    log = report(
        {
            "rule": {"index": 0, "toolComponent": {"index": 0}},
            "message": {"text": "depends on [a user's value](1), see [x](y)"},
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"index": 0},
                        "region": {"startLine": CHANGED},
                    }
                }
            ],
        },
        tool={"driver": {"name": "CodeQL"}, "extensions": [{"name": "q", "rules": [rule]}]},
        artifacts=[{"location": {"uri": "shop/tax.py", "uriBaseId": "%SRCROOT%"}}],
    )
    (found,) = lint_of(command, repository, log)["found"]
    assert (found["tool"], found["rule"], found["level"]) == ("CodeQL", "py/sqli", "note")
    assert found["message"] == "depends on a user's value, see [x](y)"


def test_a_change_without_files_counts_them(repository: Repository, command: Command) -> None:
    """Nothing changed, so no finding is of the change."""
    changed(repository)
    file = repository.path.parent / "lint.sarif"
    file.write_text(json.dumps(report(result())))
    pack = pack_of(command, repository, "--base", "HEAD", "--sarif", str(file))
    assert counts(pack["lint"]) == (0, 0, 1, 0, 0)


def test_a_pack_of_names_alone_has_them(repository: Repository, command: Command) -> None:
    """Where the search fails, what the linters said is still worth reading."""
    changed(repository)
    (repository.path / ".git/coderag-ci").write_text("no folder")
    assert counts(lint_of(command, repository, report(result()))) == (1, 0, 0, 0, 0)


def test_verify_asks_for_the_same_reports(repository: Repository, command: Command) -> None:
    """Without them the pack can not be made again, which is not a difference."""
    changed(repository)
    file, made = repository.path.parent / "lint.sarif", repository.path.parent / "pack.json"
    file.write_text(json.dumps(report(result())))
    where = ("--repo", str(repository.path))
    given = ("--sarif", str(file))
    context = ("context", *where, "--base", "HEAD~1", *given, "--format", "json")
    assert command(*context, "-o", str(made)).code == 0
    assert command("verify", str(made), *where, *given).code == 0
    refused = command("verify", str(made), *where)
    assert refused.code == 3
    assert "--sarif" in refused.err
    file.write_text(json.dumps(report()))
    assert "differs: first in lint" in command("verify", str(made), *where, *given).out


# ---- where a finding is


@pytest.mark.parametrize(
    ("address", "path"),
    [
        ("src/a.py", "src/a.py"),
        ("./src/../src/a.py", "src/a.py"),
        ("src\\a.py", "src/a.py"),
        ("src/a%20b%C3%A9.py", "src/a bé.py"),
        ("src/a#b?.py", "src/a#b?.py"),
        ("file:///r/src/a.py", "src/a.py"),
        ("file://localhost/r/src/a.py", "src/a.py"),
        ("file:/r/src/a.py", "src/a.py"),
        ("FILE:///r/src/%61.py", "src/a.py"),
        ("/r/src/a.py", "src/a.py"),
        ("/r/src/../../x/a.py", ""),
        ("file://server/r/src/a.py", ""),
        ("file:///else/a.py", ""),
        ("/repository/a.py", ""),
        ("../a.py", ""),
        ("src/../..", ""),
        ("%2e%2e/a.py", ""),
        ("https://example.invalid/r/src/a.py", ""),
        ("C:\\r\\src\\a.py", ""),
        ("file:///r", ""),
        ("file:", ""),
        (".", ""),
        ("", ""),
    ],
)
def test_an_address_becomes_a_path_of_the_repository(
    address: str, path: str, tmp_path: Path
) -> None:
    """Linters write addresses in many ways; those of other places are no paths of ours."""
    file = tmp_path / "lint.sarif"
    file.write_text(json.dumps(report(result(address))))
    (found,) = sarif.read(str(file), Path("/r"))
    assert [spot[0] for spot in found.spots] == ([path] if path else [])


def test_addresses_on_windows(tmp_path: Path) -> None:
    """There a root has a letter, which is no scheme."""
    from pathlib import PureWindowsPath

    file = tmp_path / "lint.sarif"
    ways = ("file:///C:/r/a.py", "C:\\r\\a.py", "C:/r/./a.py", "D:/r/a.py")
    file.write_text(json.dumps(report(*map(result, ways))))
    found = sarif.read(str(file), PureWindowsPath("C:\\r"))  # type: ignore[arg-type]
    assert [[spot[0] for spot in one.spots] for one in found] == [["a.py"]] * 3 + [[]]


@pytest.mark.parametrize(
    ("bases", "path"),
    [
        ({}, "a.py"),
        ({"SRC": {"uri": "file:///r/src/"}}, "src/a.py"),
        ({"SRC": {"uri": "file:///r/src"}}, "src/a.py"),
        ({"SRC": {"uri": "src/", "uriBaseId": "TOP"}, "TOP": {"uri": "file:///r/"}}, "src/a.py"),
        ({"SRC": {"uri": "src/", "uriBaseId": "TOP"}, "TOP": {}}, "src/a.py"),
        ({"SRC": {"uri": "file:///else/"}}, ""),
        ({"SRC": {"uri": "x/", "uriBaseId": "SRC"}}, "x/" * 10 + "a.py"),
    ],
)
def test_an_address_may_have_a_base(bases: dict[str, Any], path: str, tmp_path: Path) -> None:
    """Semgrep and CodeQL write paths from a base, which may be unknown, or lead round."""
    log = report(result(), originalUriBaseIds=bases)
    place = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    place["artifactLocation"] = {"uri": "a.py", "uriBaseId": "SRC"}
    file = tmp_path / "lint.sarif"
    file.write_text(json.dumps(log))
    (found,) = sarif.read(str(file), Path("/r"))
    assert [spot[0] for spot in found.spots] == ([path] if path else [])


def test_a_bare_repository_knows_relative_paths(repository: Repository, command: Command) -> None:
    """It has no place that an absolute path could be in."""
    changed(repository)
    bare = repository.path.parent / "bare.git"
    repository.git("clone", "--quiet", "--bare", ".", str(bare))
    file = repository.path.parent / "lint.sarif"
    file.write_text(json.dumps(report(result(), result(f"{repository.path}/shop/tax.py"))))
    given = ("--base", "HEAD~1", "--sarif", str(file), "--format", "json")
    lint = json.loads(command("context", "--repo", str(bare), *given).out)["lint"]
    assert counts(lint) == (1, 0, 0, 1, 0)


# ---- what is refused


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "not SARIF 2.1.0"),
        (b"not json", "not SARIF 2.1.0"),
        (b'{"version": "2.1.0", "runs": [{', "not SARIF 2.1.0"),
        (b'{"version": "1.0.0", "runs": 5}', "SARIF 1.0.0"),
        (b'{"runs": []}', "without a version"),
        (b'{"version": "2.1.0"}', "runs"),
        (b'{"version": "2.1.0", "runs": [{"tool": 1}]}', "$.runs[0].tool"),
        (b'{"version": "2.1.0\xff", "runs": []}', "not SARIF 2.1.0"),
        (b"[" * 100_000, "not SARIF 2.1.0"),
        (b'{"version": "2.1.0", "x": ' + b"[" * 100_000, "nested too deeply"),
        (b'{"version": "2.1.0", "runs": ' + b'{"a":' * 100_000, "not SARIF 2.1.0"),
        ("{}".encode("utf-16"), "not SARIF 2.1.0"),
    ],
)
def test_what_is_no_report_is_refused(
    data: bytes, said: str, repository: Repository, command: Command
) -> None:
    """One line says which file and what is wrong with it; no pack pretends that all is well."""
    changed(repository)
    file = repository.path.parent / "lint.sarif"
    file.write_bytes(data)
    told = command("context", "--repo", str(repository.path), "--sarif", str(file))
    assert (told.code, told.out) == (3, "")
    error, hint = told.err.rstrip("\n").split("\n")
    assert error.startswith(f"coderag-ci: error: {file}: ")
    assert said in error
    assert hint == "coderag-ci: hint: name a file that a linter wrote as SARIF 2.1.0"


def test_a_file_that_can_not_be_read_is_named(repository: Repository, command: Command) -> None:
    """Not there, a folder, or more than a report can be."""
    changed(repository)
    huge = repository.path.parent / "huge.sarif"
    with huge.open("wb") as file:
        file.truncate(sarif.MOST_BYTES + 1)
    for name, said in (
        (str(huge), "larger than 50 MiB"),
        (str(repository.path), "Is a directory"),
        ("missing.sarif", "No such file"),
        ("nul\0", "null"),
    ):
        told = command("context", "--repo", str(repository.path), "--sarif", name)
        assert told.code == 3
        assert said in told.err
        assert len(told.err.rstrip("\n").split("\n")) == 2


def test_a_mark_of_byte_order_is_no_fault(tmp_path: Path) -> None:
    """Tools from Windows begin a file with one."""
    file = tmp_path / "lint.sarif"
    file.write_text(json.dumps(report(result())), encoding="utf-8-sig")
    assert len(list(sarif.read(str(file), None))) == 1


# ---- text of a linter, or of who wrote the file


def test_text_of_a_finding_stays_text(repository: Repository, command: Command) -> None:
    """A message repeats names from the change, and a report may come from anywhere."""
    changed(repository)
    evil = "</li><script>x</script> [a](http://x.invalid) @all\u202e\n# Title\n" + "long " * 200
    log = report(result(ruleId="`<b>`" + "r" * 500, message={"text": evil}))
    log["runs"][0]["tool"]["driver"]["name"] = "t\n\n## Facts <b>"
    file, made = repository.path.parent / "lint.sarif", repository.path.parent / "pack.json"
    file.write_text(json.dumps(log))
    given = ("--base", "HEAD~1", "--sarif", str(file), "--format", "json", "-o", str(made))
    assert command("context", "--repo", str(repository.path), *given).code == 0
    pack = read_pack(made.read_bytes(), "pack")
    assert pack.lint is not None
    (found,) = pack.lint.found
    assert (len(found.message), len(found.rule)) == (200, 80)
    (line,) = (line for line in markdown(pack).split("\n") if line.startswith("- `shop/tax.py:2`"))
    assert "<script>" not in line
    assert "`[a](http://x.invalid)`" in line
    assert " @all" not in line
    assert "‹U+202E›" in line
    page = html(pack)
    assert page.count("<script>") == 1
    assert "<b>" not in page
