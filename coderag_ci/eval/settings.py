"""What ``--set`` and ``--ablate`` ask for: the variants of a run."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from coderag_ci import config
from coderag_ci.config import CHANNEL_NAMES, Config
from coderag_ci.errors import UsageError
from coderag_ci.eval.run import Variant

_MOST_VARIANTS = 64


def variants_of(given: Sequence[str], base: Mapping[str, Any], ablate: bool) -> list[Variant]:
    """Return the variants, the one that the others are compared with first.

    ``given`` holds KEY=VALUE; a key that comes several times is swept, several swept keys
    are crossed. Raises UsageError.
    """
    values: dict[str, list[Any]] = {}
    for item in given:
        key, value = _read(item)
        if value not in values.setdefault(key, []):
            values[key].append(value)
    swept = [key for key, some in values.items() if len(some) > 1]
    variants = []
    for chosen in itertools.product(*values.values()):
        settings = dict(zip(values, chosen, strict=True))
        label = ", ".join(f"{key}={_text(settings[key])}" for key in swept)
        variants.append(Variant(label or "as configured", settings))
    if len(variants) > _MOST_VARIANTS:
        raise UsageError(f"{len(variants)} combinations of --set", f"at most {_MOST_VARIANTS}")
    if ablate:
        if len(variants) > 1:
            raise UsageError("--ablate and a sweep exclude each other", "give each key one value")
        variants += _ablations(variants[0], base)
    for variant in variants:
        variant.config(base)
    return variants


def _read(item: str) -> tuple[str, Any]:
    key, equals, raw = item.partition("=")
    if not equals:
        raise UsageError(f"--set {item}: expected KEY=VALUE", "for example rrf-k=10")
    known = config.keys()
    if key not in known:
        near = difflib.get_close_matches(key, known, 1)
        hint = f"did you mean {near[0]}?" if near else "coderag-ci config lists them"
        raise UsageError(f"--set {key}: unknown setting", hint)
    value: Any = raw
    if isinstance(config.value_of(Config(), key), tuple):
        value = [part for part in raw.split(",") if part]
    return key, config.convert(key, value, "--set", strict=False)


def _ablations(full: Variant, base: Mapping[str, Any]) -> list[Variant]:
    """Return the full variant without each channel, without the reranker and without the floor."""
    made = full.config(base)
    parts = {
        f"weights.{name}": f"channel:{name}"
        for name in CHANNEL_NAMES
        if config.value_of(made, f"weights.{name}")
        and (name != "dense" or made.embedding_model != "none")
    }
    parts |= {key: key for key in ("rerank", "floor") if config.value_of(made, key)}
    return [Variant(f"without {what}", {**full.settings, key: 0}) for key, what in parts.items()]


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)
