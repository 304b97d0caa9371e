"""From flags and surroundings to what is compared."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from coderag_ci import ci, diff, view
from coderag_ci.change import Change, Wanted, resolve
from coderag_ci.ci import CI
from coderag_ci.config import Config
from coderag_ci.errors import EXIT_SETUP, EXIT_USAGE, CoderagError, SetupError, UsageError
from coderag_ci.gitrepo import GitRepo
from coderag_ci.pathrules import PathRules
from tests.repository import Repository

NO_CI = CI(active=False)


def chosen(where: Repository | Path, **wanted: object) -> Change:
    """Resolve a change in a repository."""
    path = where.path if isinstance(where, Repository) else where
    return resolve(GitRepo(str(path)), Wanted(**wanted), NO_CI)


def refused(where: Repository | Path, **wanted: object) -> CoderagError:
    """Return the error that resolving a change ends in."""
    with pytest.raises(CoderagError) as caught:
        chosen(where, **wanted)
    return caught.value


def changed(path: Path, change: Change) -> list[str]:
    """Return the paths of a change."""
    repo = GitRepo(str(path))
    seen = None
    if change.kind == "worktree":
        seen = view.working_view(repo, PathRules(Config()))
    return [file.path for file in diff.compute(repo, change.sides, seen, change.paths).files]


def clone(source: Repository, target: Path, *options: str) -> Repository:
    """Clone over file://, which honours --depth."""
    source.git("clone", "-q", *options, f"file://{source.path}", str(target))
    return Repository(target)


@pytest.fixture
def branched(repository: Repository) -> Repository:
    """Return a repository on a branch with one commit, while main has moved on."""
    repository.commit({"a.py": "x = 1\n"})
    repository.git("checkout", "-q", "-b", "topic")
    repository.commit({"b.py": "x = 1\n"}, "Add b")
    repository.git("checkout", "-q", "main")
    repository.commit({"theirs.py": "x = 1\n"})
    repository.git("checkout", "-q", "topic")
    return repository


# ---- which base


def test_other_peoples_commits_are_not_part_of_the_change(branched: Repository) -> None:
    """A branch is compared from where it began, not with where main has got to since."""
    change = chosen(branched)
    assert change.kind == "commits"
    assert change.base == branched.git("rev-parse", "main")
    assert change.merge_base == branched.git("merge-base", "main", "topic")
    assert change.head == branched.git("rev-parse", "topic")
    assert change.title == "Add b"
    assert changed(branched.path, change) == ["b.py"]


def test_the_default_branch_of_the_remote_comes_first(repository: Repository) -> None:
    """Without --base the base is origin/HEAD, then main, then master, whichever exists."""
    for name in ("dev", "origin/main", "main", "origin/master", "master"):
        repository.commit({"a.py": name}, name)
        kind = "remotes" if name.startswith("origin/") else "heads"
        repository.git("update-ref", f"refs/{kind}/{name}", "HEAD")
    repository.git("update-ref", "refs/remotes/origin/dev", "dev")
    repository.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/dev")
    repository.git("checkout", "-q", "-b", "topic")
    for expected, drop in [
        ("dev", "refs/remotes/origin/dev"),
        ("origin/main", "refs/remotes/origin/main"),
        ("main", "refs/heads/main"),
        ("origin/master", "refs/remotes/origin/master"),
        ("master", "refs/heads/master"),
    ]:
        assert chosen(repository).base == repository.git("rev-parse", expected)
        repository.git("update-ref", "-d", drop)
    error = refused(repository)
    assert error.message == "no default branch was found"
    assert "--base" in error.hint


def test_a_named_base_beats_that_of_ci_and_both_beat_the_default(branched: Repository) -> None:
    """What a person asks for comes before what CI says, and that before a guess."""
    first = branched.git("rev-parse", "main~1")
    branched.git("branch", "release", "topic~1")
    repo = GitRepo(str(branched.path))
    told = CI(active=True, base="release", title="A pull request")
    assert resolve(repo, Wanted(), told).base == first
    assert resolve(repo, Wanted(base="topic"), told).base == branched.git("rev-parse", "topic")
    assert resolve(repo, Wanted(), told).title == "A pull request"


def test_titles_come_newest_first_without_merges(branched: Repository) -> None:
    """The commit subjects stand for the title where CI gives none, in any encoding."""
    branched.git("config", "i18n.logOutputEncoding", "ISO-8859-1")
    branched.git("merge", "-q", "--no-edit", "main")
    branched.commit({"c.py": "x = 1\n"}, "Caf\u00e9\n\nbody")
    assert chosen(branched).title == "Caf\u00e9\nAdd b"


def test_a_very_long_title_is_cut(branched: Repository) -> None:
    """A description pasted into a title does not fill the pack."""
    repo = GitRepo(str(branched.path))
    assert len(resolve(repo, Wanted(), CI(active=True, title="x" * 10_000)).title) == 2000


def test_two_merge_bases_are_no_obstacle(branched: Repository) -> None:
    """Branches that merged each other still compare from one common commit."""
    branched.git("checkout", "-q", "-b", "other", "main")
    branched.git("merge", "-q", "--no-edit", "topic~0")
    branched.git("checkout", "-q", "topic")
    branched.git("merge", "-q", "--no-edit", "main")
    change = chosen(branched, base="other")
    assert change.merge_base in (
        branched.git("rev-parse", "main"), branched.git("rev-parse", "topic^1")
    )  # fmt: skip


def test_a_tag_or_an_abbreviated_id_names_a_commit(branched: Repository) -> None:
    """Annotated tags, short ids and relative names are refs like any other."""
    branched.git("tag", "-a", "-m", "one", "v1", "topic~1")
    commit = branched.git("rev-parse", "topic~1")
    for name in ("v1", commit[:8], "topic~1", "HEAD^"):
        assert chosen(branched, base=name).base == commit


# ---- commits, index or working tree


def test_nothing_committed_yet_means_the_working_tree(repository: Repository) -> None:
    """On the default branch with edits, the edits are the change."""
    head = repository.commit({"a.py": "x = 1\n"})
    repository.write({"a.py": "x = 2\n"})
    change = chosen(repository)
    assert change.kind == "worktree"
    assert (change.base, change.head, change.merge_base) == (head, "", head)
    assert changed(repository.path, change) == ["a.py"]


def test_an_untracked_file_alone_is_a_change(repository: Repository) -> None:
    """A new file counts as an edit, also where git is told not to list untracked files."""
    repository.commit({"a.py": "x = 1\n"})
    repository.write({"new.py": "x = 1\n"})
    repository.git("config", "status.showUntrackedFiles", "no")
    change = chosen(repository)
    assert change.kind == "worktree"
    assert changed(repository.path, change) == ["new.py"]


def test_commits_come_before_edits(branched: Repository) -> None:
    """With commits on the branch, edits are left out unless --worktree asks for them."""
    branched.write({"a.py": "x = 9\n"})
    assert changed(branched.path, chosen(branched)) == ["b.py"]
    assert changed(branched.path, chosen(branched, worktree=True)) == ["a.py"]


def test_a_clean_tree_without_commits_is_no_change(repository: Repository) -> None:
    """Where nothing was done, the change is empty, not an error."""
    repository.commit({"a.py": "x = 1\n"})
    change = chosen(repository)
    assert change.kind == "commits"
    assert changed(repository.path, change) == []


def test_a_named_head_is_never_swapped_for_the_working_tree(repository: Repository) -> None:
    """``--head HEAD`` compares commits, whatever lies about uncommitted."""
    head = repository.commit({"a.py": "x = 1\n"})
    repository.write({"a.py": "x = 2\n"})
    change = chosen(repository, base="HEAD", head="HEAD")
    assert (change.kind, change.base, change.head) == ("commits", head, head)
    assert changed(repository.path, change) == []


def test_the_working_tree_with_a_base_holds_commits_and_edits(branched: Repository) -> None:
    """``--worktree --base main`` shows the whole branch, and what is not committed yet."""
    branched.write({"a.py": "x = 9\n"})
    change = chosen(branched, base="main", worktree=True)
    assert change.merge_base == branched.git("merge-base", "main", "topic")
    assert changed(branched.path, change) == ["a.py", "b.py"]
    branched.git("add", "-A")
    branched.write({"a.py": "x = 1\n"})
    assert changed(branched.path, chosen(branched, base="main", staged=True)) == ["a.py", "b.py"]


@pytest.mark.parametrize(
    "wanted",
    [
        {"head": "HEAD", "staged": True},
        {"head": "HEAD", "worktree": True},
        {"staged": True, "worktree": True},
        {"head": "HEAD", "staged": True, "worktree": True},
    ],
)
def test_head_staged_and_worktree_exclude_each_other(
    repository: Repository, wanted: dict[str, object]
) -> None:
    """Two answers to one question are refused, not settled in silence."""
    repository.commit({"a.py": "x = 1\n"})
    error = refused(repository, **wanted)
    assert isinstance(error, UsageError)
    assert error.message == "--head, --staged and --worktree exclude each other"


# ---- unusual repositories


def test_a_bare_repository_compares_commits(branched: Repository, tmp_path: Path) -> None:
    """A server without a working tree makes the same diff; it has nothing uncommitted."""
    bare = clone(branched, tmp_path / "bare.git", "--bare")
    change = chosen(bare, base="main", head="topic")
    assert changed(bare.path, change) == ["b.py"]
    assert chosen(bare).head == branched.git("rev-parse", "topic")
    for flag in ("worktree", "staged"):
        error = refused(bare, **{flag: True})
        assert error.message == "a bare repository has no working tree"
        assert error.exit_code == EXIT_SETUP


def test_inside_the_git_directory_there_is_no_working_tree(branched: Repository) -> None:
    """From within .git commits are compared as in a bare repository."""
    inside = branched.path / ".git"
    assert changed(inside, chosen(inside)) == ["b.py"]
    assert refused(inside, worktree=True).message == "a bare repository has no working tree"


def test_a_detached_head_is_a_head(branched: Repository) -> None:
    """CI checks out a commit, not a branch."""
    branched.git("checkout", "-q", "--detach")
    assert changed(branched.path, chosen(branched)) == ["b.py"]


def test_before_the_first_commit_only_what_is_not_committed_can_be_seen(
    repository: Repository,
) -> None:
    """An unborn HEAD is said so; the staged and the working files are compared with nothing."""
    repository.write({"a.py": "x = 1\n", "b.py": "x = 1\n"})
    repository.git("add", "a.py")
    error = refused(repository)
    assert error.message == "the repository has no commits yet"
    change = chosen(repository, staged=True)
    assert (change.base, change.merge_base) == ("", "")
    assert changed(repository.path, change) == ["a.py"]
    assert changed(repository.path, chosen(repository, worktree=True)) == ["a.py", "b.py"]
    error = refused(repository, base="main", staged=True)
    assert error.message == "the repository has no commits yet"


def test_an_empty_tree_has_another_name_under_sha256(tmp_path: Path) -> None:
    """Repositories with SHA-256 ids work, also before the first commit."""
    repository = Repository.create(tmp_path / "sha256", "--object-format=sha256")
    repository.write({"a.py": "x = 1\n"})
    repository.git("add", "-A")
    assert changed(repository.path, chosen(repository, staged=True)) == ["a.py"]
    repository.commit()
    repository.write({"a.py": "x = 2\n"})
    change = chosen(repository)
    assert (change.kind, len(change.base)) == ("worktree", 64)
    assert changed(repository.path, change) == ["a.py"]


def test_unrelated_histories_are_said_so(repository: Repository) -> None:
    """Without a common commit there is no change to speak of, and the hint asks for a base."""
    repository.commit({"a.py": "x = 1\n"})
    repository.git("checkout", "-q", "--orphan", "other")
    repository.commit({"b.py": "x = 1\n"})
    error = refused(repository)
    assert error.message.endswith("have no commit in common")
    assert isinstance(error, SetupError)


def test_a_shallow_clone_says_what_to_set(branched: Repository, tmp_path: Path) -> None:
    """A clone without the merge base names fetch-depth, and GitLab's name for it."""
    shallow = clone(branched, tmp_path / "shallow", "--depth", "1", "--no-single-branch")
    error = refused(shallow, base="origin/main")
    assert error.message == "the merge base is not in this shallow clone"
    assert "fetch-depth: 0" in error.hint
    assert "GIT_DEPTH: 0" in error.hint
    assert error.exit_code == EXIT_SETUP


def test_a_shallow_clone_without_the_base_says_what_to_set(
    branched: Repository, tmp_path: Path
) -> None:
    """A base that was not fetched is unknown, because the clone is shallow."""
    shallow = clone(branched, tmp_path / "shallow", "--depth", "1", "--branch", "topic")
    error = refused(shallow, base="origin/main")
    assert error.message == "unknown ref: origin/main"
    assert "fetch-depth: 0" in error.hint


def test_a_shallow_clone_that_is_deep_enough_is_no_obstacle(
    branched: Repository, tmp_path: Path
) -> None:
    """Only the commits between base and head are needed."""
    shallow = clone(branched, tmp_path / "shallow", "--depth", "2", "--no-single-branch")
    assert changed(shallow.path, chosen(shallow, base="origin/main")) == ["b.py"]


@pytest.mark.parametrize("ref", ["-h", "--output=x", "--all", " ", "a\0b"])
@pytest.mark.parametrize("side", ["base", "head"])
def test_what_looks_like_an_option_is_no_ref(branched: Repository, ref: str, side: str) -> None:
    """A branch name from outside can not become a flag of git."""
    error = refused(branched, **{side: ref})
    assert error.message.startswith("not a ref")
    assert error.exit_code == EXIT_USAGE
    assert not list(branched.path.glob("x"))


def test_a_range_is_not_a_ref(branched: Repository) -> None:
    """Who knows git log types one; the message says which two flags mean it."""
    error = refused(branched, base="a..b")
    assert (error.message, error.hint) == ("not one commit: a..b", "use --base A --head B")


@pytest.mark.parametrize("ref", ["nope", "HEAD~99", "HEAD:a.py", "f" * 40])
def test_an_unknown_ref_is_named(branched: Repository, ref: str) -> None:
    """A misspelt base, or one that is no commit, is named in the message."""
    for side in ("base", "head"):
        error = refused(branched, **{side: ref})
        assert error.message == f"unknown ref: {ref}"
        assert error.exit_code == EXIT_SETUP


def test_a_tree_is_no_commit(branched: Repository) -> None:
    """Who takes git's empty tree for the beginning learns why that does not do."""
    for ref in ("HEAD^{tree}", GitRepo(str(branched.path)).empty_tree()):
        error = refused(branched, base=ref)
        assert (error.message, error.exit_code) == (f"not a commit: {ref}", EXIT_SETUP)


@pytest.mark.parametrize("ref", ["^HEAD", "HEAD^!", "HEAD^@"])
def test_a_range_is_no_ref(branched: Repository, ref: str) -> None:
    """What names several commits, or excludes one, is refused as a ref."""
    assert refused(branched, base=ref).message == f"unknown ref: {ref}"


def test_a_replaced_commit_is_not_believed(branched: Repository) -> None:
    """refs/replace, which anyone may push, does not swap the code that is compared."""
    expected = changed(branched.path, chosen(branched))
    fake = branched.git("commit-tree", "-m", "fake", "HEAD~1^{tree}")
    branched.git("replace", "HEAD", fake)
    assert changed(branched.path, chosen(branched)) == expected


# ---- where it is run


def test_a_linked_working_tree_has_its_own_head(branched: Repository, tmp_path: Path) -> None:
    """In ``git worktree add`` the change is that of the checkout one stands in."""
    linked = tmp_path / "linked"
    branched.git("worktree", "add", "-q", "-b", "second", str(linked), "main")
    Repository(linked).commit({"c.py": "x = 1\n"})
    assert changed(linked, chosen(linked)) == ["c.py"]
    assert changed(branched.path, chosen(branched)) == ["b.py"]
    repo = GitRepo(str(linked))
    assert repo.root == linked.resolve()
    assert repo.common_dir == (branched.path / ".git").resolve()
    Repository(linked).write({"d.py": "x = 1\n"})
    assert changed(linked, chosen(linked, worktree=True)) == ["d.py"]


def test_a_subdirectory_stands_for_its_repository(
    branched: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paths and changes are those of the whole repository, wherever in it one stands."""
    branched.commit({"sub/deep/c.py": "x = 1\n"})
    monkeypatch.chdir(branched.path / "sub" / "deep")
    for repo in (GitRepo(), GitRepo("."), GitRepo(str(branched.path / "sub"))):
        assert repo.root == branched.path.resolve()
        change = resolve(repo, Wanted(), NO_CI)
        files = diff.compute(repo, change.sides, None).files
        assert [file.path for file in files] == ["b.py", "sub/deep/c.py"]
    branched.write({"a.py": "x = 5\n", "sub/new.py": "n\n"})
    repo = GitRepo()
    seen = view.working_view(repo, PathRules(Config()))
    found = diff.compute(repo, resolve(repo, Wanted(worktree=True), NO_CI).sides, seen)
    assert [file.path for file in found.files] == ["a.py", "sub/new.py"]


@pytest.mark.skipif(sys.platform != "linux", reason="file names that other systems refuse")
@pytest.mark.parametrize("name", ["with space ", "caf\u00e9", "$HOME", "~", "-x"])
def test_a_repository_may_lie_in_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Spaces, signs and accents in the folder's name change nothing, in a hook neither."""
    repository = Repository.create(tmp_path / name)
    repository.commit({"a.py": "x = 1\n"})
    repository.write({"a.py": "x = 2\n"})
    assert GitRepo(str(repository.path)).root == repository.path.resolve()
    assert changed(repository.path, chosen(repository)) == ["a.py"]
    monkeypatch.setenv("GIT_DIR", str(tmp_path))
    assert changed(repository.path, chosen(repository)) == ["a.py"]


def test_a_hooks_variables_speak_of_this_repository(
    branched: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a pre-commit hook the index is the one that git is about to commit."""
    branched.write({"staged.py": "x = 1\n", "other.py": "x = 1\n"})
    monkeypatch.chdir(branched.path)
    branched.git("add", "other.py")
    monkeypatch.setenv("GIT_INDEX_FILE", ".git/next-index")
    branched.git("read-tree", "HEAD")
    branched.git("add", "staged.py")
    monkeypatch.setenv("GIT_DIR", ".git")
    monkeypatch.setenv("GIT_PREFIX", "")
    repo = GitRepo()
    change = resolve(repo, Wanted(staged=True), NO_CI)
    assert [file.path for file in diff.compute(repo, change.sides, None).files] == ["staged.py"]


@pytest.mark.parametrize("bare", [False, True])
def test_repo_beats_a_hooks_variables(
    branched: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bare: bool
) -> None:
    """``--repo`` names the repository, also in a hook of another one."""
    other = Repository.create(tmp_path / "other")
    other.commit({"z.py": "x = 1\n"})
    wanted = branched
    if bare:
        wanted = clone(branched, tmp_path / "bare.git", "--bare")
    monkeypatch.chdir(other.path)
    monkeypatch.setenv("GIT_DIR", str(other.path / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other.path / ".git" / "index"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.path))
    monkeypatch.setenv("GIT_PREFIX", "")
    assert changed(wanted.path, chosen(wanted)) == ["b.py"]
    assert GitRepo(str(wanted.path)).root == (None if bare else branched.path.resolve())


def test_repo_beats_a_work_tree_variable_alone(
    branched: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A GIT_WORK_TREE left in the environment does not lend another tree's files."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "elsewhere"))
    assert GitRepo(str(branched.path)).root == branched.path.resolve()
    assert changed(branched.path, chosen(branched, worktree=True)) == []


def test_a_real_hook_sees_what_is_being_committed(repository: Repository) -> None:
    """Run by git from a pre-commit hook, --staged shows the commit that is being made."""
    repository.commit({"a.py": "x = 1\n"})
    root = Path(__file__).resolve().parent.parent
    hook = repository.path / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(
        f"#!/bin/sh\nPYTHONPATH='{root}' exec '{sys.executable}' -m coderag_ci context "
        "--staged --format json --output pack.json\n"
    )
    hook.chmod(0o755)
    repository.write({"a.py": "x = 2\n", "new.md": "# New\n"})
    repository.git("commit", "-q", "-m", "two", "a.py")
    pack = json.loads((repository.path / "pack.json").read_bytes())
    assert [file["path"] for file in pack["diff"]] == ["a.py"]


def test_dubious_ownership_names_the_command_that_mends_it(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a container job with another user's checkout, the hint is the line to run."""
    repository.commit({"a.py": "x = 1\n"})
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    with pytest.raises(SetupError) as caught:
        GitRepo(str(repository.path))
    assert "dubious ownership" in caught.value.message
    assert caught.value.hint.startswith("git config --global --add safe.directory")


def test_a_missing_folder_and_a_folder_without_repository(tmp_path: Path) -> None:
    """A wrong --repo is told from a folder that holds no repository."""
    with pytest.raises(SetupError, match="no such directory"):
        GitRepo(str(tmp_path / "missing"))
    with pytest.raises(SetupError, match="not a git repository"):
        GitRepo(str(tmp_path))


def test_a_folder_that_was_removed_under_us(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shell that stands in a deleted folder gets a message, not a bug report."""
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(SetupError):
        GitRepo()
    monkeypatch.chdir(tmp_path)


# ---- CI


def event(tmp_path: Path, content: str | bytes) -> str:
    """Write an event file and return its path."""
    path = tmp_path / "event.json"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def test_github_gives_base_and_title(tmp_path: Path) -> None:
    """In a pull request job the base branch and the title are known without flags."""
    path = event(tmp_path, json.dumps({"pull_request": {"title": "Fix caf\u00e9"}}))
    github = {"GITHUB_ACTIONS": "true", "GITHUB_BASE_REF": "dev", "GITHUB_EVENT_PATH": path}
    assert ci.detect(github) == CI(True, "origin/dev", "Fix caf\u00e9")


def test_a_push_on_github_has_no_base(tmp_path: Path) -> None:
    """Outside a pull request the default branch is the base."""
    path = event(tmp_path, json.dumps({"head_commit": {"message": "x"}}))
    github = {"GITHUB_ACTIONS": "true", "GITHUB_BASE_REF": "", "GITHUB_EVENT_PATH": path}
    assert ci.detect(github) == CI(True, "", "")


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "null",
        '"text"',
        b"\xff\xfe",
        '{"pull_request": []}',
        '{"pull_request": null}',
        '{"pull_request": {"title": null}}',
        '{"pull_request": {}}',
        "[" * 100_000,
        "1" * 10_000,
    ],
)
def test_a_broken_event_file_costs_only_the_title(tmp_path: Path, content: str | bytes) -> None:
    """Whatever the event file holds, the base still comes from the variables."""
    path = event(tmp_path, content)
    github = {"GITHUB_ACTIONS": "true", "GITHUB_BASE_REF": "main", "GITHUB_EVENT_PATH": path}
    assert ci.detect(github) == CI(True, "origin/main", "")


@pytest.mark.parametrize("path", ["", "/nonexistent/event.json", "/"])
def test_a_missing_event_file_costs_only_the_title(path: str) -> None:
    """An event path that leads nowhere is no error."""
    github = {"GITHUB_ACTIONS": "true", "GITHUB_BASE_REF": "main", "GITHUB_EVENT_PATH": path}
    assert ci.detect(github) == CI(True, "origin/main", "")


def test_gitlab_gives_base_and_title() -> None:
    """In a merge request pipeline the base commit and the title are known without flags."""
    assert ci.detect({
        "GITLAB_CI": "true",
        "CI": "true",
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": "a" * 40,
        "CI_MERGE_REQUEST_TITLE": "Draft: x",
    }) == CI(True, "a" * 40, "Draft: x")  # fmt: skip
    assert ci.detect({"GITLAB_CI": "true"}) == CI(True, "", "")


@pytest.mark.parametrize(
    ("value", "active"),
    [("true", True), ("1", True), ("TRUE", True), ("false", False), ("", False)],
)
def test_any_other_ci_is_known_as_one(value: str, active: bool) -> None:
    """The generic CI variable is enough to take the config from the base."""
    assert ci.detect({"CI": value}) == CI(active)
    assert ci.detect({}) == CI(active=False)


def test_a_base_of_ci_that_was_not_fetched_is_named(branched: Repository) -> None:
    """A job that fetched only its own branch is told which ref is missing."""
    told = ci.detect({"GITHUB_ACTIONS": "true", "GITHUB_BASE_REF": "main"})
    with pytest.raises(SetupError, match="unknown ref: origin/main") as caught:
        resolve(GitRepo(str(branched.path)), Wanted(), told)
    assert "git fetch" in caught.value.hint


def test_the_merge_commit_of_a_pull_request_shows_the_pull_request(
    branched: Repository, tmp_path: Path
) -> None:
    """On GitHub's merge ref, compared with the base branch, only the branch's work shows."""
    job = clone(branched, tmp_path / "job", "--no-local")
    job.git("checkout", "-q", "--detach", "origin/main")
    job.git("merge", "-q", "--no-edit", "origin/topic")
    told = ci.detect({"GITHUB_ACTIONS": "true", "GITHUB_BASE_REF": "main"})
    change = resolve(GitRepo(str(job.path)), Wanted(), told)
    assert changed(job.path, change) == ["b.py"]
    assert change.title == "Add b"


def test_git_is_never_asked_for_a_program_of_the_repository(
    branched: Repository, tmp_path: Path
) -> None:
    """Opening and comparing runs no hook, monitor or driver that the repository configures."""
    trap = tmp_path / "trap"
    script = tmp_path / "trap.sh"
    script.write_text(f"#!/bin/sh\ntouch '{trap}'\n")
    script.chmod(0o755)
    for name in ("core.fsmonitor", "diff.external", "diff.x.command", "diff.x.textconv"):
        branched.git("config", name, str(script))
    for name in ("core.pager", "core.sshCommand", "core.editor", "core.askPass"):
        branched.git("config", name, str(script))
    branched.write({".gitattributes": "* diff=x\n", "a.py": "x = 7\n"})
    trap.unlink(missing_ok=True)
    change = chosen(branched, base="main", worktree=True)
    assert changed(branched.path, change) == [".gitattributes", "a.py", "b.py"]
    assert not trap.exists()
    subprocess.run(["git", "status"], cwd=branched.path, check=True, capture_output=True)
    assert trap.exists()  # the trap works
