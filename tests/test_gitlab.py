"""The template for GitLab does what it says; its script runs as in a job, but installs nothing."""

from __future__ import annotations

import json
import os
import shutil
import string
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.forge import Forge, serving
from tests.packs import SHOP, shop
from tests.repository import Repository

ROOT = Path(__file__).resolve().parent.parent
JOB = yaml.safe_load((ROOT / "docs" / "gitlab-ci.yml").read_text())["coderag-ci"]

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the template is for Linux images")


@pytest.fixture
def forge(repository: Repository) -> Iterator[Forge]:
    """Return a forge with a merge request for the shop's branch topic."""
    shop(repository)
    with serving(Forge(speaks="gitlab", login="project_42_bot")) as forge:
        forge.head = repository.git("rev-parse", "HEAD")
        yield forge


def run(where: Path, variables: dict[str, str]) -> str:
    """Run the template's script in a clone and return what it prints; it has to succeed."""
    path = os.path.dirname(sys.executable)
    environment = {
        "PATH": f"{path}{os.pathsep}{os.environ['PATH']}",
        "HOME": os.environ["HOME"],
        "CI": "true",
        "CI_PROJECT_DIR": str(where),
        "CI_JOB_URL": "https://gitlab.example/o/r/-/jobs/1",
        **variables,
    }
    for name, text in JOB["variables"].items():
        environment.setdefault(name, string.Template(text).substitute(environment))
    done = subprocess.run(
        ["sh", "-e", "-c", "\n".join(JOB["script"])],
        cwd=where,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def of_merge_request(repository: Repository, forge: Forge) -> dict[str, str]:
    """Return the variables of a merge request's pipeline."""
    return {
        **forge.environment(),
        "CI_COMMIT_SHA": forge.head,
        "CI_MERGE_REQUEST_DIFF_BASE_SHA": repository.git("rev-parse", "main"),
        "CI_MERGE_REQUEST_TITLE": "Do not fail for unknown countries",
    }


def test_a_merge_request(repository: Repository, forge: Forge) -> None:
    """It gets a note, left alone where nothing changed, and the files that the job keeps."""
    variables = of_merge_request(repository, forge)
    for _ in range(2):
        assert forge.token not in run(repository.path, variables)
    (note,) = forge.comments
    assert forge.changes() == ["POST"]
    kept = [repository.path / path for path in JOB["artifacts"]["paths"]]
    assert all(path.stat().st_size for path in kept)
    pack = json.loads((repository.path / "coderag.json").read_text())
    assert pack["digest"] in note.body
    assert "https://gitlab.example/o/r/-/jobs/1/artifacts/file/coderag.html" in note.body
    assert [file["path"] for file in pack["diff"]] == ["shop/tax.py"]


@pytest.mark.parametrize("change", [{"GITLAB_TOKEN": ""}, {"CODERAG_COMMENT": "never"}])
def test_a_merge_request_without_a_note(
    repository: Repository, forge: Forge, change: dict[str, str]
) -> None:
    """Without a token, or where none is wanted, there is the artifact alone."""
    run(repository.path, {**of_merge_request(repository, forge), **change})
    assert forge.asked == []
    assert (repository.path / "coderag.html").exists()


def test_the_default_branch_warms_the_index(
    repository: Repository, forge: Forge, tmp_path: Path
) -> None:
    """What its pipeline leaves in the cache is what merge requests start from."""
    repository.git("checkout", "-q", "main")
    run(repository.path, {"GITLAB_CI": "true"})
    (cached,) = JOB["cache"]["paths"]
    clone = tmp_path / "clone"
    repository.git("clone", "-q", "--branch=topic", str(repository.path), str(clone))
    (clone / cached).parent.mkdir()
    shutil.copy(repository.path / cached, clone / cached)
    run(clone, of_merge_request(repository, forge))
    trace = json.loads((clone / "coderag.json").read_text())["trace"]
    assert (trace["blobs_indexed"], trace["blobs_reused"]) == (1, len(SHOP))
