"""The display fits the width, its rows sum to its total, numbers are never truncated, and no text controls the terminal."""

from __future__ import annotations

import re
import sys
from io import StringIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.color import Color
from rich.console import Console
from rich.panel import Panel
from wcwidth import wcwidth

from context_window import ContextWindow, ContextWindowManager, Message, MessageCategory, ModelConfig, Plan, Session, UsageReport
from context_window.counting import select as choice
from context_window.decision.plan import Note
from context_window.decision.plan_text import runs
from context_window.display.charts import apportion, grid
from context_window.display.glyphs import ASCII, UNICODE, Glyphs
from context_window.display.lines import Line, Span, fit, fit_ends, flow, plain, width_of
from context_window.display.plan import PlanDisplay, plan_renderable, plan_text
from context_window.display.render import SHADES
from context_window.display.usage import tenths, usage_ansi, usage_lines, usage_renderable, usage_text
from context_window.models import describe_model
from context_window.printable import printable
from context_window.usage.report import CategoryRow, LargeItem, ToolRow
from session.usage import Usage
from tests.support.screens import ESCAPES, long_session, read_report

AMOUNTS = st.one_of(st.integers(0, 3), st.integers(0, 100_000), st.integers(0, 2_000_000_000))
NAMES = st.one_of(
    st.text(max_size=60),
    st.sampled_from(
        ["Read", "mcp__server__" + "tool" * 20, "[bold red]x[/]", "\x1b[31mred\x1b[0m", "日本語のツール" * 5, "a\nb\tc", "👩‍👩‍👧👍🏽❤️"]
    ),
)


@st.composite
def reports(draw: st.DrawFn) -> UsageReport:
    """Any report, whether or not a session could have it."""
    rows = tuple(CategoryRow(category, draw(AMOUNTS), draw(AMOUNTS), draw(st.integers(0, 9999))) for category in MessageCategory)
    tools = draw(st.lists(st.builds(ToolRow, NAMES, AMOUNTS, st.integers(0, 9999), st.integers(0, 3)), max_size=12))
    tools.sort(key=lambda tool: -tool.tokens)
    largest = draw(st.lists(st.builds(LargeItem, NAMES, NAMES, st.sampled_from(MessageCategory), AMOUNTS), max_size=5))
    return UsageReport(
        session_id="s",
        title=draw(NAMES),
        rows=rows,
        overhead=draw(AMOUNTS),
        budget=draw(st.integers(1, 2_000_000_000)),
        window=draw(st.none() | st.integers(1, 2_000_000)),
        reserve=draw(st.integers(0, 64_000)),
        tools=tuple(tools),
        largest=tuple(largest),
        images=draw(st.integers(0, 99)),
        image_tokens=draw(AMOUNTS),
        items=sum(row.items for row in rows),
        messages=draw(st.integers(0, 9999)),
        compacted_items=draw(st.integers(0, 99)),
        counter="tiktoken o200k",
        model=draw(st.none() | NAMES),
        expected_error=draw(st.sampled_from([0.0, 0.1])),
        budget_from=draw(NAMES),
    )


@given(reports(), st.integers(40, 200))
def test_no_line_is_wider_than_the_width_and_no_number_is_cut(report: UsageReport, width: int) -> None:
    text = usage_text(report, width)
    for line in text.split("\n"):
        assert cell_len(line) <= width, line
    for row in report.rows:
        assert re.search(rf"(?<!\w){row.category.value} +{row.tokens:,}(?!\S)", text)
    amounts = {f"{tool.tokens:,}" for tool in report.tools[:8]} | {f"{item.tokens:,}" for item in report.largest}
    assert amounts <= set(text.split())
    assert f"{abs(report.available):,}" in text


@given(reports(), st.integers(40, 200))
def test_the_rows_that_are_shown_sum_to_the_total_that_is_shown(report: UsageReport, width: int) -> None:
    printed = read_report(usage_text(report, width))
    assert len(printed.rows) == 5
    assert sum(printed.rows.values()) == printed.total == report.total
    assert all(f"{word}: " in " ".join(usage_text(report, width).split()) for word in (*printed.rows, "share", "free"))
    if report.over_budget:
        assert (printed.over, printed.free) == (report.total - report.budget, None)
    else:
        assert printed.free == report.budget - printed.total


@given(reports(), st.integers(20, 200))
def test_nothing_in_a_plain_report_steers_the_terminal(report: UsageReport, width: int) -> None:
    for glyphs in (UNICODE, ASCII):
        lines = [plain(line) for line in usage_lines(report, width, glyphs)]
        assert all(character.isprintable() for line in lines for character in line)
        assert all(line.isascii() for line in lines) or glyphs is UNICODE


@given(reports())
def test_the_coloured_report_is_the_plain_one_in_colours(report: UsageReport) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("NO_COLOR", raising=False)
        coloured = usage_ansi(report, 80)
    assert "\x1b[" in coloured
    assert ESCAPES.sub("", coloured) == usage_text(report, 80)


@given(reports(), st.integers(40, 140))
def test_rich_shows_it_at_any_width_and_inside_other_things(report: UsageReport, width: int) -> None:
    console = Console(file=StringIO(), width=width, height=24, force_terminal=False, color_system=None)
    with console.capture() as capture:
        console.print(report, Panel(usage_renderable(report)))
    assert all(cell_len(line) <= width for line in capture.get().split("\n"))
    assert capture.get().startswith(usage_text(report, width).split("\n", maxsplit=1)[0])


def test_no_colour_means_no_escape_sequences(monkeypatch: pytest.MonkeyPatch) -> None:
    report = ContextWindowManager().usage(long_session())
    monkeypatch.setenv("NO_COLOR", "1")
    assert usage_ansi(report, 80) == usage_text(report, 80)


def test_the_managers_texts_are_these(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "90")
    monkeypatch.delenv("NO_COLOR", raising=False)
    manager, session = ContextWindowManager(), long_session()
    report = manager.usage(session)
    assert manager.format_token_usage(session) == str(report) == usage_text(report, 90)
    assert manager.format_token_usage_rich(session) == usage_ansi(report, 90)


def test_markup_in_a_tools_name_is_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "[bold]run[/bold]" in ESCAPES.sub("", usage_ansi(ContextWindowManager().usage(long_session()), 120))


def test_an_estimate_is_called_one_and_the_counter_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "has_ctok", lambda: False)
    text = usage_text(ContextWindowManager("claude-sonnet-4-5").usage(long_session()), 120)
    assert "counted with tiktoken o200k_claude_3: an estimate" in text
    assert "estimate" not in usage_text(ContextWindowManager(token_counter=len).usage(long_session()), 120)


@pytest.mark.parametrize("model", [None, ModelConfig("foo", 50_000), ModelConfig(max_tokens=9_000)], ids=["none", "unknown", "nameless"])
def test_of_an_unknown_model_the_counters_error_is_told_too(model: ModelConfig | None) -> None:
    manager = ContextWindowManager(model)
    text = " ".join(usage_text(manager.usage(long_session()), 120).split())
    assert "counted with tiktoken o200k: an estimate; the provider usually counts" in text
    assert manager.analyze_session(long_session())["expected_error"] == describe_model("foo").expected_error == 0.15


@pytest.mark.parametrize(("budget", "above"), [(9_000, True), (8_193, True), (8_192, False), (4_000, False)])
def test_a_budget_above_the_models_window_says_so(budget: int, above: bool) -> None:
    manager = ContextWindowManager("gpt-4", context_window=ContextWindow(max_tokens=budget))
    text = " ".join(manager.format_token_usage(long_session()).split())
    assert (f"budget {budget:,}, more than the model's window of 8,192" in text) == above
    assert ("(window 8,192)" in text) == (budget < 8_192)


def test_an_empty_session_has_a_report() -> None:
    printed = read_report(usage_text(ContextWindowManager().usage(Session()), 80))
    assert (printed.total, printed.free) == (0, 128_000)


def test_below_forty_columns_the_table_alone_is_left() -> None:
    text = usage_text(ContextWindowManager().usage(long_session()), 30)
    printed = read_report(re.sub("SYSTE[^ ]*…|overh…", "", text))
    assert printed.total
    assert "Tools" not in text


# The cells


@given(st.lists(AMOUNTS, min_size=1, max_size=6), st.integers(6, 200))
def test_cells_add_up_and_nothing_that_is_there_is_left_out(amounts: list[int], cells: int) -> None:
    given_cells = apportion(amounts, cells)
    assert sum(given_cells) == (cells if sum(amounts) else 0)
    assert [bool(count) for count in given_cells] == [bool(amount) for amount in amounts]


@given(NAMES, st.integers(0, 30), st.sampled_from([UNICODE, ASCII]), st.booleans())
def test_a_text_that_is_too_long_keeps_its_beginning_or_its_end(text: str, width: int, glyphs: Glyphs, keeps_end: bool) -> None:
    whole, cut = glyphs.safe(text), fit(text, width, glyphs, keeps_end=keeps_end)
    both = fit_ends(text, width, glyphs)
    assert width_of(both) <= max(width, 0)
    if width >= 14 and width_of(whole) > width:
        beginning, _, end = both.partition(glyphs.ellipsis)
        assert (whole.startswith(beginning), whole.endswith(end)) == (True, True)
        assert width_of(both) >= width - 2  # half of a wide character may be left
    assert width_of(cut) <= max(width, 0)
    if width_of(whole) <= width:
        assert cut == whole
    elif width > len(glyphs.ellipsis):
        kept = cut.removeprefix(glyphs.ellipsis) if keeps_end else cut.removesuffix(glyphs.ellipsis)
        assert whole.endswith(kept) if keeps_end else whole.startswith(kept)
        assert width_of(cut) >= width - 1  # a wide character may leave a column


@given(st.lists(st.integers(1000, 5000), min_size=2, max_size=6))
def test_cells_are_the_amounts_rounded_up_or_down(amounts: list[int]) -> None:
    for amount, count in zip(amounts, apportion(amounts, 100), strict=True):
        assert abs(count - 100 * amount / sum(amounts)) < 1


def test_the_grid_is_ten_by_ten() -> None:
    rows = [plain(line) for line in grid({"SYSTEM": 1, "DIALOG": 60, "free": 39}, ASCII)]
    assert rows[0] == "S D D D D D D D D D"
    assert "".join(rows).replace(" ", "") == "S" + "D" * 60 + "." * 39


@given(st.lists(AMOUNTS, min_size=1, max_size=5), st.integers(1, 10_000_000_000))
def test_percentages_sum_to_a_hundred(used: list[int], budget: int) -> None:
    rounded = tenths([*used, max(0, budget - sum(used))], budget)
    assert sum(rounded) == (1000 if sum(used) <= budget else round(1000 * sum(used) / budget))


def test_one_amount_is_one_percentage_in_every_table() -> None:
    """545 of 10,000 are 5.45 %, and 1,535 are 15.35 %: the table rounds one of them down, so that its rows sum to a hundred."""
    rows = tuple(CategoryRow(category, tokens, 2_500, 1) for category, tokens in zip(MessageCategory, (545, 0, 1_000, 1_535), strict=True))
    tools, largest = (ToolRow("Read", 1_535, 1, 0),), (LargeItem("i", "user message", MessageCategory.SYSTEM, 545),)
    report = UsageReport("s", "", rows, 0, 10_000, None, 0, tools, largest, 0, 0, 4, 4, 0, "letters")
    text = usage_text(report, 90)
    for amount in ("545", "1,535"):
        first, second = re.findall(rf" {amount} +(\d+\.\d%)", text)
        assert first == second


# The plan


@pytest.fixture(scope="module")
def manager() -> ContextWindowManager:
    return ContextWindowManager(context_window=ContextWindow(max_tokens=3_000))


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_a_plan_fits_the_width_and_its_rows_sum_to_its_totals(manager: ContextWindowManager, width: int) -> None:
    plan = manager.plan_session(long_session())
    text = plan_text(plan, width)
    assert all(cell_len(line) <= width for line in text.split("\n"))
    numbers = [list(map(_int, re.findall(r" (\d[\d,]*)(?!\S)", line))) for line in text.split("\n") if _is_sum(line)]
    after = 2 if width >= 60 else -1  # in narrower tables the last column is not `freed`
    assert len(numbers) > 3
    assert sum(row[after] if len(row) > after else row[-1] for row in numbers[:-1]) == numbers[-1][after] == plan.after
    assert sum(row[0] for row in numbers[:-1] if len(row) > 1 and row is not numbers[-2]) == len(plan)


def _is_sum(line: str) -> bool:
    return bool(re.match(r"(kept|dropped|cleared|truncated|images replaced) +[A-Z_]+ |overhead|total", line))


def _int(text: str) -> int:
    return int(text.replace(",", ""))


def test_a_plan_tells_every_change_and_why(manager: ContextWindowManager) -> None:
    plan = manager.plan_session(long_session())
    text = str(plan)
    assert text.startswith(f"{len(plan.changes)} of {len(plan)} items changed (")
    assert f"{plan.before:,} -> {plan.after:,} tokens of 3,000" in text
    changes = runs(plan)
    assert sum(run.items for run in changes) == len(plan.changes)
    assert len(text.split("\n")) == 1 + len(changes)
    assert all(reason in text for reason in {decision.reason.value for decision in plan.changes})
    assert all(reason in plan_text(PlanDisplay(plan, most=None), 120) for reason in {decision.reason.value for decision in plan.changes})


def test_a_plan_without_changes_says_so() -> None:
    plan = ContextWindowManager(context_window=ContextWindow(images_kept=2)).plan_session(long_session(2))
    assert str(plan) == f"none of {len(plan)} items changed: {plan.after:,} tokens of 128,000"
    assert "no changes" in plan_text(plan, 80)


def test_a_plan_that_does_not_fit_names_what_stands_in_the_way() -> None:
    session = Session()
    session.add_message("system", "Rules. " * 400)
    session.add_message("user", "Hello")
    plan = ContextWindowManager(context_window=ContextWindow(max_tokens=100)).plan_session(session)
    over = f"{plan.after - 100:,}"
    for text in (str(plan), plan_text(plan, 80)):
        assert re.search(rf"over budget by {over} tokens", text, re.IGNORECASE)
        assert "system message" in text
        assert "system items are always kept" in text


def with_tools(texts: int) -> ContextWindowManager:
    """Return a manager with too small a budget and one tool, whose description has this many sentences."""
    tools = [{"name": "Read", "description": "Reads a file. " * texts, "input_schema": {"type": "object"}}]
    window = ContextWindow(max_tokens=100, clamp_messages=False)
    return ContextWindowManager("claude-sonnet-4-5", context_window=window, tools=tools)


@pytest.mark.parametrize(("tools", "words", "leads"), [(300, 1, True), (1, 3_000, False)])
def test_a_plan_blames_the_overhead_where_it_is_the_largest(tools: int, words: int, leads: bool) -> None:
    session = Session()
    session.add_message("user", "Hello. " * words)
    plan = with_tools(tools).plan_session(session)
    for text in (str(plan), plan_text(plan, 100)):
        blamed = text[re.search("over budget by [0-9,]+ tokens", text, re.IGNORECASE).start() :]  # type: ignore[union-attr]
        first, second = blamed.find("overhead"), blamed.find("user message")
        assert (0 < first < second) == leads
        assert (f"{plan.overhead:,}" in blamed) == leads
    assert ("Send fewer or shorter tools" in plan_text(plan, 100)) == leads


def test_an_empty_session_over_budget_has_something_to_blame() -> None:
    plan = with_tools(300).plan_session(Session())
    tokens = plan.definitions[0].tokens
    assert str(plan).splitlines()[1:] == [
        f"  1 tool definition {tokens:,} tokens; never called {tokens:,} (Read)",
        f"  over budget by {plan.after - 100:,} tokens; the largest of what is kept:",
        f"    overhead: {plan.overhead:,} tokens (tools, instructions and other parts of the request outside its items)",
    ]
    assert re.search(rf"^overhead +{plan.overhead:,} +tools", plan_text(plan, 80), re.MULTILINE)


def test_a_calibrated_plan_calls_its_overhead_a_bound() -> None:
    session = Session()
    for number in range(8):
        session.add_message("user", f"Question {number}. " * 20)
        session.add_message("assistant", f"Answer {number}. " * 20, usage=Usage(300 + 200 * number, output_tokens=95))
    session.add_message("user", "And now? " * 100)
    manager = ContextWindowManager("claude-sonnet-4-5", context_window=ContextWindow(max_tokens=2_000))
    plan = manager.plan_session(session)
    assert plan.calibrated
    text = plan_text(plan, 80)
    assert re.search(rf"^overhead, upper bound .*{plan.overhead:,}", text, re.MULTILINE)
    assert plan.overhead > plan.overhead_before
    assert "may have cost less than we counted" in " ".join(text.split())
    assert "as reported" not in text
    few = Session(session.items[:2])
    assert "may have cost less" not in plan_text(manager.plan_session(few), 80)  # nothing was taken out


def test_a_plan_has_a_row_for_the_note_about_the_work() -> None:
    note = Note(0, Message("user", "Mend it."), 20)
    plan = Plan((), budget=100, overhead_before=10, overhead=30, state_note=note)
    text = plan_text(plan, 80)
    assert re.search(r"^note about the work +0 +20 +-20$", text, re.MULTILINE)
    assert re.search(r"^overhead +10 +10 +0$", text, re.MULTILINE)
    assert "restates the plan" in " ".join(text.split())
    assert "a note of 20 tokens restates the plan" in str(plan)
    assert (plan.to_dict()["state_note"], plan.to_dict()["overhead"]) == (20, 30)
    assert "note about the work" not in plan_text(Plan((), budget=100, overhead_before=10, overhead=30), 80)


def test_a_plans_values_have_every_decision(manager: ContextWindowManager) -> None:
    session = long_session()
    plan = manager.plan_session(session)
    values = plan.to_dict()
    assert [decision["id"] for decision in values["decisions"]] == [item.id for item in session.items]
    assert values["overhead"] + sum(decision["after"] for decision in values["decisions"]) == values["after"] == plan.after
    assert values["overhead_before"] + sum(decision["before"] for decision in values["decisions"]) == values["before"]


def test_rich_shows_a_plan() -> None:
    console = Console(file=StringIO(), width=70, height=24)
    plan = ContextWindowManager().plan_session(long_session(2))
    with console.capture() as capture:
        console.print(plan_renderable(plan))
    assert capture.get() == plan_text(plan, 70) + "\n"


# Texts


@given(st.text())
def test_what_is_printable_is_one_line_and_inert(text: str) -> None:
    printed = printable(text)
    assert printed.isprintable()
    assert printable(printed) == printed


def test_what_a_name_hides_is_taken_out() -> None:
    assert printable("a\x1b]0;title\x07b\u202ec\u200bd\ne") == "a]0;titlebcd e"


@given(st.lists(st.text(st.sampled_from("abc ,19日"), max_size=30), max_size=5), st.integers(20, 60))
def test_what_flows_stays_within_the_width(texts: list[str], width: int) -> None:
    lines: list[Line] = flow([Span(text) for text in texts], width, UNICODE)
    assert all(cell_len(plain(line)) <= width for line in lines)


def test_no_character_is_wider_on_a_screen_than_it_is_taken_for() -> None:
    characters = filter(str.isprintable, map(chr, range(sys.maxunicode + 1)))
    assert [character for character in characters if printable(character) == character and wcwidth(character) > width_of(character)] == []


@pytest.mark.parametrize("kind", ["plan_session", "usage", "timeline", "why"])
def test_a_notebook_shows_values_in_colour_and_escaped(kind: str) -> None:
    session = Session()
    session.add_message("user", "Go.")
    for _ in range(3):
        call = session.add_function_call("<script>", {"path": "<script>"})
        session.add_function_output("<script>", "y " * 3_000, call.call_id)
    session.add_message("user", "And now?")
    manager = ContextWindowManager("gpt-5", max_tokens=1_000)
    html = getattr(manager, kind)(session)._repr_html_()
    assert html.startswith("<pre")
    assert "<script" not in html
    assert '<span style="' in html
    assert ("color: #" in html) == (kind != "why")  # its table has no colours, only quiet lines


def luminance(colour: str) -> float:
    """Return the relative luminance of `#rrggbb`, as WCAG 2 defines it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("name", SHADES)
@pytest.mark.parametrize("background", ["#ffffff", "#fdf6e3", "#000000", "#1e1e1e", "#002b36"])
def test_every_colour_can_be_read_on_light_and_dark_terminals(name: str, background: str) -> None:
    """The contrast is at least the 3 that WCAG 2 asks of large text and of graphics, and pages have the terminal's colour."""
    number, colour = SHADES[name]
    assert Color.from_ansi(number).get_truecolor().hex == colour
    low, high = sorted((luminance(colour), luminance(background)))
    assert (high + 0.05) / (low + 0.05) >= 3
