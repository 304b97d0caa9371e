"""The actions and workflows do what the documentation says, run step by step on real events."""

from __future__ import annotations

import io
import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from coderag_ci.errors import EXIT_DEGRADED, EXIT_SETUP
from tests.packs import NEW_TAX, SHOP
from tests.repository import Repository
from tests.steps import ROOT, Event, Outcome, Service

TOPIC = {"shop/tax.py": NEW_TAX}
RENAMED = {"shop/tax.py": str(SHOP["shop/tax.py"]).replace("def tax_rate(", "def rate_of_tax(")}
MANY: dict[str, str | bytes | None] = {f"m{i}.py": f"def f{i}(): pass\n" for i in range(30)}


def shown(path: str, name: str) -> dict[Any, Any]:
    """Return the workflow of a name that a page of the documentation gives to copy."""
    blocks = re.findall(r"```yaml\n(.*?)```", (ROOT / path).read_text(), re.DOTALL)
    (found,) = [block for block in map(yaml.safe_load, blocks) if dict(block).get("name") == name]
    return dict(found)


def workflow(**inputs: str) -> dict[Any, Any]:
    """Return the documented workflow with inputs, for every event."""
    found = shown("docs/github-action.md", "coderag")
    (job,) = found["jobs"].values()
    job["steps"][-1].setdefault("with", {}).update(
        {name.replace("_", "-"): text for name, text in inputs.items()}
    )
    for name in ("merge_group", "workflow_dispatch", "schedule"):
        found[True][name] = None
    return found


class Forge:
    """The shop on a forge: main, and what others ask to merge into it."""

    def __init__(self, folder: Path) -> None:
        self.repository = Repository.create(folder / "shop")
        self.repository.git("config", "uploadpack.allowAnySHA1InWant", "true")
        self.repository.commit(SHOP, "Open the shop")
        self.service = Service(folder / "runs", self.repository.path)

    def push(self, before: str, after: str, branch: str = "main") -> Event:
        """Return the event of a push."""
        ref = f"refs/heads/{branch}"
        return self._event("push", {"before": before, "after": after, "ref": ref}, after, ref)

    def pull_request(self, *, fork: bool = False) -> Event:
        """Ask to merge a change of how a tax rate is looked up, from a branch or a fork.

        A fork's commits are known under the pull request's own refs alone.
        """
        git = self.repository.git
        base = git("rev-parse", "main")
        git("checkout", "-q", "-B", "topic", "main")
        head = self.repository.commit(TOPIC, "Do not fail for unknown countries")
        git("update-ref", "refs/pull/7/head", head)
        git("checkout", "-q", "-B", "merged", "main")
        git("merge", "-q", "--no-ff", "-m", "Merge", head)
        merged = git("rev-parse", "HEAD")
        git("update-ref", "refs/pull/7/merge", merged)
        git("checkout", "-q", "main")
        git("branch", "-q", "-D", "merged", *(["topic"] if fork else []))
        pull = {
            "number": 7,
            "title": "Unknown countries have no tax",
            "base": {"ref": "main", "sha": base},
            "head": {"ref": "topic", "sha": head},
        }
        payload = {"pull_request": pull}
        return self._event("pull_request", payload, merged, "refs/pull/7/merge", fork)

    def other(self, name: str, payload: dict[str, Any]) -> Event:
        """Return an event of the newest commit of main."""
        commit = self.repository.git("rev-parse", "main")
        return self._event(name, payload, commit, "refs/heads/main")

    def _event(
        self, name: str, payload: dict[str, Any], sha: str, ref: str, fork: bool = False
    ) -> Event:
        known = {"repository": {"default_branch": "main", "full_name": "shop/shop"}}
        return Event(name, {**known, **payload}, sha, ref, fork)

    def pack(self, run: int = 0, name: str = "coderag-ci") -> dict[str, Any]:
        """Return the pack in the artifact of a run, by default the last."""
        archive = self.service.artifacts[run or self.service.runs, name]
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            assert opened.namelist() == ["pack.html", "pack.json", "pack.md"]
            return dict(json.loads(opened.read("pack.json")))


@pytest.fixture
def forge(tmp_path: Path) -> Forge:
    """Return a forge with the shop."""
    return Forge(tmp_path)


def succeeded(done: Outcome) -> Outcome:
    """Return the outcome of a run that has to succeed."""
    assert done.code == 0, done.log
    return done


# ---- without a pull request


def test_a_push(forge: Forge) -> None:
    """A push gives summary, artifact and outputs of what it pushed, and no comment."""
    before = forge.repository.git("rev-parse", "HEAD")
    after = forge.repository.commit(RENAMED, "Rename")
    done = succeeded(forge.service.run(workflow(), forge.push(before, after)))
    assert done.steps["Comment in the pull request"] == "skipped"
    assert done.outputs["comment-id"] == ""
    pack = forge.pack()
    assert (pack["change"]["base"], pack["change"]["head"]) == (before, after)
    assert [fact["kind"] for fact in pack["facts"]][:1] == ["dangling"]
    assert done.outputs["digest"] == pack["digest"]
    assert (done.outputs["degraded"], done.outputs["truncated"]) == ("false", "false")
    assert Path(done.outputs["json-path"]).exists()
    assert Path(done.outputs["pack-path"]).read_text() == done.summary


@pytest.mark.parametrize("name", ["merge_group", "workflow_dispatch", "schedule"])
def test_events_without_a_pull_request(forge: Forge, name: str) -> None:
    """A merge queue, a button and a clock end well: a pack, no comment, no saved index."""
    base = forge.repository.git("rev-parse", "HEAD")
    head = forge.repository.commit(TOPIC)
    payload = {
        "merge_group": {"merge_group": {"base_sha": base, "head_sha": head}},
        "workflow_dispatch": {"inputs": None},
        "schedule": {"schedule": "0 0 * * *"},
    }[name]
    done = succeeded(forge.service.run(workflow(), forge.other(name, payload)))
    assert done.steps["Comment in the pull request"] == "skipped"
    assert done.summary.startswith("# Evidence pack")
    changed = ["shop/tax.py"] if name == "merge_group" else []
    assert [file["path"] for file in forge.pack()["diff"]] == changed
    assert forge.service.caches == {}


def test_a_first_push(forge: Forge) -> None:
    """A new branch is compared with the default branch, since nothing was there before it."""
    forge.repository.git("checkout", "-q", "-b", "topic")
    head = forge.repository.commit(TOPIC)
    everywhere = workflow()
    everywhere[True]["push"] = None
    succeeded(forge.service.run(everywhere, forge.push("0" * 40, head, "topic")))
    assert [file["path"] for file in forge.pack()["diff"]] == ["shop/tax.py"]


# ---- the saved index


def test_the_index_is_saved_where_enough_is_new(forge: Forge) -> None:
    """A push of many files saves the index; one of a single file does not, but starts from it."""
    first = forge.repository.git("rev-parse", "HEAD")
    second = forge.repository.commit(MANY)
    done = succeeded(forge.service.run(workflow(), forge.push(first, second)))
    assert done.steps["Save the index"] == "success"
    (key,) = forge.service.caches
    assert key.endswith(f"-{second}")
    third = forge.repository.commit(TOPIC)
    done = succeeded(forge.service.run(workflow(), forge.push(second, third)))
    assert done.steps["Save the index"] == "skipped"
    trace = forge.pack()["trace"]
    assert (trace["blobs_indexed"], trace["blobs_reused"] > 30) == (1, True)


def test_a_pull_request_reads_the_index_and_saves_none(forge: Forge) -> None:
    """However much is new in it, a pull request never pushes out what all others start from."""
    first = forge.repository.git("rev-parse", "HEAD")
    second = forge.repository.commit(MANY)
    forge.service.run(workflow(), forge.push(first, second))
    event = forge.pull_request()
    succeeded(forge.service.run(workflow(comment="never"), event))
    assert forge.pack()["trace"]["blobs_indexed"] == 1
    assert len(forge.service.caches) == 1


def test_without_the_cache(forge: Forge) -> None:
    """cache: false neither reads nor writes a saved index."""
    first = forge.repository.git("rev-parse", "HEAD")
    done = forge.service.run(
        workflow(cache="false"), forge.push(first, forge.repository.commit(MANY))
    )
    assert succeeded(done).steps["Restore the index"] == "skipped"
    assert forge.service.caches == {}


def test_a_spoilt_saved_index(forge: Forge) -> None:
    """Bytes that are no index of ours are discarded with a notice, and the pack is made."""
    first = forge.repository.git("rev-parse", "HEAD")
    event = forge.push(first, forge.repository.commit(MANY))
    forge.service.run(workflow(), event)
    whole = forge.pack()["digest"]
    forge.service.caches = dict.fromkeys(forge.service.caches, b"nonsense" * 1000)
    done = succeeded(forge.service.run(workflow(), event))
    assert "the saved index was discarded" in done.log
    assert forge.pack()["digest"] == whole


# ---- what is compared


def test_a_shallow_checkout_is_deepened(forge: Forge) -> None:
    """Without fetch-depth the clone is deepened to the merge base, and the pack is the same."""
    for i in range(60):
        forge.repository.commit({"log.txt": f"{i}\n"})
    event = forge.pull_request()
    for i in range(60):  # main goes on
        forge.repository.commit({"log.txt": f"again {i}\n"})
    event.payload["pull_request"]["base"]["sha"] = forge.repository.git("rev-parse", "main")
    shallow = workflow(comment="never")
    del shallow["jobs"]["pack"]["steps"][0]["with"]["fetch-depth"]
    done = succeeded(forge.service.run(shallow, event))
    assert "deepening the clone by 50 commits" in done.log
    pack = forge.pack()
    assert pack["change"]["head"] == event.payload["pull_request"]["head"]["sha"]
    assert [file["path"] for file in pack["diff"]] == ["shop/tax.py"]


def test_inputs(forge: Forge) -> None:
    """What a workflow sets decides: ends, budget, artifact, config of the base, version."""
    base = forge.repository.commit({"settings/rag.yml": "top-k: 1\n"})
    forge.repository.commit(RENAMED)
    head = forge.repository.commit({"settings/rag.yml": "top-k: 30\n"})
    done = forge.service.run(
        workflow(
            base=base,
            head=head,
            budget="3000",
            config="settings/rag.yml",
            artifact_name="evidence",
            version="0.1.0",
        ),
        forge.other("workflow_dispatch", {}),
    )
    pack = forge.pack(name="evidence")
    assert succeeded(done).steps["Make the pack"] == "success"
    assert pack["budget"]["total"] == 3000
    assert pack["settings"]["top-k"] == "1"
    log = forge.service.folder / "run-1" / "uv.log"
    assert log.read_text().splitlines()[-1].endswith(" coderag-ci==0.1.0")


def test_the_action_installs_itself(forge: Forge) -> None:
    """Without a version the code is that of the action's own commit."""
    forge.service.run(workflow(), forge.other("schedule", {}))
    log = forge.service.folder / "run-1" / "uv.log"
    assert log.read_text().splitlines()[-1].endswith(f"--python venv {ROOT}")


def test_a_degraded_pack_fails_the_job_where_that_is_wanted(forge: Forge) -> None:
    """fail-on-degraded fails after summary and artifact are there; by default nothing fails."""
    first = forge.repository.git("rev-parse", "HEAD")
    event = forge.push(first, forge.repository.commit(TOPIC))
    done = forge.service.run(workflow(deadline="0.001"), event)
    assert succeeded(done).outputs["degraded"] == "true"
    done = forge.service.run(workflow(deadline="0.001", fail_on_degraded="true"), event)
    assert done.code == EXIT_DEGRADED
    assert "::error title=coderag-ci::the pack is degraded" in done.log
    assert done.summary
    assert forge.pack()["degradations"]


def test_what_can_not_be_compared_fails_with_what_to_set(forge: Forge) -> None:
    """A base that nobody knows ends the job with an annotation, not with a pack of anything."""
    event = forge.other("workflow_dispatch", {})
    done = forge.service.run(workflow(base="no-such-branch"), event)
    assert done.code == EXIT_SETUP
    assert "::error title=coderag-ci::" in done.log
    assert "fetch-depth: 0" in done.log
    assert forge.service.artifacts == {}
