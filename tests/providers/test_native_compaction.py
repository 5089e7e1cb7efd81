"""Compactions that a provider makes itself: kept in the log, sent back unchanged, and all that came before leaves the view."""

from __future__ import annotations

import asyncio
from typing import Any

from anthropic.types.beta import BetaMessage
from openai.types.responses import CompactedResponse

from context_window import AnthropicModel, ContextWindow, ContextWindowManager, OpenAIModel, run_turn
from session import Compaction, Message, Session, Usage
from session.providers.anthropic import from_anthropic, to_anthropic, validate_anthropic
from session.providers.google import to_google, validate_google
from session.providers.native_compaction import SEALED
from session.providers.openai_chat import to_openai_chat, validate_openai_chat
from session.providers.openai_responses import to_openai_responses, validate_openai_responses
from session.providers.response import EDITS
from tests.support.counting import Letters
from tests.support.looping import manager
from tests.support.stubs import AnthropicStub, OpenAIResponsesStub, Raw, Say, in_order
from tests.support.stubs.clients import anthropic_client, openai_client

EDIT: dict[str, Any] = {"betas": ["compact-2026-01-12"], "context_management": {"edits": [{"type": "compact_20260112"}]}}
BLOCK = {"type": "compaction", "content": "They counted to ten.", "encrypted_content": "opaque", "signature": "signed", "tool_changes": []}
SEALED_ITEM = {"type": "compaction", "encrypted_content": "c2VhbGVk" * 20}


def counting() -> Session:
    """A log with three answered questions."""
    session = Session()
    session.add_message("system", "Count.")
    for number in range(3):
        session.add_message("user", f"number {number}")
        session.add_message("assistant", f"it is {number}")
    session.add_message("user", "And now?")
    return session


def kept_texts(session: Session, manager: ContextWindowManager) -> list[str]:
    """Return the texts of the view's messages."""
    return [item.text for item in manager.process_session(session).items if isinstance(item, Message)]


def test_anthropics_compaction_comes_back_unchanged_and_empties_the_view() -> None:
    session, handler = counting(), ContextWindowManager(token_counter=Letters())
    stub = AnthropicStub(in_order([Raw(BLOCK), Say("Eleven.")], [Say("Twelve.")]))
    with stub, anthropic_client(stub) as client:
        answer = client.beta.messages.create(**handler.anthropic_request(session, model="claude-opus-5", max_tokens=99, **EDIT))
        compaction, said = session.add_response(answer, extra=handler.answer_notes(session))
        session.add_message("user", "Next?")
        session.add_response(
            client.beta.messages.create(**handler.anthropic_request(session, model="claude-opus-5", max_tokens=99, **EDIT))
        )
    assert isinstance(compaction, Compaction)
    assert compaction.summary == BLOCK["content"]
    assert len(compaction.replaces) == 7  # all but the instructions
    assert isinstance(said, Message)
    sent = stub.requests[-1]["messages"]
    assert {**sent[-2]["content"][0], "cache_control": None} == {**BLOCK, "cache_control": None}
    assert kept_texts(session, handler) == ["Count.", "Eleven.", "Next?", "Twelve."]
    assert [item.text for item in session.items if isinstance(item, Message)][1:3] == ["number 0", "it is 0"]  # the log keeps all


def test_the_usage_of_a_compaction_is_added_to_the_answers() -> None:
    session = counting()
    with AnthropicStub(in_order([Raw(BLOCK), Say("Eleven.")])) as stub, anthropic_client(stub) as client:
        answer = client.beta.messages.create(**manager().anthropic_request(session, model="claude-opus-5", max_tokens=99, **EDIT))
    first = session.add_response(answer)[0]
    total = first.usage
    assert total is not None
    assert total.input_tokens == answer.usage.input_tokens + 9_000
    assert total.output_tokens == answer.usage.output_tokens + 300
    assert from_anthropic([{"role": "user", "content": "a"}, answer]).items[1].usage == total


def test_the_report_of_a_compacted_request_does_not_calibrate_the_next_view() -> None:
    """It describes neither the request that was sent nor the one that follows."""
    session, plain = counting(), counting()
    for log, usage in ((session, Usage(90_000)), (plain, None)):
        log.append(Compaction("Ten.", [item.id for item in log.items[1:-1]], usage=usage, extra={"anthropic_blocks": [BLOCK]}))
        log.add_message("assistant", "Eleven.")
        log.add_message("user", "Next?")
    handler = manager()
    assert handler.get_token_usage(session) == handler.get_token_usage(plain)


def test_the_loop_goes_on_after_a_pause_for_a_compaction() -> None:
    session = counting()
    with AnthropicStub(in_order([Raw(BLOCK)], [Say("Eleven.")]), prefill=False) as stub, anthropic_client(stub) as client:
        model = AnthropicModel(client.beta, "claude-opus-5", **EDIT)
        result = asyncio.run(run_turn(session, "More", model=model, tools=[], manager=manager()))
    assert result.text == "Eleven."
    marked = {**BLOCK, "cache_control": {"type": "ephemeral"}}
    assert stub.requests[-1]["messages"][-1] == {"role": "assistant", "content": [marked]}
    assert validate_anthropic(to_anthropic(session)) == []


def test_a_failed_compaction_is_ignored() -> None:
    session = counting()
    for content in (None, " "):
        [item] = session.add_response(
            {"role": "assistant", "content": [{"type": "compaction", "content": content}, {"type": "text", "text": "Eleven."}]}
        )
        assert item.type == "message"
    assert "compaction" not in str(to_anthropic(session))


def test_what_anthropic_cleared_is_noted_with_the_answer() -> None:
    edits = {"applied_edits": [{"type": "clear_tool_uses_20250919", "cleared_tool_uses": 8, "cleared_input_tokens": 50_000}]}
    usage = {"input_tokens": 9, "output_tokens": 3}
    fields = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn", "stop_sequence": None}
    answer = BetaMessage.model_validate({**fields, "content": [{"type": "text", "text": "a"}], "usage": usage, "context_management": edits})
    [item] = counting().add_response(answer)
    assert item.extra[EDITS] == edits
    assert item.usage == Usage(9, output_tokens=3)


def test_openais_compaction_comes_back_unchanged_and_empties_the_view() -> None:
    session, handler = counting(), manager()
    stub = OpenAIResponsesStub(in_order([Raw(SEALED_ITEM), Say("Eleven.")], [Say("Twelve.")]))

    with stub, openai_client(stub) as client:
        model = OpenAIModel(client, "gpt-5.2", context_management=[{"type": "compaction", "compact_threshold": 1_000}])
        for question in ("More", "Next?"):
            asyncio.run(run_turn(session, question, model=model, tools=[], manager=handler))
    [sent] = [item for item in stub.requests[-1]["input"] if item["type"] == "compaction"]
    assert sent["encrypted_content"] == SEALED_ITEM["encrypted_content"]
    assert kept_texts(session, handler) == ["Count.", "Eleven.", "Next?", "Twelve."]


def test_a_window_that_openai_compacted_keeps_the_users_messages_once() -> None:
    session, handler = counting(), manager()
    users = [item for item in session.items if isinstance(item, Message) and item.role == "user"]
    fields = {"type": "message", "role": "user", "status": "completed"}
    contents = [[{"type": "input_text", "text": item.text}] for item in users[1:]]
    output = [{**fields, "id": f"msg_{number}", "content": content} for number, content in enumerate(contents)]
    details: dict[str, Any] = {
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    usage = {"input_tokens": 70, "output_tokens": 9, "total_tokens": 79, **details}
    output.append({"id": "cmp_1", **SEALED_ITEM})
    compacted = CompactedResponse.construct(id="resp_1", created_at=1, object="response.compaction", output=output, usage=usage)
    [compaction] = session.add_response(compacted)
    assert isinstance(compaction, Compaction)
    assert not {item.id for item in users[1:]} & {*compaction.replaces}
    session.add_message("user", "Next?")
    view = handler.process_session(session)
    kept = ["Count.", "number 1", "number 2", "it is 2", "And now?", "Next?"]
    assert kept_texts(session, handler) == kept  # the last answer is in the frontier
    assert to_openai_responses(view)[-2] == {"id": "cmp_1", **SEALED_ITEM}
    session.add_message("assistant", "Eleven.")
    session.add_message("user", "Last?")
    assert "it is 2" not in kept_texts(session, handler)


def test_a_native_compaction_stays_where_the_provider_put_it() -> None:
    """Its answer follows it; our own summaries stand where the items that they replace stood."""
    session = counting()
    session.add_response({"role": "assistant", "content": [BLOCK, {"type": "text", "text": "Eleven."}]})
    session.add_message("user", "Next?")
    view = manager().process_session(session)
    assert [item.type for item in view.items][-4:] == ["message", "compaction", "message", "message"]
    assert to_anthropic(view).messages[-2]["content"] == [BLOCK, {"type": "text", "text": "Eleven."}]


def test_a_message_that_openai_returns_changed_is_appended() -> None:
    session = counting()
    added = session.add_response(
        {"object": "response.compaction", "output": [{"role": "user", "content": "other"}, {"id": "cmp_1", **SEALED_ITEM}]}
    )
    assert [item.type for item in added] == ["message", "compaction"]


def test_compactions_are_valid_in_every_format() -> None:
    for answer in (
        {"role": "assistant", "content": [BLOCK, {"type": "text", "text": "Eleven."}]},
        {"object": "response", "output": [{"id": "cmp_1", **SEALED_ITEM}, {"type": "message", "role": "assistant", "content": "Eleven."}]},
    ):
        session = counting()
        session.add_response(answer)
        session.add_message("user", "Next?")
        for log in (session, manager().process_session(session)):
            assert validate_anthropic(to_anthropic(log)) == []
            assert validate_openai_chat(chat := to_openai_chat(log)) == []
            assert validate_openai_responses(to_openai_responses(log)) == []
            assert validate_google(to_google(log)) == []
            assert any(text in str(chat) for text in (str(BLOCK["content"]), SEALED))


def test_a_second_compaction_replaces_the_first() -> None:
    session = counting()
    for number in (1, 2):
        session.add_response(
            {"role": "assistant", "content": [{**BLOCK, "content": f"Summary {number}."}, {"type": "text", "text": "Yes."}]}
        )
        session.add_message("user", "Next?")
    view = manager().process_session(session)
    assert [item.summary for item in view.items if isinstance(item, Compaction)] == ["Summary 2."]


def test_a_sealed_compaction_is_not_summarised_and_costs_tokens() -> None:
    """No other model can read it, so no other summary can stand for it."""
    session = counting()
    session.add_response({"object": "response", "output": [{"id": "cmp_1", **SEALED_ITEM}, {"role": "assistant", "content": "Eleven."}]})
    for number in range(6):
        session.add_message("user", f"question {number} " * 20)
        session.add_message("assistant", "It is so. " * 20)
    session.add_message("user", "Next?")

    async def summarise(_: str) -> str:
        return "They went on."

    handler = ContextWindowManager(token_counter=Letters(), context_window=ContextWindow(max_tokens=100_000, keep_recent_turns=1))
    compaction = asyncio.run(handler.compact(session, summarise))
    assert compaction is not None
    sealed = next(item for item in session.items if isinstance(item, Compaction))
    assert sealed.id not in compaction.replaces
    without = Session(item for item in session.items if item is not sealed)
    assert handler.get_token_usage(session)["total"] > handler.get_token_usage(without)["total"] + 30
