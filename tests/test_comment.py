"""The comment: short, sound Markdown, in which text of the repository is nothing but text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from coderag_ci.pack import Channel, Fact, Pack, Place
from coderag_ci.render import comment
from coderag_ci.tokens import estimate
from tests.test_render import EVIDENCE, PACK

GOLDEN = Path(__file__).parent / "golden" / "comment.txt"
LINK = "https://forge.example/run/1"
EVIL = (
    "@all #123 GH-9 fixes o/r#7 ![i](http://evil.example/i.png) [l](http://evil.example) "
    "!8 ~label <img src=x> <!-- --> </details> | a | "
    "http://evil.example www.evil.example **b** `c` ``` ~~~"
)


def replaced(pack: Pack = PACK, **fields: object) -> Pack:
    """Return a pack with other fields."""
    return msgspec.structs.replace(pack, **fields)


def tokens(text: str) -> Iterator[Token]:
    """Yield what a Markdown reader sees, block by block and inside them."""
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        yield token
        yield from token.children or ()


def hostile() -> Pack:
    """Return a pack with markup, links and mentions wherever text of a repository can be."""
    piece = msgspec.structs.replace(
        EVIDENCE,
        path=f"a/{EVIL}",
        symbol=EVIL,
        text=f"{EVIL}\n```\n# Heading\n````\n</details>\n/close",
        channels=(
            Channel("uses", 1, f"calls `{EVIL.replace('`', '')}` (line 6); {EVIL}"),
            Channel("uses", 1, "calls `x\"];click n0 href 'http://evil.example'` (line 7)"),
        ),
    )
    fact = Fact("dangling", f"`{EVIL.replace('`', '')}`: {EVIL}", (Place(EVIL, 3, EVIL),), 1)
    return replaced(evidence=(piece,), facts=(fact,), degradations=(EVIL,), facts_more=0)


def test_what_a_comment_looks_like(request: pytest.FixtureRequest) -> None:
    """Whoever reads comments notices every change of their looks."""
    text = comment.render(PACK, 2000, link=LINK)
    if request.config.getoption("--update-golden"):
        GOLDEN.write_text(text, encoding="utf-8", newline="\n")
    assert text == GOLDEN.read_text(encoding="utf-8")


def test_facts_come_first_and_each_piece_has_a_permalink_and_a_reason() -> None:
    """A reviewer reads from the top, and wants to click on the lines at the head's commit."""
    text = comment.render(PACK, 2000)
    assert text.index("**dangling**") < text.index("1. [`shop/price.py:6`]")
    line = next(line for line in text.split("\n") if line.startswith("1. "))
    assert f"(https://github.com/o/r/blob/{'2' * 40}/shop/price.py#L6-L21)" in line
    assert line.endswith("`Prices.total`: calls `tax_rate` (line 21)")


@pytest.mark.parametrize("pack", [PACK, hostile()], ids=["usual", "hostile"])
def test_a_markdown_reader_sees_our_markup_alone(pack: Pack) -> None:
    """Text of the repository brings no link, image, table, heading or HTML into a comment."""
    found = list(tokens(comment.render(pack, 4000, link=LINK)))
    kinds = {token.type for token in found}
    assert not kinds & {"image", "table_open", "heading_open", "hr", "code_block"}
    links = [str(token.attrs["href"]) for token in found if token.type == "link_open"]
    assert links
    assert all(link.startswith(("https://github.com/o/r/blob/", LINK)) for link in links)
    html = [token.content.strip() for token in found if token.type in ("html_block", "html_inline")]
    assert html == ["<details><summary>Code</summary>", "</details>"]
    fences = [token.info for token in found if token.type == "fence"]
    assert fences == ["mermaid", "python"]


def test_nobody_is_mentioned_and_nothing_is_referred_to() -> None:
    """A name in the code must not ping a person, nor a number link an issue."""
    seen = "".join(
        token.content for token in tokens(comment.render(hostile(), 4000)) if token.type == "text"
    )
    assert not re.search(r"@\w|#\d|GH-\d|://|www\.", seen)


def test_a_label_can_not_leave_its_node() -> None:
    """A symbol can not bring a link or a style into the graph."""
    text = comment.render(hostile(), 4000)
    graph = text[text.index("```mermaid") :].split("\n```")[0]
    for line in graph.split("\n")[2:]:
        assert re.fullmatch(
            r'subgraph \w+\["[\w ]+"\]|end|n\d+ --> n\d+|n\d+\["[\w .:/…#;]*"\]', line
        ), line
    assert "<" not in graph


@pytest.mark.parametrize("limit", [200, 400, 1000, 2000, 5000])
@pytest.mark.parametrize("pack", [PACK, hostile()], ids=["usual", "hostile"])
def test_a_comment_keeps_to_its_tokens(pack: Pack, limit: int) -> None:
    """A comment is short, whatever the pack holds; what does not fit is counted."""
    many = replaced(pack, evidence=pack.evidence * 30, facts=pack.facts * 30)
    mark = f"<!-- coderag-ci: {PACK.digest} -->\n"
    assert estimate(mark + comment.render(many, limit, link=LINK)) <= limit


def test_a_comment_keeps_to_its_characters() -> None:
    """A forge refuses what is longer than it takes."""
    piece = msgspec.structs.replace(EVIDENCE, text="x" * 30_000)
    many = replaced(evidence=(piece,) * 9)
    assert 30_000 < len(comment.render(many, 1_000_000)) < 60_000
    assert len(comment.render(many, 1_000_000, most=5000)) < 5000


def test_the_rest_is_counted() -> None:
    """A reviewer knows what a short comment leaves out."""
    many = replaced(evidence=tuple(msgspec.structs.replace(EVIDENCE, start=n) for n in range(40)))
    text = comment.render(many, 2000)
    shown = len(re.findall(r"^\d+\. ", text, re.MULTILINE))
    assert 5 < shown <= 10
    assert f"Not shown: 2 facts, {40 - shown} pieces of the pack, 5 found that" in text


def test_nothing_found_takes_one_line() -> None:
    """Where there is nothing to say a comment says so, and no more."""
    pack = replaced(facts=(), evidence=(), facts_more=0)
    assert not comment.found(pack)
    assert comment.render(pack, 2000, link=LINK) == (
        "coderag-ci found nothing relevant outside the change: 4 files, +1203 −1 · "
        f"[the whole pack]({LINK})\n"
    )


def test_the_rest_of_a_changed_unit_is_nothing_to_look_at() -> None:
    """What a reviewer sees in the diff anyway makes no comment."""
    inside = msgspec.structs.replace(EVIDENCE, channels=(Channel("enclosing", 1, "rest of it"),))
    assert not comment.found(replaced(facts=(), evidence=(inside,)))


def test_a_link_can_not_be_ended_from_inside() -> None:
    """An address comes from outside, too."""
    text = comment.render(PACK, 2000, link="https://forge.example/a) [x](https://evil.example")
    links = [str(token.attrs["href"]) for token in tokens(text) if token.type == "link_open"]
    assert not [link for link in links if link.startswith("https://evil")]


def test_code_is_shown_around_the_line_that_the_reason_names() -> None:
    """Of a long function a reviewer wants to see the call, not the first lines."""
    lines = [f"line_{number}" for number in range(100, 200)]
    piece = msgspec.structs.replace(
        EVIDENCE,
        start=100,
        end=199,
        text="\n".join(lines),
        ranges=((100, 199),),
        channels=(Channel("uses", 1, "calls `tax_rate` (line 150)"),),
    )
    text = comment.render(replaced(evidence=(piece,)), 2000)
    assert "lines 143–157 of 100–199" in text
    assert ("line_150" in text, "line_142" in text, "line_158" in text) == (True, False, False)


def test_the_reason_is_the_one_that_tells_most() -> None:
    """That a piece calls what changed says more than that it was often changed with it."""

    def line(*channels: Channel) -> str:
        piece = msgspec.structs.replace(EVIDENCE, channels=channels)
        text = comment.render(replaced(evidence=(piece,)), 2000)
        return next(line for line in text.split("\n") if line.startswith("1. "))

    file = Channel("co-change", 1, "its file changed often")
    name = Channel("defines", 5, "defines `x`")
    words = Channel("subject", 2, "shares `x`")
    call = Channel("uses", 60, "calls `tax_rate` (line 21)")
    assert line(file, name, words, call).endswith("calls `tax_rate` (line 21)")
    assert line(file, name, words).endswith("defines `x`")
    assert line(file, words).endswith("its file changed often")
    assert line(words).endswith("shares `x`")


def test_a_fact_of_one_place_takes_one_line() -> None:
    """A reviewer reads one line and clicks in it, rather than on a line of its own below."""

    def lines(text: str, *places: Place, more: int = 0) -> list[str]:
        fact = Fact("partner not changed", text, places, more)
        shown = comment.render(replaced(facts=(fact,), evidence=()), 2000)
        link = "https://github.com/o/r/blob/2222222222222222222222222222222222222222"
        return re.findall("^ *- .*", shown.replace(link, ""), re.MULTILINE)

    place = Place("shop/a.py", 3, "f")
    kind = "- **partner not changed**: "
    assert lines("`shop/a.py` is", place) == [f"{kind}[`shop/a.py`](/shop/a.py#L3) is"]
    assert lines("none names `f`", place) == [
        f"{kind}none names `f` ([`shop/a.py:3`](/shop/a.py#L3))"
    ]
    assert len(lines("none names `f`", place, more=1)) == 3
    assert lines("nowhere", more=1) == [f"{kind}nowhere", "  - and 1 more"]


def test_a_long_name_in_the_graph_keeps_its_end() -> None:
    """Of a method of a class with a long name a reviewer wants the method's own name."""
    piece = msgspec.structs.replace(EVIDENCE, symbol="SecureCookieSessionInterface.save_session")
    text = comment.render(replaced(evidence=(piece,)), 2000)
    assert '["…cureCookieSessionInterface.save_session"]' in text


def test_where_lines_came_from_is_folded() -> None:
    """What the changed lines came from is there for whoever asks, and in nobody's way."""
    fact = Fact("why it was so", "lines came with `Fix it`", (Place("shop/tax.py", 3),))
    text = comment.render(replaced(facts=(*PACK.facts, fact)), 2000)
    assert text.index("Look at") < text.index("<summary>Why it was so") < text.index("- lines came")
    assert not comment.found(replaced(facts=(fact,), evidence=()))
