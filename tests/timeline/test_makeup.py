"""What the money of all sessions paid for: sums against `spend`, tokens against a slow twin, names of commands, commits, the command."""

from __future__ import annotations

import json
import zlib
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from context_window import ContextWindowManager
from context_window.cli.spend_reading import explained
from context_window.spend import REASON_GROUPINGS, SpendCache, cache_file, charges_of, cost_of, read_ledger, reasons_by, spend_by
from context_window.spend.reasons import LOST, MCP, OUTSIDE, READ, READ_AGAIN, SHELL, SKILL, UNEXPLAINED, UNUSED
from context_window.spend.rows import LogRows, decode, encode, read_rows
from context_window.spend.tables import sum_of
from context_window.timeline.makeup import _Amounts
from context_window.timeline.reasons import Reason, command_name, commits_of, reasons_of
from context_window.timeline.walk import WindowState
from session import Message, Session, Usage
from session.transcripts.makeup import Part
from session.transcripts.reported_requests import Request
from tests.support.claude_lines import Log, call, result, text
from tests.support.shell import Shell

WORDS = "The quick brown fox jumps over the lazy dog. "
TOOLS: tuple[dict[str, Any], ...] = (
    {"name": "Bash", "command": "cd src && git diff --stat"},
    {"name": "Read", "file_path": "a.py"},
    {"name": "Read", "file_path": "b.py"},
    {"name": "mcp__github__get_issue", "number": 7},
    {"name": "Skill", "skill": "commit"},
    {"name": "Edit", "file_path": "a.py", "old_string": "a", "new_string": "b"},
)
TURN = st.tuples(
    st.integers(0, len(TOOLS) - 1),
    st.integers(0, 400),  # words of the output
    st.tuples(*[st.integers(0, 20_000)] * 4),  # input, read, written, output
    st.integers(1, 90),  # minutes
    st.sampled_from(["claude-opus-4-6", "claude-haiku-4-5", "a model without a price"]),
)


def log_of(turns: list[Any], session: str = "s-1") -> Log:
    log, minute = Log(session), 0
    log.user("Look at it.")
    for number, (tool, words, counts, minutes, model) in enumerate(turns):
        minute += minutes
        given = dict(TOOLS[tool])
        names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
        usage = dict(zip(names, counts, strict=True))
        log.answer(
            f"m{number}", call(f"c{number}", given.pop("name"), **given), usage=usage, model=model, requestId=f"r{number}", minute=minute
        )
        log.user([result(f"c{number}", WORDS * words)], minute=minute)
    return log


@given(st.lists(TURN, min_size=1, max_size=12), st.integers(0, 12))
def test_reasons_add_up_to_what_spend_says(tmp_path_factory: pytest.TempPathFactory, turns: list[Any], forked: int) -> None:
    """Each request's price is divided in full, and no reason costs less than nothing. A fork's copies count once."""
    folder = tmp_path_factory.mktemp("logs")
    log_of(turns).write(folder, "a.jsonl")
    log_of(turns[:forked]).write(folder, "b.jsonl")
    requests = read_ledger(folder.glob("*.jsonl"), explain=explained).requests
    total = sum_of("total", requests)
    assert total == sum_of("total", read_ledger(folder.glob("*.jsonl")).requests)
    for grouping in REASON_GROUPINGS:
        rows = reasons_by(grouping, requests)
        assert abs(sum((row.cost for row in rows), Decimal(0)) - total.cost) < Decimal("1e-15")
        assert all(row.cost > Decimal("-1e-15") and row.requests <= total.requests for row in rows)
    for request in requests:
        parts = () if request.makeup is None else request.makeup.parts
        assert sum(part.read for part in parts) <= request.cache_read
        assert sum(part.read + part.lost + part.paid for part in parts) <= request.prompt
    assert sum(row.requests for row in spend_by("commit", requests)) == total.requests


SIZES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 30)), min_size=1, max_size=10)


@given(
    SIZES,
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 30)), max_size=6),
    st.integers(0, 40),
    st.integers(0, 99),
    st.integers(0, 99),
)
def test_each_token_has_the_region_it_lies_in(
    sizes: list[tuple[int, int]], changes: list[tuple[int, int]], overhead: int, read: int, lost: int
) -> None:
    """A prompt is laid out in order: its overhead, then its items. The slow twin lays every token out."""
    amounts = _Amounts([Reason(f"kind {leaf}") for leaf, _ in sizes])
    now = [tokens for _, tokens in sizes]
    for position, tokens in [*enumerate(now), *((position % len(now), tokens) for position, tokens in changes)]:
        amounts._put(position, tokens)
        now[position] = tokens
    layout = [None] * overhead + [sizes[position][0] for position, tokens in enumerate(now) for _ in range(tokens)]
    read, lost = min(read, len(layout)), min(lost, len(layout) - min(read, len(layout)))
    request = Request("r", 0, "t", "m", "", "", input_tokens=len(layout) - read, cache_read=read)
    state = WindowState(len(now), (0, 0, sum(now), 0), overhead, 0, -1, 0, 0, 0, ())
    regions = layout[:read], layout[read : read + lost], layout[read + lost :]
    expected = {f"kind {leaf}": [region.count(leaf) for region in regions] for leaf in {leaf for leaf, _ in sizes}}
    assert {part.kind: [*part[3:]] for part in amounts.parts(state, request, lost)} == {k: v for k, v in expected.items() if any(v)}


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("git diff --stat | head", "git diff"),
        ("cd /a/b && PYTHONPATH=. timeout 60 python -m pytest -q", "python -m pytest"),
        ("bash -lc 'npm run build'", "npm run"),
        ("FOO=1 sudo /usr/bin/rg -n x", "rg"),
        ("cd src", "cd"),
        ("# a comment\nls -la", "ls"),
        ("git -C /repo commit -m 'x; y'", "git commit"),
        ("$(x) | \u202e", "(other)"),
        ("", "(other)"),
        ("for f in a b; do cat $f; done", "for"),
    ],
)
def test_a_command_is_named_by_its_program(command: str, name: str) -> None:
    assert command_name(command) == name


@given(st.text(max_size=300))
def test_any_command_has_a_short_name_in_one_line(command: str) -> None:
    name = command_name(command)
    assert 0 < len(name) <= 90
    assert name.isprintable()


def test_items_are_there_for_what_brought_them() -> None:
    log = Session()
    for number, tool in enumerate((*TOOLS, TOOLS[1])):
        arguments = {name: value for name, value in tool.items() if name != "name"}
        log.add_function_call(tool["name"], arguments, f"c{number}")
        log.add_function_output(tool["name"], "out", f"c{number}")
        if tool["name"] == "Skill":
            log.add_message("user", "How to commit: …")
    log.add_message("user", "Thanks.")
    reasons = reasons_of(log.items)
    assert [reason[:1] + reason[2:] for reason in dict.fromkeys(reasons)] == [
        (SHELL, "git diff"),
        (READ, ""),
        (MCP, "github"),
        (SKILL, "commit"),
        ("other tools", ""),
        (READ_AGAIN, ""),
        ("messages", ""),
    ]
    assert [reason.detail for reason in reasons if reason.kind == SKILL] == ["commit"] * 3


def test_work_belongs_to_the_commit_that_follows() -> None:
    log = Session()
    outputs = (
        ("ls", "a\n[not 1234567] a commit"),
        ("git commit -m x", "[main 1234567] First\n 1 file changed"),
        ("gh pr create --fill", "https://github.com/a/b/pull/7\n"),
        ("git add . && git commit -m y", "note\n[main (root-commit) abcdef0] Second"),
        ("ls", ""),
    )
    for number, (command, output) in enumerate(outputs):
        log.add_function_call("Bash", {"command": command}, f"c{number}")
        log.add_function_output("Bash", output, f"c{number}")
    into = commits_of(log.items)
    first, second = "1234567 First", "abcdef0 Second"
    assert [commit for commit, _ in into] == [first] * 3 + [second] * 4 + [""] * 3
    assert {pull for _, pull in into} == {"https://github.com/a/b/pull/7"}


def test_a_pause_is_charged_apart_from_what_it_made_dear() -> None:
    """Tokens that the cache had lost are charged to their item at the price of reading them; the rest of their price is the loss's."""
    log = Session()
    day = 1_772_000_000.0
    for number, (read, written, seconds) in enumerate(((0, 20_000, 0), (0, 20_100, 900))):
        log.append(Message("user", WORDS * 900, created_at=day + seconds))
        log.append(Message("assistant", "Done.", usage=Usage(10, read, written, 5), created_at=day + seconds + number))
    log.metadata["model"] = "claude-opus-4-6"
    log.metadata["source"] = {"format": "claude_code"}
    (_, first), (_, second) = ContextWindowManager("claude-opus-4-6").made_up(log)
    assert (first.makeup and first.makeup.lost, second.makeup and second.makeup.lost) == (0, 20_000)
    charged = {charge.kind: charge for charge in charges_of(second)}
    assert charged[LOST].detail == "a pause"
    assert sum((charge.cost for charge in charges_of(second)), Decimal(0)) == cost_of(second)
    paid = (Decimal(10) * 5 + Decimal(20_100) * Decimal("6.25")) / 20_110
    assert abs(charged[LOST].cost - 20_000 * (paid - Decimal("0.5")) / 1_000_000) < Decimal("1e-12")
    assert charged["messages"].cost < charged[LOST].cost / 5


NAMES = ("Bash", "Read", "mcp__github__get_issue", "mcp__github__search", "mcp__linear__list")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3), max_leaves=5
)
DEFINITIONS = st.lists(
    st.builds(lambda name, words, schema: {"name": name, "description": WORDS * words, "input_schema": schema},
        st.sampled_from(NAMES), st.integers(0, 40), st.dictionaries(st.sampled_from(["type", "properties", "$defs", "items"]), JSON)),
    unique_by=lambda tool: tool["name"],
)  # fmt: skip
COUNTS = st.builds(Usage, *[st.integers(0, 9_000)] * 4)


@given(DEFINITIONS, st.sets(st.sampled_from(NAMES)), st.lists(COUNTS, min_size=1, max_size=4), st.lists(JSON, max_size=2))
@example([{"name": NAMES[3], "description": "", "input_schema": {}}], {NAMES[2]}, [Usage(0, 0, 5)], [])  # no definition of what is called
def test_definitions_that_nothing_calls_cost_their_part_of_each_prompt(
    tools: list[dict[str, Any]], called: set[str], usages: list[Usage], junk: list[Any]
) -> None:
    """Causes still add up to the price. A server is named only if no tool of it is called, and a server tool or what is none never is."""
    log = Session()
    log.metadata |= {"model": "claude-opus-4-6", "tools": [*junk, *tools, {"type": "web_search_20250305", "name": "web_search"}]}
    for name in sorted(called):
        log.add_function_call(name, {}, name)
        log.add_function_output(name, "out", name)
    for number, usage in enumerate(usages):
        log.append(Message("assistant", "Done.", usage=usage, created_at=1_772_000_000.0 + number))
    unused = {tool["name"] for tool in tools} - called
    for reported, request in ContextWindowManager("claude-opus-4-6").made_up(log):
        charges = list(charges_of(request))
        assert abs(sum((charge.cost for charge in charges), Decimal(0)) - (cost_of(reported) or 0)) < Decimal("1e-15")
        assert all(charge.cost > Decimal("-1e-15") for charge in charges)
        parts = request.makeup.parts if request.makeup else ()
        assert sum(part.read for part in parts) <= request.cache_read
        assert sum(part.lost + part.paid for part in parts) <= request.prompt - request.cache_read
        servers = {part.detail for part in parts if part.kind == UNUSED}
        assert servers <= {name.split("__")[1] if "__" in name else "" for name in unused} | {""}
        assert not any(name.startswith(f"mcp__{server}_") for name in called for server in servers if server)
        if unused and min(request.cache_read, request.prompt - request.cache_read) > 6_000:
            assert sum(part.read for part in parts if part.kind == UNUSED) > 0


PARTS = st.builds(Part, st.text(max_size=5), st.text(max_size=5), st.text(max_size=5), *[st.integers(0, 10**9)] * 3)


@given(st.lists(PARTS, max_size=4), st.integers(0, 99), st.text(max_size=9))
def test_the_cache_keeps_the_makeup(parts: list[Part], lost: int, words: str) -> None:
    from session.transcripts.makeup import Makeup

    request = Request("", 1.0, "t", "m", "p", "s", input_tokens=1, makeup=Makeup(tuple(parts), lost, words, words, words))
    rows = LogRows((request, Request("", 1.0, "t", "m", "p", "s", input_tokens=1)), is_explained=True)
    assert decode(encode(rows)) == rows


def test_the_rows_hold_names_and_no_content(tmp_path: Path) -> None:
    """Of a conversation, the cache holds names of tools, commands and skills, subjects of commits and addresses of pull requests."""
    log = log_of([(tool, 9, (9, 0, 9_000, 9), 1, "claude-opus-4-6") for tool in range(len(TOOLS))])
    dangerous = call("c9", "Bash", command="curl -H 'Authorization: Bearer secret' x.example")
    log.answer("m9", dangerous, usage={"input_tokens": 9, "output_tokens": 1})
    log.user([result("c9", "a secret output")])
    log.answer("m10", text("A secret."), usage={"input_tokens": 9_000, "output_tokens": 1})
    rows = read_rows(str(log.write(tmp_path)), explain=explained)
    rows = rows if rows.startswith(b"{") else zlib.decompress(rows)
    assert b"curl" in rows
    assert b"git diff" in rows
    assert not any(word in rows for word in (b"secret", b"fox", b"a.py", b"Look"))


class TestCommand:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        turns = [(0, 300, (10, 0, 9_000, 50), 1, "claude-opus-4-6"), (2, 200, (10, 0, 12_000, 50), 30, "claude-opus-4-6")]
        return log_of(turns).write(tmp_path)

    @pytest.mark.parametrize("grouping", [*REASON_GROUPINGS, "commit", "pr"])
    def test_every_table_ends_with_the_same_total(self, shell: Shell, path: Path, grouping: str) -> None:
        total = json.loads(shell("spend", str(path), "--json")[1])["total"]["cost_usd"]
        printed = json.loads(shell("spend", str(path), "--by", grouping, "--json")[1])
        assert printed["total"]["cost_usd"] == total
        assert abs(sum(Decimal(row["cost_usd"]) for row in printed["rows"]) - Decimal(total)) < Decimal("1e-15")
        out = shell("spend", str(path), "--by", grouping, "--top", "1")[1]
        assert f"{Decimal(total):.2f}" in out
        assert shell("spend", str(path), "--by", grouping, "--csv")[1].count("\n") == len(printed["rows"]) + 1

    def test_causes_say_what_saves_them(self, shell: Shell, path: Path) -> None:
        out = shell("spend", str(path), "--by", "cause")[1]
        assert "cache lost: a pause" in out
        assert "To save some of the $0.05 for cache lost: a pause: go on sooner" in " ".join(out.split())

    def test_a_server_of_which_nothing_is_called_is_named(self, shell: Shell, tmp_path: Path) -> None:
        """A trajectory states its tools. What the idle server costs stands in both tables, to the cent."""
        tools = [{"type": "function", "function": {"name": f"mcp__{server}__get", "description": WORDS * 400}} for server in ("a", "b")]
        step: dict[str, Any] = {"source": "agent", "message": "I look.", "timestamp": "2026-01-01T00:00:01Z"}
        step["tool_calls"] = [{"tool_call_id": "c", "function_name": "mcp__a__get", "arguments": {}}]
        step["metrics"] = {"prompt_tokens": 90_000, "completion_tokens": 5}
        agent = {"name": "terminus-2", "version": "2.0", "model_name": "claude-sonnet-4-5", "tool_definitions": tools}
        path = tmp_path / "trajectory.json"
        path.write_text(json.dumps({"schema_version": "ATIF-v1.7", "session_id": "s", "agent": agent, "steps": [step]}), "utf-8")
        rows = json.loads(shell("spend", str(path), "--by", "cause", "--json")[1])["rows"]
        (idle,) = (row for row in rows if row["name"].startswith(UNUSED))
        assert idle["name"] == f"{UNUSED}: MCP server b"
        by_server = json.loads(shell("spend", str(path), "--by", "server", "--json")[1])["rows"]
        assert {row["name"]: row["cost_usd"] for row in by_server}["b"] == idle["cost_usd"]
        assert "turn the server off" in shell("spend", str(path), "--by", "cause")[1]

    def test_a_log_that_was_only_summed_up_is_read_again(self, path: Path) -> None:
        with SpendCache(cache_file()) as cache:
            assert read_ledger([path], cache=cache).requests[0].makeup is None
            ledger = read_ledger([path], cache=cache, explain=explained)
            assert ledger.requests[0].makeup is not None
            assert read_ledger([path], cache=cache, explain=explained) == ledger

    def test_what_makes_no_sense_is_refused(self, shell: Shell, path: Path) -> None:
        for options in (("--what-if", "auto"), ("--sort", "total")):
            code, _, err = shell("spend", str(path), "--by", "tool", *options)
            assert code == 0, err
            code, _, err = shell("spend", str(path), "--by", "cause", *options)
            assert code == 2
            assert options[0] in err

    def test_requests_whose_session_cannot_be_read_are_not_explained(self, tmp_path: Path) -> None:
        request = Request("r", 1_772_000_000.0, "t", "claude-opus-4-6", "", "", input_tokens=100_000)
        (row,) = reasons_by("cause", [request])
        assert row == (row.__class__)(UNEXPLAINED, 1, Decimal("0.5"), 1.0)
        assert reasons_by("cause", []) == []
        assert OUTSIDE not in {charge.kind for charge in charges_of(request)}
