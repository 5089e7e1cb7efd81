"""The provider's own count: requested with the real clients from a local stub, shown, emitted, and never used for decisions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import pytest

from context_window import ContextOverflowError, ContextWindow, ContextWindowManager, Image, PartRefusedError, Session
from context_window.counting import provider_count as provider
from context_window.counting.provider_count import ProviderCounter
from context_window.events.definitions import CounterFellBack, Event, OverBudget, ProviderOverBudget, Trimmed
from tests.counting.test_count_clients import Anthropic as Counted
from tests.counting.test_count_clients import async_anthropic
from tests.support.counting import Letters
from tests.support.lazy import LazyModule
from tests.support.pictures import png
from tests.support.stubs.clients import anthropic_client
from tests.support.stubs.server import Refusal

if TYPE_CHECKING:
    import anthropic
else:
    anthropic = LazyModule("anthropic")

MODEL = "claude-sonnet-4-5"


def session_of(turns: int = 3) -> Session:
    session = Session()
    session.add_message("system", "You are terse.")
    for turn in range(turns):
        session.add_message("user", f"What does file {turn} hold?")
        call = session.add_function_call("read_file", {"path": f"{turn}.py"})
        session.add_function_output("read_file", "print('hello')\n" * 20, call.call_id)
        session.add_message("assistant", f"File {turn} says hello.")
    session.add_message("user", "Thank you.")
    return session


def make_manager(client: Any, events: list[Event] | None = None, **arguments: Any) -> ContextWindowManager:
    model = arguments.pop("model", MODEL)
    counter, tools = arguments.pop("counter", None), arguments.pop("tools", ())
    tell = None if events is None else events.append
    window = ContextWindow(**({"max_tokens": 100_000} | arguments))
    return ContextWindowManager(model, counter, client, context_window=window, tools=tools, on_event=tell)


Asked = Callable[[Counted, Callable[[Any], ContextWindowManager], str, Session], Any]


def _ask_waiting(stub: Counted, make: Callable[[Any], ContextWindowManager], method: str, session: Session) -> Any:
    with anthropic_client(stub) as client:
        return getattr(make(client), f"{method}_session")(session)


def _ask_async(stub: Counted, make: Callable[[Any], ContextWindowManager], method: str, session: Session) -> Any:
    async def ask() -> Any:
        async with async_anthropic(stub) as client:
            return await getattr(make(client), f"a{method}_session")(session)

    return asyncio.run(ask())


def _ask_in_a_thread(stub: Counted, make: Callable[[Any], ContextWindowManager], method: str, session: Session) -> Any:
    with anthropic_client(stub) as client:
        return asyncio.run(getattr(make(client), f"a{method}_session")(session))


WAYS: dict[str, Asked] = {"sync": _ask_waiting, "async": _ask_async, "sync client, async call": _ask_in_a_thread}
every_way = pytest.mark.parametrize("ask", WAYS.values(), ids=WAYS)


@every_way
def test_the_whole_request_is_counted(ask: Asked) -> None:
    tool = {
        "type": "function",
        "function": {"name": "read_file", "description": "Reads.", "parameters": {"type": "object", "properties": {}}},
    }
    session = session_of()
    with Counted() as stub:
        stats = ask(stub, lambda client: make_manager(client, tools=[tool]), "analyze", session)
        messages, system = session.to_anthropic_messages()
        described = {"name": "read_file", "description": "Reads.", "input_schema": {"type": "object", "properties": {}}}
        assert stub.requests == [{"model": MODEL, "messages": messages, "system": system, "tools": [described]}]
        assert stats["provider_tokens"] == stub.answers[0]["input_tokens"] > 0
    assert stats | {"provider_tokens": None} == make_manager(None, tools=[tool]).analyze_session(session)


FAILURES: dict[str, tuple[Any, str]] = {
    "rate limit": (
        Refusal("Number of requests has exceeded your rate limit", status=429, kind="rate_limit_error"),
        "RateLimitError (HTTP 429)",
    ),
    "server error": (Refusal("Internal server error", status=500, kind="api_error"), "InternalServerError (HTTP 500)"),
    "overloaded": (Refusal("Overloaded", status=529, kind="overloaded_error"), "(HTTP 529)"),
    "refused": (Refusal("messages: no", status=400), "BadRequestError (HTTP 400)"),
    "unknown model": (Refusal("model: nobody", status=404, kind="not_found_error"), "NotFoundError (HTTP 404)"),
    "zero": (0, "no count"),
    "negative": (-5, "no count"),
    "a text": ("many", "no count"),
    "a fraction": (1.5, "no count"),
    "true": (True, "no count"),
    "more than there are": (10**30, "no count"),
    "empty": ({}, "no count"),
    "something else": ({"output_tokens": 7}, "no count"),
    "a list": ({"input_tokens": [7]}, "no count"),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failure_falls_back_to_the_local_count_with_an_event(failure: str) -> None:
    answer, why = FAILURES[failure]
    events: list[Event] = []
    session = session_of()
    with Counted(answer) as stub:
        stats = _ask_waiting(stub, lambda client: make_manager(client, events), "analyze", session)
        assert len(stub.requests) == 1  # no retries
    assert stats["provider_tokens"] is None
    assert stats["total_tokens"] == make_manager(None).analyze_session(session)["total_tokens"] > 0
    (event,) = events
    assert isinstance(event, CounterFellBack)
    assert why in event.why
    assert (event.session_id, event.tokens, event.counter) == (session.id, stats["total_tokens"], stats["counter"])
    assert "count_tokens failed" in str(event)


def test_an_answer_that_is_not_json_is_not_a_count() -> None:
    class Garbled(Counted):
        def respond(self, path: str, headers: Mapping[str, str], raw: bytes) -> tuple[int, Any]:
            return 200, "<html>"

    with Garbled() as stub:
        assert _ask_waiting(stub, make_manager, "analyze", session_of())["provider_tokens"] is None


def test_the_event_loop_runs_while_the_provider_counts() -> None:
    async def ticks_while(call: Any) -> int:
        ticks = 0
        task = asyncio.ensure_future(call)
        while not task.done():
            await asyncio.sleep(0.01)
            ticks += 1
        await task
        return ticks

    async def both(stub: Counted) -> list[int]:
        with anthropic_client(stub) as slow:
            async with async_anthropic(stub) as client:
                return [await ticks_while(make_manager(api_client).aanalyze_session(session_of())) for api_client in (client, slow)]

    with Counted(seconds=0.3) as stub:
        assert min(asyncio.run(both(stub))) >= 5


def test_the_event_loop_runs_while_tokens_are_counted() -> None:
    class Slow(Letters):
        def count_text(self, text: str) -> int:
            time.sleep(0.02)
            return super().count_text(text)

    async def ticks() -> int:
        count = 0
        manager = await asyncio.to_thread(make_manager, None, counter=Slow())
        task = asyncio.ensure_future(manager.aprocess_session(session_of()))
        while not task.done():
            await asyncio.sleep(0.01)
            count += 1
        assert (await task).items
        return count

    assert asyncio.run(ticks()) >= 5


def test_each_request_is_sent_to_the_provider_once() -> None:
    session = session_of()
    with Counted() as stub, anthropic_client(stub) as client:
        manager = make_manager(client)
        first = manager.analyze_session(session)["provider_tokens"]
        assert manager.analyze_session(session.copy())["provider_tokens"] == first  # by content, whatever its ids
        assert len(stub.requests) == 1
        session.add_message("assistant", "You are welcome.")
        session.add_message("user", "Bye.")
        assert (manager.analyze_session(session)["provider_tokens"] or 0) > (first or 0) > 0
        assert len(stub.requests) == 2


def test_a_failure_is_not_remembered() -> None:
    session = session_of()
    with Counted(Refusal("Overloaded", status=529)) as stub, anthropic_client(stub) as client:
        manager = make_manager(client)
        assert manager.analyze_session(session)["provider_tokens"] is None
        stub.answer = 123
        assert manager.analyze_session(session)["provider_tokens"] == 123


def test_the_number_of_remembered_counts_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider, "REMEMBERED", 2)
    sessions = [Session() for _ in range(3)]
    for number, session in enumerate(sessions):
        session.add_message("user", str(number))
    with Counted() as stub, anthropic_client(stub) as client:
        counter = ProviderCounter(client, MODEL)
        for session in (*sessions, sessions[2], sessions[0]):
            question = counter.count_request(session)
            assert question is not None
            assert counter.count(question).tokens
        assert len(counter._counts) == 2
        assert len(stub.requests) == 4


# Views


@pytest.mark.parametrize("method", ["process", "trim"])
@pytest.mark.parametrize("answer", [None, 10_000_000, Refusal("Overloaded", status=529)], ids=["counts", "counts far more", "fails"])
@every_way
def test_the_view_does_not_depend_on_the_providers_count(ask: Asked, answer: Any, method: str) -> None:
    session = session_of(10)
    alone = getattr(make_manager(None, max_tokens=600), f"{method}_session")(session)
    with Counted(answer) as stub:
        view = ask(stub, lambda client: make_manager(client, max_tokens=600), method, session)
    assert view.to_dict()["items"] == alone.to_dict()["items"]
    assert len(view.items) < len(session.items)


@pytest.mark.parametrize("method", ["process", "trim"])
@every_way
def test_a_view_that_the_provider_counts_over_budget_causes_an_event(ask: Asked, method: str) -> None:
    session, events = session_of(), list[Event]()
    local = make_manager(None).analyze_session(session)["total_tokens"]
    with Counted(local + 50) as stub:
        view = ask(stub, lambda client: make_manager(client, events, max_tokens=local + 20, warn_at=()), method, session)
    assert view.items == session.items
    assert events == [ProviderOverBudget(session.id, local + 50, local + 20, local)]
    assert "set a smaller budget" in str(events[0])


@every_way
def test_a_view_far_below_the_budget_is_not_checked(ask: Asked) -> None:
    session = session_of()
    local = make_manager(None).analyze_session(session)["total_tokens"]
    with Counted() as stub:
        ask(stub, lambda client: make_manager(client, max_tokens=local * 4 // 3 + 2), "process", session)
        assert stub.requests == []
        ask(stub, lambda client: make_manager(client, max_tokens=local * 4 // 3 - 2), "process", session)
        assert len(stub.requests) == 1


@every_way
def test_an_overflow_is_raised_without_asking_the_provider(ask: Asked) -> None:
    events: list[Event] = []
    with Counted() as stub:
        with pytest.raises(ContextOverflowError):
            ask(stub, lambda client: make_manager(client, events, max_tokens=5, strict=True), "process", session_of())
        assert stub.requests == []
    assert {type(event) for event in events} >= {OverBudget, Trimmed}


# Display


def test_the_providers_count_is_in_the_usage_until_the_figures_change() -> None:
    session = session_of()
    with Counted(4321) as stub, anthropic_client(stub) as client:
        manager = make_manager(client)
        manager.analyze_session(session)
        report = manager.usage()
        assert report.provider_tokens == report.to_dict()["provider_tokens"] == 4321
        assert "the provider counted 4,321" in " ".join(str(report).split())
        assert report.total == manager.get_token_usage()["total"]  # the number that decisions use
        manager.update_usage("DIALOG", 5)
        assert manager.usage().provider_tokens is None
        manager.analyze_session(session)
        manager.reset_usage()
        assert manager.usage().provider_tokens is None


@pytest.mark.parametrize(
    "tool",
    [
        {"name": "look", "description": "Looks.", "input_schema": {"type": "object"}},
        {"type": "function", "name": "look", "description": "Looks.", "parameters": {"type": "object"}},
        {"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": {"type": "object"}}},
        {"function_declarations": [{"name": "look", "description": "Looks.", "parameters": {"type": "object"}}]},
        '{"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}',
    ],
    ids=["Anthropic", "Responses", "Chat Completions", "Gemini", "text"],
)
def test_a_tool_is_sent_in_anthropics_form(tool: Any) -> None:
    question = ProviderCounter(anthropic.Anthropic(api_key="k"), f"anthropic/{MODEL}[1m]", iter([tool])).count_request(session_of())
    assert question is not None
    assert question.request["tools"] == [{"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}]
    assert question.request["model"] == MODEL


def test_a_tool_that_the_provider_has_itself_is_sent_as_it_is() -> None:
    tool = {"type": "bash_20250124", "name": "bash"}
    question = ProviderCounter(anthropic.Anthropic(api_key="k"), MODEL, [tool]).count_request(session_of())
    assert question is not None
    assert question.request["tools"] == [tool]


def test_a_session_that_cannot_be_converted_is_counted_locally_with_an_event(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Session, *, caching: bool = False) -> Any:
        raise RecursionError

    monkeypatch.setattr(Session, "to_anthropic_messages", fail)
    events: list[Event] = []
    with Counted() as stub, anthropic_client(stub) as client:
        stats = make_manager(client, events).analyze_session(session_of())
        assert stub.requests == []
    assert (stats["provider_tokens"], stats["total_tokens"] > 0) == (None, True)
    assert ["cannot be written as a request" in str(event) for event in events] == [True]


def test_arguments_as_deep_as_json_goes_do_no_harm() -> None:
    session = session_of()
    for depth in (100, 900, 100_000):
        call = session.add_function_call("deep", '{"a":' * depth + "1" + "}" * depth)
        session.add_function_output("deep", "done", call.call_id)
    with Counted(7) as stub, anthropic_client(stub) as client:
        assert make_manager(client).analyze_session(session)["provider_tokens"] in {7, None}


def test_a_log_with_a_part_that_the_provider_refused_is_not_sent_to_be_counted() -> None:
    """The untrimmed log would be refused at every call; the view without the part is counted."""
    session = Session(id="s")
    session.add_message("user", ["look", Image(data=png(8, 6))])
    events: list[Event] = []
    with Counted() as stub, anthropic_client(stub) as client:
        manager = make_manager(client, events)
        assert manager.accept_refusal(session, PartRefusedError("Could not process image", 400, part_kind="image", place=(0, 1)))
        assert manager.analyze_session(session)["provider_tokens"] is None
        assert stub.requests == []
        assert manager.analyze_session(manager.process_session(session))["provider_tokens"]
    assert not [event for event in events if isinstance(event, CounterFellBack)]
