"""Thinking that is bound to the prompt before it is sent again only behind that very prompt (docs/provider-rules.md, A5)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

from hypothesis import assume, event, given
from hypothesis import strategies as st

from context_window import ContextWindow, ContextWindowManager, ModelConfig
from context_window.settings import budget
from context_window.settings.budget import NOTE_PART
from session import AgentHandoff, Compaction, FunctionCall, FunctionCallOutput, Message, Reasoning, Session
from session.items import Item
from session.providers.anthropic import to_anthropic
from session.units import is_answer, request_points
from tests.support.any_logs import cut
from tests.support.counting import Letters

TEXTS = st.sampled_from(["hi", "hi \n", "hi ", " hi", "Go on."])
AGENTS = st.sampled_from([None, None, None, None, "b"])


@st.composite
def logs(draw: st.DrawFn) -> Session:
    """Logs with many answers right behind answers: nothing between them, or items that are never sent, or a summary."""
    items: list[Item] = [Message("user", "Do it.")]
    breaks: set[str] = set()

    def answer() -> None:
        agent = draw(AGENTS)
        first = len(items)
        calls: list[FunctionCall] = []
        for kind in draw(st.lists(st.sampled_from("rrtttc"), min_size=1, max_size=4)):
            if kind == "r":
                sealed = draw(st.integers(0, 4)) == 4
                seal = f"s{len(items)}"
                sealed_thought = Reasoning("", data=seal, agent_id=agent)
                items.append(sealed_thought if sealed else Reasoning("hm", signature=seal, agent_id=agent))
            elif kind == "t":
                items.append(Message("assistant", draw(TEXTS), agent_id=agent))
            else:
                calls.append(FunctionCall("run", "{}", f"c{len(items)}", agent_id=agent))
                items.append(calls[-1])
        if first and is_answer(items[first - 1]):
            breaks.add(items[first].id)
        if draw(st.integers(0, 5)):
            items.extend(FunctionCallOutput("run", "o" * draw(st.sampled_from([1, 100])), call.call_id) for call in calls)

    for kind in draw(st.lists(st.sampled_from("aaaaaausbhc"), min_size=2, max_size=14)):
        if kind == "a":
            answer()
        elif kind == "u":
            items.append(Message("user", draw(TEXTS)))
        elif kind == "b":
            items.append(Message("user", " "))
        elif kind == "h":
            items.append(AgentHandoff("b"))
        elif kind == "c":
            items.append(Compaction(draw(TEXTS)))
        else:
            items.append(Message("assistant", draw(TEXTS), extra={"summary": True}))
    session = Session(items)
    session.restore_seams(frozenset(breaks), 0)
    return session


Block = tuple[str, str]


def blocks_of(messages: list[dict[str, Any]]) -> list[Block]:
    return [(message["role"], _bare(block)) for message in messages for block in message["content"]]


def _bare(block: dict[str, Any]) -> str:
    return json.dumps({key: value for key, value in block.items() if key not in ("id", "tool_use_id")}, sort_keys=True)


def said(answer: list[Item]) -> Iterator[Block]:
    """The blocks of an answer as the provider gave it, in the words in which the model said it."""
    for item in answer:
        block: dict[str, Any]
        if isinstance(item, Reasoning):
            seal = {"type": "redacted_thinking", "data": item.data}
            block = {"type": "thinking", "thinking": item.text, "signature": item.signature} if item.signature else seal
        elif isinstance(item, FunctionCall):
            block = {"type": "tool_use", "name": item.name, "input": {}}
        else:
            assert isinstance(item, Message)
            block = {"type": "text", "text": item.text}
        yield "assistant", _bare(block)


def seal_of(block: Block) -> str | None:
    fields = json.loads(block[1])
    return fields.get("signature") or (fields.get("data") if fields["type"] == "redacted_thinking" else None)


class Provider:
    """Signs thinking with all that was before it, and knows it again."""

    def __init__(self) -> None:
        self._prefixes: dict[str, list[Block]] = {}
        self.checked = 0

    def read(self, request: list[Block]) -> None:
        """Check every thinking block of a request."""
        for index, block in enumerate(request):
            seal = seal_of(block)
            if seal is not None:
                assert self._prefixes[seal] == request[:index]
                self.checked += 1

    def answer(self, request: list[Block], answer: list[Item]) -> None:
        """Sign the thinking of an answer to a request."""
        blocks = [*request, *said(answer)]
        for index, block in enumerate(blocks[len(request) :], len(request)):
            seal = seal_of(block)
            if seal is not None:
                self._prefixes[seal] = blocks[:index]


def answers_of(session: Session) -> Iterator[tuple[int, list[Item]]]:
    """The points at which the model was called, and its answers there."""
    points = request_points(session)
    for index, end in zip(points, [*points[1:], len(session.items)], strict=True):
        answer = []
        for item in session.items[index:end]:
            if not is_answer(item):
                break
            answer.append(item)
        yield index, answer


@given(logs())
def test_thinking_is_sent_behind_the_prompt_that_it_was_signed_with(session: Session) -> None:
    """Two adjacent answers with nothing between them, or only unsent items: thinking bound to its prefix survives, in every later
    request of a log that only grows."""
    provider = Provider()
    for end, answer in answers_of(session):
        request = blocks_of(to_anthropic(cut(session, end)).messages)
        provider.read(request)
        provider.answer(request, answer)
    provider.read(blocks_of(to_anthropic(session).messages))
    event(f"checked: {min(provider.checked, 3)}")


@given(logs(), st.integers(10, 500), st.sampled_from((0, NOTE_PART)))
def test_views_send_no_thinking_behind_another_prompt(session: Session, tokens: int, note_part: int) -> None:
    """The same of a manager's views, whatever they take out, for a model that binds its thinking. The line about removed items is part of
    the prompt."""
    with patch.object(budget, "NOTE_PART", note_part):  # 0: the line is sent in the smallest window, too
        manager = ContextWindowManager(
            ModelConfig("claude-sonnet-4-5", 2_000, binds_thinking=True), Letters(), context_window=ContextWindow(max_tokens=tokens)
        )
    provider = Provider()
    log = Session(id=session.id)
    log.restore_seams(session.response_breaks, 0)
    for end, answer in answers_of(session):
        for item in session.items[len(log.items) : end]:
            log.append(item)
        view = manager.process_session(log)
        request = blocks_of(to_anthropic(view).messages)
        assume(request)  # else there is no answer
        event(f"with the line: {view.removed is not None}")
        provider.read(request)
        provider.answer(request, answer)
        for item in answer:
            log.append(item)
    event(f"checked: {min(provider.checked, 3)}")


def test_a_line_at_the_beginning_takes_the_thinking_behind_it() -> None:
    """The dialogue's thinking stands before the first item that is dropped. But the request now begins with a line about that item."""
    manager = ContextWindowManager(
        ModelConfig("claude-sonnet-4-5", 3_000, binds_thinking=True), Letters(), context_window=ContextWindow(max_tokens=3_000)
    )
    log = Session([Message("user", "Do it."), Reasoning("hm", signature="s1", id="thought"), Message("assistant", "I will.")])
    for number in range(30):
        log.add_message("user", "Go on.")
        call = log.add_function_call("run", {"text": "x" * 100})
        log.add_function_output("run", "o", call.call_id)
        log.add_message("assistant", f"Step {number} is done.", f"step {number}")
        log.restore_seams(log.response_breaks, 0)
    log.add_message("user", "And now?")
    view = manager.process_session(log)
    assert view.removed is not None
    assert view.get_by_id("step 0") is not None
    assert view.position("thought") is None
