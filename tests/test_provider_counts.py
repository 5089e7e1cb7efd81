"""What Anthropic itself counts: asked by the real clients of a stub on this machine, shown, told, and never decided by."""

from __future__ import annotations

import asyncio
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import anthropic
import pytest

from context_window import BudgetError, ContextOverflowError, ContextWindow, ContextWindowManager, Image, PartRefusedError, Session
from context_window.counting import provider
from context_window.counting.provider import ASYNCHRONOUS, AnthropicClient, ProviderCounter
from context_window.events import CounterFellBack, Event, OverBudget, ProviderOverBudget, Trimmed
from tests.support.counting import Letters
from tests.support.pictures import png
from tests.support.stubs import AnthropicStub
from tests.support.stubs.server import Body, Refusal

MODEL = "claude-sonnet-4-5"
TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Not used on the loopback; made once, since each client would make its own, which takes longer than a test."""


class Stub(AnthropicStub):
    """Counts what it is told to, after some seconds; an error where it is told one."""

    def __init__(self, answer: Any = None, seconds: float = 0) -> None:
        super().__init__()
        self.answer, self.seconds = answer, seconds

    def serve(self, path: str, headers: Mapping[str, str], body: Body) -> Body:
        assert path.partition("?")[0] == "/v1/messages/count_tokens"
        found = super().serve(path, headers, body)  # checked as a request is
        time.sleep(self.seconds)
        if isinstance(self.answer, Refusal):
            raise self.answer
        if isinstance(self.answer, dict):
            return self.answer
        return found if self.answer is None else {"input_tokens": self.answer}


@contextmanager
def sync_client(url: str) -> Iterator[anthropic.Anthropic]:
    http = anthropic.DefaultHttpxClient(trust_env=False, verify=TLS)
    with anthropic.Anthropic(api_key="k", base_url=url, http_client=http) as client:
        yield client


def async_client(url: str) -> anthropic.AsyncAnthropic:
    return anthropic.AsyncAnthropic(api_key="k", base_url=url, http_client=anthropic.DefaultAsyncHttpxClient(trust_env=False, verify=TLS))


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


def manager(client: Any, events: list[Event] | None = None, **given: Any) -> ContextWindowManager:
    model = given.pop("model", MODEL)
    counter, tools = given.pop("counter", None), given.pop("tools", ())
    tell = None if events is None else events.append
    window = ContextWindow(**({"max_tokens": 100_000} | given))
    return ContextWindowManager(model, counter, client, context_window=window, tools=tools, on_event=tell)


Asked = Callable[[str, Callable[[Any], ContextWindowManager], str, Session], Any]


def _ask_waiting(url: str, made: Callable[[Any], ContextWindowManager], what: str, session: Session) -> Any:
    with sync_client(url) as client:
        return getattr(made(client), f"{what}_session")(session)


def _ask_async(url: str, made: Callable[[Any], ContextWindowManager], what: str, session: Session) -> Any:
    async def ask() -> Any:
        async with async_client(url) as client:
            return await getattr(made(client), f"a{what}_session")(session)

    return asyncio.run(ask())


def _ask_in_a_thread(url: str, made: Callable[[Any], ContextWindowManager], what: str, session: Session) -> Any:
    with sync_client(url) as client:
        return asyncio.run(getattr(made(client), f"a{what}_session")(session))


WAYS: dict[str, Asked] = {"sync": _ask_waiting, "async": _ask_async, "sync client, async call": _ask_in_a_thread}
every_way = pytest.mark.parametrize("ask", WAYS.values(), ids=WAYS)


@every_way
def test_the_whole_request_is_counted(ask: Asked) -> None:
    tool = {
        "type": "function",
        "function": {"name": "read_file", "description": "Reads.", "parameters": {"type": "object", "properties": {}}},
    }
    session = session_of()
    with Stub() as stub:
        stats = ask(stub.url, lambda client: manager(client, tools=[tool]), "analyze", session)
        messages, system = session.to_anthropic_messages()
        described = {"name": "read_file", "description": "Reads.", "input_schema": {"type": "object", "properties": {}}}
        assert stub.requests == [{"model": MODEL, "messages": messages, "system": system, "tools": [described]}]
        assert stats["provider_tokens"] == stub.answers[0]["input_tokens"] > 0
    assert stats | {"provider_tokens": None} == manager(None, tools=[tool]).analyze_session(session)


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
@every_way
def test_a_failure_falls_back_to_the_local_count_and_is_told(ask: Asked, failure: str) -> None:
    answer, why = FAILURES[failure]
    events: list[Event] = []
    session = session_of()
    with Stub(answer) as stub:
        stats = ask(stub.url, lambda client: manager(client, events), "analyze", session)
        assert len(stub.requests) == 1  # no retries
    assert stats["provider_tokens"] is None
    assert stats["total_tokens"] == manager(None).analyze_session(session)["total_tokens"] > 0
    (event,) = events
    assert isinstance(event, CounterFellBack)
    assert why in event.why
    assert (event.session_id, event.tokens, event.counter) == (session.id, stats["total_tokens"], stats["counter"])
    assert "asked in vain" in str(event)


@every_way
def test_who_does_not_answer_in_time_is_not_waited_for(ask: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider, "TIMEOUT", 0.05)
    events: list[Event] = []
    with Stub(seconds=0.4) as stub:
        assert ask(stub.url, lambda client: manager(client, events), "analyze", session_of())["provider_tokens"] is None
    assert [getattr(event, "why", "") for event in events] == ["the provider was asked in vain: APITimeoutError"]


@every_way
def test_where_nobody_listens_the_local_count_counts(ask: Asked) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # bound, and not listening: every connection is refused
        events: list[Event] = []
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        assert ask(url, lambda client: manager(client, events), "analyze", session_of())["provider_tokens"] is None
    assert [getattr(event, "why", "") for event in events] == ["the provider was asked in vain: APIConnectionError"]


def test_an_answer_that_is_no_json_is_no_count() -> None:
    class Garbled(Stub):
        def respond(self, path: str, headers: Mapping[str, str], raw: bytes) -> tuple[int, Any]:
            return 200, "<html>"

    with Garbled() as stub:
        assert _ask_waiting(stub.url, manager, "analyze", session_of())["provider_tokens"] is None


def test_both_real_clients_are_clients_to_the_type_checker() -> None:
    clients: list[AnthropicClient] = [anthropic.Anthropic(api_key="k"), anthropic.AsyncAnthropic(api_key="k")]
    assert [ProviderCounter(client, MODEL).asynchronous for client in clients] == [False, True]


def test_the_loop_goes_on_while_the_provider_thinks() -> None:
    async def ticks_while(call: Any) -> int:
        ticks = 0
        task = asyncio.ensure_future(call)
        while not task.done():
            await asyncio.sleep(0.01)
            ticks += 1
        await task
        return ticks

    async def both(url: str) -> list[int]:
        with sync_client(url) as waiting:
            async with async_client(url) as client:
                return [await ticks_while(manager(one).aanalyze_session(session_of())) for one in (client, waiting)]

    with Stub(seconds=0.3) as stub:
        assert min(asyncio.run(both(stub.url))) >= 5


def test_the_loop_goes_on_while_tokens_are_counted() -> None:
    class Slow(Letters):
        def count_text(self, text: str) -> int:
            time.sleep(0.02)
            return super().count_text(text)

    async def ticks() -> int:
        found = 0
        made = await asyncio.to_thread(manager, None, counter=Slow())
        task = asyncio.ensure_future(made.aprocess_session(session_of()))
        while not task.done():
            await asyncio.sleep(0.01)
            found += 1
        assert (await task).items
        return found

    assert asyncio.run(ticks()) >= 5


def test_the_same_request_is_asked_about_once_and_another_one_again() -> None:
    session = session_of()
    with Stub() as stub, sync_client(stub.url) as client:
        asked = manager(client)
        first = asked.analyze_session(session)["provider_tokens"]
        assert asked.analyze_session(session.copy())["provider_tokens"] == first  # by content, whatever its ids
        assert len(stub.requests) == 1
        session.add_message("assistant", "You are welcome.")
        session.add_message("user", "Bye.")
        assert (asked.analyze_session(session)["provider_tokens"] or 0) > (first or 0) > 0
        assert len(stub.requests) == 2


def test_a_failure_is_not_remembered() -> None:
    session = session_of()
    with Stub(Refusal("Overloaded", status=529)) as stub, sync_client(stub.url) as client:
        asked = manager(client)
        assert asked.analyze_session(session)["provider_tokens"] is None
        stub.answer = 123
        assert asked.analyze_session(session)["provider_tokens"] == 123


def test_no_more_counts_are_remembered_than_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider, "REMEMBERED", 2)
    sessions = [Session() for _ in range(3)]
    for number, session in enumerate(sessions):
        session.add_message("user", str(number))
    with Stub() as stub, sync_client(stub.url) as client:
        counter = ProviderCounter(client, MODEL)
        for session in (*sessions, sessions[2], sessions[0]):
            question = counter.question(session)
            assert question is not None
            assert counter.ask(question).tokens
        assert len(counter._counts) == 2
        assert len(stub.requests) == 4


def test_nothing_is_asked_where_there_is_nothing_to_send() -> None:
    with Stub() as stub, sync_client(stub.url) as client:
        assert manager(client).analyze_session(Session())["provider_tokens"] is None
        assert stub.requests == []


# Views


@pytest.mark.parametrize("what", ["process", "trim"])
@pytest.mark.parametrize("answer", [None, 10_000_000, Refusal("Overloaded", status=529)], ids=["counts", "counts far more", "fails"])
@every_way
def test_the_view_does_not_depend_on_what_the_provider_says(ask: Asked, answer: Any, what: str) -> None:
    session = session_of(10)
    alone = getattr(manager(None, max_tokens=600), f"{what}_session")(session)
    with Stub(answer) as stub:
        view = ask(stub.url, lambda client: manager(client, max_tokens=600), what, session)
    assert view.to_dict()["items"] == alone.to_dict()["items"]
    assert len(view.items) < len(session.items)


@pytest.mark.parametrize("what", ["process", "trim"])
@every_way
def test_a_view_that_the_provider_finds_too_large_is_told_of(ask: Asked, what: str) -> None:
    session, events = session_of(), list[Event]()
    local = manager(None).analyze_session(session)["total_tokens"]
    with Stub(local + 50) as stub:
        view = ask(stub.url, lambda client: manager(client, events, max_tokens=local + 20, warn_at=()), what, session)
    assert view is session
    assert events == [ProviderOverBudget(session.id, local + 50, local + 20, local)]
    assert "set a smaller budget" in str(events[0])


@every_way
def test_a_view_far_below_the_budget_is_not_asked_about(ask: Asked) -> None:
    session = session_of()
    local = manager(None).analyze_session(session)["total_tokens"]
    with Stub() as stub:
        ask(stub.url, lambda client: manager(client, max_tokens=local * 4 // 3 + 2), "process", session)
        assert stub.requests == []
        ask(stub.url, lambda client: manager(client, max_tokens=local * 4 // 3 - 2), "process", session)
        assert len(stub.requests) == 1


@every_way
def test_what_does_not_fit_is_raised_without_asking(ask: Asked) -> None:
    events: list[Event] = []
    with Stub() as stub:
        with pytest.raises(ContextOverflowError):
            ask(stub.url, lambda client: manager(client, events, max_tokens=5, strict=True), "process", session_of())
        assert stub.requests == []
    assert {type(event) for event in events} >= {OverBudget, Trimmed}


# What is shown


def test_the_providers_count_is_in_the_usage_and_goes_with_what_it_is_of() -> None:
    session = session_of()
    with Stub(4321) as stub, sync_client(stub.url) as client:
        asked = manager(client)
        asked.analyze_session(session)
        report = asked.usage()
        assert report.provider_tokens == report.to_dict()["provider_tokens"] == 4321
        assert "the provider counts 4,321" in " ".join(str(report).split())
        assert report.total == asked.get_token_usage()["total"]  # the number that decisions use
        asked.update_usage("DIALOG", 5)
        assert asked.usage().provider_tokens is None
        asked.analyze_session(session)
        asked.reset_usage()
        assert asked.usage().provider_tokens is None


# Who is asked


def test_an_asynchronous_client_is_not_asked_by_a_call_that_waits() -> None:
    events: list[Event] = []
    with Stub() as stub:
        stats = manager(async_client(stub.url), events).analyze_session(session_of())
        assert stub.requests == []
    assert stats["provider_tokens"] is None
    assert [getattr(event, "why", "") for event in events] == [f"the provider was asked in vain: {ASYNCHRONOUS}"]


@pytest.mark.parametrize("model", ["gpt-5", "gemini-2.5-pro", None])
def test_a_model_of_others_is_told_of_once_and_nobody_is_asked(model: str | None) -> None:
    events: list[Event] = []
    with Stub() as stub, sync_client(stub.url) as client:
        asked = manager(client, events, model=model)
        for _ in range(2):
            assert asked.analyze_session(session_of())["provider_tokens"] is None
        assert stub.requests == []
    assert [getattr(event, "why", "") for event in events] == ["api_client is Anthropic's, and the model is none of Claude's"]


@pytest.mark.parametrize("client", ["key", 5, object(), anthropic.Anthropic, len])
def test_what_is_no_client_is_refused(client: Any) -> None:
    with pytest.raises(BudgetError, match=r"pass an anthropic.Anthropic\(\)"):
        ContextWindowManager(MODEL, api_client=client)


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
    question = ProviderCounter(anthropic.Anthropic(api_key="k"), f"anthropic/{MODEL}[1m]", iter([tool])).question(session_of())
    assert question is not None
    assert question.request["tools"] == [{"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}]
    assert question.request["model"] == MODEL


def test_a_tool_that_the_provider_has_itself_is_sent_as_it_is() -> None:
    tool = {"type": "bash_20250124", "name": "bash"}
    question = ProviderCounter(anthropic.Anthropic(api_key="k"), MODEL, [tool]).question(session_of())
    assert question is not None
    assert question.request["tools"] == [tool]


def test_a_session_that_cannot_be_written_is_told_of_and_counted_here(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Session, *, caching: bool = False) -> Any:
        raise RecursionError

    monkeypatch.setattr(Session, "to_anthropic_messages", fail)
    events: list[Event] = []
    with Stub() as stub, sync_client(stub.url) as client:
        stats = manager(client, events).analyze_session(session_of())
        assert stub.requests == []
    assert (stats["provider_tokens"], stats["total_tokens"] > 0) == (None, True)
    assert ["cannot be written as a request" in str(event) for event in events] == [True]


def test_arguments_as_deep_as_json_goes_do_no_harm() -> None:
    session = session_of()
    for depth in (100, 900, 100_000):
        call = session.add_function_call("deep", '{"a":' * depth + "1" + "}" * depth)
        session.add_function_output("deep", "done", call.call_id)
    with Stub(7) as stub, sync_client(stub.url) as client:
        assert manager(client).analyze_session(session)["provider_tokens"] in {7, None}


def test_a_log_with_a_part_that_the_provider_refused_is_not_sent_to_be_counted() -> None:
    """It would be refused at every call; the view without that part is counted."""
    session = Session(id="s")
    session.add_message("user", ["look", Image(data=png(8, 6))])
    events: list[Event] = []
    with Stub() as stub, sync_client(stub.url) as client:
        asked = manager(client, events)
        assert asked.accept_refusal(session, PartRefusedError("Could not process image", 400, part_kind="image", place=(0, 1)))
        assert asked.analyze_session(session)["provider_tokens"] is None
        assert stub.requests == []
        assert asked.analyze_session(asked.process_session(session))["provider_tokens"]
    assert not [one for one in events if isinstance(one, CounterFellBack)]
