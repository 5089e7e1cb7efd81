"""A usage report as lines: where the tokens go, for any width. The numbers are the report's; only percentages are computed here."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from session.items import MessageCategory

from ..decision.plan_text import definition_words
from ..usage.report import UsageReport
from .charts import bar, grid, length
from .glyphs import BAD, FREE, OVERHEAD, QUIET, STRONG, STYLES, Glyphs
from .lines import Column, Line, Span, fit, flow, side_by_side, table, width_of, wrapped
from .render import Draw, Drawing, ansi_of, text_of

WIDEST = 112
"""Maximum width in columns. In longer lines it is hard to follow a name to its number."""
WITH_GRID = 72
"""Columns from which there is room for the grid beside the table."""
GRID = 22
"""Columns of the grid and the gap beside it."""
TWO_LISTS = 100
"""Columns from which tools and items are listed side by side."""
MINIMAL = 40
"""Columns below which only the table is printed."""

TOOLS = 8
"""Tools that are listed."""
BARS = 14
"""Columns of the bar of the largest tool."""
LARGEST = "Largest items"
LEGEND = (
    "SYSTEM: instructions. CONTEXT: rules and files that were put in. DIALOG: messages of user and model. SYSTEM_OUTPUT: tool calls and "
    "their results. overhead: what is in no message, such as tools. share: in a full window, what is above it is trimmed first. free: room "
    "up to the budget."
)
"""The words of the table, for who sees it for the first time."""


def usage_lines(report: UsageReport, width: int, glyphs: Glyphs, *, brief: bool = False) -> list[Line]:
    """Return the lines of the report, none wider than `width` columns.

    Args:
        report: The report.
        width: Columns.
        glyphs: Characters to draw with.
        brief: True to leave out the lists of tools and items, and the footnotes.
    """
    width = min(width, WIDEST)
    if width < MINIMAL:
        return [*heading(report.title, "", width, glyphs), *_table(report, width, glyphs)]
    lines = [*heading(report.title, report.model or "", width, glyphs), *flow(_headline(report), width, glyphs), []]
    amounts = _amounts(report)
    if width >= WITH_GRID:
        rows = _table(report, width - GRID, glyphs)
        lines += side_by_side(grid(amounts, glyphs), rows, gap=3, first_width=GRID - 3)
    else:
        rows = _table(report, width, glyphs)
        lines += [bar(amounts, width, glyphs), [], *rows]
    if any(span.text == glyphs.flag for row in rows for span in row):
        lines += [[], *_quiet(f"{glyphs.flag} above its share: trimmed first when the window is full", width, glyphs)]
    if brief:
        return lines
    lines += [[], *_quiet(LEGEND, width, glyphs)]
    lines += _lists(report, width, glyphs)
    lines_below = (line for footnote in footnotes(report) for line in _quiet(footnote, width, glyphs))
    overhead = [Span(glyphs.safe(span.text), span.style) for span in _overhead(report)]
    below = flow(overhead, width, glyphs) if overhead else []
    return [*lines, [], *flow(_counts(report), width, glyphs), *below, *lines_below]


def other_session_lines(sessions: Sequence[Mapping[str, Any]], main_count: int, width: int, glyphs: Glyphs) -> list[Line]:
    """Return a list of the other sessions of a transcript: sub-agents, or sessions in the same file.

    Args:
        sessions: For each session `session_id`, `agent_id`, `total` (tokens) and `items`.
        main_count: Number of sessions in the file that could be the main one. If there are several, a footnote says so.
        width: Columns.
        glyphs: Characters to draw with.
    """
    width = min(width, WIDEST)
    names = [f"agent {session['agent_id']}" if session["agent_id"] else f"session {session['session_id']}" for session in sessions]
    columns = [
        Column("Also in this transcript", [Span(glyphs.safe(name)) for name in names], is_left=True, is_elastic=True),
        Column("tokens", [Span(f"{session['total']:,}") for session in sessions]),
        Column("items", [Span(f"{session['items']:,}") for session in sessions], priority=1),
    ]
    footnote = "not included above; --session ID shows one of them"
    if main_count > 1:
        footnote += f" (any of {main_count:,} sessions in this file could be the main one; the first is shown)"
    return [*table(columns, width, glyphs), *_quiet(footnote, width, glyphs)]


def heading(title: str, subject: str, width: int, glyphs: Glyphs) -> list[Line]:
    """Return the title and the subject in one line, or in two if they do not fit; no line if both are empty."""
    title, subject = (fit(text, width, glyphs) for text in (title or subject, subject if title else ""))
    return flow([Span(title, STRONG), Span(subject, QUIET)] if subject else [Span(title, STRONG)], width, glyphs) if title else []


def percent(part: int, total: int) -> str:
    """Return a part of a total in percent."""
    return _percent(part, round(1000 * part / total))


def tenths(parts: Sequence[int], total: int) -> list[int]:
    """Return parts of a total in tenths of a percent, by largest remainder: parts that make up the total sum to 1000."""
    scaled = [1000 * part for part in parts]
    rounded = [amount // total for amount in scaled]
    missing = round(sum(scaled) / total) - sum(rounded)
    for index in sorted(range(len(parts)), key=lambda index: -(scaled[index] % total))[:missing]:
        rounded[index] += 1
    return rounded


def _percent(part: int, tenth: int) -> str:
    if part and not tenth:
        return "<0.1%"
    return f"{tenth // 10:,}%" if tenth >= 10_000 else f"{tenth // 10}.{tenth % 10}%"


def _headline(report: UsageReport) -> Iterator[Span]:
    about = "about " if report.unknown else ""
    yield Span(f"{about}{report.total:,} of {report.budget:,} tokens", STRONG)
    if report.over_budget:
        yield Span(f"over budget by {-report.available:,}", BAD)
    else:
        yield Span(f"{_shares(report)[5]} used")
        yield Span(f"{report.available:,} free")


def _amounts(report: UsageReport) -> dict[str, int]:
    """Return the amounts that the cells stand for. They sum to the budget, or to the total if that is more."""
    used = {row.category.value: row.tokens for row in report.rows} | {OVERHEAD: report.overhead}
    return used | {FREE: max(0, report.available)}


def _above_share(report: UsageReport) -> list[bool]:
    """Return for each row whether it is above its share and may be trimmed."""
    return [row.tokens > row.share and row.category is not MessageCategory.SYSTEM for row in report.rows]


def _shares(report: UsageReport) -> list[str]:
    """Return each row's percentage of the budget: categories, overhead, total, free or over."""
    used = [row.tokens for row in report.rows] + [report.overhead]
    free = max(0, report.available)
    rounded = tenths([*used, free], report.budget)
    texts = [_percent(part, tenth) for part, tenth in zip(used, rounded[:-1], strict=True)]
    rest = percent(-report.available, report.budget) if report.over_budget else _percent(free, rounded[-1])
    return [*texts, _percent(report.total, sum(rounded[:-1])), rest]


def _share_of(report: UsageReport) -> Callable[[int], str]:
    """Return a function that gives the percentage of an amount in a list.

    An amount that is also in the table gets the table's percentage, which is rounded so that the rows sum up.
    """
    amounts = [*(row.tokens for row in report.rows), report.overhead, report.total]
    in_table = dict(zip(amounts, _shares(report), strict=False))
    return lambda tokens: in_table.get(tokens) or percent(tokens, report.budget)


def _table(report: UsageReport, width: int, glyphs: Glyphs) -> list[Line]:
    names = [row.category.value for row in report.rows] + [OVERHEAD, "total", FREE]
    tokens = [row.tokens for row in report.rows] + [report.overhead, report.total, report.available]
    styles = ["", "", "", "", "", STRONG, QUIET]
    if report.over_budget:
        names[-1], tokens[-1], styles[-1] = "over budget by", -report.available, BAD
    cells = [Span(glyphs.cells.get(name, ""), STYLES.get(name, "")) for name in names]
    flags = [Span(glyphs.flag if is_above else "", "yellow") for is_above in _above_share(report)]
    counts = [*(Span(f"{row.items:,}") for row in report.rows), Span(""), Span(f"{report.items:,}", STRONG), Span("")]
    blank = [Span("")] * 3
    columns = [
        Column("", cells, is_left=True, priority=5),
        Column("", [Span(*cell) for cell in zip(names, styles, strict=True)], is_left=True, is_elastic=True, is_last_resort=True),
        Column("tokens", [Span(f"{amount:,}", style) for amount, style in zip(tokens, styles, strict=True)]),
        Column("of budget", [Span(share, style) for share, style in zip(_shares(report), styles, strict=True)], priority=4),
        Column("share", [*(Span(f"{row.share:,}", QUIET) for row in report.rows), *blank], priority=2),
        Column("", [*flags, *blank], is_left=True, priority=1),
        Column("items", counts, priority=3),
    ]
    return table(columns, width, glyphs)


def _lists(report: UsageReport, width: int, glyphs: Glyphs) -> list[Line]:
    """Return the tools by tokens, and the largest items."""
    if width >= TWO_LISTS and report.tools and report.largest:
        half = (width - 4) // 2
        return [[], *side_by_side(_tools(report, half, glyphs), _largest(report, width - 4 - half, glyphs), gap=4, first_width=half)]
    lines: list[Line] = []
    names = [LARGEST, *(tool.name for tool in report.tools[:TOOLS]), *(item.what for item in report.largest)]
    longest = min(width // 2, max(width_of(glyphs.safe(name)) for name in names))  # aligns the numbers of both lists
    for block in (_tools(report, width, glyphs, longest), _largest(report, width, glyphs, longest)):
        lines += [[], *block] if block else []
    return lines


def _tools(report: UsageReport, width: int, glyphs: Glyphs, name_width: int = 0) -> list[Line]:
    tools = report.tools[:TOOLS]
    if not tools:
        return []
    share = _share_of(report)
    columns = [
        Column("Tools", [Span(glyphs.safe(tool.name)) for tool in tools], is_left=True, is_elastic=True, minimum=name_width),
        Column("tokens", [Span(f"{tool.tokens:,}") for tool in tools]),
        Column("of budget", [Span(share(tool.tokens), QUIET) for tool in tools], priority=1),
        Column("calls", [Span(f"{tool.calls:,}") for tool in tools], priority=4),
    ]
    if any(tool.cleared for tool in tools):
        columns.append(Column("cleared", [Span(f"{tool.cleared:,}" if tool.cleared else "") for tool in tools], priority=3))
    if any(tool.extracts for tool in tools):
        columns.append(Column("extracts", [Span(f"{tool.extracts:,}" if tool.extracts else "") for tool in tools], priority=3))
    lengths = [Span(length(tool.tokens, tools[0].tokens, BARS, glyphs), STYLES[MessageCategory.SYSTEM_OUTPUT.value]) for tool in tools]
    columns.append(Column("", lengths, is_left=True, priority=2))
    omitted = len(report.tools) - len(tools)
    return [*table(columns, width, glyphs), *(_quiet(f"{glyphs.ellipsis} and {omitted:,} more", width, glyphs) if omitted else [])]


def _largest(report: UsageReport, width: int, glyphs: Glyphs, name_width: int = 0) -> list[Line]:
    items = report.largest
    if not items:
        return []
    share = _share_of(report)
    names = [Span(glyphs.safe(item.what), STYLES[item.category.value]) for item in items]
    columns = [
        Column(LARGEST, names, is_left=True, is_elastic=True, minimum=name_width),
        Column("tokens", [Span(f"{item.tokens:,}") for item in items]),
        Column("of budget", [Span(share(item.tokens), QUIET) for item in items], priority=2),
        Column("id", [Span(fit(item.item_id, 24, glyphs), QUIET) for item in items], is_left=True, is_elastic=True, priority=1),
    ]
    return table(columns, width, glyphs)


def _overhead(report: UsageReport) -> Iterator[Span]:
    """Yield what the overhead is for, if there are tools: their definitions, those that were never called, and the rest."""
    if words := definition_words(report.definitions):
        yield Span(f"overhead: {words[0]}")
        yield from map(Span, words[1:])
        rest = report.overhead - sum(tool.tokens for tool in report.definitions)
        yield from [Span(f"the rest {rest:,}")] if rest > 0 else []


def _counts(report: UsageReport) -> Iterator[Span]:
    yield Span(_counted(report.items, "item"))
    yield Span(_counted(report.messages, "message"))
    if report.images:
        yield Span(f"{_counted(report.images, 'image')} ({report.image_tokens:,} tokens)")
    if report.thinking_tokens:
        yield Span(f"thinking {report.thinking_tokens:,} tokens")
    if report.extracts:
        yield Span(f"{_counted(report.extracts, 'extract')} ({report.extract_tokens:,} tokens)")
    if report.compacted_items:
        yield Span(f"{_counted(report.compacted_items, 'item')} ({report.compacted_tokens:,} tokens) replaced by summaries in the log")


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def footnotes(report: UsageReport) -> tuple[str, str]:
    """Return two sentences: the budget and its source; the counter and its accuracy."""
    budget = f"budget {report.budget:,}"
    if report.budget_from:
        budget += f": {report.budget_from}"
    if report.window is not None and report.budget > report.window:
        budget += f", more than the model's window of {report.window:,}"
    elif report.window is not None and report.window != report.budget:
        reserve = f" minus {report.reserve:,} reserved for the answer" if report.reserve else ""
        budget += f" (window {report.window:,}{reserve})"
    counter = f"counted with {report.counter}"
    if report.counter_problem:
        counter += f" ({report.counter_problem})"
    if report.reported_tokens is not None:
        counter += f"; an upper bound, based on {report.reported_tokens:,} tokens reported by the provider"
    elif report.settled_tokens is not None:
        counter += f"; an upper bound, based on the {report.settled_tokens:,} tokens of this view when it was made"
    elif report.least is not None:
        reach = f"at least {report.least:,}" if report.most is None else f"{report.least:,} to {report.most:,}"
        counter += f": an estimate; the provider usually counts {reach}"
    elif report.expected_error:
        counter += f": an estimate, usually within {report.expected_error:.0%} of the provider's count"
    if (unlogged := report.unlogged) is not None:
        low, high = report.total + unlogged.least, report.total + unlogged.most
        counter += f"; {unlogged.tool} sends more than it logs: "
        if unlogged.sessions:
            people = "one person" if unlogged.people == 1 else f"{unlogged.people} people"
            counter += f"{unlogged.tokens:,} tokens in {_counted(unlogged.sessions, 'session')} of {people}, "
            counter += f"so a request would cost some {low:,} to {high:,}"
        else:
            counter += f"it states {unlogged.tokens:,} tokens of that, so a request would cost some {high:,}"
    if (stated := report.stated) is not None:
        rows = ", ".join(f"{name.replace('_', ' ')} {tokens:,}" for name, tokens in stated.rows.items())
        counter += f"; after {_counted(stated.position, 'item')} the tool stated {stated.tokens:,} of {stated.window:,} tokens: {rows}"
        counter += f" (counted here: {stated.counted:,})" if "messages" in stated.rows else ""
    if report.unknown:
        counter += f"; only the provider knows the size of {_counted(report.unknown, 'file')} behind a URL or file id"
    if report.provider_tokens is not None:
        counter += f"; the provider counted {report.provider_tokens:,}"
    return budget, counter


def _quiet(text: str, width: int, glyphs: Glyphs) -> list[Line]:
    return [[Span(line, QUIET)] for line in wrapped(text, width, glyphs)]


def usage_text(report: UsageReport, width: int | None = None) -> str:
    """Return the report as plain text.

    Args:
        report: The report.
        width: Columns. Default: the terminal's width, or 80 without a terminal.
    """
    return text_of(usage_draw(report), width)


def usage_ansi(report: UsageReport, width: int | None = None) -> str:
    """Return the report as text with ANSI colours. Prints nothing.

    Args:
        report: The report.
        width: Columns. Default: the terminal's width, or 80 without a terminal.
    """
    return ansi_of(usage_draw(report), width)


def usage_renderable(report: UsageReport) -> Drawing:
    """Return the report as a rich renderable, for a console of any width."""
    return Drawing(usage_draw(report))


def usage_draw(report: UsageReport, *, brief: bool = False) -> Draw:
    """Return a function that draws the report. A brief report has no lists and footnotes."""
    return lambda width, glyphs: usage_lines(report, width, glyphs, brief=brief)
