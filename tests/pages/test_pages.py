"""Pages: the chart's shapes, escaping, and the policy that lets nothing in."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from context_window.pages import Chart, ChartMarker, ChartPoint, chart_markup, document
from context_window.pages.shapes import (
    HEADROOM,
    HEIGHT,
    ROOM,
    ROOM_NARROW,
    STEPS_MAX,
    TICKS_MAX,
    WIDTH,
    Shapes,
    amount_text,
    money_mark,
    round_step,
)

HOSTILE = "</svg></style></script><script>alert(1)</script><img src=x onerror=alert(1)>\"'`{{ 7*7 }}{% raw %}&lt;"

amounts = st.one_of(st.integers(0, 2_000_000), st.floats(0, 1_000, allow_nan=False))
charts = st.integers(1, 8).flatmap(
    lambda bands: st.lists(st.tuples(*[amounts] * bands), max_size=40).map(
        lambda rows: Chart(
            "c", "Title", tuple(f"band {n}" for n in range(bands)), [ChartPoint(f"request {n}", row) for n, row in enumerate(rows)]
        )
    )
)


class Elements(HTMLParser):
    """The elements of a page, and its visible text."""

    VOID = frozenset({"meta", "link", "path", "rect", "line", "circle"})

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def named(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.elements if tag == name]


def levels(path: str) -> Iterator[tuple[float, float]]:
    """Yield the upper and the lower edge of each step of a band's outline."""
    heights = [float(height) for height in re.findall(r"V([\d.]+)H", path)]
    count = len(heights) // 2
    yield from zip(heights[:count], reversed(heights[count:]), strict=True)


@given(charts)
def test_each_band_is_as_high_as_its_amount_and_stands_on_the_one_below(chart: Chart) -> None:
    shapes = Shapes(chart)
    assert 1 <= shapes.steps <= STEPS_MAX
    scale = (HEIGHT - HEADROOM) / (shapes.step * shapes.steps)
    floors = [float(HEIGHT)] * len(chart.points)
    for band in shapes.bands:
        index = chart.bands.index(band.name)
        edges = list(levels(band.path))
        assert len(edges) == len(chart.points)
        for number, (point, (upper, lower)) in enumerate(zip(chart.points, edges, strict=True)):
            assert HEADROOM - 0.1 <= upper <= lower <= HEIGHT
            assert lower == pytest.approx(floors[number], abs=0.02)
            assert lower - upper == pytest.approx(point.amounts[index] * scale, abs=0.02)
            floors[number] = upper
    left_out = [index for index, name in enumerate(chart.bands) if name not in {band.name for band in shapes.bands}]
    assert not any(point.amounts[index] for point in chart.points for index in left_out)
    assert sum(float(point.width) for point in shapes.points) <= WIDTH + 0.01 * len(chart.points)


@given(charts)
def test_whoever_does_not_see_the_chart_can_read_it(chart: Chart) -> None:
    """Every picture has a name, every point can be reached with Tab and says its amounts, and a table has them too."""
    page = Elements(chart_markup(chart))
    pictures = [attributes for attributes in page.named("svg") if "aria-hidden" not in attributes]
    assert all(picture.get("aria-label") or picture.get("aria-labelledby") for picture in pictures)
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {name for picture in pictures for name in (picture.get("aria-labelledby") or "").split()} <= set(ids)
    points = [attributes for attributes in page.named("g") if attributes.get("class") == "point"]
    assert [point["tabindex"] for point in points] == ["0"] * len(chart.points)
    for point, attributes in zip(chart.points, points, strict=True):
        label = attributes["aria-label"] or ""
        assert label.startswith(point.label)
        assert all((f"{name} " in label) == bool(amount) for name, amount in zip(chart.bands, point.amounts, strict=True))
    assert len(page.named("tr")) == (len(chart.points) + 1 if chart.points else 0)


@given(st.integers(1, 800), st.integers(1, 40))
def test_names_below_a_chart_keep_their_distance(count: int, every: int) -> None:
    """Whatever points are to be named, no name touches the next, and those that a telephone shows are further apart still."""
    points = [ChartPoint(f"p {n}", (1,), tick=f"{n}" if n % every == 0 else "") for n in range(count)]
    ticks = Shapes(Chart("c", "T", ("B",), points)).ticks
    for shown, room in ((ticks, ROOM), ([tick for tick in ticks if not tick.is_minor], ROOM_NARROW)):
        lefts = {"start": 0.0, "middle": room / 2, "end": room}
        spans = [(start := float(tick.x) / 100 - lefts[tick.anchor], start + room) for tick in shown]
        assert all(before <= after + 1e-3 for (_, before), (after, _) in pairwise(spans))
        assert all(start >= -1e-3 and end <= 1 + 1e-3 for start, end in spans if room == ROOM)
    assert [tick.text for tick in ticks[:1]] == ["0"]
    assert count / round_step(count) <= TICKS_MAX


@pytest.mark.parametrize(
    ("amount", "text"), [(0, "$0"), (1500, "$1,500"), (0.25, "$0.25"), (2.5, "$2.50"), (0.0025, "$0.0025"), (1e6, "$1,000,000")]
)
def test_an_axis_of_money_has_dollars_and_thousands(amount: float, text: str) -> None:
    assert money_mark(amount) == text
    assert "$" in Shapes(Chart("c", "T", ("B",), [ChartPoint("p", (3,))], unit="US dollars")).axis[0]


def test_no_text_becomes_markup() -> None:
    """Whatever a log calls something, the page shows these words."""
    hostile = Chart(
        "c", HOSTILE, (HOSTILE,), [ChartPoint(HOSTILE, (3,), (ChartMarker("trim", HOSTILE),), HOSTILE)], HOSTILE, HOSTILE, 7, HOSTILE
    )
    plain = Chart("c", "T", ("B",), [ChartPoint("P", (3,), (ChartMarker("trim", "M"),), "K")], "U", "N", 7, "L")
    page = Elements(document(HOSTILE, chart_markup(hostile)).html)
    same = Elements(document("T", chart_markup(plain)).html)
    assert [(tag, sorted(attributes)) for tag, attributes in page.elements] == [
        (tag, sorted(attributes)) for tag, attributes in same.elements
    ]
    assert HOSTILE in page.text
    assert not any(name.startswith("on") or name == "style" for _, attributes in page.elements for name in attributes)


def test_a_page_loads_and_runs_only_what_is_in_it() -> None:
    """The policy forbids everything but the page's own style and scripts, which it names by their digests."""
    script = "console.log('own')"
    page = document("T", chart_markup(Chart("c", "T", ("B",), [ChartPoint("P", (3,))])) + Markup("<p>x</p>"), scripts=[script])
    rules = dict(rule.split(" ", 1) for rule in page.policy.split("; "))
    assert rules.pop("default-src") == rules.pop("base-uri") == rules.pop("form-action") == "'none'"
    assert rules.pop("img-src") == "data:"
    blocks = {tag: re.findall(f"<{tag}>(.*?)</{tag}>", page.html, re.DOTALL) for tag in ("style", "script")}
    digests = {
        tag: [f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in texts]
        for tag, texts in blocks.items()
    }
    assert rules == {"style-src": " ".join(digests["style"]), "script-src": " ".join(digests["script"])}
    assert script in blocks["script"]
    assert [attributes for tag, attributes in Elements(page.html).elements if attributes.get("http-equiv")] == [
        {"http-equiv": "Content-Security-Policy", "content": page.policy}
    ]
    addresses = [
        value or "" for _, attributes in Elements(page.html).elements for name, value in attributes.items() if name in {"src", "href"}
    ]
    assert [address.split(",")[0] for address in addresses] == ["data:image/svg+xml"]
    assert "connect-src 'self'" in document("T", Markup(""), fetches=True).policy


def test_a_chart_whose_amounts_do_not_match_its_bands_is_refused() -> None:
    with pytest.raises(ValueError, match="for each of the 2 bands"):
        Chart("c", "T", ("a", "b"), [ChartPoint("p", (1,))])
    with pytest.raises(ValueError, match="at most 8 bands, not 9"):
        Chart("c", "T", ("a", "b"), [], first_band=7)


@pytest.mark.parametrize(("amount", "text"), [(10**400, f"{10**400:,}"), (1234, "1,234"), (0.5, "0.50"), (2.0, "2")])
def test_an_amount_of_any_size_is_shown(amount: float, text: str) -> None:
    assert amount_text(amount) == text
