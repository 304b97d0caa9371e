"""``eval report``: one page that loads nothing and says what the results say."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest

from coderag_ci.eval import results
from coderag_ci.eval.cases import Skip
from coderag_ci.eval.interval import Interval
from coderag_ci.eval.metrics import metric_names
from coderag_ci.eval.outcome import Outcome, Ranks
from coderag_ci.eval.report import page_of
from coderag_ci.eval.results import Compared, Comparison, Measured, Results, Seconds, VariantResult
from tests.cases import case_of, gold_of
from tests.conftest import Command

VOID = {"meta", "br"}
NO_PLOTS = {"overall": {"cases": 0}, "recall_by_k": {}, "stages": {}}  # where none matters
HOSTILE = "<script>alert(1)</script> $\\alpha_1^{$ & \"_'\u202e\ufffe\n日本"


class Reader(HTMLParser):
    """Collects tags, attributes and text, and fails on a tag that is not closed in order."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        """Open an element."""
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        """Keep what an element is."""
        self.tags.append(tag)
        self.attributes += [(key, value or "") for key, value in attrs]

    def handle_endtag(self, tag):
        """Close the innermost element, which has to be this one."""
        assert self.open.pop() == tag

    def handle_data(self, data):
        """Keep text."""
        self.text += data


def group(
    *rankings: str,
    value: float = 0.5,
) -> dict:
    """Return the figures of four cases, a little better for each ranking."""
    found: dict = {"cases": 4, "seconds": Seconds(0.2, 0.9)}
    for number, ranking in enumerate(rankings):
        middle = round(value + number / 100, 4)
        one = Interval(middle, round(middle - 0.1, 4), round(middle + 0.1, 4))
        for level, metric in metric_names(ranking):
            found.setdefault(ranking, {}).setdefault(level, {})[metric] = one
    return found


def comparison(difference: float, verdict="no difference", against="before.json") -> Comparison:
    """Return a comparison in which three figures differ by as much."""
    one = Compared(difference, difference - 0.02, difference + 0.02, verdict)
    names = (results.DECIDES, "final.chunk.mrr", "final.chunk.recall@10")
    return Comparison(against, 4, verdict, dict.fromkeys(names, one))


def measured(name="one", repo="o/r", shows=(), degradations=()) -> Measured:
    """Return a case whose gold is found first."""
    ranks = Ranks((1,), (1,), (1,), (1,), {4000: (0,)}, shows)
    outcome = Outcome(name, {"final": ranks}, 10, {"recall": 0.1}, degradations)
    return Measured(case_of([gold_of("src/a.py", (1, 2))], name, repo), outcome)


def variant(label: str, settings: dict, difference: float | None = None) -> VariantResult:
    """Return a variant that differs from the first by so much."""
    compared = None if difference is None else comparison(difference, against="first")
    value = 0.5 + (difference or 0)
    return VariantResult(label, settings, group("final", value=value), compared, (measured(),))


def made(**changed) -> Results:
    """Return small results with some parts changed."""
    names = ("channel:diff", "fused", "final")
    whole = group(*names)
    some = Results(
        schema_version=1,
        tool_version="1.2.3",
        settings={"rrf-k": 60.0},
        cases=4,
        skipped=(),
        seconds=Seconds(0.2, 0.9),
        stages={"recall": Seconds(0.1, 0.4), "assemble": Seconds(0.05, 0.1)},
        overall=whole,
        nontest=group(*names, value=0.3),
        untouched=whole,
        repo_mean=group(*names, value=0.4),
        by_kind={"cochange": whole},
        by_language={"go": group("final")},
        by_repo={"o/r": group("final")},
        by_size={"under 2,000 chunks": group("final"), "over 40,000": group("final")},
        recall_by_k={name: {1: 0.2, 10: 0.5, 200: 0.7} for name in names},
        variants=(variant("as configured", {}),),
        comparison=None,
        degradations={},
    )
    return msgspec.structs.replace(some, **changed)


def page(some: Results) -> str:
    """Return the page as the command makes it: from what JSON gives back."""
    return page_of(msgspec.json.decode(results.encode(some), type=Results))


@pytest.fixture(scope="module")
def plain() -> str:
    """Return the page of plain results."""
    return page(made())


def captions(text: str) -> list[str]:
    """Return what the figures are said to show."""
    return re.findall(r"<figcaption>(.*?)</figcaption>", text)


def test_the_command_writes_a_page(command: Command, tmp_path: Path):
    """The command writes a page to --out and, without it, the same page to stdout."""
    (tmp_path / "r.json").write_bytes(results.encode(made()))
    wrote = command("eval", "report", "r.json", "--out", "r.html", cwd=tmp_path)
    printed = command("eval", "report", "r.json", cwd=tmp_path)
    assert (wrote.code, wrote.out, printed.code) == (0, "", 0)
    assert printed.out == (tmp_path / "r.html").read_text(encoding="utf-8")


def test_the_page_is_well_formed_and_loads_nothing():
    """A page opens anywhere: tags are balanced and nothing is fetched or run."""
    text = page(made(comparison=comparison(0.1, "better")))
    read = Reader(text)
    assert not {"script", "link", "img", "iframe", "image"} & set(read.tags)
    assert {key for key, _ in read.attributes if key.startswith("on") or key == "src"} == set()
    references = [value for key, value in read.attributes if key.endswith("href")]
    assert references
    assert all(value.startswith("#") for value in references)
    assert "://" not in text
    assert "@import" not in text
    assert not re.search(r"url\((?!#)", text)


def test_references_inside_the_page_lead_somewhere():
    """Contents, markers and clips of figures point at an id that is there once."""
    text = page(made(variants=(variant("a", {}), variant("b", {"floor": 0}, 0.1))))
    read = Reader(text)
    ids = [value for key, value in read.attributes if key == "id"]
    wanted = {value[1:] for key, value in read.attributes if key.endswith("href")}
    assert len(ids) == len(set(ids))
    assert wanted | set(re.findall(r"url\(#(.*?)\)", text)) <= set(ids)


def test_figures_are_named_and_take_the_page_s_colours(plain: str):
    """A figure has a name for who can not see it, and is readable in a light and a dark scheme."""
    read = Reader(plain)
    attributes = dict.fromkeys(read.attributes)
    assert read.tags.count("svg") == read.tags.count("figcaption") == 4
    assert ("role", "img") in attributes
    assert ("aria-label", "Chunk Recall by k, one line a ranking") in attributes
    styles = " ".join(value for key, value in read.attributes if key == "style")
    assert "currentColor" in styles
    assert "var(--s1)" in styles
    assert not re.search(r"#[0-9a-f]{6}", styles)


@pytest.mark.parametrize(
    ("verdict", "words"),
    [("better", "Better than"), ("worse", "Worse than"), ("no difference", "No difference from")],
)
def test_the_verdict_is_said(verdict: str, words: str):
    """A reader sees at once whether it is better, worse or neither, and which figure decides."""
    text = Reader(page(made(comparison=comparison(-0.05, verdict), **NO_PLOTS))).text
    assert f"{words} before.json over 4 cases" in text
    assert "pack Recall at 4,000 tokens, the figure that decides, differs by −0.0500" in text
    assert "(95 % interval −0.0700 to −0.0300)" in text


def test_a_verdict_without_the_deciding_figure():
    """Where no case gives the figure that decides, the page says so."""
    none = Comparison("before.json", 2, "no difference", {})
    assert "no case gives pack Recall at 4,000 tokens" in page(made(comparison=none, **NO_PLOTS))


def test_each_ranking_is_shown_with_its_interval(plain: str):
    """Each ranking has a row with its value and interval, and the groups that repeat one do not."""
    text = plain
    for name in ("channel:diff", "fused", "final"):
        assert f'<th scope="row">{name}</th>' in text
    assert "0.520 <small>0.420–0.620</small>" in text
    assert "The same as a table above: Gold in files that the change did not touch, Kind" in text
    assert "final has 0.200 at k = 1, 0.500 at k = 10." in captions(text)[0]


def test_the_same_results_give_the_same_bytes(plain: str):
    """A page can be kept under version control: it differs only where the results do."""
    assert page(made()) == plain


def test_names_are_data():
    """Whatever a repository, a label or a reason is called, it is shown and not acted on."""
    whole = group("final", HOSTILE)
    text = page(
        made(
            overall=whole,
            by_kind={HOSTILE: group("final", value=0.9)},
            by_language={HOSTILE: whole},
            by_repo={HOSTILE: whole},
            by_size={HOSTILE: whole},
            recall_by_k={HOSTILE: {1: 0.1, 10: 0.2}, "final": {1: 0.1}},
            stages={HOSTILE: Seconds(1, 2)},
            settings={HOSTILE: [HOSTILE]},
            variants=(
                variant(HOSTILE, {}),
                variant("second " + HOSTILE, {HOSTILE: HOSTILE}, 0.1),
            ),
            comparison=comparison(0.1, "better", HOSTILE),
            skipped=(Skip(HOSTILE, 1, HOSTILE),),
            degradations={HOSTILE: 1},
            tool_version=HOSTILE,
        )
    )
    read = Reader(text)
    assert "script" not in read.tags
    assert "\u202e" not in text
    assert "$\\alpha_1^{$" in text


def test_a_sweep_over_a_number_is_drawn_by_its_values():
    """A sweep shows where a figure is highest, on an axis of the swept setting."""
    swept = [variant(f"rrf-k={k}", {"rrf-k": k}, d) for k, d in ((60, 0.1), (200, -0.1))]
    text = page(made(variants=(variant("rrf-k=10", {"rrf-k": 10}), *swept)))
    assert "Figures of the final ranking by rrf-k" in text
    assert "highest at rrf-k = 60 (0.600) and lowest at 200 (0.400)" in captions(text)[-1]
    assert '<th scope="row">rrf-k=200</th>' in text


def test_an_ablation_is_drawn_as_differences():
    """An ablation shows the paired difference of each variant, with its verdict in a table."""
    without = [
        variant(f"without {name}", {name: 0}, d) for name, d in (("rerank", -0.2), ("floor", 0.1))
    ]
    text = page(made(variants=(variant("as configured", {}), *without)))
    assert "Differences of the variants from as configured" in text
    assert "least favourably with “without rerank” (−0.2000)" in captions(text)[-1]
    assert '<th scope="row">without floor</th>' in text


def test_packs_that_show_what_they_should_not_are_named():
    """A case whose pack shows a path of not_gold is listed with the packs that do."""
    first = msgspec.structs.replace(
        variant("a", {}), outcomes=(measured("bad", shows=(2000, 0)), measured("good"))
    )
    text = page(made(variants=(first,)))
    row = '<th scope="row">bad</th><td>o/r</td><td>2,000 tokens, the whole pack</td>'
    assert row in text
    assert '<th scope="row">good</th>' not in text.partition('<section id="wrong">')[2]
    assert "2,000 tokens: 0.520 (0.420 to 0.620)" in text


def test_what_was_skipped_and_degraded_is_counted():
    """Skips are counted by reason with their first lines, and no list is longer than 100 rows."""
    skips = [Skip("not found", n) for n in range(1, 13)]
    skips += [Skip(f"reason {n:03}", n) for n in range(105)]
    first = msgspec.structs.replace(
        variant("a", {}), outcomes=(measured("x", degradations=("slow",)),)
    )
    text = page(made(skipped=tuple(skips), variants=(first,), degradations={"slow": 1}, **NO_PLOTS))
    assert "<td>12</td><td>1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more</td>" in text
    assert "and 6 more reasons" in text
    assert "<dd>117 lines</dd>" in text
    assert "<dd>1 case</dd>" in text


def test_results_without_their_optional_parts_make_a_page():
    """One ranking, no variant, no file metrics, no intervals and no languages still make a page."""
    bare = {"cases": 1, "final": {"chunk": {"mrr": Interval(0.5, None, None)}}}
    nothing = {"cases": 0}
    text = page(
        made(
            overall=bare,
            nontest=nothing,
            untouched=nothing,
            repo_mean=nothing,
            by_kind={},
            by_language={},
            by_repo={},
            by_size={},
            recall_by_k={},
            stages={},
            variants=(),
        )
    )
    assert "MRR 0.500." in captions(text)[0]
    assert "By language" not in text
    assert "Variants</h2>" not in text
    Reader(text)


def test_results_without_any_figure_make_a_page():
    """Where no case gives a figure, and where figures have a wrong shape, the rest is shown."""
    odd = {"cases": "many", "seconds": 3, "final": {"chunk": {"mrr": "high"}, "pack": 7}}
    nothing = {"cases": 0}
    empty = {"untouched": nothing, "repo_mean": nothing, "by_kind": {}, "recall_by_k": {}}
    text = page(made(overall=odd, nontest=nothing, by_repo={"o/r": odd}, **empty))
    assert "coderag-ci 1.2.3" in text
    Reader(text)


def test_many_repositories_and_variants_fit():
    """A large file gives a page with a row for each repository and each variant."""
    first, *others = [variant(f"v{n}", {"a": str(n)}, 0.01 * n) for n in range(64)]
    by_repo = {f"owner/{n:03}": group("final") for n in range(150)}
    text = page(made(variants=(first, *others), by_repo=by_repo))
    assert '<th scope="row">owner/149</th>' in text
    assert '<th scope="row">v63</th>' in text


def test_a_figure_draws_no_more_than_a_page_has_room_for():
    """A sweep of thousands gives a page in seconds, which says what it does not draw."""
    first, *others = [variant(f"v{n}", {"a": str(n)}, 0.01) for n in range(2_000)]
    text = page(made(variants=(first, *others)))
    assert any(one.endswith("1,940 more are not drawn.") for one in captions(text))
    assert '<th scope="row">v1999</th>' in text


@pytest.mark.parametrize("content", [b"", b"{}", b"<html>", b'{"schema_version": 1}'])
def test_a_file_that_is_no_results(command: Command, tmp_path: Path, content: bytes):
    """Another file ends with exit 3, says so and leaves nothing written."""
    (tmp_path / "r.json").write_bytes(content)
    result = command("eval", "report", "r.json", "--out", "r.html", cwd=tmp_path)
    assert result.code == 3
    assert "r.json is not the results of eval run" in result.err
    assert not (tmp_path / "r.html").exists()


def test_without_matplotlib_the_extra_is_named(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Who installed without the extra is told what to install."""
    (tmp_path / "r.json").write_bytes(results.encode(made()))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = command("eval", "report", "r.json", cwd=tmp_path)
    assert (result.code, result.out) == (3, "")
    assert "the plots need matplotlib" in result.err
    assert "pip install 'coderag-ci[eval]'" in result.err
