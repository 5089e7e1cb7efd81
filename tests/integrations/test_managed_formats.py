"""`manage` for lists that the gateway does not serve, of Bedrock, Vercel, smolagents, LlamaIndex and AutoGen, and for objects."""

from __future__ import annotations

import base64
import copy
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from pydantic import BaseModel, ConfigDict

from context_window import ContextOverflowError, manage
from tests.integrations.test_managed_messages import FORMATS as MORE_FORMATS
from tests.integrations.test_managed_messages import conversation
from tests.support.lazy import LazyModule

if TYPE_CHECKING:
    from botocore import session as boto
    from botocore import validate
    from google.genai import types
    from openai.types import chat
else:
    boto, validate, types, chat = map(LazyModule, ("botocore.session", "botocore.validate", "google.genai.types", "openai.types.chat"))

Json = dict[str, Any]
OUTPUT = "".join(f"line {number}: something that was printed\n" for number in range(40))


def picture(color: str) -> bytes:
    data = io.BytesIO()
    Image.new("RGB", (64, 64), color).save(data, format="PNG")
    return data.getvalue()


RED = picture("red")


@dataclass(frozen=True)
class Turn:
    """What one turn of a conversation has."""

    calls: int = 1
    is_said: bool = False
    is_thought: bool = False
    has_picture: bool = False
    is_error: bool = False


TURNS = st.lists(
    st.builds(Turn, st.integers(0, 3), st.booleans(), st.booleans(), st.booleans(), st.booleans()).map(
        lambda turn: turn if turn.calls else Turn(0, is_said=True)
    ),
    min_size=1,
    max_size=25,
)


def converse(turns: list[Turn]) -> list[Json]:
    messages: list[Json] = [{"role": "user", "content": [{"text": "List them all."}]}]
    for number, turn in enumerate(turns):
        ids = [f"t{number}.{call}" for call in range(turn.calls)]
        thought = {"reasoningContent": {"reasoningText": {"text": "I think.", "signature": "c2ln"}}}
        said: list[Json] = [*([thought] if turn.is_thought else []), *([{"text": f"Step {number}."}] if turn.is_said else [])]
        calls = [{"toolUse": {"toolUseId": id, "name": "Bash", "input": {"command": OUTPUT[:600]}}} for id in ids]
        image = [{"image": {"format": "png", "source": {"bytes": RED}}}] if turn.has_picture else []
        status = {"status": "error"} if turn.is_error else {}
        results = [{"toolResult": {"toolUseId": id, "content": [{"text": OUTPUT}, {"json": {"n": 1}}, *image], **status}} for id in ids]
        messages += [{"role": "assistant", "content": [*said, *calls]}, {"role": "user", "content": results or [{"text": "Go on."}]}]
    return messages


def vercel(turns: list[Turn]) -> list[Json]:
    messages: list[Json] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "List them all."}]
    for number, turn in enumerate(turns):
        ids = [f"t{number}.{call}" for call in range(turn.calls)]
        said = [*([{"type": "reasoning", "text": "I think."}] if turn.is_thought else [])]
        said += [{"type": "text", "text": f"Step {number}."}] if turn.is_said else []
        calls = [{"type": "tool-call", "toolCallId": id, "toolName": "Bash", "input": {"command": OUTPUT[:600]}} for id in ids]
        output: Json = {"type": "error-text" if turn.is_error else "text", "value": OUTPUT}
        if turn.has_picture:
            image = {"type": "media", "data": base64.b64encode(RED).decode(), "mediaType": "image/png"}
            output = {"type": "content", "value": [{"type": "text", "text": OUTPUT}, image]}
        results = [{"type": "tool-result", "toolCallId": id, "toolName": "Bash", "output": output} for id in ids]
        answer = {"role": "tool", "content": results} if results else {"role": "user", "content": "Go on."}
        messages += [{"role": "assistant", "content": [*said, *calls]}, answer]
    return messages


def smolagents(turns: list[Turn]) -> list[Json]:
    def message(role: str, *blocks: Json | str) -> Json:
        return {"role": role, "content": [{"type": "text", "text": block} if isinstance(block, str) else block for block in blocks]}

    messages = [message("system", "Be brief."), message("user", "New task:\nList them all.")]
    for number, turn in enumerate(turns):
        calls = [{"id": f"t{number}", "type": "function", "function": {"name": "python_interpreter", "arguments": OUTPUT[:600]}}]
        messages += [message("assistant", f"Step {number}.")] if turn.is_said else []
        messages += [message("tool-call", f"Calling tools:\n{calls}")] if turn.calls else []
        messages += [message("user", {"type": "image", "image": Image.new("RGB", (64, 64), "red")})] if turn.has_picture else []
        messages += [message("tool-response", f"Observation:\n{OUTPUT}")] if turn.calls else []
        messages += [message("tool-response", f"Error:\n{number}\nNow let's retry")] if turn.is_error or not turn.calls else []
    return messages


def llamaindex(turns: list[Turn]) -> list[Json]:
    def message(role: str, *blocks: Json | str, **more: Any) -> Json:
        texts = [{"block_type": "text", "text": block} if isinstance(block, str) else block for block in blocks]
        return {"role": role, "additional_kwargs": more, "blocks": texts}

    messages = [message("system", "Be brief."), message("user", "List them all.")]
    image = {"block_type": "image", "image": base64.b64encode(RED).decode(), "image_mimetype": "image/png"}
    for number, turn in enumerate(turns):
        ids = [f"t{number}.{call}" for call in range(turn.calls)]
        arguments = json.dumps({"command": OUTPUT[:600]})
        blocks = [{"block_type": "tool_call", "tool_call_id": id, "tool_name": "Bash", "tool_kwargs": arguments} for id in ids]
        calls = [{"id": id, "type": "function", "function": {"name": "Bash", "arguments": arguments}} for id in ids]
        thought = [{"block_type": "thinking", "content": "I think."}] if turn.is_thought else []
        said = [f"Step {number}." if turn.is_said else ""]
        more = {"tool_calls": calls} if calls and (turn.is_error or number % 2) else {}  # a block, an additional argument, or both
        messages.append(message("assistant", *thought, *said, *([] if turn.is_error else blocks), **more))
        messages += [message("tool", OUTPUT, *([image] if turn.has_picture else []), tool_call_id=id) for id in ids]
        messages += [] if ids else [message("user", "Go on.")]
    return messages


def autogen(turns: list[Turn]) -> list[Json]:
    messages: list[Json] = [
        {"type": "SystemMessage", "content": "Be brief."},
        {"type": "UserMessage", "content": "List them all.", "source": "user"},
    ]
    for number, turn in enumerate(turns):
        ids = [f"t{number}.{call}" for call in range(turn.calls)]
        calls = [{"id": id, "name": "Bash", "arguments": json.dumps({"command": OUTPUT[:600]})} for id in ids]
        results = [{"content": OUTPUT, "name": "Bash", "call_id": id, "is_error": turn.is_error} for id in ids]
        thought = {"thought": "I think."} if turn.is_thought else {}
        messages.append({"type": "AssistantMessage", "content": calls or f"Step {number}.", "source": "a", **thought})
        messages += [{"type": "FunctionExecutionResultMessage", "content": results}] if results else []
        image = [{"data": base64.b64encode(RED).decode()}] if turn.has_picture else []
        messages += [{"type": "UserMessage", "content": ["Go on.", *image], "source": "user"}] if image or not results else []
    return messages


def agent_framework(turns: list[Turn]) -> list[Json]:
    def message(role: str, *contents: Json | str) -> Json:
        blocks = [{"type": "text", "text": each} if isinstance(each, str) else each for each in contents]
        return {"type": "message", "role": role, "contents": blocks, "additional_properties": {}}

    messages = [message("system", "Be brief."), message("user", "List them all.")]
    image = {"type": "data", "uri": f"data:image/png;base64,{base64.b64encode(RED).decode()}", "media_type": "image/png"}
    for number, turn in enumerate(turns):
        ids = [f"t{number}.{call}" for call in range(turn.calls)]
        arguments: Json | str = {"command": OUTPUT[:600]} if turn.is_error else json.dumps({"command": OUTPUT[:600]})
        calls = [{"type": "function_call", "call_id": id, "name": "Bash", "arguments": arguments} for id in ids]
        items = [{"type": "text", "text": OUTPUT}, *([image] if turn.has_picture else [])]
        results = [{"type": "function_result", "call_id": id, "result": OUTPUT, "items": items} for id in ids]
        thought = [{"type": "text_reasoning", "text": "I think."}] if turn.is_thought else []
        messages.append(message("assistant", *thought, *([f"Step {number}."] if turn.is_said else []), *calls))
        messages.append(message("tool", *results) if results else message("user", "Go on."))
    return messages


def old_chat(turns: list[Turn]) -> list[Json]:
    messages: list[Json] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "List them all."}]
    call = {"name": "Bash", "arguments": json.dumps({"command": OUTPUT[:600]})}
    image = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{base64.b64encode(RED).decode()}"}}
    for number, turn in enumerate(turns):
        said = f"Step {number}." if turn.is_said else None
        for _ in range(turn.calls):
            messages.append({"role": "assistant", "content": said, "function_call": call})
            messages.append({"role": "function", "name": "Bash", "content": OUTPUT})
        messages += [] if turn.calls else [{"role": "assistant", "content": said}, {"role": "user", "content": "Go on."}]
        messages += [{"role": "user", "content": [image]}] if turn.has_picture else []
    return messages


@cache
def converse_input() -> Any:
    """The shape that boto3 checks a request against."""
    return boto.Session().get_service_model("bedrock-runtime").operation_model("Converse").input_shape


def converse_problems(messages: list[Json]) -> list[str]:
    """What the API, and boto3 before it, would refuse."""
    report = validate.ParamValidator().validate({"modelId": "m", "messages": messages}, converse_input())
    problems = [report.generate_report()] if report.has_errors() else []
    roles = [message["role"] for message in messages]
    problems += ["roles"] if roles != [("user", "assistant")[index % 2] for index in range(len(roles))] else []
    problems += ["empty"] if not all(message["content"] for message in messages) else []
    for before, after in pairwise([{"role": "user", "content": []}, *messages, {"role": "user", "content": []}]):
        calls = {block["toolUse"]["toolUseId"] for block in before["content"] if "toolUse" in block}
        results = [block["toolResult"]["toolUseId"] for block in after["content"] if "toolResult" in block]
        problems += ["pairs"] if sorted(calls) != sorted(results) else []
    texts = [block["text"] for message in messages for block in message["content"] if "text" in block]
    return problems + ["blank" for text in texts if not text.strip()]


def vercel_problems(messages: list[Json]) -> list[str]:
    """What the AI SDK would refuse: a call without a result, a result without its call, parts of an unknown form."""
    problems, waiting = [], set[str]()
    for message in messages:
        blocks = [] if isinstance(message["content"], str) else message["content"]
        results = {block["toolCallId"] for block in blocks if block["type"] == "tool-result"}
        problems += [f"no call for {results - waiting}"] if results - waiting else []
        waiting -= results
        problems += [f"no result for {waiting}"] if waiting and message["role"] != "tool" else []
        waiting |= {block["toolCallId"] for block in blocks if block["type"] == "tool-call"}
        problems += ["an empty message"] if not message["content"] else []
        for block in blocks:
            if block["type"] == "tool-result":
                kind, value = block["output"]["type"], block["output"]["value"]
                problems += [] if isinstance(value, str) == (kind in ("text", "error-text")) else [f"{kind}: {value}"]
                problems += ["a part"] if kind == "content" and not all("type" in part for part in value) else []
    return problems + ([f"no result for {waiting}"] if waiting else [])


def smolagents_problems(messages: list[Json]) -> list[str]:
    """What `get_clean_message_list` would refuse."""
    return [f"{message}" for message in messages if not (isinstance(message["content"], list) and message["content"])]


def unpaired(calls: list[list[str]], results: list[list[str]]) -> list[str]:
    """Calls of a message that the messages up to the next call do not answer, and results without their call."""
    problems, waiting = [], list[str]()
    for asked, answered in zip(calls, results, strict=True):
        problems += [f"no call for {id}" for id in answered if id not in waiting]
        waiting = [id for id in waiting if id not in answered]
        problems += [f"no result for {waiting}"] if waiting and not answered else []
        waiting += asked
    return problems + ([f"no result for {waiting}"] if waiting else [])


def llamaindex_problems(messages: list[Json]) -> list[str]:
    """What a provider would refuse once LlamaIndex has written it: of two forms of a call, the blocks count."""
    calls, results = [], []
    for message in messages:
        more = message["additional_kwargs"]
        blocks = [block["tool_call_id"] for block in message["blocks"] if block["block_type"] == "tool_call"]
        added = [call["id"] for call in more.get("tool_calls", [])]
        if blocks and added and blocks != added:
            return [f"{blocks} and {added}"]
        calls.append(blocks or added)
        results.append([more["tool_call_id"]] if message["role"] == "tool" else [])
    return unpaired(calls, results) + [f"{message}" for message in messages if not (message["blocks"] or message["additional_kwargs"])]


def autogen_problems(messages: list[Json]) -> list[str]:
    """What AutoGen's types or a provider would refuse."""
    answers = [message["content"] if message["type"] == "AssistantMessage" else "" for message in messages]
    results = [message["content"] if message["type"] == "FunctionExecutionResultMessage" else [] for message in messages]
    calls = [[call["id"] for call in answer] if isinstance(answer, list) else [] for answer in answers]
    problems = unpaired(calls, [[result["call_id"] for result in each] for each in results])
    problems += [f"{message}" for message in messages if not message["content"]]
    return problems + [f"{result}" for each in results for result in each if not isinstance(result["content"], str)]


def agent_framework_problems(messages: list[Json]) -> list[str]:
    """What a provider would refuse once the framework has written it."""

    def ids(message: Json, kind: str) -> list[str]:
        return [block["call_id"] for block in message["contents"] if block["type"] == kind]

    results = [block for message in messages for block in message["contents"] if block["type"] == "function_result"]
    differ = [
        f"{result}" for result in results if result["items"][0]["type"] == "text" and result["items"][0]["text"] not in result["result"]
    ]
    empty = [f"{message}" for message in messages if not message["contents"]]
    return unpaired([ids(each, "function_call") for each in messages], [ids(each, "function_result") for each in messages]) + differ + empty


def old_chat_problems(messages: list[Json]) -> list[str]:
    """What OpenAI would refuse: each call is answered by the next message, and by one that names its tool."""
    calls = [[message["function_call"]["name"]] if "function_call" in message else [] for message in messages]
    results = [[message["name"]] if message["role"] == "function" else [] for message in messages]
    return unpaired(calls, results) + [
        f"{each}" for each in messages if not (each["content"] or "function_call" in each or each["role"] == "function")
    ]


FORMATS: dict[str, tuple[str, Callable[[list[Turn]], list[Json]], Callable[[list[Json]], list[str]]]] = {
    "converse": ("claude-sonnet-5-5", converse, converse_problems),
    "vercel": ("gpt-5", vercel, vercel_problems),
    "smolagents": ("gpt-5", smolagents, smolagents_problems),
    "llamaindex": ("gpt-5", llamaindex, llamaindex_problems),
    "agent framework": ("gpt-5", agent_framework, agent_framework_problems),
    "autogen": ("gpt-5", autogen, autogen_problems),
    "old chat": ("gpt-5", old_chat, old_chat_problems),
}


@given(st.sampled_from(sorted(FORMATS)), TURNS, st.sampled_from((2_000, 4_000, 8_000)))
def test_views_are_valid_and_the_list_is_not_changed(name: str, turns: list[Turn], budget: int) -> None:
    model, make, problems = FORMATS[name]
    messages = make(turns)
    before = copy.deepcopy(messages)
    assert problems(messages) == []
    try:
        view = manage(messages, model=model, max_tokens=budget)
    except ContextOverflowError:
        return
    assert messages == before
    assert problems(view) == []
    assert view == manage(copy.deepcopy(messages), model=model, max_tokens=budget)


@pytest.mark.parametrize("name", FORMATS)
def test_long_conversations_shrink_and_keep_their_ends(name: str) -> None:
    model, make, problems = FORMATS[name]
    turns = [Turn(1 + number % 2, number % 3 == 0, number % 3 == 0, number % 7 == 0, number % 5 == 0) for number in range(50)]
    views = [manage(make(turns[:length]), model=model, max_tokens=10_000) for length in range(1, 51)]
    messages = make(turns)
    assert [problems(view) for view in views] == [[]] * 50
    assert len(repr(views[-1])) < len(repr(messages)) / 2
    assert (views[-1][0], views[-1][-2:]) == (messages[0], messages[-2:])
    assert sum(later[: len(earlier)] == earlier for earlier, later in pairwise(views)) >= 35


def with_mark(name: str, messages: list[Json]) -> list[Json]:
    """The messages with a cache mark on the last one, as clients set it anew in every request."""
    *others, last = messages
    if name == "vercel":
        return [*others, {**last, "providerOptions": {"anthropic": {"cacheControl": {"type": "ephemeral"}}}}]
    return [*others, {**last, "content": [*last["content"], {"cachePoint": {"type": "default"}}]}]


def without_marks(messages: list[Json]) -> list[Json]:
    plain = [{name: value for name, value in message.items() if name != "providerOptions"} for message in messages]
    for message in plain:
        if isinstance(message["content"], list):
            message["content"] = [block for block in message["content"] if "cachePoint" not in block]
    return plain


@pytest.mark.parametrize("name", ["converse", "vercel"])
def test_cache_marks_that_move_change_no_view(name: str) -> None:
    """and each is where the client has put it last"""
    model, make, _ = FORMATS[name]
    for turns in range(1, 41):
        plain = make([Turn()] * turns)
        view = manage(plain, model=model, max_tokens=6_000)
        marked = manage(with_mark(name, plain), model=model, max_tokens=6_000)
        assert without_marks(marked) == view
        (place,) = (index for index, message in enumerate(marked) if without_marks([message]) != [message])
        assert place >= len(marked) - 2  # a note may follow it
    assert len(view) < len(plain)


@pytest.mark.parametrize("name", FORMATS)
def test_an_output_that_is_larger_than_the_window_is_shortened(name: str) -> None:
    """and a cache point stays behind it"""
    model, make, problems = FORMATS[name]
    messages = json.loads(json.dumps(make([Turn()] * 2)).replace(json.dumps(OUTPUT)[1:-1], json.dumps(OUTPUT * 30)[1:-1]))
    if name == "converse":
        messages[-1]["content"].append({"cachePoint": {"type": "default"}})
    view = manage(messages, model=model, max_tokens=6_000)
    assert problems(view) == []
    assert len(json.dumps(view)) < len(json.dumps(messages)) / 3
    assert "line 39" in json.dumps(view[-1])
    assert name != "converse" or "cachePoint" in view[-1]["content"][-1]


@pytest.mark.parametrize("name", FORMATS)
def test_a_picture_counts_as_one(name: str) -> None:
    """whether it is bytes, base64 or an object: not as the text of its bytes, and not as nothing"""
    model, make, _ = FORMATS[name]
    plain, pictured = make([Turn()]), make([Turn(has_picture=True)])

    def fits(messages: list[Json], budget: int) -> bool:
        try:
            return manage(messages, model=model, max_tokens=budget) == messages
        except ContextOverflowError:
            return False

    def least(messages: list[Json]) -> int:
        return next(budget for budget in range(300, 5_000, 10) if fits(messages, budget))

    assert 5 <= least(pictured) - least(plain) <= 1_000


def test_version_4_of_the_ai_sdk_is_read_too() -> None:
    messages: list[Json] = [{"role": "user", "content": "List them."}]
    for number in range(20):
        named = {"toolCallId": f"t{number}", "toolName": "Bash"}
        messages += [
            {"role": "assistant", "content": [{"type": "tool-call", **named, "args": {"command": "ls"}}]},
            {"role": "tool", "content": [{"type": "tool-result", **named, "result": {"text": OUTPUT}}]},
        ]
    view = manage(messages, model="gpt-5", max_tokens=3_000)
    assert len(json.dumps(view)) < len(json.dumps(messages)) / 2
    results = [block for message in view if message["role"] == "tool" for block in message["content"]]
    assert all(isinstance(block["result"], str | dict) and "output" not in block for block in results)


def test_objects_of_a_client_come_back_as_such() -> None:
    """Those that stay whole are the same objects; the others have their class, with bytes as they were."""
    signed = types.Part(function_call=types.FunctionCall(name="Bash", args={"command": OUTPUT}), thought_signature=b"\xfb\xff")
    result = types.Part(function_response=types.FunctionResponse(name="Bash", response={"output": OUTPUT}))
    contents: list[types.Content] = [types.UserContent("List them.")]
    for _ in range(20):
        contents += [types.Content(role="model", parts=[types.Part(text="Yes."), signed]), types.Content(role="user", parts=[result])]
    view = manage(contents, model="gemini-3-pro", max_tokens=4_000)
    assert {type(content) for content in view[1:]} == {types.Content}
    assert view[0] is contents[0]
    assert view[-1] is contents[-1]
    assert any(all(content is not given for given in contents) for content in view)
    signatures = [part.thought_signature for content in view for part in content.parts or () if part.function_call]
    assert signatures
    assert b"\xfb\xff" in signatures


def test_objects_may_stand_among_dictionaries() -> None:
    """as where an answer of OpenAI's client was appended"""
    function = {"name": "Bash", "arguments": '{"command": "ls"}'}
    messages: list[Any] = [{"role": "user", "content": "List them."}]
    for number in range(20):
        calls = [{"id": f"t{number}", "type": "function", "function": function}]
        messages.append(chat.ChatCompletionMessage.model_validate({"role": "assistant", "content": None, "tool_calls": calls}))
        messages.append({"role": "tool", "tool_call_id": f"t{number}", "content": OUTPUT})
    view = manage(messages, model="gpt-5", max_tokens=4_000)
    assert len(view) < len(messages)
    assert view[0] is messages[0]
    assert view[-2] is messages[-2]


class Fields(BaseModel):
    """A block of a client's."""

    model_config = ConfigDict(extra="allow")


@pytest.mark.parametrize("name", MORE_FORMATS)
def test_objects_may_stand_in_dictionaries(name: str) -> None:
    """as in `{"role": "assistant", "content": answer.content}`; the view is that of their fields, and has the same objects"""
    model, messages = conversation(name, 40)
    made: list[Fields] = []

    def with_objects(value: Any) -> Any:
        if isinstance(value, dict):
            made.append(Fields(**value))
        return made[-1] if isinstance(value, dict) else value

    given_ones = [
        {key: list(map(with_objects, value)) if isinstance(value, list) else value for key, value in each.items()} for each in messages
    ]
    view = manage(given_ones, model=model, max_tokens=6_000)
    assert json.loads(json.dumps(view, default=BaseModel.model_dump)) == manage(messages, model=model, max_tokens=6_000)
    assert len(view) < len(messages)
    objects = [
        member for each in view for value in each.values() if isinstance(value, list) for member in value if isinstance(member, Fields)
    ]
    assert set(map(id, objects)) <= set(map(id, made))
    assert bool(objects) is bool(made)


class Clocked(BaseModel):
    """A message with something that has no JSON form, as Agno's have."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    role: str
    content: str
    clock: object = None


def test_what_has_no_json_form_in_an_object_is_no_obstacle() -> None:
    messages = [Clocked(role="assistant" if at % 2 else "user", content="word " * 300, clock=object()) for at in range(31)]
    view = manage(messages, model="gpt-5", max_tokens=4_000)
    assert len(view) < len(messages)
    assert {type(message) for message in view} == {Clocked}
    assert view[-1] is messages[-1]
