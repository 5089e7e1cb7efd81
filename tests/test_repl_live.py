"""A turn told as it happens, without a terminal: the real client against the strict stub, errors as one line, nothing lost."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from context_window import FunctionCallOutput, Message, Session
from context_window.repl.chat import ChatError
from context_window.repl.live import AnthropicAccess, begun, take_turn
from context_window.repl.workspace import Workspace
from session.store import SessionStore
from tests.support.pictures import png
from tests.support.stubs import AnthropicStub, Call, Say, in_order
from tests.support.stubs.server import Refusal
from tests.support.talking import Screen, started, talk


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "main.py").write_text("print('hello')\n", encoding="utf-8")
    return Workspace(tmp_path / "work")


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[SessionStore]:
    with SessionStore(tmp_path / "sessions.db") as store:
        yield store


def test_a_turn_is_told_in_its_order_and_kept(workspace: Workspace, keeper: SessionStore) -> None:
    chat = started(keeper)
    script = in_order([Say("I look."), Call("read_file", {"path": "main.py"}), Call("search", {"pattern": "x"})], [Say("It says hello.")])
    told, stub = talk(chat, workspace, script, "What does main.py do?")
    places = [told.index(part) for part in ("I look.", '· read_file {"path": "main.py"}', "· search", "14 characters", "It says hello.")]
    assert places == sorted(places)
    usage = chat.manager.get_token_usage()
    assert f"{usage['total']:,} of 20,000 tokens" in told
    assert [item.text for item in chat.session.items if isinstance(item, FunctionCallOutput)] == ["print('hello')", "[nothing found]"]
    assert list(keeper.load(chat.session.id).items) == list(chat.session.items)
    assert stub.requests[0]["tools"][0]["name"] == "read_file"


REFUSALS: dict[str, tuple[Refusal, str]] = {
    "401": (Refusal("invalid x-api-key", status=401, kind="authentication_error"), "Check the API key"),
    "429": (Refusal("This request would exceed your rate limit", status=429, kind="rate_limit_error"), "Wait"),
    "529": (Refusal("Overloaded", status=529, kind="overloaded_error"), "wait"),
    "400": (Refusal("prompt is too long: 250000 tokens > 200000 maximum"), "too long"),
}


@pytest.mark.parametrize("status", REFUSALS)
def test_an_error_of_the_api_is_one_line_and_nothing_is_lost(workspace: Workspace, keeper: SessionStore, status: str) -> None:
    refusal, advice = REFUSALS[status]
    chat = started(keeper)
    sick = [True]

    def script(request: Mapping[str, Any]) -> list[Say]:
        if sick:
            sick.pop()
            raise refusal
        return [Say("Here I am.")]

    told, _ = talk(chat, workspace, script, "Hello?", "/retry")
    flat = " ".join(told.split())
    assert flat.count("the model did not answer") == 1
    assert advice in flat
    assert "Nothing is lost: /retry asks again." in flat
    assert "Traceback" not in told
    assert [message.text for message in chat.session.messages()[1:]] == ["Hello?", "Here I am."]
    assert list(keeper.load(chat.session.id).items) == list(chat.session.items)


def test_without_a_network_one_line_says_so(workspace: Workspace, keeper: SessionStore) -> None:
    chat = started(keeper)
    told, _ = talk(chat, workspace, in_order(), "Hello?", url="http://127.0.0.1:9")
    assert "Check the network and the base URL" in " ".join(told.split())
    assert keeper.load(chat.session.id).messages()[-1].text == "Hello?"


@pytest.mark.parametrize("url", ["nonsense", "http://[bad", "ftp://127.0.0.1"])
def test_an_address_that_is_none_is_one_line_too(workspace: Workspace, url: str, tmp_path: Path) -> None:
    chat = started(None)
    (tmp_path / "a.png").write_bytes(png(4, 4))
    told, stub = talk(chat, workspace, in_order(), f"/image {tmp_path / 'a.png'}", "Hello?", url=url)
    assert stub.requests == []
    assert len(chat.session.messages()[-1].content) == 2
    assert chat.attached == []
    assert "base URL" in " ".join(told.split()) or "ANTHROPIC_BASE_URL" in " ".join(told.split())


def test_what_a_tool_refuses_is_an_answer_to_the_model(workspace: Workspace) -> None:
    chat = started(None)
    script = in_order([Call("read_file", {"path": "../../etc/passwd"}), Call("read_file", {"line": 1})], [Say("I may not.")])
    told, _ = talk(chat, workspace, script, "Read it.")
    outputs = [item for item in chat.session.items if isinstance(item, FunctionCallOutput)]
    assert [item.is_error for item in outputs] == [True, True]
    assert "outside the working directory" in outputs[0].text
    assert told.count("failed: ") == 2
    assert "I may not." in told


def test_what_was_trimmed_is_said_and_the_model_gets_it_back_by_recall(workspace: Workspace) -> None:
    chat = started(None, tokens=6_000)
    (workspace.root / "large.txt").write_text("a line of some words, again and again\n" * 390, encoding="utf-8")
    asked: list[str] = []

    def script(request: Mapping[str, Any]) -> list[Say | Call]:
        last = request["messages"][-1]["content"]
        if isinstance(last, list) and last[-1]["type"] == "tool_result":
            return [Say("Read.")]
        placeholders = str(request["messages"]).split("recall id ")[1:]
        if placeholders and not asked:
            asked.append(placeholders[0].split("]")[0])
            return [Call("recall", {"id": asked[0]})]
        return [Call("read_file", {"path": "large.txt"})] if not asked else [Say("Done.")]

    told, stub = talk(chat, workspace, script, "Read it.", "And again.", "What was in it?")
    assert "trimmed" in told
    assert asked
    recalled = next(item for item in chat.session.items if isinstance(item, FunctionCallOutput) and item.name == "recall")
    original = chat.session.get_by_id(asked[0])
    assert isinstance(original, FunctionCallOutput)
    assert recalled.text == original.text
    assert len(stub.answers) == len(stub.requests)


def test_ctrl_c_stops_the_answer_and_keeps_what_was_said(workspace: Workspace, keeper: SessionStore) -> None:
    chat = started(keeper)
    asked, released = threading.Event(), threading.Event()

    def script(request: Mapping[str, Any]) -> list[Say]:
        asked.set()
        return [Say("Too late.")] if released.wait(20) else []

    async def stopped() -> None:
        with AnthropicStub(script) as stub:
            access = AnthropicAccess(chat, workspace, api_key="key", base_url=stub.url, max_retries=0)
            turn = asyncio.create_task(take_turn(chat, "Wait.", access, Screen().voice))
            assert await asyncio.to_thread(asked.wait, 20)
            turn.cancel()
            with pytest.raises(asyncio.CancelledError):
                await turn
            released.set()
            await access.close()

    asyncio.run(stopped())
    assert [message.text for message in keeper.load(chat.session.id).messages()[1:]] == ["Wait."]


def test_images_go_with_the_next_message_alone(workspace: Workspace, tmp_path: Path) -> None:
    chat = started(None)
    (tmp_path / "a.png").write_bytes(png(4, 4))
    _, stub = talk(chat, workspace, in_order([Say("A square.")], [Say("Yes.")]), f"/image {tmp_path / 'a.png'}", "What is it?", "Sure?")
    first, second = (next(message for message in reversed(request["messages"]) if message["role"] == "user") for request in stub.requests)
    assert [block["type"] for block in first["content"]] == ["image", "text"]
    assert [block["type"] for block in second["content"]] == ["text"]
    assert chat.attached == []


def test_blank_lines_ctrl_c_and_unknown_commands_ask_nothing(workspace: Workspace) -> None:
    chat = started(None)
    told, stub = talk(chat, workspace, in_order(), "   ", None, "/nonsense", "/retry")
    assert stub.requests == []
    assert "Ctrl-D or /quit leaves" in told
    assert "is no command" in told
    assert "nothing was said yet" in told
    told, stub = talk(chat, workspace, in_order([Say("Yes.")]), "Well?", "/retry")
    assert len(stub.requests) == 1
    assert "has its answer" in told


def test_only_models_of_the_api_can_be_gone_on_with(workspace: Workspace) -> None:
    chat = started(None)
    access = AnthropicAccess(chat, workspace)
    assert {definition["name"] for definition in access.tools.definitions} == {"read_file", "list_files", "search", "recall"}
    with pytest.raises(ChatError, match="none of Anthropic's models"):
        chat.check_model("gpt-5")
    chat.check_model("claude-haiku-4-5")


def test_a_session_that_was_kept_is_gone_on_with(workspace: Workspace, keeper: SessionStore) -> None:
    first = started(keeper)
    talk(first, workspace, in_order([Say("One.")]), "First.")
    second = started(keeper)
    second.session = keeper.load(first.session.id)
    _, stub = talk(second, workspace, in_order([Say("Two.")]), "Second.")
    assert [message["role"] for message in stub.requests[0]["messages"]] == ["user", "assistant", "user"]
    assert keeper.load(first.session.id).messages()[-1].text == "Two."


def test_two_chats_on_one_session_lose_nothing(workspace: Workspace, keeper: SessionStore) -> None:
    chat = started(keeper)
    talk(chat, workspace, in_order([Say("One.")]), "First.")
    other = keeper.load(chat.session.id)
    other.append(Message("user", "From elsewhere."))
    with SessionStore(keeper.path) as second:
        second.save(other)
    told, _ = talk(chat, workspace, in_order([Say("Two.")], [Say("Three.")]), "Second.", "Third.", "/fork", "/load")
    assert " ".join(told.split()).count(f"another chat has gone on with {other.id}: this one goes on as ") == 1
    assert [message.text for message in chat.session.messages()[-4:]] == ["Second.", "Two.", "Third.", "Three."]
    assert [message.text for message in keeper.load(chat.session.id).messages()[-4:]] == ["Second.", "Two.", "Third.", "Three."]
    assert keeper.load(other.id).messages()[-1].text == "From elsewhere."
    assert len(keeper.list()) == 3


def test_a_session_begins_with_what_the_assistant_is_to_do() -> None:
    session = begun("/somewhere")
    assert isinstance(session, Session)
    assert "/somewhere" in session.messages()[0].text
    assert session.turn_count() == 0
