"""``publish --to github|gitlab``: one comment in a pull request, on a forge with real sockets."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from coderag_ci.client import Busy, Client, Refused, patiently
from coderag_ci.errors import SetupError
from coderag_ci.pack import sealed
from coderag_ci.render import as_json
from tests.conftest import Command, Result
from tests.forge import TOKEN, Forge, serving
from tests.test_comment import replaced
from tests.test_render import PACK

LATER = {"Retry-After": "0"}
MARK = "<!-- coderag-ci: "
Publish = Callable[..., Result]


@pytest.fixture
def forge() -> Iterator[Forge]:
    """Return a forge at which the pull request's head is the pack's."""
    with serving(Forge(head=PACK.change.head)) as forge:
        yield forge


@pytest.fixture(params=["github", "gitlab"])
def both(request: pytest.FixtureRequest, forge: Forge) -> Forge:
    """Return the forge, once as GitHub and once as GitLab."""
    forge.speaks = request.param
    if request.param == "gitlab":
        forge.login = "project_42_bot"
    return forge


@pytest.fixture
def publish(
    forge: Forge, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Publish:
    """Return a function that publishes a pack to the forge."""

    def run(*arguments: str, pack: Any = PACK) -> Result:
        file = tmp_path / "pack.json"
        file.write_text(as_json.render(pack))
        for name, value in forge.environment().items():
            monkeypatch.setenv(name, value)
        which = ("--pull-request", "7", "--head", PACK.change.head)
        return command("publish", str(file), "--to", forge.speaks, *which, *arguments)

    return run


# ---- one comment


def test_a_comment_is_made(both: Forge, publish: Publish) -> None:
    """The first run on a pull request leaves a comment, and says which."""
    done = publish("--link", "https://forge.example/run/1")
    assert done.code == 0, done.err
    (one,) = both.comments
    assert one.body.startswith(f"{MARK}{PACK.digest} -->\n**What this change touches")
    assert "(https://forge.example/run/1)" in one.body
    assert done.out == f"comment-id={one.number}\n"
    assert both.changes() == ["POST"]


def test_the_comment_is_edited_in_place(both: Forge, publish: Publish) -> None:
    """A second push does not add a second comment."""
    both.write("Nice!", "somebody")
    old = both.write(f"{MARK}sha256:old -->\nold")
    done = publish()
    assert done.out == f"comment-id={old.number}\n"
    assert len(both.comments) == 2
    assert "**dangling**" in both.comments[1].body
    assert [one.body for one in both.comments if one.author == "somebody"] == ["Nice!"]


def test_an_unchanged_pack_is_not_edited(both: Forge, publish: Publish) -> None:
    """A run that is repeated sends nobody a notification, whatever its link."""
    publish("--link", "https://forge.example/run/1")
    body = both.comments[0].body
    done = publish("--link", "https://forge.example/run/2")
    assert done.out == f"comment-id={both.comments[0].number}\n"
    assert both.comments[0].body == body
    assert both.changes() == ["POST"]


def test_a_comment_on_a_later_page_is_found(both: Forge, publish: Publish) -> None:
    """A long discussion does not hide the comment from the next run."""
    both.a_page = 2
    for number in range(7):
        both.write(f"Remark {number}", "somebody")
    old = both.write(f"{MARK}sha256:old -->\nold")
    both.write("The last", "somebody")
    assert publish().out == f"comment-id={old.number}\n"
    assert both.changes() in (["PATCH"], ["PUT"])


def test_a_comment_with_our_mark_by_somebody_else(both: Forge, publish: Publish) -> None:
    """Nobody can keep us from commenting, or have a comment edited, by copying the mark."""
    theirs = both.write(f"{MARK}{PACK.digest} -->\nlooks fine", "somebody")
    quoting = both.write(f"> {MARK}{PACK.digest} -->\nquoted")
    done = publish()
    assert len(both.comments) == 3
    assert done.out == f"comment-id={both.comments[2].number}\n"
    assert (theirs.body, quoting.body[0]) == (f"{MARK}{PACK.digest} -->\nlooks fine", ">")


def test_of_several_comments_the_oldest_stays(both: Forge, publish: Publish) -> None:
    """Two runs that commented at once are tidied up by the next."""
    first, *_ = [both.write(f"{MARK}sha256:{n} -->\nold") for n in range(3)]
    other = both.write("Nice!", "somebody")
    publish()
    assert [one.number for one in both.comments] == [first.number, other.number]
    assert both.comments[0].body.startswith(f"{MARK}{PACK.digest}")


def test_two_runs_at_once(both: Forge, publish: Publish) -> None:
    """A comment that another run made in the same moment is the one that stays, not a second."""
    both.meanwhile("POST", lambda: both.write(f"{MARK}sha256:other -->\nother"))
    done = publish()
    assert done.out == "comment-id=101\n"
    (one,) = both.comments
    assert one.body.startswith(f"{MARK}{PACK.digest}")


def test_a_comment_that_is_deleted_meanwhile(both: Forge, publish: Publish) -> None:
    """Somebody who deletes the comment while it is edited gets a new one, not a failure."""
    both.write(f"{MARK}sha256:old -->\nold")
    for method in ("PATCH", "PUT"):
        both.meanwhile(method, both.comments.clear)
    assert publish().code == 0
    assert len(both.comments) == 1
    assert both.comments[0].body.startswith(f"{MARK}{PACK.digest}")


def test_a_duplicate_that_is_deleted_meanwhile(both: Forge, publish: Publish) -> None:
    """Two runs that tidy up at once do not stumble over each other."""
    for number in range(2):
        both.write(f"{MARK}sha256:{number} -->\nold")
    both.meanwhile("DELETE", both.comments.pop)
    assert publish().code == 0
    assert len(both.comments) == 1


def test_a_head_that_has_moved(both: Forge, publish: Publish) -> None:
    """A slow run of an old push does not overwrite what the newer one says."""
    both.write(f"{MARK}sha256:newer -->\nnewer")
    both.head = "9" * 40
    done = publish()
    assert (done.code, both.changes(), done.out) == (0, [], "")
    assert "the head has moved from 222222222222 to 999999999999" in done.err


# ---- when


def nothing() -> Any:
    """Return a pack in which nothing was found."""
    return sealed(replaced(evidence=(), facts=(), facts_more=0))


def test_nothing_found_makes_no_comment(both: Forge, publish: Publish) -> None:
    """By default a pull request with nothing to say about stays quiet."""
    done = publish(pack=nothing())
    assert (done.code, done.out, both.comments) == (0, "", [])


def test_nothing_found_any_more(both: Forge, publish: Publish) -> None:
    """What the last push was told does not stay where it holds no longer."""
    publish()
    publish(pack=nothing())
    assert len(both.comments) == 1
    assert "found nothing relevant" in both.comments[0].body


def test_always_and_never(both: Forge, publish: Publish) -> None:
    """Whoever wants a line each time gets it, and whoever wants none does not."""
    assert publish("--when", "never").code == 0
    assert both.asked == []
    publish("--when", "always", pack=nothing())
    assert "found nothing relevant" in both.comments[0].body


# ---- what goes wrong


def test_a_token_that_may_not_comment(both: Forge, publish: Publish) -> None:
    """A fork's pull request does not fail because its token may only read."""
    both.writable = False
    done = publish()
    assert done.code == 0
    assert "403" in done.err
    assert "summary and artifact" in done.err
    assert both.comments == []


def test_a_notice_stands_out_in_a_workflow(forge: Forge, publish: Publish) -> None:
    """In GitHub's log the reason is an annotation."""
    forge.writable = False
    assert "::notice title=coderag-ci::no comment" in publish().err


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (429, LATER),
        (403, LATER),
        (403, LATER | {"X-RateLimit-Remaining": "0"}),
        (500, LATER),
        (502, LATER),
        (503, LATER),
    ],
)
@pytest.mark.parametrize("method", ["GET", "GRAPHQL", "POST", "PATCH"])
def test_a_busy_forge_is_asked_again(
    forge: Forge, publish: Publish, method: str, status: int, headers: dict[str, str]
) -> None:
    """A forge that is out of breath for a moment costs no comment, and makes no second."""
    if method == "PATCH":
        forge.write(f"{MARK}sha256:old -->\nold")
    for _ in range(2):
        forge.answer(method, status, headers, b"<html>Unicorn!</html>")
    assert publish().code == 0
    assert len(forge.comments) == 1
    assert forge.comments[0].body.startswith(f"{MARK}{PACK.digest}")


def test_a_comment_that_was_made_although_the_answer_was_lost(
    forge: Forge, publish: Publish
) -> None:
    """A gateway that times out after the deed does not lead to a second comment."""

    def lost() -> None:
        forge.write(forge.asked[-1].content["body"])
        forge.answer("POST", 502, LATER)

    forge.meanwhile("POST", lost)
    assert publish().code == 0
    assert len(forge.comments) == 1


def test_a_forge_that_stays_busy(both: Forge, publish: Publish) -> None:
    """A long outage costs the comment, not the build."""
    for _ in range(5):
        both.answer("GET", 502, LATER)
    done = publish()
    assert done.code == 0
    assert "502" in done.err
    assert len(both.asked) == 5


def test_how_long_it_waits() -> None:
    """It waits longer each time, as long as the forge says, and not for an hour."""

    def trying(*seconds: float) -> list[float]:
        left = list(seconds)
        waited: list[float] = []

        def ask() -> None:
            if left:
                raise Busy("busy", 502, left.pop(0))

        patiently(ask, waited.append)
        return waited

    assert trying() == []
    assert trying(-1, -1, -1, -1) == [1, 2, 4, 8]
    assert trying(7, -1, 0) == [7, 2, 0]
    for too_much in ((-1,) * 5, (3600,)):
        with pytest.raises(Busy):
            trying(*too_much)


def test_a_body_that_is_too_long_for_the_forge(both: Forge, publish: Publish) -> None:
    """A forge with a lower limit than GitHub's costs the comment, not the build."""
    both.most = 100
    done = publish()
    assert done.code == 0
    assert "422" in done.err
    assert "Body is too long" in done.err


def test_who_we_are_where_there_is_no_graphql(forge: Forge, publish: Publish) -> None:
    """A forge that speaks GitHub's REST API alone can say whose token it is, too."""
    forge.viewer = False
    forge.login = "bot"
    publish()
    publish(pack=sealed(replaced(facts_more=9)))
    assert len(forge.comments) == 1


def test_a_forge_that_does_not_say_who_we_are(forge: Forge, publish: Publish) -> None:
    """Without a name to check authors by, nothing is written."""
    forge.viewer = False
    done = publish()
    assert (done.code, forge.comments) == (0, [])


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(("--pull-request", "8"), 3), (("--head", "9" * 40), 2), (("--pull-request", "0"), 2)],
)
def test_the_wrong_pull_request(
    forge: Forge, publish: Publish, arguments: tuple[str, ...], code: int
) -> None:
    """A pull request that is not there, or another commit than the pack's, is said in a line."""
    done = publish(*arguments)
    assert (done.code, forge.changes()) == (code, [])
    assert "Traceback" not in done.err


def test_no_pull_request_is_no_failure(
    forge: Forge, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run on a push posts nothing and does not fail."""
    file = tmp_path / "pack.json"
    file.write_text(as_json.render(PACK))
    for name, value in forge.environment().items():
        monkeypatch.setenv(name, value)
    done = command("publish", str(file), "--to", "github")
    assert (done.code, forge.asked) == (0, [])
    assert "no pull request" in done.err


def test_the_environment_says_which_pull_request(
    both: Forge, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The template for GitLab names neither merge request nor head; GitHub's event does."""
    file = tmp_path / "pack.json"
    file.write_text(as_json.render(PACK))
    event = tmp_path / "event.json"
    event.write_text(json.dumps({"pull_request": {"number": 7, "head": {"sha": both.head}}}))
    for name, value in (both.environment() | {"GITHUB_EVENT_PATH": str(event)}).items():
        monkeypatch.setenv(name, value)
    assert command("publish", str(file), "--to", both.speaks).code == 0
    assert len(both.comments) == 1


# ---- the token


def test_without_a_token(publish: Publish, both: Forge) -> None:
    """A step that was given no token is told which variable is missing."""
    both.token = " "
    done = publish()
    assert done.code == 2
    assert f"{both.speaks.upper()}_TOKEN is not set" in done.err


@pytest.mark.parametrize("bad", ["ghs_\x1b[1m", "ghs_a\nb", "ghs_…"])
def test_a_token_that_is_none(publish: Publish, forge: Forge, bad: str) -> None:
    """A token with a line break in it is said to be wrong without being shown."""
    forge.token = bad
    done = publish()
    assert done.code == 3
    assert "characters that no token has" in done.err
    assert "ghs_" not in done.err


@pytest.mark.parametrize("status", [401, 403, 404, 422, 502])
def test_the_token_is_never_shown(forge: Forge, publish: Publish, status: int) -> None:
    """A forge that repeats the token in its answer does not bring it into a public log."""
    for _ in range(5):
        forge.answer("GET", status, LATER, json.dumps({"message": f"no {TOKEN}"}).encode())
    done = publish()
    assert TOKEN not in done.out + done.err
    assert "no ***" in done.err


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_does_not_carry_the_token_away(forge: Forge, status: int) -> None:
    """Whoever can redirect a request does not get the token, nor what we post."""
    client = Client("GitHub", f"{forge.url}/api/v3", {"Authorization": f"Bearer {TOKEN}"})
    forge.artifacts = {"x": b'"data"'}
    forge.answer("GET", status, {"Location": f"{forge.elsewhere}/blob/x"})
    assert client.get("user") == "data"
    assert "authorization" in forge.asked[0].headers
    assert "authorization" not in forge.asked[1].headers
    forge.answer("POST", status, {"Location": f"{forge.elsewhere}/blob/x"})
    with pytest.raises(Refused):
        client.send("POST", "user", {"body": "x"})
    assert len(forge.asked) == 3
    for nowhere in ("file:///etc/passwd", "http://[::1", "http://h:x/"):
        forge.answer("GET", status, {"Location": nowhere})
        with pytest.raises(Refused):
            client.get("user")


def test_a_renamed_repository(forge: Forge, publish: Publish) -> None:
    """A forge that leads to the repository's new place is followed there, with the token."""
    forge.answer("GET", 301, {"Location": f"{forge.url}/api/v3/repos/o/r/pulls/7"})
    assert publish().code == 0
    assert len(forge.comments) == 1


def test_redirects_end(forge: Forge) -> None:
    """A redirect in a circle is given up."""
    client = Client("GitHub", forge.url, {"Authorization": f"Bearer {TOKEN}"})
    for _ in range(9):
        forge.answer("GET", 302, {"Location": "/again"})
    with pytest.raises(Refused, match="too many redirects"):
        client.get("user")


def test_pages_elsewhere_are_not_read(forge: Forge) -> None:
    """A link to the next page on another host is not followed."""
    client = Client("GitHub", forge.url, {"Authorization": f"Bearer {TOKEN}"})
    for number, place in enumerate((f"{forge.elsewhere}/2", "http://[::1"), 1):
        forge.answer("GET", 200, {"Link": f'<{place}>; rel="next"'}, b"[1]")
        with pytest.raises(Refused, match="elsewhere"):
            list(client.pages("x"))
        assert len(forge.asked) == number


@pytest.mark.parametrize(
    "url",
    [
        "",
        "file:///etc/passwd",
        "forge.example",
        "http://",
        "http://[::1",
        "http://h:x",
        "http://a b",
    ],
)
def test_an_address_that_is_none(url: str) -> None:
    """An API's address that is no web address is refused, not read from the disk."""
    with pytest.raises(SetupError, match="address of GitHub is none"):
        Client("GitHub", url, {})


@pytest.mark.parametrize("body", [b"<html>", b"[" * 100_000, b"\xff", b"[]", b"7"])
def test_an_answer_that_is_none(forge: Forge, publish: Publish, body: bytes) -> None:
    """A page of a proxy in the way is said in a line."""
    forge.answer("GET", 200, {}, body)
    done = publish()
    assert (done.code, forge.comments) in ((0, []), (3, []))
    assert "Traceback" not in done.err


def test_the_whole_command_keeps_the_token_out_of_its_arguments(
    forge: Forge, tmp_path: Path
) -> None:
    """As a process of its own it works with the environment alone, as in the action."""
    file = tmp_path / "pack.json"
    file.write_text(as_json.render(PACK))
    output = tmp_path / "output"
    environment = os.environ | forge.environment() | {"GITHUB_OUTPUT": str(output)}
    arguments = ["--to", "github", "--pull-request", "7", "--head", PACK.change.head]
    done = subprocess.run(
        [sys.executable, "-m", "coderag_ci", "publish", str(file), *arguments],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert output.read_text() == f"comment-id={forge.comments[0].number}\n"
    assert TOKEN not in done.stdout + done.stderr
    assert dataclasses.asdict(forge.comments[0])["author"] == "github-actions[bot]"
