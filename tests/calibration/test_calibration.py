"""Totals from reported usage: a manager's use of reports in the log and of recorded ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import CalibrationReset, ContextWindow, ContextWindowManager, ModelConfig
from context_window.calibration.reports import Report
from context_window.display.plan import plan_text
from context_window.errors import ArgumentError
from context_window.events.definitions import Event
from context_window.settings.usage_snapshot import rows_of
from session.errors import FormatError
from session.items import AgentConfigUpdate, Compaction, FunctionCall, FunctionCallOutput, Item, Message, MessageCategory
from session.session import Session
from session.session_log import recorded_total
from session.usage import Usage
from tests.support.counting import Letters
from tests.support.strategies import limits, reported, sessions
from tests.support.twin import cost


def a_manager(tokens: int = 10_000, **more: object) -> ContextWindowManager:
    return ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(max_tokens=tokens, **more))  # type: ignore[arg-type]


def sized(role: str, tokens: int, **more: object) -> Message:
    """A message that costs so much, by `Letters`."""
    return Message(role, "x" * (tokens - 4), **more)  # type: ignore[arg-type]


def asked(*, usage: Usage | None = None, **extra: object) -> Session:
    """A question of 104 tokens and an answer of 54, by `Letters`."""
    session = Session(id="s")
    session.append(Message("user", "q" * 100, id="q"))
    session.append(Message("assistant", "a" * 50, id="a", usage=usage, extra=extra))
    return session


def reported_above() -> Session:
    """Ten turns of 200 tokens each, by `Letters`, whose prompts were reported to have 3,000 more."""
    session = Session(id="s")
    for turn in range(10):
        session.append(Message("user", "q" * 96, id=f"q{turn}"))
        session.append(Message("assistant", "a" * 96, id=f"a{turn}", usage=Usage(input_tokens=3_000 + 200 * turn, output_tokens=100)))
    session.append(Message("user", "and now?", id="now"))
    return session


def test_reported_tokens_beyond_the_local_count_are_overhead() -> None:
    """A system prompt and tools are in no log, and most of the difference"""
    manager = a_manager()
    manager.process_session(asked(usage=Usage(input_tokens=1_104, output_tokens=54)))
    usage = manager.get_token_usage()
    # 1,104 were reported; new are the answer's 54, and 460 thousandths of the new tokens, of a thirtieth of the old ones and of 20
    assert usage["total"] == 1_104 + 54 + -(-460 * (54 + 36 + 20) // 1000)
    assert usage["DIALOG"] == 104 + 54
    assert usage["overhead"] == usage["total"] - 158


def test_the_total_is_the_reported_one_if_nothing_was_added_since() -> None:
    session = asked(usage=Usage(input_tokens=1_104))
    manager = a_manager(coverage=None)
    assert manager.analyze_session(session)["total_tokens"] == 158
    assert a_manager().analyze_session(session)["reported_tokens"] == 1_104
    assert a_manager(coverage=None).analyze_session(session)["reported_tokens"] is None


def test_a_response_costs_its_reported_tokens_if_those_are_more_than_the_local_count() -> None:
    less, more = (asked(usage=Usage(input_tokens=104, output_tokens=tokens)) for tokens in (10, 500))
    manager = a_manager()
    totals = [manager.analyze_session(session)["total_tokens"] for session in (less, more)]
    assert totals[0] >= 104 + 54
    assert totals[1] >= 104 + 500


def test_a_view_is_trimmed_when_the_reported_total_is_over_the_budget_though_the_local_count_is_not() -> None:
    session = reported_above()
    assert a_manager(4_000, coverage=None).process_session(session).items == session.items
    view = a_manager(4_000).process_session(session)
    assert len(view.items) < len(session.items)
    assert a_manager(4_000).get_token_usage(view)["total"] <= 4_000


def test_counts_that_were_too_high_are_lowered_in_every_row() -> None:
    manager = a_manager()
    session = asked(usage=Usage(input_tokens=30))
    session.add_context("c" * 26)
    manager.process_session(session)
    usage = manager.get_token_usage()
    assert sum(usage[category.value] for category in MessageCategory) + usage["overhead"] == usage["total"] < 188
    assert usage["DIALOG"] < 158
    assert usage["CONTEXT"] < 30


@given(st.lists(st.integers(0, 1_000), min_size=4, max_size=4), st.integers(0, 500), st.integers(-1_000, 1_000))
def test_rows_sum_to_the_total_and_none_is_negative(tokens: list[int], overhead: int, correction: int) -> None:
    """Rows still sum exactly to the total"""
    full_log = sum(tokens) + overhead
    correction = max(correction, -full_log)
    rows = rows_of(tokens, overhead, correction)
    assert sum(rows.tokens) + rows.overhead == full_log + correction
    assert min(*rows.tokens, rows.overhead) >= 0


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", None])
@given(system=st.integers(0, 60), prompt=st.integers(30, 500))
def test_the_report_on_usage_and_the_plan_say_the_same(model: str | None, system: int, prompt: int) -> None:
    """tokens of each category, overhead and total: whatever a provider has reported, none is negative"""
    manager = ContextWindowManager(model, token_counter=Letters(), context_window=ContextWindow(max_tokens=10_000))
    session = Session(id="s")
    session.add_message("system", "s" * (1 + system))
    for item in asked(usage=Usage(input_tokens=prompt)).items:
        session.append(item)
    manager.process_session(session)
    rows = {row.category.value: row.tokens for row in manager.usage().rows if row.items}
    overhead = manager.usage().overhead
    columns = {
        line.split()[1]: int(line.split()[4]) for line in plan_text(manager.plan_session(session), 100).splitlines() if "kept" in line
    }
    [shown_overhead] = [
        line.split()[-2] for line in plan_text(manager.plan_session(session), 100).splitlines() if line.startswith("overhead")
    ]
    assert columns.keys() == rows.keys()
    assert all(abs(columns[name] - rows[name]) <= 1 for name in rows)
    assert min(overhead, *columns.values()) >= 0
    assert int(shown_overhead) == overhead


@pytest.mark.parametrize("tokens", [0, 20])
def test_reports_that_cannot_be_of_the_view_are_not_used(tokens: int) -> None:
    """Some tools report nothing, or only uncached tokens"""
    assert a_manager().analyze_session(asked(usage=Usage(input_tokens=tokens)))["total_tokens"] == 158


def test_a_report_of_another_model_says_nothing_of_this_one() -> None:
    usage = Usage(input_tokens=1_104)
    manager = ContextWindowManager("claude-sonnet-4-5", token_counter=Letters())
    reported = [manager.analyze_session(asked(usage=usage, model=name))["reported_tokens"] for name in ("claude-sonnet-4-5", "gpt-5")]
    assert reported == [1_104, None]
    elsewhere = asked(usage=usage)
    elsewhere.metadata["model"] = "gpt-5"
    assert manager.analyze_session(elsewhere)["reported_tokens"] is None


def test_another_model_or_other_tools_reset_calibration_with_an_event() -> None:
    """it resets on a change of model, tools or system"""
    events: list[Event] = []
    window = ContextWindow(max_tokens=10_000)
    manager = ContextWindowManager(token_counter=Letters(), context_window=window, on_event=events.append)
    session = asked(usage=Usage(input_tokens=1_104), model="a")
    manager.process_session(session)
    session.append(Message("user", "next", id="n"))
    session.append(Message("assistant", "x", id="b", usage=Usage(input_tokens=2_000), extra={"model": "b"}))
    manager.process_session(session)
    assert [type(event) for event in events] == [CalibrationReset]
    assert manager.get_token_usage()["total"] >= 2_000
    session.add_config_update(tools=["search"])
    session.append(Message("user", "go on", id="g"))
    manager.process_session(session)
    assert [type(event) for event in events] == [CalibrationReset, CalibrationReset]
    assert manager.get_token_usage()["overhead"] == 0
    session.add_config_update(tools=["search"])  # the same again changes nothing
    manager.process_session(session)
    assert len(events) == 2


def test_use_model_leaves_the_reports_of_the_former_model_behind() -> None:
    events: list[Event] = []
    manager = ContextWindowManager("claude-sonnet-4-5", token_counter=Letters(), on_event=events.append)
    session = asked(usage=Usage(input_tokens=1_104), model="claude-sonnet-4-5")
    manager.process_session(session)
    manager.use_model("gpt-5")
    manager.process_session(session)
    assert [type(event) for event in events] == [CalibrationReset]
    manager.use_model("claude-sonnet-4-5")
    assert manager.analyze_session(session)["reported_tokens"] == 1_104


# Recorded reports


def in_turn(log: Session, manager: ContextWindowManager, *, late: int, seen: bool) -> Session:
    """The log played to a manager: what its items report is recorded instead.

    Args:
        log: The log.
        manager: The manager that gets the reports.
        late: How many items are appended before the report comes, from the answer on; 0 for a report that comes before the answer.
        seen: Whether the answer has been folded by then.

    Returns:
        The log as a loop of ours would have written it, each report with what the request was counted as.
    """
    session, noted = Session(id=log.id), []
    session.restore_seams(log.response_breaks, 0)
    waiting: list[tuple[int, Usage, Session]] = []
    for item in log.items:
        notes = manager.answer_notes(session)
        if item.usage is not None:
            request = Session.showing(session, list(session.items), breaks=session.response_breaks, settled=len(session.items))
            waiting.append((len(session.items) + late, item.usage, request))
        record(manager, waiting, len(session.items))
        session.append(bare(item))
        if seen:
            manager.process_session(session)
        record(manager, waiting, len(session.items))
        manager.process_session(session)
        noted.append(item if item.usage is None else replace(item, extra={**item.extra, **notes}))
    record(manager, waiting, len(session.items) + late)
    if log.items:
        manager.process_session(session)
    output = Session(noted, id=log.id)
    output.restore_seams(log.response_breaks, 0)
    return output


def record(manager: ContextWindowManager, waiting: list[tuple[int, Usage, Session]], length: int) -> None:
    """Gives the manager the reports that come when the log is so long."""
    while waiting and waiting[0][0] <= length:
        _, usage, request = waiting.pop(0)
        manager.record_usage(usage, request)


def bare(item: Item) -> Item:
    """The item without its request's tokens: some logs hold the tokens of answers alone."""
    return item if item.usage is None else replace(item, usage=Usage(output_tokens=3) if item.id.endswith("1") else None)


@given(st.data())
def test_a_recorded_report_has_the_effect_of_one_in_the_log(data: st.DataObject) -> None:
    """the reported usage that items carry (or that `record_usage` supplied) at the request points before"""
    log = data.draw(reported(data.draw(sessions(max_steps=10))))
    log = plain(log)
    budget = data.draw(limits(sum(map(cost, log.items)))).budget
    window = ContextWindow(max_tokens=budget)
    manager = ContextWindowManager(token_counter=Letters(), context_window=window)
    log = in_turn(log, manager, late=data.draw(st.sampled_from((0, 1, 1, 2, 3, 4))), seen=data.draw(st.booleans()))
    direct = ContextWindowManager(token_counter=Letters(), context_window=window)
    view = direct.process_session(log)
    assert not log.items or manager.get_token_usage() == direct.get_token_usage()
    restored = ContextWindowManager(token_counter=Letters(), context_window=window)
    restored.calibration.restore(json.loads(json.dumps(manager.calibration.to_dict())))
    cold = Session([bare(item) for item in log.items], id=log.id)
    cold.restore_seams(log.response_breaks, 0)
    assert [item.id for item in restored.process_session(cold).items] == [item.id for item in view.items]
    assert restored.get_token_usage() == direct.get_token_usage()


def plain(log: Session) -> Session:
    """The log without what only an item can say: which model it was, or that nothing was read; and without runs of several responses,
    and a recorded report means the last of them."""
    items, before = [], False
    for item in log.items:
        answer = item.type in {"reasoning", "function_call"} or (isinstance(item, Message) and item.role == "assistant")
        usage = None if (before and answer) or item.usage is None or not item.usage.total_input else item.usage
        items.append(replace(item, extra={name: value for name, value in item.extra.items() if name != "model"}, usage=usage))
        before = answer
    twin = Session(items, id=log.id)
    twin.restore_seams(log.response_breaks, 0)
    return twin


@pytest.mark.parametrize("seen", ["analysed", "processed", "both"])
def test_a_report_that_comes_late_is_in_every_figure(seen: str) -> None:
    """the same as from cold, even if the answer was folded before"""
    session, manager = asked(), a_manager()
    if seen != "analysed":
        manager.process_session(session)
    if seen != "processed":
        manager.analyze_session(session)
    manager.record_usage(Usage(1_104), session)
    stats = manager.analyze_session(session)
    assert stats["reported_tokens"] == manager.usage(session).reported_tokens == 1_104
    manager.process_session(session)
    assert manager.get_token_usage()["total"] == stats["total_tokens"] > 1_104


@pytest.mark.parametrize("in_log", [True, False])
def test_a_report_that_is_recorded_again_gives_the_view_of_a_cold_start(in_log: bool) -> None:
    session, manager = asked(usage=Usage(900) if in_log else None), a_manager()
    for tokens in (1_104, 1_204):
        manager.process_session(session)
        manager.record_usage(Usage(tokens), session)
    restored = a_manager()
    restored.calibration.restore(manager.calibration.to_dict())
    expected = 900 if in_log else 1_204
    assert [entry.analyze_session(session)["reported_tokens"] for entry in (manager, restored)] == [expected, expected]


LATE_ANSWER = FunctionCallOutput("t", "late", "c")


@pytest.mark.parametrize(
    ("since", "then"),
    [
        (AgentConfigUpdate("other rules"), [sized("user", 400)]),
        (LATE_ANSWER, [sized("user", 10), sized("assistant", 400), sized("user", 700)]),
        (sized("user", 10), [sized("user", 400)]),
    ],
    ids=["other instructions", "an answer to what was dropped", "a message"],
)
def test_a_late_report_gives_the_view_of_a_cold_start(since: Item, then: list[Item]) -> None:
    """the same log and the same reports give the same view"""
    manager = a_manager(1_500)
    session = Session([FunctionCall("t", "x" * 500, "c"), sized("user", 400), sized("assistant", 400), sized("user", 400)], id="s")
    view = manager.process_session(session)
    assert len(view.items) < len(session.items)
    request = manager.get_token_usage()["total"]
    session.append(sized("assistant", 100))
    session.append(since)
    manager.process_session(session)
    manager.record_usage(Usage(request + 100), view)
    for item in then:
        manager.process_session(session)
        session.append(item)
    cold = a_manager(1_500)
    cold.calibration.restore(manager.calibration.to_dict())
    ids = [[item.id for item in entry.process_session(session).items] for entry in (manager, cold)]
    assert ids[0] == ids[1]
    assert manager.get_token_usage() == cold.get_token_usage()


def test_usage_is_the_same_however_often_it_is_read() -> None:
    session = Session([sized("user", 500, id="q"), sized("assistant", 500, id="a", usage=Usage(700)), sized("user", 100)], id="s")
    session.append(Compaction("s" * 20, ("q", "a")))
    manager = a_manager()
    assert len({manager.analyze_session(session)["total_tokens"] for _ in range(3)}) == 1


def test_a_look_at_a_one_shot_trim_is_no_request() -> None:
    """The answer is noted with the local count of the view that was sent."""
    sizes = (("user", 600), ("assistant", 300), ("user", 400), ("assistant", 300), ("user", 100))
    session, manager = Session([sized(role, tokens) for role, tokens in sizes]), a_manager(1_500)
    manager.process_session(session)
    notes = manager.answer_notes(session)
    manager.trim_session(session)
    assert manager.answer_notes(session) == notes
    session.append(sized("user", 10))
    manager.trim_session(session)
    assert manager.answer_notes(session) != notes


def test_record_usage_accepts_the_usage_objects_of_clients() -> None:
    session = asked()
    given: list[object] = [
        Usage(input_tokens=500, cache_read_tokens=604, output_tokens=9),
        {"input_tokens": 500, "cache_read_input_tokens": 604, "cache_creation_input_tokens": 0, "output_tokens": 9},
        {"prompt_tokens": 1_104, "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": 604}},
        {"prompt_token_count": 1_104, "cached_content_token_count": 604, "candidates_token_count": 9},
    ]
    for usage in given:
        manager = a_manager()
        manager.process_session(session)
        manager.record_usage(usage)
        assert manager.analyze_session(session)["reported_tokens"] == 1_104


def test_record_usage_refuses_objects_without_usage() -> None:
    manager = a_manager()
    with pytest.raises(ArgumentError, match="usage"):
        manager.record_usage({"tokens": 5}, asked())
    with pytest.raises(ArgumentError, match=r"usage=.*no input tokens"):
        manager.record_usage({"input_tokens": 0, "output_tokens": 5}, asked())
    with pytest.raises(ArgumentError, match="session"):
        manager.record_usage(Usage(input_tokens=5))
    with pytest.raises(ArgumentError, match="session"):
        manager.record_usage(Usage(input_tokens=5), "s")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "data",
    [
        None,
        {"version": 2, "sessions": {}},
        {"version": 1},
        {"version": 1, "sessions": {"s": []}},
        {"version": 1, "sessions": {"s": {"q": {"input_tokens": -1}}}},
        {"version": 1, "sessions": {"s": {"q": {"input_tokens": 1.5}}}},
        {"version": 1, "sessions": {"s": {"q": {"inputs": 1}}}},
        {"version": 1, "sessions": {"s": {"q": {"model": 4}}}},
    ],
)
def test_damaged_reports_are_refused_and_change_nothing(data: object) -> None:
    manager = a_manager()
    manager.record_usage(Usage(input_tokens=1_104), asked())
    before = manager.calibration.to_dict()
    with pytest.raises(FormatError):
        manager.calibration.restore(data)
    assert manager.calibration.to_dict() == before


def test_reports_of_the_sessions_reported_last_are_kept() -> None:
    manager = a_manager()
    for number in range(1_002):
        manager.calibration.record(f"s{number}", "q", _report(number))
    kept = manager.calibration.to_dict()["sessions"]
    assert len(kept) == 1_000
    assert "s1" not in kept
    assert kept["s1001"] == {"q": {"input_tokens": 1_001, "model": "m"}}


def _report(tokens: int) -> Report:
    return Report(Usage(input_tokens=tokens), "m")


# The shown figures


def test_the_display_names_the_report_behind_a_total() -> None:
    manager = a_manager()
    manager.process_session(asked(usage=Usage(input_tokens=1_104)))
    text = manager.format_token_usage()
    assert "an upper bound, based on 1,104 tokens reported by the provider" in " ".join(text.split())
    assert manager.usage().to_dict()["reported_tokens"] == 1_104


def test_the_usage_of_a_log_starts_from_its_last_report_whatever_the_budget() -> None:
    session = Session(id="s")
    for turn in range(1, 6):
        session.append(Message("user", "x" * 1_000))
        session.append(Message("assistant", "y" * 1_000, usage=Usage(input_tokens=2_000 * turn)))
    session.append(Message("user", "and?"))
    small, large = (a_manager(budget).usage(session) for budget in (4_000, 100_000))
    assert small.reported_tokens == large.reported_tokens == 10_000
    assert "based on 10,000 tokens reported by the provider" in " ".join(str(small).split())


def test_a_loaded_view_has_the_total_of_the_saved_one() -> None:
    session = reported_above()
    manager = a_manager(4_000)
    view = manager.process_session(session)
    total = manager.get_token_usage()["total"]
    loaded = Session.from_dict(json.loads(json.dumps(view.to_dict())))
    other = a_manager(4_000)
    assert other.process_session(loaded).items == loaded.items
    assert other.get_token_usage()["total"] == other.analyze_session(loaded)["total_tokens"] == total


def test_a_view_starts_from_its_recorded_cost_until_its_own_request_is_reported() -> None:
    view = a_manager(4_000).process_session(reported_above())
    manager = a_manager(4_000)
    manager.process_session(view)
    total = recorded_total(view)
    assert total is not None
    stats = manager.analyze_session(view)
    assert (stats["reported_tokens"], stats["settled_tokens"]) == (None, total)
    assert manager.usage().to_dict()["settled_tokens"] == total
    assert f"based on the {total:,} tokens of this view when it was made" in " ".join(str(manager.usage()).split())
    view = Session.from_view(view)
    view.append(Message("assistant", "a" * 96, usage=Usage(input_tokens=2_222, output_tokens=100)))
    stats = manager.analyze_session(view)
    assert (stats["reported_tokens"], stats["settled_tokens"]) == (2_222, None)


def test_the_whole_log_is_not_taken_for_the_view_that_was_reported() -> None:
    """analyze_session: what the whole session would cost, untrimmed"""
    session = Session(id="s")
    manager = a_manager(2_000)
    for turn in range(40):
        session.append(Message("user", "q" * 96, id=f"q{turn}"))
        request = manager.process_session(session)
        local = sum(map(cost, request.items)) + (4 + len(request.removed.line) if request.removed is not None else 0)
        session.append(Message("assistant", "a" * 96, id=f"a{turn}", usage=Usage(input_tokens=local + 300, output_tokens=100)))
    full_log = manager.analyze_session(session)
    slack = 24 + 11  # letters of ids and numbers that are reserved for the line about removed items, which the whole session does not have
    assert 8_300 - slack <= full_log["total_tokens"] <= 8_500
    manager.process_session(session)
    assert manager.get_token_usage()["total"] <= 2_000


def test_a_model_config_with_a_limit_is_calibrated_too() -> None:
    manager = ContextWindowManager(ModelConfig("claude-sonnet-4-5", 50_000))
    assert manager.analyze_session(asked(usage=Usage(input_tokens=9_000)))["reported_tokens"] == 9_000


# Logs that others were left out of


def long_ago(turns: int = 30) -> Session:
    """A conversation whose prompts had some 200 tokens a turn, and 500 that are in no log."""
    session = Session(id="parent")
    for turn in range(turns):
        session.append(Message("user", "q" * 96, id=f"q{turn}"))
        session.append(Message("assistant", "a" * 96, id=f"a{turn}", usage=Usage(input_tokens=600 + 200 * turn, output_tokens=100)))
    return session


@pytest.mark.parametrize(
    "left",
    [
        lambda session: session.fork_brief("You are a tester.", "Test it.", recent_turns=2),
        lambda session: session.fork_filtered(recent_turns=2),
        lambda session: session.truncate(max_items=5),
    ],
    ids=("brief", "filtered", "truncated"),
)
def test_reports_in_a_shortened_log_are_not_used(left: Callable[[Session], Session]) -> None:
    session = left(long_ago())
    session.add_message("user", "and now?")
    manager = a_manager(2_000)
    assert manager.process_session(session).items == session.items
    assert manager.analyze_session(session)["reported_tokens"] is None
    session.append(Message("assistant", "so", id="so", usage=Usage(input_tokens=1_500)))
    assert manager.analyze_session(session)["reported_tokens"] == 1_500


def test_a_complete_fork_uses_its_parents_reports() -> None:
    assert a_manager().analyze_session(long_ago().fork())["reported_tokens"] == 600 + 200 * 29


@given(st.integers(5, 14), st.integers(3_000, 60_000), st.integers(40, 60))
def test_text_that_is_in_no_log_does_not_leave_with_the_items(turn: int, unlogged: int, size: int) -> None:
    """It joins the requests in the middle of a session and stays, also where the request that brought it was trimmed. What a trim takes
    lowers the bound by the items, at a price of at most a tenth too much: no later request is four per cent above it."""
    manager, session = a_manager(6_000 + unlogged), Session()
    bounds, costs = list[int](), list[int]()
    for number in range(25):
        session.append(sized("user", 10 * size))
        if number == turn:
            session.append(Compaction("s", [item.id for item in session.items[:-3]]))
        view = manager.process_session(session)
        bounds.append(manager.get_token_usage()["total"])
        costs.append(sum(map(cost, view.items)) + 200 + (unlogged if number >= turn else 0))
        session.append(sized("assistant", size))
        manager.record_usage(Usage(costs[-1], 0, 0, size), session)
    later = [at for at in range(1, 25) if at != turn]
    assert all(bounds[at] >= 0.96 * costs[at] for at in later)
