"""The main job: from a change to a pack."""

from __future__ import annotations

import json

from tests.conftest import Command
from tests.repository import Repository

SESSION = '''
class Session:
    """Holds what a visitor did."""

    def __init__(self):
        self.accessed = False

    def touch(self):
        self.accessed = True
'''
STORE = '''
from session import Session


def save_session(session: Session, response):
    """Write the session cookie when it was used."""
    if session.accessed:
        response.headers.add("Vary", "Cookie")


def unrelated(values):
    return sorted(values)
'''


def test_the_reader_of_a_changed_attribute_is_the_first_evidence(
    repository: Repository, command: Command
) -> None:
    """What decides whether the change is right is found in another file, with reason and lines."""
    repository.commit({"session.py": SESSION, "store.py": STORE, "README.md": "# Demo\n"})
    repository.commit({"session.py": SESSION.replace("= True", '= "yes"')}, "Say how")
    result = command(
        "context", "--repo", str(repository.path), "--base", "HEAD~1", "--format", "json"
    )
    pack = json.loads(result.out)
    assert result.code == 0
    first = pack["evidence"][0]
    assert (first["path"], first["symbol"], first["start"]) == ("store.py", "save_session", 5)
    assert "reads `accessed` (line 7), imported from it" in [c["reason"] for c in first["channels"]]
    assert [f["path"] for f in pack["diff"]] == ["session.py"]


def test_paths_count_from_the_folder_that_the_command_runs_in(
    repository: Repository, command: Command
) -> None:
    """As with git itself, so that a completed path means the file it names."""
    repository.commit({"a/x.py": "x = 1\n", "b/x.py": "x = 1\n"})
    repository.commit({"a/x.py": "x = 2\n", "b/x.py": "x = 2\n"})
    arguments = ("context", "--base", "HEAD~1", "--format", "json", "--paths")
    here = command(*arguments, "x.py", cwd=repository.path / "a")
    whole = command(*arguments, ":/", cwd=repository.path / "a")
    assert [f["path"] for f in json.loads(here.out)["diff"]] == ["a/x.py"]
    assert [f["path"] for f in json.loads(whole.out)["diff"]] == ["a/x.py", "b/x.py"]
