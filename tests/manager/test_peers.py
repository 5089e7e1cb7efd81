"""Problems that users of other systems reported, one per test: they must not happen here."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise

import pytest

from context_window import (
    ContextWindow,
    ContextWindowManager,
    FunctionCall,
    FunctionCallOutput,
    Image,
    Reasoning,
    Session,
    ThresholdCrossed,
    Trimmed,
    UnknownModelError,
)
from session.providers import validate_anthropic
from tests.support.counting import Letters
from tests.support.managing import ids, make_manager, session_of

BUDGETS = range(150, 4000, 150)


def coding_session(turns: int, calls: int = 3) -> Session:
    """Return a coding session: a question, some rounds of thinking, reading and running, an answer."""
    session = Session(id="s")
    session.add_message("system", "s" * 96, "sys", 0.0)
    for number in range(turns):
        session.add_message("user", f"do {number} " + "q" * 60, f"u{number}", 0.0)
        for step in range(calls):
            session.append(Reasoning("t" * 50, signature="signed", id=f"r{number}.{step}"))
            for name in ("read", "run"):
                session.append(FunctionCall(name, '{"a": 1}', f"{name}{number}.{step}", id=f"call {name}{number}.{step}"))
            for name in ("read", "run"):
                session.append(FunctionCallOutput(name, "o" * 400, f"{name}{number}.{step}", id=f"out {name}{number}.{step}"))
        session.add_message("assistant", "a" * 80, f"a{number}", 0.0)
    return session


def views_of(window_manager: ContextWindowManager, source: Session) -> list[Session]:
    """Return the view of every request of a session, made before each response, in order."""
    log, views = Session(id=source.id), []
    for item in source.items:
        starts = item.type in {"reasoning", "function_call"} or getattr(item, "role", "") == "assistant"
        if starts and log.items and log.items[-1].type in {"message", "function_call_output"}:
            views.append(window_manager.process_session(log))
        log.append(item)
    return views


# Pairs


def test_no_orphaned_tool_results() -> None:
    """langchain 35313, litellm 4931 and 6505, autogen 7955, semantic-kernel 12708, openai-agents-python 2317, CopilotKit 3820: a cut
    between a call and its result, and every later request is refused."""
    session = coding_session(6)
    for budget in BUDGETS:
        for view in (make_manager(budget).process_session(session), make_manager(budget).trim_session(session)):
            calls = {item.call_id for item in view.items if isinstance(item, FunctionCall)}
            outputs = {item.call_id for item in view.items if isinstance(item, FunctionCallOutput)}
            assert calls == outputs
            assert validate_anthropic(view.to_anthropic_messages()) == []


def test_a_call_in_flight_stays() -> None:
    """adk-python 4740: a pending call was compacted away, and its result had nowhere to go."""
    session = coding_session(6)
    session.add_function_call("deploy", {"to": "production"}, "pending")
    for budget in BUDGETS:
        for view in (make_manager(budget).process_session(session), make_manager(budget).trim_session(session)):
            assert "pending" in {item.call_id for item in view.items if isinstance(item, FunctionCall)}


def test_one_dead_call_does_not_stop_the_trimming() -> None:
    """adk-python 7236: one call that was never answered, and compaction was off for ever."""
    session = Session()
    session.add_message("user", "go")
    session.add_function_call("hang", {}, "dead")
    for number in range(40):
        session.add_message("user", f"{number}" + "q" * 90)
        session.add_message("assistant", "a" * 90)
    window_manager = make_manager(1500)
    view = window_manager.process_session(session)
    assert window_manager.get_token_usage()["total"] <= 1500
    assert len(view.items) < len(session.items) / 4


# Caches


def test_the_boundary_does_not_move_at_every_turn() -> None:
    """kern-ai 295: ten times the cost, since each request began elsewhere. opencode 32515: a prune made the next call 7 times dearer."""
    views = views_of(make_manager(20_000), coding_session(40))
    edits = sum(list(after.items[: len(before.items)]) != list(before.items) for before, after in pairwise(views))
    assert len(views) == 160
    assert 3 < edits < 160 / 8


def test_placeholders_do_not_drift() -> None:
    """space-agent 70: a placeholder that counted turns changed at each of them, and with it the prompt."""
    texts: dict[str, set[str]] = {}
    for view in views_of(make_manager(6000), coding_session(20)):
        for item in view.items:
            if isinstance(item, FunctionCallOutput) and "taken out" in item.text:
                texts.setdefault(item.id, set()).add(item.text)
    assert len(texts) > 20
    assert {len(forms) for forms in texts.values()} == {1}


# Counting


def test_each_text_is_counted_once() -> None:
    """claude-code 12952 (103 to 1514 ms in one session), swarms 1735 (everything recounted on every turn), deepagents 3877 (twice)."""
    counts: Counter[str] = Counter()

    def count(text: str) -> int:
        counts[text] += 1
        return len(text)

    session = Session()
    window_manager = ContextWindowManager(token_counter=count, context_window=ContextWindow(max_tokens=2000))
    for number in range(100):
        session.add_message("user", f"question {number} " + "q" * 50)
        session.add_message("assistant", f"answer {number} " + "a" * 50)
        window_manager.process_session(session)
        window_manager.get_token_usage()
        window_manager.format_token_usage(session)
    assert {times for text, times in counts.items() if text.startswith(("question", "answer"))} == {1}


def test_images_are_not_counted_as_base64_nor_all_alike() -> None:
    """open-webui 29818, agentic-api 255: a million tokens for a screenshot; langchain 39857: 85 for each."""
    window_manager = ContextWindowManager("claude-sonnet-4-5")
    costs = []
    for width, height in ((200, 200), (1000, 1000)):
        session = Session()
        session.add_message("user", [Image(data=b"\x89PNG" + bytes(2_000_000), media_type="image/png", width=width, height=height)])
        costs.append(window_manager.analyze_session(session)["per_category"]["DIALOG"])
    small, large = costs
    assert 30 < small < 100
    assert 1000 < large < 2000


def test_images_have_a_limit_of_their_own() -> None:
    """smolagents 1487: screenshots pile up, and each request carries them all."""
    session = Session()
    for number in range(10):
        session.add_message("user", [Image(url=f"shot{number}", width=10, height=10)], f"u{number}")
        session.add_message("assistant", "seen")
    session.add_message("user", "and now?")
    view = make_manager(10**6, images_kept=2).process_session(session)
    assert [item.id for item in view.messages() if any(isinstance(part, Image) for part in item.content)] == ["u8", "u9"]


def test_calls_results_and_tools_and_the_system_prompt_count() -> None:
    """llama_index 21950: tool calls cost nothing; langchain 34664: neither did tools and the system prompt. Then the window overflowed."""
    tools = [{"name": "read", "description": "d" * 1000}]
    window_manager = ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(max_tokens=10_000), tools=tools)
    session = Session()
    costs = [window_manager.get_token_usage(session)["total"]]
    session.add_message("system", "s" * 500)
    costs.append(window_manager.get_token_usage(session)["total"])
    session.add_message("user", "q")
    costs.append(window_manager.get_token_usage(session)["total"])
    session.add_function_call("read", {"path": "p" * 700}, "c")
    session.add_function_output("read", "o" * 900, "c")
    costs.append(window_manager.get_token_usage(session)["total"])
    gained = [after - before for before, after in zip([0, *costs], costs, strict=False)]
    assert [gain >= least for gain, least in zip(gained, (1000, 500, 1, 1600), strict=True)] == [True] * 4


# Budgets


def test_a_trim_makes_room_for_many_turns() -> None:
    """codex 20983: 100 %, 83 %, 100 %, 83 %, again and again. opencode 27924: endless compaction."""
    trims: list[int] = []
    window_manager = ContextWindowManager(
        token_counter=Letters(),
        context_window=ContextWindow(max_tokens=6000),
        on_event=lambda event: trims.append(event.tokens) if isinstance(event, Trimmed) else None,
    )
    views_of(window_manager, coding_session(40))
    assert trims
    assert max(trims) <= 0.65 * 6000


def test_a_view_never_costs_more_than_the_log() -> None:
    """gemini-cli 5432: "compressed" from 737,000 to 1,460,000 tokens."""
    session = coding_session(6)
    session.add_function_call("ls", {}, "tiny")
    session.add_function_output("ls", "", "tiny")
    log_total = make_manager().get_token_usage(session)["total"]
    for budget in BUDGETS:
        window_manager = make_manager(budget)
        window_manager.process_session(session)
        assert window_manager.get_token_usage()["total"] <= log_total
        assert all(decision.after <= decision.before for decision in window_manager.plan_session(session))


def test_the_window_holds_in_the_middle_of_a_turn() -> None:
    """goose 11072: the size was looked at when turns ended, and one turn of a hundred calls overflowed."""
    window_manager = make_manager(6000)
    log = Session()
    log.add_message("user", "do it all", "task", 0.0)
    for number in range(60):
        log.add_function_call("read", {"n": number}, f"c{number}")
        log.add_function_output("read", "o" * 700, f"c{number}")
        view = window_manager.process_session(log)
        assert window_manager.get_token_usage()["total"] <= 6000
        assert view.items[0].id == "task"


def test_room_for_the_answer_is_kept() -> None:
    """claude-code 8136: the whole window was the prompt's, and there was none left for the answer."""
    window_manager = ContextWindowManager("claude-sonnet-4-5")
    report = window_manager.usage()
    assert report.window is not None
    assert report.window - report.budget == report.reserve >= 8_000


def test_nothing_is_taken_before_the_budget_is_exceeded() -> None:
    """claude-code 72600: compaction fired at 47 %."""
    session = session_of(10)
    total = make_manager(10**6).get_token_usage(session)["total"]
    assert make_manager(total).process_session(session) is session
    assert make_manager(total - 1).process_session(session) is not session


def test_an_unknown_model_is_an_error_and_no_endless_window() -> None:
    """CommandCode 756: the model was not known, and the trimming never fired."""
    with pytest.raises(UnknownModelError, match="max_tokens"):
        ContextWindowManager("my-own-model")
    window_manager = ContextWindowManager("my-own-model", Letters(), context_window=ContextWindow(max_tokens=2000))
    window_manager.process_session(coding_session(10))
    assert window_manager.get_token_usage()["total"] <= 2000


# Content that must be kept


def test_the_system_prompt_the_last_request_and_the_pins_stay() -> None:
    """claude-code 6354 (the instructions), 22376 (the last request); codex 26889, opencode 8932, claude-code 44598 (users want pins)."""
    session = coding_session(6)
    rules = session.add_context("never push to main", source="RULES.md", pinned=True)
    session.add_message("assistant", "noted", "noted", 0.0)
    session.pin("a1")
    last = session.add_message("user", "now fix the bug", "last", 0.0)
    for budget in BUDGETS:
        for view in (make_manager(budget).process_session(session), make_manager(budget).trim_session(session)):
            assert {"sys", "a1", rules.id, last.id} <= set(ids(view))


def test_every_placeholder_leads_to_what_it_stands_for() -> None:
    """nanobot 5775: a stub pointed at content that had been trimmed itself. deja-vu 543: dropped content, please."""
    session = coding_session(10)
    window_manager = make_manager(6000)
    view = window_manager.process_session(session)
    outputs = [item for item in view.items if isinstance(item, FunctionCallOutput)]
    named = [(item.id, recall_id) for item in outputs for recall_id in re.findall(r"recall id ([^\]]+)\]", item.text)]
    assert len(named) > 5
    for item_id, recall_id in named:
        assert window_manager.recall(session, recall_id) is session.get_by_id(item_id)
    dropped = set(ids(session)) - set(ids(view))
    assert dropped
    assert all(window_manager.recall(session, name) is session.get_by_id(name) for name in dropped)


def test_thinking_is_whole_or_gone() -> None:
    """gajae-code 4247: thinking was emptied and its signature kept, and the provider refused the session for ever."""
    session = coding_session(6)
    for budget in BUDGETS:
        view = make_manager(budget).process_session(session)
        assert all(item is session.get_by_id(item.id) for item in view.items if isinstance(item, Reasoning))


# Display


def test_the_parts_sum_to_the_total_in_every_display() -> None:
    """claude-code 23372: they did not. 15005: 7 % shown here, 36 % free there. kimi-code 524: a breakdown, please."""
    window_manager = make_manager(6000)
    window_manager.process_session(coding_session(10))
    usage, report = window_manager.get_token_usage(), window_manager.usage()
    parts = ("overhead", "SYSTEM", "CONTEXT", "DIALOG", "SYSTEM_OUTPUT")
    assert usage["total"] == sum(usage[part] for part in parts) == report.total
    assert usage["available"] == usage["budget"] - usage["total"] == window_manager.available_tokens == report.available
    assert usage == {**usage, **{row.category.value: row.tokens for row in report.rows}}
    text = window_manager.format_token_usage()
    assert all(f"{usage[part]:,}" in text for part in ("total", "budget", "SYSTEM", "DIALOG", "SYSTEM_OUTPUT"))


def test_warnings_come_before_the_first_trim() -> None:
    """claude-code 75241: compaction came without a warning."""
    events: list[object] = []
    window_manager = ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(max_tokens=6000), on_event=events.append)
    views_of(window_manager, coding_session(10, calls=1))
    first = next(place for place, event in enumerate(events) if isinstance(event, Trimmed))
    assert [event.threshold for event in events[:first] if isinstance(event, ThresholdCrossed)] == [0.5, 0.75, 0.9]
