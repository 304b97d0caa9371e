"""Runs workflows and actions for real, step by step, as GitHub's runner does.

Shell steps are executed by bash, with the environment, the files and the conditions that GitHub
gives them. What stands in for others: ``uv`` is a script that links the installed command where
uv would make an environment and install the action into it; checkout, the cache and the upload of
artifacts are small equivalents that keep to what we lean on of theirs. An action, an option or an
expression that is not known here fails the test.
"""

from __future__ import annotations

import io
import json
import os
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.expressions import filled, value
from tests.forge import REPOSITORY, Forge

ROOT = Path(__file__).resolve().parent.parent
OURS = {
    "./": ROOT,
    "./comment": ROOT / "comment",
    "OWNER/coderag-ci@v0": ROOT,
    "OWNER/coderag-ci/comment@v0": ROOT / "comment",
}
_UV = """\
#!/bin/sh
echo "$*" >> {log}
case "$1" in
  venv) mkdir -p venv/bin ;;
  pip) ln -s {command} venv/bin/coderag-ci ;;
  *) exit 1 ;;
esac
"""


class Event(NamedTuple):
    """What starts a run. ``fork``: its token may read alone, whatever the workflow says."""

    name: str
    payload: dict[str, Any]
    sha: str
    ref: str
    fork: bool = False


class Outcome(NamedTuple):
    """What a run came to. ``code``: of the step that failed, else 0; ``steps``: by name."""

    code: int
    log: str
    summary: str
    steps: dict[str, str]
    outputs: dict[str, str]


class Service:
    """What runs the workflows of a repository, and what it keeps between runs."""

    def __init__(self, folder: Path, remote: Path, forge: Forge) -> None:
        self.folder = folder
        self.remote = remote
        self.forge = forge
        self.caches: dict[str, bytes] = {}
        self.runs = 0

    def run(self, workflow: Mapping[Any, Any], event: Event) -> Outcome:
        """Run the one job of a workflow, which has to listen to the event.

        The token can do what the workflow and the event allow, and no log may show it.
        """
        assert _listens(workflow, event), f"the workflow does not listen to {event.name}"
        self.runs += 1
        (job,) = workflow["jobs"].values()
        rights = job.get("permissions", workflow["permissions"])
        self.forge.writable = rights.get("pull-requests") == "write" and not event.fork
        done = Job(self, event).run(job)
        assert self.forge.token not in done.log + done.summary
        return done


class Job:
    """One run on a machine of its own."""

    def __init__(self, service: Service, event: Event) -> None:
        self.service = service
        self.number = service.runs
        self.folder = service.folder / f"run-{self.number}"
        self.workspace = self.folder / "work"
        self.temp = self.folder / "temp"
        for folder in (self.workspace, self.temp, self.folder / "home"):
            folder.mkdir(parents=True)
        self.event = event
        self.github: dict[str, Any] = {
            "event": event.payload,
            "event_name": event.name,
            "sha": event.sha,
            "ref": event.ref,
            "token": service.forge.token,
            "repository": REPOSITORY,
            "server_url": service.forge.url,
            "run_id": str(self.number),
        }
        self.installs = self.folder / "uv.log"
        self.path: list[str] = ["/usr/local/bin", "/usr/bin", "/bin"]
        self.variables: dict[str, str] = {}
        self.code = 0
        self.log = ""
        self.summary = ""
        self.steps: dict[str, str] = {}

    def run(self, job: Mapping[str, Any]) -> Outcome:
        """Run a job's steps."""
        contexts = {"github": self.github, "runner": {"temp": str(self.temp)}}
        outputs: dict[str, str] = {}
        if value(job.get("if", "'true'"), contexts):
            steps = self._run_all(job["steps"], contexts)
            outputs = {name: text for done in steps.values() for name, text in done.items()}
        return Outcome(self.code, self.log, self.summary, self.steps, outputs)

    def _run_all(
        self, steps: Sequence[Mapping[str, Any]], contexts: Mapping[str, Any]
    ) -> dict[str, dict[str, str]]:
        """Run steps one after the other; returns their outputs by id."""
        done: dict[str, Any] = {}
        for step in steps:
            inside = {**contexts, "steps": done}
            name = step.get("name") or step.get("uses") or step["run"]
            identity = step.get("id", name)
            if self.code or not value(step.get("if", "'true'"), inside):
                self.steps[name] = "skipped"
                done[identity] = {"outputs": _Empty()}
                continue
            before = self.code
            found = self._script(step, inside) if "run" in step else self._action(step, inside)
            self.steps[name] = "success" if self.code == before else "failure"
            done[identity] = {"outputs": found or _Empty()}
        return {name: step["outputs"] for name, step in done.items()}

    def _script(self, step: Mapping[str, Any], contexts: Mapping[str, Any]) -> dict[str, str]:
        """Execute a shell step; returns its outputs."""
        assert step.get("shell", "bash") == "bash"
        _known(step, {"name", "id", "if", "shell", "env", "run"})
        files = {
            name: self.folder / f"{name}-{len(self.steps)}"
            for name in ("OUTPUT", "ENV", "PATH", "STEP_SUMMARY")
        }
        for file in files.values():
            file.touch()
        own = {name: filled(text, contexts) for name, text in step.get("env", {}).items()}
        environment = {
            **self._environment(contexts["github"]),
            **{f"GITHUB_{name}": str(file) for name, file in files.items()},
            **own,
        }
        script = self.folder / f"step-{len(self.steps)}.sh"
        script.write_text(filled(step["run"], contexts))
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", script],
            cwd=self.workspace,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        self.code = done.returncode
        self.log += done.stdout.decode("utf-8", "backslashreplace")
        self.summary += files["STEP_SUMMARY"].read_text()
        self.variables.update(_assigned(files["ENV"].read_text()))
        self.path[:0] = files["PATH"].read_text().split()
        return _assigned(files["OUTPUT"].read_text())

    def _environment(self, github: Mapping[str, Any]) -> dict[str, str]:
        """Return what every step finds in its environment; nothing of ours leaks into it."""
        event = self.folder / "event.json"
        event.write_text(json.dumps(self.event.payload))
        pull = self.event.payload.get("pull_request", {})
        names = ("sha", "ref", "run_id", "action_path")
        forge = self.service.forge.environment()
        del forge["GITHUB_TOKEN"]  # a step that wants it has to say so
        return {
            "CI": "true",
            **forge,
            **{f"GITHUB_{name.upper()}": github[name] for name in names if name in github},
            "GITHUB_EVENT_NAME": self.event.name,
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_BASE_REF": pull.get("base", {}).get("ref", ""),
            "GITHUB_HEAD_REF": pull.get("head", {}).get("ref", ""),
            "GITHUB_WORKSPACE": str(self.workspace),
            "RUNNER_TEMP": str(self.temp),
            "HOME": str(self.folder / "home"),
            "HF_HUB_OFFLINE": "1",
            "PATH": os.pathsep.join(self.path),
            **self.variables,
        }

    def _action(self, step: Mapping[str, Any], contexts: Mapping[str, Any]) -> dict[str, str]:
        """Run an action: one of ours as its file says, another by what stands in for it."""
        _known(step, {"name", "id", "if", "uses", "with"})
        given = {name: filled(text, contexts) for name, text in step.get("with", {}).items()}
        if step["uses"] in OURS:
            return self._composite(OURS[step["uses"]], given)
        name = step["uses"].partition("@")[0]
        assert name in STAND_INS, f"{name}: nothing stands in for it"
        STAND_INS[name](self, given)
        return {}

    def _composite(self, folder: Path, given: Mapping[str, str]) -> dict[str, str]:
        """Run the steps of an action of ours; returns its outputs."""
        action = yaml.safe_load((folder / "action.yml").read_text())
        defaults = {name: one.get("default", "") for name, one in action["inputs"].items()}
        _known(given, set(defaults))
        contexts = {
            "github": {**self.github, "action_path": str(folder)},
            "runner": {"temp": str(self.temp)},
            "inputs": {**defaults, **given},
        }
        done = self._run_all(action["runs"]["steps"], contexts)
        contexts["steps"] = {name: {"outputs": outputs} for name, outputs in done.items()}
        if self.code:
            return {}
        return {name: filled(one["value"], contexts) for name, one in action["outputs"].items()}


class _Empty(dict[str, str]):
    """The outputs of a step that did not run, or that set none: whatever is asked is empty."""

    def __contains__(self, _: object) -> bool:
        return True

    def __missing__(self, _: str) -> str:
        return ""


def _known(given: Mapping[str, Any], known: set[str]) -> None:
    assert not set(given) - known, f"not known: {sorted(set(given) - known)}"


def _listens(workflow: Mapping[Any, Any], event: Event) -> bool:
    triggers = workflow[True]  # "on", as YAML 1.1 reads it
    if not isinstance(triggers, dict):
        return event.name in triggers
    if event.name not in triggers:
        return False
    filters = triggers[event.name] or {}
    _known(filters, {"branches", "workflows", "types"})
    if event.name == "workflow_run":
        return event.payload["workflow"]["name"] in filters["workflows"]
    branches = [f"refs/heads/{name}" for name in filters.get("branches", [])]
    return not branches or event.ref in branches


def _assigned(text: str) -> dict[str, str]:
    """Read what a step wrote to one of GitHub's files: ``name=value`` lines alone."""
    found = {}
    for line in text.splitlines():
        name, sign, rest = line.partition("=")
        assert sign, f"not an assignment: {line}"
        found[name] = rest
    return found


# ---- what stands in for the actions of others


def _checkout(job: Job, given: Mapping[str, str]) -> None:
    """Clone the remote as actions/checkout does: one commit, or with fetch-depth 0 all of it."""
    _known(given, {"fetch-depth", "persist-credentials"})
    whole = given.get("fetch-depth") == "0"
    options = [] if whole else ["--depth=1", "--no-tags"]
    branches = ["+refs/heads/*:refs/remotes/origin/*"] if whole else []
    for command in (
        ["init", "-q", "."],
        ["remote", "add", "origin", f"file://{job.service.remote}"],
        ["fetch", "-q", *options, "origin", *branches, job.event.sha],
        ["checkout", "-q", "--force", "--detach", job.event.sha],
    ):
        subprocess.run(["git", *command], cwd=job.workspace, check=True, capture_output=True)


def _set_up_uv(job: Job, given: Mapping[str, str]) -> None:
    """Put a uv on the path that links the installed command."""
    _known(given, {"version", "enable-cache", "ignore-empty-workdir", "working-directory"})
    folder = job.folder / "uv"
    folder.mkdir()
    command = Path(sys.executable).with_name("coderag-ci")
    script = _UV.format(log=shlex.quote(str(job.installs)), command=shlex.quote(str(command)))
    (folder / "uv").write_text(script)
    (folder / "uv").chmod(0o755)
    job.path.insert(0, str(folder))


def _restore(job: Job, given: Mapping[str, str]) -> None:
    """Write the file that was saved under a key, else the newest whose key begins so."""
    _known(given, {"path", "key", "restore-keys"})
    caches = job.service.caches
    prefixes = given["restore-keys"].split()
    like = [key for key in reversed(caches) if any(key.startswith(prefix) for prefix in prefixes)]
    for key in (given["key"], *like):
        if key in caches:
            path = Path(given["path"])
            path.parent.mkdir(parents=True)
            path.write_bytes(caches[key])
            return


def _save(job: Job, given: Mapping[str, str]) -> None:
    """Keep a file under a key, unless the key is taken."""
    _known(given, {"path", "key"})
    job.service.caches.setdefault(given["key"], Path(given["path"]).read_bytes())


def _upload(job: Job, given: Mapping[str, str]) -> None:
    """Keep a folder as an archive; one that is empty fails, as we ask for."""
    _known(given, {"name", "path", "overwrite", "if-no-files-found"})
    files = sorted(path for path in Path(given["path"]).rglob("*") if path.is_file())
    assert files, "nothing to upload"
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in files:
            archive.write(path, path.relative_to(given["path"]))
    job.service.forge.artifacts[given["name"]] = data.getvalue()


STAND_INS: dict[str, Callable[[Job, Mapping[str, str]], None]] = {
    "actions/checkout": _checkout,
    "astral-sh/setup-uv": _set_up_uv,
    "actions/cache/restore": _restore,
    "actions/cache/save": _save,
    "actions/upload-artifact": _upload,
}
