"""What each kind of line of Codex's logs becomes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from session import Compaction, FunctionCall, FunctionCallOutput, Image, Message, MessageCategory, Reasoning, Session, Text, Usage
from session.transcripts import read_account, read_transcript
from session.units import request_points
from tests.support.claude_lines import shape
from tests.support.tool_logs import (
    SECONDS,
    Json,
    codex,
    codex_call,
    codex_item,
    codex_output,
    codex_said,
    codex_tokens,
    fates,
    only,
    picture,
    some_codex,
    write_lines,
)

Read = Callable[..., Session]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    return lambda *records: only(write_lines(tmp_path, list(records)), "codex")


def first(session: Session) -> Compaction:
    return next(item for item in session.items if isinstance(item, Compaction))


def user(text: str) -> Json:
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def test_a_bit_of_everything(tmp_path: Path) -> None:
    session = only(write_lines(tmp_path, some_codex()), "codex")
    assert shape(session) == [
        "system:You are Codex.",
        "developer:be brief",
        "user:# AGENTS.md instructions for /p\n\nx",
        "user:<environment_context>x</environment_context>",
        "user:look",
        "thought:hm",
        "assistant:I will",
        "call:a",
        "output:a",
        "summary:So far.",
        "user:go on",
        "call:b",
        "output:b",
    ]
    assert session.id == "c-1"
    about = {"session_id": "c-1", "cwd": "/p", "version": "1.0", "model": "gpt-x"}
    assert about.items() <= session.metadata.items()
    assert session.metadata["source"] == {"format": "codex", "path": "log.jsonl"}


# What the user and Codex say


def test_what_codex_writes_in_the_users_role_is_context(read: Read) -> None:
    session = read(
        codex_said("user", "# AGENTS.md instructions for /p\n\nx", "<environment_context>x</environment_context>", "look"),
        codex_said("user", "<skill>\n<name>x</name>\n</skill>"),
        codex_said("user", "<turn_aborted>stop</turn_aborted>"),
    )
    told = [(item.category, item.extra.get("source")) for item in session.items]
    context = MessageCategory.CONTEXT
    assert told == [
        (context, "memory"),
        (context, "environment context"),
        (MessageCategory.DIALOG, None),
        (context, "skill"),
        (context, "interruption"),
    ]


def test_what_only_begins_like_a_note_of_codex_is_the_users(read: Read) -> None:
    session = read(codex_said("user", "<skill> what does this tag mean?"), codex_said("user", "<div>x</div>"))
    assert [item.category for item in session.items] == [MessageCategory.DIALOG] * 2


def test_images_keep_their_detail_and_files_that_are_not_there_are_said(tmp_path: Path) -> None:
    coded = f"data:image/png;base64,{picture()}"
    content = [
        {"type": "input_image", "image_url": coded, "detail": "high"},
        {"type": "input_image", "image_url": "https://example.org/x.png"},
        {"type": "input_image", "image_url": "file:///x.png"},
        {"type": "input_image", "image_url": "data:image/png;base64,???"},
        {"type": "hologram"},
    ]
    account = read_account(write_lines(tmp_path, [codex_item("message", role="user", content=content)]))
    item = account.sessions[0].items[0]
    assert isinstance(item, Message)
    here, there, damaged = item.content
    assert isinstance(here, Image)
    assert (here.width, here.detail, here.media_type) == (3, "high", "image/png")
    assert isinstance(there, Image)
    assert there.url == "https://example.org/x.png"
    assert isinstance(damaged, Text)
    assert "does not hold" in account.lines[0].reason
    assert "hologram" in account.lines[0].reason
    assert account.sessions[0].metadata["warnings"] == ["line 1: the data of an image is damaged"]


# Responses


def test_a_response_ends_with_its_usage_or_its_outputs(read: Read) -> None:
    session = read(
        codex_said("user", "look"),
        codex_said("assistant", "one"),
        codex_item("reasoning", encrypted_content="x", summary=[]),
        codex_call("a"),
        codex_call("b"),
        codex_output("b"),
        codex_output("a"),
        codex_tokens(1, input_tokens=5, cached_input_tokens=5, output_tokens=1),
        codex_said("assistant", "two"),
        codex_tokens(2, input_tokens=9, output_tokens=2),
        codex_said("assistant", "three"),
    )
    assert shape(session)[1:] == [
        "assistant:one",
        "thought:",
        "call:a",
        "call:b",
        "output:b",
        "output:a",
        "assistant:two",
        "assistant:three",
    ]
    assert request_points(session) == [1, 7, 8]
    assert [item.usage for item in session.items if item.usage] == [Usage(0, 5, 0, 1), Usage(9, 0, 0, 2)]
    assert session.items[1].usage == Usage(0, 5, 0, 1)


def test_a_repeated_report_counts_once_and_one_without_numbers_not_at_all(tmp_path: Path) -> None:
    usage = codex_tokens(4, input_tokens=3, output_tokens=1)
    nothing = codex("event_msg", type="token_count", info=None)
    records = [
        codex_said("user", "look"),
        nothing,
        codex_said("assistant", "so"),
        usage,
        usage,
        nothing,
        codex_said("assistant", "more"),
        usage,
    ]
    account = read_account(write_lines(tmp_path, records))
    assert [item.usage for item in account.sessions[0].items] == [None, Usage(3, 0, 0, 1), None]
    assert fates(account) == ["item", "not context", "item", "merged", "merged", "not context", "item", "merged"]


def test_reasoning_carries_its_sealed_content_and_who_sealed_it(read: Read) -> None:
    thought = codex_item("reasoning", id="rs_1", summary=[{"type": "summary_text", "text": "hm"}], encrypted_content="sealed")
    blacked_out = codex_item("reasoning", summary=[{"type": "summary_text", "text": "oh"}], encrypted_content="REDACTED")
    items = read(codex_said("user", "x"), thought, blacked_out).items
    assert [(item.text, item.data, item.extra, item.id) for item in items if isinstance(item, Reasoning)] == [
        ("hm", "sealed", {"provider": "openai"}, "rs_1"),
        ("oh", None, {"provider": "openai"}, "L3"),
    ]


def test_a_thought_of_which_nothing_is_left_is_no_item(tmp_path: Path) -> None:
    account = read_account(write_lines(tmp_path, [codex_said("user", "x"), codex_item("reasoning", summary=[])]))
    assert fates(account) == ["item", "not context"]


# Calls


def test_tools_of_every_kind_are_calls_with_their_arguments_as_the_model_wrote_them(read: Read) -> None:
    session = read(
        codex_said("user", "x"),
        codex_item("custom_tool_call", call_id="p", name="apply_patch", input='*** "x"'),
        codex_item("local_shell_call", call_id="s", action={"type": "exec", "command": ["ls"]}),
        codex_item("tool_search_call", call_id="t", arguments={"query": "q"}),
        codex_item("custom_tool_call_output", call_id="p", output="ok"),
        codex_item("tool_search_output", call_id="t", tools=[{"name": "n"}]),
    )
    calls = [item for item in session.items if isinstance(item, FunctionCall)]
    assert [(call.name, call.arguments, call.metadata) for call in calls] == [
        ("apply_patch", '*** "x"', {"openai_type": "custom_tool_call"}),
        ("local_shell", '{"type":"exec","command":["ls"]}', {"type": "local_shell_call"}),
        ("tool_search", '{"query":"q"}', {"type": "tool_search_call"}),
    ]
    outputs = [item for item in session.items if isinstance(item, FunctionCallOutput)]
    assert [(output.name, output.text) for output in outputs] == [("apply_patch", "ok"), ("tool_search", '[{"name":"n"}]')]


def test_a_search_by_the_provider_is_answered_without_ending_the_response(read: Read) -> None:
    search = codex_item("web_search_call", status="completed", action={"type": "search", "query": "q"})
    session = read(codex_said("user", "x"), codex_said("assistant", "I look"), search, codex_said("assistant", "found"))
    assert shape(session)[1:] == ["assistant:I look", "call:call-L3", "assistant:found", "output:call-L3"]
    assert request_points(session) == [1, 5]


def test_pictures_by_the_provider_are_outputs(read: Read) -> None:
    made = codex_item("image_generation_call", id="ig_1", status="completed", revised_prompt="a cat", result=picture())
    output = read(codex_said("user", "x"), made).items[2]
    assert isinstance(output, FunctionCallOutput)
    assert isinstance(output.output[0], Image)


def test_outputs_come_as_texts_as_parts_and_as_the_older_object(read: Read) -> None:
    coded = f"data:image/png;base64,{picture()}"
    session = read(
        codex_said("user", "x"),
        *(codex_call(name) for name in "abc"),
        codex_output("a", "one"),
        codex_output("b", [{"type": "input_text", "text": "two"}, {"type": "input_image", "image_url": coded}]),
        codex_output("c", {"content": "three", "success": False}),
    )
    outputs = [item for item in session.items if isinstance(item, FunctionCallOutput)]
    assert [(output.text, len(output.output), output.is_error) for output in outputs] == [
        ("one", 1, False),
        ("two", 2, False),
        ("three", 1, True),
    ]


def test_call_ids_that_repeat_or_are_blacked_out_are_made_unique(read: Read) -> None:
    session = read(
        codex_said("user", "x"),
        *(codex_call("a"), codex_output("a", "1"), codex_call("a"), codex_output("a", "2")),
        *(codex_call("REDACTED"), codex_call("REDACTED"), codex_output("REDACTED", "3"), codex_output("REDACTED", "4")),
    )
    ids = [item.call_id for item in session.items if isinstance(item, FunctionCall)]
    assert len(set(ids)) == 4
    assert [item.text for item in session.items if isinstance(item, FunctionCallOutput)] == ["1", "2", "3", "4"]
    assert [item.call_id for item in session.items if isinstance(item, FunctionCallOutput)] == ids


def test_a_second_answer_to_a_call_is_merged(tmp_path: Path) -> None:
    account = read_account(write_lines(tmp_path, [codex_said("user", "x"), codex_call("a"), codex_output("a"), codex_output("a")]))
    assert fates(account) == ["item", "item", "item", "merged"]


# Turns rolled back


def test_turns_rolled_back_are_out_and_say_so(tmp_path: Path) -> None:
    records = [
        *(codex_said("user", "one"), codex_said("assistant", "1")),
        *(codex_said("user", "two"), codex_call("a"), codex_output("a"), codex_said("assistant", "2")),
        *(codex_said("user", "three"), codex_said("assistant", "3")),
        codex("event_msg", type="thread_rolled_back", num_turns=2),
        *(codex_said("user", "four"), codex_said("assistant", "4")),
    ]
    account = read_account(write_lines(tmp_path, records))
    assert shape(account.sessions[0]) == ["user:one", "assistant:1", "user:four", "assistant:4"]
    assert {line.reason for line in account.lines[2:8]} == {"rolled back on line 9"}
    assert fates(account)[2:8] == ["not context"] * 6


@pytest.mark.parametrize("count", [99, 10**30])
def test_more_turns_than_there_are_is_all_of_them(read: Read, count: int) -> None:
    records = [codex_said("developer", "d"), codex_said("user", "one"), codex("event_msg", type="thread_rolled_back", num_turns=count)]
    assert shape(read(*records)) == ["developer:d"]


@pytest.mark.parametrize("count", [0, -1, None, "2", True])
def test_no_turns_is_none_of_them(read: Read, count: object) -> None:
    assert shape(read(codex_said("user", "one"), codex("event_msg", type="thread_rolled_back", num_turns=count))) == ["user:one"]


def test_a_rollback_takes_a_compaction_back_too(read: Read) -> None:
    session = read(
        codex_said("user", "one"),
        codex_said("user", "two"),
        codex("compacted", message="sum", replacement_history=[]),
        codex("event_msg", type="thread_rolled_back", num_turns=1),
    )
    assert shape(session) == ["user:one"]


# Compactions


def test_a_compaction_replaces_all_that_its_history_has_not(read: Read) -> None:
    session = read(
        codex("session_meta", id="c", base_instructions={"text": "base"}),
        codex_said("developer", "dev"),
        codex_said("user", "yes"),
        codex_said("user", "yes"),
        codex_said("assistant", "done"),
        *(codex_call("a"), codex_output("a")),
        codex("compacted", message="PREFIX sum", replacement_history=[user("yes"), user("PREFIX sum"), user("<skill>new</skill>")]),
        codex_said("user", "next"),
    )
    assert shape(session)[-3:] == ["summary:PREFIX sum", "user:<skill>new</skill>", "user:next"]
    gone = {item.id for item in session.items[4:7]} | {session.items[2].id}
    assert set(first(session).replaces) == gone
    assert first(session).extra == {"source": "compaction"}


def test_what_only_the_history_has_stands_before_the_summary_and_is_not_replaced(read: Read) -> None:
    history = [user("a shortened prompt"), {"type": "compaction", "encrypted_content": "sealed"}]
    session = read(codex_said("user", "a long prompt"), codex("compacted", message="", replacement_history=history))
    assert [item.type for item in session.items] == ["message", "message", "compaction"]
    assert first(session).replaces == (session.items[0].id,)
    assert first(session).extra["data"] == "sealed"
    assert first(session).summary.startswith("(The summary")


def test_a_second_compaction_replaces_the_first_and_nothing_twice(read: Read) -> None:
    session = read(
        codex_said("user", "one"),
        codex_said("assistant", "1"),
        codex("compacted", message="sum 1", replacement_history=[user("one"), user("sum 1")]),
        codex_said("assistant", "2"),
        codex("compacted", message="sum 2", replacement_history=[user("one"), user("sum 2")]),
    )
    summaries = [item for item in session.items if isinstance(item, Compaction)]
    assert shape(session) == ["user:one", "assistant:1", "summary:sum 1", "assistant:2", "summary:sum 2"]
    assert summaries[1].replaces == (summaries[0].id, session.items[3].id)


def test_without_a_history_the_latest_prompts_and_the_environment_stay(read: Read) -> None:
    session = read(
        codex_said("user", "<environment_context>x</environment_context>"),
        codex_said("user", "a" * 70_000),
        codex_said("user", "b" * 20_000),
        codex_said("assistant", "c"),
        codex("compacted", message="sum"),
    )
    assert first(session).replaces == (session.items[1].id, session.items[3].id)


def test_the_view_after_a_compaction_is_what_the_model_saw(read: Read) -> None:
    session = read(
        codex_said("user", "one"),
        codex_said("assistant", "1"),
        codex("compacted", message="sum", replacement_history=[user("one"), user("sum")]),
        codex_said("user", "two"),
    )
    replaced = first(session).replaces
    assert [item.id for item in session.items if item.id not in replaced] == [session.items[0].id, first(session).id, session.items[3].id]


def test_usage_after_a_compaction_goes_to_no_response(tmp_path: Path) -> None:
    records = [
        *(codex_said("user", "one"), codex_said("assistant", "1"), codex_tokens(5, input_tokens=4, output_tokens=1)),
        codex("compacted", message="sum", replacement_history=[]),
        codex_tokens(7, input_tokens=2, output_tokens=0),
    ]
    account = read_account(write_lines(tmp_path, records))
    assert [item.usage for item in account.sessions[0].items if item.usage] == [Usage(4, 0, 0, 1)]
    assert account.lines[4].fate == "not context"


# Hostile


def test_times_that_are_missing_or_no_times_are_those_before(read: Read) -> None:
    times: list[object] = [None, "soon", 7, [], {}]
    records: list[Json] = [{**codex_said("user", str(number)), "timestamp": time} for number, time in enumerate(times)]
    session = read(codex_said("user", "x", minute=1), *records)
    assert {item.created_at for item in session.items} == {SECONDS + 60}


@pytest.mark.parametrize("payload", [None, 1, "x", []])
def test_a_payload_of_another_kind_costs_its_line(tmp_path: Path, payload: object) -> None:
    account = read_account(write_lines(tmp_path, [codex_said("user", "x"), {"type": "response_item", "payload": payload}]))
    assert fates(account) == ["item", "damaged"]


def test_a_fork_tells_of_its_origin_once(tmp_path: Path) -> None:
    metas = [codex("session_meta", id="new", forked_from_id="old"), codex("session_meta", id="old", source={"subagent": "x"})]
    session = read_transcript(write_lines(tmp_path, [*metas, codex_said("user", "x")]))
    assert (session.id, session.metadata["forked_from"]) == ("new", "old")
    assert "sidechain" not in session.metadata


def test_reading_twice_gives_the_same(tmp_path: Path) -> None:
    path = write_lines(tmp_path, some_codex())
    assert read_transcript(path).to_dict() == read_transcript(path).to_dict()
