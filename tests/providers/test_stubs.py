"""The stand-ins for the providers, asked by the vendors' own clients: valid requests pass, and each documented error is raised."""

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
from tests.support.stubs import AnthropicStub, Call, GeminiStub, OpenAIChatStub, OpenAIResponsesStub, Say, Stub, Think, in_order
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


def ask(client: anthropic.Anthropic, messages: Any, **more: Any) -> Any:
    return client.messages.create(model="claude-opus-5", max_tokens=4096, messages=messages, **more)


def error_of(refusal: anthropic.APIStatusError) -> dict[str, str]:
    """Return type and message of a refusal. Old versions of the SDK have no attributes for them."""
    body: Any = refusal.body
    error: dict[str, str] = body["error"]
    return error


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


def test_reasoning_models_of_openai_take_developer_where_others_take_system(chat: openai.OpenAI) -> None:
    """O3."""
    chat.chat.completions.create(model="o3", messages=[{"role": "developer", "content": "x"}])
    with pytest.raises(openai.BadRequestError, match="does not support 'system' with this model"):
        chat.chat.completions.create(model="o3", messages=[{"role": "system", "content": "x"}])


def called(call_id: str = "c", **more: Any) -> Json:
    return {"type": "function_call", "call_id": call_id, "name": "run", "arguments": "{}", **more}


def answered(call_id: str = "c", output: Any = "done") -> Json:
    return {"type": "function_call_output", "call_id": call_id, "output": output}


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


def gets(name: str = "run") -> Json:
    return {"function_response": {"name": name, "response": {"output": "done"}}}


DUMMY = b"skip_thought_signature_validator"


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
