"""From two sides to changed files: kinds, paths, line numbers, and nobody's git config."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from coderag_ci import diff, view
from coderag_ci.config import Config
from coderag_ci.diff import Diff, FileDiff
from coderag_ci.gitrepo import GitRepo, Sides
from coderag_ci.pathrules import PathRules, Skipped
from tests.repository import Repository

RULES = PathRules(Config())
LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize {}\n"
TEN_LINES = "".join(f"line {n}\n" for n in range(1, 11))
Files = Mapping[str, "str | bytes | None"]


def committed(
    repository: Repository, paths: Sequence[str] = (), base: str = "HEAD~1", head: str = "HEAD"
) -> Diff:
    """Compare two commits."""
    repo = GitRepo(str(repository.path))
    return diff.compute(repo, Sides(repo.resolve(base), repo.resolve(head)), None, paths)


def working(repository: Repository, paths: Sequence[str] = ()) -> Diff:
    """Compare HEAD with the working tree."""
    repo = GitRepo(str(repository.path))
    seen = view.working_view(repo, RULES)
    return diff.compute(repo, Sides(repo.head() or repo.empty_tree()), seen, paths)


def staged(repository: Repository, paths: Sequence[str] = ()) -> Diff:
    """Compare HEAD with the index."""
    repo = GitRepo(str(repository.path))
    sides = Sides(repo.head() or repo.empty_tree(), None, staged=True)
    return diff.compute(repo, sides, None, paths)


def only(found: Diff) -> FileDiff:
    """Return the one changed file."""
    (file,) = found.files
    return file


def summary(found: Diff) -> list[tuple[str, str, str]]:
    """Return path, status and kind of each changed file."""
    return [(file.path, file.status, file.kind) for file in found.files]


def lines(file: FileDiff) -> list[str]:
    """Return the lines of all hunks, with their signs."""
    return [line for hunk in file.hunks for line in hunk.lines]


def changed_lines(file: FileDiff) -> list[tuple[str, int, str]]:
    """Return sign, line number on its own side, and text of each added and deleted line."""
    return [
        (sign, new if sign == "+" else old, text)
        for hunk in file.hunks
        for sign, old, new, text in hunk.numbered()
        if sign != " "
    ]


# ---- kinds


@pytest.mark.parametrize(
    ("before", "after", "status", "kind", "counts"),
    [
        ({}, {"a.py": "x = 1\n"}, "added", "text", (1, 0)),
        ({"a.py": "x = 1\n"}, {"a.py": "x = 2\n"}, "modified", "text", (1, 1)),
        ({"a.py": "x = 1\ny = 2\n"}, {"a.py": None}, "deleted", "text", (0, 2)),
        ({}, {"a.py": ""}, "added", "empty", (0, 0)),
        ({"a.py": ""}, {"a.py": None}, "deleted", "empty", (0, 0)),
        ({"a.py": ""}, {"a.py": "x = 1\n"}, "modified", "text", (1, 0)),
        ({"a.py": "x = 1\n"}, {"a.py": ""}, "modified", "text", (0, 1)),
        ({"a.bin": b"\0one"}, {"a.bin": b"\0two"}, "modified", "binary", (0, 0)),
        ({"a.py": "x = 1\n"}, {"a.py": b"x = \0\n"}, "modified", "binary", (0, 0)),
        ({}, {"m.onnx": LFS.format("ab", 1)}, "added", "lfs", (0, 0)),
        (
            {"m.onnx": LFS.format("ab", 1)},
            {"m.onnx": LFS.format("cd", 2)},
            "modified",
            "lfs",
            (0, 0),
        ),
    ],
)
def test_each_kind_of_change_is_named(
    repository: Repository,
    before: Files,
    after: Files,
    status: str,
    kind: str,
    counts: tuple[int, int],
) -> None:
    """A reviewer reads what happened to a file and how many lines it gained and lost."""
    repository.commit({"other.py": "other\n", **before})
    repository.commit(after)
    file = only(committed(repository))
    assert (file.status, file.kind) == (status, kind)
    assert (file.added, file.deleted) == counts


def test_a_rename_names_both_paths_and_shows_only_what_changed(repository: Repository) -> None:
    """A moved file is one change with its old name, not a deletion and an addition."""
    repository.commit({"old.py": TEN_LINES})
    repository.git("mv", "old.py", "new.py")
    repository.commit({"new.py": TEN_LINES.replace("line 5", "LINE 5")})
    file = only(committed(repository))
    assert (file.path, file.old_path, file.status, file.kind) == (
        "new.py", "old.py", "renamed", "text",
    )  # fmt: skip
    assert changed_lines(file) == [("-", 5, "line 5"), ("+", 5, "LINE 5")]


def test_a_rename_without_edits_has_no_hunks(repository: Repository) -> None:
    """A pure move, also one beside an edited file, gets nobody else's hunks."""
    repository.commit({"a/old.py": TEN_LINES, "b.py": "x = 1\n"})
    repository.git("mv", "a/old.py", "moved.py")
    repository.commit({"b.py": "x = 2\n"})
    found = {file.path: file for file in committed(repository).files}
    assert found["moved.py"].old_path == "a/old.py"
    assert found["moved.py"].hunks == ()
    assert lines(found["b.py"]) == ["-x = 1", "+x = 2"]


def test_a_mode_change_is_told_from_a_change_of_content(repository: Repository) -> None:
    """Making a script executable is said as such, with both modes and no hunks."""
    repository.commit({"run.sh": "echo\n"})
    (repository.path / "run.sh").chmod(0o755)
    repository.commit()
    file = only(committed(repository))
    assert (file.status, file.kind, file.hunks) == ("modified", "mode", ())
    assert (file.old_mode, file.new_mode) == (0o100644, 0o100755)


def test_a_mode_change_with_new_content_keeps_its_hunks(repository: Repository) -> None:
    """An edit is not lost because the file also became executable."""
    repository.commit({"run.sh": "echo\n"})
    (repository.path / "run.sh").chmod(0o755)
    repository.commit({"run.sh": "echo hello\n"})
    file = only(committed(repository))
    assert (file.kind, lines(file)) == ("text", ["-echo", "+echo hello"])


def test_a_submodule_bump_shows_both_commits(repository: Repository) -> None:
    """A moved submodule pointer is seen, although its commits are not in this repository."""
    repository.commit({"a.py": "x = 1\n"})
    for commit in ("1" * 40, "2" * 40):
        repository.git("update-index", "--add", "--cacheinfo", f"160000,{commit},lib")
        repository.git("commit", "-q", "-m", "bump")
    file = only(committed(repository))
    assert (file.path, file.status, file.kind) == ("lib", "modified", "submodule")
    assert lines(file) == [
        f"-Subproject commit {'1' * 40}", f"+Subproject commit {'2' * 40}"
    ]  # fmt: skip


def test_a_submodule_bump_can_not_be_hidden_by_gitmodules(repository: Repository) -> None:
    """``ignore = all`` in .gitmodules does not keep a changed dependency from the reviewer."""
    modules = '[submodule "lib"]\n\tpath = lib\n\turl = ../lib\n\tignore = all\n'
    repository.commit({".gitmodules": modules})
    for commit in ("1" * 40, "2" * 40):
        repository.git("update-index", "--add", "--cacheinfo", f"160000,{commit},lib")
        repository.git("commit", "-q", "-m", "bump")
    assert summary(committed(repository)) == [("lib", "modified", "submodule")]


def test_a_file_that_becomes_a_submodule_is_a_submodule_change(repository: Repository) -> None:
    """Vendored code swapped for a submodule does not shift the hunks of the files beside it."""
    repository.commit({"lib": "code\n", "z.py": "x = 1\n"})
    repository.git("rm", "-q", "--cached", "lib")
    (repository.path / "lib").unlink()
    repository.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},lib")
    repository.write({"z.py": "x = 2\n"})
    repository.git("add", "z.py")
    repository.git("commit", "-q", "-m", "swap")
    lib, z = committed(repository).files
    assert (lib.status, lib.kind) == ("modified", "submodule")
    assert lines(lib) == ["-code", f"+Subproject commit {'1' * 40}"]
    assert lines(z) == ["-x = 1", "+x = 2"]


def test_a_symbolic_link_shows_its_target(repository: Repository) -> None:
    """A link that points somewhere else is a change of its target, not of a file."""
    (repository.path / "link").symlink_to("a.py")
    repository.commit({"a.py": "x = 1\n"})
    (repository.path / "link").unlink()
    (repository.path / "link").symlink_to("/etc/passwd")
    repository.commit()
    file = only(committed(repository))
    assert (file.path, file.status, file.kind) == ("link", "modified", "symlink")
    assert lines(file) == ["-a.py", "+/etc/passwd"]


def test_a_file_that_becomes_a_link_shows_both(repository: Repository) -> None:
    """Swapping code for a link shows the code that went and where the link leads."""
    repository.commit({"a.py": "x = 1\ny = 2\n", "b.py": "x = 1\n", "c.py": "x = 1\n"})
    (repository.path / "b.py").unlink()
    (repository.path / "b.py").symlink_to("../elsewhere")
    repository.commit({"a.py": "x = 1\ny = 3\n", "c.py": "x = 3\n"})
    a, b, c = committed(repository).files
    assert (b.status, b.kind) == ("modified", "symlink")
    assert (b.old_mode, b.new_mode) == (0o100644, 0o120000)
    assert lines(b) == ["-x = 1", "+../elsewhere"]
    assert lines(a) == [" x = 1", "-y = 2", "+y = 3"]
    assert lines(c) == ["-x = 1", "+x = 3"]


# ---- paths

ODD_PATHS = [
    "with space.py",
    'quo"te.py',
    "apo'strophe.py",
    "new\nline.py",
    "caf\u00e9.py",
    "cafe\u0301.py",
    "a b/b.py",
    "x b/a/x b/y.py",
    "-leading.py",
    "--output=x.py",
    "tab\there.py",
    "back\\slash.py",
    ":(top)magic.py",
    "star*.py",
    "[a].py",
    "trailing .py ",
    "diff --git a",
    os.fsdecode(b"n\xff\xfe.py"),
]


@pytest.mark.skipif(sys.platform != "linux", reason="file names that other systems refuse")
def test_odd_paths_come_back_unchanged(repository: Repository) -> None:
    """No path is quoted, cut or mistaken for another, whatever bytes it holds."""
    repository.commit(dict.fromkeys(ODD_PATHS, "x = 1\n"))
    repository.commit({path: f"x = {i}\n" for i, path in enumerate(ODD_PATHS, 2)})
    found = {file.path: lines(file) for file in committed(repository).files}
    assert found == {path: ["-x = 1", f"+x = {i}"] for i, path in enumerate(ODD_PATHS, 2)}


@pytest.mark.skipif(sys.platform != "linux", reason="file names that other systems refuse")
def test_odd_paths_are_read_from_the_working_tree(repository: Repository) -> None:
    """Uncommitted files with odd names are compared and added like any other."""
    half = len(ODD_PATHS) // 2
    repository.commit(dict.fromkeys(ODD_PATHS[:half], "x = 1\n"))
    repository.write(dict.fromkeys(ODD_PATHS, "x = 2\n"))
    found = {file.path: (file.status, lines(file)) for file in working(repository).files}
    assert found == {
        **dict.fromkeys(ODD_PATHS[:half], ("modified", ["-x = 1", "+x = 2"])),
        **dict.fromkeys(ODD_PATHS[half:], ("added", ["+x = 2"])),
    }


# ---- lines


@pytest.mark.parametrize(
    "odd", ["\r", "\f", "\v", "\x1c", "\x85", "\u2028", "\u2029", "\ufeff", "\t", "@@ -1 +1 @@"]
)
def test_only_a_line_feed_ends_a_line(repository: Repository, odd: str) -> None:
    """A form feed, bare CR or U+2028 in a line neither ends the hunk nor shifts line numbers."""
    repository.commit({"a.py": TEN_LINES})
    repository.commit({"a.py": TEN_LINES.replace("line 4\n", f"left{odd}right\nline 4\nafter\n")})
    file = only(committed(repository))
    assert changed_lines(file) == [("+", 4, f"left{odd}right"), ("+", 6, "after")]
    assert file.touched_lines() == {4, 6}


def test_lines_that_look_like_a_patch_stay_content(repository: Repository) -> None:
    """A changed patch file, or SQL comments, do not begin a new file or hunk."""
    before = "-- a/old\ndiff --git a/x b/x\n@@ -1 +1 @@\nlast\n"
    after = "++ b/new\ndiff --git a/y b/y\n@@ -2 +2 @@\nlast\n"
    repository.commit({"a.patch": before, "b.py": "x = 1\n"})
    repository.commit({"a.patch": after, "b.py": "x = 2\n"})
    a, b = committed(repository).files
    assert lines(a) == [
        *("-" + line for line in before.split("\n")[:3]),
        *("+" + line for line in after.split("\n")[:3]),
        " last",
    ]
    assert lines(b) == ["-x = 1", "+x = 2"]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("a\nb", "a\nb\n", [" a", "-b", "+b"]),
        ("a\nb\n", "a\nb", [" a", "-b", "+b"]),
        ("a", "b", ["-a", "+b"]),
        ("a\nb", "c\nb", ["-a", "+c", " b"]),
        ("a\n", "a\n\\ No newline at end of file\n", [" a", "+\\ No newline at end of file"]),
    ],
)
def test_a_missing_last_newline_is_not_a_line(
    repository: Repository, before: str, after: str, expected: list[str]
) -> None:
    r"""Git's note ``\ No newline`` is no line of the file, and a line that reads so is one."""
    repository.commit({"a.py": before})
    repository.commit({"a.py": after})
    assert lines(only(committed(repository))) == expected


def test_hunks_carry_the_exact_lines_of_both_sides(repository: Repository) -> None:
    """Every line number that a reviewer is given is the line's number in the file."""
    before = [f"line {n}" for n in range(1, 101)]
    after = [*before[:9], "new 10", "new 11", *before[9:49], *before[51:89], "ninety", *before[90:]]
    repository.commit({"a.py": "\n".join(before) + "\n"})
    repository.commit({"a.py": "\n".join(after) + "\n"})
    file = only(committed(repository))
    assert [(h.old_start, h.old_count, h.new_start, h.new_count) for h in file.hunks] == [
        (7, 6, 7, 8),
        (47, 8, 49, 6),
        (87, 7, 87, 7),
    ]
    for hunk in file.hunks:
        for sign, old, new, text in hunk.numbered():
            assert sign == "+" or before[old - 1] == text
            assert sign == "-" or after[new - 1] == text
    assert file.touched_lines() == {10, 11, 51, 52, 90, 89}


def test_empty_context_lines_keep_their_place(repository: Repository) -> None:
    """Blank lines in the context count, so that what follows has the right number."""
    repository.commit({"a.py": "\n\none\n\n\n"})
    repository.commit({"a.py": "\n\none\n\n\ntwo\n"})
    file = only(committed(repository))
    assert lines(file) == [" one", " ", " ", "+two"]
    assert changed_lines(file) == [("+", 6, "two")]


def test_text_that_is_not_utf8_is_shown_with_marks(repository: Repository) -> None:
    """A Latin-1 file is still diffed; bytes that are not UTF-8 become U+FFFD."""
    repository.commit({"a.py": b"# caf\xe9\n"})
    repository.commit({"a.py": b"# caf\xe9s\nx = '\xc3\xa9'\n"})
    assert lines(only(committed(repository))) == ["-# caf\ufffd", "+# caf\ufffds", "+x = '\u00e9'"]


# ---- nobody's config changes the result

CONFIGS = {
    "diff.external": "false",
    "diff.noprefix": "true",
    "diff.mnemonicPrefix": "true",
    "diff.srcPrefix": "left/",
    "diff.suppressBlankEmpty": "true",
    "diff.renames": "false",
    "diff.context": "0",
    "diff.interHunkContext": "50",
    "diff.algorithm": "patience",
    "diff.indentHeuristic": "false",
    "diff.orderFile": "missing",
    "diff.relative": "true",
    "diff.submodule": "log",
    "diff.ignoreSubmodules": "all",
    "diff.wsErrorHighlight": "all",
    "diff.colorMoved": "zebra",
    "diff.py.textconv": "false",
    "diff.py.command": "false",
    "diff.py.binary": "true",
    "color.ui": "always",
    "color.diff": "always",
    "core.quotePath": "true",
    "core.abbrev": "4",
    "core.bigFileThreshold": "1",
    "core.attributesFile": "all-binary",
    "core.pager": "false",
    "pager.diff": "true",
    "log.showSignature": "true",
}


def _varied(repository: Repository) -> None:
    lib = "160000,{},lib"
    repository.git("update-index", "--add", "--cacheinfo", lib.format("1" * 40))
    repository.write({"all-binary": "* binary\n"})
    repository.write({"a.py": TEN_LINES + "\n", "old.py": TEN_LINES * 2, "caf\u00e9.py": "x = 1\n"})
    repository.git("add", ".")
    repository.git("commit", "-q", "-m", "one")
    repository.git("mv", "old.py", "new.py")
    repository.write({"a.py": TEN_LINES.replace("line 5", "LINE 5") + "\nend\n"})
    repository.write({"new.py": TEN_LINES + "between\n" + TEN_LINES, "caf\u00e9.py": "x = 2\n"})
    repository.git("add", ".")
    repository.git("update-index", "--add", "--cacheinfo", lib.format("2" * 40))
    repository.git("commit", "-q", "-m", "two")


def test_no_setting_of_git_changes_the_result(repository: Repository) -> None:
    """Two people with different git configs get the same diff, and no program of theirs runs."""
    _varied(repository)
    expected = committed(repository)
    assert [file.path for file in expected.files] == ["a.py", "caf\u00e9.py", "lib", "new.py"]
    for name, value in CONFIGS.items():
        repository.git("config", name, value)
    assert committed(repository) == expected


@pytest.mark.parametrize("attribute", ["-diff", "binary", "diff=py", "-text", "diff=python"])
def test_no_attribute_hides_a_source(repository: Repository, attribute: str) -> None:
    """A .gitattributes that calls sources binary, or gives them a driver, hides no change."""
    source = "class A:\n    def f(self):\n" + "".join(f"        x{n} = {n}\n" for n in range(20))
    repository.commit({"a.py": source})
    repository.commit({"a.py": source.replace("= 15", "= 16")})
    expected = committed(repository)
    for name in ("textconv", "command", "xfuncname"):
        repository.git("config", f"diff.py.{name}", "false")
    repository.write({".gitattributes": f"*.py {attribute}\n"})
    assert committed(repository) == expected
    assert lines(only(committed(repository))) == lines(only(expected))
    repository.write({".git/info/attributes": f"*.py {attribute}\n"})
    assert lines(only(committed(repository))) == lines(only(expected))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GIT_EXTERNAL_DIFF", "false"),
        ("GIT_DIFF_OPTS", "--unified=0"),
        ("GIT_PAGER", "false"),
        ("GIT_TRACE", "1"),
        ("GIT_LITERAL_PATHSPECS", "1"),
        ("GIT_ICASE_PATHSPECS", "1"),
        ("GIT_NOGLOB_PATHSPECS", "1"),
    ],
)
def test_no_variable_of_git_changes_the_result(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    """What a shell or a CI job exports for git does not change the diff."""
    _varied(repository)
    repository.write({"a.py": "worktree\n", "untracked.py": "x = 1\n"})
    expected = committed(repository), working(repository)
    assert expected[1].files
    monkeypatch.setenv(name, value)
    assert (committed(repository), working(repository)) == expected


# ---- size


def test_the_hunks_of_a_huge_file_are_not_read_and_it_is_named(repository: Repository) -> None:
    """A file over 10 MiB costs its hunks, by name, and nobody else's."""
    huge = b"x = 1\n" * (diff.MAX_DIFFED_BYTES // 6 + 1)
    repository.commit({"huge.py": huge, "small.py": "x = 1\n"})
    repository.commit({"huge.py": huge + b"y\n", "small.py": "x = 2\n"})
    found = committed(repository)
    assert summary(found) == [("huge.py", "modified", "text"), ("small.py", "modified", "text")]
    assert found.files[0].hunks == ()
    assert lines(found.files[1]) == ["-x = 1", "+x = 2"]
    assert found.skipped == (Skipped("huge.py", "larger than 10 MiB: hunks not read"),)


def test_a_huge_untracked_file_is_named(repository: Repository) -> None:
    """An uncommitted file over 10 MiB is no binary: it is said why its lines are missing."""
    repository.commit({"a.py": "x = 1\n"})
    repository.write({"huge.py": b"x = 1\n" * (diff.MAX_DIFFED_BYTES // 6 + 1)})
    found = working(repository)
    assert summary(found) == [("huge.py", "added", "text")]
    assert found.skipped == (Skipped("huge.py", "larger than 10 MiB: hunks not read"),)


def test_content_that_is_not_here_is_said(repository: Repository) -> None:
    """In a partial clone a file without its old content is named, and the others are diffed."""
    repository.commit({"a.py": "x = 1\n", "b.py": "y = 1\n"})
    repository.commit({"a.py": "x = 2\n", "b.py": "y = 2\n"})
    blob = repository.git("rev-parse", "HEAD~1:a.py")
    (repository.path / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    found = committed(repository)
    assert [(file.path, lines(file)) for file in found.files] == [
        ("a.py", []), ("b.py", ["-y = 1", "+y = 2"]),
    ]  # fmt: skip
    assert found.skipped == (Skipped("a.py", "content is not here: hunks not read"),)


def test_many_files_keep_their_own_hunks(repository: Repository) -> None:
    """Beyond the number of files that are read at once, each file still has its own lines."""
    count = diff._BATCH_PATHS + 20
    repository.commit({f"f{n:04}.py": f"x = {n}\n" for n in range(count)})
    repository.commit({f"f{n:04}.py": f"y = {n}\n" for n in range(count)})
    found = committed(repository).files
    assert [lines(file) for file in found] == [[f"-x = {n}", f"+y = {n}"] for n in range(count)]


def test_the_order_of_sizes_is_not_the_order_of_paths(repository: Repository) -> None:
    """Large and small files in one change, with odd names, each keep their own hunks."""
    names = ["a.py", "a/b.py", "a-b.py", "a0.py", "\u00e9.py", "Z.py", "b.py", "a/\uffff.py"]
    names.append("a/\U0001f600.py")
    sizes = {name: 1000 - 100 * n for n, name in enumerate(names)}
    repository.commit({name: "same\n" * size for name, size in sizes.items()})
    repository.commit({name: "same\n" * size + name + "\n" for name, size in sizes.items()})
    found = {file.path: changed_lines(file) for file in committed(repository).files}
    assert found == {name: [("+", size + 1, name)] for name, size in sizes.items()}


def test_renames_keep_their_hunks_when_read_in_parts(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A rename that would be paired otherwise among fewer files still gets its own hunks."""
    body = "".join(f"value_{n} = {n}\n" for n in range(40))
    repository.commit({"a/x.py": body, "b/x.py": body + "b = 1\n"})
    repository.write({"a/x.py": None, "b/x.py": None})
    repository.commit({
        "c/x.py": body.replace("value_1", "other_1"),
        "c/z.py": body + "b = 1\nz = 1\n",
        "d/x.py": body + "a = 1\n",
    })  # fmt: skip
    whole = committed(repository)
    for size in (1, 2):
        monkeypatch.setattr(diff, "_BATCH_PATHS", size)
        assert committed(repository) == whole
    for file in whole.files:
        repo = GitRepo(str(repository.path))
        ((_, _, old), (_, _, new)) = repo.blobs([file.old_blob, file.new_blob], 1 << 20)
        before, after = (data.decode().split("\n") if data else [] for data in (old, new))
        for hunk in file.hunks:
            for sign, old_line, new_line, text in hunk.numbered():
                assert sign == "+" or before[old_line - 1] == text
                assert sign == "-" or after[new_line - 1] == text


# ---- working tree


def test_the_working_tree_shows_every_uncommitted_change(repository: Repository) -> None:
    """Edits, deletions, staged and untracked files are seen; ignored ones are not."""
    repository.commit({
        "edited.py": "x = 1\n", "gone.py": "x = 1\n", "staged.py": "x = 1\n",
        "both.py": "x = 1\n", "same.py": "x = 1\n", ".gitignore": "*.log\n",
    })  # fmt: skip
    repository.write({"staged.py": "x = 2\n", "both.py": "x = 2\n", "added.py": "new\n"})
    repository.git("add", "-A")
    repository.write({
        "edited.py": "x = 2\n", "gone.py": None, "both.py": "x = 3\n",
        "untracked.py": "u\n", "debug.log": "noise\n",
    })  # fmt: skip
    found = {file.path: (file.status, lines(file)) for file in working(repository).files}
    assert found == {
        "added.py": ("added", ["+new"]),
        "both.py": ("modified", ["-x = 1", "+x = 3"]),
        "edited.py": ("modified", ["-x = 1", "+x = 2"]),
        "gone.py": ("deleted", ["-x = 1"]),
        "staged.py": ("modified", ["-x = 1", "+x = 2"]),
        "untracked.py": ("added", ["+u"]),
    }


def test_blobs_of_the_working_tree_are_those_a_commit_would_have(repository: Repository) -> None:
    """The pack before a commit names the same blobs as the pack after it."""
    repository.commit({"a.py": "x = 1\n", "package-lock.json": "{}\n", "l.png": b"\0\1"})
    repository.write({"a.py": "x = 2\n", "package-lock.json": "[]\n", "l.png": b"\0\2"})
    before = [(file.path, file.new_blob, file.kind) for file in working(repository).files]
    repository.commit()
    after = [(file.path, file.new_blob, file.kind) for file in committed(repository).files]
    assert before == after


@pytest.mark.parametrize("name", ["a.py", "package-lock.json", "logo.png", "CHANGELOG.md"])
def test_a_file_that_was_only_touched_is_not_a_change(repository: Repository, name: str) -> None:
    """A build that touches files adds nothing to the diff, indexed or not."""
    repository.commit({name: "x = 1\n"})
    os.utime(repository.path / name, (1, 1))
    assert working(repository).files == ()


def test_a_link_that_was_made_anew_is_not_a_change(repository: Repository) -> None:
    """A link replaced by the same link adds nothing to the diff."""
    (repository.path / "link").symlink_to("a.py")
    repository.commit({"a.py": "x = 1\n"})
    (repository.path / "link").unlink()
    (repository.path / "link").symlink_to("a.py")
    os.utime(repository.path / "link", (1, 1), follow_symlinks=False)
    assert working(repository).files == ()


def test_untracked_twins_are_both_shown(repository: Repository) -> None:
    """Two new files with the same content are two changes."""
    repository.commit({"a.py": "x = 1\n"})
    repository.write({"one.py": "same\n", "two.py": "same\n", "three.py": "x = 1\n"})
    found = working(repository)
    assert [(file.path, lines(file)) for file in found.files] == [
        ("one.py", ["+same"]), ("three.py", ["+x = 1"]), ("two.py", ["+same"]),
    ]  # fmt: skip


def test_untracked_files_have_kinds_too(repository: Repository) -> None:
    """A new binary or empty file is named as such, without hunks."""
    repository.commit({"a.py": "x = 1\n"})
    repository.write({"b.bin": b"\0\1", "e.py": "", "n.py": "no newline"})
    found = working(repository)
    assert summary(found) == [
        ("b.bin", "added", "binary"), ("e.py", "added", "empty"), ("n.py", "added", "text"),
    ]  # fmt: skip
    assert [len(file.hunks) for file in found.files] == [0, 0, 1]
    assert (found.files[2].hunks[0].new_start, found.files[2].hunks[0].new_count) == (1, 1)


def test_a_link_to_the_outside_is_not_followed(repository: Repository, tmp_path: Path) -> None:
    """What a link of the working tree points to never gets into the pack."""
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key.py").write_text("KEY = 'hunter2'\n")
    repository.commit({"a.py": "x = 1\n", "pack/key.py": "x = 1\n"})
    (repository.path / "file.py").symlink_to(secret / "key.py")
    (repository.path / "folder").symlink_to(secret)
    (repository.path / "pack" / "key.py").unlink()
    (repository.path / "pack").rmdir()
    (repository.path / "pack").symlink_to(secret)
    found = working(repository)
    assert ("file.py", "added", "symlink") in summary(found)
    assert ("folder", "added", "symlink") in summary(found)
    assert ("pack/key.py", "deleted", "text") in summary(found)
    assert "hunter2" not in str(found)


def test_a_nested_repository_is_not_read(repository: Repository) -> None:
    """A clone that lies in the working tree is not taken for new files."""
    repository.commit({"a.py": "x = 1\n"})
    Repository.create(repository.path / "nested").commit({"b.py": "x = 1\n"})
    assert working(repository).files == ()


def test_a_submodule_is_seen_when_it_moves_not_when_it_is_dirty(
    repository: Repository, tmp_path: Path
) -> None:
    """Another commit checked out in a submodule is a change; edits within it are its own."""
    library = Repository.create(tmp_path / "library")
    first = library.commit({"lib.py": "x = 1\n"})
    repository.git("-c", "protocol.file.allow=always", "submodule", "add", str(library.path), "lib")
    repository.commit({"a.py": "x = 1\n"})
    inside = Repository(repository.path / "lib")
    inside.write({"lib.py": "x = 2\n", "new.py": "n\n"})
    assert working(repository).files == ()
    second = inside.commit()
    file = only(working(repository))
    assert (file.path, file.status, file.kind) == ("lib", "modified", "submodule")
    assert lines(file) == [f"-Subproject commit {first}", f"+Subproject commit {second}"]


def test_a_checkout_with_crlf_is_not_a_change(repository: Repository) -> None:
    """With autocrlf, only real edits show, and with LF lines."""
    repository.commit({"a.py": "x = 1\ny = 2\n", "b.py": "x = 1\ny = 2\n"})
    repository.git("config", "core.autocrlf", "true")
    repository.write({"a.py": "x = 1\r\ny = 2\r\n", "b.py": "x = 1\r\ny = 3\r\n"})
    file = only(working(repository))
    assert (file.path, lines(file)) == ("b.py", [" x = 1", "-y = 2", "+y = 3"])


def test_new_line_endings_are_a_change(repository: Repository) -> None:
    """Where git does not convert line endings, turning LF into CRLF shows, as in a commit."""
    repository.commit({"a.py": "x = 1\ny = 2\n"})
    repository.write({"a.py": "x = 1\ny = 2\r\n"})
    assert lines(only(working(repository))) == [" x = 1", "-y = 2", "+y = 2\r"]


def test_a_conflicted_merge_shows_the_file_with_its_markers(repository: Repository) -> None:
    """In the middle of a merge the files in conflict are shown, not passed over."""
    repository.commit({"a.py": "x = 1\n", "b.py": "x = 1\n"})
    repository.git("checkout", "-q", "-b", "side")
    repository.commit({"a.py": "x = 2\n"})
    repository.git("checkout", "-q", "main")
    repository.commit({"a.py": "x = 3\n"})
    repository.git("merge", "side", check=False)
    repository.write({"b.py": "x = 2\n"})
    a, b = working(repository).files
    assert (a.path, a.status, a.kind) == ("a.py", "modified", "text")
    assert [line for line in lines(a) if line[1:8] in ("<<<<<<<", "=======", ">>>>>>>")]
    assert "+x = 2" in lines(a)
    assert lines(b) == ["-x = 1", "+x = 2"]


def test_a_conflict_in_the_index_is_said(repository: Repository) -> None:
    """A file in conflict has no staged content: it is named, and the others keep their hunks."""
    repository.commit({"a.py": "x = 1\n", "b.py": "x = 1\n"})
    repository.git("checkout", "-q", "-b", "side")
    repository.commit({"a.py": "x = 2\n"})
    repository.git("checkout", "-q", "main")
    repository.commit({"a.py": "x = 3\n"})
    repository.git("merge", "side", check=False)
    repository.write({"b.py": "x = 2\n"})
    repository.git("add", "b.py")
    found = {file.path: lines(file) for file in staged(repository).files}
    assert found == {"a.py": [], "b.py": ["-x = 1", "+x = 2"]}
    seen = view.staged_view(GitRepo(str(repository.path)), RULES)
    assert seen.skipped == (Skipped("a.py", "in conflict"),)


def test_a_mode_change_in_the_working_tree_is_one(repository: Repository) -> None:
    """Making a file executable reads as a change of mode, for any kind of file."""
    repository.commit({"run.sh": "echo\n", "package-lock.json": "{}\n"})
    for name in ("run.sh", "package-lock.json"):
        (repository.path / name).chmod(0o755)
    assert summary(working(repository)) == [
        ("package-lock.json", "modified", "mode"), ("run.sh", "modified", "mode"),
    ]  # fmt: skip


def test_a_staged_file_that_was_edited_again_is_an_addition(repository: Repository) -> None:
    """A new file, staged and edited since, also one that is not indexed, is added with content."""
    repository.commit({"a.py": "x = 1\n"})
    repository.write({"new.py": "x = 1\n", "yarn.lock": "one\n"})
    repository.git("add", "-A")
    repository.write({"new.py": "x = 2\n", "yarn.lock": "two\n"})
    found = working(repository)
    assert [(file.path, file.status, file.kind, lines(file)) for file in found.files] == [
        ("new.py", "added", "text", ["+x = 2"]), ("yarn.lock", "added", "text", ["+two"]),
    ]  # fmt: skip


def test_a_working_tree_whose_index_is_empty(repository: Repository) -> None:
    """Before the first commit every file is an addition."""
    repository.write({"a.py": "x = 1\n", "b.py": "x = 2\n"})
    repository.git("add", "a.py")
    assert summary(working(repository)) == [("a.py", "added", "text"), ("b.py", "added", "text")]


# ---- staged


def test_staged_changes_are_told_from_later_edits(repository: Repository) -> None:
    """A check before the commit sees what will be committed, and nothing else."""
    repository.commit({"a.py": "x = 1\n", "b.py": "x = 1\n", "c.py": "x = 1\n"})
    repository.write({"a.py": "x = 2\n", "c.py": None, "d.py": "new\n"})
    repository.git("add", "-A")
    repository.write({"a.py": "x = 3\n", "b.py": "x = 9\n", "untracked.py": "u\n"})
    found = {file.path: (file.status, lines(file)) for file in staged(repository).files}
    assert found == {
        "a.py": ("modified", ["-x = 1", "+x = 2"]),
        "c.py": ("deleted", ["-x = 1"]),
        "d.py": ("added", ["+new"]),
    }


# ---- pathspecs


def test_paths_narrow_a_commit_the_index_and_the_working_tree(repository: Repository) -> None:
    """``--paths`` takes git's pathspecs, for tracked and untracked files alike."""
    repository.commit({"src/a.py": "x = 1\n", "docs/a.md": "one\n"})
    repository.commit({"src/a.py": "x = 2\n", "docs/a.md": "two\n"})
    assert summary(committed(repository, ["src"])) == [("src/a.py", "modified", "text")]
    assert summary(committed(repository, ["*.md"])) == [("docs/a.md", "modified", "text")]
    assert summary(committed(repository, [":!src"])) == [("docs/a.md", "modified", "text")]
    assert committed(repository, ["missing"]).files == ()
    repository.write({"src/a.py": "x = 3\n", "src/new.py": "n\n", "docs/new.md": "n\n"})
    assert summary(working(repository, ["src"])) == [
        ("src/a.py", "modified", "text"), ("src/new.py", "added", "text"),
    ]  # fmt: skip
    assert summary(working(repository, ["docs"])) == [("docs/new.md", "added", "text")]
    repository.git("add", "-A")
    assert summary(staged(repository, ["docs"])) == [("docs/new.md", "added", "text")]


def test_a_pathspec_can_not_be_an_option(repository: Repository) -> None:
    """A path that begins with a dash narrows the diff and is never taken for a flag of git."""
    repository.commit({"-p": "one\n", "b.py": "x = 1\n"})
    repository.commit({"-p": "two\n", "b.py": "x = 2\n"})
    assert summary(committed(repository, ["-p"])) == [("-p", "modified", "text")]
    assert committed(repository, ["--output=/dev/null"]).files == ()
