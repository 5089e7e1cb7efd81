"""Items made from each kind of line in Codex's logs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from context_window import ContextWindowManager
from context_window.cli.recorded_window import recorded_window
from session import Compaction, FunctionCall, FunctionCallOutput, Image, Message, MessageCategory, Reasoning, Session, Text, Usage
from session.providers.native_compaction import SEALED
from session.providers.openai_chat import to_openai_chat
from session.providers.openai_responses import to_openai_responses, validate_openai_responses
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


def compaction_of(session: Session) -> Compaction:
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


# Prompts and text of Codex


def test_text_of_codex_in_the_users_role_is_context(read: Read) -> None:
    session = read(
        codex_said("user", "# AGENTS.md instructions for /p\n\nx", "<environment_context>x</environment_context>", "look"),
        codex_said("user", "<skill>\n<name>x</name>\n</skill>"),
        codex_said("user", "<turn_aborted>stop</turn_aborted>"),
    )
    sources = [(item.category, item.extra.get("source")) for item in session.items]
    context = MessageCategory.CONTEXT
    assert sources == [
        (context, "memory"),
        (context, "environment context"),
        (MessageCategory.DIALOG, None),
        (context, "skill"),
        (context, "interruption"),
    ]


def test_text_that_only_begins_like_a_codex_note_is_the_users(read: Read) -> None:
    session = read(codex_said("user", "<skill> what does this tag mean?"), codex_said("user", "<div>x</div>"))
    assert [item.category for item in session.items] == [MessageCategory.DIALOG] * 2


def test_images_keep_their_detail_and_missing_files_are_noted(tmp_path: Path) -> None:
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
    embedded, linked, damaged = item.content
    assert isinstance(embedded, Image)
    assert (embedded.width, embedded.detail, embedded.media_type) == (3, "high", "image/png")
    assert isinstance(linked, Image)
    assert linked.url == "https://example.org/x.png"
    assert isinstance(damaged, Text)
    assert "does not hold" in account.lines[0].reason
    assert "hologram" in account.lines[0].reason
    first, *others = account.sessions[0].metadata["warnings"]
    assert first.startswith("not read in full: 1 of 1 records")
    assert others == ["line 1: the data of an image is damaged"]


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


def test_a_repeated_report_counts_once_and_an_empty_one_not_at_all(tmp_path: Path) -> None:
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


def test_reasoning_has_its_encrypted_content_and_provider(read: Read) -> None:
    thought = codex_item("reasoning", id="rs_1", summary=[{"type": "summary_text", "text": "hm"}], encrypted_content="sealed")
    blacked_out = codex_item("reasoning", summary=[{"type": "summary_text", "text": "oh"}], encrypted_content="REDACTED")
    items = read(codex_said("user", "x"), thought, blacked_out).items
    assert [(item.text, item.data, item.extra, item.id) for item in items if isinstance(item, Reasoning)] == [
        ("hm", "sealed", {"provider": "openai"}, "rs_1"),
        ("oh", None, {"provider": "openai"}, "L3"),
    ]


def test_reasoning_without_content_is_skipped(tmp_path: Path) -> None:
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


def test_a_provider_search_does_not_end_the_response(read: Read) -> None:
    search = codex_item("web_search_call", status="completed", action={"type": "search", "query": "q"})
    session = read(codex_said("user", "x"), codex_said("assistant", "I look"), search, codex_said("assistant", "found"))
    assert shape(session)[1:] == ["assistant:I look", "call:call-L3", "assistant:found", "output:call-L3"]
    assert request_points(session) == [1, 5]


def test_images_generated_by_the_provider_are_outputs(read: Read) -> None:
    generation = codex_item("image_generation_call", id="ig_1", status="completed", revised_prompt="a cat", result=picture())
    output = read(codex_said("user", "x"), generation).items[2]
    assert isinstance(output, FunctionCallOutput)
    assert isinstance(output.output[0], Image)


def test_outputs_may_be_texts_parts_or_older_objects(read: Read) -> None:
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


def test_repeated_or_redacted_call_ids_are_made_unique(read: Read) -> None:
    session = read(
        codex_said("user", "x"),
        *(codex_call("a"), codex_output("a", "1"), codex_call("a"), codex_output("a", "2")),
        *(codex_call("REDACTED"), codex_call("REDACTED"), codex_output("REDACTED", "3"), codex_output("REDACTED", "4")),
    )
    ids = [item.call_id for item in session.items if isinstance(item, FunctionCall)]
    assert len(set(ids)) == 4
    assert [item.text for item in session.items if isinstance(item, FunctionCallOutput)] == ["1", "2", "3", "4"]
    assert [item.call_id for item in session.items if isinstance(item, FunctionCallOutput)] == ids


def test_a_second_result_of_a_call_is_merged(tmp_path: Path) -> None:
    account = read_account(write_lines(tmp_path, [codex_said("user", "x"), codex_call("a"), codex_output("a"), codex_output("a")]))
    assert fates(account) == ["item", "item", "item", "merged"]


# Turns rolled back


def test_rolled_back_turns_are_removed_with_a_reason(tmp_path: Path) -> None:
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
def test_rolling_back_too_many_turns_removes_all(read: Read, count: int) -> None:
    records = [codex_said("developer", "d"), codex_said("user", "one"), codex("event_msg", type="thread_rolled_back", num_turns=count)]
    assert shape(read(*records)) == ["developer:d"]


@pytest.mark.parametrize("count", [0, -1, None, "two", True])
def test_rolling_back_no_turns_removes_none(read: Read, count: object) -> None:
    assert shape(read(codex_said("user", "one"), codex("event_msg", type="thread_rolled_back", num_turns=count))) == ["user:one"]


def test_a_rollback_also_removes_a_compaction(read: Read) -> None:
    session = read(
        codex_said("user", "one"),
        codex_said("user", "two"),
        codex("compacted", message="sum", replacement_history=[]),
        codex("event_msg", type="thread_rolled_back", num_turns=1),
    )
    assert shape(session) == ["user:one"]


def test_tools_that_a_client_adds_are_in_the_metadata(read: Read) -> None:
    tool = {"name": "find", "description": "Finds.", "inputSchema": {"type": "object"}, "deferLoading": True}
    session = read(
        codex("session_meta", id="c", dynamic_tools=[{"type": "namespace", "name": "n", "tools": [tool, "no tool"]}, 7]),
        codex_said("user", "Hi."),
    )
    assert session.metadata["tools"] == [
        {"type": "function", "name": "find", "description": "Finds.", "parameters": {"type": "object"}, "defer_loading": True}
    ]


# Compactions


def test_a_compaction_replaces_everything_missing_from_its_history(read: Read) -> None:
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
    assert set(compaction_of(session).replaces) == gone
    assert compaction_of(session).extra == {"source": "compaction"}


def test_new_history_entries_precede_the_summary_and_are_not_replaced(read: Read) -> None:
    history = [user("a shortened prompt"), {"type": "compaction", "encrypted_content": "sealed"}]
    session = read(codex_said("user", "a long prompt"), codex("compacted", message="", replacement_history=history))
    assert [item.type for item in session.items] == ["message", "message", "compaction"]
    assert compaction_of(session).replaces == (session.items[0].id,)
    assert compaction_of(session).summary.startswith("(The summary")


def test_an_encrypted_summary_is_sent_back_to_openai(read: Read) -> None:
    """Only OpenAI can read it. It comes after the prompts that it leaves, as in the history that Codex sent."""
    sealed = {"type": "compaction", "encrypted_content": "c2VhbGVk" * 9}
    session = read(
        codex_said("user", "count"),
        codex_said("assistant", "one"),
        codex("compacted", message="", replacement_history=[user("count"), {**sealed, "id": "cmp_1"}]),
        codex_said("user", "go on"),
        codex_said("assistant", "two"),
        codex_said("user", "and then"),
    )
    view = ContextWindowManager(token_counter=len).process_session(session)
    sent = to_openai_responses(view)
    assert [item.get("content", item) for item in sent] == ["count", sealed, "go on", "two", "and then"]
    assert validate_openai_responses(sent) == []
    assert SEALED in str(to_openai_chat(view))


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
    assert compaction_of(session).replaces == (session.items[1].id, session.items[3].id)


def test_the_view_after_a_compaction_is_what_the_model_saw(read: Read) -> None:
    session = read(
        codex_said("user", "one"),
        codex_said("assistant", "1"),
        codex("compacted", message="sum", replacement_history=[user("one"), user("sum")]),
        codex_said("user", "two"),
    )
    replaced = compaction_of(session).replaces
    assert [item.id for item in session.items if item.id not in replaced] == [
        session.items[0].id,
        compaction_of(session).id,
        session.items[3].id,
    ]


def test_usage_after_a_compaction_belongs_to_no_response(tmp_path: Path) -> None:
    records = [
        *(codex_said("user", "one"), codex_said("assistant", "1"), codex_tokens(5, input_tokens=4, output_tokens=1)),
        codex("compacted", message="sum", replacement_history=[]),
        codex_tokens(7, input_tokens=2, output_tokens=0),
    ]
    account = read_account(write_lines(tmp_path, records))
    assert [item.usage for item in account.sessions[0].items if item.usage] == [Usage(4, 0, 0, 1)]
    assert account.lines[4].fate == "not context"


# Hostile logs


def test_missing_or_invalid_times_repeat_the_previous_one(read: Read) -> None:
    times: list[object] = [None, "soon", 7, [], {}]
    records: list[Json] = [{**codex_said("user", str(number)), "timestamp": time} for number, time in enumerate(times)]
    session = read(codex_said("user", "x", minute=1), *records)
    assert {item.created_at for item in session.items} == {SECONDS + 60}


@pytest.mark.parametrize("payload", [None, 1, "x", []])
def test_an_invalid_payload_costs_only_its_line(tmp_path: Path, payload: object) -> None:
    account = read_account(write_lines(tmp_path, [codex_said("user", "x"), {"type": "response_item", "payload": payload}]))
    assert fates(account) == ["item", "damaged"]


def test_a_fork_has_its_origin_in_the_metadata(tmp_path: Path) -> None:
    metas = [codex("session_meta", id="new", forked_from_id="old"), codex("session_meta", id="old", source={"subagent": "x"})]
    session = read_transcript(write_lines(tmp_path, [*metas, codex_said("user", "x")]))
    assert (session.id, session.metadata["forked_from"]) == ("new", "old")
    assert "sidechain" not in session.metadata


def test_reading_twice_gives_equal_sessions(tmp_path: Path) -> None:
    path = write_lines(tmp_path, some_codex())
    assert read_transcript(path).to_dict() == read_transcript(path).to_dict()


def test_the_window_is_the_last_one_that_the_log_states(read: Read) -> None:
    """Codex states the window that it fills in two events: at the start of a turn, and with each usage report."""
    started = codex("event_msg", type="task_started", model_context_window=258_400)
    reported = codex_tokens(10, input_tokens=8)
    reported["payload"]["info"]["model_context_window"] = 121_600
    records = [codex_said("user", "look"), codex_said("assistant", "so")]
    assert "context_window" not in read(*records, codex_tokens(10, input_tokens=8)).metadata
    assert read(started, *records).metadata["context_window"] == {"tokens": 258_400, "evidence": "stated"}
    assert read(started, *records, reported).metadata["context_window"] == {"tokens": 121_600, "evidence": "stated"}


@pytest.mark.parametrize("value", [0, -5, "many", None, True, [258_400], 2**80])
def test_a_window_that_is_no_number_of_tokens_is_not_used(tmp_path: Path, value: object) -> None:
    path = write_lines(tmp_path, [codex("event_msg", type="task_started", model_context_window=value), codex_said("user", "look")])
    assert recorded_window(read_transcript(path)) is None
