"""The command as a person or a job meets it: exit codes, messages, streams."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

import coderag_ci
from coderag_ci import cli, pipeline
from coderag_ci.errors import (
    EXIT_BUG,
    EXIT_DEGRADED,
    EXIT_INTERRUPTED,
    EXIT_OK,
    EXIT_SETUP,
    EXIT_TERMINATED,
    EXIT_USAGE,
)
from tests.conftest import Command, Result
from tests.repository import Repository

ROOT = Path(coderag_ci.__file__).resolve().parent.parent
SUBCOMMANDS = ("context", "explain", "index", "config", "doctor", "verify")
MODULE = "def area(width, height):\n    return width * height\n"
USER = "from shapes import area\n\n\ndef cost(width, height):\n    return 3 * area(width, height)\n"


def own_process(
    *arguments: str, cwd: Path, env: dict[str, str] | None = None, **options: object
) -> subprocess.CompletedProcess[bytes]:
    """Run the command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "coderag_ci", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT), **(env or {})},
        check=False,
        timeout=120,
        **{"capture_output": True, **options},
    )


def assert_one_line(result: Result, code: int, message: str, hint: str = "") -> None:
    """Check that a run ended in a code with one line of error, at most one hint and no pack."""
    assert result.out == ""
    first, *rest = result.err.rstrip("\n").split("\n")
    assert re.search(message, first), result.err
    assert first.startswith("coderag-ci: error: ")
    assert len(rest) <= 1
    assert all(line.startswith("coderag-ci: hint: ") for line in rest)
    assert hint in result.err
    assert "Traceback" not in result.err
    assert result.code == code


@pytest.fixture
def shapes(repository: Repository) -> Repository:
    """Return a repository whose last commit changes a function that another file calls."""
    repository.commit({"shapes.py": MODULE, "cost.py": USER})
    repository.commit({"shapes.py": MODULE.replace("*", "+")}, "Add instead")
    return repository


# ---- what is wrong with the repository


def test_a_folder_without_a_repository(tmp_path: Path, command: Command) -> None:
    """Outside a repository the message says so and how to name one."""
    for subcommand in ("context", "index", "config"):
        result = command(subcommand, cwd=tmp_path)
        assert_one_line(result, EXIT_SETUP, "not a git repository", "--repo DIR")


def test_a_repository_without_commits(repository: Repository, command: Command) -> None:
    """An empty repository is told from a broken one, by every command that needs a commit."""
    for subcommand in ("context", "index"):
        result = command(subcommand, cwd=repository.path)
        assert_one_line(result, EXIT_SETUP, "the repository has no commits yet", "commit once")
    assert command("config", cwd=repository.path).code == EXIT_OK


def test_staged_files_before_the_first_commit(repository: Repository, command: Command) -> None:
    """The very first commit can be looked at before it is made."""
    repository.write({"shapes.py": MODULE})
    repository.git("add", "-A")
    result = command("context", "--staged", "--format", "json", cwd=repository.path)
    assert result.code == EXIT_OK
    assert [file["path"] for file in json.loads(result.out)["diff"]] == ["shapes.py"]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--base", "nope"], EXIT_SETUP, "unknown ref: nope"),
        (["--head", "nope"], EXIT_SETUP, "unknown ref: nope"),
        (["--base=--all"], EXIT_USAGE, "not a ref"),
        (["--base", "new\nline"], EXIT_SETUP, "unknown ref: new line"),
        (["--base", "\x1b[31mred"], EXIT_SETUP, r"unknown ref: ‹U\+001B›\[31mred"),
        (["--base", "\udcff"], EXIT_SETUP, r"unknown ref: \\udcff"),
        (["--staged", "--worktree"], EXIT_USAGE, "exclude each other"),
        (["--head", "HEAD", "--worktree"], EXIT_USAGE, "exclude each other"),
        (["--repo", "/nonexistent"], EXIT_SETUP, "no such directory: /nonexistent"),
        (["--repo", "/dev/null"], EXIT_SETUP, "no such directory: /dev/null"),
        (["--paths", ":(wrong)x"], EXIT_USAGE, "--paths: Invalid pathspec magic 'wrong'"),
        (["--paths", "../../x"], EXIT_USAGE, "--paths: ../../x: .* is outside repository"),
        (["--budget", "0"], EXIT_USAGE, "--budget: budget: expected int >= 1"),
        (["--budget", "-5"], EXIT_USAGE, "--budget: budget: expected int >= 1"),
        (["--budget", "9" * 30], EXIT_USAGE, "--budget: budget: "),
        (["--budget", "1000001"], EXIT_USAGE, "--budget: budget: expected int <= 1000000"),
        (["--top-k", "0"], EXIT_USAGE, "--top-k: top-k: expected int >= 1"),
        (["--recall", "0"], EXIT_USAGE, "--recall: recall: expected int >= 1"),
        (["--rerank", "-1"], EXIT_USAGE, "--rerank: rerank: expected int >= 0"),
        (["--deadline", "-1"], EXIT_USAGE, "--deadline: deadline: expected float >= 0"),
        (["--deadline", "nan"], EXIT_USAGE, "--deadline: deadline: expected float"),
        (["--deadline", "inf"], EXIT_USAGE, "--deadline: deadline: expected float"),
        (["--channel", "vibes"], EXIT_USAGE, "unknown channel: vibes"),
        (["--no-channel", "vibes"], EXIT_USAGE, "unknown channel: vibes"),
        (["--weight", "uses"], EXIT_USAGE, "--weight uses: expected CHANNEL=W"),
        (["--weight", "vibes=1"], EXIT_USAGE, "unknown channel: vibes"),
        (["--weight", "uses="], EXIT_USAGE, "--weight: weights.uses: expected float"),
        (["--weight", "uses=much"], EXIT_USAGE, "--weight: weights.uses: expected float"),
        (["--weight", "uses=-1"], EXIT_USAGE, "--weight: weights.uses: expected float >= 0"),
        (["--weight", "uses=nan"], EXIT_USAGE, "--weight: weights.uses: expected float"),
        (["--config", "/nonexistent.yml"], EXIT_SETUP, "/nonexistent.yml: No such"),
        (["--config", "/"], EXIT_SETUP, "/: Is a directory"),
        (["--output", "/nonexistent/pack.md"], EXIT_SETUP, "can not write /nonexistent/pack.md"),
        (["--output", "/"], EXIT_SETUP, "can not write /: Is a directory"),
        (["--output", ""], EXIT_SETUP, "can not write '': Is a directory"),
        (["--output", "folder/"], EXIT_SETUP, "can not write folder/: Is a directory"),
        (["--output", "/proc/pack.md"], EXIT_SETUP, "can not write /proc/pack.md"),
    ],
)
def test_bad_input_gets_one_line(
    repository: Repository, command: Command, arguments: list[str], code: int, message: str
) -> None:
    """Each mistake ends in its documented code with a line that names it, never a traceback."""
    repository.commit({"a.py": "x = 1\n"})
    assert_one_line(command("context", *arguments, cwd=repository.path), code, message)


@pytest.mark.parametrize(
    "arguments",
    [
        ["context", "--format", "xml"],
        ["context", "--budget", "many"],
        ["context", "--no-such-flag"],
        ["context", "surplus"],
        ["verify"],
        ["no-such-command"],
        [],
    ],
)
def test_a_misspelt_command_line_shows_usage(
    repository: Repository, command: Command, arguments: list[str]
) -> None:
    """A wrong flag, value or command exits with 2 and says how it is written."""
    result = command(*arguments, cwd=repository.path)
    assert (result.code, result.out) == (EXIT_USAGE, "")
    assert result.err.count("Usage: coderag-ci") == 1
    assert "Traceback" not in result.err


def test_unrelated_histories(repository: Repository, command: Command) -> None:
    """Two histories without a common commit are no change; the line says so."""
    repository.commit({"a.py": "x = 1\n"})
    repository.git("checkout", "-q", "--orphan", "other")
    repository.commit({"b.py": "x = 1\n"})
    result = command("context", cwd=repository.path)
    assert_one_line(result, EXIT_SETUP, "have no commit in common")


def test_a_shallow_clone(shapes: Repository, tmp_path: Path, command: Command) -> None:
    """The most common mistake in CI is answered with the setting that mends it."""
    shapes.git("branch", "topic")
    shapes.commit({"more.py": "x = 1\n"})
    url = f"file://{shapes.path}"
    shapes.git("clone", "-q", "--depth=1", "--no-single-branch", "-b", "topic", url, "../shallow")
    result = command("context", "--base", "origin/main", cwd=tmp_path / "shallow")
    assert_one_line(result, EXIT_SETUP, "not in this shallow clone", "fetch-depth: 0")


def test_a_bare_repository(shapes: Repository, tmp_path: Path, command: Command) -> None:
    """Commits of a bare repository make a pack; its working tree is refused."""
    shapes.git("clone", "-q", "--bare", ".", "../bare.git")
    bare = tmp_path / "bare.git"
    refused = command("context", "--worktree", "--repo", str(bare))
    assert_one_line(refused, EXIT_SETUP, "a bare repository has no working tree", "--head")
    packs = [
        json.loads(command("context", "--base", "HEAD~1", "--format", "json", cwd=where).out)
        for where in (bare, shapes.path)
    ]
    assert packs[0]["digest"] == packs[1]["digest"]


def test_git_is_missing(shapes: Repository, tmp_path: Path) -> None:
    """On a machine without git the line says what to install, also --help works there."""
    env = {"PATH": str(tmp_path)}
    done = own_process("context", cwd=shapes.path, env=env)
    assert (done.returncode, done.stdout) == (EXIT_SETUP, b"")
    assert done.stderr.startswith(b"coderag-ci: error: git was not found\n")
    assert own_process("context", "--help", cwd=shapes.path, env=env).returncode == EXIT_OK


# ---- what is unusual about the repository


def test_base_equal_to_head_is_no_change(shapes: Repository, command: Command) -> None:
    """Nothing to review is an answer, not an error, in each format."""
    for form in ("markdown", "prompt"):
        result = command(
            "context", "--base", "HEAD", "--head", "HEAD", "--format", form, cwd=shapes.path
        )
        assert result.code == EXIT_OK
        assert "no changes" in result.out.lower()
    result = command("context", "--base", "HEAD", "--format", "json", cwd=shapes.path)
    assert json.loads(result.out)["diff"] == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"a.py": "x = 1\n"}),
        ({"a.py": "x = 1\n"}, {"a.py": None}),
        ({"a.py": "x = 1\n"}, {"a.py": "x = 2\n"}),
        ({"a.py": ""}, {"a.py": "x = 2\n"}),
        ({"a.py": MODULE, "b.py": USER, "c.md": "# C\n"}, {"a.py": MODULE.replace("*", "+")}),
    ],
)
def test_a_tiny_repository(
    repository: Repository,
    command: Command,
    before: dict[str, str | bytes | None],
    after: dict[str, str | bytes | None],
) -> None:
    """With no, one or three files there is a pack with the change in it."""
    repository.commit(before)
    repository.commit(after)
    result = command("context", "--base", "HEAD~1", "--format", "json", cwd=repository.path)
    assert result.code == EXIT_OK
    pack = json.loads(result.out)
    assert [file["path"] for file in pack["diff"]] == ["a.py"]
    assert pack["degradations"] == []


def test_odd_contents_cost_only_themselves(repository: Repository, command: Command) -> None:
    """A file that is not UTF-8, a large one and one endless line do not end the run."""
    odd: dict[str, str | bytes | None] = {
        "latin.py": "# caf\xe9\ndef latin_name():\n    return 1\n".encode("latin-1"),
        "large.py": "value = 1\n" * 200_000,
        "line.js": "x" * 3_000_000,
        "nul.py": b"x = 1\0\n",
        "deep.json": "[" * 50_000,
        "shapes.py": MODULE,
        "cost.py": USER,
    }
    repository.commit(odd)
    repository.commit({
        "latin.py": "# caf\xe9\ndef latin_name():\n    return 2\n".encode("latin-1"),
        "large.py": "value = 1\n" * 200_000 + "value = 2\n",
        "line.js": "x" * 3_000_001,
        "nul.py": b"x = 2\0\n",
        "shapes.py": MODULE.replace("*", "+"),
    })  # fmt: skip
    result = command("context", "--base", "HEAD~1", "--format", "json", cwd=repository.path)
    assert result.code == EXIT_OK
    pack = json.loads(result.out)
    shown = {file["path"]: file for file in pack["diff"]}
    assert list(shown) == ["large.py", "latin.py", "line.js", "nul.py", "shapes.py"]
    assert shown["nul.py"]["kind"] == "binary"
    assert "+    return 2" in shown["latin.py"]["hunks"][0]["lines"]
    assert pack["evidence"][0]["path"] == "cost.py"
    assert len(result.out) < 100_000


@pytest.mark.skipif(sys.platform != "linux", reason="file names that other systems refuse")
@pytest.mark.parametrize("form", ["markdown", "json", "prompt"])
def test_a_path_that_is_not_utf8(repository: Repository, command: Command, form: str) -> None:
    """One odd file name, changed or found, does not cost the pack; it is written as an escape."""
    odd = os.fsdecode(b"caf\xe9.py")
    repository.commit({"shapes.py": MODULE, odd: USER})
    repository.commit({"shapes.py": MODULE.replace("*", "+"), odd: USER + "\n# more\n"})
    result = command("context", "--base", "HEAD~1", "--format", form, cwd=repository.path)
    assert (result.code, result.err) == (EXIT_OK, "")
    assert "caf\\" in result.out
    if form == "json":
        assert [file["path"] for file in json.loads(result.out)["diff"]] == [
            "caf\\udce9.py", "shapes.py",
        ]  # fmt: skip


def test_a_title_with_half_a_character(
    shapes: Repository, command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A lone surrogate in a pull request's title, which JSON allows, does not cost the pack."""
    event = tmp_path / "event.json"
    event.write_text('{"pull_request": {"title": "half \\ud83d"}}')
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_EVENT_PATH", str(event))
    result = command("context", "--base", "HEAD~1", cwd=shapes.path)
    assert (result.code, result.err) == (EXIT_OK, "")


# ---- budget


@pytest.mark.parametrize("form", ["markdown", "json", "prompt"])
def test_any_budget_gives_a_pack(shapes: Repository, command: Command, form: str) -> None:
    """A budget too small for anything still gives a small pack; a huge one is no problem."""
    seen: list[int] = []
    for budget in ("1", "50", "400", "1000000"):
        result = command(
            "context", "--base", "HEAD~1", "--budget", budget, "--format", form, cwd=shapes.path
        )
        assert result.code == EXIT_OK
        assert "Add instead" in result.out
        assert ("+    return width + height" in result.out) == (int(budget) >= 400)
        seen.append(len(result.out))
    assert seen == sorted(seen)
    assert "cost.py" in result.out


# ---- output


def test_stdout_carries_the_pack_alone(shapes: Repository, command: Command) -> None:
    """A pipe gets valid JSON, a quiet run says nothing on stderr."""
    result = command("context", "--base", "HEAD~1", "--quiet", "--format", "json", cwd=shapes.path)
    assert result.err == ""
    assert json.loads(result.out)["diff"]
    traced = command("context", "--base", "HEAD~1", "--trace", "--format", "json", cwd=shapes.path)
    assert json.loads(traced.out)["digest"] == json.loads(result.out)["digest"]
    assert "recall" in traced.err


def test_a_file_gets_what_stdout_would(
    shapes: Repository, command: Command, tmp_path: Path
) -> None:
    """``--output`` writes the same bytes, says nothing and leaves nothing else behind."""
    folder = tmp_path / "out"
    folder.mkdir()
    target = folder / "pack.md"
    target.write_text("old")
    printed = command("context", "--base", "HEAD~1", cwd=shapes.path)
    written = command("context", "--base", "HEAD~1", "-o", str(target), cwd=shapes.path)
    assert (written.code, written.out) == (EXIT_OK, "")
    assert target.read_text(encoding="utf-8") == printed.out
    assert list(folder.iterdir()) == [target]
    assert target.stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_link_is_written_through(shapes: Repository, command: Command, tmp_path: Path) -> None:
    """``--output`` onto a link replaces the file it names and keeps the link."""
    target = tmp_path / "real.md"
    link = tmp_path / "link.md"
    target.write_text("old")
    link.symlink_to(target)
    assert command("context", "-o", str(link), cwd=shapes.path).code == EXIT_OK
    assert link.is_symlink()
    assert target.read_text(encoding="utf-8").startswith("# Evidence pack")


def test_a_failed_write_keeps_the_old_file(
    shapes: Repository, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that fills up leaves yesterday's pack whole and no half file beside it."""
    target = tmp_path / "out" / "pack.md"
    target.parent.mkdir()
    target.write_text("old")

    def full(*_: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    result = command("context", "--base", "HEAD", "-o", str(target), cwd=shapes.path)
    assert_one_line(result, EXIT_SETUP, "can not write .*: No space left on device")
    assert target.read_text() == "old"
    assert list(target.parent.iterdir()) == [target]


def test_a_device_is_written_to(shapes: Repository, command: Command) -> None:
    """``--output /dev/null`` writes there and does not replace it with a file."""
    assert command("context", "-o", "/dev/null", cwd=shapes.path).code == EXIT_OK
    assert not Path("/dev/null").is_file()


def test_a_reader_that_left_is_no_error(shapes: Repository) -> None:
    """``| head -c0`` ends in silence with 0, not in a traceback or a message at exit."""
    for arguments in (["context", "--base", "HEAD~1"], ["config"], ["--help"]):
        read, write = os.pipe()
        os.close(read)
        done = own_process(
            *arguments,
            cwd=shapes.path,
            capture_output=False,
            stdout=write,
            stderr=subprocess.PIPE,
        )
        os.close(write)
        assert (done.returncode, done.stderr) == (EXIT_OK, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_behind_stdout_is_said(shapes: Repository) -> None:
    """Redirected to a full disk, the command fails with a line: the pack is not there."""
    with open("/dev/full", "wb") as full:
        done = own_process(
            "context", "--base", "HEAD", "-q",
            cwd=shapes.path, capture_output=False, stdout=full, stderr=subprocess.PIPE,
        )  # fmt: skip
    assert done.returncode == EXIT_SETUP
    assert done.stderr == b"coderag-ci: error: can not write to stdout: No space left on device\n"


def test_a_closed_stdout_is_said(shapes: Repository) -> None:
    """With stdout closed there is nowhere to write to; with --output that does not matter."""
    command = f'"{sys.executable}" -m coderag_ci context --base HEAD -q'
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    for extra, code, said in [
        ("", EXIT_SETUP, b"coderag-ci: error: stdout is closed\n"),
        ("-o pack.md", EXIT_OK, b""),
    ]:
        done = subprocess.run(
            ["sh", "-c", f"{command} {extra} >&-"],
            cwd=shapes.path, env=env, capture_output=True, check=False, timeout=60,
        )  # fmt: skip
        assert done.returncode == code
        assert done.stderr.startswith(said)
        assert b"Traceback" not in done.stderr
    assert (shapes.path / "pack.md").is_file()


def test_an_ascii_terminal_gets_utf8(repository: Repository) -> None:
    """The pack is UTF-8 wherever it is printed, also in a job whose locale is not set."""
    repository.commit({"caf\u00e9.py": "x = 1\n"})
    repository.commit({"caf\u00e9.py": "x = '\u20ac'\n"}, "Caf\u00e9")
    env = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"}
    done = own_process("context", "--base", "HEAD~1", cwd=repository.path, env=env)
    assert (done.returncode, done.stderr) == (EXIT_OK, b"")
    assert "caf\u00e9.py" in done.stdout.decode("utf-8")
    assert "+x = '\u20ac'" in done.stdout.decode("utf-8")


# ---- strict, bugs, Ctrl-C


def test_strict_turns_a_degraded_pack_into_4(
    shapes: Repository, command: Command, tmp_path: Path
) -> None:
    """A missing model degrades the pack, which is still written; --strict makes it count."""
    arguments = ["context", "--base", "HEAD~1", "--embedding-model", str(tmp_path / "missing")]
    lenient = command(*arguments, cwd=shapes.path)
    assert lenient.code == EXIT_OK
    strict = command(*arguments, "--strict", cwd=shapes.path)
    assert strict.code == EXIT_DEGRADED
    assert strict.out == lenient.out
    assert "Evidence limited" in strict.out
    assert command("context", "--base", "HEAD~1", "--strict", cwd=shapes.path).code == EXIT_OK


def test_a_bug_ends_in_a_report(
    shapes: Repository, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What nobody foresaw gives version, arguments and trace to paste, and no half pack."""

    def explode(_: object) -> None:
        raise ZeroDivisionError("one \udcff over none")

    monkeypatch.setattr(pipeline, "make_pack", explode)
    result = command("context", "--base", "HEAD~1", cwd=shapes.path)
    assert (result.code, result.out) == (EXIT_BUG, "")
    assert result.err.startswith("coderag-ci: this is a bug")
    assert f"coderag-ci {coderag_ci.__version__}, Python" in result.err
    assert "arguments: context --base HEAD~1" in result.err
    assert "ZeroDivisionError: one \\udcff over none" in result.err


def test_an_interrupt_in_process_is_130(
    shapes: Repository, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C at any point ends in 130 and one line."""

    def interrupt(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(pipeline, "make_pack", interrupt)
    result = command("context", "--base", "HEAD~1", cwd=shapes.path)
    assert (result.code, result.out) == (EXIT_INTERRUPTED, "")
    assert result.err.strip() == "coderag-ci: interrupted"


BLOCKING_GIT = """#!/bin/sh
case " $* " in
*" cat-file "*)
    if [ -e "{folder}/armed" ]; then
        exec 9> "{folder}/held"
        echo here > "{folder}/reached"
        read line < "{folder}/block"
    fi ;;
esac
exec "{git}" "$@"
"""


# A shell that starts the tests in the background makes them, and what they start, ignore SIGINT.
INTERRUPTIBLE = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from coderag_ci.cli import main
main()
"""


class _Stopped(NamedTuple):
    code: int
    out: bytes
    err: bytes
    child_ended: bool


def stop_in_cat_file(
    arguments: Sequence[str], repository: Repository, folder: Path, number: signal.Signals
) -> _Stopped:
    """Run the command, and send it a signal while it waits for a git that does not answer."""
    git = subprocess.run(["which", "git"], capture_output=True, check=True, text=True).stdout
    wrapper = folder / "git"
    wrapper.write_text(BLOCKING_GIT.format(folder=folder, git=git.strip()))
    wrapper.chmod(0o755)
    names = ("reached", "block", "held")
    for name in names:
        os.mkfifo(folder / name)
    (folder / "armed").touch()
    reached, block = (os.open(folder / name, os.O_RDWR | os.O_NONBLOCK) for name in names[:2])
    held = os.open(folder / "held", os.O_RDONLY | os.O_NONBLOCK)
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", INTERRUPTIBLE, *arguments],
            cwd=repository.path,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert select.select([reached], [], [], 60)[0], "git cat-file was never run"
        if number == signal.SIGINT:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        out, err = process.communicate(timeout=60)
        ended = bool(select.select([held], [], [], 60)[0]) and os.read(held, 1) == b""
        return _Stopped(process.returncode, out, err, ended)
    finally:
        os.write(block, b"\n" * 9)
        for descriptor in (reached, block, held):
            os.close(descriptor)
        (folder / "armed").unlink()


@pytest.mark.parametrize(
    ("number", "code", "line"),
    [
        (signal.SIGINT, EXIT_INTERRUPTED, b"coderag-ci: interrupted"),
        (signal.SIGTERM, EXIT_TERMINATED, b"coderag-ci: terminated"),
    ],
)
def test_a_stopped_run_leaves_a_store_that_can_be_read(
    shapes: Repository, tmp_path: Path, number: signal.Signals, code: int, line: bytes
) -> None:
    """A cancelled job leaves one line, no process, nothing half-written, and a whole store."""
    folder = tmp_path / "bin"
    folder.mkdir()
    arguments = ("context", "--base", "HEAD~1", "--format", "json", "-q")
    first = own_process(*arguments, cwd=shapes.path)
    assert first.returncode == EXIT_OK
    shapes.commit({"cost.py": USER.replace("3", "4"), "new.py": "def fresh():\n    return 1\n"})
    written = ("--output", str(tmp_path / "out" / "pack.json"))
    (tmp_path / "out").mkdir()
    stopped = stop_in_cat_file([*arguments, *written], shapes, folder, number)
    assert (stopped.code, stopped.out, stopped.err.strip()) == (code, b"", line)
    assert stopped.child_ended
    assert not list((tmp_path / "out").iterdir())
    again = own_process(*arguments, cwd=shapes.path)
    assert (again.returncode, again.stderr) == (EXIT_OK, b"")
    fresh = own_process(*arguments, "--index-dir", str(tmp_path / "fresh"), cwd=shapes.path)
    assert json.loads(again.stdout)["digest"] == json.loads(fresh.stdout)["digest"]


SLOW_LIBRARY = """\
open({reached!r}, "w").write("x")
open({block!r}).read()
"""
STARTED = """\
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from coderag_ci.__main__ import main
main()
"""


@pytest.mark.parametrize(
    ("number", "code", "line"),
    [
        (signal.SIGINT, EXIT_INTERRUPTED, b"coderag-ci: interrupted\n"),
        (signal.SIGTERM, EXIT_TERMINATED, b"coderag-ci: terminated\n"),
    ],
)
def test_a_command_that_is_stopped_while_it_loads_says_so(
    tmp_path: Path, number: signal.Signals, code: int, line: bytes
) -> None:
    """Ctrl-C right after the start, or a job cancelled at once, gives a line and no traceback."""
    pipes = [tmp_path / "reached", tmp_path / "block"]
    for pipe in pipes:
        os.mkfifo(pipe)
    reached, block = (os.open(pipe, os.O_RDWR | os.O_NONBLOCK) for pipe in pipes)
    (tmp_path / "click").mkdir()
    program = SLOW_LIBRARY.format(reached=str(pipes[0]), block=str(pipes[1]))
    (tmp_path / "click" / "__init__.py").write_text(program)
    process = subprocess.Popen(
        [sys.executable, "-c", STARTED, "--version"],
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    try:
        assert select.select([reached], [], [], 60)[0], "click was never imported"
        process.send_signal(number)
        assert process.communicate(timeout=60) == (b"", line)
        assert process.returncode == code
    finally:
        process.kill()
        process.wait()
        os.close(reached)
        os.close(block)


# ---- help, version, start


def test_each_command_explains_itself(command: Command) -> None:
    """``--help`` and ``-h`` work everywhere and the exit codes are listed."""
    for subcommand in SUBCOMMANDS:
        result = command(subcommand, "--help")
        assert (result.code, result.err) == (EXIT_OK, "")
        assert f"Usage: coderag-ci {subcommand}" in result.out
        assert command(subcommand, "-h").out == result.out
    top = command("--help")
    assert top.code == EXIT_OK
    assert all(name in top.out for name in SUBCOMMANDS)
    for code in (0, 2, 3, 4, 5, 70, 130, 143):
        assert re.search(rf"^ +{code}\s", top.out, re.MULTILINE)


def test_the_version_is_printed(command: Command) -> None:
    """``--version`` gives the version that bug reports name."""
    result = command("--version")
    assert (result.code, result.out.strip()) == (
        EXIT_OK, f"coderag-ci, version {coderag_ci.__version__}"
    )  # fmt: skip


@pytest.mark.parametrize(
    "arguments", [["--version"], ["--help"], ["context", "--base", "HEAD", "--head", "HEAD"]]
)
def test_what_needs_no_model_loads_none(shapes: Repository, arguments: list[str]) -> None:
    """A version, a help page and an empty diff answer without loading numpy or a model runtime."""
    code = (
        "import sys\nfrom coderag_ci.cli import run\n"
        f"code = run({arguments!r})\n"
        "heavy = {'numpy', 'onnxruntime', 'fastembed', 'tree_sitter', 'rank_bm25', 'rich'}\n"
        "print(code, sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=shapes.path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.stderr == b"0 []\n"


def test_the_module_runs_like_the_command(shapes: Repository) -> None:
    """``python -m coderag_ci`` passes the exit code on."""
    assert own_process("--version", cwd=shapes.path).returncode == EXIT_OK
    assert own_process("context", "--base", "nope", cwd=shapes.path).returncode == EXIT_SETUP


def test_main_exits_with_the_code(shapes: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    """The console script ends the process with the documented code."""
    monkeypatch.chdir(shapes.path)
    with pytest.raises(SystemExit) as caught:
        cli.main(["context", "--base", "nope"])
    assert caught.value.code == EXIT_SETUP


def test_the_folder_one_stands_in_is_not_imported(shapes: Repository) -> None:
    """A repository with a module named like one of ours, or of the library, does not run it."""
    trap = "open('trapped', 'w').close()\n"
    names = ("numpy", "msgspec", "yaml", "queue", "tree_sitter", "selectors")
    shapes.commit({f"{name}.py": trap for name in names})
    script = Path(sys.executable).parent / "coderag-ci"
    if not script.exists():
        pytest.skip("the console script is not installed")
    done = subprocess.run(
        [script, "context", "--base", "HEAD~1", "-q"],
        cwd=shapes.path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == EXIT_OK
    assert not (shapes.path / "trapped").exists()
