"""``coderag-ci publish``: the summary of a run, a file, a comment on a forge."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from coderag_ci import workflow
from coderag_ci.render import as_json, markdown
from tests.conftest import Command
from tests.packs import shop
from tests.repository import Repository
from tests.test_render import PACK


@pytest.fixture
def pack(repository: Repository, command: Command, tmp_path: Path) -> Path:
    """Return the pack of a real change, as a file."""
    shop(repository)
    file = tmp_path / "pack.json"
    made = command(
        "context", "--base", "main", "--format", "json", "-o", str(file), cwd=repository.path
    )
    assert made.code == 0
    return file


@pytest.fixture
def empty(repository: Repository, command: Command, tmp_path: Path) -> Path:
    """Return a pack in which nothing was found."""
    repository.commit({"a.txt": "one\n"})
    repository.commit({"a.txt": "two\n"})
    file = tmp_path / "empty.json"
    command("context", "--base", "HEAD~1", "--format", "json", "-o", str(file), cwd=repository.path)
    return file


# ---- file


def test_a_comment_goes_to_stdout_or_to_a_file(
    command: Command, pack: Path, tmp_path: Path
) -> None:
    """Whoever posts it by other means gets the same text."""
    shown = command("publish", str(pack), "--to", "file", "--link", "https://forge.example/1")
    assert shown.code == 0
    assert "[the whole pack](https://forge.example/1)" in shown.out
    assert "`total_price`" in shown.out
    file = tmp_path / "comment.md"
    command(
        "publish", str(pack), "--to", "file", "--link", "https://forge.example/1", "-o", str(file)
    )
    assert file.read_text() == shown.out


def test_when_to_comment(command: Command, pack: Path, empty: Path) -> None:
    """By default nothing is said where nothing was found; always says that; never says nothing."""

    def said(file: Path, when: str) -> str:
        return command("publish", str(file), "--to", "file", "--when", when).out

    assert said(pack, "auto") == said(pack, "always") != ""
    assert said(pack, "never") == said(empty, "auto") == said(empty, "never") == ""
    assert said(empty, "always").startswith("coderag-ci found nothing relevant")


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--to", "paper"),
        ("--to", "file", "--when", "sometimes"),
        ("--to", "file", "--tokens", "10"),
        ("--to", "file", "--link", "javascript:alert(1)"),
        ("--to", "file", "--link", f"https://forge.example/{'x' * 60_000}"),
        ("--to", "summary", "--output", "x"),
    ],
)
def test_flags_that_make_no_sense(command: Command, pack: Path, arguments: tuple[str, ...]) -> None:
    """A wrong flag is said in a line."""
    done = command("publish", str(pack), *arguments)
    assert done.code == 2
    assert "Traceback" not in done.err


@pytest.mark.parametrize("content", [None, b"", b"# Evidence pack", b'{"schema_version": 99}'])
def test_what_is_no_pack(command: Command, tmp_path: Path, content: bytes | None) -> None:
    """A file that is missing or no pack is said in a line."""
    file = tmp_path / "pack.json"
    if content is not None:
        file.write_bytes(content)
    done = command("publish", str(file), "--to", "file")
    assert done.code == 3
    assert "Traceback" not in done.err


# ---- summary


def test_the_summary_has_the_whole_pack(
    command: Command, pack: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run's page shows the pack, after what the step wrote there before."""
    file = tmp_path / "summary.md"
    file.write_text("Before.\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(file))
    done = command("publish", str(pack), "--to", "summary")
    assert (done.code, done.out) == (0, "")
    made = as_json.read(pack.read_bytes(), "x")
    assert file.read_text() == "Before.\n" + markdown.render(made)


def test_without_a_summary_the_pack_is_printed(command: Command, pack: Path) -> None:
    """Outside a workflow one sees what the summary would be."""
    done = command("publish", str(pack), "--to", "summary")
    assert done.out == markdown.render(as_json.read(pack.read_bytes(), "x"))


def test_a_summary_that_can_not_be_written(
    command: Command, pack: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is said in a line."""
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "no" / "summary.md"))
    done = command("publish", str(pack), "--to", "summary")
    assert done.code == 3
    assert "summary can not be written" in done.err


def test_a_summary_is_cut_at_a_sound_place(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """GitHub shows nothing of a summary that is too large, and half a fence spoils the rest."""
    made = json.loads(as_json.render(PACK))
    made["evidence"] = [dict(made["evidence"][0], path=f"shop/{n}.py") for n in range(5000)]
    pack = tmp_path / "pack.json"
    pack.write_text(json.dumps(made))
    file = tmp_path / "summary.md"
    file.write_text("x" * 1000)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(file))
    assert command("publish", str(pack), "--to", "summary").code == 0
    text = file.read_text()
    assert (1 << 20) - 2000 < file.stat().st_size <= 1 << 20
    assert text.endswith("has all of it.*\n")
    assert text.count("<details") == text.count("</details>")
    assert text.count("\n````python") > 1000
    assert text.count("\n````python") * 2 == text.count("\n````python") + text.count("\n````\n")


@pytest.mark.parametrize("most", [0, 10, 80, 90, 100, 130, 200])
def test_how_markdown_is_cut(most: int) -> None:
    """No cut falls into a fence or into something folded, also where a fence holds shorter ones."""
    text = "# A\n\n````python\na\n\n```\n\nb\n````\n\n<details>\n\nc\n\n</details>\n\nd\n" * 3
    done = workflow.cut(text, most)
    assert len(done.encode()) <= most
    assert done.count("<details>") == done.count("</details>")
    assert done.count("````") % 2 == 0
