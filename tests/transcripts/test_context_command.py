"""The output of Claude Code's `/context` is read as figures, with their place in the log, and `usage` shows them beside its own count."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from context_window import ContextWindow, ContextWindowManager
from context_window.cli.recorded_window import recorded_window
from context_window.counting.item_tokens import Measurer
from context_window.spend.reasons import UNUSED
from session.transcripts import read_transcript
from session.transcripts.claude_code.context_command import context_usage, stated_tools
from tests.support.claude_lines import Log, text
from tests.support.counting import Letters

NAMES = ("System prompt", "System tools", "MCP tools", "Custom agents", "Memory files", "Skills", "Messages")
BLUE, PLAIN = "\x1b[38;2;8;145;178m", "\x1b[39m"


def short(tokens: int) -> str:
    """The amount as the tool writes it: 913, 17.9k."""
    return str(tokens) if tokens < 1_000 else f"{tokens // 1_000}.{tokens % 1_000 // 100}k"


def markdown(rows: dict[str, int], total: int) -> str:
    lines = "\n".join(f"| {name} | {short(tokens)} | 1.5% |" for name, tokens in rows.items())
    return (
        f"<local-command-stdout>## Context Usage\n\n**Model:** claude-opus-4-5\n**Tokens:** {short(total)} / 200.0k (21%)\n\n"
        f"### Categories\n\n| Category | Tokens | Percentage |\n|---|---|---|\n{lines}\n| Free space | 113.6k | 56.8% |\n"
        "| Autocompact buffer | 45.0k | 22.5% |\n\n"
        "### MCP Tools\n\n| Tool | Server | Tokens |\n|---|---|---|\n| a | b | 900 |\n\n### Skills\n\n| Skill | Source | Tokens |\n"
        "|---|---|---|\n| review | User | 46 |\n</local-command-stdout>"
    )


def picture(rows: dict[str, int], total: int) -> str:
    lines = "\n".join(f"{BLUE}⛁ ⛁ {PLAIN}  ⛁ {name}: {BLUE}{short(tokens)} tokens (1.6%){PLAIN}" for name, tokens in rows.items())
    return (
        f"<local-command-stdout>\x1b[?2026h\n \x1b[1mContext Usage\x1b[22m\n⛁ ⛀  {BLUE}claude-opus-4-5 · {short(total)}/200k tokens (83%)"
        f"{PLAIN}\n"
        f"{lines}\n⛶ ⛶  Free space: 34k (17.2%)\n⛝  Autocompact buffer: 45.0k tokens (22.5%)\n\n\x1b[1mMCP tools{PLAIN} · /mcp\n"
        f"└ mcp__a__b: {BLUE}1.0k tokens{PLAIN}\n\n\x1b[1mMemory files{PLAIN} · /memory\n└ CLAUDE.md: 28 tokens\n\x1b[?2026l"
        "</local-command-stdout>"
    )


AMOUNTS = st.one_of(st.integers(0, 999), st.integers(10, 1_999).map(lambda hundreds: 100 * hundreds))
ROWS = st.lists(AMOUNTS, min_size=7, max_size=7).map(lambda amounts: dict(zip(NAMES, amounts, strict=True)))


@given(ROWS, st.sets(st.sampled_from(NAMES[1:-1])), st.sampled_from((markdown, picture)))
def test_every_row_is_read_in_both_forms(rows: dict[str, int], missing: set[str], written: Callable[[dict[str, int], int], str]) -> None:
    rows = {name: tokens for name, tokens in rows.items() if name not in missing}
    found = context_usage(written(rows, sum(rows.values()) + 45_000))
    named = {name.lower().replace(" ", "_"): tokens for name, tokens in rows.items()}
    assert found == {"window": 200_000, "tokens": sum(rows.values()), **named}


@given(st.text(max_size=40), st.sampled_from(("", "Context Usage", "Context Usage 1k/2k tokens (9%)", "Context Usage Messages: 9. (1%")))
def test_another_text_is_no_account(some: str, opening: str) -> None:
    assert context_usage(opening + some) is None


TOOLS = st.dictionaries(st.sampled_from([f"mcp__{server}__{tool}" for server in "ab" for tool in ("get", "list-all", "x_y")]), AMOUNTS)


@given(TOOLS, st.booleans(), st.sampled_from((markdown, picture)))
def test_definitions_of_tools_are_stated_if_requests_carry_them(
    tools: dict[str, int], are_deferred: bool, written: Callable[[dict[str, int], int], str]
) -> None:
    """Tools that wait for a search are listed alike, but are not in the row of MCP tools."""
    form = "| {} | a | {} |" if written is markdown else f"└ {{}} (a): {BLUE}{{}} tokens{PLAIN}"
    row = "MCP tools (deferred)" if are_deferred else "MCP tools"
    output = written({"System prompt": 3_000, row: sum(tools.values()), "Messages": 700}, 9)
    output = output.replace("| a | b | 900 |", "").replace("└ mcp__a__b: ", "")
    stated = stated_tools(output + "\n".join(form.format(tool, short(tokens)) for tool, tokens in tools.items()))
    assert stated == ({} if are_deferred or not sum(tools.values()) else tools)


def test_a_server_of_claude_code_that_nothing_calls_is_a_cause(tmp_path: Path) -> None:
    rows = dict(zip(NAMES, (3_000, 16_800, 900, 152, 453, 241, 20_700), strict=True))
    log = Log()
    log.user("look")
    log.system("local_command", content=markdown(rows, 41_400).replace("| a | b | 900 |", "| mcp__b__a | b | 900 |"))
    log.answer("m1", text("so"), usage={"input_tokens": 40_000, "output_tokens": 5})
    ((_, request),) = ContextWindowManager("claude-opus-4-6").made_up(read_transcript(log.write(tmp_path)))
    assert request.makeup is not None
    assert (UNUSED, "", "b", 0, 0, 900) in request.makeup.parts


def test_usage_shows_the_tool_s_account_beside_its_own_count(tmp_path: Path) -> None:
    rows = dict(zip(NAMES, (3_000, 16_800, 0, 152, 453, 241, 20_700), strict=True))
    log = Log()
    log.user("look")
    log.answer("m1", text("so"), usage={"input_tokens": 40_000, "output_tokens": 5})
    log.system("local_command", content=markdown(rows, 41_400))
    log.user("and then?")
    session = read_transcript(log.write(tmp_path))
    window = recorded_window(session)
    assert window is not None
    assert (window.tokens, window.is_stated, "`/context` states" in window.source) == (200_000, False, True)
    assert session.metadata["fixed_tokens"] == 3_000 + 16_800 + 152 + 453 + 241
    measurer = Measurer(Letters())
    report = ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(max_tokens=100_000)).usage(session)
    stated = report.to_dict()["stated"]
    assert (stated["item_id"], stated["position"], stated["window"], stated["tokens"]) == (session.items[2].id, 2, 200_000, 41_346)
    assert stated["counted"] == sum(measurer.measure(item).tokens for item in session.items[:2])
    assert "after 2 items the tool stated 41,346 of 200,000 tokens: system prompt 3,000, system tools 16,800" in " ".join(
        str(report).split()
    )
