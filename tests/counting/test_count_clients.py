"""The providers' own counts, requested with their real clients from local stubs. What becomes of a count: `test_provider_count.py`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from context_window import ClientError, ContextWindow, ContextWindowManager, Session
from context_window.counting import provider_count
from context_window.counting.count_clients import ApiClient, GoogleCount, count_client
from context_window.counting.provider_count import ASYNC_CLIENT
from context_window.events.definitions import CounterFellBack, Event
from context_window.settings.resolved import OTHER_FAMILY
from tests.support.lazy import LazyModule
from tests.support.stubs import AnthropicStub, GeminiStub, OpenAIResponsesStub
from tests.support.stubs.clients import TLS, anthropic_client, google_client, openai_client
from tests.support.stubs.server import Body, Refusal, Stub

if TYPE_CHECKING:
    import anthropic
    import openai
    from google import genai
    from google.genai import types
else:
    anthropic, openai, genai, types = (
        LazyModule("anthropic"),
        LazyModule("openai"),
        LazyModule("google.genai"),
        LazyModule("google.genai.types"),
    )

TOOL = {"name": "read_file", "description": "Reads.", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}


class Counting(Stub):
    """A stub that counts requests which it has checked, or returns a chosen count, body or error, after some seconds."""

    def __init__(self, answer: Any = None, seconds: float = 0) -> None:
        super().__init__()
        self.answer, self.seconds = answer, seconds

    def counted(self, field: str, tokens: int) -> Body:
        time.sleep(self.seconds)
        if isinstance(self.answer, Refusal):
            raise self.answer
        if isinstance(self.answer, dict):
            return self.answer
        return {field: tokens if self.answer is None else self.answer}


class Anthropic(Counting, AnthropicStub):
    """Counts what `/v1/messages` would accept."""

    def serve(self, path: str, headers: Mapping[str, str], body: Body) -> Body:
        assert path.partition("?")[0] == "/v1/messages/count_tokens"
        return self.counted("input_tokens", super().serve(path, headers, body)["input_tokens"])


class OpenAI(Counting, OpenAIResponsesStub):
    """Counts what `/v1/responses` would accept."""

    def serve(self, path: str, headers: Mapping[str, str], body: Body) -> Body:
        assert path == "/v1/responses/input_tokens"
        answer = super().serve("/v1/responses", headers, {**body, "store": False})
        return {"object": "response.input_tokens", **self.counted("input_tokens", answer["usage"]["input_tokens"])}


class Google(Counting, GeminiStub):
    """Counts what `generateContent` would accept."""

    def serve(self, path: str, headers: Mapping[str, str], body: Body) -> Body:
        assert path.endswith("/models/gemini-2.5-pro:countTokens")
        answer = super().serve(path.replace("countTokens", "generateContent"), headers, body)
        return self.counted("totalTokens", answer["usageMetadata"]["promptTokenCount"])


@asynccontextmanager
async def async_anthropic(stub: Stub) -> AsyncIterator[anthropic.AsyncAnthropic]:
    http = anthropic.DefaultAsyncHttpxClient(trust_env=False, verify=TLS)
    async with anthropic.AsyncAnthropic(api_key="key", base_url=stub.url, http_client=http) as client:
        yield client


@asynccontextmanager
async def async_openai(stub: Stub) -> AsyncIterator[openai.AsyncOpenAI]:
    http = openai.DefaultAsyncHttpxClient(trust_env=False, verify=TLS)
    async with openai.AsyncOpenAI(api_key="key", base_url=f"{stub.url}/v1", http_client=http) as client:
        yield client


@asynccontextmanager
async def async_google(stub: Stub) -> AsyncIterator[Any]:
    options = types.HttpOptions(base_url=stub.url, async_client_args={"trust_env": False, "verify": TLS})
    client = genai.Client(api_key="key", vertexai=False, http_options=options)
    yield client.aio
    await client.aio.aclose()
    client.close()


CLIENTS: dict[str, tuple[type[Stub], Any, str]] = {
    "Anthropic": (Anthropic, anthropic_client, "claude-sonnet-4-5"),
    "AsyncAnthropic": (Anthropic, async_anthropic, "claude-sonnet-4-5"),
    "OpenAI": (OpenAI, openai_client, "gpt-4o"),
    "AsyncOpenAI": (OpenAI, async_openai, "openai/gpt-4o"),
    "Google": (Google, google_client, "gemini-2.5-pro"),
    "Google aio": (Google, async_google, "models/gemini-2.5-pro"),
}
every_client = pytest.mark.parametrize(("stub_class", "client", "model"), CLIENTS.values(), ids=CLIENTS)


def session_of() -> Session:
    session = Session()
    session.add_message("system", "You are terse.")
    session.add_message("user", "What does the file hold?")
    call = session.add_function_call("read_file", {"path": "a.py"})
    session.add_function_output("read_file", "print('hello')\n" * 20, call.call_id)
    session.add_message("assistant", "It says hello.")
    session.add_message("user", "Thank you.")
    return session


def make_manager(client: Any, model: str, events: list[Event] | None = None, **window: Any) -> ContextWindowManager:
    settings: dict[str, Any] = {"max_tokens": 100_000, "warn_at": ()} | window
    limits = ContextWindow(**settings)
    listener = None if events is None else events.append
    return ContextWindowManager(model, None, client, context_window=limits, tools=[TOOL], on_event=listener)


def ask(stub: Stub, client: Any, model: str, method: str, session: Session, *, events: list[Event] | None = None, **window: Any) -> Any:
    """Call the manager's method, or its async twin with an asynchronous client."""
    opened = client(stub)
    if hasattr(opened, "__enter__"):
        with opened as api:
            return getattr(make_manager(api, model, events, **window), f"{method}_session")(session)

    async def ask_async() -> Any:
        async with opened as api:
            return await getattr(make_manager(api, model, events, **window), f"a{method}_session")(session)

    return asyncio.run(ask_async())


@every_client
def test_the_whole_request_is_counted(stub_class: type[Any], client: Any, model: str) -> None:
    session, events = session_of(), list[Event]()
    with stub_class() as stub:
        stats = ask(stub, client, model, "analyze", session, events=events)
        (request,) = stub.requests
    assert events == []
    assert stats["provider_tokens"] is not None
    assert stats["provider_tokens"] > 0
    text = str(request)
    assert all(part in text for part in ("You are terse.", "print('hello')", "Thank you.", "read_file", "Reads.", "string"))


def test_openai_gets_the_items_and_the_tools() -> None:
    session = session_of()
    with OpenAI() as stub:
        ask(stub, openai_client, "gpt-4o", "analyze", session)
        function = {"type": "function", "name": "read_file", "description": "Reads.", "parameters": TOOL["input_schema"], "strict": False}
        assert stub.requests == [{"model": "gpt-4o", "input": session.to_openai_responses(), "tools": [function]}]


def test_google_with_an_api_key_gets_instructions_and_tools_as_texts() -> None:
    with Google() as stub:
        ask(stub, google_client, "gemini-2.5-pro", "analyze", session_of())
        (request,) = stub.requests
    assert set(request) == {"contents"}
    first, *_ = request["contents"]
    assert first["parts"][0]["text"] == "You are terse."
    assert '"name": "read_file"' in first["parts"][1]["text"]


def test_googles_cloud_gets_instructions_and_tools_as_such() -> None:
    client = genai.Client(vertexai=True, api_key="key")
    for api in (client, client.aio):
        request = GoogleCount(api, [TOOL]).request(session_of(), "gemini-2.5-pro")
        assert request is not None
        assert request["config"]["system_instruction"]["parts"] == [{"text": "You are terse."}]
        (tool,) = types.CountTokensConfig(**request["config"]).tools or []
        assert [one.name for one in tool.function_declarations or []] == ["read_file"]
    client.close()


@every_client
@pytest.mark.parametrize(
    ("answer", "why"),
    [(Refusal("slow down", status=429), "(HTTP 429)"), (0, "no count"), (10**30, "no count")],
    ids=["refused", "zero", "huge"],
)
def test_a_failure_falls_back_to_the_local_count(stub_class: type[Any], client: Any, model: str, answer: Any, why: str) -> None:
    events: list[Event] = []
    with stub_class() as stub:
        stub.answer = answer
        stats = ask(stub, client, model, "analyze", session_of(), events=events)
        assert len(stub.requests) == 1, "no retries"
    assert stats["provider_tokens"] is None
    (event,) = events
    assert isinstance(event, CounterFellBack)
    assert why in event.why
    assert event.tokens == stats["total_tokens"]


@every_client
def test_a_slow_provider_is_not_waited_for(stub_class: type[Any], client: Any, model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider_count, "TIMEOUT", 0.05)
    events: list[Event] = []
    with stub_class() as stub:
        stub.seconds = 0.4
        assert ask(stub, client, model, "analyze", session_of(), events=events)["provider_tokens"] is None
    assert ["Timeout" in getattr(event, "why", "") for event in events] == [True]


@every_client
def test_nothing_is_asked_about_an_empty_session(stub_class: type[Any], client: Any, model: str) -> None:
    with stub_class() as stub:
        assert ask(stub, client, model, "analyze", Session())["provider_tokens"] is None
        assert stub.requests == []


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "gpt-4o", "gemini-2.5-pro"])
def test_a_client_is_not_asked_about_another_providers_model(model: str) -> None:
    with OpenAI() as stub, openai_client(stub) as one, google_client(stub) as two, anthropic_client(stub) as three:
        problems = {}
        for api in (one, two, three):
            events: list[Event] = []
            manager = ContextWindowManager(model, None, api, context_window=ContextWindow(max_tokens=10**6), on_event=events.append)
            if manager._settings.current.provider is None:
                manager.analyze_session(session_of())
                problems[count_client(api).family] = [getattr(event, "why", "") for event in events]
        assert len(problems) == 2
        assert problems == {family: [OTHER_FAMILY[family]] for family in problems}
        assert stub.requests == []


def test_an_asynchronous_client_needs_the_async_calls() -> None:
    events: list[Event] = []
    api = openai.AsyncOpenAI(api_key="key", base_url="http://127.0.0.1:9")
    assert make_manager(api, "gpt-4o", events).analyze_session(session_of())["provider_tokens"] is None
    assert [getattr(event, "why", "") for event in events] == [f"count_tokens failed: {ASYNC_CLIENT}"]


def test_the_real_clients_are_clients_to_the_type_checker() -> None:
    google = genai.Client(api_key="k", vertexai=False)
    clients: list[ApiClient] = [anthropic.Anthropic(api_key="k"), openai.OpenAI(api_key="k"), google]
    asynchronous: list[ApiClient] = [anthropic.AsyncAnthropic(api_key="k"), openai.AsyncOpenAI(api_key="k"), google.aio]
    assert [count_client(client).is_async for client in (*clients, *asynchronous)] == [False] * 3 + [True] * 3
    google.close()


@pytest.mark.parametrize("wrong", ["key", object(), anthropic.Anthropic, len], ids=range(4))
def test_other_objects_are_no_clients(wrong: Any) -> None:
    with pytest.raises(
        ClientError, match=r"^api_client=.*: pass an anthropic\.Anthropic\(\), an openai\.OpenAI\(\) or a google\.genai\.Client\(\)"
    ):
        ContextWindowManager("gpt-4o", None, wrong)
