"""Figures as SVG inside a page: lines, dots with intervals, bars.

Text stays text and colours are the page's, so that a figure is read in a light and in a dark
scheme. Equal input gives equal bytes.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from xml.etree import ElementTree as ET

import matplotlib as mpl
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.transforms import ScaledTranslation

from coderag_ci.eval.interval import Interval
from coderag_ci.eval.results import Seconds
from coderag_ci.render.text import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.transforms import Transform

_WIDTH = 7.2  # inches; the page scales it
_MOST_LABEL = 34  # characters of a name in a figure
_INK, _MUTED, _GRID = "#010101", "#020202", "#030303"
_SERIES = tuple(f"#0400{i:02x}" for i in range(1, 7))
# Colours of the page stand in for these; the palette is told apart with any colour vision.
_ON_PAGE = {
    _INK: "currentColor",
    _MUTED: "var(--muted)",
    _GRID: "var(--grid)",
    **{colour: f"var(--s{i})" for i, colour in enumerate(_SERIES, 1)},
}
_RC: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "coderag-ci",
    "text.parse_math": False,  # names are data: $ is a dollar sign
    "text.color": _INK,
    "font.size": 9,
    "axes.labelcolor": _INK,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.edgecolor": _MUTED,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": _GRID,
    "xtick.color": _MUTED,
    "ytick.color": _MUTED,
    "xtick.labelcolor": _INK,
    "ytick.labelcolor": _INK,
    "legend.frameon": False,
}


class Style(NamedTuple):
    """How one series is drawn."""

    colour: str
    dash: str
    marker: str
    width: float


class Axis(NamedTuple):
    """The axes of a figure of lines."""

    x: str
    y: str
    log: bool = False
    from_zero: bool = True


class Panel(NamedTuple):
    """One measure: by name of the series, an interval or None for each row."""

    title: str
    series: Mapping[str, Sequence[Interval | None]]


_MERGED = {
    "fused": Style(_MUTED, ":", "s", 1.4),
    "reranked": Style(_MUTED, "-", "D", 1.4),
    "final": Style(_INK, "-", "o", 2.8),
}
_MARKERS = "v^<>Pd"


def styles(names: Sequence[str]) -> dict[str, Style]:
    """Return a style for each series: merged rankings without a colour, ``final`` the strongest."""
    others = [name for name in names if name not in _MERGED]
    found = {
        name: Style(_SERIES[i % 6], ("--", "-.", ":")[i // 6 % 3], _MARKERS[i % 6], 1.3)
        for i, name in enumerate(others)
    }
    return {**found, **_MERGED}


def lines(name: str, title: str, drawn: Mapping[str, Mapping[float, Interval]], axis: Axis) -> str:
    """Draw one line for each series; values by x. Each is named at its end."""

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        style = styles(list(drawn))
        xs = sorted({x for values in drawn.values() for x in values})
        _scale_x(axes, xs, axis)
        for i, (series, values) in enumerate(drawn.items()):
            # Beside each other, so that no interval lies over another.
            aside = 0.0 if axis.from_zero else (i - (len(drawn) - 1) / 2) * 6 / 72
            shift = ScaledTranslation(aside, 0, figure.dpi_scale_trans)
            _line(axes, sorted(values.items()), style[series], axes.transData + shift)
        axes.set_title(axis.y)
        axes.set_xlabel(axis.x)
        axes.set_ylim(*_range_y(drawn, axis))
        ends = {series: values[max(values)].value or 0.0 for series, values in drawn.items()}
        _name_ends(axes, ends, style)

    return _svg(name, title, max(3.6, 1.2 + 0.26 * len(drawn)), draw)


def _line(
    axes: Axes, points: Sequence[tuple[float, Interval]], style: Style, place: Transform
) -> None:
    for x, one in points:
        if one.low is not None and one.high is not None:
            axes.plot(
                [x, x], [one.low, one.high], color=style.colour, marker="_", linewidth=1,
                clip_on=False, transform=place,
            )  # fmt: skip
    axes.plot(
        [x for x, _ in points],
        [one.value or 0.0 for _, one in points],
        color=style.colour,
        linestyle=style.dash,
        linewidth=style.width,
        marker=style.marker,
        markersize=5 if style.colour == _INK else 4,
        zorder=4 if style.colour == _INK else 3,
        clip_on=False,
        transform=place,
    )


def _range_y(drawn: Mapping[str, Mapping[float, Interval]], axis: Axis) -> tuple[float, float]:
    ones = [one for values in drawn.values() for one in values.values()]
    ys = [y for one in ones for y in (one.value, one.low, one.high) if y is not None]
    low, high = min(ys), max(ys)
    pad = (high - low or 0.1) * 0.06
    return (0.0 if axis.from_zero else low - pad), high + pad


def _scale_x(axes: Axes, xs: Sequence[float], axis: Axis) -> None:
    if axis.log:
        axes.set_xscale("log")
    if len(xs) > 1:
        pad = 0.0 if axis.from_zero else 0.04  # room for intervals beside the axis
        left = xs[0] * (xs[0] / xs[-1]) ** pad if axis.log else xs[0] - (xs[-1] - xs[0]) * pad
        axes.set_xlim(left, xs[-1])
    axes.minorticks_off()
    to_axes = axes.transScale + axes.transLimits
    kept: dict[float, str] = {}
    free = -1.0  # where the last number ends
    for x in xs:
        place, text = float(to_axes.transform((x, 0.0))[0]), f"{x:g}"
        half = 0.009 * (len(text) + 1)
        if place - half >= free:
            kept[x] = text
            free = place + half
    axes.set_xticks(list(kept), list(kept.values()))


def _name_ends(axes: Axes, ends: Mapping[str, float], style: Mapping[str, Style]) -> None:
    """Write each name beside the end of its line, moved apart where ends are close."""
    low, high = axes.get_ylim()
    axes.set_ylim(low, high)
    gap = (high - low) * min(0.062, 0.95 / len(ends))
    ordered = sorted(ends, key=lambda series: ends[series])
    places: list[float] = []
    for series in ordered:
        places.append(max(ends[series], places[-1] + gap) if places else ends[series])
    for i, (series, place) in enumerate(zip(ordered, places, strict=True)):
        y = min(place, high - gap * (len(places) - 1 - i))  # none is pushed over the top
        across = axes.get_yaxis_transform()
        colour = style[series].colour
        axes.plot(
            [1.005, 1.04], [ends[series], y], transform=across, clip_on=False, color=colour, lw=0.7
        )
        axes.text(
            1.05,
            y,
            label(series),
            transform=across,
            va="center",
            color=colour,
            weight="bold" if series == "final" else "normal",
        )


def dots(
    name: str, title: str, rows: Sequence[str], panels: Sequence[Panel], *, zero: bool = False
) -> str:
    """Draw values with their intervals, a row each; ``zero``: differences, with a line at 0."""
    most = max(len(panel.series) for panel in panels)

    def draw(figure: Figure) -> None:
        for number, panel in enumerate(panels, 1):
            axes = figure.add_subplot(1, len(panels), number)
            handles = []
            for i, (series, points) in enumerate(panel.series.items()):
                offset = (i - (most - 1) / 2) * 0.24
                handles.append(_dots(axes, points, rows, i if most > 1 else None, offset))
                handles[-1].set_label(series)
            if most > 1:
                axes.legend(
                    handles=handles, loc="lower right", bbox_to_anchor=(1, 1), ncols=most,
                    borderaxespad=0.2, handletextpad=0.2,
                )  # fmt: skip
            _rows(axes, rows if number == 1 else [""] * len(rows))
            axes.set_title(panel.title, pad=20 if most > 1 else 6)
            if zero:
                axes.axvline(0, color=_INK, linewidth=1)
            else:
                axes.set_xlim(left=0)

    return _svg(name, title, 0.8 + len(rows) * (0.27 + 0.1 * (most - 1)), draw)


def _dots(
    axes: Axes, points: Sequence[Interval | None], rows: Sequence[str], series: int | None,
    offset: float,
) -> mpl.lines.Line2D:  # fmt: skip
    """Draw the points of a series; returns what stands for it in the legend."""
    colour = _SERIES[0 if series is None else (1, 2, 0)[series % 3]]
    marker = "o" if series is None else "v^o"[series % 3]
    for y, (row, one) in enumerate(zip(rows, points, strict=True)):
        if one is None or one.value is None:
            continue
        ink = _INK if row == "final" and series is None else colour
        size = 7 if row == "final" else 5
        if one.low is not None and one.high is not None:
            axes.plot(
                [one.low, one.high], [y + offset] * 2, color=ink, marker="|", markersize=5,
                linewidth=2 if row == "final" else 1.2, clip_on=False,
            )  # fmt: skip
        axes.plot(
            [one.value], [y + offset], color=ink, marker=marker, markersize=size, clip_on=False
        )
    return mpl.lines.Line2D([], [], color=colour, marker=marker, markersize=5, linewidth=1.2)


def _rows(axes: Axes, rows: Sequence[str]) -> None:
    axes.set_yticks(range(len(rows)), [label(row) for row in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    for row, tick in zip(rows, axes.get_yticklabels(), strict=True):
        if row == "final":
            tick.set_fontweight("bold")


def bars(name: str, title: str, rows: Mapping[str, Seconds]) -> str:
    """Draw the median as a bar and the 95th percentile as its whisker, with both in words."""

    def draw(figure: Figure) -> None:
        axes = figure.add_subplot()
        for y, one in enumerate(rows.values()):
            axes.barh(y, one.median, height=0.55, color=_SERIES[0])
            axes.plot([one.median, one.p95], [y, y], color=_INK, linewidth=1)
            axes.plot([one.p95], [y], color=_INK, marker="|", markersize=8)
            axes.annotate(
                f"{one.median:.3f} s (p95 {one.p95:.3f})",
                (max(one.median, one.p95), y),
                xytext=(6, 0),
                textcoords="offset points",
                va="center",
                annotation_clip=False,
            )
        _rows(axes, list(rows))
        axes.grid(visible=False, axis="y")
        axes.set_xlim(left=0)
        axes.set_xlabel("seconds")

    return _svg(name, title, 0.8 + 0.32 * len(rows), draw)


def label(text: str) -> str:
    """Return a name as a figure shows it: one line, printable, not too long."""
    text = _printable(text)
    return text if len(text) <= _MOST_LABEL else text[: _MOST_LABEL - 1] + "…"


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() else "\ufffd" for c in one_line(text))


def _svg(name: str, title: str, height: float, draw: Callable[[Figure], None]) -> str:
    """Draw and return an SVG element for a page. ``name``: what its ids begin with."""
    written = io.StringIO()
    with warnings.catch_warnings(), mpl.rc_context():
        warnings.simplefilter("ignore")  # a glyph that our font lacks, the reader's has
        mpl.rcdefaults()
        mpl.rcParams.update(_RC)
        figure = Figure(figsize=(_WIDTH, height), layout="constrained")
        FigureCanvasSVG(figure)
        draw(figure)
        figure.savefig(written, format="svg", transparent=True, metadata={"Date": None})
    root = ET.fromstring(written.getvalue())  # noqa: S314 # what we just wrote
    root.attrib.pop("width")
    root.attrib.pop("height")
    _adapt(root, name)
    root.attrib.update({"role": "img", "aria-label": _printable(title)})
    return ET.tostring(root, encoding="unicode")


def _adapt(element: ET.Element, name: str) -> None:
    """Leave out what a page has no use for; make ids the figure's own and colours the page's."""
    element.tag = _local(element.tag)
    found = {_local(key): value for key, value in element.attrib.items()}
    element.attrib.clear()
    for key, value in found.items():
        if key == "id":
            value = f"{name}-{value}"  # noqa: PLW2901
        elif key in ("href", "clip-path"):
            value = value.replace("#", f"#{name}-", 1)  # noqa: PLW2901
        elif key in ("style", "fill", "stroke"):
            value = re.sub(r"#[0-9a-f]{6}", _on_page, value)  # noqa: PLW2901
        element.set(key, value)
    for child in list(element):
        if _local(child.tag) in ("metadata", "style"):
            element.remove(child)
        else:
            _adapt(child, name)


def _on_page(colour: re.Match[str]) -> str:
    return _ON_PAGE.get(colour[0], colour[0])


def _local(name: str) -> str:
    return name.rpartition("}")[2]
