"""Messages of very many blocks are read and validated in linear time, and endless nesting does not crash."""

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
from session.providers.anthropic.read import _group_ends

SECONDS = 2
"""Seconds of one core: four times the slowest case. Quadratic versions took five to several hundred."""


def anthropic_calls(many: int) -> list[dict[str, Any]]:
    calls = [{"type": "tool_use", "id": f"c{n}", "name": "f", "input": {}} for n in range(many)]
    results = [{"type": "tool_result", "tool_use_id": f"c{n}", "content": "x"} for n in range(many)]
    return [{"role": "user", "content": "a"}, {"role": "assistant", "content": calls}, {"role": "user", "content": results}]


def server_call(name: str) -> dict[str, Any]:
    return {"type": "server_tool_use", "id": name, "name": "web_search", "input": {}}


def server_result(name: str) -> dict[str, Any]:
    return {"type": "web_search_tool_result", "tool_use_id": name, "content": []}


THOUGHT = {"type": "thinking", "thinking": "a", "signature": "s"}


def server_tool_blocks(many: int, *, apart: bool, thought: bool) -> list[dict[str, Any]]:
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
    "calls that a server answers at once are read": (Session.from_anthropic, server_tool_blocks(4_000, apart=False, thought=False)),
    "calls that a server answers at last are read": (Session.from_anthropic, server_tool_blocks(4_000, apart=True, thought=False)),
    "the same with a thought between are read": (Session.from_anthropic, server_tool_blocks(4_000, apart=True, thought=True)),
    "OpenAI's calls are judged": (validate_openai_chat, chat_calls(24_000)),
    "OpenAI's calls are read": (Session.from_openai, chat_calls(6_000)),
    "items are judged": (validate_openai_responses, responses_calls(12_000)),
    "items are read": (Session.from_openai_responses, responses_calls(6_000)),
    "Gemini's calls are judged": (validate_google, (google_calls(12_000), None)),
    "Gemini's calls are read": (Session.from_google, google_calls(12_000)),
}


@pytest.mark.no_cover  # measures time
@pytest.mark.parametrize("name", LARGE)
def test_time_grows_linearly_with_the_number_of_blocks(name: str) -> None:
    work, payload = LARGE[name]
    begun = time.process_time()
    work(payload)
    assert time.process_time() - begun < SECONDS


def test_only_groups_are_carried_together() -> None:
    blocks = [server_call("a"), server_call("b"), server_result("a"), server_call("c"), THOUGHT, server_result("c"), server_result("b")]
    session = Session.from_anthropic([{"role": "assistant", "content": [*blocks, server_call("d"), server_result("d")]}])
    assert [len(item.extra.get(CARRIED, ())) for item in session.items] == [1, 1, 1, 1, 0, 1, 1, 2]


def obvious_group_end(blocks: list[dict[str, Any]], first: int) -> int:
    """Return the end of a block's group, found by adding blocks until nothing is missing."""
    last, grown = first, True
    while grown:
        call_ids = [block["id"] for block in blocks[first : last + 1] if "id" in block]
        answers = [index for index, block in enumerate(blocks) if block.get("tool_use_id") in call_ids]
        grown, last = max([last, *answers]) > last, max([last, *answers])
    return first if THOUGHT in blocks[first : last + 1] else last


@given(st.lists(st.tuples(st.sampled_from("crrct"), st.sampled_from("abcde"))), st.integers(0, 12))
def test_groups_equal_an_obvious_search(drawn: list[tuple[str, str]], thought: int) -> None:
    makes: dict[str, Callable[[str], dict[str, Any]]] = {
        "c": server_call,
        "r": server_result,
        "t": lambda text: {"type": "text", "text": text},
    }
    blocks = [makes[kind](name) for kind, name in drawn]
    blocks.insert(thought, THOUGHT)
    outcome = _group_ends([(str(index), block) for index, block in enumerate(blocks)], "assistant")
    assert outcome == [obvious_group_end(blocks, index) if "id" in block else index for index, block in enumerate(blocks)]


def nested(wrap: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    deep = wrap(None)
    for _ in range(50_000):
        deep = wrap(deep)
    return deep


def take_apart(deep: Any) -> None:
    """Take a nested value apart by hand: the interpreter would need a stack as deep to free it."""
    pending = [deep]
    while pending:
        value = pending.pop()
        pending.extend(value.values() if isinstance(value, dict) else value if isinstance(value, list) else ())
        if isinstance(value, dict | list):
            value.clear()


def a_result(inside: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "a", "content": [inside] if inside else "x"}


def a_document(inside: Any) -> dict[str, Any]:
    return {"type": "document", "source": {"type": "content", "content": [inside] if inside else "x"}}


def test_nested_results_are_a_violation_and_an_error() -> None:
    deep = nested(a_result)
    outcome = validate_anthropic(([{"role": "user", "content": [deep]}], None))
    assert ("A0", "messages[0].content[0].content[0]") in {(violation.rule, violation.where) for violation in outcome}
    with pytest.raises(FormatError, match="nested deeper than 100 levels"):
        Session.from_anthropic([{"role": "user", "content": [deep]}])
    take_apart(deep)


def test_nested_documents_are_left_out() -> None:
    deep = nested(a_document)
    deep["source"]["content"] += [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    (message,) = Session.from_anthropic([{"role": "user", "content": [deep]}]).messages()
    assert message.content == (Document(text="a\nb"),)
    take_apart(deep)
