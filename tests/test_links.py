"""Web links from the URL of a remote."""

from __future__ import annotations

import pytest

from coderag_ci.links import permalink, web_address
from tests.conftest import Command
from tests.packs import shop
from tests.repository import Repository

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("remote", "address"),
    [
        ("https://github.com/o/r.git", "https://github.com/o/r"),
        ("https://github.com/o/r", "https://github.com/o/r"),
        ("https://github.com/o/r/", "https://github.com/o/r"),
        ("http://github.com/o/r.git", "https://github.com/o/r"),
        ("git@github.com:o/r.git", "https://github.com/o/r"),
        ("github.com:o/r", "https://github.com/o/r"),
        ("ssh://git@github.com/o/r.git", "https://github.com/o/r"),
        ("ssh://git@git.example.com:2222/o/r.git", "https://git.example.com/o/r"),
        ("git://github.com/o/r.git", "https://github.com/o/r"),
        ("https://gitlab.com/group/sub/r.git", "https://gitlab.com/group/sub/r"),
        ("git@gitlab.com:group/sub/r.git", "https://gitlab.com/group/sub/r"),
        ("https://github.com/o/r with space", "https://github.com/o/r%20with%20space"),
        ("", ""),
        ("/srv/git/r.git", ""),
        ("../r.git", ""),
        ("file:///srv/git/r.git", ""),
        ("C:\\git\\r", ""),
        ("https://github.com", ""),
    ],
)
def test_the_address_of_each_form_of_remote(remote: str, address: str) -> None:
    """A link that leads nowhere is worse than none."""
    assert web_address(remote) == address


@pytest.mark.parametrize(
    "remote",
    [
        "https://SECRET@github.com/o/r.git",
        "https://user:SECRET@github.com/o/r.git",
        "https://x-access-token:SECRET@github.com/o/r.git",
        "https://user:a@SECRET@github.com/o/r.git",
        "https://user:12/SECRET@github.com/o/r.git",
        "ssh://git:SECRET@github.com/o/r.git",
        "SECRET@github.com:o/r.git",
        "user:SECRET@github.com:o/r.git",
        "https://github.com/o/r.git?private_token=SECRET",
        "https://github.com/o/r.git#SECRET",
        "https://oauth2:SECRET@gitlab.com:8443/o/r.git",
    ],
)
def test_credentials_never_appear(remote: str, repository: Repository, command: Command) -> None:
    """CI puts a token into the remote; a pack is pasted into a public comment."""
    assert "SECRET" not in web_address(remote)
    if remote.count("SECRET") == 1 and "x-access" in remote:
        shop(repository)
        repository.git("remote", "add", "origin", remote)
        for form in ("markdown", "json", "prompt"):
            result = command(
                "context", "--repo", str(repository.path), "--base", "main", "--format", form
            )
            assert result.code == 0
            assert "SECRET" not in result.out + result.err
            assert form == "prompt" or "https://github.com/o/r" in result.out


def test_permalinks_of_github_and_gitlab() -> None:
    """The two sites write a range of lines in different ways."""
    hub, lab = "https://github.com/o/r", "https://gitlab.com/o/r"
    assert permalink(hub, COMMIT, "a/b.py", 3, 9) == f"{hub}/blob/{COMMIT}/a/b.py#L3-L9"
    assert permalink(hub, COMMIT, "a/b.py", 3, 3) == f"{hub}/blob/{COMMIT}/a/b.py#L3"
    assert permalink(lab, COMMIT, "a/b.py", 3, 9) == f"{lab}/-/blob/{COMMIT}/a/b.py#L3-9"
    assert permalink(lab, COMMIT, "a/b.py", 3, 3) == f"{lab}/-/blob/{COMMIT}/a/b.py#L3"


def test_paths_are_quoted() -> None:
    """A path with a bracket or a space would end the link in the middle."""
    link = permalink("https://github.com/o/r", COMMIT, "a b/(c)#?é\udcff.py", 1, 1)
    assert link.endswith("/a%20b/%28c%29%23%3F%C3%A9%FF.py#L1")


def test_without_remote_or_commit_there_is_no_link() -> None:
    """The working tree is on no server."""
    assert permalink("", COMMIT, "a.py", 1, 2) == ""
    assert permalink("https://github.com/o/r", "", "a.py", 1, 2) == ""
