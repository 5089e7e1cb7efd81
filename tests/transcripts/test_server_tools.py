"""Blocks of tools that ran at Anthropic, in Claude Code's log: they are calls like others, and go back to Anthropic as they came."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import ContextWindow, ContextWindowManager
from session import FunctionCall, FunctionCallOutput, Session
from session.providers import validate_anthropic, validate_openai_chat
from session.providers.anthropic import from_anthropic, to_anthropic
from session.providers.openai_chat import to_openai_chat
from session.transcripts import read_transcript
from tests.support.claude_lines import Json, Log, call, result, text

PAGE = {"type": "web_search_result", "url": "https://e.example", "title": "T", "encrypted_content": "sealed", "page_age": None}


def pair(number: int, kind: str) -> list[Json]:
    """A call and its result."""
    use: Json = {"type": "server_tool_use", "id": f"srvtoolu_{number}", "name": kind, "input": {"query": "x"}}
    content: Any = [PAGE] if kind == "web_search" else {"type": "advisor_result", "text": "Do it."}
    return [use, {"type": f"{kind}_tool_result", "tool_use_id": use["id"], "content": content}]


def log_of(*answers: list[Json]) -> Log:
    """Claude Code writes each block of an answer as a record of its own."""
    log = Log()
    for number, blocks in enumerate(answers):
        log.user(f"Question {number}.")
        for block in blocks:
            log.answer(f"m{number}", block)
    return log


KINDS = st.lists(st.sampled_from(["web_search", "advisor"]), max_size=3)


@given(st.lists(KINDS, min_size=1, max_size=4))
def test_they_go_back_as_they_came(tmp_path_factory: pytest.TempPathFactory, turns: list[list[str]]) -> None:
    """Blocks of server tools survive a conversion to their own format, in their order, and the request is valid."""
    answers = [
        [*(block for number, kind in enumerate(kinds) for block in pair(10 * turn + number, kind)), text("Found.")]
        for turn, kinds in enumerate(turns)
    ]
    session = read_transcript(log_of(*answers).write(tmp_path_factory.mktemp("log")))
    messages = to_anthropic(session).messages
    assert [message["content"] for message in messages if message["role"] == "assistant"] == answers
    assert validate_anthropic((messages, None)) == []
    assert validate_openai_chat(to_openai_chat(session)) == []
    assert to_anthropic(Session.from_dict(session.to_dict())).messages == messages
    assert to_anthropic(from_anthropic(messages)).messages == messages
    assert sum(isinstance(item, FunctionCall) for item in session.items) == sum(map(len, turns))


def test_an_advisor_s_words_are_the_output(tmp_path: Path) -> None:
    session = read_transcript(log_of([*pair(1, "advisor"), text("Done.")]).write(tmp_path))
    assert [item.text for item in session.items if isinstance(item, FunctionCallOutput)] == ["Do it."]


def test_a_view_that_shortened_the_result_sends_what_it_shows(tmp_path: Path) -> None:
    long: list[Json] = [{**PAGE, "title": "word " * 3_000}]
    blocks = pair(1, "web_search")
    blocks[1]["content"] = long
    answers = [[*blocks, text("Found.")], *([text("word " * 400)] for _ in range(8))]
    session = read_transcript(log_of(*answers).write(tmp_path))
    view = ContextWindowManager(context_window=ContextWindow(max_tokens=5_000)).process_session(session)
    sent = to_anthropic(view).messages
    assert "sealed" not in str(sent)
    assert validate_anthropic((sent, None)) == []


def test_one_beside_a_tool_of_the_client_is_sent_in_the_same_answer(tmp_path: Path) -> None:
    log = log_of([*pair(1, "web_search"), call("c1", "Bash", command="ls")])
    log.user([result("c1", "a")])
    log.answer("m9", text("Done."))
    messages = to_anthropic(read_transcript(log.write(tmp_path))).messages
    assert [block["type"] for block in messages[1]["content"]] == ["server_tool_use", "web_search_tool_result", "tool_use"]
    assert [block["type"] for block in messages[2]["content"]] == ["tool_result"]
    assert validate_anthropic((messages, None)) == []
