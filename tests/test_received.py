"""An artifact of a fork's run is taken as hostile: what is no pack of ours is refused."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

import pytest

from coderag_ci import received
from coderag_ci.errors import SetupError
from coderag_ci.render import as_json
from tests.conftest import Command
from tests.packs import SHOP
from tests.repository import Repository

REMOTE = "https://forge.example/o/r"


@pytest.fixture
def made(repository: Repository, command: Command) -> dict[str, Any]:
    """Return a real pack with facts and evidence, as JSON."""
    repository.commit(SHOP)
    repository.commit({"shop/tax.py": "x = 1\n"})
    done = command("context", "--base", "HEAD~1", "--format", "json", cwd=repository.path)
    pack: dict[str, Any] = json.loads(done.out)
    assert pack["facts"]
    assert pack["evidence"]
    return pack


def zipped(*members: tuple[str, bytes]) -> bytes:
    """Return an archive, which may name a file twice."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return data.getvalue()


def take(made: dict[str, Any], *others: tuple[str, bytes]) -> Any:
    """Read a pack out of an archive."""
    archive = zipped(("pack.json", json.dumps(made).encode()), *others)
    return received.read(archive, made["change"]["head"], REMOTE)


def test_a_pack_of_ours_is_taken(made: dict[str, Any]) -> None:
    """What the action made comes through with its digest; links lead to the trusted repository."""
    made["remote"] = "https://phishing.example/o/r"
    found = take(made, ("pack.md", b"x"), ("../../etc/passwd", b"x"))
    assert found.digest == made["digest"]
    assert found.remote == REMOTE
    assert found.trace.stages == ()


def test_a_digest_is_that_of_the_content(made: dict[str, Any]) -> None:
    """A digest that the artifact claims does not keep a changed pack from being shown."""
    made["change"]["title"] = "another"
    assert take(made).digest != made["digest"]


def test_a_pack_of_another_commit(made: dict[str, Any]) -> None:
    """The head that counts is the trusted one."""
    archive = zipped(("pack.json", json.dumps(made).encode()))
    with pytest.raises(SetupError, match="of another commit"):
        received.read(archive, "1" * 40, REMOTE)


@pytest.mark.parametrize(
    "archive",
    [
        b"",
        b"PK\x03\x04 no archive",
        zipped(),
        zipped(("sub/pack.json", b"{}")),
        zipped(("pack.json", b"{}"), ("other", b"")).replace(b"pack.json", b"pack.jsom"),
        zipped(("pack.json", b"[1, 2]")),
        zipped(("pack.json", b"[" * 100_000)),
        zipped(("pack.json", b'{"schema_version": 999}')),
        zipped(("pack.json", b'{"schema_version": 1}')),
        zipped(("pack.json", b"\xff\xfe")),
    ],
)
def test_what_is_no_pack(archive: bytes) -> None:
    """Anything else than an archive with one pack of this version is refused in a line."""
    with pytest.raises(SetupError):
        received.read(archive, "1" * 40, REMOTE)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_packs_in_one_archive() -> None:
    """Which of two files of one name counts is not guessed."""
    archive = zipped(("pack.json", b"{}"), ("pack.json", b"{}"))
    with pytest.raises(SetupError, match="2 files named"):
        received.read(archive, "1" * 40, REMOTE)


def test_an_archive_that_unpacks_to_too_much() -> None:
    """A few kilobytes that unpack to a hundred megabytes are read no further than the limit."""
    archive = zipped(("pack.json", b" " * (received.MOST_BYTES + 1)))
    assert len(archive) < 100_000
    with pytest.raises(SetupError, match="larger than 20 MiB"):
        received.read(archive, "1" * 40, REMOTE)


def set_at(pack: dict[str, Any], where: str, value: object) -> None:
    """Set a value at a dotted place."""
    *keys, last = where.split(".")
    held: Any = pack
    for key in keys:
        held = held[int(key) if key.isdigit() else key]
    held[int(last) if last.isdigit() else last] = value


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("facts.0.kind", "**dangling** [x](https://evil.example)"),
        ("facts.0.places.0.path", "/etc/passwd"),
        ("facts.0.places.0.path", "a/../../b"),
        ("facts.0.places.0.path", "a\nb"),
        ("facts.0.places.0.line", -5),
        ("facts.0.places.0.line", 1 << 60),
        ("evidence.0.kind", "<img src=x>"),
        ("evidence.0.flags", ["@everyone"]),
        ("evidence.0.language", "python\n```"),
        ("evidence.0.blob", "not hex"),
        ("evidence.0.channels.0.name", "uses](https://evil.example)"),
        ("diff.0.status", "modified\n# Heading"),
        ("tool.name", "see https://evil.example"),
        ("change.base", "[x](y)"),
        ("index.dense", "see //evil.example"),
        ("index.history", "@everyone"),
        ("dropped", [{"path": "a", "start": 1, "end": 1, "symbol": "", "reason": "<b>"}]),
        ("settings", {str(i): "" for i in range(3)} | {"x": 1}),
        ("skipped", [{"path": "a", "reason": "x"}] * 10_001),
        ("evidence.0.symbol", "x" * 100_001),
        ("facts.0.text", "x" * 100_001),
    ],
)
def test_a_value_that_ours_never_have(made: dict[str, Any], where: str, value: object) -> None:
    """What looks like a statement of ours can not carry a link, a mention or markup."""
    set_at(made, where, value)
    with pytest.raises(SetupError):
        take(made)


def test_what_is_read_renders(made: dict[str, Any]) -> None:
    """A pack that is taken is one that the renderers take."""
    from coderag_ci.render import FORMATS, render

    found = take(made)
    assert all(render(found, form) for form in FORMATS)
    assert as_json.read(as_json.render(found).encode(), "x") == found


@pytest.mark.parametrize("ranges", [[[1, 1 << 30]], [[9, 1]], []])
def test_lines_that_a_piece_can_not_have(made: dict[str, Any], ranges: list[list[int]]) -> None:
    """A piece that claims a thousand million lines takes no more memory than its text."""
    from coderag_ci.render import comment

    for piece in made["evidence"]:
        piece["ranges"] = ranges
    assert "<summary>Code" in comment.render(take(made), 2000)
