"""The pack as a page: what it lets through, and that it works in a browser."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest

from coderag_ci.diff import Hunk
from coderag_ci.pack import Channel, Fact, Pack, Place, sealed
from coderag_ci.pathrules import Skipped
from coderag_ci.render import html
from tests.browser import browser
from tests.test_render import PACK

HOSTILE = (
    "</script><script>alert(1)</script>",
    "</style></pre></code></title>--><!--",
    "<img src=https://evil.invalid/x onerror=alert(1)>",
    "\" onclick='alert(1)' ' x=\"",
    "&lt;b&gt; &#60;b&#62;",
    "</code><b>`",
    "javascript:alert(1)",
)
HIDDEN = "\u202e\u2066\u200b\ufeff\x1b\x00\u2028\U000e0041\u00ad"


class Page(HTMLParser):
    """The elements and the text of a page, as a browser finds them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element and its attributes."""
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        """Note a text."""
        self.text += data


def everywhere(text: str) -> Pack:
    """Return a pack that has a text wherever a repository can put one."""
    file = msgspec.structs.replace(
        PACK.diff[1], path=text, old_path=text + "x", hunks=(Hunk(1, 1, 1, 1, text, ("+" + text,)),)
    )
    piece = msgspec.structs.replace(
        PACK.evidence[0], path=text, symbol=text, text=text,
        channels=(Channel("uses", 1, f"calls `{text}` (line 1) {text}"),),
    )  # fmt: skip
    return sealed(
        msgspec.structs.replace(
            PACK,
            change=msgspec.structs.replace(PACK.change, title=text),
            diff=(file,),
            facts=(Fact("dangling", f"`{text}` is {text}", (Place(text, 1, text),)),),
            evidence=(piece, PACK.evidence[1]),
            dropped=(msgspec.structs.replace(PACK.dropped[0], path=text, symbol=text),),
            skipped=(Skipped(text, text),),
            degradations=(text,),
        )
    )  # fmt: skip


# ---- text of the repository


@pytest.mark.parametrize("text", HOSTILE)
def test_text_of_the_repository_stays_text(text: str) -> None:
    """A path, a title or a line of code could run a script in the reader's browser."""
    page, harmless = Page(html.render(everywhere(text))), Page(html.render(PACK))
    assert page.tags.count("script") == page.tags.count("style") == 1
    assert set(page.tags) <= set(harmless.tags)
    assert page.attributes <= harmless.attributes
    assert page.text.count(text) >= 7


def test_hidden_characters_are_written_out() -> None:
    """Bidirectional marks make a line read otherwise than it runs."""
    text = html.render(everywhere(f"a{HIDDEN}b"))
    assert not set(HIDDEN) & set(text)
    assert "‹U+202E›" in text


def test_a_link_leads_to_https_alone() -> None:
    """The address of the repository comes from its configuration."""
    evil = msgspec.structs.replace(PACK, remote="javascript:alert(1)//")
    assert "href" not in html.render(evil)
    links = re.findall(r'href="([^"]*)"', html.render(everywhere('x" onclick="y')))
    assert links
    assert all(link.startswith("https://github.com/o/r/blob/") for link in links)


def test_the_same_pack_gives_the_same_bytes() -> None:
    """A page that differs each time can not be compared or cached."""
    again = msgspec.json.decode(msgspec.json.encode(PACK), type=Pack)
    assert html.render(PACK) == html.render(again)


# ---- in a browser


def test_the_page_in_a_browser(tmp_path: Path) -> None:
    """Filters hide a kind; nothing is loaded, no rule of the page's own policy is broken."""
    file = tmp_path / "pack.html"
    file.write_text(html.render(everywhere(HOSTILE[0] + HOSTILE[2])), encoding="utf-8")
    with browser(tmp_path / "profile") as page:
        page.open(file)
        requests = [event["request"]["url"] for event in page.said("Network.requestWillBeSent")]
        assert requests == [file.as_uri()]
        shown = (
            "[...document.querySelectorAll('article')].filter((a) => a.checkVisibility())"
            ".map((a) => a.dataset.kind).join()"
        )
        assert page.run(shown) == "uses,test"
        page.run("document.querySelector('input[value=uses]').click()")
        assert page.run(shown) == "test"
        page.run("document.querySelector('input[value=uses]').click()")
        assert page.run(shown) == "uses,test"
        for width in (1400, 800, 360):
            page.ask(
                "Emulation.setDeviceMetricsOverride",
                width=width, height=900, deviceScaleFactor=1, mobile=False,
            )  # fmt: skip
            assert page.run("document.documentElement.scrollWidth") <= width
        assert page.run("document.querySelectorAll('svg path').length") > 0
        assert page.said("Log.entryAdded", "Runtime.exceptionThrown") == []
        blocked = page.run(
            "new Promise((done) => {"
            "document.addEventListener('securitypolicyviolation', (e) => done(e.blockedURI));"
            "document.body.append(Object.assign(new Image(), {src: 'https://x.invalid/y'})); })"
        )
        assert blocked.startswith("https://x.invalid")
