"""Settings: what is refused and how, which source wins, and whose config CI believes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from coderag_ci.config import CHANNEL_NAMES, Config, keys, resolve, value_of
from coderag_ci.errors import EXIT_OK, EXIT_SETUP, EXIT_USAGE, UsageError
from tests.conftest import Command
from tests.repository import Repository

FILE = ".coderag.yml"


def read(text: str | None, env: dict[str, str] | None = None, **flags: object) -> Config:
    """Resolve a file's text, an environment and flags to a config."""
    return resolve(text, FILE, env or {}, flags).config


def refused(text: str) -> UsageError:
    """Return the complaint about a file."""
    with pytest.raises(UsageError) as caught:
        read(text)
    return caught.value


def shown(out: str) -> dict[str, tuple[str, str]]:
    """Read what ``coderag-ci config`` prints: key to (value, source)."""
    lines = re.findall(r"^(\S+) +(.*?)  \((.*)\)$", out, re.MULTILINE)
    return {key: (value, source) for key, value, source in lines}


# ---- what is refused


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("a: 1\n", ", line 1: unknown key: a", "coderag-ci config lists the keys"),
        ("top-k: 3\nbudgte: 10\n", ", line 2: unknown key: budgte", "did you mean budget?"),
        ("top_k: 3\n", ", line 1: unknown key: top_k", "did you mean top-k?"),
        ("weights:\n  use: 1\n", ", line 2: unknown key: weights.use", "weights.uses?"),
        ("paths:\n  tests: [x]\n", ", line 2: unknown key: paths.tests", "paths.test?"),
        ("1: 2\n", ", line 1: unknown key: 1", ""),
        ("[a]: 2\n", ", line 1: unknown key", ""),
        ("budget: many\n", ", line 1: budget: expected int, got str", "the default is 8000"),
        ("\n\nbudget: 1.5\n", ", line 3: budget: expected int, got float", "8000"),
        ("budget: yes\n", ", line 1: budget: expected int, got bool", "8000"),
        ("budget:\n", ", line 1: budget: expected int, got null", "8000"),
        ("budget: [1]\n", ", line 1: budget: expected int, got array", "8000"),
        ("budget: 0\n", ", line 1: budget: expected int >= 1", "8000"),
        ("budget: 1000001\n", ", line 1: budget: expected int <= 1000000", "8000"),
        ("top-k: 0\n", ", line 1: top-k: expected int >= 1", "40"),
        ("diff-share: 1\n", ", line 1: diff-share: expected float < 1", "0.5"),
        ("deadline: .nan\n", ", line 1: deadline: expected float", "0"),
        ("weights:\n  uses: -1\n", ", line 2: weights.uses: expected float >= 0", "1.75"),
        ("weights:\n  uses: .inf\n", ", line 2: weights.uses: expected float <= 1000", ""),
        ("weights: 3\n", ", line 1: weights: expected a mapping", ""),
        ("weights: [3]\n", ", line 1: weights: expected a mapping", ""),
        ("bm25:\n  b: 2\n", ", line 2: bm25.b: expected float <= 1", "0.75"),
        ("exclude: docs\n", ", line 1: exclude: expected array, got str", "the default is []"),
        ("exclude: [1]\n", ", line 1: exclude: expected str, got int", ""),
        ("exclude:\n  a: b\n", ", line 1: exclude: expected array", ""),
        ("rerank-model: 3\n", ", line 1: rerank-model: expected str, got int", "heuristic"),
        ("rerank-model: 2001-99-99\n", ", line 1: rerank-model", "heuristic"),
        ("rerank-model: 2001-12-31\n", ", line 1: rerank-model: expected str", "heuristic"),
        ("budget: !!int x\n", ", line 1: budget", "8000"),
        ("budget: !!int ''\n", ", line 1: budget", "8000"),
        ("budget: !!bool x\n", ", line 1: budget", "8000"),
        ("budget: !!timestamp x\n", ", line 1: budget", "8000"),
        ("budget: !!python/object/apply:os.getpid []\n", ", line 1: budget", "8000"),
        ("budget: !mine 3\n", ", line 1: budget", "8000"),
        ("exclude: [{[1]: 2}]\n", ", line 1: exclude", ""),
        ("budget: 1\ntop-k: 2\nbudget: 3\n", ", line 3: budget: given twice", "keep one"),
        ("paths:\n  test: []\n  test: []\n", ", line 3: paths.test: given twice", ""),
        ("weights: {uses: 1}\nweights.uses: 2\n", ", line 2: weights.uses: given twice", ""),
        ("weights.uses: 1\nweights: {uses: 2}\n", ", line 2: weights.uses: given twice", ""),
        ("paths: {}\npaths: {}\n", ", line 2: paths: given twice", ""),
        ("a: &x 1\nbudget: *x\n", ", line 2: aliases are not read", "write the value out"),
        ("budget: 1\n  top-k: 2\n", ", line 2: not valid YAML", "mend the file"),
        ("budget: [1\n", "not valid YAML", "mend the file"),
        ("budget: 'x\n", "not valid YAML", "mend the file"),
        ("\tbudget: 1\n", ", line 1: not valid YAML", ""),
        ("budget: 1\n---\nbudget: 2\n", ", line 2: not valid YAML", ""),
        ("budget: 1\n# \x07\n", ", line 2: not valid YAML: special characters", ""),
        ("budget: 1\nexclude: " + "[" * 20_000, ", line 2: nested too deeply", ""),
        ("exclude: " + "{a: " * 10_000, ", line 1: nested too deeply", ""),
        ("- budget\n", ", line 1: the file: expected a mapping", ""),
        ("\njust text\n", ", line 2: the file: expected a mapping", ""),
        ("#" * 70_000, "is larger than 64 KiB", "keep only settings"),
        ("languages: [pyhton]\n", ": languages: unknown language: pyhton", "python"),
    ],
)
def test_a_mistake_names_file_line_key_and_what_was_expected(
    text: str, message: str, hint: str
) -> None:
    """Whoever wrote the file finds the place and what belongs there, without a traceback."""
    error = refused(text)
    assert error.message.startswith(FILE)
    assert message in error.message
    assert "\n" not in error.message
    assert hint in error.hint


@pytest.mark.parametrize("text", [None, "", "\n", "# nothing\n", "---\n", "{}\n", "\ufeff# bom\n"])
def test_an_empty_file_is_the_default(text: str | None) -> None:
    """A file whose settings are all commented out changes nothing."""
    assert read(text) == Config()


def test_every_key_can_be_written_in_the_file() -> None:
    """What ``coderag-ci config`` lists can be written back as it stands."""
    nested: dict[str, object] = {}
    for key in keys():
        outer, _, inner = key.partition(".")
        value = value_of(Config(), key)
        value = list(value) if isinstance(value, tuple) else value
        if inner:
            group = nested.setdefault(outer, {})
            assert isinstance(group, dict)
            group[inner] = value
        else:
            nested[outer] = value
    found = resolve(json.dumps(nested, indent=1), FILE, {}, {})
    assert found.config == Config()
    assert set(found.sources.values()) == {FILE}


def test_values_of_the_file_take_effect() -> None:
    """Numbers, names, lists and nested settings are read, a byte order mark is no obstacle."""
    config = read(
        "\ufeffbudget: 123\nweights:\n  uses: 2\nexclude:\n- docs/\n- '*.sql'\n"
        "paths: {test: [checks/]}\nrerank-model: none\nlanguages: [python, go]\n"
    )
    assert (config.budget, config.weights.uses, config.weights.new) == (123, 2.0, 0.5)
    assert config.exclude == ("docs/", "*.sql")
    assert config.paths.test == ("checks/",)
    assert (config.rerank_model, config.languages) == ("none", ("python", "go"))


# ---- which source wins


def test_flags_beat_environment_beat_file_beat_default() -> None:
    """The nearer a setting is to the command, the more it counts, and the source is known."""
    text = "budget: 1\ntop-k: 1\nrecall: 1\nweights:\n  uses: 3\n  diff: 3\n"
    env = {"CODERAG_BUDGET": "2", "CODERAG_TOP_K": "2", "CODERAG_WEIGHTS_USES": "2"}
    found = resolve(text, FILE, env, {"budget": 3})
    config, sources = found.config, found.sources
    assert (config.budget, sources["budget"]) == (3, "flag")
    assert (config.top_k, sources["top-k"]) == (2, "environment")
    assert (config.recall, sources["recall"]) == (1, FILE)
    assert (config.rerank, sources["rerank"]) == (50, "default")
    assert (config.weights.uses, sources["weights.uses"]) == (2, "environment")
    assert (config.weights.diff, sources["weights.diff"]) == (3, FILE)
    assert (config.weights.new, sources["weights.new"]) == (0.5, "default")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("CODERAG_BUDGET", "many", "CODERAG_BUDGET: budget: expected int, got str"),
        ("CODERAG_BUDGET", "0", "CODERAG_BUDGET: budget: expected int >= 1"),
        ("CODERAG_BUDGET", "1.5", "CODERAG_BUDGET: budget: expected int"),
        ("CODERAG_DEADLINE", "nan", "CODERAG_DEADLINE: deadline: expected float"),
        ("CODERAG_WEIGHTS_USES", "-1", "CODERAG_WEIGHTS_USES: weights.uses: expected float >= 0"),
        ("CODERAG_LANGUAGES", "elvish", "environment: languages: unknown language: elvish"),
        ("CODERAG_EXCLUDE", "a\n\udcff", "CODERAG_EXCLUDE: exclude: not valid Unicode"),
    ],
)
def test_a_mistake_in_the_environment_names_the_variable(
    name: str, value: str, message: str
) -> None:
    """A job with a wrong variable is told which one."""
    with pytest.raises(UsageError) as caught:
        read(None, {name: value})
    assert caught.value.message.startswith(message)


def test_lists_of_the_environment_are_lines() -> None:
    """Several patterns fit in one variable; an empty variable is one that is not set."""
    env = {"CODERAG_EXCLUDE": "docs/\n\n*.sql\n", "CODERAG_BUDGET": "", "CODERAG_OTHER": "x"}
    config = read("budget: 5\n", env)
    assert (config.exclude, config.budget) == (("docs/", "*.sql"), 5)


def test_the_config_command_shows_value_and_source(
    repository: Repository, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One sees what is in force and why."""
    repository.commit({FILE: "budget: 123\nexclude: [docs/]\n"})
    monkeypatch.setenv("CODERAG_TOP_K", "7")
    result = command("config", cwd=repository.path)
    assert (result.code, result.err) == (EXIT_OK, "")
    found = shown(result.out)
    assert list(found) == keys()
    assert found["budget"] == ("123", FILE)
    assert found["exclude"] == ('["docs/"]', FILE)
    assert found["top-k"] == ("7", "environment")
    assert found["rerank"] == ("50", "default")
    assert f"index-dir{' ' * 8}" in result.out


def test_the_flags_of_context_reach_the_pack(repository: Repository, command: Command) -> None:
    """Each flag sets its key, over the file, and the pack says with what it was made."""
    repository.commit({FILE: "budget: 123\nrerank: 3\n", "a.py": "x = 1\n"})
    repository.commit({"a.py": "x = 2\n"})
    result = command(
        "context", "--base", "HEAD~1", "--format", "json", "--budget", "900", "--top-k", "5",
        "--recall", "6", "--deadline", "60", "--weight", "uses=0.25", "--no-channel", "diff",
        "--channel", "deleted", cwd=repository.path,
    )  # fmt: skip
    assert json.loads(result.out)["settings"] == {
        "budget": "900",
        "top-k": "5",
        "recall": "6",
        "rerank": "3",
        "deadline": "60.0",
        "weights.uses": "0.25",
        "weights.diff": "0.0",
    }


def test_a_channel_that_the_file_switched_off_can_be_switched_on() -> None:
    """Every channel has a default weight that is not zero to come back to."""
    assert all(value_of(Config(), f"weights.{name}") > 0 for name in CHANNEL_NAMES)


# ---- which file


def changed_config(repository: Repository) -> None:
    """Make a branch that changes the config, and then edit it once more."""
    repository.commit({FILE: "budget: 111\n", "a.py": "x = 1\n"})
    repository.git("checkout", "-q", "-b", "topic")
    repository.commit({FILE: "budget: 222\n", "a.py": "x = 2\n"})
    repository.write({FILE: "budget: 333\n"})


def test_ci_takes_the_config_of_the_base(
    repository: Repository, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In CI a change can not loosen the settings that it is judged by."""
    changed_config(repository)
    base = repository.git("rev-parse", "main")
    monkeypatch.setenv("CI", "true")
    pack = json.loads(command("context", "--format", "json", cwd=repository.path).out)
    assert pack["budget"]["total"] == 111
    found = shown(command("config", cwd=repository.path).out)
    assert found["budget"] == ("111", f"{FILE} of {base[:12]}")
    found = shown(command("config", "--base", "topic", cwd=repository.path).out)
    assert found["budget"][0] == "222"


def test_a_laptop_takes_the_config_of_the_working_tree(
    repository: Repository, command: Command
) -> None:
    """Locally the settings are those one has just written."""
    changed_config(repository)
    pack = json.loads(command("context", "--format", "json", cwd=repository.path).out)
    assert pack["budget"]["total"] == 333
    assert shown(command("config", cwd=repository.path).out)["budget"] == ("333", FILE)


def test_a_config_that_only_the_change_brings_does_not_count_in_ci(
    repository: Repository, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A first .coderag.yml, even a broken one, is not read from the change in CI."""
    repository.commit({"a.py": "x = 1\n"})
    repository.commit({FILE: "[broken", "a.py": "x = 2\n"})
    monkeypatch.setenv("CI", "1")
    result = command("context", "--base", "HEAD~1", "--format", "json", cwd=repository.path)
    assert (result.code, json.loads(result.out)["budget"]["total"]) == (EXIT_OK, 8000)


def test_a_broken_config_of_the_base_is_named(
    repository: Repository, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In CI the message says that it is the base's file, and at which commit."""
    base = repository.commit({FILE: "budget: 0\n"})
    repository.commit({FILE: "budget: 5\n"})
    monkeypatch.setenv("CI", "true")
    result = command("context", "--base", "HEAD~1", cwd=repository.path)
    assert result.code == EXIT_USAGE
    assert f"{FILE} of {base[:12]}, line 1: budget: expected int >= 1" in result.err


def test_a_huge_config_of_the_base_is_refused(
    repository: Repository, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings that are too large to read are not silently left out."""
    repository.commit({FILE: "budget: 5\n" + "#" * (1 << 20)})
    repository.commit({"a.py": "x = 1\n"})
    for ci, code, message in [
        ("", EXIT_USAGE, ".coderag.yml is larger than 64 KiB"),
        ("true", EXIT_SETUP, "can not be read: it is larger than 1 MiB"),
    ]:
        monkeypatch.setenv("CI", ci)
        result = command("context", "--base", "HEAD~1", cwd=repository.path)
        assert (result.code, result.out) == (code, "")
        assert message in result.err


def test_a_bare_repository_takes_the_config_of_the_base(
    repository: Repository, command: Command, tmp_path: Path
) -> None:
    """Without a working tree the settings are those of the base commit."""
    changed_config(repository)
    repository.git("clone", "-q", "--bare", ".", "../bare.git")
    result = command(
        "context", "--base", "main", "--head", "topic", "--format", "json",
        cwd=tmp_path / "bare.git",
    )  # fmt: skip
    assert json.loads(result.out)["budget"]["total"] == 111


@pytest.mark.parametrize("ci", ["", "true"])
def test_a_link_is_not_followed(
    repository: Repository,
    command: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ci: str,
) -> None:
    """A .coderag.yml that is a link reads no file of the machine, and none of it is echoed."""
    secret = tmp_path / "secret"
    secret.write_text("password: hunter2\n")
    (repository.path / FILE).symlink_to(secret)
    repository.commit({"a.py": "x = 1\n"})
    monkeypatch.setenv("CI", ci)
    result = command("config", cwd=repository.path)
    assert result.code == EXIT_OK
    assert shown(result.out)["budget"] == ("8000", "default")
    assert "password" not in result.out + result.err


def test_a_named_file_is_read_wherever_it_lies(
    repository: Repository, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``--config`` beats the variable, and both beat .coderag.yml, in CI too."""
    repository.commit({FILE: "budget: 1\n"})
    (tmp_path / "two.yml").write_text("budget: 2\n")
    (tmp_path / "three.yml").write_text("budget: 3\n")
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("CODERAG_CONFIG", str(tmp_path / "two.yml"))
    found = shown(command("config", cwd=repository.path).out)
    assert found["budget"] == ("2", str(tmp_path / "two.yml"))
    flag = str(tmp_path / "three.yml")
    assert shown(command("config", "--config", flag, cwd=repository.path).out)["budget"][0] == "3"


@pytest.mark.parametrize("subcommand", ["context", "index", "config"])
def test_a_named_file_that_is_missing_is_an_error(
    repository: Repository, command: Command, subcommand: str
) -> None:
    """A misspelt --config does not fall back to the defaults in silence."""
    repository.commit({"a.py": "x = 1\n"})
    result = command(subcommand, "--config", "missing.yml", cwd=repository.path)
    assert (result.code, result.out) == (EXIT_SETUP, "")
    assert "missing.yml: No such file or directory" in result.err


def test_the_index_directory_may_come_from_the_environment(
    repository: Repository, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cache folder of the job is used where CODERAG_INDEX_DIR names one; a flag beats it."""
    repository.commit({"a.py": "x = 1\n"})
    assert f"{repository.path}/.git/coderag-ci" in command("config", cwd=repository.path).out
    monkeypatch.setenv("CODERAG_INDEX_DIR", str(tmp_path / "cache"))
    assert str(tmp_path / "cache") in command("config", cwd=repository.path).out
    result = command("config", "--index-dir", "there", cwd=repository.path)
    assert str(repository.path / "there") in result.out


# ---- settings that choose files


def test_excluded_files_and_languages_are_not_searched(
    repository: Repository, command: Command
) -> None:
    """What the config leaves out is no evidence, and the pack counts it."""
    use = "from shapes import area\n\n\ndef {}(x):\n    return area(x, 2)\n"
    repository.commit({
        FILE: "exclude: [legacy/]\nlanguages: [python]\n",
        "shapes.py": "def area(a, b):\n    return a * b\n",
        "legacy/old.py": use.format("old_cost"),
        "src/cost.py": use.format("cost"),
        "page.js": "function page(x) {\n  return area(x, 2);\n}\n",
    })  # fmt: skip
    repository.commit({"shapes.py": "def area(a, b):\n    return a + b\n"})
    pack = json.loads(
        command("context", "--base", "HEAD~1", "--format", "json", cwd=repository.path).out
    )
    assert {piece["path"] for piece in pack["evidence"]} == {"src/cost.py"}
    left_out = pack["index"]["left_out"]
    assert left_out["excluded by config"] == 1
    assert left_out["language not configured"] >= 1


def test_a_pattern_that_is_none_is_refused(repository: Repository, command: Command) -> None:
    """A gitignore pattern that git itself would reject is named."""
    repository.commit({FILE: "exclude: ['!']\n", "a.py": "x = 1\n"})
    result = command("context", "--base", "HEAD", cwd=repository.path)
    assert result.code == EXIT_USAGE
    assert "not a gitignore pattern" in result.err


@pytest.mark.parametrize("key", ["embedding-model", "rerank-model", "tokenizer"])
def test_ci_takes_no_model_out_of_the_change(
    repository: Repository, command: Command, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    """A change could bring a folder with the name of the model that the base asks for."""
    name = "org/model.json"
    repository.commit({FILE: f"{key}: {name}\n"})
    repository.commit({name if key == "tokenizer" else f"{name}/model.onnx": "evil"})
    monkeypatch.setenv("CI", "true")
    done = command("context", "--base", "HEAD~1", cwd=repository.path)
    assert done.code == EXIT_USAGE
    assert f"{key}: {name} ({FILE} of " in done.err
    assert "is in the work tree" in done.err
    repository.commit({FILE: None})
    repository.commit({"none/a": "x", "heuristic/a": "x", "estimate/a": "x"})
    assert command("context", "--base", "HEAD~1", cwd=repository.path).code == EXIT_OK
