"""The recall tool: the gateway answers its calls, and the providers' clients see one answer without them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import anthropic
import httpx
import openai
import pytest
from google import genai

from context_window import ContextWindow
from context_window.gateway.anthropic_messages import AnthropicWire
from context_window.gateway.joined_answer import AnswerCall
from context_window.gateway.ledger import GatewayLedger
from context_window.gateway.recalling import MOST_RECALLS, ROUNDS, USED_UP, Recalls
from context_window.gateway.windows import Windows
from context_window.gateway.wire_format import RequestConversation
from tests.support.gateways import bare, breaks, gateway, recall_ids
from tests.support.stubs.answers import Call, Say, Think
from tests.support.stubs.anthropic import AnthropicStub
from tests.support.stubs.gemini import GeminiStub
from tests.support.stubs.openai_chat import OpenAIChatStub
from tests.support.stubs.openai_responses import OpenAIResponsesStub
from tests.support.stubs.server import Refusal

from .test_gateway_clients import FUNCTION, READ, claude, gpt, marked

Json = dict[str, Any]
WINDOW = 3_000
TURNS = 10
EVERY = 2
"""The model recalls something at every second step, once it can."""
BODY = "".join(f"{number}: a line of the file\n" for number in range(60))


class Model:
    """A model that thinks, speaks and reads a file, and at times recalls something first, or at the same time.

    Attributes:
        mixed: True to call both tools at once.
        recalls: Times that it has recalled.
        results: The results that it got.
    """

    def __init__(self, *, mixed: bool = False, always: bool = False) -> None:
        self.mixed, self.always = mixed, always
        self.steps = self.recalls = 0
        self.results: list[str] = []

    def __call__(self, request: Mapping[str, Any]) -> list[Any]:
        conversation = request.get("messages") or request.get("input") or request["contents"]
        result = last_result(conversation)
        if result is not None:
            self.results.append(result)
        self.steps += result is None
        ids = recall_ids(request)
        read = Call("read", {"path": f"file{self.steps}.py"})
        if ids and offers_recall(request) and (self.always or (result is None and self.steps % EVERY == 0)):
            self.recalls += 1
            recall = Call("recall", {"id": ids[-1]})
            return [Think("What was it?"), recall, read] if self.mixed else [Think("What was it?"), Say("Let me see."), recall]
        return [Think(f"I want file {self.steps}."), Say(f"Reading file {self.steps}."), read]


def last_result(conversation: Sequence[Json]) -> str | None:
    """Return the text of the last message if it answers a recall."""
    last, before = conversation[-1], json.dumps(conversation[-2:-1])
    text = json.dumps(last)
    is_result = any(name in text for name in ("tool_result", '"tool"', "function_call_output", "functionResponse"))
    return text if is_result and '"name": "recall"' in before + text else None


def offers_recall(request: Mapping[str, Any]) -> bool:
    return '"recall"' in json.dumps(request.get("tools", []))


def anthropic_turns(address: str, streamed: bool, turns: int = TURNS, **more: Any) -> Iterator[list[Json]]:
    """Yield the blocks of each answer."""
    messages: list[Any] = [{"role": "user", "content": "Read all files."}]
    with claude(address) as client:
        for _ in range(turns):
            fields: Any = {"model": "claude-sonnet-5-5", "max_tokens": 2_000, "messages": marked(messages), "tools": [READ], **more}
            if streamed:
                with client.messages.stream(**fields) as stream:
                    answer = stream.get_final_message()
            else:
                answer = client.messages.create(**fields)
            blocks = [block.model_dump(exclude_none=True) for block in answer.content]
            messages.append({"role": "assistant", "content": blocks})
            calls = [block for block in blocks if block["type"] == "tool_use"]
            assert answer.stop_reason == ("tool_use" if calls else "end_turn")
            yield blocks
            results = [{"type": "tool_result", "tool_use_id": call["id"], "content": BODY} for call in calls]
            messages.append({"role": "user", "content": results or "Go on."})


def chat_turns(address: str, streamed: bool, turns: int = TURNS) -> Iterator[list[Json]]:
    messages: list[Any] = [{"role": "developer", "content": "You read files."}, {"role": "user", "content": "Read all files."}]
    tools: Any = [{"type": "function", "function": FUNCTION}]
    with gpt(address) as client:
        for _ in range(turns):
            if streamed:
                options: Any = {"include_usage": True}
                with client.chat.completions.stream(model="gpt-5", messages=messages, tools=tools, stream_options=options) as stream:
                    answer = stream.get_final_completion()
            else:
                answer = client.chat.completions.create(model="gpt-5", messages=messages, tools=tools)  # type: ignore[assignment]
            choice = answer.choices[0]
            fields = ("role", "content", "tool_calls")
            message = {name: value for name, value in choice.message.model_dump(exclude_none=True).items() if name in fields}
            for call in message.get("tool_calls", []):
                call["function"].pop("parsed_arguments", None)
                call.pop("index", None)  # the SDK leaves it there
            messages.append(message)
            assert choice.finish_reason == ("tool_calls" if message.get("tool_calls") else "stop")
            assert answer.usage
            yield [message]
            calls = message.get("tool_calls") or []
            messages += [{"role": "tool", "tool_call_id": call["id"], "content": BODY} for call in calls] or [
                {"role": "user", "content": "Go on."}
            ]


def responses_turns(address: str, streamed: bool, turns: int = TURNS) -> Iterator[list[Json]]:
    items: list[Any] = [{"role": "user", "content": "Read all files."}]
    tools: Any = [{"type": "function", "strict": False, **FUNCTION}]
    with gpt(address) as client:
        for _ in range(turns):
            fields: Any = {"model": "gpt-5", "input": items, "tools": tools, "store": False, "include": ["reasoning.encrypted_content"]}
            if streamed:
                with client.responses.stream(**fields) as stream:
                    answer: Any = stream.get_final_response()
            else:
                answer = client.responses.create(**fields)
            output = [item.model_dump(exclude_none=True) for item in answer.output]
            for item in output:
                item.pop("parsed_arguments", None)
                for part in item.get("content") or []:
                    part.pop("parsed", None)
            items += output
            yield output
            calls = [item for item in output if item["type"] == "function_call"]
            items += [{"type": "function_call_output", "call_id": call["call_id"], "output": BODY} for call in calls] or [
                {"role": "user", "content": "Go on."}
            ]


def google_turns(address: str, streamed: bool, turns: int = TURNS) -> Iterator[list[Json]]:
    client = genai.Client(api_key="k", http_options={"base_url": f"{address}/google"})
    contents: list[Any] = [{"role": "user", "parts": [{"text": "Read all files."}]}]
    tool: Any = {"name": "read", "description": "Reads a file.", "parameters_json_schema": READ["input_schema"]}
    config: Any = {"tools": [{"function_declarations": [tool]}], "automatic_function_calling": {"disable": True}}
    for _ in range(turns):
        if streamed:
            chunks = list(client.models.generate_content_stream(model="gemini-3-pro", contents=contents, config=config))
            parts = [part for chunk in chunks for part in chunk.parts or [] if part.model_dump(exclude_none=True) != {"text": ""}]
            assert chunks[-1].candidates
            assert chunks[-1].candidates[0].finish_reason
        else:
            answer = client.models.generate_content(model="gemini-3-pro", contents=contents, config=config)
            parts = answer.parts or []
        contents.append({"role": "model", "parts": [part.model_dump(exclude_none=True) for part in parts]})
        yield [part.model_dump(exclude_none=True, mode="json") for part in parts]
        calls = [part.function_call for part in parts if part.function_call]
        responses = [{"function_response": {"name": call.name, "id": call.id, "response": {"output": BODY}}} for call in calls]
        contents.append({"role": "user", "parts": responses or [{"text": "Go on."}]})
    client.close()


CLIENTS = [
    pytest.param(AnthropicStub, anthropic_turns, "messages", id="anthropic"),
    pytest.param(OpenAIChatStub, chat_turns, "messages", id="chat"),
    pytest.param(OpenAIResponsesStub, responses_turns, "input", id="responses"),
    pytest.param(GeminiStub, google_turns, "contents", id="google"),
]


@pytest.mark.parametrize("mixed", [False, pytest.param(True, marks=pytest.mark.long)], ids=["alone", "mixed"])
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("stub_type", "turns", "field"), CLIENTS)
def test_recalls_are_answered_and_the_client_does_not_see_them(stub_type: Any, turns: Any, field: str, streamed: bool, mixed: bool) -> None:
    """No request is refused, no pair is broken, and the tool stays once the conversation has it."""
    model, ledger = Model(mixed=mixed), GatewayLedger()
    with stub_type(model) as stub, gateway(stub.url, WINDOW, ledger=ledger, recall=True) as address:
        answers = list(turns(address, streamed))
    assert not ledger.unmanaged
    assert len(stub.answers) == len(stub.requests)
    assert model.recalls >= 2
    assert '"recall"' not in json.dumps(answers)
    first = [request for request in stub.requests if last_result(request[field]) is None]
    assert len(first) == TURNS
    assert all(json.dumps(answer).count('"file') + json.dumps(answer).count('\\"file') >= 1 for answer in answers)
    offers = [offers_recall(request) for request in first]
    assert offers == sorted(offers)
    assert not offers[0]
    sent = [[bare(message) for message in request[field]] if stub_type is AnthropicStub else request[field] for request in first]
    assert breaks(sent) <= TURNS / 2
    changes = [number for number in range(1, TURNS) if offers[number] != offers[number - 1]]
    assert all(sent[number][: len(sent[number - 1])] != sent[number - 1] for number in changes)  # the cache breaks for a trim anyway
    if mixed:
        assert ledger.recalls == 0
    else:
        assert ledger.recalls == model.recalls == len(model.results)
        assert all("a line of the file" in result for result in model.results)
        assert len(stub.requests) == TURNS + model.recalls
        assert any("Let me see." in json.dumps(answer) for answer in answers)


@pytest.mark.parametrize(("stub_type", "turns", "field"), CLIENTS)
def test_without_the_tool_no_placeholder_promises_it(stub_type: Any, turns: Any, field: str) -> None:
    with stub_type(Model()) as stub, gateway(stub.url, WINDOW) as address:
        list(turns(address, False, 9))
    text = json.dumps([request[field] for request in stub.requests])
    assert "recall id" not in text
    assert " taken out" in text or "[extract" in text or "removed to fit" in text
    assert not any(offers_recall(request) for request in stub.requests)


@pytest.mark.parametrize("streamed", [pytest.param(False, marks=pytest.mark.long), True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("stub_type", "turns", "field"), CLIENTS)
def test_recalls_without_end_are_bounded(stub_type: Any, turns: Any, field: str, streamed: bool) -> None:
    """In number and in size. The client gets what there is, and its next request is not refused."""
    model = Model(always=True)
    with stub_type(model) as stub, gateway(stub.url, WINDOW, recall=True) as address:
        answers = list(turns(address, streamed, 9))
    first = [number for number, request in enumerate(stub.requests) if last_result(request[field]) is None]
    assert len(first) == 9
    assert len(stub.requests) - first[-1] == ROUNDS + 1
    assert "Let me see." in json.dumps(answers[-1])
    last = stub.requests[-1][field]
    assert "no more content can be recalled" in json.dumps(last)
    assert len(json.dumps(last)) - len(json.dumps(stub.requests[first[-1]][field])) < 3 * WINDOW + 1_000 * ROUNDS
    assert '"recall"' not in json.dumps(answers)


@pytest.mark.parametrize("streamed", [pytest.param(False, marks=pytest.mark.long), True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("stub_type", "turns", "field"), CLIENTS)
def test_an_answer_of_recalls_alone_gets_a_text(stub_type: Any, turns: Any, field: str, streamed: bool) -> None:
    """An empty answer would be refused in the client's next request."""

    def model(request: Mapping[str, Any]) -> list[Any]:
        ids = recall_ids(request)
        return [Call("recall", {"id": ids[-1] if ids else "none"})] if offers_recall(request) else [Call("read", {"path": "a"})]

    with stub_type(model) as stub, gateway(stub.url, WINDOW, recall=True) as address:
        answers = list(turns(address, streamed, 9))
    assert len(stub.answers) == len(stub.requests)
    assert "request for removed content" in json.dumps(answers[-1])


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("stub_type", "turns", "error"),
    [
        pytest.param(AnthropicStub, anthropic_turns, anthropic.APIStatusError, id="anthropic"),
        pytest.param(OpenAIChatStub, chat_turns, openai.APIError, id="chat"),
        pytest.param(OpenAIResponsesStub, responses_turns, openai.APIError, id="responses"),
        pytest.param(GeminiStub, google_turns, genai.errors.APIError, id="google"),
    ],
)
def test_an_error_of_a_later_round_is_the_upstream_s_own(stub_type: Any, turns: Any, error: Any, streamed: bool) -> None:
    """Also after the client's stream has begun."""
    model = Model()

    def script(request: Mapping[str, Any]) -> list[Any]:
        conversation = request.get("messages") or request.get("input") or request["contents"]
        if last_result(conversation) is not None:
            raise Refusal("the second round is refused", status=429)
        return model(request)

    with stub_type(script) as stub, gateway(stub.url, WINDOW, recall=True) as address, pytest.raises(error, match="round is refused"):
        list(turns(address, streamed))


def test_another_worker_can_answer_the_next_request() -> None:
    """Every request goes to a gateway that has seen none before."""
    model = Model()
    messages: list[Any] = [{"role": "user", "content": "Read all files."}]
    tools: Any = [{"type": "function", "function": FUNCTION}]
    with OpenAIChatStub(model) as stub:
        for _ in range(11):
            with gateway(stub.url, WINDOW, recall=True) as address, gpt(address) as client:
                message = client.chat.completions.create(model="gpt-5", messages=messages, tools=tools).choices[0].message
            assert message.tool_calls
            messages.append({**message.model_dump(exclude_none=True), "annotations": []})
            messages.append({"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": BODY})
    assert model.recalls > 1
    assert len(model.results) == model.recalls
    assert all("a line of the file" in result for result in model.results)


def test_usage_is_the_last_round_s_with_the_output_of_all() -> None:
    """A client that compares prompt tokens with the model's window must not see the same prompt twice."""
    with OpenAIChatStub(Model()) as stub, gateway(stub.url, WINDOW, recall=True) as address, gpt(address) as client:
        messages: list[Any] = [{"role": "user", "content": "Read all files."}]
        tools: Any = [{"type": "function", "function": FUNCTION}]
        usage: Any = None
        while len(stub.requests) < 20:
            before = len(stub.answers)
            answer = client.chat.completions.create(model="gpt-5", messages=messages, tools=tools)
            usage = answer.usage
            if len(stub.answers) - before == 2:
                break
            message = answer.choices[0].message
            messages.append(message.model_dump(exclude_none=True))
            messages.append({"role": "tool", "tool_call_id": (message.tool_calls or [])[0].id, "content": BODY})
        first, second = (answer["usage"] for answer in stub.answers[-2:])
    assert usage.prompt_tokens == second["prompt_tokens"]
    assert usage.completion_tokens == first["completion_tokens"] + second["completion_tokens"]
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens


@pytest.mark.parametrize(
    "change",
    [
        {"tools": []},
        {"tools": [{"name": "recall", "input_schema": {"type": "object"}}]},
        {"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
    ],
)
def test_a_request_that_cannot_have_the_tool_does_not_get_it(change: Json) -> None:
    messages: list[Json] = []
    for number in range(30):
        messages += [{"role": "user", "content": f"{number} " + "words " * 100}, {"role": "assistant", "content": "words " * 100}]
    messages.append({"role": "user", "content": "And now?"})
    body = {"model": "claude-sonnet-5-5", "max_tokens": 10, "messages": messages, **change}
    with AnthropicStub() as stub, gateway(stub.url, 2_000, recall=True) as address:
        headers = {"x-api-key": "k", "anthropic-version": "2023-06-01"}
        answer = httpx.post(f"{address}/anthropic/v1/messages", json=body, headers=headers, trust_env=False)
    assert answer.status_code == 200, answer.text
    [request] = stub.requests
    assert len(request["messages"]) < len(messages) / 2
    assert request["tools"] == change["tools"]
    assert "recall id" not in json.dumps(request)


def test_an_answer_has_a_bounded_number_of_recalls() -> None:
    """A thousand that find nothing searched the conversation a thousand times, while the other clients waited for the threads."""
    messages: list[Json] = [{"role": "user", "content": "a word"}, {"role": "assistant", "content": "b"}] * 20
    conversation = RequestConversation("claude-sonnet-5-5", "", messages, [], {}, None)
    ledger = GatewayLedger()
    recalls = Recalls(Windows(ContextWindow(max_tokens=8_000)), AnthropicWire(), conversation, ledger)
    results = asyncio.run(recalls.results([AnswerCall("recall", {"query": "nowhere"})] * 1_000))
    assert ledger.recalls == MOST_RECALLS
    assert results[MOST_RECALLS:] == [(USED_UP, True)] * (1_000 - MOST_RECALLS)
    assert all("None of the" in text for text, _ in results[:MOST_RECALLS])
