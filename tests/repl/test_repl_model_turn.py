"""Turns with the real client against the strict stub, without a terminal: printed in order, errors in one line, nothing lost."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from context_window import FunctionCallOutput, Message, Session
from context_window.repl.chat import ChatError
from context_window.repl.model_access import AnthropicAccess, new_session
from context_window.repl.model_turn import take_turn
from context_window.repl.workspace import Workspace
from session.store import SessionStore
from tests.support.chat_session import Screen, new_chat, talk
from tests.support.pictures import png
from tests.support.stubs import AnthropicStub, Call, Say, in_order
from tests.support.stubs.server import Refusal


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "main.py").write_text("print('hello')\n", encoding="utf-8")
    return Workspace(tmp_path / "work")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SessionStore]:
    with SessionStore(tmp_path / "sessions.db") as store:
        yield store


def test_a_turn_is_printed_in_order_and_saved(workspace: Workspace, store: SessionStore) -> None:
    chat = new_chat(store)
    script = in_order([Say("I look."), Call("read_file", {"path": "main.py"}), Call("search", {"pattern": "x"})], [Say("It says hello.")])
    output, stub = talk(chat, workspace, script, "What does main.py do?")
    places = [output.index(part) for part in ("I look.", '· read_file {"path": "main.py"}', "· search", "14 characters", "It says hello.")]
    assert places == sorted(places)
    usage = chat.manager.get_token_usage()
    assert f"{usage['total']:,} of 20,000 tokens" in output
    assert [item.text for item in chat.session.items if isinstance(item, FunctionCallOutput)] == ["print('hello')", "[nothing found]"]
    assert list(store.load(chat.session.id).items) == list(chat.session.items)
    assert stub.requests[0]["tools"][0]["name"] == "read_file"


REFUSALS: dict[str, tuple[Refusal, str]] = {
    "401": (Refusal("invalid x-api-key", status=401, kind="authentication_error"), "Check the API key"),
    "429": (Refusal("This request would exceed your rate limit", status=429, kind="rate_limit_error"), "Wait"),
    "529": (Refusal("Overloaded", status=529, kind="overloaded_error"), "wait"),
    "400": (Refusal("prompt is too long: 250000 tokens > 200000 maximum"), "too long"),
}


@pytest.mark.parametrize("status", REFUSALS)
def test_an_api_error_is_one_line_and_nothing_is_lost(workspace: Workspace, store: SessionStore, status: str) -> None:
    refusal, advice = REFUSALS[status]
    chat = new_chat(store)
    sick = [True]

    def script(request: Mapping[str, Any]) -> list[Say]:
        if sick:
            sick.pop()
            raise refusal
        return [Say("Here I am.")]

    output, _ = talk(chat, workspace, script, "Hello?", "/retry")
    flat = " ".join(output.split())
    assert flat.count("the model did not answer") == 1
    assert advice in flat
    assert "Nothing is lost: /retry asks again." in flat
    assert "Traceback" not in output
    assert [message.text for message in chat.session.messages()[1:]] == ["Hello?", "Here I am."]
    assert list(store.load(chat.session.id).items) == list(chat.session.items)


def test_a_missing_network_is_reported_in_one_line(workspace: Workspace, store: SessionStore) -> None:
    chat = new_chat(store)
    output, _ = talk(chat, workspace, in_order(), "Hello?", url="http://127.0.0.1:9")
    assert "Check the network and the base URL" in " ".join(output.split())
    assert store.load(chat.session.id).messages()[-1].text == "Hello?"


@pytest.mark.parametrize("url", ["nonsense", "http://[bad", "ftp://127.0.0.1"])
def test_an_invalid_address_is_reported_in_one_line(workspace: Workspace, url: str, tmp_path: Path) -> None:
    chat = new_chat(None)
    (tmp_path / "a.png").write_bytes(png(4, 4))
    output, stub = talk(chat, workspace, in_order(), f"/image {tmp_path / 'a.png'}", "Hello?", url=url)
    assert stub.requests == []
    assert len(chat.session.messages()[-1].content) == 2
    assert chat.attached_images == []
    assert "base URL" in " ".join(output.split()) or "ANTHROPIC_BASE_URL" in " ".join(output.split())


def test_a_tool_error_goes_back_to_the_model(workspace: Workspace) -> None:
    chat = new_chat(None)
    script = in_order([Call("read_file", {"path": "../../etc/passwd"}), Call("read_file", {"line": 1})], [Say("I may not.")])
    output, _ = talk(chat, workspace, script, "Read it.")
    outputs = [item for item in chat.session.items if isinstance(item, FunctionCallOutput)]
    assert [item.is_error for item in outputs] == [True, True]
    assert "outside the working directory" in outputs[0].text
    assert output.count("failed: ") == 2
    assert "I may not." in output


def test_a_trim_is_announced_and_the_model_can_recall_the_content(workspace: Workspace) -> None:
    chat = new_chat(None, tokens=6_000)
    (workspace.root / "large.txt").write_text("a line of some words, again and again\n" * 390, encoding="utf-8")
    recalled_ids: list[str] = []

    def script(request: Mapping[str, Any]) -> list[Say | Call]:
        last = request["messages"][-1]["content"]
        if isinstance(last, list) and last[-1]["type"] == "tool_result":
            return [Say("Read.")]
        placeholders = str(request["messages"]).split("recall id ")[1:]
        if placeholders and not recalled_ids:
            recalled_ids.append(placeholders[0].split("]")[0])
            return [Call("recall", {"id": recalled_ids[0]})]
        return [Call("read_file", {"path": "large.txt"})] if not recalled_ids else [Say("Done.")]

    output, stub = talk(chat, workspace, script, "Read it.", "And again.", "What was in it?")
    assert "trimmed" in output
    assert recalled_ids
    recalled = next(item for item in chat.session.items if isinstance(item, FunctionCallOutput) and item.name == "recall")
    original = chat.session.get_by_id(recalled_ids[0])
    assert isinstance(original, FunctionCallOutput)
    assert recalled.text == original.text
    assert len(stub.answers) == len(stub.requests)


def test_ctrl_c_stops_the_answer_and_keeps_the_message(workspace: Workspace, store: SessionStore) -> None:
    chat = new_chat(store)
    was_asked, released = threading.Event(), threading.Event()

    def script(request: Mapping[str, Any]) -> list[Say]:
        was_asked.set()
        return [Say("Too late.")] if released.wait(20) else []

    async def stopped() -> None:
        with AnthropicStub(script) as stub:
            access = AnthropicAccess(chat, workspace, api_key="key", base_url=stub.url, max_retries=0)
            turn = asyncio.create_task(take_turn(chat, "Wait.", access, Screen().output))
            assert await asyncio.to_thread(was_asked.wait, 20)
            turn.cancel()
            with pytest.raises(asyncio.CancelledError):
                await turn
            released.set()
            await access.close()

    asyncio.run(stopped())
    assert [message.text for message in store.load(chat.session.id).messages()[1:]] == ["Wait."]


def test_attached_images_go_with_the_next_message_only(workspace: Workspace, tmp_path: Path) -> None:
    chat = new_chat(None)
    (tmp_path / "a.png").write_bytes(png(4, 4))
    _, stub = talk(chat, workspace, in_order([Say("A square.")], [Say("Yes.")]), f"/image {tmp_path / 'a.png'}", "What is it?", "Sure?")
    first, second = (next(message for message in reversed(request["messages"]) if message["role"] == "user") for request in stub.requests)
    assert [block["type"] for block in first["content"]] == ["image", "text"]
    assert [block["type"] for block in second["content"]] == ["text"]
    assert chat.attached_images == []


def test_blank_lines_ctrl_c_and_unknown_commands_call_no_model(workspace: Workspace) -> None:
    chat = new_chat(None)
    output, stub = talk(chat, workspace, in_order(), "   ", None, "/nonsense", "/retry")
    assert stub.requests == []
    assert "use Ctrl-D or /quit to leave" in output
    assert "unknown command /nonsense" in output
    assert "you have not sent a message yet" in output
    output, stub = talk(chat, workspace, in_order([Say("Yes.")]), "Well?", "/retry")
    assert len(stub.requests) == 1
    assert "already has an answer" in output


def test_the_chat_accepts_only_models_of_its_api(workspace: Workspace) -> None:
    chat = new_chat(None)
    access = AnthropicAccess(chat, workspace)
    assert {definition["name"] for definition in access.tools.definitions} == {"read_file", "list_files", "search", "recall"}
    with pytest.raises(ChatError, match="gpt-5 is not a model of Anthropic"):
        chat.check_model("gpt-5")
    chat.check_model("claude-haiku-4-5")


def test_a_saved_session_can_be_continued(workspace: Workspace, store: SessionStore) -> None:
    first = new_chat(store)
    talk(first, workspace, in_order([Say("One.")]), "First.")
    second = new_chat(store)
    second.session = store.load(first.session.id)
    _, stub = talk(second, workspace, in_order([Say("Two.")]), "Second.")
    assert [message["role"] for message in stub.requests[0]["messages"]] == ["user", "assistant", "user"]
    assert store.load(first.session.id).messages()[-1].text == "Two."


def test_two_chats_on_one_session_lose_nothing(workspace: Workspace, store: SessionStore) -> None:
    chat = new_chat(store)
    talk(chat, workspace, in_order([Say("One.")]), "First.")
    other = store.load(chat.session.id)
    other.append(Message("user", "From elsewhere."))
    with SessionStore(store.path) as second:
        second.save(other)
    output, _ = talk(chat, workspace, in_order([Say("Two.")], [Say("Three.")]), "Second.", "Third.", "/fork", "/load")
    assert " ".join(output.split()).count(f"another chat has continued session {other.id}; this chat continues as ") == 1
    assert [message.text for message in chat.session.messages()[-4:]] == ["Second.", "Two.", "Third.", "Three."]
    assert [message.text for message in store.load(chat.session.id).messages()[-4:]] == ["Second.", "Two.", "Third.", "Three."]
    assert store.load(other.id).messages()[-1].text == "From elsewhere."
    assert len(store.list()) == 3


def test_a_new_session_holds_the_instructions() -> None:
    session = new_session("/somewhere")
    assert isinstance(session, Session)
    assert "/somewhere" in session.messages()[0].text
    assert session.turn_count() == 0
