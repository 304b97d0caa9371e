"""Hooks: what is shown before a commit and a push, and plain git hooks beside those of others."""

from __future__ import annotations

import errno
import os
import select
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from coderag_ci import hooks, pushed
from coderag_ci.commands import hook as commands
from coderag_ci.deadline import Deadline
from coderag_ci.errors import EXIT_FOUND, EXIT_OK, EXIT_SETUP, SetupError
from coderag_ci.gitrepo import GitRepo
from tests.conftest import Command
from tests.packs import SHOP
from tests.repository import Repository

TAX = "shop/tax.py"


def gone(name: str = "tax_rate") -> str:
    """Return the shop's tax module without the function that two other files use."""
    return str(SHOP[TAX]).replace(f"def {name}(", "def rate_of_tax(")


def git(where: Path, *arguments: str) -> str:
    """Run git in a folder and return what it and its hooks printed; fails where git does."""
    done = attempt(where, *arguments)
    assert done.returncode == 0, done.stdout
    return done.stdout


def attempt(where: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run git in a folder without a terminal, stdout and stderr together."""
    return subprocess.run(
        ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.com", *arguments],
        cwd=where,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


@pytest.fixture
def shop(repository: Repository) -> Repository:
    """Return the shop, committed once."""
    repository.commit(SHOP, "Add the shop")
    return repository


@pytest.fixture
def remote(shop: Repository, tmp_path: Path) -> Path:
    """Return a bare remote named origin that has nothing yet."""
    bare = Repository.create(tmp_path / "remote.git", "--bare")
    shop.git("remote", "add", "origin", str(bare.path))
    return bare.path


def install(shop: Repository, command: Command, *options: str) -> str:
    """Install hooks and return what is said."""
    done = command("hook", "install", *options, cwd=shop.path)
    assert done.code == EXIT_OK, done.err
    return done.out


# ---- what is shown


def test_a_commit_shows_what_the_staged_change_breaks(shop: Repository, command: Command) -> None:
    """The facts and the best pieces are printed, the whole pack is in the git directory."""
    install(shop, command)
    shop.write({TAX: gone(), "shop/invoice.py": str(SHOP["shop/invoice.py"]) + "\nUNSTAGED = 1\n"})
    shop.git("add", TAX)
    out = git(shop.path, "commit", "-m", "Rename")
    assert "1 file, +1 −1" in out
    assert "dangling: `tax_rate`" in out
    assert "shop/price.py:" in out
    assert "the whole pack: .git/coderag-ci/pre-commit.md" in out
    pack = (shop.path / ".git/coderag-ci/pre-commit.md").read_text()
    assert "rate_of_tax" in pack
    assert "UNSTAGED" not in pack


def test_at_most_five_pieces_are_named(repository: Repository, command: Command) -> None:
    """A change that twenty functions use does not fill the terminal."""
    users = "".join(f"def user_{i}():\n    return helper_of_all({i})\n\n\n" for i in range(20))
    repository.commit({"a.py": "def helper_of_all(x):\n    return x\n", "b.py": users})
    repository.write({"a.py": "def helper_of_all(x):\n    return x + 1\n"})
    repository.git("add", "-A")
    out = command("hook", "run", cwd=repository.path).out
    assert 1 <= out.partition("look at:")[2].count("    b.py:") <= 5


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({TAX: None}, "1 file, +0 −8"),
        ({}, "no changes"),
        ({"notes.xyz": "1\n"}, "nothing relevant found"),
    ],
    ids=["deleted", "nothing staged", "unrelated"],
)
def test_any_staged_change_gets_a_line(
    shop: Repository, command: Command, change: dict[str, str | None], said: str
) -> None:
    """A deletion, an empty change and one that nothing knows of end with 0 and say so."""
    shop.write(change)
    shop.git("add", "-A")
    done = command("hook", "run", cwd=shop.path)
    assert (done.code, done.err) == (EXIT_OK, "")
    assert said in done.out


def test_the_first_commit_of_a_repository(repository: Repository, command: Command) -> None:
    """Where there is nothing to compare with yet, the commit goes through."""
    install(repository, command)
    repository.write(SHOP)
    repository.git("add", "-A")
    assert f"{len(SHOP)} files" in git(repository.path, "commit", "-m", "first")
    assert repository.git("rev-list", "--count", "HEAD") == "1"


def test_an_amended_commit_and_one_of_named_paths(shop: Repository, command: Command) -> None:
    """--amend and a commit of some paths, which uses an index of its own, are shown alike."""
    install(shop, command)
    shop.write({TAX: gone()})
    assert "dangling" in git(shop.path, "commit", "-m", "Rename", "--", TAX)
    shop.write({"shop/price.py": "X = 1\n"})
    assert "1 file" in git(shop.path, "commit", "-a", "--amend", "-m", "Rename more")


def test_fail_on_dangling_stops_the_commit(shop: Repository, command: Command) -> None:
    """Under --fail-on dangling a commit that leaves a name in the air is refused; others pass."""
    install(shop, command, "--fail-on", "dangling")
    shop.write({TAX: gone()})
    shop.git("add", "-A")
    done = attempt(shop.path, "commit", "-m", "Rename")
    assert done.returncode == EXIT_FOUND
    assert "dangling" in done.stdout
    shop.git("checkout", "HEAD", TAX)
    shop.write({"more.py": "x = 1\n"})
    shop.git("add", "-A")
    git(shop.path, "commit", "-m", "More")


def test_limited_evidence_stops_no_commit(shop: Repository, command: Command) -> None:
    """Where something is missing a name may be defined there, so that --fail-on does not count."""
    shop.write({TAX: gone(), ".coderag.yml": "embedding-model: /nowhere\n"})
    shop.git("add", TAX)
    done = command("hook", "run", "--fail-on", "dangling", cwd=shop.path)
    assert done.code == EXIT_OK
    assert "dangling" in done.out
    assert "does not count: the evidence is limited" in done.out


def test_what_can_not_be_done_does_not_stop_a_commit(shop: Repository, command: Command) -> None:
    """A config that makes no sense costs a line on stderr, never the commit."""
    shop.write({".coderag.yml": "budget: many\n"})
    shop.git("add", "-A")
    done = command("hook", "run", cwd=shop.path)
    assert done.code == EXIT_OK
    assert "no pack: .coderag.yml, line 1" in done.err


def test_a_bug_does_not_stop_a_commit(
    shop: Repository, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What nobody foresaw is one line, too, and says where a report comes from."""

    def fail(*_: object) -> None:
        raise ValueError("odd\nthing")

    monkeypatch.setattr(commands, "_shown", fail)
    done = command("hook", "run", cwd=shop.path)
    assert done.code == EXIT_OK
    assert "for a bug: ValueError: odd thing" in done.err


def test_a_deadline_ends_the_hook_whatever_hangs(
    shop: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A git that never answers is not waited for, nor left behind: one line, exit 0."""
    hanging = tmp_path / "hanging"
    os.mkfifo(hanging)
    script = f'#!/bin/sh\ncase "$*" in *--raw*) exec cat {hanging};; esac\n'
    executable(tmp_path / "bin/git", f'{script}exec {shutil.which("git")} "$@"\n')
    shop.write({TAX: gone()})
    shop.git("add", "-A")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    done = subprocess.run(
        [sys.executable, "-m", "coderag_ci", "hook", "run", "--deadline", "0.5"],
        cwd=shop.path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == EXIT_OK
    assert "no pack within 0.5 s" in done.stderr
    assert _unread(hanging)


def _unread(pipe: Path) -> bool:
    """Wait until nobody reads a pipe any more."""
    try:
        end = os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        return error.errno == errno.ENXIO
    watch = select.poll()
    watch.register(end, select.POLLERR)
    found = watch.poll(60_000)
    os.close(end)
    return bool(found)


def test_a_search_that_hangs_leaves_a_limited_pack(
    shop: Repository, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the index can not be searched in time, what is shown says that it is limited."""

    def wait(event: threading.Event, seconds: float) -> bool:
        return event.wait() if seconds == 60 else False  # the diff is there, the search late

    class Late(Deadline):
        def __init__(self, _: float) -> None:
            super().__init__(60, lambda: 0.0, wait)

    monkeypatch.setattr("coderag_ci.deadline.Deadline", Late)
    shop.write({TAX: gone()})
    shop.git("add", "-A")
    done = command("hook", "run", cwd=shop.path)
    assert done.code == EXIT_OK
    assert "no search of the index: deadline; names alone were searched for" in done.out
    assert "the whole pack: .git/coderag-ci/pre-commit.md" in done.out


def test_a_name_can_not_write_to_the_terminal(repository: Repository, command: Command) -> None:
    """Control characters in a path are not passed on."""
    repository.commit({"a\x1b[31m.py": "def odd_name():\n    pass\n", "b.py": "odd_name()\n"})
    repository.write({"a\x1b[31m.py": "x = 1\n"})
    repository.git("add", "-A")
    out = command("hook", "run", cwd=repository.path).out
    assert "a‹U+001B›[31m.py" in out
    assert "\x1b" not in out


# ---- pushes


@pytest.mark.usefixtures("remote")
def test_a_push_shows_what_the_remote_does_not_have(shop: Repository, command: Command) -> None:
    """The change starts at what the remote has of the branch, not before."""
    shop.git("push", "-q", "origin", "main")
    install(shop, command, "--stage", "pre-push")
    shop.commit({TAX: gone()}, "Rename")
    out = git(shop.path, "push", "origin", "main")
    assert "1 file, +1 −1" in out
    assert "dangling" in out
    assert (shop.path / ".git/coderag-ci/pre-push.md").exists()


@pytest.mark.usefixtures("remote")
def test_the_first_push_of_a_branch(shop: Repository, command: Command) -> None:
    """A new branch is compared with what the remote has of its history."""
    shop.git("push", "-q", "origin", "main")
    shop.git("checkout", "-q", "-b", "topic")
    shop.commit({"one.py": "x = 1\n"})
    shop.commit({"two.py": "x = 1\n"})
    install(shop, command, "--stage", "pre-push")
    assert "2 files, +2 −0" in git(shop.path, "push", "-u", "origin", "topic")


@pytest.mark.usefixtures("remote")
def test_the_first_push_of_all(shop: Repository, command: Command) -> None:
    """Where the remote has nothing there is nothing to compare with, and the push goes through."""
    install(shop, command, "--stage", "pre-push")
    assert "all of main is new to the remote" in git(shop.path, "push", "origin", "main")
    assert shop.git("ls-remote", "origin", "main")


@pytest.mark.usefixtures("remote")
def test_pushes_without_code(shop: Repository, command: Command) -> None:
    """Tags, deleted branches and a branch that the remote knows under another name add nothing."""
    shop.git("push", "-q", "origin", "main")
    install(shop, command, "--stage", "pre-push")
    shop.git("tag", "v1")
    assert "no branch is pushed" in git(shop.path, "push", "origin", "v1")
    assert "no changes" in git(shop.path, "push", "origin", "main:other")
    assert "no branch is pushed" in git(shop.path, "push", "origin", ":other")


@pytest.mark.usefixtures("remote")
def test_a_forced_push_of_an_amended_commit(shop: Repository, command: Command) -> None:
    """What was amended after a push is compared from where the two part."""
    shop.git("push", "-q", "origin", "main")
    shop.commit({"one.py": "x = 1\n"})
    shop.git("push", "-q", "origin", "main")
    shop.write({"two.py": "x = 1\n"})
    shop.git("add", "-A")
    shop.git("commit", "-q", "--amend", "-m", "both")
    install(shop, command, "--stage", "pre-push")
    assert "2 files, +2 −0" in git(shop.path, "push", "-f", "origin", "main")


@pytest.mark.usefixtures("remote")
def test_several_branches_are_named(shop: Repository, command: Command) -> None:
    """Of several pushed branches the first is shown and the others are named."""
    shop.git("push", "-q", "origin", "main")
    for name in ("a", "b"):
        shop.git("checkout", "-q", "-b", name, "main")
        shop.commit({f"{name}.py": "x = 1\n"})
    install(shop, command, "--stage", "pre-push")
    out = git(shop.path, "push", "origin", "a", "b")
    assert "1 file, +1 −0" in out
    assert "not looked at: b" in out


@pytest.mark.usefixtures("remote")
def test_the_variables_of_pre_commit(shop: Repository) -> None:
    """Both refs are taken; without them what the remote lacks of the branch, or None for all."""
    repo = GitRepo(str(shop.path))
    first = shop.git("rev-parse", "HEAD")
    assert pushed.of_pre_commit(repo, {}).base is None
    shop.git("push", "-q", "origin", "main")
    second = shop.commit({"one.py": "x = 1\n"})
    both = {"PRE_COMMIT_FROM_REF": first, "PRE_COMMIT_TO_REF": second}
    assert pushed.of_pre_commit(repo, both) == ("HEAD", first, second)
    assert pushed.of_pre_commit(repo, {}) == ("HEAD", first, second)
    unknown = {**both, "PRE_COMMIT_FROM_REF": "1" * 40, "PRE_COMMIT_REMOTE_NAME": "origin"}
    assert pushed.of_pre_commit(repo, unknown) == ("HEAD", first, second)
    with pytest.raises(SetupError, match="unknown ref"):
        pushed.of_pre_commit(repo, {"PRE_COMMIT_LOCAL_BRANCH": "refs/heads/nowhere"})


def test_lines_that_git_does_not_write_are_passed_over(shop: Repository) -> None:
    """A line of other than four words costs nothing."""
    repo = GitRepo(str(shop.path))
    assert pushed.of_lines(repo, "origin", ["", "one two", "a b c d e"]) == []


# ---- plain hooks


def executable(path: Path, text: str) -> None:
    """Write a hook of somebody else."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def test_install_status_uninstall(shop: Repository, command: Command) -> None:
    """One hook or both are written, said, and taken away again without a trace."""
    before = sorted(os.listdir(shop.path / ".git/hooks"))
    assert "pre-commit: not installed" in command("hook", "status", cwd=shop.path).out
    install(shop, command)
    install(shop, command, "--stage", "pre-push", "--stage", "pre-commit")
    out = command("hook", "status", cwd=shop.path).out
    assert "pre-commit: installed" in out
    assert "pre-push: installed" in out
    assert "pre-push: removed" in command("hook", "uninstall", cwd=shop.path).out
    assert sorted(os.listdir(shop.path / ".git/hooks")) == before
    assert "not installed" in command("hook", "uninstall", cwd=shop.path).out


def test_an_existing_hook_runs_first_and_decides(shop: Repository, command: Command) -> None:
    """It is kept, gets what git gives it, can refuse the commit, and comes back."""
    theirs = shop.path / ".git/hooks/pre-commit"
    text = "#!/bin/sh\necho theirs\n[ ! -e stop ]\n"
    executable(theirs, text)
    assert "after pre-commit.before-coderag-ci" in install(shop, command)
    install(shop, command)  # again: the chain stays
    shop.write({"one.py": "x = 1\n"})
    shop.git("add", "-A")
    out = git(shop.path, "commit", "-m", "One")
    assert out.index("theirs") < out.index("coderag-ci: 1 file")
    (shop.path / "stop").touch()
    done = attempt(shop.path, "commit", "--allow-empty", "-m", "Two")
    assert done.returncode != 0
    assert "coderag-ci" not in done.stdout
    assert "is back" in command("hook", "uninstall", cwd=shop.path).out
    assert theirs.read_text() == text
    assert os.access(theirs, os.X_OK)


@pytest.mark.usefixtures("remote")
def test_an_existing_pre_push_hook_gets_the_lines(shop: Repository, command: Command) -> None:
    """Both hooks read what is pushed, and the arguments of git."""
    executable(shop.path / ".git/hooks/pre-push", '#!/bin/sh\necho "to $1"\nsed "s/^/line: /"\n')
    install(shop, command, "--stage", "pre-push")
    out = git(shop.path, "push", "origin", "main")
    assert "to origin" in out
    assert "line: refs/heads/main" in out
    assert "all of main is new" in out


def test_a_hook_of_others_is_never_overwritten(shop: Repository, command: Command) -> None:
    """Where a second foreign hook stands, install refuses; uninstall and status leave it be."""
    install(shop, command)
    path = shop.path / ".git/hooks/pre-commit"
    executable(path.with_name("pre-commit.before-coderag-ci"), "#!/bin/sh\necho one\n")
    executable(path, "#!/bin/sh\necho two\n")
    done = command("hook", "install", cwd=shop.path)
    assert done.code == EXIT_SETUP
    assert "both hooks that others wrote" in done.err
    assert "another hook, not ours" in command("hook", "uninstall", cwd=shop.path).out
    assert path.read_text() == "#!/bin/sh\necho two\n"


def test_core_hooks_path(shop: Repository, command: Command) -> None:
    """A hooks folder of one's own is written to, and what that means is said."""
    shop.git("config", "core.hooksPath", ".githooks")
    assert "core.hooksPath names this folder" in install(shop, command)
    assert (shop.path / ".githooks/pre-commit").exists()
    shop.write({TAX: gone()})
    shop.git("add", "-A")
    assert "dangling" in git(shop.path, "commit", "-m", "Rename")


def test_hooks_that_are_switched_off(shop: Repository, command: Command) -> None:
    """core.hooksPath=/dev/null, with which people switch hooks off, is told from a folder."""
    shop.git("config", "core.hooksPath", "/dev/null")
    done = command("hook", "install", cwd=shop.path)
    assert done.code == EXIT_SETUP
    assert "core.hooksPath" in done.err


def test_husky_is_told_from_a_folder_of_ones_own(shop: Repository) -> None:
    """A folder that husky writes anew gets no hook: it would be lost without a word."""
    with pytest.raises(SetupError, match="husky") as caught:
        hooks.install(shop.path / ".husky/_", "pre-commit", [])
    assert ".husky/pre-commit" in caught.value.hint


def test_a_failed_install_leaves_the_old_hook(
    shop: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the script can not be written, the hook that was there is where it was."""
    theirs = shop.path / ".git/hooks/pre-commit"
    executable(theirs, "#!/bin/sh\n")

    def fail(*_: object) -> None:
        raise SetupError("no room")

    monkeypatch.setattr(hooks, "write_whole", fail)
    with pytest.raises(SetupError, match="no room"):
        hooks.install(theirs.parent, "pre-commit", [])
    assert theirs.read_text() == "#!/bin/sh\n"


def test_a_linked_worktree(shop: Repository, tmp_path: Path, command: Command) -> None:
    """A worktree shares the hooks and gets a pack of its own."""
    shop.git("worktree", "add", "-q", str(tmp_path / "tree"), "-b", "topic")
    install(shop, command)
    (tmp_path / "tree" / TAX).write_text(gone())
    assert "dangling" in git(tmp_path / "tree", "commit", "-a", "-m", "Rename")
    assert (shop.path / ".git/worktrees/tree/coderag-ci/pre-commit.md").exists()


def test_a_command_that_is_gone_does_not_stop_a_commit(
    shop: Repository, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A removed environment costs a line that says what to do."""
    monkeypatch.setattr(hooks, "_command", lambda: "/gone/coderag-ci")
    install(shop, command)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    shop.write({TAX: gone()})
    assert "coderag-ci: not found" in git(shop.path, "commit", "-a", "-m", "Rename")
