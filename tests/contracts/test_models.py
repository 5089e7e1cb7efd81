"""What every `Model` keeps: one suite over all four, with the vendors' own clients, asynchronous and not, against strict stubs."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anthropic
import openai
import pytest
from google import genai
from google.genai.types import HttpOptions
from hypothesis import given, settings
from hypothesis import strategies as st

from context_window import (
    Answer,
    AnthropicModel,
    ArgumentError,
    ContextWindow,
    ContextWindowManager,
    FunctionCall,
    FunctionCallOutput,
    GoogleModel,
    Message,
    Model,
    ModelAccessError,
    ModelError,
    ModelNetworkError,
    ModelOverloadedError,
    ModelRateLimitError,
    OpenAIModel,
    PromptTooLongError,
    Reasoning,
    Session,
    Text,
    Toolbox,
    run_turn,
)
from tests.support.counting import Letters
from tests.support.looping import manager
from tests.support.stubs import (
    AnthropicStub,
    Block,
    Call,
    GeminiStub,
    OpenAIChatStub,
    OpenAIResponsesStub,
    Say,
    Script,
    Stub,
    Think,
    in_order,
)
from tests.support.stubs.clients import TLS
from tests.support.stubs.server import Body, Refusal

pytestmark = pytest.mark.no_cover  # most of the time is the vendors' clients'


def add(a: int, b: int = 0) -> int:
    """Adds."""
    return a + b


TOOLS = Toolbox([add]).definitions


@dataclass(frozen=True)
class Provider:
    """One implementation of `Model`, with the provider that it talks to.

    Attributes:
        name: The name of the implementation.
        stub: Makes the strict provider.
        model: Makes the model, of the URL of a stub and True for the asynchronous client.
        too_long: Messages that refuse a prompt as too long, each with the figures in it.
        cut: Makes every answer of the stub end at its token limit.
        decline: Makes every answer of the stub end because the provider declined.
        shows_reasoning: True if answers hold reasoning.
        end: Bytes of the piece of a stream without which the answer is incomplete.
    """

    name: str
    stub: Callable[[Script | None], Stub]
    model: Callable[..., Any]
    too_long: Sequence[tuple[Refusal, tuple[int | None, int | None]]]
    cut: Callable[[Any], None]
    decline: Callable[[Any], None]
    end: bytes
    shows_reasoning: bool = True

    def __str__(self) -> str:
        return self.name


@asynccontextmanager
async def anthropic_model(url: str, *, is_async: bool, **options: Any) -> AsyncIterator[Model]:
    if is_async:
        http = anthropic.DefaultAsyncHttpxClient(trust_env=False, verify=TLS)
        async with anthropic.AsyncAnthropic(api_key="key", base_url=url, max_retries=0, http_client=http) as client:
            yield AnthropicModel(client, "claude-scripted-1", **options)
    else:
        plain_http = anthropic.DefaultHttpxClient(trust_env=False, verify=TLS)
        with anthropic.Anthropic(api_key="key", base_url=url, max_retries=0, http_client=plain_http) as plain:
            yield AnthropicModel(plain, "claude-scripted-1", **options)


@asynccontextmanager
async def openai_model(url: str, *, is_async: bool, api: Any = "responses", **options: Any) -> AsyncIterator[Model]:
    if is_async:
        http = openai.DefaultAsyncHttpxClient(trust_env=False, verify=TLS)
        async with openai.AsyncOpenAI(api_key="key", base_url=f"{url}/v1", max_retries=0, http_client=http) as client:
            yield OpenAIModel(client, "gpt-5.2", api=api, **options)
    else:
        plain_http = openai.DefaultHttpxClient(trust_env=False, verify=TLS)
        with openai.OpenAI(api_key="key", base_url=f"{url}/v1", max_retries=0, http_client=plain_http) as plain:
            yield OpenAIModel(plain, "gpt-5.2", api=api, **options)


def chat_model(url: str, *, is_async: bool, **options: Any) -> Any:
    return openai_model(url, is_async=is_async, api="chat", **options)


@asynccontextmanager
async def google_model(url: str, *, is_async: bool, **options: Any) -> AsyncIterator[Model]:
    arguments: dict[str, Any] = {"trust_env": False, "verify": TLS}
    http = HttpOptions(base_url=url, client_args=arguments, async_client_args=arguments)
    client = genai.Client(api_key="key", vertexai=False, http_options=http)
    try:
        yield GoogleModel(client.aio if is_async else client, "gemini-3-pro", **options)
    finally:
        await client.aio.aclose()
        client.close()


class CutAnthropic(AnthropicStub):
    """A stub whose answers end for a reason of their own."""

    stop: str | None = None

    def serve(self, path: str, headers: Mapping[str, str], body: Body) -> Body:
        answer = super().serve(path, headers, body)
        return answer if self.stop is None else {**answer, "stop_reason": self.stop}


def openai_refusal(message: str) -> Refusal:
    return Refusal(message, code="context_length_exceeded", param="messages")


PROVIDERS = [
    Provider(
        "anthropic",
        CutAnthropic,
        anthropic_model,
        [
            (Refusal("prompt is too long: 208310 tokens > 200000 maximum"), (208_310, 200_000)),
            (Refusal("Prompt is too long"), (None, None)),
            (Refusal("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease"), (190_000, 180_000)),
        ],
        lambda stub: setattr(stub, "stop", "max_tokens"),
        lambda stub: setattr(stub, "stop", "refusal"),
        b'"stop_reason": "end_turn"',
    ),
    Provider(
        "openai chat",
        OpenAIChatStub,
        chat_model,
        [
            (
                openai_refusal(
                    "This model's maximum context length is 128000 tokens. However, your messages resulted in 204308 tokens. "
                    "Please reduce the length of the messages."
                ),
                (204_308, 128_000),
            ),
            (
                openai_refusal(
                    "This model's maximum context length is 4097 tokens. However, you requested 4231 tokens "
                    "(3975 in the messages, 256 in the completion). Please reduce the length of the messages or completion."
                ),
                (3_975, 3_841),
            ),
            (openai_refusal("Too much."), (None, None)),
        ],
        lambda stub: setattr(stub, "finish", "length"),
        lambda stub: setattr(stub, "finish", "content_filter"),
        b'"finish_reason": "stop"',
        shows_reasoning=False,
    ),
    Provider(
        "openai responses",
        OpenAIResponsesStub,
        openai_model,
        [(openai_refusal("Your input exceeds the context window of this model. Please adjust your input and try again."), (None, None))],
        lambda stub: setattr(stub, "incomplete", "max_output_tokens"),
        lambda stub: setattr(stub, "incomplete", "content_filter"),
        b'"type": "response.completed"',
    ),
    Provider(
        "google",
        GeminiStub,
        google_model,
        [
            (Refusal("The input token count (1200293) exceeds the maximum number of tokens allowed (1048576)."), (1_200_293, 1_048_576)),
            (
                Refusal("Unable to submit request because the input token count is 40000 but model only supports up to 32768."),
                (None, None),
            ),
        ],
        lambda stub: setattr(stub, "finish", "MAX_TOKENS"),
        lambda stub: setattr(stub, "finish", "SAFETY"),
        b'"finishReason": "STOP"',
    ),
]

each_provider = pytest.mark.parametrize("provider", PROVIDERS, ids=str)
each_client = pytest.mark.parametrize("is_async", [True, False], ids=["async", "plain"])


def answer_of(
    provider: Provider,
    stub: Stub,
    *,
    is_async: bool = True,
    allow_tools: bool = True,
    on_text: Any = None,
    session: Session | None = None,
    **options: Any,
) -> Answer:
    """Return the stub's answer to a session."""

    async def ask() -> Answer:
        async with provider.model(stub.url, is_async=is_async, **options) as model:
            answer: Answer = await model.answer(
                session or Session([Message("user", "Hi")]), TOOLS, allow_tools=allow_tools, on_text=on_text
            )
            return answer

    with stub:
        return asyncio.run(ask())


@each_client
@each_provider
def test_an_answer_is_streamed_and_returned_complete(provider: Provider, is_async: bool) -> None:
    pieces: list[str] = []
    text = "A long answer, in several pieces: " * 4
    blocks: list[Block] = [Think("hm"), Say(text), Call("add", {"a": 1, "b": [2, {"c": "ü"}]}), Call("add", {})]
    answer = answer_of(provider, provider.stub(in_order(blocks)), is_async=is_async, on_text=pieces.append)
    kinds = [Reasoning] * provider.shows_reasoning + [Message, FunctionCall, FunctionCall]
    assert [type(item) for item in answer.items if not (isinstance(item, Message) and not item.text)] == kinds
    assert len(pieces) > 2
    assert "".join(pieces) == text == answer.text
    assert json.loads(answer.calls[0].arguments) == {"a": 1, "b": [2, {"c": "ü"}]}
    assert json.loads(answer.calls[1].arguments) == {}
    assert answer.stop == "tool_use"
    assert answer.model
    assert answer.usage is not None
    assert answer.usage.total_input > 0
    assert answer.usage.output_tokens > 0
    assert all(item.usage is None for item in answer.items)
    assert len({item.id for item in answer.items}) == len(answer.items)
    assert len({call.call_id for call in answer.calls}) == 2
    assert all(item.created_at > 1.7e9 for item in answer.items)


@each_client
@each_provider
def test_turns_with_parallel_tools_are_valid_to_the_last_request(provider: Provider, is_async: bool) -> None:
    """The strict provider takes every request: each one sends back the reasoning, signatures and ids of the answers before."""
    blocks: list[list[Block]] = [
        [Think("hm"), Say("I add."), Call("add", {"a": 1, "b": 2}), Call("add", {"a": 3})],
        [Think("again"), Call("add", {"a": 4}), Call("subtract", {"a": 5})],
        [Think("enough"), Say("Ten. " * 20)],
        [Say("Bye.")],
    ]

    async def scene(stub: Stub) -> Session:
        session = Session()
        session.add_message("system", "You add.")
        async with provider.model(stub.url, is_async=is_async) as model:
            for question in ("Add.", "Bye?"):
                await run_turn(session, question, model=model, tools=[add], manager=manager())
        return session

    with provider.stub(in_order(*blocks)) as stub:
        session = asyncio.run(scene(stub))
        assert len(stub.answers) == len(stub.requests) == 4
    outputs = [(output.text, output.is_error) for output in session.items if isinstance(output, FunctionCallOutput)]
    assert outputs[:3] == [("3", False), ("3", False), ("4", False)]
    assert outputs[3][1]
    assert len([item for item in session.items if item.usage]) == 4
    assert len([item for item in session.items if isinstance(item, Reasoning)]) == 3 * provider.shows_reasoning
    if provider.shows_reasoning and provider.name != "google":  # Gemini signs calls and texts, and takes back no unsigned thought
        assert len(json.dumps(stub.requests[-1]).split("encrypted_content" if "openai" in provider.name else '"signature"')) > 3


@each_provider
def test_a_turn_without_tool_calls_left_still_sends_the_definitions(provider: Provider) -> None:
    stub = provider.stub(None)
    answer_of(provider, stub, allow_tools=False)
    sent = json.dumps(stub.requests)
    assert '"add"' in sent
    assert "none" in sent.lower()
    allowing = provider.stub(None)
    answer_of(provider, allowing)
    assert '"none"' not in json.dumps(allowing.requests).lower()


@each_provider
def test_the_system_prompt_and_other_fields_are_sent(provider: Provider) -> None:
    stub = provider.stub(None)
    session = Session([Message("system", "Be terse."), Message("user", "Hi")])
    field: dict[str, Any] = {"stop_sequences": ["0.5"]} if provider.name == "anthropic" else {"temperature": 0.5}
    answer_of(provider, stub, session=session, max_tokens=77, **field)
    sent = json.dumps(stub.requests)
    assert "Be terse." in sent
    assert "77" in sent
    assert "0.5" in sent


@each_client
@each_provider
def test_an_answer_at_its_limit_is_cut_off(provider: Provider, is_async: bool) -> None:
    stub = provider.stub(in_order([Say("As far as I")]))
    provider.cut(stub)
    assert answer_of(provider, stub, is_async=is_async).stop == "max_tokens"


@each_provider
def test_a_declined_answer_is_a_refusal(provider: Provider) -> None:
    stub = provider.stub(in_order([Say("No.")]))
    provider.decline(stub)
    assert answer_of(provider, stub).stop == "refusal"


def refuse_with(refusal: Refusal) -> Script:
    def script(request: Mapping[str, Any]) -> Sequence[Block]:
        raise refusal

    return script


TOO_LONG = [(provider, refusal, figures) for provider in PROVIDERS for refusal, figures in provider.too_long]


IDS = [f"{entry[0]} {number}" for number, entry in enumerate(TOO_LONG)]
each_message = pytest.mark.parametrize(("provider", "refusal", "figures"), TOO_LONG, ids=IDS)


@each_client
@each_message
def test_a_prompt_that_is_too_long_is_named_with_its_figures(
    provider: Provider, refusal: Refusal, figures: tuple[int | None, int | None], is_async: bool
) -> None:
    with pytest.raises(PromptTooLongError) as caught:
        answer_of(provider, provider.stub(refuse_with(refusal)), is_async=is_async)
    assert (caught.value.tokens, caught.value.limit) == figures
    assert caught.value.status == 400


@each_client
@each_message
def test_run_turn_recovers_from_a_prompt_that_is_too_long(provider: Provider, refusal: Refusal, figures: object, is_async: bool) -> None:
    """After the provider's own error, the turn sends a smaller view, once."""
    refusals = iter([refusal])

    def script(request: Mapping[str, Any]) -> Sequence[Block]:
        for error in refusals:
            raise error
        return [Say("Done.")]

    async def scene(stub: Stub) -> Any:
        session = Session()
        for number in range(20):
            session.add_message("user", f"Question {number}: " + "x" * 400)
            session.add_message("assistant", "y" * 400)
        async with provider.model(stub.url, is_async=is_async) as model:
            return await run_turn(session, "And now?", model=model, manager=manager(50_000))

    with provider.stub(script) as stub:
        result = asyncio.run(scene(stub))
    assert (result.text, result.requests) == ("Done.", 2)
    first, second = (len(json.dumps(request)) for request in stub.requests)
    assert second < first


REFUSALS: list[tuple[Refusal, type[ModelError]]] = [
    (Refusal("Too many.", status=429, kind="rate_limit_error"), ModelRateLimitError),
    (Refusal("Internal server error", status=500, kind="api_error"), ModelOverloadedError),
    (Refusal("Unavailable", status=503, kind=""), ModelOverloadedError),
    (Refusal("wrong key", status=401, kind="authentication_error"), ModelAccessError),
    (Refusal("not for you", status=403, kind="permission_error"), ModelAccessError),
    (Refusal("no such model", status=404, kind="not_found_error"), ModelError),
    (Refusal("messages.3: nonsense"), ModelError),
    (Refusal("Request exceeds the maximum size", status=413, kind="request_too_large"), PromptTooLongError),
]


@each_client
@pytest.mark.parametrize(("refusal", "expected"), REFUSALS, ids=[refusal.message for refusal, _ in REFUSALS])
@each_provider
def test_each_client_error_becomes_one_line_with_the_fix(
    provider: Provider, refusal: Refusal, expected: type[ModelError], is_async: bool
) -> None:
    with pytest.raises(ModelError) as caught:
        answer_of(provider, provider.stub(refuse_with(refusal)), is_async=is_async)
    assert type(caught.value) is expected
    assert caught.value.status == refusal.status
    assert "\n" not in str(caught.value)
    assert refusal.message.rstrip(".") in str(caught.value)
    assert str(caught.value).endswith(expected.advice)


@each_client
@each_provider
def test_a_refused_connection_is_a_network_error(provider: Provider, is_async: bool) -> None:
    with provider.stub(None) as stub:
        url = stub.url

    async def ask() -> None:
        async with provider.model(url, is_async=is_async) as model:
            await model.answer(Session([Message("user", "Hi")]), (), allow_tools=True)

    with pytest.raises(ModelNetworkError, match="Check the network"):
        asyncio.run(ask())


def with_streams(stub: Stub, change: Callable[[bytes], bytes]) -> Stub:
    """Return the stub with its streams changed."""
    written = stub.written

    def changed(raw: bytes, status: int, body: Body) -> tuple[str, bytes]:
        kind, stream = written(raw, status, body)
        return kind, change(stream)

    setattr(stub, "written", changed)  # noqa: B010 - mypy knows it as a method
    return stub


STREAMS: list[tuple[str, Callable[[Provider], Callable[[bytes], bytes]]]] = [
    ("ends early", lambda provider: lambda stream: stream[: stream.rindex(b"data:", 0, stream.index(provider.end))]),
    ("empty", lambda provider: lambda stream: b""),
    ("broken", lambda provider: lambda stream: stream[: len(stream) // 2] + b"}}}}\n\n"),
]


@each_client
@pytest.mark.parametrize("change", [change for _, change in STREAMS], ids=[name for name, _ in STREAMS])
@each_provider
def test_a_broken_stream_is_a_network_error(provider: Provider, change: Any, is_async: bool) -> None:
    stub = provider.stub(in_order([Say("A long answer that is never finished. " * 9)]))
    with pytest.raises(ModelNetworkError) as caught:
        answer_of(provider, with_streams(stub, change(provider)), is_async=is_async)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ({"type": "error", "code": "server_error", "message": "Try again.", "param": None}, ModelOverloadedError),
        ({"type": "error", "code": "context_length_exceeded", "message": "Too long.", "param": "input"}, PromptTooLongError),
        ({"type": "error", "error": {"type": "x", "code": "context_length_exceeded", "message": "Too long."}}, PromptTooLongError),
        ({"type": "response.failed", "response": {"error": {"code": "rate_limit_exceeded", "message": "Slow."}}}, ModelRateLimitError),
        ({"type": "response.failed", "response": {"error": {"code": "context_length_exceeded", "message": ""}}}, PromptTooLongError),
        ({"type": "response.failed", "response": {"error": None}}, ModelError),
    ],
)
@each_client
def test_an_error_inside_a_stream_of_responses_is_raised(event: dict[str, Any], expected: type[ModelError], is_async: bool) -> None:
    data = json.dumps({**event, "sequence_number": 9})
    stub = with_streams(OpenAIResponsesStub(), lambda stream: f"event: {event['type']}\ndata: {data}\n\n".encode())
    with pytest.raises(ModelError) as caught:
        answer_of(PROVIDERS[2], stub, is_async=is_async)
    assert type(caught.value) is expected


def test_a_wrong_key_at_google_is_an_access_error() -> None:
    refusal = Refusal("API key not valid. Please pass a valid API key.")
    with pytest.raises(ModelAccessError):
        answer_of(PROVIDERS[3], GeminiStub(refuse_with(refusal)))


@each_client
@each_provider
def test_a_cancel_during_a_request_ends_at_once_and_keeps_the_question(provider: Provider, is_async: bool) -> None:
    reached, leave = threading.Event(), threading.Event()

    def script(request: Mapping[str, Any]) -> Sequence[Block]:
        reached.set()
        leave.wait(10)
        return [Say("Too late.")]

    async def scene(stub: Stub) -> Session:
        session = Session()
        async with provider.model(stub.url, is_async=is_async) as model:
            task = asyncio.create_task(run_turn(session, "Hi", model=model, manager=manager()))
            await asyncio.to_thread(reached.wait, 10)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(asyncio.shield(task), 5)
            leave.set()
        return session

    with provider.stub(script) as stub:
        session = asyncio.run(scene(stub))
    assert [item.type for item in session.items] == ["message"]


@each_client
@each_provider
def test_every_model_writes_the_summaries_of_its_own_session(provider: Provider, is_async: bool) -> None:
    """`manager.compact(session, model)` takes the model of the loop."""

    async def scene(stub: Stub) -> Session:
        session = Session()
        for number in range(9):
            session.add_message("user", f"Question {number}: " + "x" * 300)
            session.add_message("assistant", "y" * 300)
        async with provider.model(stub.url, is_async=is_async) as model:
            summary = await manager(50_000).compact(session, model)
        assert summary is not None
        assert "They spoke of x and y." in summary.summary
        return session

    with provider.stub(lambda request: [Say("They spoke of x and y.")]) as stub:
        asyncio.run(scene(stub))
        assert len(stub.requests) == len(stub.answers) == 1


CONSTRUCTORS: list[tuple[Any, Callable[[], Any], str]] = [
    (AnthropicModel, lambda: anthropic.AsyncAnthropic(api_key="key"), "messages"),
    (OpenAIModel, lambda: openai.AsyncOpenAI(api_key="key"), "input"),
    (lambda *args, **options: OpenAIModel(*args, api="chat", **options), lambda: openai.OpenAI(api_key="key"), "messages"),
    (GoogleModel, lambda: genai.Client(api_key="key"), "contents"),
]


@pytest.mark.parametrize(("constructor", "client", "field"), CONSTRUCTORS, ids=[str(provider) for provider in PROVIDERS])
def test_invalid_arguments_are_errors(constructor: Any, client: Callable[[], Any], field: str) -> None:
    real = client()
    cases: list[tuple[str, dict[str, Any]]] = [
        ("client", {"client": object()}),
        ("client", {"client": type(real)}),
        ("model", {"model": " "}),
        ("model", {"model": 5}),
        ("max_tokens", {"max_tokens": 0}),
        ("tools", {"tools": []}),
        (field, {field: []}),
    ]
    for name, changes in cases:
        arguments = {"client": real, "model": "some-model", **changes}
        with pytest.raises(ArgumentError) as caught:
            constructor(arguments.pop("client"), arguments.pop("model"), **arguments)
        assert caught.value.field == name


def test_the_loop_decides_about_streams() -> None:
    with pytest.raises(ArgumentError) as caught:
        OpenAIModel(openai.OpenAI(api_key="key"), "gpt-5", stream=False)
    assert caught.value.field == "stream"
    request = ContextWindowManager("gpt-5").request(Session([Message("user", "Hi")]), "openai", model="gpt-5", stream=True)
    assert request["stream"] is True


def test_an_unknown_api_of_openai_is_an_error() -> None:
    api: Any = "completions"
    with pytest.raises(ArgumentError) as caught:
        OpenAIModel(openai.OpenAI(api_key="key"), "gpt-5", api=api)
    assert caught.value.field == "api"


ASKED = {"gpt-5.2": True, "openai/gpt-5": True, "o3": True, "ft:o4-mini:x": True, "gpt-4o": False, "gpt-5-chat-latest": False}
ASKED |= {"gpt-35-turbo": False, "qwen3": False}


@pytest.mark.parametrize(("name", "is_asked"), ASKED.items(), ids=list(ASKED))
def test_encrypted_reasoning_is_asked_of_reasoning_models_only(name: str, is_asked: bool) -> None:
    request = OpenAIModel(openai.OpenAI(api_key="key"), name).request(Session([Message("user", "Hi")]), (), allow_tools=True)
    assert ("include" in request) is is_asked


# `manager.request`


def send(name: str, client: Any, request: dict[str, Any]) -> Any:
    if name == "anthropic":
        return client.messages.create(**request)
    if name == "openai":
        return client.chat.completions.create(**request)
    return client.responses.create(**request) if name == "openai-responses" else client.models.generate_content(**request)


DOORS: list[tuple[str, str, Callable[[Script | None], Stub], str]] = [
    ("anthropic", "claude-opus-5", AnthropicStub, "anthropic_client"),
    ("openai", "gpt-5.2", OpenAIChatStub, "openai_client"),
    ("openai-responses", "gpt-5.2", OpenAIResponsesStub, "openai_client"),
    ("google", "gemini-3-pro", GeminiStub, "google_client"),
]
each_door = pytest.mark.parametrize(("name", "model", "stub_of", "client_of"), DOORS, ids=[entry[0] for entry in DOORS])


@pytest.mark.parametrize("is_async", [False, True], ids=["plain", "async"])
@each_door
def test_a_loop_of_requests_answers_and_results_is_valid(
    name: Any, model: str, stub_of: Callable[[Script | None], Stub], client_of: str, is_async: bool
) -> None:
    from tests.support.stubs import clients

    blocks: list[list[Block]] = [[Think("hm"), Call("add", {"a": 2}), Call("add", {"a": 1})], [Say("Three.")]]
    script = in_order(*(blocks * 4))
    limits = ContextWindow(max_tokens=2_000)
    owner = ContextWindowManager(token_counter=Letters(), context_window=limits)
    session = Session([Message("system", "You add.")])
    with stub_of(script) as stub, getattr(clients, client_of)(stub) as client:
        for _ in range(4):
            session.add_message("user", "Add these, please: " + "x" * 900)
            while True:
                arguments: dict[str, Any] = {"model": model, "tools": [add]}
                request = asyncio.run(owner.arequest(session, name, **arguments)) if is_async else owner.request(session, name, **arguments)
                items = session.add_response(send(name, client, request), extra=owner.answer_notes(session))
                calls = [item for item in items if isinstance(item, FunctionCall)]
                if not calls:
                    break
                session.add_tool_results({call.call_id: add(**json.loads(call.arguments)) for call in calls})
        assert len(stub.answers) == len(stub.requests) == 8
    assert "You add." in json.dumps(stub.requests[-1])
    assert len(owner.process_session(session).items) < len(session.items)


@each_door
def test_a_request_is_what_the_model_sends(name: Any, model: str, stub_of: object, client_of: object) -> None:
    session = Session([Message("system", "Be terse."), Message("user", "Hi")])
    owner = ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(max_tokens=9_000))
    request = owner.request(session, name, model=model, tools=[add], max_tokens=99, temperature=0.5)
    models: dict[str, Any] = {
        "anthropic": lambda: AnthropicModel(anthropic.Anthropic(api_key="k"), model, max_tokens=99, temperature=0.5),
        "openai": lambda: OpenAIModel(openai.OpenAI(api_key="k"), model, api="chat", max_tokens=99, temperature=0.5),
        "openai-responses": lambda: OpenAIModel(openai.OpenAI(api_key="k"), model, max_tokens=99, temperature=0.5),
        "google": lambda: GoogleModel(genai.Client(api_key="k"), model, max_tokens=99, temperature=0.5),
    }
    sent = models[name]().request(session, TOOLS, allow_tools=True)
    assert {key: value for key, value in sent.items() if key not in ("stream", "stream_options")} == request


@each_door
def test_a_request_that_makes_no_sense_is_refused(name: Any, model: str, stub_of: object, client_of: object) -> None:
    owner = ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(max_tokens=9_000))
    asked = Session([Message("user", "Hi")])
    reserved = {"openai-responses": "input", "google": "contents"}.get(name, "messages")
    for session, changes in (
        (Session(), {}),
        (asked, {"model": ""}),
        (asked, {"max_tokens": 0}),
        (asked, {reserved: []}),
        (asked, {"tools": 5}),
    ):
        arguments: dict[str, Any] = {"model": model, **changes}
        with pytest.raises(ArgumentError):
            owner.request(session, name, **arguments)


def test_an_unknown_provider_is_refused() -> None:
    provider: Any = "mistral"
    with pytest.raises(ArgumentError, match="openai-responses"):
        ContextWindowManager("gpt-5").request(Session([Message("user", "Hi")]), provider, model="gpt-5")


# Pieces of a stream


@settings(deadline=None)
@given(texts=st.lists(st.text(max_size=90), max_size=3), arguments=st.dictionaries(st.text(max_size=5), st.integers(), max_size=3))
def test_a_streamed_answer_is_the_whole_answer(texts: list[str], arguments: dict[str, int]) -> None:
    """Joining the pieces of a stream gives the response that the provider would have sent without streaming."""
    from session.providers.response import read_response

    blocks: list[Block] = [*map(Say, filter(str.strip, texts)), Call("add", arguments)]
    contents = [{"role": "user", "parts": [{"text": "x"}]}]
    headers = {"authorization": "Bearer k", "x-goog-api-key": "k"}
    for stub, path, body in (
        (OpenAIChatStub(in_order(blocks)), "/v1/chat/completions", {"model": "gpt-5", "messages": [{"role": "user", "content": "x"}]}),
        (OpenAIResponsesStub(in_order(blocks)), "/v1/responses", {"model": "gpt-5", "input": "x"}),
        (
            GeminiStub(in_order(blocks)),
            "/v1beta/models/gemini-2.5-pro:streamGenerateContent",
            {"contents": contents},
        ),
    ):
        _, whole = stub.respond(path, headers, json.dumps(body).encode())
        streaming = {**body, "stream": True, "stream_options": {"include_usage": True}}
        _, stream = stub.written(json.dumps(streaming).encode(), 200, whole)
        events = [json.loads(line[6:]) for line in stream.decode().splitlines() if line.startswith("data: {")]
        joined, read = read_response(events), read_response(whole)
        assert (joined.usage, joined.model, joined.stop) == (read.usage, read.model, read.stop)
        assert _contents(joined.items) == _contents(read.items)


def _contents(items: Sequence[Any]) -> list[tuple[str, str]]:
    """Return the texts, joined where they follow each other, and the calls."""
    contents: list[tuple[str, str]] = []
    for item in items:
        kind = item.type
        text = "".join(part.text for part in item.content if isinstance(part, Text)) if isinstance(item, Message) else item.arguments
        if contents and kind == contents[-1][0] == "message":
            contents[-1] = (kind, contents[-1][1] + text)
        else:
            contents.append((kind, text))
    return contents
