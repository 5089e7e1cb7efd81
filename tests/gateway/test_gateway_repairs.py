"""What a provider refuses for a reason that names its cause is mended and sent once more; the client sees no refusal, then and later."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from context_window.cli import run
from context_window.gateway.anthropic_messages import AnthropicWire
from context_window.gateway.fitted_body import ManagedRequest
from context_window.gateway.glance import answered, is_broken
from context_window.gateway.ledger import GatewayLedger
from context_window.gateway.repairs import Repairs
from context_window.gateway.wire_format import RequestConversation
from context_window.model_errors import ModelError
from context_window.recall import Provider
from context_window.repair import (
    FIELDS,
    Cause,
    cause_of,
    media_at,
    mended_structure,
    provider_of,
    repaired,
    violations_of,
    without_media,
    without_thinking,
)
from context_window.repair_log import repaired_log
from context_window.requests.client_errors import answered_error
from session import Session
from session.providers import validate_anthropic
from session.providers.google import to_google
from tests.support.gateways import gateway
from tests.support.pictures import png
from tests.support.strategies import sessions
from tests.support.stubs.answers import Say
from tests.support.stubs.anthropic import AnthropicStub
from tests.support.stubs.openai_chat import OpenAIChatStub
from tests.support.stubs.openai_responses import OpenAIResponsesStub
from tests.support.stubs.server import Refusal

Json = dict[str, Any]
MODEL = "claude-sonnet-5-5"
TOOLS = [{"name": "f", "input_schema": {"type": "object"}}]
PICTURE = base64.b64encode(png(3, 3)).decode()


def user(*blocks: Json) -> Json:
    return {"role": "user", "content": list(blocks)}


def model(*blocks: Json) -> Json:
    return {"role": "assistant", "content": list(blocks)}


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def call(id: str) -> Json:
    return {"type": "tool_use", "id": id, "name": "f", "input": {}}


def result(id: str) -> Json:
    return {"type": "tool_result", "tool_use_id": id, "content": "done"}


IMAGE: Json = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}}
UNSEEN = "a signature of another thought", "an image that cannot be read"
"""What no glance at a request shows."""
BROKEN: Mapping[str, Sequence[Json]] = {
    "a call without result": [user(text("Hi.")), model(call("a")), user(text("Go on."))],
    "a result without call": [user(text("Hi.")), model(text("Yes?")), user(result("a"))],
    "a blank text": [user(text("Hi.")), model(text(" ")), user(text("Go on."))],
    "an empty message": [user(text("Hi.")), model(), user(text("Go on."))],
    "a doubled id": [user(text("Hi.")), model(call("a")), user(result("a")), model(call("a")), user(result("a"))],
    "a first message of the model's": [model(text("Hello.")), user(text("Hi."))],
    "a signature of another thought": [
        user(text("Hi.")),
        model({"type": "thinking", "thinking": "Hm.", "signature": "bWFkZSB1cA=="}, call("a")),
        user(result("a")),
    ],
    "an image that cannot be read": [user(text("Look."), IMAGE), model(call("a")), user(result("a"))],
}


def client_at(url: str) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=url, api_key="made up", max_retries=0)


def is_answered(client: anthropic.Anthropic, request: Json) -> bool:
    """True if the request is answered, False if it is refused."""
    try:
        return bool(client.messages.create(**request).content)
    except anthropic.BadRequestError:
        return False


@pytest.mark.parametrize("kind", BROKEN)
def test_the_client_never_sees_the_refusal(kind: str) -> None:
    """Sent directly it is refused; through the gateway it is answered, and the next request of the conversation is mended at once."""
    messages, is_unseen = BROKEN[kind], kind in UNSEEN
    ledger = GatewayLedger()
    with AnthropicStub(lambda _: [Say("Fine.")]) as stub, gateway(stub.url, 100_000, ledger=ledger) as address, ExitStack() as on_exit:
        stub.unusable = {png(3, 3): "Could not process image"}
        direct, through = (on_exit.enter_context(client_at(url)) for url in (stub.url, f"{address}/anthropic"))
        request: Json = {"model": MODEL, "max_tokens": 10, "messages": deepcopy(list(messages)), "tools": TOOLS}
        assert not is_answered(direct, request)
        assert is_answered(through, request)
        refused = len(stub.requests) - len(stub.answers)
        assert refused == 1 + is_unseen  # the rest is mended before it is sent
        request["messages"] += [model(text("Fine.")), user(text("And now?"))]
        assert is_answered(through, request)
        assert len(stub.requests) - len(stub.answers) == refused
        earlier, later = (sent["messages"] for sent in stub.requests[-2:])
        assert json.dumps(later)[: len(json.dumps(earlier)) - 60] == json.dumps(earlier)[:-60]  # the cache knows the beginning
    assert ("1 refused request mended and sent again" in ledger.line()) == is_unseen


def pictures(number: int) -> list[Json]:
    """Return a conversation with this many pictures, all different, of some 40 KB each."""
    files = [base64.b64encode(png(3, 3 + at, padding=30_000)).decode() for at in range(number)]
    blocks = [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": file}} for file in files]
    return [message for block in blocks for message in (user(text("Look."), block), model(text("Nice.")))][:-1]


class FewPictures(AnthropicStub):
    """Takes four pictures at most."""

    def serve(self, path: str, headers: Mapping[str, str], body: Json) -> Json:
        if (count := json.dumps(body).count("base64")) > 4:
            raise Refusal(f"too many images and documents: {count} + 0 > 4")
        return super().serve(path, headers, body)


@pytest.mark.parametrize("is_large", [True, False], ids=["too large", "too many"])
def test_of_too_many_images_the_older_ones_are_left_out(is_large: bool) -> None:
    """The request goes out once more with the newest ones, and so does the next one at once; its beginning is the same."""
    ledger = GatewayLedger()
    kind = AnthropicStub if is_large else FewPictures
    with kind(lambda _: [Say("Fine.")]) as stub, gateway(stub.url, 100_000, ledger=ledger) as address, ExitStack() as on_exit:
        if is_large:
            stub.largest = 200_000
        client = on_exit.enter_context(client_at(f"{address}/anthropic"))
        request: Json = {"model": MODEL, "max_tokens": 10, "messages": pictures(5)}
        assert is_answered(client, request)
        request["messages"] += [model(text("Fine.")), user(text("And now?"))]
        assert is_answered(client, request)
    first, second = (sent["messages"] for sent in stub.requests if json.dumps(sent).count("did not accept"))
    assert json.dumps(first[-1]).count("base64") == 1
    assert json.dumps(first).count("base64") == 2
    assert second[: len(first)] == first
    assert "1 refused request mended and sent again (more images" in ledger.line()


def test_what_cannot_be_mended_reaches_the_client_as_it_is() -> None:
    """An unknown reason, and one after which the mended request is refused as well: the provider's own words, once."""
    with AnthropicStub(lambda _: [Say("Fine.")]) as stub, gateway(stub.url, 100_000) as address, ExitStack() as on_exit:
        client = on_exit.enter_context(client_at(f"{address}/anthropic"))
        with pytest.raises(anthropic.BadRequestError, match="max_tokens"):
            client.messages.create(model=MODEL, max_tokens=-1, messages=[{"role": "user", "content": "Hi."}])
        assert len(stub.requests) == 1
        request: Json = {"model": MODEL, "max_tokens": 10, "messages": BROKEN["a doubled id"], "tools": TOOLS}
        with pytest.raises(anthropic.BadRequestError, match="system"):
            client.messages.create(**request, system=[{"type": "text", "text": " "}])


def test_openais_apis_are_mended_too() -> None:
    """A call without output, in both of them."""
    call = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages: list[Any] = [{"role": "user", "content": "Hi."}, {"role": "assistant", "content": None, "tool_calls": [call]}]
    items: list[Any] = [{"role": "user", "content": "Hi."}, {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}]
    question = {"role": "user", "content": "Go on."}
    with OpenAIChatStub(lambda _: [Say("Fine.")]) as stub, gateway(stub.url, 100_000) as address:
        for url, is_refused in ((f"{stub.url}/v1", True), (f"{address}/openai/v1", False)):
            with openai.OpenAI(base_url=url, api_key="made up", max_retries=0) as client:
                chat = partial(client.chat.completions.create, model="gpt-5", messages=[*messages, question])
                check(chat, is_refused=is_refused)
    with OpenAIResponsesStub(lambda _: [Say("Fine.")]) as other, gateway(other.url, 100_000) as address:
        for url, is_refused in ((f"{other.url}/v1", True), (f"{address}/openai/v1", False)):
            with openai.OpenAI(base_url=url, api_key="made up", max_retries=0) as client:
                check(partial(client.responses.create, model="gpt-5", input=[*items, question]), is_refused=is_refused)


def check(ask: Callable[[], object], *, is_refused: bool) -> None:
    if is_refused:
        with pytest.raises(openai.BadRequestError):
            ask()
    else:
        assert ask()


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        ("messages.1.content.0: Invalid `signature` in `thinking` block", Cause.THINKING),
        ("The encrypted content gAAA could not be verified", Cause.THINKING),
        ("messages.3.content.0: `thinking` or `redacted_thinking` blocks in the latest message cannot be modified.", Cause.THINKING),
        ("a final `assistant` message must start with a thinking block", Cause.THINKING),
        ("Item 'rs_1' of type 'reasoning' was provided without its required following item.", Cause.THINKING),
        ("`max_tokens` must be greater than `thinking.budget_tokens`.", None),
        ("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024", None),
        ("messages.0.content.1.image.source.base64.data: Could not process image", Cause.MEDIA),
        ("messages.2: `tool_use` ids were found without `tool_result` blocks immediately after: a", Cause.STRUCTURE),
        ("messages: text content blocks must be non-empty", Cause.STRUCTURE),
        ("No tool output found for function call call_1.", Cause.STRUCTURE),
        ("messages: roles must alternate between user and assistant", Cause.STRUCTURE),
        ("max_tokens: Field required", None),
        ("model: claude-0 does not exist", None),
    ],
)
def test_causes_are_known_by_the_providers_words(message: str, cause: Cause | None) -> None:
    assert cause_of(answered_error(400, {"error": {"type": "invalid_request_error", "message": message}})) == cause


def body_of(provider: Provider, session: Session) -> Json:
    """Return a valid request of a session."""
    match provider:
        case "anthropic":
            return {"model": MODEL, "max_tokens": 10, "messages": list(session.to_anthropic_messages()[0])}
        case "openai":
            return {"messages": session.to_openai_messages()}
        case "openai-responses":
            return {"input": session.to_openai_responses()}
        case "google":
            return {"contents": list(to_google(session)[0])}


@pytest.mark.parametrize("provider", FIELDS)
@given(data=st.data())
def test_a_mended_request_is_valid(provider: Provider, data: st.DataObject) -> None:
    """Whatever of a valid request was dropped, doubled or blanked: the mended one breaks no rule that concerns its structure."""
    session = data.draw(sessions(max_steps=10))
    body = body_of(provider, session)
    messages = deepcopy(body[FIELDS[provider]])
    assert not is_broken(provider, messages)  # of what is valid, nothing is changed before it is sent
    for _ in range(data.draw(st.integers(1, 4))):
        if not messages:
            break
        at = data.draw(st.integers(0, len(messages) - 1))
        blocks = messages[at].get("content", messages[at].get("parts"))
        match data.draw(st.sampled_from(("drop", "double", "drop a block", "blank"))):
            case "drop":
                del messages[at]
            case "double":
                messages.insert(at, deepcopy(messages[at]))
            case "drop a block" if isinstance(blocks, list) and blocks:
                del blocks[data.draw(st.integers(0, len(blocks) - 1))]
            case "blank" if isinstance(blocks, list):
                blocks.insert(0, {"text": ""} if provider == "google" else {"type": "text", "text": ""})
    broken = {**body, FIELDS[provider]: messages}
    event(f"broken: {bool(violations_of(provider, broken))}")
    mended = mended_structure(provider, broken)
    if mended[FIELDS[provider]]:
        assert violations_of(provider, mended) == []


@pytest.mark.parametrize("provider", FIELDS)
@given(losses=st.lists(st.sampled_from(["nothing", "result", "result and answer"]), min_size=1, max_size=5))
def test_calls_that_never_got_a_result_get_one(provider: Provider, losses: list[str]) -> None:
    """Whatever an abort has lost: no rule is broken, and no message of the client's is missing or in another place."""
    session = Session()
    for number, _ in enumerate(losses):
        session.add_message("user", f"Question {number}?")
        session.add_function_call("f", {}, f"c{number}")
        session.add_function_output("f", f"result {number}", f"c{number}")
        session.add_message("assistant", f"answer {number}")
    session.add_message("user", "And now?")
    body = body_of(provider, session)
    whole = body[FIELDS[provider]]
    lost = [f"{word} {number}" for number, loss in enumerate(losses) for word in ("result", "answer") if word in loss]
    left = [message for message in whole if not any(words in json.dumps(message) for words in lost)]
    mended = answered(provider, left)
    assert answered(provider, whole) == whole
    assert violations_of(provider, {**body, FIELDS[provider]: mended}) == []
    said = re.compile(r"(?:Question|result|answer) \d")
    assert said.findall(json.dumps(mended)) == said.findall(json.dumps(left))
    assert json.dumps(mended).count("interrupted") == sum(loss != "nothing" for loss in losses)


def test_thoughts_are_left_out_up_to_a_place() -> None:
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "s"}
    messages = [user(text("Hi.")), model(thought, call("a")), user(result("a")), model(thought, text("Yes."))]
    body = {"messages": messages, "thinking": {"type": "enabled"}, "context_management": {}}
    mended = without_thinking("anthropic", body, 3)
    assert mended == {"messages": [messages[0], model(call("a")), *messages[2:]]}
    asked = {**body, "messages": [*messages, user(text("And?"))]}
    assert without_thinking("anthropic", asked, 3)["thinking"] == {"type": "enabled"}  # a new turn begins with a thought of its own


def test_one_image_is_replaced_where_its_place_is_known() -> None:
    other = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "b3RoZXI="}}
    body = {"messages": [user(text("Look."), IMAGE, other)]}
    hashes = media_at(body, "anthropic", (0, 1))
    assert without_media("anthropic", body, hashes)["messages"][0]["content"][2] == other
    assert len(media_at(body, "anthropic", None)) == len(media_at(body, "anthropic", (7, 1))) == 2


def test_the_command_mends_a_file_and_names_what_it_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The file itself stays as it is; of a valid request nothing changes; what is no request is refused in a line."""
    source, out = tmp_path / "request.json", tmp_path / "mended.json"
    unreadable = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "no"}}
    messages = [*BROKEN["a call without result"], model(text(" ")), user(text("Hm."), unreadable)]
    content = json.dumps({"model": MODEL, "max_tokens": 10, "messages": messages})
    source.write_text(content, encoding="utf-8")
    assert run(["repair", str(source), "-o", str(out)]) == 0
    said = capsys.readouterr().out
    assert [rule in said for rule in ("A2 messages[1]", "A6 messages[3]", "A8 messages[4]")] == [True] * 3
    mended = json.loads(out.read_text(encoding="utf-8"))
    assert validate_anthropic(mended) == []
    assert source.read_text(encoding="utf-8") == content
    assert run(["repair", str(out), "-o", "-"]) == 0
    again = capsys.readouterr()
    assert json.loads(again.out) == mended
    assert "nothing to mend" in again.err
    source.write_text("[1, 2]", encoding="utf-8")
    for path, problem in ((str(source), "is no request"), (str(tmp_path), "is no file"), (str(tmp_path / "none"), "is no file")):
        assert run(["repair", path, "-o", str(tmp_path / "other.json")]) == 2
        assert problem in capsys.readouterr().err
    assert not (tmp_path / "other.json").exists()


LINES = st.lists(
    st.sampled_from(
        [
            {"type": "user", "message": {"role": "user", "content": "Hi."}},
            {"type": "assistant", "message": {"role": "assistant", "content": [text("Yes?"), call("a")]}},
            {"type": "user", "message": user(text("Look."), IMAGE)},
            {"type": "summary", "text": ["", {"type": "text"}]},
            {"type": "user", "toolUseResult": {"file": {"type": "image", "base64": "no"}}, "message": user(result("a"))},
        ]
    ),
    max_size=8,
)
FAULTY = [
    {
        "type": "user",
        "message": user(text("Look."), {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "no"}}),
    },
    {
        "type": "user",
        "message": user({"type": "tool_result", "tool_use_id": "a", "content": [{**IMAGE, "source": {**IMAGE["source"], "data": "no"}}]}),
    },
    {"type": "assistant", "message": model(text(" "), call("a"))},
]


@given(sound=LINES, faulty=st.lists(st.sampled_from(FAULTY), max_size=4), spaces=st.booleans(), data=st.data())
def test_of_a_log_only_what_is_refused_changes(sound: list[Json], faulty: list[Json], spaces: bool, data: st.DataObject) -> None:
    """Every other line stays, byte for byte; a mended log has nothing to mend."""
    lines = data.draw(st.permutations([*((line, True) for line in sound), *((line, False) for line in faulty)]))
    content = [json.dumps(line, separators=(", ", ": ") if spaces else (",", ":")).encode() + b"\n" for line, _ in lines]
    mended = list(repaired_log(content))
    assert [line.content == before for line, before in zip(mended, content, strict=True)] == [is_sound for _, is_sound in lines]
    assert [not line.faults for line in mended] == [is_sound for _, is_sound in lines]
    again = list(repaired_log(line.content for line in mended))
    assert [line.content for line in again] == [line.content for line in mended]
    for line in mended:
        message = json.loads(line.content).get("message")
        assert message is None or not {violation.rule for violation in validate_anthropic({"messages": [message]})} & {"A8"}


def test_the_command_mends_a_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source, out = tmp_path / "log.jsonl", tmp_path / "mended.jsonl"
    source.write_text("".join(json.dumps(line) + "\n" for line in (*FAULTY, *BROKEN["a call without result"])), encoding="utf-8")
    assert run(["repair", str(source), "-o", str(out)]) == 0
    said = capsys.readouterr().out
    assert [f"mended: line {number}:" in said for number in (1, 2, 3, 4)] == [True, True, True, False]
    assert out.read_text(encoding="utf-8").splitlines()[3:] == source.read_text(encoding="utf-8").splitlines()[3:]
    assert run(["repair", str(out), "-o", "-"]) == 0
    again = capsys.readouterr()
    assert (again.out, "nothing to mend" in again.err) == (out.read_text(encoding="utf-8"), True)
    source.write_text('{"a": 1}\nno JSON\n', encoding="utf-8")
    assert run(["repair", str(source), "-o", str(tmp_path / "other")]) == 2
    assert "no log of JSON lines" in capsys.readouterr().err


def test_a_file_with_too_many_images_keeps_the_newest() -> None:
    messages = [user(*[{**IMAGE, "source": {**IMAGE["source"], "data": base64.b64encode(png(3, 3 + at)).decode()}} for at in range(104)])]
    mended = repaired("anthropic", {"model": MODEL, "max_tokens": 10, "messages": messages})
    assert mended.broken == []
    assert [block["type"] for block in mended.body["messages"][0]["content"]].count("image") in range(50, 54)
    assert mended.body["messages"][0]["content"][-1] == messages[0]["content"][-1]


@pytest.mark.parametrize("provider", FIELDS)
@given(data=st.data())
def test_providers_are_told_apart(provider: Provider, data: st.DataObject) -> None:
    body = body_of(provider, data.draw(sessions(max_steps=6)))
    assert provider_of(body) == provider or not body[FIELDS[provider]]


ODD = st.sampled_from([None, 7, "x", [], ["text"], {}, {"type": "text"}, "thinking", "image"])
ODD_BLOCKS = st.lists(ODD | st.fixed_dictionaries({"type": ODD, "text": ODD}), max_size=3)
ODD_MESSAGES = st.lists(ODD | st.fixed_dictionaries({"role": ODD | st.just("user"), "content": ODD | ODD_BLOCKS}), max_size=4)


@given(messages=ODD_MESSAGES, field=st.sampled_from(sorted(set(FIELDS.values()))))
def test_the_command_repairs_or_refuses_any_json(messages: list[Any], field: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Types and roles that are no texts crashed it."""
    folder = tmp_path_factory.mktemp("odd")
    for name, content in (("request", json.dumps({field: messages})), ("log", "\n".join(map(json.dumps, [*messages, {"a": messages}])))):
        (folder / name).write_text(content, encoding="utf-8")
        assert run(["repair", str(folder / name), "-o", str(folder / f"{name} mended"), "--force"]) in (0, 2)


def test_a_request_too_deep_to_be_written_passes_as_it_came() -> None:
    """Mending never costs a request: one that can be read, but not written again, is sent as it came."""
    deep: Any = {}
    for _ in range(10_000):
        deep = {"a": deep}
    messages = [user(text("Hi.")), model({**call("a"), "input": deep}), user(text("Go on."))]
    fields: Json = {"model": MODEL, "messages": messages}
    conversation = RequestConversation(MODEL, "", messages, [], {}, None)
    managed = ManagedRequest(AnthropicWire(), conversation, fields, b"as it came")
    repairs = Repairs()
    assert repairs.applied(managed) is managed
    assert (
        repairs.mended(managed, b"", ModelError("messages.1: `tool_use` ids were found without `tool_result` blocks", status=400)) is None
    )
