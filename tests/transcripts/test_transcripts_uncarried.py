"""Values that no session can hold: each is left out with a note in the account, and the rest of the file is read."""

from __future__ import annotations

import inspect
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from session.transcripts import TranscriptAccount, read_account
from session.transcripts.source import CUT_OFF, DEPTH_MAX, TOO_DEEP, TOO_LONG, UNREADABLE, parse
from tests.fuzz.checks import check_account, check_session
from tests.fuzz.mutations import containers
from tests.fuzz.seeds import Seed, seeds
from tests.support.claude_lines import Log
from tests.support.list_logs import assistant, user

LOGS = [seed for seed in seeds(recorded=False) if seed.reader == "file" and seed.layout != "text" and seed.name != "session_json"]
LOGS_BY_NAME = {seed.name: seed for seed in LOGS}
every_log = pytest.mark.parametrize("seed", LOGS, ids=lambda seed: f"{seed.name}-{seed.layout}")


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def text_of(seed: Seed, value: Any) -> str:
    return json.dumps(value) if seed.layout == "document" else "\n".join(map(json.dumps, value)) + "\n"


def read(folder: Path, text: str, layout: str = "document") -> TranscriptAccount:
    path = folder / ("log.json" if layout == "document" else "log.jsonl")
    path.write_text(text, "utf-8")
    account = read_account(path)
    check_account(account, path.read_bytes())
    for session in account.sessions:
        check_session(session)
    return account


def types(account: TranscriptAccount) -> list[list[str]]:
    return [[item.type for item in session.items] for session in account.sessions]


def usages(account: TranscriptAccount) -> list[Any]:
    return [[session.metadata.get("usage"), *(item.usage for item in session.items)] for session in account.sessions]


def problems(account: TranscriptAccount) -> set[str]:
    warnings = [warning for session in account.sessions for warning in session.metadata["warnings"]]
    return {*warnings, *(record.reason for record in account.lines)}


def with_each_number(seed: Seed, number: int) -> Iterator[Any]:
    """Yield the log once for each number in it, with that number replaced."""
    value = seed.value()
    for holder in containers(value):
        for key, member in list(holder.items() if isinstance(holder, dict) else enumerate(holder)):
            is_number = isinstance(member, int | float) and not isinstance(member, bool)
            if is_number and key != "num_turns":  # a rollback of too many turns removes them all
                holder[key] = number
                yield value
                holder[key] = member


@every_log
@pytest.mark.parametrize("number", [2**64, 10**700], ids=["2**64", "10**700"])
def test_an_absurd_number_of_tokens_costs_only_the_report(tmp_path: Path, seed: Seed, number: int) -> None:
    """A bad value is noted in the account, and the rest is read."""
    intact = read(tmp_path, text_of(seed, seed.value()), seed.layout)
    for value in with_each_number(seed, number):
        account = read(tmp_path, text_of(seed, value), seed.layout)
        if types(account) != types(intact) or usages(account) != usages(intact):
            assert problems(account) - problems(intact)
        assert sum(map(len, types(account))) >= sum(map(len, types(intact))) - 1  # a compaction with an absurd figure is lost


@every_log
@pytest.mark.parametrize("depth", [120, pytest.param(10_000, marks=pytest.mark.long)])
def test_deep_values_in_unread_fields_cost_only_themselves(tmp_path: Path, seed: Seed, depth: int) -> None:
    intact = read(tmp_path, text_of(seed, seed.value()), seed.layout)
    value = seed.value()
    for holder in value if seed.layout == "lines" else containers(value):
        if isinstance(holder, dict):
            holder["zz"] = "\x01"
    text = text_of(seed, value).replace(json.dumps("\x01"), "[" * depth + "]" * depth)
    account = read(tmp_path, text, seed.layout)
    assert types(account) == types(intact)
    if parse("[" * depth + "]" * depth)[1] is not None:  # newer Pythons accept more
        assert any(TOO_DEEP in problem for problem in problems(account))


REQUEST = {"model": "m", "messages": [user("hi"), assistant("hello")], "temperature": 1}


@pytest.mark.parametrize("number", [2**63, 10**700], ids=["2**63", "10**700"])
@pytest.mark.parametrize("beside", [{}, {"response": {"role": "assistant", "content": "bye"}}], ids=["no answer", "answer"])
def test_a_list_keeps_its_messages_if_the_usage_is_absurd(tmp_path: Path, number: int, beside: dict[str, Any]) -> None:
    account = read(tmp_path, json.dumps({**REQUEST, **beside, "usage": {"input_tokens": number, "output_tokens": 1}}))
    (session,) = account.sessions
    assert [item.text for item in session.messages()] == ["hi", "hello", *(["bye"] if beside else [])]
    assert "usage" not in session.metadata
    assert all(item.usage is None for item in session.items)
    assert "left out the usage" in account.lines[-1].reason
    assert "left out the usage" in session.metadata["warnings"][0]


def test_a_list_keeps_its_other_settings_if_one_is_nested_too_deeply(tmp_path: Path) -> None:
    account = read(tmp_path, json.dumps({**REQUEST, "format": nested(120), "stop": ["x"], "seed": 10**700}))
    (session,) = account.sessions
    assert session.metadata["options"] == {"model": "m", "temperature": 1, "stop": ["x"]}
    assert session.metadata["warnings"] == [
        "left out metadata.options.format: nested deeper than 100 levels",
        "left out metadata.options.seed: an integer of 2326 bits is too large to be saved as JSON; pass it as a text",
    ]
    assert "metadata.options.format" in account.lines[0].reason


def test_an_invalid_tool_definition_costs_only_itself(tmp_path: Path) -> None:
    (session,) = read(tmp_path, json.dumps({**REQUEST, "tools": [{"name": "a"}, {"name": "b", "x": nested(98)}, {"name": "c"}]})).sessions
    assert [tool["name"] for tool in session.metadata["tools"]] == ["a", "c"]
    assert session.metadata["warnings"] == ["left out metadata.tools[1]: nested deeper than 100 levels"]


def test_names_that_collide_after_cleaning_cost_their_object(tmp_path: Path) -> None:
    (session,) = read(tmp_path, json.dumps({**REQUEST, "a": json.loads('{"\\ud800": 1, "\\udfff": 2}'), "b": 1})).sessions
    assert session.metadata["options"] == {"model": "m", "temperature": 1, "b": 1}
    assert "metadata.options.a" in session.metadata["warnings"][0]


def test_a_line_with_a_deep_value_keeps_the_rest(tmp_path: Path) -> None:
    log = Log()
    log.user("one")
    log.user("two")
    first, second = log.lines
    deep = second.replace("{", '{"x":' + "[" * 200_000 + "]" * 200_000 + ",", 1)
    account = read(tmp_path, f"{first}\n{deep}\n", "lines")
    assert [message.text for message in account.sessions[0].messages()] == ["one", "two"]
    assert account.lines[1].reason == TOO_DEEP
    cut = read(tmp_path, f"{first}\n{deep}", "lines")
    assert cut.lines == account.lines  # complete, though there is no line end yet
    broken = read(tmp_path, f"{first}\n{deep[:-1]}", "lines")
    assert (broken.lines[1].fate, broken.lines[1].reason) == ("damaged", CUT_OFF)


def test_an_integer_too_long_for_python_is_read_as_text_with_a_note(tmp_path: Path) -> None:
    text = json.dumps({**REQUEST, "seed": 0, "usage": {"input_tokens": 0}}).replace(" 0", " " + "9" * 5_000)
    account = read(tmp_path, text)
    assert account.sessions[0].metadata["options"]["seed"] == "9" * 5_000
    assert TOO_LONG in account.lines[0].reason
    assert TOO_LONG in account.sessions[0].metadata["warnings"]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(st.sampled_from('[]{}"\\,:a\n\u2028é'), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.sampled_from('[]{}"\\'), max_size=4), inner, max_size=3),
    max_leaves=10,
)


@given(before=JSON, after=JSON, depth=st.sampled_from([DEPTH_MAX, 50_000]))
def test_only_values_nested_too_deeply_are_left_out(before: Any, after: Any, depth: int) -> None:
    text = json.dumps([before, "\x01", {"a": 0}, after]).replace(json.dumps("\x01"), "[" * depth + "]" * depth)
    text = f"{text} {json.dumps(after)}"
    (value, second), problem = parse(text)
    assert isinstance(value, list)
    assert (value[0], value[2:]) == (before, [{"a": 0}, after])
    assert second == after
    assert problem == (TOO_DEEP if depth == 50_000 else None)


@pytest.mark.parametrize(
    "text", ['["' + '\\"' * 200_000, "[" * 400_000, '{"a":' * 200_000, "[" * 200_000 + '"\\', "[]" * 90_000 + "[" * 9_999]
)
def test_broken_deep_text_is_refused_in_linear_time(text: str) -> None:
    started = time.process_time()
    _, problem = parse(text)
    assert problem is not None
    assert time.process_time() - started < 5


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="there the JSON parser does not count the caller's frames")
def test_a_caller_deep_in_its_own_stack_gets_no_recursion_error() -> None:
    text = "[" * 150 + "]" * 150

    def at_depth(frames: int) -> object:
        return parse(text) if frames == 0 else at_depth(frames - 1)

    frames_in_use = len(inspect.stack())
    assert at_depth(sys.getrecursionlimit() - frames_in_use - 100) == ((), UNREADABLE)
    assert parse(text)[1] is None


def test_nesting_just_below_the_parsers_limit_raises_no_foreign_error(tmp_path: Path) -> None:
    """Comparing and printing a value needs as much stack as parsing it, but elsewhere in the program."""
    for depth in range(930, 1_000):
        deep = "[" * depth + "]" * depth
        message = f'{{"role":"assistant","content":{deep}}}'
        read(tmp_path, f'{{"messages":[{{"role":"user","content":"hi"}},{message}],"response":{message}}}')
        read(
            tmp_path, f'{{"messages":[{{"role":"user","content":"hi"}},{{"role":"assistant","content":"a"}}],"info":{{"version":{deep}}}}}'
        )


def test_a_block_with_an_invalid_type_costs_only_itself(tmp_path: Path) -> None:
    for depth in (1, 400, 900, 970):
        blocks = f'[{{"type":"text","text":"hi"}},{{"type":{"[" * depth + "]" * depth}}}]'
        log = Log()
        log.user("before")
        log.user([{"type": "marker"}])
        claude = "\n".join(log.lines).replace('[{"type": "marker"}]', blocks).replace('[{"type":"marker"}]', blocks)
        codex = (
            json.dumps(LOGS_BY_NAME["codex"].value()[0])
            + f"""
{{"timestamp":"2026-01-01T00:00:00Z","type":"response_item","payload":{{"type":"message","role":"user","content":{blocks}}}}}"""
        )
        pi = (
            json.dumps(LOGS_BY_NAME["pi"].value()[0])
            + f"""
{{"timestamp":"2026-01-01T00:00:00Z","type":"message","id":"9","message":{{"role":"user","content":{blocks}}}}}"""
        )
        for text in (claude, codex, pi):
            (session,) = read(tmp_path, text, "lines").sessions
            assert session.messages()[-1].text == "hi"


def test_ids_that_collide_after_cleaning_are_made_unique(tmp_path: Path) -> None:
    log = Log()
    log.user("one")
    log.user("two")
    first, second = map(json.loads, log.lines)
    lines = [json.dumps({**first, "uuid": "\ud800"}), json.dumps({**second, "uuid": "\udfff", "parentUuid": "\ud800"})]
    account = read(tmp_path, "\n".join(lines), "lines")
    assert [message.text for session in account.sessions for message in session.messages()] == ["one", "two"]
