"""The conversion methods of `Session`: each equals the function of its provider's package, and one session works with all of them."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from session import FormatError, FunctionCall, FunctionCallOutput, Message, Reasoning, Session
from session.providers import Violation, validate_anthropic, validate_google, validate_openai_chat, validate_openai_responses
from session.providers.google import to_google
from session.providers.openai_chat import to_openai_chat
from session.providers.openai_responses import to_openai_responses


def coding() -> Session:
    return Session(
        [
            Message("system", "You are terse.", id="s"),
            Message("user", "What is in main.py?", id="u"),
            Message("assistant", "I look.", id="a"),
            FunctionCall("read_file", '{"path": "main.py"}', "call_1", id="c"),
            FunctionCallOutput("read_file", "print('hello')", "call_1", id="o"),
            Message("assistant", "A greeting.", id="b"),
        ],
        id="session",
    )


def comparable(session: Session) -> list[tuple[str, object]]:
    """Return the contents of a session, without the ids and times that no payload holds."""
    rows: list[tuple[str, object]] = []
    for item in session.items:
        if isinstance(item, Message):
            rows.append((item.role, item.text))
        elif isinstance(item, FunctionCall):
            rows.append((item.type, (item.name, item.arguments, item.call_id)))
        elif isinstance(item, FunctionCallOutput):
            rows.append((item.type, (item.text, item.call_id)))
    return rows


def anthropic(session: Session) -> Session:
    return Session.from_anthropic(*session.to_anthropic_messages())


def google(session: Session) -> Session:
    return Session.from_google(*asyncio.run(session.to_google_contents()))


BACK: dict[str, Callable[[Session], Session]] = {
    "anthropic": anthropic,
    "openai": lambda session: Session.from_openai(session.to_openai_messages()),
    "openai-responses": lambda session: Session.from_openai_responses(session.to_openai_responses()),
    "google": google,
}

VALID: dict[str, Callable[[Session], list[Violation]]] = {
    "anthropic": lambda session: validate_anthropic(session.to_anthropic_messages()),
    "openai": lambda session: validate_openai_chat(session.to_openai_messages()),
    "openai-responses": lambda session: validate_openai_responses(session.to_openai_responses()),
    "google": lambda session: validate_google(asyncio.run(session.to_google_contents())),
}


@pytest.mark.parametrize("name", BACK)
def test_every_conversion_has_an_inverse(name: str) -> None:
    session = coding()
    assert comparable(BACK[name](session)) == comparable(session)
    assert comparable(BACK[name](session.read_only())) == comparable(session)


def test_the_methods_are_the_functions() -> None:
    session = coding()
    assert session.to_openai_messages() == to_openai_chat(session)
    assert session.to_openai_messages(reasoning_model=True) == to_openai_chat(session, reasoning_model=True)
    assert session.to_openai_messages(reasoning_model=True) != session.to_openai_messages()
    assert session.to_openai_responses() == to_openai_responses(session)
    signatures = {"call_1": b"signed"}
    contents = asyncio.run(session.to_google_contents(thought_signatures=signatures))
    assert contents == to_google(session, thought_signatures=signatures)
    assert contents != to_google(session)


def test_a_conversion_reads_the_log_at_the_time_of_the_call() -> None:
    session = coding()
    expected = to_google(session)

    async def converted_while_it_grows() -> object:
        conversion = asyncio.ensure_future(session.to_google_contents())
        await asyncio.sleep(0)
        session.add_message("user", "more")
        session.pin("u")
        return await conversion

    assert asyncio.run(converted_while_it_grows()) == expected


def test_a_view_whose_list_has_grown_is_converted_without_the_new_items() -> None:
    """Views share one list that later views extend. An earlier view must not show the new items."""
    shared = list(coding().items)
    view = Session.showing(coding(), shared, breaks=frozenset(), settled=0)
    expected = google(view), view.to_openai_messages(), view.to_anthropic_messages(), view.to_openai_responses()
    shared.append(Message("user", "Later."))
    assert comparable(google(view)) == comparable(google(view.read_only())) == comparable(expected[0])
    assert (view.to_openai_messages(), view.to_anthropic_messages(), view.to_openai_responses()) == expected[1:]


@pytest.mark.parametrize("reader", [Session.from_anthropic, Session.from_openai, Session.from_openai_responses, Session.from_google])
def test_a_value_that_is_not_a_payload_is_refused(reader: Callable[[Any], Session]) -> None:
    with pytest.raises(FormatError):
        reader([{"role": 5}])


def test_a_session_can_change_its_provider_midway() -> None:
    session = Session([Message("system", "Be brief."), Message("user", "go")])
    thoughts: list[dict[str, Any]] = [{"signature": "c2lnbmVk"}, {"data": "sealed"}, {}]
    for number in range(9):
        session.append(Reasoning("let me see", **thoughts[number % 3]))
        call = session.add_function_call("read", {"n": number})
        for name, violations in VALID.items():
            assert violations(session.fork()) == [], name  # while its output is missing
        session.add_function_output("read", f"{number}", call.call_id)
        for name, violations in VALID.items():
            assert violations(session) == [], name


def test_forked_filtered_truncated_and_summarized_sessions_are_valid_everywhere() -> None:
    async def llm(prompt: str) -> str:
        return "they talked"

    session = Session([Message("system", "Be brief.")])
    for number in range(8):
        session.add_message("user", f"question {number}")
        session.append(Reasoning("hm", signature="c2lnbmVk"))
        call = session.add_function_call("read" if number % 2 else "write", {"n": number})
        session.add_function_output(call.name, "x" * 50, call.call_id)
        session.add_message("assistant", f"answer {number}")
    child = session.fork_brief("Test it.", "now", recent_turns=2)
    child.add_message("assistant", "tested")
    payloads = {
        "copy": session.copy(tools=["read"]),
        "filtered": session.fork_filtered(2, tools=["write"]),
        "brief": child,
        "truncated": session.fork().truncate(max_items=9),
        "summarized": asyncio.run(session.fork().summarize(llm)),
        "merged": asyncio.run(session.fork().merge(child)),
        "result": asyncio.run(session.fork().merge_result(child)),
        "summary": asyncio.run(session.fork().merge_with_summary(child, llm=llm)),
    }
    for payload in payloads.values():
        payload.add_message("user", "and then?")
    assert {
        (name, wire): violations(payload) for name, payload in payloads.items() for wire, violations in VALID.items() if violations(payload)
    } == {}
