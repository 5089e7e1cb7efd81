"""No message, repr or log shows a key, wherever one was passed by mistake."""

from __future__ import annotations

import pickle
import string
import time
import traceback
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import BudgetError, ContextWindow, ContextWindowManager, ModelConfig, RecallError, Session, UnknownModelError
from context_window.errors import CountingError, StrategyError
from context_window.model_errors import ModelError
from context_window.requests.client_errors import LONGEST, model_error
from session import Message
from session.errors import FormatError
from session.providers.anthropic import from_anthropic
from session.providers.openai_chat import from_openai_chat
from session.redaction import LETTERS, is_name, redacted, short, veiled, without_secrets
from tests.support.lazy import LazyModule
from tests.support.made_up_keys import made_up_keys
from tests.support.shell import Shell

if TYPE_CHECKING:
    import anthropic
else:
    anthropic = LazyModule("anthropic")

BODY = "aB3xY9qLm2Zk"
KEYS = (
    f"sk-ant-api03-{BODY}_{BODY}-{BODY}{BODY}{BODY}-{BODY}AA",
    f"sk-proj-{BODY}",
    f"sk-{BODY * 4}",
    f"AIza{BODY}-{BODY}_{BODY}"[:39],
    f"gsk_{BODY * 4}",
    BODY * 3,
    f"hf_{BODY * 3}"[:37],
)
ANY: Any = None


def shows(text: str, key: str) -> bool:
    """True if more of the key than its first letters is in the text."""
    return any(key[start : start + 8] in text for start in range(len(key) - 7))


CALLS: dict[str, Callable[[Any], object]] = {
    "api_client": lambda key: ContextWindowManager("claude-sonnet-4-5", api_client=key),
    "token_counter": lambda key: ContextWindowManager("claude-sonnet-4-5", token_counter=key),
    "model": ContextWindowManager,
    "model_config": lambda key: ContextWindowManager(model_config=key),
    "context_window": lambda key: ContextWindowManager(context_window=key),
    "max_tokens": lambda key: ContextWindow(max_tokens=key),
    "summary_llm": lambda key: ContextWindow(summary_llm=key),
    "shares": lambda key: ContextWindow(shares=key),
    "strategy": lambda key: ContextWindow(strategy=key),
    "warn_at": lambda key: ContextWindow(warn_at=(key,)),
    "config": lambda key: ModelConfig("mine", key),
    "budget": lambda key: ContextWindowManager().get_budget(key),
    "session": lambda key: ContextWindowManager().process_session(key),
    "recall": lambda key: ContextWindowManager().recall(Session(), key),
    "item": lambda key: Session([key]),
    "role": lambda key: Message(key, "x"),
    "saved": Session.from_dict,
    "saved id": lambda key: Session.from_dict({"version": 1, "id": "s", "items": [{"type": key}]}),
    "saved field": lambda key: Session.from_dict({"version": 1, "id": "s", "items": [], key: 1}),
    "extra": lambda key: Message("user", "x", extra={key: {1}}),
    "anthropic": from_anthropic,
    "anthropic role": lambda key: from_anthropic([{"role": key, "content": key}]),
    "openai": lambda key: from_openai_chat([{"role": key, "content": key}]),
    "pin": lambda key: Session().pin(key),
}


@pytest.mark.parametrize("key", KEYS, ids=range(len(KEYS)))
@pytest.mark.parametrize("call", CALLS)
def test_no_message_shows_a_key_passed_as_a_wrong_argument(call: str, key: str) -> None:
    """A wrong value is shown by its type and first letters only: it can be a key."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - whichever it is
        CALLS[call](key)
    error = caught.value
    for text in (str(error), repr(error), "".join(traceback.format_exception_only(error))):
        assert not shows(text, key), text


@pytest.mark.parametrize("key", KEYS, ids=range(len(KEYS)))
def test_no_form_of_an_error_shows_a_key(key: str) -> None:
    errors = [
        BudgetError("f", key, "pass something else"),
        BudgetError("f", [key, 1], "pass something else"),
        BudgetError("f", {key: key}, "pass something else"),
        UnknownModelError(key),
        CountingError(key, key),
        StrategyError(key, "raised"),
        RecallError(key, "nothing has it"),
        FormatError("x", short(key)),
    ]
    for error in errors:
        for copy_of_error in (error, pickle.loads(pickle.dumps(error))):
            assert not shows(f"{copy_of_error} {copy_of_error!r}", key)


@pytest.mark.parametrize("key", KEYS, ids=range(len(KEYS)))
def test_keys_quoted_by_a_provider_are_redacted(key: str) -> None:
    class APIError(Exception):
        status_code = 401

    error = model_error(APIError(f"Incorrect API key provided: {key}. You can find yours on the site."))
    assert error is not None
    assert not shows(f"{error} {error!r} {error.reason}", key)
    assert "Incorrect API key provided" in error.reason


AROUND = (
    "{}",
    "key%20{}",
    "key%3D{}",
    "%22{}%22",
    "key%2520{}",
    r"Illegal header value b'a\n{}'",
    r"{{\"error\": \"first line\\n{}\"}}",
    r"\u0022{}\u0022",
    r"\x22{}\x22",
    "\x1b[31m{}\x1b[0m",
    "https://example.com/v1?key={}&x=1",
)
"""Texts before and after a key."""
INSIDE = (
    KEYS[0],
    "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "nvapi-abc_def-ghi_jklmnop",
    f"AQ.{BODY}-{BODY}_{BODY}",
    f"tvly-dev-{BODY}",
    f"{BODY}-{BODY}_{BODY}+{BODY}==",
    f"org-key-{BODY}-{BODY}_{BODY}",
)


def refusal(message: str) -> ModelError:
    """Return our error for a key that Anthropic refuses."""
    response: Any = httpx.Response(401, request=httpx.Request("POST", "https://api.anthropic.com/v1/messages"))
    body = {"type": "error", "error": {"type": "authentication_error", "message": message}}
    error = model_error(anthropic.AuthenticationError(message, response=response, body=body))
    assert error is not None
    return error


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("key", INSIDE)
def test_a_key_is_redacted_whatever_precedes_it(key: str, around: str) -> None:
    error = refusal(f"invalid x-api-key: {around.format(key)}")
    assert not shows(f"{error} {error!r} {error.reason}", key)
    assert "invalid x-api-key" in error.reason


@pytest.mark.parametrize("index", [2, 4, 8, 12, 20])
@pytest.mark.parametrize("character", ["\u200b", "\u202e", "\ufe0f", "\x1b", "\u00ad", "\ufeff"])
def test_a_key_with_an_invisible_character_is_not_restored(character: str, index: int) -> None:
    key = KEYS[0]
    error = refusal(f"invalid x-api-key: {key[:index]}{character}{key[index:]}")
    assert not shows(f"{error} {error!r} {error.reason}", key)
    name = key[:40]
    assert not is_name(f"{name[:index]}{character}{name[index:]}")


@pytest.mark.parametrize("visible_length", range(5, 30))
def test_a_key_cut_by_shortening_a_text_is_not_shown(visible_length: int) -> None:
    key = INSIDE[1]
    error = refusal("invalid x-api-key: " + "\u200b" * (4 * LONGEST - 19 - visible_length) + key)
    assert not shows(error.reason, key)
    assert error.reason.startswith("invalid x-api-key")


@pytest.mark.parametrize("part", ["a-", "A1b-", "%20", "\\n", "sk-ant-", "aB3/", "=", "a", "aB3"])
def test_redaction_takes_linear_time(part: str) -> None:
    text = part * (200_000 // len(part))
    start = time.process_time()
    redacted(text)
    assert time.process_time() - start < 2


def test_random_keys_are_redacted() -> None:
    random = Random(7)
    for _ in range(2_000):
        key = "".join(random.choices(string.ascii_letters + string.digits + "-_", k=48))
        assert not shows(redacted(f"key A{key[1:]} is wrong"), key)


@pytest.mark.parametrize("arguments", [("usage", "{path}", "--max-tokens"), ("usage", "{path}", "--model"), ("models",)])
def test_the_command_line_shows_no_key(
    arguments: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "s.json"
    path.write_text('[{"role": "user", "content": "Hi"}]')
    code, out, err = Shell(capsys, monkeypatch)(*(argument.format(path=path) for argument in arguments), KEYS[0])
    assert (code != 0, out) == (True, "")
    assert not shows(err, KEYS[0])


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (-1, "-1"),
        (0.5, "0.5"),
        (True, "True"),
        (None, "None"),
        (Fraction(1, 3), "Fraction(1, 3)"),
        ("12", "'12'"),
        (KEYS[0][:4] + "x" * 104, "a text of 108 characters that begins with 'sk-a'"),
        ([2, -0.5], "[2, -0.5]"),
        (("abcdef", 1), "('abcd'…, 1)"),
        (str, "<class 'str'>"),
        (b"secret", "a value of type bytes"),
        (object(), "a value of type object"),
    ],
)
def test_numbers_stay_readable(value: object, expected: str) -> None:
    """The number in an error about an invalid limit must stay readable."""
    assert str(BudgetError("f", value, "p")) == f"f={expected}: p"


@pytest.mark.parametrize(
    "name",
    [
        "claude-sonnet-4-5-20250929",
        "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8",
        "Qwen/Qwen3-Coder-480B-A35B-Instruct",
        "toolu_01A09q90qw90lq917835lq9",
        "toolu_bdrk_01A09q90qw90lq917835lq9XY",
        "srvtoolu_01WYG3ziw53XMcoyKL4XcZmE",
        "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT",
        "123e4567-e89b-12d3-a456-426614174000",
        "123E4567-E89B-12D3-A456-426614174000",
        "/home/Anna/projects/context_window2/session/store.py",
        "/Users/anna/Documents/Rust2024/src/UserProfileV2/mod.rs",
        "src/components/UserProfile/OrderItemList2/index.tsx",
        "npm_config_registry",
        "task-management-plan",
        "m3.1",
    ],
)
def test_names_and_ids_are_shown_as_they_are(name: str) -> None:
    assert short(name) == repr(name)
    assert redacted(f"model: {name}") == f"model: {name}"


@given(st.one_of(st.text(), st.integers(), st.floats(), st.binary(), st.lists(st.text())))
def test_values_in_messages_are_short(value: object) -> None:
    for text in (short(value), veiled(value)):
        assert len(text) < 120 + 60
    if isinstance(value, str) and len(value) > LETTERS:
        assert veiled(value) == f"a text of {len(value)} characters that begins with {value[:LETTERS]!r}"


def test_only_what_is_a_key_for_sure_is_taken_out_of_a_path() -> None:
    """A long hash in a path is needed to find the file."""
    path = f"/home/me/.gemini/tmp/{'0f1e2d3c4b5a6978' * 4}/chats/session-2026-11-27T10-00-0193a5c2d4e6f8091a2b3c4d5e6f7081.json"
    assert without_secrets(path) == path
    key = made_up_keys()[0]
    assert without_secrets(f"{path}?{key}") == f"{path}?{key[:4]}…"
