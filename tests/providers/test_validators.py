"""What the four validators have in common. Their payloads, valid and invalid, are in `test_providers_*_rules.py`."""

from __future__ import annotations

import copy
import inspect
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest

from session import FormatError, Session
from session.providers import encoded_media, validate_anthropic, validate_google, validate_openai_chat, validate_openai_responses
from tests.contracts.wires import HEADERS
from tests.providers import test_providers_anthropic_rules as anthropic
from tests.providers import test_providers_google_rules as google
from tests.providers import test_providers_openai_chat_rules as chat
from tests.providers import test_providers_openai_responses_rules as responses
from tests.support.stubs import AnthropicStub, GeminiStub, OpenAIChatStub, OpenAIResponsesStub, Stub


def _fields(payload: Any, messages: str, system: str) -> dict[str, Any]:
    """Return the fields of a request with a conversation and its system prompt, or a request as it is."""
    if isinstance(payload, dict):
        return {name: value for name, value in payload.items() if name not in ("model", "config") or system == "system"}
    return {messages: payload[0], **({} if payload[1] is None else {system: payload[1]})}


@dataclass(frozen=True, eq=False)
class Format:
    """A validator with its payloads.

    Attributes:
        letter: The first letter of its rules.
        package: Its package in `session.providers`.
        payloads: The module of its tests, with `VALID` and `INVALID`.
        validate: The validator.
        read: Reads the messages of a payload as a session.
        wrap: Makes a payload in which a value is nested.
        remedy: What its error says for a value that is no payload.
        no_payloads: Such values.
        stub: Makes a strict stand-in for the provider.
        path: Where requests go.
        request: Makes a request of a payload.
        taken_by_stub: The rules and names of invalid payloads that the stub takes.
        phrases: What the provider says of such payloads.
    """

    letter: str
    package: str
    payloads: ModuleType
    validate: Callable[[Any], list[Any]]
    read: Callable[..., Session]
    wrap: Callable[[Any], Any]
    remedy: str
    no_payloads: tuple[object, ...]
    stub: Callable[[], Stub]
    path: str
    request: Callable[[Any], Any]
    taken_by_stub: set[str]
    phrases: tuple[str, ...]

    def module(self, name: str) -> ModuleType:
        return import_module(f"session.providers.{self.package}.{name}")


FORMATS = (
    Format(
        "A",
        "anthropic",
        anthropic,
        validate_anthropic,
        Session.from_anthropic,
        lambda value: ([anthropic.user(anthropic.text()), anthropic.assistant(anthropic.use(input=value)), anthropic.user()], None),
        "pass (messages, system)",
        (None, [], "Hi", {"model": "m"}, ([], None, None), 7),
        AnthropicStub,
        "/v1/messages",
        lambda payload: {"model": "claude-opus-5", "max_tokens": 4096, **_fields(payload, "messages", "system")},
        {"A3 an empty error", "A6 a blank system"},
        (
            "at least one message is required",
            'first message must use the "user" role',
            'roles must alternate between "user" and "assistant"',
            "does not support assistant message prefill",
            "Input should be 'user' or 'assistant'",
            "all messages must have non-empty content",
            "`tool_use` ids were found without `tool_result` blocks immediately after: c2",
            "`tool_use` ids must be unique",
            "unexpected `tool_use_id` found in `tool_result` blocks",
            "Did not find 1 `tool_result` block(s) at the beginning of this message",
            "must have a single result",
            "The final block in an assistant message cannot be `thinking`.",
            "text content blocks must be non-empty",
            "text content blocks must contain non-whitespace text",
            "A maximum of 4 blocks with cache_control may be provided. Found 5.",
            "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block",
            "101 images > 100",
            "exceed max allowed size: 8000 pixels",
            "for many-image requests: 2000 pixels",
            "the image appears to be a image/png image",
            "Could not process image",
            "The PDF specified was not valid",
            "Invalid base64 data",
            "Input should be a valid dictionary",
            "Extra inputs are not permitted",
            "does not match any of the expected tags",
            "`tool_use` blocks can only be in `assistant` messages",
            "String should match pattern",
            "Request exceeds the maximum size",
        ),
    ),
    Format(
        "G",
        "google",
        google,
        validate_google,
        Session.from_google,
        lambda value: ([google.user(google.text()), google.model({"function_call": {"name": "run", "args": value}})], None),
        "pass (contents, system)",
        (None, [], "Hi", {"model": "m"}, ([], None, None), 7),
        GeminiStub,
        "/v1beta/models/gemini-3-pro:generateContent",
        lambda payload: _fields(payload, "contents", "system_instruction"),
        set[str](),
        (
            "contents is not specified",
            "must not be empty",
            "empty text parameter",
            "Please use a valid role: user, model.",
            "function call turn comes immediately after a user turn or after a function response turn",
            "function response turn comes immediately after a function call turn",
            "number of function response parts is equal to the number of function call parts",
            "They come in the same order",
            "ends with a user role or a function response",
            "Function call is missing a thought_signature in functionCall parts",
            "Thought signature is not valid.",
            "Unable to process input image",
            "The document has no pages",
            "Invalid function name",
        ),
    ),
    Format(
        "O",
        "openai_chat",
        chat,
        validate_openai_chat,
        Session.from_openai,
        lambda value: [chat.user(name=value)],
        "pass the messages",
        (None, "Hi", {"model": "m"}, 7),
        OpenAIChatStub,
        "/v1/chat/completions",
        lambda payload: {"model": "gpt-4.1", **(payload if isinstance(payload, dict) else {"messages": payload})},
        {
            *("O2 half an Office document", "O2 an image too heavy", "O2 an address too long", "O3 the same behind a vendor's name"),
            *("O3 a system message where effort is set", "O0 a name that is none"),
        },
        (
            "empty array",
            "Invalid value: 'model'. Supported values are",
            "Unknown parameter: 'messages[0].id'.",
            "expected a string, got null",
            "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'",
            "must be followed by tool messages responding to each 'tool_call_id'",
            "did not have response messages: c2",
            "Duplicate value for 'tool_call_id'",
            "array too long. Expected an array with maximum length 128",
            "Expected a string with maximum length 10485760",
            "only allowed for messages with role 'user'",
            "unsupported image",
            "could not be read as a PDF",
            "Expected a valid URL",
            "maximum length 40",
            "does not support 'system' with this model",
        ),
    ),
    Format(
        "R",
        "openai_responses",
        responses,
        validate_openai_responses,
        Session.from_openai_responses,
        lambda value: [{**responses.WEB, "action": value}],
        "pass the items",
        (None, "Hi", {"model": "m"}, 7),
        OpenAIResponsesStub,
        "/v1/responses",
        lambda payload: {"model": "gpt-5", **(payload if isinstance(payload, dict) else {"input": payload})},
        {
            *(f"R1 a {name} without its output" for name in ("shell", "local shell", "search of the client's")),
            *("R1 two calls of one id", "R0 another phase", "R0 half a screenshot"),
        },
        (
            "empty array",
            "No tool output found for function call c1.",
            "No tool call found for function call output with call_id c1.",
            "could not be verified.",
            "Duplicate item found with id rs_1.",
            "Missing required parameter: 'input[0].summary'.",
            "Expected a string with maximum length 10485760",
            "maximum length 64",
            "unsupported image",
        ),
    ),
)
formats = pytest.mark.parametrize("of", FORMATS, ids=lambda of: of.package)


def _cases(name: str) -> Iterator[Any]:
    for of in FORMATS:
        for case in getattr(of.payloads, name):
            yield pytest.param(of, case, id=f"{of.letter} {case}" if isinstance(case, str) else f"{case[0]} {case[1]}")


@pytest.mark.parametrize(("of", "name"), [*_cases("VALID")])
def test_valid_payloads_pass(of: Format, name: str) -> None:
    assert of.validate(of.payloads.VALID[name]) == []
    json.dumps(of.payloads.VALID[name])


@pytest.mark.parametrize(("of", "case"), [*_cases("INVALID")])
def test_invalid_payloads_break_their_rule(of: Format, case: tuple[str, str, Any]) -> None:
    rule, _, payload = case
    before = copy.deepcopy(payload)
    violations = of.validate(payload)
    assert rule in {violation.rule for violation in violations}
    assert all(violation.where and violation.message for violation in violations)
    assert repr(payload) == repr(before)


@cache
def _refusals(of: Format) -> dict[str, tuple[int, str]]:
    """Return the status and the words with which the provider's stub answers each invalid payload, if JSON can hold that."""
    answers: dict[str, tuple[int, str]] = {}
    stub = of.stub()
    for rule, name, payload in of.payloads.INVALID:
        if name != "bytes":
            status, body = stub.respond(of.path, HEADERS, json.dumps(of.request(payload)).encode())
            answers[f"{rule} {name}"] = status, json.dumps(body, ensure_ascii=False)
    return answers


@formats
def test_the_stub_refuses_invalid_payloads_too(of: Format) -> None:
    """The stubs are written from the documentation alone: a second opinion. They are more lenient in a few cases."""
    assert {name for name, (status, _) in _refusals(of).items() if status == 200} == of.taken_by_stub


@formats
def test_the_stub_says_what_the_provider_says(of: Format) -> None:
    words = " ".join(body for _, body in _refusals(of).values()).replace('\\"', '"')
    assert [phrase for phrase in of.phrases if phrase not in words] == []


@pytest.mark.parametrize(("of", "rule"), [pytest.param(of, rule, id=rule.__name__) for of in FORMATS for rule in of.module("rules").RULES])
def test_every_rule_is_broken_by_some_payload_and_is_named_by_its_number(of: Format, rule: Callable[[Any], Any]) -> None:
    number = rule.__name__.partition("_")[0].upper()
    outcomes = [list(rule(of.module("schema").read_payload(payload))) for _, _, payload in of.payloads.INVALID]
    assert any(outcomes)
    assert {violation.rule for violations in outcomes for violation in violations} == {number}
    assert (rule.__doc__ or "").startswith(f"{number}: ")


@formats
def test_a_value_that_is_not_a_payload_is_an_error(of: Format) -> None:
    for value in of.no_payloads:
        with pytest.raises(FormatError, match=re.escape(of.remedy)):
            of.validate(value)


@formats
def test_deep_nesting_is_a_violation_and_an_error(of: Format) -> None:
    deep: Any = {}
    for _ in range(100_000):
        deep = {"a": deep}
    assert f"{of.letter}0" in {violation.rule for violation in of.validate(of.wrap(deep))}
    assert f"{of.letter}0" not in {violation.rule for violation in of.validate(of.wrap({} if of.letter != "O" else "Ann"))}
    messages = of.wrap(deep)
    with pytest.raises(FormatError):
        of.read(messages[0] if isinstance(messages, tuple) else messages)
    while deep:  # take it apart by hand: the interpreter would need a stack as deep to free it
        deep = deep.pop("a")


BYTE_CHECKS = {"session.images", "session.image_check", "session.document_check"}
"""The modules that check bytes and import no converter."""
SHARED = {".schema", "session.errors", *(f"session.providers.{name}" for name in ("violations", "encoded_media", "openai_chat.rules"))}


@formats
def test_the_validator_shares_no_code_with_the_converter(of: Format) -> None:
    for name in ("rules", "schema"):
        assert _own_imports(of.module(name)) <= SHARED | BYTE_CHECKS
    assert _own_imports(encoded_media) <= {"session.errors"} | BYTE_CHECKS


def _own_imports(module: ModuleType) -> set[str]:
    imports = set(re.findall(r"^ *from (\S+) import", inspect.getsource(module), re.MULTILINE))
    return {name for name in imports if name.startswith((".", "session"))}
