"""A usage report drawn: where the tokens go, for any width. The numbers are the report's own; only percentages are made here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from session.items import MessageCategory

from ..usage import UsageReport
from .cells import bar, grid, length
from .glyphs import BAD, FREE, OVERHEAD, QUIET, STRONG, STYLES, Glyphs
from .lines import Column, Line, Span, beside, fitted, flow, table, width_of, wrapped

WIDEST = 112
"""Columns at most: lines longer than this are hard to follow from a name to its number."""
WITH_GRID = 72
"""Columns from which the grid has room beside the table."""
GRID = 22
"""Columns that the grid takes, the gap beside it included."""
TWO_LISTS = 100
"""Columns from which tools and items stand side by side."""
MINIMAL = 40
"""Columns below which only the table is shown."""

TOOLS = 8
"""Tools that are listed."""
BARS = 14
"""Columns of the bar beside the largest of them."""
LARGEST = "Largest items"


def draw_usage(report: UsageReport, width: int, glyphs: Glyphs, *, brief: bool = False) -> list[Line]:
    """The lines of the report, none of them wider than `width` columns.

    Args:
        report: The report.
        width: Columns.
        glyphs: What to draw with.
        brief: Whether to leave out the lists of tools and items, and what the numbers rest on.
    """
    width = min(width, WIDEST)
    if width < MINIMAL:
        return [*heading(report.title, "", width, glyphs), *_table(report, width, glyphs)]
    lines = [*heading(report.title, report.model or "", width, glyphs), *flow(_headline(report), width, glyphs), []]
    amounts = _amounts(report)
    if width >= WITH_GRID:
        rows = _table(report, width - GRID, glyphs)
        lines += beside(grid(amounts, glyphs), rows, gap=3, wide=GRID - 3)
    else:
        rows = _table(report, width, glyphs)
        lines += [bar(amounts, width, glyphs), [], *rows]
    if any(span.text == glyphs.flag for row in rows for span in row):
        lines += [[], *_quiet(f"{glyphs.flag} above its share: trimmed first when the window is full", width, glyphs)]
    if brief:
        return lines
    lines += _lists(report, width, glyphs)
    return [*lines, [], *flow(_counts(report), width, glyphs), *(line for note in notes(report) for line in _quiet(note, width, glyphs))]


def heading(title: str, about: str, width: int, glyphs: Glyphs) -> list[Line]:
    """A title, and what it is about where there is room for it; no line where there is neither."""
    title, about = (fitted(text, width, glyphs) for text in (title or about, about if title else ""))
    return flow([Span(title, STRONG), Span(about, QUIET)] if about else [Span(title, STRONG)], width, glyphs) if title else []


def percent(part: int, whole: int) -> str:
    """A part of a whole in percent."""
    return _percent(part, round(1000 * part / whole))


def tenths(parts: Sequence[int], whole: int) -> list[int]:
    """Parts of a whole in tenths of a percent, by largest remainder: parts that make up the whole sum to 1000."""
    exact = [1000 * part for part in parts]
    found = [amount // whole for amount in exact]
    left = round(sum(exact) / whole) - sum(found)
    for place in sorted(range(len(parts)), key=lambda place: -(exact[place] % whole))[:left]:
        found[place] += 1
    return found


def _percent(part: int, tenth: int) -> str:
    if part and not tenth:
        return "<0.1%"
    return f"{tenth // 10:,}%" if tenth >= 10_000 else f"{tenth // 10}.{tenth % 10}%"


def _headline(report: UsageReport) -> Iterator[Span]:
    yield Span(f"{report.total:,} of {report.budget:,} tokens", STRONG)
    if report.over_budget:
        yield Span(f"over budget by {-report.available:,}", BAD)
    else:
        yield Span(f"{_shares(report)[5]} used")
        yield Span(f"{report.available:,} free")


def _amounts(report: UsageReport) -> dict[str, int]:
    """What the cells stand for: all of the budget, or all that is used where that is more."""
    used = {row.category.value: row.tokens for row in report.rows} | {OVERHEAD: report.overhead}
    return used | {FREE: max(0, report.available)}


def _borrows(report: UsageReport) -> list[bool]:
    """For each row, whether it holds more than its share and trims may touch it."""
    return [row.tokens > row.share and row.category is not MessageCategory.SYSTEM for row in report.rows]


def _shares(report: UsageReport) -> list[str]:
    """The percentages of the budget, a row each: categories, overhead, total, free or over."""
    used = [row.tokens for row in report.rows] + [report.overhead]
    free = max(0, report.available)
    found = tenths([*used, free], report.budget)
    shown = [_percent(part, tenth) for part, tenth in zip(used, found[:-1], strict=True)]
    rest = percent(-report.available, report.budget) if report.over_budget else _percent(free, found[-1])
    return [*shown, _percent(report.total, sum(found[:-1])), rest]


def _share_of(report: UsageReport) -> Callable[[int], str]:
    """The percentage of an amount in a list: of one that the table has too, the table's, which is rounded so that its rows sum up."""
    amounts = [*(row.tokens for row in report.rows), report.overhead, report.total]
    in_table = dict(zip(amounts, _shares(report), strict=False))
    return lambda tokens: in_table.get(tokens) or percent(tokens, report.budget)


def _table(report: UsageReport, width: int, glyphs: Glyphs) -> list[Line]:
    names = [row.category.value for row in report.rows] + [OVERHEAD, "total", FREE]
    tokens = [row.tokens for row in report.rows] + [report.overhead, report.total, report.available]
    styles = ["", "", "", "", "", STRONG, QUIET]
    over = report.over_budget
    if over:
        names[-1], tokens[-1], styles[-1] = "over budget by", -report.available, BAD
    marks = [Span(glyphs.cells.get(name, ""), STYLES.get(name, "")) for name in names]
    blank = [Span("")] * 3
    columns = [
        Column("", marks, left=True, keep=5),
        Column("", [Span(name, style) for name, style in zip(names, styles, strict=True)], left=True, elastic=True, whole=True),
        Column("tokens", [Span(f"{amount:,}", style) for amount, style in zip(tokens, styles, strict=True)]),
        Column("of budget", [Span(share, style) for share, style in zip(_shares(report), styles, strict=True)], keep=4),
        Column("share", [*(Span(f"{row.share:,}", QUIET) for row in report.rows), *blank], keep=2),
        Column("", [*(Span(glyphs.flag if borrows else "", "yellow") for borrows in _borrows(report)), *blank], left=True, keep=1),
        Column("items", [*(Span(f"{row.items:,}") for row in report.rows), Span(""), Span(f"{report.items:,}", STRONG), Span("")], keep=3),
    ]
    return table(columns, width, glyphs)


def _lists(report: UsageReport, width: int, glyphs: Glyphs) -> list[Line]:
    """Tools by tokens, and the largest items."""
    if width >= TWO_LISTS and report.tools and report.largest:
        half = (width - 4) // 2
        return [[], *beside(_tools(report, half, glyphs), _largest(report, width - 4 - half, glyphs), gap=4, wide=half)]
    lines: list[Line] = []
    names = [LARGEST, *(tool.name for tool in report.tools[:TOOLS]), *(item.what for item in report.largest)]
    longest = min(width // 2, max(width_of(glyphs.shown(name)) for name in names))  # so that the numbers of both are in line
    for block in (_tools(report, width, glyphs, longest), _largest(report, width, glyphs, longest)):
        lines += [[], *block] if block else []
    return lines


def _tools(report: UsageReport, width: int, glyphs: Glyphs, names: int = 0) -> list[Line]:
    tools = report.tools[:TOOLS]
    if not tools:
        return []
    share = _share_of(report)
    columns = [
        Column("Tools", [Span(glyphs.shown(tool.name)) for tool in tools], left=True, elastic=True, at_least=names),
        Column("tokens", [Span(f"{tool.tokens:,}") for tool in tools]),
        Column("of budget", [Span(share(tool.tokens), QUIET) for tool in tools], keep=1),
        Column("calls", [Span(f"{tool.calls:,}") for tool in tools], keep=4),
    ]
    if any(tool.cleared for tool in tools):
        columns.append(Column("cleared", [Span(f"{tool.cleared:,}" if tool.cleared else "") for tool in tools], keep=3))
    lengths = [Span(length(tool.tokens, tools[0].tokens, BARS, glyphs), STYLES[MessageCategory.SYSTEM_OUTPUT.value]) for tool in tools]
    columns.append(Column("", lengths, left=True, keep=2))
    more = len(report.tools) - len(tools)
    return [*table(columns, width, glyphs), *(_quiet(f"{glyphs.ellipsis} and {more:,} more", width, glyphs) if more else [])]


def _largest(report: UsageReport, width: int, glyphs: Glyphs, names: int = 0) -> list[Line]:
    items = report.largest
    if not items:
        return []
    share = _share_of(report)
    columns = [
        Column(
            LARGEST, [Span(glyphs.shown(item.what), STYLES[item.category.value]) for item in items], left=True, elastic=True, at_least=names
        ),
        Column("tokens", [Span(f"{item.tokens:,}") for item in items]),
        Column("of budget", [Span(share(item.tokens), QUIET) for item in items], keep=2),
        Column("id", [Span(fitted(item.item_id, 24, glyphs), QUIET) for item in items], left=True, elastic=True, keep=1),
    ]
    return table(columns, width, glyphs)


def _counts(report: UsageReport) -> Iterator[Span]:
    yield Span(_many(report.items, "item"))
    yield Span(_many(report.messages, "message"))
    if report.images:
        yield Span(f"{_many(report.images, 'image')} ({report.image_tokens:,} tokens)")
    if report.compacted_items:
        yield Span(f"{_many(report.compacted_items, 'item')} behind summaries, at no cost")


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def notes(report: UsageReport) -> tuple[str, str]:
    """What the budget is and where it comes from; what counted, and how well."""
    budget = f"budget {report.budget:,}"
    if report.budget_from:
        budget += f": {report.budget_from}"
    if report.window is not None and report.budget > report.window:
        budget += f", more than the model's window of {report.window:,}"
    elif report.window is not None and report.window != report.budget:
        kept = f" less {report.reserve:,} kept for the answer" if report.reserve else ""
        budget += f" (window {report.window:,}{kept})"
    counter = f"counted with {report.counter}"
    if report.counter_problem:
        counter += f", since {report.counter_problem}"
    if report.reported_tokens is not None:
        counter += f", anchored on the provider's report of {report.reported_tokens:,}: an upper bound"
    elif report.settled_tokens is not None:
        counter += f", anchored on the {report.settled_tokens:,} that this view cost when it was made: an upper bound"
    elif report.expected_error:
        counter += f": estimates, usually within {report.expected_error:.0%} of what the provider counts"
    if report.provider_tokens is not None:
        counter += f"; the provider counts {report.provider_tokens:,}"
    return budget, counter


def _quiet(text: str, width: int, glyphs: Glyphs) -> list[Line]:
    return [[Span(line, QUIET)] for line in wrapped(text, width, glyphs)]
