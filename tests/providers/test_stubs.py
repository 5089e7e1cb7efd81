"""The stand-ins for the providers, asked by the vendors' own clients: what is valid passes, and each documented error is raised."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from functools import cache
from io import BytesIO
from typing import TYPE_CHECKING, Any

import PIL.Image
import pytest

from tests.support.lazy import LazyModule
from tests.support.pictures import pdf
from tests.support.stubs import (
    AnthropicStub,
    Call,
    GeminiStub,
    OpenAIChatStub,
    OpenAIResponsesStub,
    Say,
    Stub,
    Think,
    in_order,
)
from tests.support.stubs.anthropic import BINDING_BETA
from tests.support.stubs.clients import anthropic_client, google_client, openai_client
from tests.support.stubs.pictures import look

if TYPE_CHECKING:
    import anthropic
    import openai
    from google import genai
    from google.genai import errors as google_errors
else:
    anthropic = LazyModule("anthropic")
    openai = LazyModule("openai")
    genai = LazyModule("google.genai")
    google_errors = LazyModule("google.genai.errors")

Json = dict[str, Any]


def texts(text: str) -> list[Json]:
    return [{"type": "text", "text": text}]


@cache
def png(width: int = 2, height: int = 2) -> str:
    """The base64 of a black picture."""
    out = BytesIO()
    PIL.Image.new("1", (width, height)).save(out, "PNG")
    return base64.b64encode(out.getvalue()).decode()


def half(coded: str) -> str:
    return base64.b64encode(base64.b64decode(coded)[: len(base64.b64decode(coded)) // 2]).decode()


PDF = base64.b64encode(pdf()).decode()


@pytest.fixture(scope="module")
def claude() -> Iterator[tuple[AnthropicStub, anthropic.Anthropic]]:
    with AnthropicStub() as stub, anthropic_client(stub) as client:
        yield stub, client


@pytest.fixture(scope="module")
def chat() -> Iterator[openai.OpenAI]:
    with OpenAIChatStub() as stub, openai_client(stub) as client:
        yield client


@pytest.fixture(scope="module")
def responses() -> Iterator[tuple[OpenAIResponsesStub, openai.OpenAI]]:
    with OpenAIResponsesStub() as stub, openai_client(stub) as client:
        yield stub, client


@pytest.fixture(scope="module")
def gemini() -> Iterator[tuple[GeminiStub, genai.Client]]:
    with GeminiStub() as stub, google_client(stub) as client:
        yield stub, client


# Anthropic


def user(*content: Json) -> Json:
    return {"role": "user", "content": list(content)}


def assistant(*content: Json) -> Json:
    return {"role": "assistant", "content": list(content)}


def text(words: str = "hi", **more: Any) -> Json:
    return {"type": "text", "text": words, **more}


def use(id: str = "t1") -> Json:
    return {"type": "tool_use", "id": id, "name": "run", "input": {}}


def result(id: str = "t1", content: Any = "done") -> Json:
    return {"type": "tool_result", "tool_use_id": id, "content": content}


def image(width: int = 2, height: int = 2, media_type: str = "image/png") -> Json:
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": png(width, height)}}


SHORT, LONG = {"type": "ephemeral"}, {"type": "ephemeral", "ttl": "1h"}

ANTHROPIC_VALID: dict[str, list[Json]] = {
    "a text": [user(text())],
    "a text alone": [{"role": "user", "content": "hi"}],
    "a call and its result": [user(text()), assistant(text(), use()), user(result(), text())],
    "parallel calls, answered in another order": [user(text()), assistant(use("a"), use("b")), user(result("b"), result("a"))],
    "calls one after the other": [user(text()), assistant(use("a")), user(result("a")), assistant(use("b")), user(result("b"))],
    "twenty large images": [user(*[image(8000, 8000)] * 20)],
    "a hundred smaller images": [user(*[image(2000, 2000)] * 100)],
    "four marks": [user(text(cache_control=LONG), text(cache_control=LONG), text(cache_control=SHORT), text(cache_control=SHORT))],
    "an image in a result": [user(text()), assistant(use()), user(result(content=[text(), image()]))],
    "a document": [user({"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "words"}})],
    "a search at the provider": [
        user(text()),
        assistant(
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
            {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
            text(),
        ),
        user(text()),
    ],
}

ANTHROPIC_REFUSED: dict[str, tuple[list[Json], str]] = {
    "A1 nothing": ([], "at least one message is required"),
    "A1 assistant first": ([assistant(text()), user(text())], 'first message must use the "user" role'),
    "A1 user twice": ([user(text()), user(text())], 'roles must alternate between "user" and "assistant"'),
    "A1 assistant last": ([user(text()), assistant(text())], "does not support assistant message prefill"),
    "A1 a role unknown": ([{"role": "tool", "content": "x"}], "Input should be 'user' or 'assistant'"),
    "A1 no content": ([user()], "all messages must have non-empty content"),
    "A2 no answer": (
        [user(text()), assistant(use()), user(text())],
        "`tool_use` ids were found without `tool_result` blocks immediately after",
    ),
    "A2 one of two answered": ([user(text()), assistant(use("a"), use("b")), user(result("a"))], "immediately after: b"),
    "A2 answered too late": (
        [user(text()), assistant(use()), user(text()), assistant(text()), user(result())],
        "`tool_use` ids were found without `tool_result` blocks",
    ),
    "A2 a search without its result": (
        [user(text()), assistant({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}), user(text())],
        "was found without a corresponding `web_search_tool_result` block",
    ),
    "A3 no call": ([user(result())], "unexpected `tool_use_id` found in `tool_result` blocks"),
    "A3 a call further back": (
        [user(text()), assistant(use()), user(result()), assistant(text()), user(result())],
        "unexpected `tool_use_id` found in `tool_result` blocks",
    ),
    "A3 text first": (
        [user(text()), assistant(use()), user(text(), result())],
        "Did not find 1 `tool_result` block(s) at the beginning of this message",
    ),
    "A3 two results of one call": ([user(text()), assistant(use()), user(result(), result())], "must have a single result"),
    "A3 an id twice": (
        [user(text()), assistant(use()), user(result()), assistant(use()), user(result())],
        "`tool_use` ids must be unique",
    ),
    "A4 a thought of nobody's": (
        [user(text()), assistant({"type": "thinking", "thinking": "hm", "signature": "c2ln"}, text()), user(text())],
        "Invalid `signature` in `thinking` block",
    ),
    "A6 no text": ([user(text(""))], "text content blocks must be non-empty"),
    "A6 a blank": ([user(text(" \n"))], "text content blocks must contain non-whitespace text"),
    "A7 five marks": ([user(*[text(cache_control=SHORT)] * 5)], "A maximum of 4 blocks with cache_control may be provided. Found 5."),
    "A7 a mark within": (
        [user(*[text(cache_control=SHORT)] * 4), assistant(use()), user(result(content=[text(cache_control=SHORT)]))],
        "Found 5.",
    ),
    "A7 a long one late": (
        [user(text(cache_control=SHORT), text(cache_control=LONG))],
        "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block",
    ),
    "A8 too many": ([user(*[image()] * 101)], "101 images > 100"),
    "A8 too wide": ([user(image(8001))], "exceed max allowed size: 8000 pixels"),
    "A8 too high for many": ([user(*[image()] * 20, image(height=2001))], "for many-image requests: 2000 pixels"),
    "A8 another format": ([user(image(media_type="image/gif"))], "the image appears to be a image/png image"),
    "A8 no image": (
        [user({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aaaa"}})],
        "Could not process image",
    ),
    "A8 half an image": (
        [user({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": half(png(50, 50))}})],
        "Could not process image",
    ),
    "A8 half a document": (
        [user({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": half(PDF)}})],
        "The PDF specified was not valid",
    ),
    "A8 no base64": (
        [user({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "§"}})],
        "Invalid base64 data",
    ),
    "A9 arguments as a text": ([user(text()), assistant({**use(), "input": ""}), user(result())], "Input should be a valid dictionary"),
    "a field unknown": ([user(text(name="x"))], "Extra inputs are not permitted"),
    "a block unknown": ([user({"type": "video"})], "does not match any of the expected tags"),
    "a call of the user's": ([user(use())], "`tool_use` blocks can only be in `assistant` messages"),
    "an id with a dot": ([user(text()), assistant(use("a.b")), user(result("a.b"))], "String should match pattern"),
}


def ask(client: anthropic.Anthropic, messages: Any, **more: Any) -> Any:
    return client.messages.create(model="claude-opus-5", max_tokens=4096, messages=messages, **more)


@pytest.mark.parametrize("name", ANTHROPIC_VALID)
def test_anthropic_takes(claude: tuple[AnthropicStub, anthropic.Anthropic], name: str) -> None:
    answer = ask(claude[1], ANTHROPIC_VALID[name])
    assert (answer.content[0].type, answer.stop_reason) == ("text", "end_turn")


def error_of(refusal: anthropic.APIStatusError) -> dict[str, str]:
    """Return type and message of a refusal. Old versions of the SDK have no attributes for them."""
    body: Any = refusal.body
    error: dict[str, str] = body["error"]
    return error


@pytest.mark.parametrize("name", ANTHROPIC_REFUSED)
def test_anthropic_refuses(claude: tuple[AnthropicStub, anthropic.Anthropic], name: str) -> None:
    messages, said = ANTHROPIC_REFUSED[name]
    with pytest.raises(anthropic.BadRequestError) as caught:
        ask(claude[1], messages)
    error = error_of(caught.value)
    assert said in error["message"]
    assert (error["type"], caught.value.status_code) == ("invalid_request_error", 400)
    assert set(caught.value.body) == {"type", "error", "request_id"}  # type: ignore[call-overload]  # the SDK says object


def test_anthropic_takes_thinking_back_and_no_other(claude: tuple[AnthropicStub, anthropic.Anthropic]) -> None:
    stub, client = claude
    stub.script = in_order([Think("hm"), Think(hidden=True), Say("so"), Call("run", {"a": 1})])
    said: list[Any] = ask(client, [user(text())]).to_dict()["content"]
    assert [block["type"] for block in said] == ["thinking", "redacted_thinking", "text", "tool_use"]
    answered = user(result(said[3]["id"]))

    def refused(*content: Any, answers: Any = answered, **more: Any) -> str:
        with pytest.raises(anthropic.BadRequestError) as caught:
            ask(client, [user(text()), assistant(*content), answers], **more)
        return error_of(caught.value)["message"]

    thought, sealed, words, call = said
    enabled = {"type": "enabled", "budget_tokens": 2000}
    ask(client, [user(text()), assistant(thought, sealed, words, call), answered], thinking=enabled)
    ask(client, [user(text()), assistant(words, call), answered])
    assert "cannot be modified" in refused({**thought, "thinking": "hm."}, sealed, words, call)
    assert "cannot be modified" in refused({**thought, "thinking": ""}, sealed, words, call)
    assert "cannot be modified" in refused(sealed, thought, words, call)
    assert "cannot be modified" in refused(thought, words, call)
    assert "cannot be modified" in refused(thought, {**sealed, "data": "x"}, words, call)
    assert "Invalid `data` in `redacted_thinking` block" in refused({**sealed, "data": "x"}, use("new"), answers=user(result("new")))
    assert "Expected `thinking` or `redacted_thinking`, but found `text`" in refused(words, call, thinking=enabled)
    stub.script = in_order()


def test_anthropic_binds_thinking_to_what_came_before() -> None:
    with (
        AnthropicStub(in_order([Think("first"), Say("one")], [Think("second"), Say("two")]), binds_thinking=True) as stub,
        anthropic_client(stub) as client,
    ):
        log: list[Any] = [user(text("a"))]
        for words in ("b", "c"):
            log += [assistant(*ask(client, log, system="Be brief.").to_dict()["content"]), user(text(words))]
        marked = [log[0], log[1], user(text("b", cache_control=SHORT)), *log[3:]]
        ask(client, log, system="Be brief.")
        ask(client, marked, system=[text("Be brief.", cache_control=SHORT)])

        def refused(messages: Any, system: str = "Be brief.", **more: Any) -> str:
            with pytest.raises(anthropic.BadRequestError) as caught:
                ask(client, messages, system=system, **more)
            return error_of(caught.value)["message"]

        bound = "Invalid `signature` in `thinking` block. The block is bound to a different conversation"
        assert refused(log, "Be verbose.").startswith(f"messages.1.content.0: {bound}")
        assert refused([*log[:2], user(text("edited")), *log[3:]]).startswith(f"messages.3.content.0: {bound}")
        gap = [log[0], assistant(text("one")), *log[2:]]
        assert refused(gap).startswith(f"messages.3.content.0: {bound}")
        without = [log[0], assistant(text("one")), log[2], assistant(text("two")), log[4]]
        ask(client, without, system="Be brief.")

        adaptive: Any = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
        assert "block_binding: Extra inputs are not permitted" in refused(gap, thinking=adaptive)
        answer = ask(client, gap, system="Be brief.", thinking=adaptive, extra_headers={"anthropic-beta": BINDING_BETA})
        dropped = {"type": "thinking_dropped", "path": "messages.3.content.0", "reason": "prefix_binding_mismatch"}
        assert answer.to_dict()["input_transformations"] == [dropped]


def test_anthropic_counts_and_caches_as_marked() -> None:
    with AnthropicStub(cache_minimum=100) as stub, anthropic_client(stub) as client:
        long, more = "word " * 400, "more " * 80

        def spent(*messages: Any) -> tuple[int, int | None, int | None]:
            usage = ask(client, list(messages)).usage
            return usage.input_tokens, usage.cache_read_input_tokens, usage.cache_creation_input_tokens

        counted = client.messages.count_tokens(model="claude-opus-5", messages=[{"role": "user", "content": long}])
        rest, read, written = spent(user(text(long, cache_control=SHORT)))
        assert 500 < counted.input_tokens == written
        assert (rest, read) == (0, 0)
        rest, read, added = spent(user(text(long)), assistant(text()), user(text(more, cache_control=SHORT)))
        assert (rest, read) == (0, written)
        assert added is not None
        assert 100 < added < 110
        rest, read, added = spent(user(text("other " + long)), assistant(text()), user(text(more, cache_control=SHORT)))
        assert (rest, read) == (0, 0)


def test_anthropic_refuses_more_than_32_megabytes(claude: tuple[AnthropicStub, anthropic.Anthropic]) -> None:
    with pytest.raises(anthropic.APIStatusError) as caught:
        ask(claude[1], [user(text("a" * (32 * 1024 * 1024)))])
    assert (caught.value.status_code, error_of(caught.value)["type"]) == (413, "request_too_large")


# OpenAI


def say(role: str, content: Any = "hi", **more: Any) -> Json:
    return {"role": role, "content": content, **more}


def calls(*ids: str, arguments: str = "{}") -> Json:
    made = [{"id": id, "type": "function", "function": {"name": "run", "arguments": arguments}} for id in ids]
    return say("assistant", None, tool_calls=made)


def tool(id: str, content: Any = "done") -> Json:
    return say("tool", content, tool_call_id=id)


def url(address: str) -> Json:
    return {"type": "image_url", "image_url": {"url": address}}


CHAT_VALID: dict[str, list[Json]] = {
    "a text": [say("user")],
    "instructions anywhere": [say("system"), say("user"), say("assistant"), say("developer"), say("user")],
    "parallel calls": [say("user"), calls("a", "b"), tool("b"), tool("a"), say("user")],
    "calls one after the other": [say("user"), calls("a"), tool("a"), calls("a"), tool("a", texts("done"))],
    "128 calls": [say("user"), calls(*[f"c{n}" for n in range(128)]), *[tool(f"c{n}") for n in range(128)]],
    "images": [say("user", [*texts("look"), url("https://example.org/a.png"), url("data:image/png;base64," + png())])],
    "assistant last": [say("user"), say("assistant", texts("a"))],
}

CHAT_REFUSED: dict[str, tuple[list[Json], str]] = {
    "nothing": ([], "empty array"),
    "a role unknown": ([say("model")], "Invalid value: 'model'. Supported values are"),
    "a field unknown": ([say("user", mood="good")], "Unknown parameter: 'messages[0].mood'."),
    "no content": ([say("user", None)], "expected a string, got null"),
    "O1 no call": ([say("user"), tool("a")], "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'"),
    "O1 text between": (
        [say("user"), calls("a"), say("user"), tool("a")],
        "must be followed by tool messages responding to each 'tool_call_id'",
    ),
    "O1 one of two answered": ([say("user"), calls("a", "b"), tool("a")], "did not have response messages: b"),
    "O1 no answer at the end": ([say("user"), calls("a")], "did not have response messages: a"),
    "O1 answered twice": ([say("user"), calls("a"), tool("a"), tool("a")], "Duplicate value for 'tool_call_id'"),
    "O2 129 calls": ([say("user"), calls(*[f"c{n}" for n in range(129)])], "array too long. Expected an array with maximum length 128"),
    "O2 a long string": ([say("user", "a" * 10_485_761)], "Expected a string with maximum length 10485760"),
    "O2 an image in a tool message": (
        [say("user"), calls("a"), tool("a", [url("https://e.org")])],
        "only allowed for messages with role 'user'",
    ),
    "O2 an image of the assistant's": ([say("assistant", [url("https://e.org")])], "only allowed for messages with role 'user'"),
    "an image that is none": ([say("user", [url("data:image/png;base64,aaaa")])], "unsupported image"),
    "half an image": ([say("user", [url("data:image/png;base64," + half(png(50, 50)))])], "unsupported image"),
    "half a document": (
        [say("user", [{"type": "file", "file": {"file_data": f"data:application/pdf;base64,{half(PDF)}", "filename": "a.pdf"}}])],
        "could not be read as a PDF",
    ),
    "an address that is none": ([say("user", [url("file:///etc/hosts")])], "Expected a valid URL"),
    "a long id": ([say("user"), calls("a" * 41), tool("a" * 41)], "maximum length 40"),
}


@pytest.mark.parametrize("name", CHAT_VALID)
def test_openai_chat_takes(chat: openai.OpenAI, name: str) -> None:
    answer = chat.chat.completions.create(model="gpt-4.1", messages=CHAT_VALID[name])  # type: ignore[arg-type]
    assert answer.choices[0].message.content == "Fine."


@pytest.mark.parametrize("name", CHAT_REFUSED)
def test_openai_chat_refuses(chat: openai.OpenAI, name: str) -> None:
    messages, said = CHAT_REFUSED[name]
    with pytest.raises(openai.BadRequestError) as caught:
        chat.chat.completions.create(model="gpt-4.1", messages=messages)  # type: ignore[arg-type]
    assert said in caught.value.message
    assert caught.value.type == "invalid_request_error"


def test_reasoning_models_of_openai_take_developer_where_others_take_system(chat: openai.OpenAI) -> None:
    """O3."""
    chat.chat.completions.create(model="o3", messages=[{"role": "developer", "content": "x"}])
    with pytest.raises(openai.BadRequestError, match="does not support 'system' with this model"):
        chat.chat.completions.create(model="o3", messages=[{"role": "system", "content": "x"}])


def called(call_id: str = "c", **more: Any) -> Json:
    return {"type": "function_call", "call_id": call_id, "name": "run", "arguments": "{}", **more}


def answered(call_id: str = "c", output: Any = "done") -> Json:
    return {"type": "function_call_output", "call_id": call_id, "output": output}


RESPONSES_VALID: dict[str, list[Json]] = {
    "a text": [say("user")],
    "a call": [say("user"), called(), answered()],
    "parallel calls": [say("user"), called("a"), called("b"), answered("b"), answered("a")],
    "an id again": [called(), answered(), called(), answered()],
    "an image in an output": [called(), answered(output=[{"type": "input_image", "image_url": "data:image/png;base64," + png()}])],
    "what the assistant said": [say("user"), say("assistant", [{"type": "output_text", "text": "a"}])],
    "a search": [say("user"), {"type": "web_search_call", "id": "ws_1", "status": "completed"}],
}

RESPONSES_REFUSED: dict[str, tuple[list[Json], str]] = {
    "nothing": ([], "empty array"),
    "R1 no output": ([called("c")], "No tool output found for function call c."),
    "R1 no call": ([answered("c")], "No tool call found for function call output with call_id c."),
    "R1 the output first": ([answered("c"), called("c")], "No tool call found for function call output with call_id c."),
    "R1 two outputs": ([called(), answered(), answered()], "No tool call found for function call output"),
    "R2 a thought of nobody's": ([{"type": "reasoning", "id": "rs_1", "summary": []}, say("assistant")], "Item with id 'rs_1' not found."),
    "R2 a seal of nobody's": (
        [{"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA_made_up"}, say("assistant")],
        "The encrypted content gAAA...e_up could not be verified.",
    ),
    "an id of another kind": ([called(id="call_1"), answered()], "Expected an ID that begins with 'fc'."),
    "an item twice": ([called("a", id="fc_1"), answered("a"), called("b", id="fc_1"), answered("b")], "Duplicate item found with id fc_1."),
    "a thought without its summary": ([{"type": "reasoning", "id": "rs_1"}], "Missing required parameter: 'input[0].summary'."),
    "output in what the user says": ([say("user", [{"type": "output_text", "text": "a"}])], "Invalid value: 'output_text'."),
    "input in what the assistant says": (
        [say("assistant", [{"type": "input_text", "text": "a"}])],
        "Supported values are: 'output_text', 'refusal'.",
    ),
    "a long string": ([say("user", "a" * 10_485_761)], "Expected a string with maximum length 10485760"),
    "a long id": ([called("a" * 65), answered("a" * 65)], "maximum length 64"),
    "half an image": (
        [called(), answered(output=[{"type": "input_image", "image_url": "data:image/png;base64," + half(png(50, 50))}])],
        "unsupported image",
    ),
}


@pytest.mark.parametrize("name", RESPONSES_VALID)
def test_openai_responses_takes(responses: tuple[OpenAIResponsesStub, openai.OpenAI], name: str) -> None:
    answer = responses[1].responses.create(model="gpt-5", input=RESPONSES_VALID[name])  # type: ignore[arg-type]
    assert answer.output_text == "Fine."


@pytest.mark.parametrize("name", RESPONSES_REFUSED)
def test_openai_responses_refuses(responses: tuple[OpenAIResponsesStub, openai.OpenAI], name: str) -> None:
    items, said = RESPONSES_REFUSED[name]
    with pytest.raises(openai.BadRequestError) as caught:
        responses[1].responses.create(model="gpt-5", input=items)  # type: ignore[arg-type]
    assert said in caught.value.message


def test_reasoning_of_openai_and_what_follows_it_are_one(responses: tuple[OpenAIResponsesStub, openai.OpenAI]) -> None:
    """R2."""
    stub, client = responses
    stub.script = in_order([Think("hm"), Call("run"), Call("run")])
    thought, one, two = (item.to_dict() for item in client.responses.create(model="gpt-5", input="hi").output)
    outputs = [answered(one["call_id"]), answered(two["call_id"])]  # type: ignore[arg-type]

    def create(*items: Any, **more: Any) -> None:
        client.responses.create(model="gpt-5", input=[say("user"), *items], **more)  # type: ignore[list-item]

    def refused(*items: Any, **more: Any) -> str:
        with pytest.raises(openai.BadRequestError) as caught:
            create(*items, **more)
        return caught.value.message

    def bare(item: Any, *names: str) -> Any:
        return {name: value for name, value in item.items() if name not in names}

    good = (
        [thought, one, two, *outputs],
        [thought, bare(one, "id"), bare(two, "id"), *outputs],
        [bare(one, "id"), bare(two, "id"), *outputs],
        [bare(thought, "encrypted_content"), one, two, *outputs],
        [bare(thought, "id"), bare(one, "id"), bare(two, "id"), *outputs],
    )
    for items in good:
        create(*items)
    create(thought, one, two, *outputs, store=False)
    needs = f"Item '{one['id']}' of type 'function_call' was provided without its required 'reasoning' item: '{thought['id']}'."
    assert needs in refused(one, two, *outputs)
    assert f"Item '{two['id']}' of type 'function_call' was provided without" in refused(bare(one, "id"), two, *outputs)
    alone = f"Item '{thought['id']}' of type 'reasoning' was provided without its required following item."
    assert alone in refused(thought)
    assert alone in refused(thought, say("user"), bare(one, "id"), bare(two, "id"), *outputs)
    assert alone in refused(thought, two, one, *outputs)
    assert "not persisted when `store` is set to false" in refused(bare(thought, "encrypted_content"), one, two, *outputs, store=False)
    assert "could not be verified" in refused({**thought, "summary": []}, one, two, *outputs)
    stub.script = in_order()


# Gemini


def content(role: str, *parts: Json) -> Json:
    return {"role": role, "parts": list(parts)}


def words(text: str = "hi") -> Json:
    return {"text": text}


def wants(name: str = "run", **more: Any) -> Json:
    return {"function_call": {"name": name, "args": {}}, **more}


def gets(name: str = "run") -> Json:
    return {"function_response": {"name": name, "response": {"output": "done"}}}


DUMMY = b"skip_thought_signature_validator"

GEMINI_VALID: dict[str, list[Json]] = {
    "a text": [content("user", words())],
    "two texts": [content("user", words()), content("user", words())],
    "a call": [content("user", words()), content("model", words(), wants()), content("user", gets())],
    "parallel calls": [content("user", words()), content("model", wants("a"), wants("b")), content("user", gets("a"), gets("b"))],
    "calls one after the other": [
        content("user", words()),
        content("model", wants("a")),
        content("user", gets("a")),
        content("model", wants("b")),
        content("user", gets("b")),
    ],
    "an image": [content("user", {"inline_data": {"mime_type": "image/png", "data": base64.b64decode(png())}})],
}

GEMINI_REFUSED: dict[str, tuple[list[Json], str]] = {
    "no parts": ([content("user")], "must not be empty"),
    "no words": ([content("user", words(""))], "empty text parameter"),
    "a role unknown": ([content("function", gets())], "Please use a valid role: user, model."),
    "G1 a call first": (
        [content("model", wants()), content("user", gets())],
        "function call turn comes immediately after a user turn or after a function response turn",
    ),
    "G1 a call after words of the model": (
        [content("user", words()), content("model", words()), content("model", wants()), content("user", gets())],
        "function call turn comes immediately after a user turn or after a function response turn",
    ),
    "G1 a response to nothing": ([content("user", gets())], "function response turn comes immediately after a function call turn"),
    "G2 one of two answered": (
        [content("user", words()), content("model", wants("a"), wants("b")), content("user", gets("a"))],
        "number of function response parts is equal to the number of function call parts",
    ),
    "G2 not answered": (
        [content("user", words()), content("model", wants()), content("user", words())],
        "number of function response parts is equal to the number of function call parts",
    ),
    "G2 in another order": (
        [content("user", words()), content("model", wants("a"), wants("b")), content("user", gets("b"), gets("a"))],
        "They come in the same order",
    ),
    "G2 a call last": ([content("user", words()), content("model", wants())], "number of function response parts"),
    "G3 the model last": ([content("user", words()), content("model", words())], "ends with a user role or a function response"),
    "a signature of nobody's": (
        [content("user", words()), content("model", wants(thought_signature=b"x")), content("user", gets())],
        "Thought signature is not valid.",
    ),
    "half an image": (
        [content("user", {"inline_data": {"mime_type": "image/png", "data": base64.b64decode(half(png(50, 50)))}})],
        "Unable to process input image",
    ),
    "half a document": (
        [content("user", {"inline_data": {"mime_type": "application/pdf", "data": base64.b64decode(half(PDF))}})],
        "The document has no pages",
    ),
    "a strange name": ([content("user", words()), content("model", wants("1 a")), content("user", gets("1 a"))], "Invalid function name"),
}


@pytest.mark.parametrize("name", GEMINI_VALID)
def test_gemini_takes(gemini: tuple[GeminiStub, genai.Client], name: str) -> None:
    contents: Any = GEMINI_VALID[name]
    answer = gemini[1].models.generate_content(model="gemini-2.5-pro", contents=contents, config={"system_instruction": "Be brief."})
    assert answer.text == "Fine."


@pytest.mark.parametrize("name", GEMINI_REFUSED)
def test_gemini_refuses(gemini: tuple[GeminiStub, genai.Client], name: str) -> None:
    contents, said = GEMINI_REFUSED[name]
    with pytest.raises(google_errors.ClientError) as caught:
        gemini[1].models.generate_content(model="gemini-2.5-pro", contents=contents)  # type: ignore[arg-type]
    assert said in str(caught.value.message)
    assert (caught.value.code, caught.value.status) == (400, "INVALID_ARGUMENT")


def test_gemini_3_demands_its_signatures_in_the_current_turn(gemini: tuple[GeminiStub, genai.Client]) -> None:
    """G4."""
    stub, client = gemini

    def send(*contents: Any, model: str = "gemini-3-pro-preview") -> Any:
        return client.models.generate_content(model=model, contents=[content("user", words()), *contents]).candidates

    def refused(*contents: Any) -> str:
        with pytest.raises(google_errors.ClientError) as caught:
            send(*contents)
        return str(caught.value.message)

    stub.script = in_order([Think("hm"), Call("a"), Call("b")])
    said = send()[0].content.model_dump(exclude_none=True)
    stub.script = in_order()
    thought, first, second = said["parts"]
    assert ("thought_signature" in first, "thought_signature" in second) == (True, False)
    bare = {name: value for name, value in first.items() if name != "thought_signature"}
    both = content("user", gets("a"), gets("b"))
    send(content("model", thought, first, second), both)
    send(content("model", first, second), both)
    send(content("model", {**bare, "thought_signature": DUMMY}, second), both)
    send(content("model", bare, second), both, content("model", words()), content("user", words()))
    send(content("model", bare, second), both, model="gemini-2.5-pro")
    assert "Function call is missing a thought_signature in functionCall parts" in refused(content("model", bare, second), both)
    assert "Thought signature is not valid." in refused(
        content("model", bare, {**second, "thought_signature": first["thought_signature"]}), both
    )


# What all have in common


STUBS: dict[str, tuple[Callable[[], Stub], str, Json]] = {
    "anthropic": (AnthropicStub, "/v1/messages", {"x-api-key": "k", "anthropic-version": "2023-06-01"}),
    "openai_chat": (OpenAIChatStub, "/v1/chat/completions", {"authorization": "Bearer k"}),
    "openai_responses": (OpenAIResponsesStub, "/v1/responses", {"authorization": "Bearer k"}),
    "gemini": (GeminiStub, "/v1beta/models/gemini-3-pro:generateContent", {"x-goog-api-key": "k"}),
}


@pytest.mark.parametrize("name", STUBS)
@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b'{"a": NaN}', b'{"a": "\\ud800"}', b"\xff", b"[" * 100_000, b"{}", b'{"model": 1}'])
def test_what_is_no_request_is_a_bad_request(name: str, raw: bytes) -> None:
    kind, path, headers = STUBS[name]
    with kind() as stub:  # leaving raises what the stub itself got wrong
        assert stub.respond(path, headers, raw)[0] == 400


@pytest.mark.parametrize("name", STUBS)
def test_a_request_without_a_key_or_to_nowhere_is_refused(name: str) -> None:
    kind, path, headers = STUBS[name]
    with kind() as stub:
        assert stub.respond(path, {}, b"{}")[0] in (401, 403)
        assert stub.respond("/nowhere", headers, b"{}")[0] == 404


def test_what_was_sent_before_is_read_from_the_cache(
    responses: tuple[OpenAIResponsesStub, openai.OpenAI], gemini: tuple[GeminiStub, genai.Client], chat: openai.OpenAI
) -> None:
    long = "word " * 1000
    for _ in range(2):
        completion = chat.chat.completions.create(model="gpt-4.1", messages=[{"role": "user", "content": long}])
        response = responses[1].responses.create(model="gpt-5", input=long)
        candidate = gemini[1].models.generate_content(model="gemini-3-pro", contents=long)
    assert completion.usage is not None
    assert completion.usage.prompt_tokens_details is not None
    assert response.usage is not None
    assert candidate.usage_metadata is not None
    assert completion.usage.prompt_tokens_details.cached_tokens == completion.usage.prompt_tokens > 1250
    assert response.usage.input_tokens_details.cached_tokens > 1250
    assert (candidate.usage_metadata.cached_content_token_count or 0) > 1250


def test_the_same_conversation_gets_the_same_answers() -> None:
    def played() -> str:
        with AnthropicStub(in_order([Think("hm"), Call("run")])) as stub, anthropic_client(stub) as client:
            return json.dumps(ask(client, [user(text())]).to_dict())

    assert played() == played()


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (base64.b64decode(png(3, 5)), ("image/png", 3, 5)),
        (b"GIF89a\x03\0\x05\0", ("image/gif", 3, 5)),
        (b"\xff\xd8\xff\xe0\0\x04ab\xff\xc0\0\x11\x08\0\x05\0\x03", ("image/jpeg", 3, 5)),
        (b"RIFF\0\0\0\0WEBPVP8X" + bytes(8) + b"\x02\0\0\x04\0\0", ("image/webp", 3, 5)),
        (b"RIFF\0\0\0\0WEBPVP8L" + bytes(4) + b"\x2f\x02\0\x01\0", ("image/webp", 3, 5)),
        (b"RIFF\0\0\0\0WEBPVP8 " + bytes(10) + b"\x03\0\x05\0", ("image/webp", 3, 5)),
        (b"\x89PNG\r\n\x1a\n", None),
        (b"\xff\xd8\xff", None),
        (b"BM", None),
        (b"", None),
    ],
)
def test_pictures_are_told_by_their_headers(data: bytes, expected: tuple[str, int, int] | None) -> None:
    assert look(data) == expected
