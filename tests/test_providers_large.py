"""Messages of very many blocks are read and judged in a time that grows with their number, and endless nesting is no crash."""

import time
from collections.abc import Callable
from itertools import chain
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session import Document, FormatError, Session
from session.providers import validate_anthropic, validate_google, validate_openai_chat, validate_openai_responses
from session.providers.anthropic.blocks import CARRIED
from session.providers.anthropic.read import _ends

SECONDS = 2
"""Of one core, four times what the slowest takes; what was quadratic took five to some hundreds."""


def anthropic_calls(many: int) -> list[dict[str, Any]]:
    calls = [{"type": "tool_use", "id": f"c{n}", "name": "f", "input": {}} for n in range(many)]
    results = [{"type": "tool_result", "tool_use_id": f"c{n}", "content": "x"} for n in range(many)]
    return [{"role": "user", "content": "a"}, {"role": "assistant", "content": calls}, {"role": "user", "content": results}]


def server_call(name: str) -> dict[str, Any]:
    return {"type": "server_tool_use", "id": name, "name": "web_search", "input": {}}


def server_result(name: str) -> dict[str, Any]:
    return {"type": "web_search_tool_result", "tool_use_id": name, "content": []}


THOUGHT = {"type": "thinking", "thinking": "a", "signature": "s"}


def answered_by_the_server(many: int, *, apart: bool, thought: bool) -> list[dict[str, Any]]:
    calls, results = ([make(f"s{n}") for n in range(many)] for make in (server_call, server_result))
    blocks = [*calls, *([THOUGHT] if thought else []), *results] if apart else list(chain.from_iterable(zip(calls, results, strict=True)))
    return [{"role": "user", "content": "a"}, {"role": "assistant", "content": blocks}]


def chat_calls(many: int) -> list[dict[str, Any]]:
    calls = [{"id": f"c{n}", "type": "function", "function": {"name": "f", "arguments": "{}"}} for n in range(many)]
    results = [{"role": "tool", "tool_call_id": f"c{n}", "content": "x"} for n in reversed(range(many))]
    return [{"role": "assistant", "content": None, "tool_calls": calls}, *results]


def responses_calls(many: int) -> list[dict[str, Any]]:
    calls = [{"type": "function_call", "call_id": f"c{n}", "name": "f", "arguments": "{}"} for n in range(many)]
    return [*calls, *({"type": "function_call_output", "call_id": f"c{n}", "output": "x"} for n in reversed(range(many)))]


def google_calls(many: int) -> list[dict[str, Any]]:
    calls = [{"function_call": {"id": f"c{n}", "name": "f", "args": {}}} for n in range(many)]
    answers = [{"function_response": {"id": f"c{n}", "name": "f", "response": {"output": "x"}}} for n in range(many)]
    return [{"role": "model", "parts": calls}, {"role": "user", "parts": answers}]


LARGE: dict[str, tuple[Callable[[Any], object], Any]] = {
    "Anthropic's calls are judged": (validate_anthropic, (anthropic_calls(24_000), None)),
    "Anthropic's calls are read": (Session.from_anthropic, anthropic_calls(6_000)),
    "calls that a server answers at once are read": (Session.from_anthropic, answered_by_the_server(4_000, apart=False, thought=False)),
    "calls that a server answers at last are read": (Session.from_anthropic, answered_by_the_server(4_000, apart=True, thought=False)),
    "the same with a thought between are read": (Session.from_anthropic, answered_by_the_server(4_000, apart=True, thought=True)),
    "OpenAI's calls are judged": (validate_openai_chat, chat_calls(24_000)),
    "OpenAI's calls are read": (Session.from_openai, chat_calls(6_000)),
    "items are judged": (validate_openai_responses, responses_calls(12_000)),
    "items are read": (Session.from_openai_responses, responses_calls(6_000)),
    "Gemini's calls are judged": (validate_google, (google_calls(12_000), None)),
    "Gemini's calls are read": (Session.from_google, google_calls(12_000)),
}


@pytest.mark.no_cover  # what is measured is time
@pytest.mark.parametrize("name", LARGE)
def test_very_many_are_no_matter(name: str) -> None:
    work, payload = LARGE[name]
    begun = time.process_time()
    work(payload)
    assert time.process_time() - begun < SECONDS


def test_only_what_goes_together_is_carried_together() -> None:
    blocks = [server_call("a"), server_call("b"), server_result("a"), server_call("c"), THOUGHT, server_result("c"), server_result("b")]
    session = Session.from_anthropic([{"role": "assistant", "content": [*blocks, server_call("d"), server_result("d")]}])
    assert [len(item.extra.get(CARRIED, ())) for item in session.items] == [1, 1, 1, 1, 0, 1, 1, 2]


def obvious_end(blocks: list[dict[str, Any]], first: int) -> int:
    """What goes with a block, told by taking in one after the other until nothing is missing."""
    last, grown = first, True
    while grown:
        asked = [block["id"] for block in blocks[first : last + 1] if "id" in block]
        answers = [place for place, block in enumerate(blocks) if block.get("tool_use_id") in asked]
        grown, last = max([last, *answers]) > last, max([last, *answers])
    return first if THOUGHT in blocks[first : last + 1] else last


@given(st.lists(st.tuples(st.sampled_from("crrct"), st.sampled_from("abcde"))), st.integers(0, 12))
def test_what_goes_together_is_what_it_obviously_is(drawn: list[tuple[str, str]], thought: int) -> None:
    makes: dict[str, Callable[[str], dict[str, Any]]] = {
        "c": server_call,
        "r": server_result,
        "t": lambda text: {"type": "text", "text": text},
    }
    blocks = [makes[kind](name) for kind, name in drawn]
    blocks.insert(thought, THOUGHT)
    found = _ends([(str(place), block) for place, block in enumerate(blocks)], "assistant")
    assert found == [obvious_end(blocks, place) if "id" in block else place for place, block in enumerate(blocks)]


def nested(wrap: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    deep = wrap(None)
    for _ in range(50_000):
        deep = wrap(deep)
    return deep


def taken_apart(deep: Any) -> None:
    """By hand: the interpreter's own way down would need as deep a stack."""
    waiting = [deep]
    while waiting:
        one = waiting.pop()
        waiting.extend(one.values() if isinstance(one, dict) else one if isinstance(one, list) else ())
        if isinstance(one, dict | list):
            one.clear()


def a_result(inside: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "a", "content": [inside] if inside else "x"}


def a_document(inside: Any) -> dict[str, Any]:
    return {"type": "document", "source": {"type": "content", "content": [inside] if inside else "x"}}


def test_results_within_results_are_a_violation_and_an_error_and_no_crash() -> None:
    deep = nested(a_result)
    found = validate_anthropic(([{"role": "user", "content": [deep]}], None))
    assert ("A0", "messages[0].content[0].content[0]") in {(violation.rule, violation.where) for violation in found}
    with pytest.raises(FormatError, match="nested deeper than 100 levels"):
        Session.from_anthropic([{"role": "user", "content": [deep]}])
    taken_apart(deep)


def test_documents_within_documents_are_left_out() -> None:
    deep = nested(a_document)
    deep["source"]["content"] += [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    (message,) = Session.from_anthropic([{"role": "user", "content": [deep]}]).messages()
    assert message.content == (Document(text="a\nb"),)
    taken_apart(deep)
