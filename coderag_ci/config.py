"""What can be configured, where each value came from, and errors that name key and line.

Precedence: flags, then ``CODERAG_*`` of the environment, then the file, then the default.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from coderag_ci import weights
from coderag_ci.errors import UsageError

FILE_NAME = ".coderag.yml"
MAX_BYTES = 1 << 16
_OTHERS = ("config", "index-dir", "models", "work", "version", "comment")  # no settings of a pack
_DEEPEST = 16  # levels of brackets; PyYAML takes minutes over thousands

Weight = Annotated[float, Meta(ge=0, le=1000)]


class Bm25(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Parameters of the lexical model (Robertson and Zaragoza, 2009)."""

    k1: Annotated[float, Meta(ge=0, le=10)] = 1.2
    b: Annotated[float, Meta(ge=0, le=1)] = 0.75
    epsilon: Annotated[float, Meta(gt=0, lt=1)] = 0.25


class Paths(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Rules in gitignore syntax that add to (or, with ``!``, take from) the built-in ones."""

    test: tuple[str, ...] = ()
    generated: tuple[str, ...] = ()
    vendored: tuple[str, ...] = ()


class Channels(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Weight of each recall channel in the fusion; 0 switches a channel off."""

    subject: Weight = weights.CHANNELS["subject"]
    uses: Weight = weights.CHANNELS["uses"]
    gone: Weight = weights.CHANNELS["gone"]
    co_changed_lines: Weight = weights.CHANNELS["co-changed-lines"]
    diff: Weight = weights.CHANNELS["diff"]
    co_change: Weight = weights.CHANNELS["co-change"]
    deleted: Weight = weights.CHANNELS["deleted"]
    defines: Weight = weights.CHANNELS["defines"]
    kept: Weight = weights.CHANNELS["kept"]
    changed: Weight = weights.CHANNELS["changed"]
    new: Weight = weights.CHANNELS["new"]
    test: Weight = weights.CHANNELS["test"]
    dense: Weight = weights.CHANNELS["dense"]


CHANNEL_NAMES = Channels.__struct_encode_fields__


class Config(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """Everything that decides what a pack holds."""

    budget: Annotated[int, Meta(ge=1, le=1_000_000)] = 8000
    diff_share: Annotated[float, Meta(gt=0, lt=1)] = 0.5
    chunk_size: Annotated[int, Meta(ge=100, le=100_000)] = 1500
    top_k: Annotated[int, Meta(ge=1, le=500)] = 40
    recall: Annotated[int, Meta(ge=1, le=10_000)] = 1000
    rrf_k: Annotated[float, Meta(gt=0, le=1000)] = 60
    weights: Channels = Channels()
    floor: Annotated[float, Meta(ge=0, le=1)] = 0.2
    rerank: Annotated[int, Meta(ge=0, le=500)] = 50
    rerank_weight: Weight = 0.5
    rerank_model: str = "heuristic"
    embedding_model: str = "none"
    query_prefix: str = ""
    passage_prefix: str = ""
    tokenizer: str = "estimate"
    bm25: Bm25 = Bm25()
    exclude: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    paths: Paths = Paths()
    deadline: Annotated[float, Meta(ge=0, le=86_400)] = 0


class Resolved(msgspec.Struct, frozen=True):
    """A config and, for each dotted key, where its value came from."""

    config: Config
    sources: dict[str, str]


def resolve(
    text: str | None,
    file_label: str,
    environment: Mapping[str, str],
    flags: Mapping[str, Any],
) -> Resolved:
    """Merge the layers. ``flags`` holds dotted keys with values that are not None.

    Raises UsageError for an unknown key or a value of the wrong type, naming the key,
    the line and what was expected.
    """
    values: dict[str, Any] = {}
    sources = dict.fromkeys(keys(), "default")
    layers = [
        (_from_yaml(text, file_label) if text else {}, file_label),
        (_from_environment(environment), "environment"),
        (dict(flags), "flag"),
    ]
    for layer, label in layers:
        for key, value in layer.items():
            values[key] = value
            sources[key] = label
    nested: dict[str, Any] = {}
    for key, value in values.items():
        outer, _, inner = key.partition(".")
        if inner:
            nested.setdefault(outer, {})[inner] = value
        else:
            nested[outer] = value
    config = msgspec.convert(nested, Config)
    _check_languages(config, sources["languages"])
    return Resolved(config, sources)


def keys() -> list[str]:
    """Every dotted key, in the order of the file."""
    found = []
    for field in msgspec.structs.fields(Config):
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            inner = msgspec.structs.fields(field.type)
            found += [f"{field.encode_name}.{sub.encode_name}" for sub in inner]
        else:
            found.append(field.encode_name)
    return found


def weights_of(config: Config) -> dict[str, float]:
    """Return the weight of each channel by name."""
    return {name: getattr(config.weights, name.replace("-", "_")) for name in CHANNEL_NAMES}


def value_of(config: Config, key: str) -> Any:
    """Return the value at a dotted key."""
    value: Any = config
    for part in key.split("."):
        value = getattr(value, part.replace("-", "_"))
    return value


def convert(key: str, value: Any, where: str, *, strict: bool = True) -> Any:
    """Check one value against the type of its key; raises UsageError."""
    holder: Any = Config
    name = key
    if "." in key:
        outer, _, name = key.partition(".")
        holder = _field(Config, outer).type
    try:
        parts = value if isinstance(value, list) else [value]
        "".join(map(str, parts)).encode("utf-8")
        return msgspec.convert(value, _field(holder, name).type, strict=strict)
    except UnicodeEncodeError as error:
        raise UsageError(f"{where}: {key}: not valid Unicode", _hint(key)) from error
    except msgspec.ValidationError as error:
        reason = str(error)[0].lower() + str(error)[1:].replace("`", "")
        raise UsageError(f"{where}: {key}: {reason}", _hint(key)) from error


def _field(holder: Any, name: str) -> Any:
    return next(f for f in msgspec.structs.fields(holder) if f.encode_name == name)


def _hint(key: str) -> str:
    default = value_of(Config(), key)
    return f"the default is {list(default) if isinstance(default, tuple) else default!r}"


def unknown(environment: Mapping[str, str]) -> list[str]:
    """Say of each ``CODERAG_*`` variable that is none of ours that it does nothing."""
    import difflib

    known = [_variable(key) for key in (*keys(), *_OTHERS)]
    told = []
    for name in sorted(environment):
        if name.startswith("CODERAG_") and name not in known:
            near = difflib.get_close_matches(name, known, 1)
            told.append(f"{name} is no setting" + (f"; did you mean {near[0]}?" if near else ""))
    return told


def _variable(key: str) -> str:
    return "CODERAG_" + key.upper().replace("-", "_").replace(".", "_")


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    found = {}
    for key in keys():
        name = _variable(key)
        if raw := environment.get(name, ""):
            default = value_of(Config(), key)
            value: Any = raw
            if isinstance(default, tuple):
                value = [part for part in raw.split("\n") if part.strip()]
            found[key] = convert(key, value, name, strict=False)
    return found


def _from_yaml(text: str, label: str) -> dict[str, Any]:
    """Read the file into dotted keys; every complaint names the line."""
    import yaml

    if len(text) > MAX_BYTES:
        raise UsageError(f"{label} is larger than 64 KiB", "keep only settings in it")
    try:
        _check_events(yaml.parse(text, Loader=yaml.SafeLoader), label)
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise UsageError(f"{label}, line {line}: not valid YAML: {error.reason}") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{label}, line {mark.line + 1}" if mark else label
        problem = getattr(error, "problem", None) or "it can not be read"
        raise UsageError(f"{where}: not valid YAML: {problem}", "mend the file") from error
    if root is None or root.tag == "tag:yaml.org,2002:null":
        return {}
    found: dict[str, Any] = {}
    _read_mapping(root, "", set(keys()), label, found)
    return found


def _check_events(events: Iterable[Any], label: str) -> None:
    """Refuse what could make a small file large or slow: aliases and deep nesting."""
    import yaml

    depth = 0
    for event in events:
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        where = f"{label}, line {event.start_mark.line + 1}"
        if isinstance(event, yaml.AliasEvent):
            raise UsageError(f"{where}: aliases are not read", "write the value out")
        if depth > _DEEPEST:
            raise UsageError(f"{where}: nested too deeply", "no setting needs that")


def _read_mapping(
    node: Any, prefix: str, known: set[str], label: str, found: dict[str, Any]
) -> None:
    import difflib

    import yaml

    if not isinstance(node, yaml.MappingNode):
        where = f"{label}, line {node.start_mark.line + 1}"
        raise UsageError(f"{where}: {prefix.rstrip('.') or 'the file'}: expected a mapping")
    seen = set()
    for key_node, value_node in node.value:
        key = f"{prefix}{getattr(key_node, 'value', '')}"
        where = f"{label}, line {key_node.start_mark.line + 1}"
        if key in seen or key in found:
            raise UsageError(f"{where}: {key}: given twice", "keep one")
        seen.add(key)
        if any(name.startswith(key + ".") for name in known):
            _read_mapping(value_node, key + ".", known, label, found)
        elif key in known:
            try:
                value = yaml.SafeLoader("").construct_document(value_node)
            except Exception as error:  # a wrong tag or date raises anything
                raise UsageError(f"{where}: {key}: not a value", _hint(key)) from error
            found[key] = convert(key, value, where)
        else:
            near = difflib.get_close_matches(key, known, 1)
            hint = f"did you mean {near[0]}?" if near else "coderag-ci config lists the keys"
            raise UsageError(f"{where}: unknown key: {key}", hint)


def _check_languages(config: Config, source: str) -> None:
    from coderag_ci.parse.languages import BY_NAME

    for name in config.languages:
        if name not in BY_NAME:
            raise UsageError(
                f"{source}: languages: unknown language: {name}",
                "known: " + ", ".join(sorted(BY_NAME)),
            )
