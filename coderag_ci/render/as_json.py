"""The pack as JSON, and the JSON Schema that it follows."""

from __future__ import annotations

import importlib.resources
from typing import Any

import msgspec

from coderag_ci.errors import SetupError
from coderag_ci.pack import SCHEMA_VERSION, Pack

SCHEMA_FILE = "pack.schema.json"


def render(pack: Pack) -> str:
    """Return the pack as indented JSON with a final newline."""
    return msgspec.json.format(msgspec.json.encode(pack), indent=2).decode() + "\n"


def read(data: bytes, label: str) -> Pack:
    """Read a pack back. Raises SetupError where it is not one of this version."""
    try:
        version = msgspec.json.decode(data, type=dict[str, Any]).get("schema_version")
        if version != SCHEMA_VERSION:
            raise SetupError(
                f"{label}: schema version {version}, this coderag-ci reads {SCHEMA_VERSION}",
                "make the pack again with this version",
            )
        return msgspec.json.decode(data, type=Pack)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise SetupError(
            f"{label}: not a pack: {error}", "name a file made with --format json"
        ) from error


def schema() -> dict[str, Any]:
    """Return the JSON Schema generated from the types."""
    made = msgspec.json.schema(Pack)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "coderag-ci pack",
        **made,
    }


def shipped_schema() -> dict[str, Any]:
    """Return the JSON Schema that is shipped with the package."""
    text = (importlib.resources.files("coderag_ci") / SCHEMA_FILE).read_bytes()
    loaded: dict[str, Any] = msgspec.json.decode(text)
    return loaded
