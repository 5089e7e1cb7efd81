"""Where the chat sends a conversation and a key: to the server that the user has named, and to no other; and what it needs for that."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from io import StringIO
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window.repl.connection import PROVIDERS, Server, continued
from context_window.repl.screen import Screen
from session.extras import package_line
from tests.support.chatting import APIS, environment
from tests.support.shell import Shell
from tests.support.stubs import AnthropicStub, OpenAIChatStub, OpenAIResponsesStub, Say
from tests.support.stubs.server import Refusal

SERVERS = st.builds(Server, st.none() | st.sampled_from(list(PROVIDERS)), st.none() | st.sampled_from(["http://a", "http://b"]))


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Shell:
    for name, value in environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    return Shell(capsys, monkeypatch)


def test_a_session_goes_on_with_its_server_and_its_budget_unless_another_one_is_named(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def chat(*options: object, lines: str = "Hello\n") -> str:
        monkeypatch.setattr(sys, "stdin", StringIO(lines))
        code, out, err = shell("chat", *options)
        assert (code, err) == (0, "")
        return out

    with OpenAIChatStub() as local, OpenAIResponsesStub(lambda _: [Say("I am public.")]) as public:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{public.url}/v1")
        chat("--model", "qwen3-local", "--base-url", f"{local.url}/v1", "--max-tokens", 5_000)
        assert f"qwen3-local at {local.url}/v1" in " ".join(chat("--continue", lines="Hello\n/model gpt-5.2\nHello\n").split())
        chat("--continue", "--model", "llama-local")
        assert "of 5,000 tokens" in chat("--continue", lines="")
        assert [request["model"] for request in local.requests] == ["qwen3-local", "qwen3-local", "gpt-5.2", "llama-local"]
        assert public.requests == []
        assert "I am public." in chat("--continue", "--provider", "openai-responses", "--model", "gpt-5.2")
        chat("--continue")
        assert (len(local.requests), len(public.requests)) == (4, 2)


def test_an_address_in_the_environment_is_kept_and_said_before_anything_is_sent(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    with OpenAIResponsesStub() as first, OpenAIResponsesStub() as second:
        for stub, options in ((first, ("--model", "gpt-5.2")), (second, ("--continue",))):
            monkeypatch.setenv("OPENAI_BASE_URL", f"{stub.url}/v1")
            monkeypatch.setattr(sys, "stdin", StringIO("Hello\n"))
            code, out, _ = shell("chat", *options)
            assert code == 0
            assert f"gpt-5.2 at {first.url}/v1 (the key in OPENAI_API_KEY). /help" in " ".join(out.split())
        assert (len(first.requests), len(second.requests)) == (2, 0)


@pytest.mark.parametrize("name", ["anthropic", "openai-responses", "openai"])
def test_what_a_client_does_after_a_refused_attempt_is_told(shell: Shell, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    told: list[str] = []
    attempts = iter((Refusal("slow down", status=429, kind="rate_limit_error"), None))

    def script(_: Mapping[str, Any]) -> list[Say]:
        if (refusal := next(attempts)) is not None:
            raise refusal
        return [Say("Here.")]

    monkeypatch.setattr(Screen, "tell", lambda _, news: told.append(news))
    monkeypatch.setattr(sys, "stdin", StringIO("Hello\n"))
    with APIS[name].stub(script) as stub:
        assert "Here." in shell("chat", *APIS[name].arguments(stub))[1]
    assert told == ["HTTP 429 Too Many Requests", "asking again (1)"]


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("http://127.0.0.1:1", "the key in OPENAI_API_KEY"),
        ("https://models.example", "the key in OPENAI_API_KEY"),
        ("http://models.example/v1", "the key in OPENAI_API_KEY, unencrypted"),
    ],
)
def test_what_others_can_read_on_the_way_is_said(monkeypatch: pytest.MonkeyPatch, address: str, said: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "key")
    assert Server(None, address).said("gpt-5.2") == f" at {address} ({said})"


class Locked(AnthropicStub):
    """A server that notes the keys it gets."""

    keys: ClassVar[list[str]] = []

    def serve(self, path: str, headers: Mapping[str, str], body: dict[str, Any]) -> dict[str, Any]:
        self.keys.append(f"{headers.get('x-api-key')} {headers.get('authorization')}")
        return super().serve(path, headers, body)


def test_a_key_that_is_set_later_does_not_go_to_a_server_that_was_talked_to_without_one(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN")
    for name in names:
        monkeypatch.delenv(name, raising=False)
    with Locked() as stub:
        for options in (("--model", "claude-sonnet-5-5", "--base-url", stub.url), ("--continue",), ("--continue", "--base-url", stub.url)):
            monkeypatch.setattr(sys, "stdin", StringIO("Hello\n"))
            assert shell("chat", *options)[::2] == (0, "")
            for name in names:
                monkeypatch.setenv(name, "secret")
    assert ["secret" in key for key in Locked.keys] == [False, False, True]


@given(SERVERS, SERVERS, st.booleans())
def test_nothing_goes_to_an_address_that_the_user_has_not_named_for_this_api(named: Server, kept: Server, is_same_model: bool) -> None:
    """The address is the one that the options name; without one the session's, unless they name another API."""
    server = continued(named, kept._asdict(), is_same_model=is_same_model)
    if named.base_url or named.provider not in (None, kept.provider):
        assert server.base_url == named.base_url
    elif kept.provider:
        assert server.base_url == kept.base_url
    assert named.provider in (None, server.provider)
    assert continued(named, "damaged", is_same_model=is_same_model) == named


@pytest.mark.parametrize(("model", "package", "module"), [("gpt-5.2", "openai", "openai"), ("gemini-3-pro", "google-genai", "google")])
def test_a_model_whose_client_is_missing_says_the_line_that_installs_it(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, model: str, package: str, module: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    code, _, err = shell("chat", "--model", model)
    assert code == 2
    assert f"{model} needs another package: {package_line(package)}" in err


def test_a_window_without_room_for_any_message_is_said_to_be_too_small(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    with OpenAIChatStub() as stub:
        monkeypatch.setattr(sys, "stdin", StringIO("Hello\n"))
        out = shell("chat", "--model", "qwen3-local", "--base-url", f"{stub.url}/v1", "--max-tokens", 50)[1]
        assert stub.requests == []
        assert "not sent: the window of 50 tokens is too small" in out


@pytest.mark.parametrize("words", [3_000, 30_000])
def test_a_message_that_the_model_would_see_only_in_part_is_not_sent(shell: Shell, monkeypatch: pytest.MonkeyPatch, words: int) -> None:
    with OpenAIChatStub() as stub:
        start = ("chat", "--model", "qwen3-local", "--base-url", f"{stub.url}/v1")
        monkeypatch.setattr(sys, "stdin", StringIO(f"Hello\n{'word ' * words}\nAnd this?\n"))
        out = " ".join(shell(*start, "--max-tokens", 2_500)[1].split())
        assert len(stub.requests) == 2
        assert "not sent: your message has " in out
        enough = out.partition("--continue --max-tokens ")[2].split()[0]
        monkeypatch.setattr(sys, "stdin", StringIO(f"{'word ' * words}\n"))
        assert "not sent" not in shell("chat", "--continue", "--max-tokens", enough)[1]
        assert str(stub.requests[2]).count("word word") >= words // 2
