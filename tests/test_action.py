"""The actions and workflows do what the documentation says, run step by step on real events."""

from __future__ import annotations

import copy
import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from coderag_ci.errors import EXIT_DEGRADED, EXIT_SETUP
from coderag_ci.tokens import estimate
from tests.forge import Forge, serving
from tests.packs import NEW_TAX, SHOP
from tests.repository import Repository
from tests.steps import ROOT, Event, Outcome, Service

TOPIC: dict[str, str | bytes | None] = {"shop/tax.py": NEW_TAX}
RENAMED = {"shop/tax.py": str(SHOP["shop/tax.py"]).replace("def tax_rate(", "def rate_of_tax(")}
COMMENT = "Comment in the pull request"
MANY: dict[str, str | bytes | None] = {f"m{i}.py": f"def f{i}(): pass\n" for i in range(30)}


def yaml_blocks(path: str) -> list[str]:
    """Return what a page of the documentation gives to copy."""
    return re.findall(r"```yaml\n(.*?)```", (ROOT / path).read_text(), re.DOTALL)


def shown(path: str, name: str) -> dict[Any, Any]:
    """Return the workflow of a name that a page of the documentation gives to copy."""
    blocks = map(yaml.safe_load, yaml_blocks(path))
    (found,) = [block for block in blocks if block.get("name") == name]
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


class Shop:
    """The shop on a forge: main, and what others ask to merge into it."""

    def __init__(self, folder: Path, forge: Forge) -> None:
        self.forge = forge
        self.repository = Repository.create(folder / "shop")
        self.repository.git("config", "uploadpack.allowAnySHA1InWant", "true")
        self.repository.commit(SHOP, "Open the shop")
        self.service = Service(folder / "runs", self.repository.path, forge)

    def push(self, before: str, after: str, branch: str = "main") -> Event:
        """Return the event of a push."""
        ref = f"refs/heads/{branch}"
        return self._event("push", {"before": before, "after": after, "ref": ref}, after, ref)

    def pull_request(
        self, files: dict[str, str | bytes | None] = TOPIC, *, fork: bool = False
    ) -> Event:
        """Ask to merge a change, by default of how a tax rate is looked up; or push to it anew.

        A fork's commits are known under the pull request's own refs alone.
        """
        git = self.repository.git
        base = git("rev-parse", "main")
        git("checkout", "-q", "-B", "topic", "main")
        head = self.repository.commit(files, "Change")
        self.forge.head = head
        self.forge.pulls = [{"number": 7, "head": {"sha": head}}]
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

    def finished(self, event: Event) -> Event:
        """Return the event of the end of the last run, which was for an event."""
        run = {
            "id": self.service.runs,
            "event": event.name,
            "head_sha": event.payload["pull_request"]["head"]["sha"],
            "head_branch": "topic",
            "head_repository": {"owner": {"login": "stranger"}},
            "html_url": f"{self.forge.url}/o/r/actions/runs/{self.service.runs}",
        }
        return self.other("workflow_run", {"workflow_run": run, "workflow": {"name": "coderag"}})

    def _event(
        self, name: str, payload: dict[str, Any], sha: str, ref: str, fork: bool = False
    ) -> Event:
        known = {"repository": {"default_branch": "main"}}
        return Event(name, {**known, **payload}, sha, ref, fork)

    def pack(self, name: str = "coderag-ci") -> dict[str, Any]:
        """Return the pack in the last artifact of a name."""
        with zipfile.ZipFile(io.BytesIO(self.forge.artifacts[name])) as opened:
            assert opened.namelist() == ["pack.html", "pack.json", "pack.md"]
            return dict(json.loads(opened.read("pack.json")))


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    """Return the shop on a forge that is being served."""
    with serving(Forge()) as forge:
        yield Shop(tmp_path, forge)


def succeeded(done: Outcome) -> Outcome:
    """Return the outcome of a run that has to succeed."""
    assert done.code == 0, done.log
    return done


# ---- without a pull request


def test_a_push(shop: Shop) -> None:
    """A push gives summary, artifact and outputs of what it pushed, and no comment."""
    before = shop.repository.git("rev-parse", "HEAD")
    after = shop.repository.commit(RENAMED, "Rename")
    done = succeeded(shop.service.run(workflow(), shop.push(before, after)))
    assert done.steps[COMMENT] == "skipped"
    assert done.outputs["comment-id"] == ""
    pack = shop.pack()
    assert (pack["change"]["base"], pack["change"]["head"]) == (before, after)
    assert [fact["kind"] for fact in pack["facts"]][:1] == ["dangling"]
    assert done.outputs["digest"] == pack["digest"]
    assert (done.outputs["degraded"], done.outputs["truncated"]) == ("false", "false")
    assert Path(done.outputs["json-path"]).exists()
    assert Path(done.outputs["pack-path"]).read_text() == done.summary


@pytest.mark.parametrize("name", ["merge_group", "workflow_dispatch", "schedule"])
def test_events_without_a_pull_request(shop: Shop, name: str) -> None:
    """A merge queue, a button and a clock end well: a pack, no comment, no saved index."""
    base = shop.repository.git("rev-parse", "HEAD")
    head = shop.repository.commit(TOPIC)
    payload = {
        "merge_group": {"merge_group": {"base_sha": base, "head_sha": head}},
        "workflow_dispatch": {"inputs": None},
        "schedule": {"schedule": "0 0 * * *"},
    }[name]
    done = succeeded(shop.service.run(workflow(), shop.other(name, payload)))
    assert done.steps[COMMENT] == "skipped"
    assert done.summary.startswith("# Evidence pack")
    changed = ["shop/tax.py"] if name == "merge_group" else []
    assert [file["path"] for file in shop.pack()["diff"]] == changed
    assert shop.service.caches == {}
    assert shop.forge.asked == []


def test_a_first_push(shop: Shop) -> None:
    """A new branch is compared with the default branch, since nothing was there before it."""
    shop.repository.git("checkout", "-q", "-b", "topic")
    head = shop.repository.commit(TOPIC)
    everywhere = workflow()
    everywhere[True]["push"] = None
    succeeded(shop.service.run(everywhere, shop.push("0" * 40, head, "topic")))
    assert [file["path"] for file in shop.pack()["diff"]] == ["shop/tax.py"]


# ---- the saved index


def test_the_index_is_saved_where_enough_is_new(shop: Shop) -> None:
    """A push of many files saves the index; one of a single file does not, but starts from it."""
    first = shop.repository.git("rev-parse", "HEAD")
    second = shop.repository.commit(MANY)
    done = succeeded(shop.service.run(workflow(), shop.push(first, second)))
    assert done.steps["Save the index"] == "success"
    (key,) = shop.service.caches
    assert key.endswith(f"-{second}")
    third = shop.repository.commit(TOPIC)
    done = succeeded(shop.service.run(workflow(), shop.push(second, third)))
    assert done.steps["Save the index"] == "skipped"
    trace = shop.pack()["trace"]
    assert (trace["blobs_indexed"], trace["blobs_reused"] > 30) == (1, True)


def test_a_pull_request_reads_the_index_and_saves_none(shop: Shop) -> None:
    """However much is new in it, a pull request never pushes out what all others start from.

    Bytes that are no index of ours are discarded with a notice, and the pack is the same.
    """
    first = shop.repository.git("rev-parse", "HEAD")
    shop.service.run(workflow(), shop.push(first, shop.repository.commit(MANY)))
    event = shop.pull_request({f"n{i}.py": f"def g{i}(): pass\n" for i in range(30)})
    succeeded(shop.service.run(workflow(comment="never"), event))
    pack = shop.pack()
    assert pack["trace"]["blobs_indexed"] == len(MANY)
    assert len(shop.service.caches) == 1
    shop.service.caches = dict.fromkeys(shop.service.caches, b"nonsense" * 1000)
    done = succeeded(shop.service.run(workflow(comment="never"), event))
    assert "the saved index was discarded" in done.log
    assert shop.pack()["digest"] == pack["digest"]


def test_without_the_cache(shop: Shop) -> None:
    """cache: false neither reads nor writes a saved index."""
    first = shop.repository.git("rev-parse", "HEAD")
    done = shop.service.run(workflow(cache="false"), shop.push(first, shop.repository.commit(MANY)))
    assert succeeded(done).steps["Restore the index"] == "skipped"
    assert shop.service.caches == {}


# ---- what is compared


def test_a_shallow_checkout_is_deepened(shop: Shop) -> None:
    """Without fetch-depth the clone is deepened to the merge base, and the pack is the same."""
    for i in range(60):
        shop.repository.commit({"log.txt": f"{i}\n"})
    event = shop.pull_request()
    for i in range(60):  # main goes on
        shop.repository.commit({"log.txt": f"again {i}\n"})
    event.payload["pull_request"]["base"]["sha"] = shop.repository.git("rev-parse", "main")
    shallow = workflow(comment="never")
    del shallow["jobs"]["pack"]["steps"][0]["with"]["fetch-depth"]
    done = succeeded(shop.service.run(shallow, event))
    assert "deepening the clone by 50 commits" in done.log
    pack = shop.pack()
    assert pack["change"]["head"] == event.payload["pull_request"]["head"]["sha"]
    assert [file["path"] for file in pack["diff"]] == ["shop/tax.py"]


def test_inputs(shop: Shop) -> None:
    """What a workflow sets decides: ends, budget, artifact, config of the base, version."""
    base = shop.repository.commit({"settings/rag.yml": "top-k: 1\n"})
    shop.repository.commit(RENAMED)
    head = shop.repository.commit({"settings/rag.yml": "top-k: 30\n"})
    done = shop.service.run(
        workflow(
            base=base,
            head=head,
            budget="3000",
            config="settings/rag.yml",
            artifact_name="evidence",
            version="0.1.0",
        ),
        shop.other("workflow_dispatch", {}),
    )
    pack = shop.pack(name="evidence")
    assert succeeded(done).steps["Make the pack"] == "success"
    assert pack["budget"]["total"] == 3000
    assert pack["settings"]["top-k"] == "1"
    log = shop.service.folder / "run-1" / "uv.log"
    assert log.read_text().splitlines()[-1].endswith(" coderag-ci==0.1.0")


def test_the_action_installs_itself(shop: Shop) -> None:
    """Without a version the code is that of the action's own commit."""
    shop.service.run(workflow(), shop.other("schedule", {}))
    log = shop.service.folder / "run-1" / "uv.log"
    assert log.read_text().splitlines()[-1].endswith(f"--python venv {ROOT}")


def test_a_degraded_pack_fails_the_job_where_that_is_wanted(shop: Shop) -> None:
    """fail-on-degraded fails after summary and artifact are there; by default nothing fails."""
    first = shop.repository.git("rev-parse", "HEAD")
    event = shop.push(first, shop.repository.commit(TOPIC))
    done = shop.service.run(workflow(deadline="0.001"), event)
    assert succeeded(done).outputs["degraded"] == "true"
    done = shop.service.run(workflow(deadline="0.001", fail_on_degraded="true"), event)
    assert done.code == EXIT_DEGRADED
    assert "::error title=coderag-ci::the pack is degraded" in done.log
    assert done.summary
    assert shop.pack()["degradations"]


def test_what_can_not_be_compared_fails_with_what_to_set(shop: Shop) -> None:
    """A base that nobody knows ends the job with an annotation, not with a pack of anything."""
    event = shop.other("workflow_dispatch", {})
    done = shop.service.run(workflow(base="no-such-branch"), event)
    assert done.code == EXIT_SETUP
    assert "::error title=coderag-ci::" in done.log
    assert "fetch-depth: 0" in done.log
    assert shop.forge.artifacts == {}


# ---- in a pull request of the repository itself


def plain(path: str) -> dict[Any, Any]:
    """Return the workflow that a page gives to copy for a repository without forks."""
    blocks = [yaml.safe_load(block) for block in yaml_blocks(path)]
    return next(block for block in blocks if "jobs" in block)


@pytest.mark.parametrize("page", ["README.md", "docs/github-action.md"])
def test_a_pull_request(shop: Shop, page: str) -> None:
    """The workflow to copy gives comment, summary and artifact, of the pull request's own head."""
    event = shop.pull_request()
    done = succeeded(shop.service.run(plain(page), event))
    (comment,) = shop.forge.comments
    assert done.outputs["comment-id"] == str(comment.number)
    pack = shop.pack()
    head = event.payload["pull_request"]["head"]["sha"]
    assert (pack["change"]["head"], pack["change"]["title"]) == (
        head,
        event.payload["pull_request"]["title"],
    )
    assert pack["digest"] in comment.body
    assert "tax_rate" in comment.body
    assert f"{shop.forge.url}/o/r/actions/runs/1" in comment.body
    assert done.summary.startswith("# Evidence pack")


def test_a_comment_is_edited_in_its_place(shop: Shop) -> None:
    """The same pack again leaves the comment alone; a push to the pull request edits it."""
    event = shop.pull_request()
    for _ in range(2):
        succeeded(shop.service.run(workflow(), event))
    assert shop.forge.changes() == ["POST"]
    succeeded(shop.service.run(workflow(), shop.pull_request(RENAMED)))
    assert shop.forge.changes() == ["POST", "PATCH"]
    (comment,) = shop.forge.comments
    assert "dangling" in comment.body


@pytest.mark.parametrize(
    ("when", "files", "comments"),
    [
        ("auto", {"notes.txt": "qqq\n"}, 0),
        ("always", {"notes.txt": "qqq\n"}, 1),
        ("never", TOPIC, 0),
    ],
)
def test_when_a_comment_is_made(
    shop: Shop, when: str, files: dict[str, str | bytes | None], comments: int
) -> None:
    """Auto says nothing where nothing was found, always says so, never never does."""
    event = shop.pull_request(files)
    event.payload["pull_request"]["title"] = "Note"
    done = succeeded(shop.service.run(workflow(comment=when), event))
    assert len(shop.forge.comments) == comments
    assert done.summary
    if when == "never":
        assert shop.forge.asked == []


def test_tokens_of_the_comment(shop: Shop) -> None:
    """comment-budget is what the comment may take; the pack is as long as ever."""
    done = succeeded(shop.service.run(workflow(comment_budget="200"), shop.pull_request()))
    (comment,) = shop.forge.comments
    assert estimate(comment.body) <= 200 < estimate(done.summary)


def test_without_the_permission_to_comment(shop: Shop) -> None:
    """A token that may only read costs a notice: summary and artifact are there, the job passes."""
    reading = workflow()
    reading["permissions"] = {"contents": "read"}
    done = succeeded(shop.service.run(reading, shop.pull_request()))
    assert "::notice title=coderag-ci::no comment, the pack is in the run's summary" in done.log
    assert done.outputs["comment-id"] == ""
    assert shop.forge.comments == []
    assert shop.pack()["diff"]


def test_a_head_that_moved_meanwhile(shop: Shop) -> None:
    """A slow run of an older head does not put its pack over the comment of a newer one."""
    event = shop.pull_request()
    shop.forge.head = "2" * 40
    done = succeeded(shop.service.run(workflow(), event))
    assert "head" in done.log
    assert shop.forge.changes() == []


def test_a_forge_that_refuses_or_is_busy(shop: Shop) -> None:
    """A comment that is refused costs a notice; one that a busy forge puts off comes later."""
    event = shop.pull_request()
    shop.forge.most = 100
    done = succeeded(shop.service.run(workflow(), event))
    assert "::notice title=coderag-ci::no comment" in done.log
    assert done.summary
    shop.forge.most = 65_536
    shop.forge.answer("GET", 429, {"Retry-After": "0"})
    shop.forge.answer("POST", 502, {"Retry-After": "0"})
    succeeded(shop.service.run(workflow(), event))
    assert len(shop.forge.comments) == 1


# ---- in a pull request of a fork


def test_a_fork_with_the_plain_workflow(shop: Shop) -> None:
    """A fork's run makes summary and artifact, says that it may not comment, and passes."""
    done = succeeded(shop.service.run(workflow(), shop.pull_request(fork=True)))
    assert "::notice" in done.log
    assert shop.forge.comments == []
    assert [file["path"] for file in shop.pack()["diff"]] == ["shop/tax.py"]


def read(path: str) -> dict[Any, Any]:
    """Return a workflow of this repository."""
    return dict(yaml.safe_load((ROOT / ".github" / "workflows" / path).read_text()))


PAIRS = {
    "ours": lambda: (read("coderag.yml"), read("coderag-comment.yml")),
    "documented": lambda: (
        shown("docs/forks.md", "coderag"),
        shown("docs/forks.md", "coderag comment"),
    ),
}


@pytest.fixture(params=PAIRS)
def pair(request: pytest.FixtureRequest) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Return the workflow that makes the pack of a fork, and the one that posts it."""
    return PAIRS[request.param]()


def test_a_fork_with_the_pair(shop: Shop, pair: tuple[dict[Any, Any], dict[Any, Any]]) -> None:
    """The second workflow posts what the first left, once, in the pull request of its head."""
    make, post = pair
    event = shop.pull_request(fork=True)
    succeeded(shop.service.run(make, event))
    assert shop.forge.asked == []
    succeeded(shop.service.run(post, shop.finished(event)))
    (comment,) = shop.forge.comments
    assert shop.pack()["digest"] in comment.body
    assert "tax_rate" in comment.body
    assert shop.forge.changes() == ["POST"]
    (job,) = post["jobs"].values()
    assert job["permissions"]["actions"] == "read"


def test_the_second_half_reads_pull_requests_alone(shop: Shop) -> None:
    """The end of another event's run starts no step."""
    event = shop.finished(shop.pull_request())
    event.payload["workflow_run"]["event"] = "push"
    assert shop.service.run(shown("docs/forks.md", "coderag comment"), event).steps == {}


def spoilt(shop: Shop, **values: str) -> None:
    """Change values of the change in the pack that a fork's run left."""
    pack = shop.pack()
    pack["change"].update(values)
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        archive.writestr("pack.json", json.dumps(pack))
    shop.forge.artifacts["coderag-ci"] = data.getvalue()


NOT_POSTED: list[tuple[str, Callable[[Shop], object]]] = [
    ("its head has moved, or it is closed", lambda shop: shop.forge.pulls.clear()),
    ("its head has moved", lambda shop: shop.forge.pulls[0].update(head={"sha": "2" * 40})),
    ("there are 2", lambda shop: shop.forge.pulls.append(shop.forge.pulls[0] | {"number": 8})),
    ("head", lambda shop: setattr(shop.forge, "head", "2" * 40)),  # after it was looked up
    ("left no artifact", lambda shop: shop.forge.artifacts.clear()),
    ("is refused", lambda shop: shop.forge.artifacts.update({"coderag-ci": b"PK"})),
    ("of another commit", lambda shop: spoilt(shop, head="2" * 40)),
    ("is refused", lambda shop: spoilt(shop, base="[x](https://evil.example)")),
]


def test_what_is_not_posted(shop: Shop) -> None:
    """Where it is not sure what belongs where, or the artifact is not ours, nothing is posted."""
    event = shop.pull_request(fork=True)
    succeeded(shop.service.run(shown("docs/forks.md", "coderag"), event))
    post = shown("docs/forks.md", "coderag comment")
    kept = copy.deepcopy((shop.forge.head, shop.forge.pulls, shop.forge.artifacts))
    for said, spoil in NOT_POSTED:
        shop.forge.head, shop.forge.pulls, shop.forge.artifacts = copy.deepcopy(kept)
        spoil(shop)
        done = succeeded(shop.service.run(post, shop.finished(event)))
        assert said in done.log
        assert shop.forge.changes() == []
        assert done.outputs["comment-id"] == ""
