"""Items of the main session made from each kind of line in Claude Code's logs.

Damage and detection: `test_transcripts_files.py`. Context that the tool adds: `test_transcripts_claude_context.py`.
Sidechains, branches and several sessions: `test_transcripts_threads.py`.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from context_window.counting.item_tokens import Measurer
from context_window.counting.tiktoken_counter import default_counter
from context_window.models import describe_model
from session import Compaction, Document, FunctionCall, FunctionCallOutput, Image, Message, MessageCategory, Reasoning, Text, Usage
from session.transcripts import read_transcript
from session.units import KIND_ORPHAN, grouping, request_points
from tests.support.claude_lines import Json, Log, call, image, records_of, result, shape, text
from tests.support.pictures import png


@pytest.fixture
def log() -> Log:
    return Log()


# Responses


def test_a_response_on_several_lines_is_put_together_and_its_outputs_follow(log: Log, tmp_path: Path) -> None:
    log.user("look")
    log.answer("m1", {"type": "thinking", "thinking": "hm", "signature": "sig"})
    log.answer("m1", text("I will"))
    log.answer("m1", call("a"))
    log.user([result("a")])
    log.answer("m1", call("b"))
    log.user([result("b")])
    log.answer("m2", text("done"))
    session = read_transcript(log.write(tmp_path))
    assert shape(session) == ["user:look", "thought:hm", "assistant:I will", "call:a", "call:b", "output:a", "output:b", "assistant:done"]
    assert request_points(session) == [1, 7]


def test_usage_is_counted_once_on_the_first_item_from_the_last_line(log: Log, tmp_path: Path) -> None:
    first = {"input_tokens": 3, "cache_read_input_tokens": 50, "cache_creation_input_tokens": 7, "output_tokens": 1}
    log.user("look")
    log.answer("m1", text("so"), usage=first)
    log.answer("m1", call("a"), usage={**first, "output_tokens": 90})
    session = read_transcript(log.write(tmp_path))
    assert [item.usage for item in session.items] == [None, Usage(3, 50, 7, 90), None]


def test_each_response_names_its_model_unless_it_is_that_of_the_session(log: Log, tmp_path: Path) -> None:
    usage = {"input_tokens": 3, "output_tokens": 1}
    log.user("look")
    log.answer("m1", text("so"), usage=usage, model="claude-x")
    log.answer("m1", call("a"), usage=usage, model="claude-x")
    log.user([result("a")])
    log.answer("m2", text("done"), usage=usage, model="claude-y")
    log.user("more")
    log.answer("m3", text("note"), model="<synthetic>")
    session = read_transcript(log.write(tmp_path))
    assert session.metadata["model"] == "claude-y"
    assert [item.extra.get("model") for item in session.items] == [None, "claude-x", None, None, None, None, None]


def test_a_result_that_loads_tools_says_how_many_and_costs_their_definitions(log: Log, tmp_path: Path) -> None:
    names = [{"type": "tool_reference", "tool_name": name} for name in ("WebFetch", "WebSearch")]
    log.user("look")
    log.answer("m1", call("a"), call("b"))
    log.user([{**result("a"), "content": names}, result("b")])
    loading, other = read_transcript(log.write(tmp_path)).items[3:]
    assert (loading.extra, other.extra) == ({"loaded_tools": 2}, {})
    for model, tokens in (("claude-opus-4-7", 1_000), ("claude-sonnet-4-6", 800), ("gpt-5", 0)):
        description = describe_model(model)
        measurer = Measurer(default_counter(description.image_rule, description.token_ratio))
        without = replace(loading, extra={})
        assert measurer.measure(loading).tokens == measurer.measure(without).tokens + 2 * tokens
        assert measurer.cleared_tokens(loading) == measurer.cleared_tokens(without)


def test_an_invalid_usage_report_counts_as_none(log: Log, tmp_path: Path) -> None:
    log.user("look")
    log.answer("m1", text("so"), usage={"input_tokens": -4, "output_tokens": "many", "cache_read_input_tokens": True})
    assert read_transcript(log.write(tmp_path)).items[1].usage == Usage()


def test_an_output_that_comes_after_the_next_response_began_stays_there(log: Log, tmp_path: Path) -> None:
    log.user("look")
    log.answer("m1", call("a"))
    log.answer("m2", text("meanwhile"))
    log.user([result("a")])
    assert shape(read_transcript(log.write(tmp_path))) == ["user:look", "call:a", "assistant:meanwhile", "output:a"]


def test_an_output_before_its_call_is_moved_after_it(log: Log, tmp_path: Path) -> None:
    log.user("look")
    log.user([result("a")])
    log.answer("m1", call("a", "Grep"))
    session = read_transcript(log.write(tmp_path))
    assert shape(session) == ["user:look", "call:a", "output:a"]
    assert session.items[2].name == "Grep"  # type: ignore[union-attr]


def test_two_responses_in_a_row_stay_two(log: Log, tmp_path: Path) -> None:
    log.user("look")
    log.answer("m1", text("one"))
    log.answer("m2", text("two"))
    session = read_transcript(log.write(tmp_path))
    assert session.response_breaks == {session.items[2].id}
    assert request_points(session) == [1, 2]


def test_consecutive_lines_without_an_id_are_one_response(log: Log, tmp_path: Path) -> None:
    log.user("look")
    log.answer(None, text("one"))
    log.answer(None, call("a"))
    log.user([result("a")])
    log.answer(None, text("two"))
    assert request_points(read_transcript(log.write(tmp_path))) == [1, 4]


def test_a_copy_of_a_call_in_the_same_response_is_merged(log: Log, tmp_path: Path) -> None:
    log.user("look")
    log.answer("m1", call("a"))
    log.answer("m1", call("a"))
    path = log.write(tmp_path)
    assert shape(read_transcript(path)) == ["user:look", "call:a"]
    assert records_of(path)[2].fate == "merged"
    assert "a copy of the call a" in records_of(path)[2].reason


def test_a_call_id_that_another_response_uses_again_is_another_call(log: Log, tmp_path: Path) -> None:
    log.user("look")
    for message in ("m1", "m2"):
        log.answer(message, call("a"))
        log.user([result("a", message)])
    assert [item.text for item in read_transcript(log.write(tmp_path)).items if isinstance(item, FunctionCallOutput)] == ["m1", "m2"]


def test_redacted_ids_count_as_missing(log: Log, tmp_path: Path) -> None:
    for words in ("go on", "go on"):
        log.user(words, uuid="REDACTED", parentUuid="REDACTED")
        log.answer("REDACTED", call("REDACTED"), call("REDACTED"), uuid="REDACTED", parentUuid="REDACTED")
        log.user([result("REDACTED", "1"), result("REDACTED", "2")], uuid="REDACTED", parentUuid="REDACTED")
    session = read_transcript(log.write(tmp_path))
    assert [item.type for item in session.items] == (["message"] + ["function_call"] * 2 + ["function_call_output"] * 2) * 2
    assert KIND_ORPHAN not in grouping(session).kind


def test_equal_texts_of_one_response_are_both_kept(log: Log, tmp_path: Path) -> None:
    log.user("look")
    log.answer("m1", text("again"))
    log.answer("m1", text("again"))
    assert shape(read_transcript(log.write(tmp_path))) == ["user:look", "assistant:again", "assistant:again"]


def test_thinking_keeps_its_signatures(log: Log, tmp_path: Path) -> None:
    log.user("look")
    log.answer("m1", {"type": "thinking", "thinking": "", "signature": "sig"}, {"type": "redacted_thinking", "data": "xyz"}, text("so"))
    log.answer("m1", {"type": "thinking", "thinking": ""}, text("then"))
    _, empty, redacted, _, then = read_transcript(log.write(tmp_path)).items
    assert isinstance(empty, Reasoning)
    assert isinstance(redacted, Reasoning)
    assert (empty.text, empty.signature) == ("", "sig")
    assert (redacted.data, redacted.signature) == ("xyz", None)
    assert isinstance(then, Message)


def test_calls_that_the_server_runs_are_calls_too(log: Log, tmp_path: Path) -> None:
    search_result = {"type": "web_search_result", "url": "https://example.org", "encrypted_content": "x" * 50}
    block = {"type": "web_search_tool_result", "tool_use_id": "srv", "content": [search_result]}
    log.user("look")
    log.answer("m1", {**call("srv", "web_search", query="q"), "type": "server_tool_use"}, block, text("so"))
    session = read_transcript(log.write(tmp_path))
    assert shape(session) == ["user:look", "call:srv", "assistant:so", "output:srv"]
    assert session.items[3].text == '{"type":"web_search_result","url":"https://example.org"}'  # type: ignore[union-attr]


def test_arguments_are_the_input_as_compact_json(log: Log, tmp_path: Path) -> None:
    log.user("look")
    log.answer("m1", call("a", "Read", path="é.py", limit=5))
    item = read_transcript(log.write(tmp_path)).items[1]
    assert isinstance(item, FunctionCall)
    assert (item.name, item.arguments) == ("Read", '{"path":"é.py","limit":5}')


def test_synthetic_messages_have_no_usage_and_api_errors_are_left_out(log: Log, tmp_path: Path) -> None:
    log.user("look")
    log.answer("x1", text("No response requested."), model="<synthetic>", usage={"input_tokens": 0})
    log.answer("x2", text("API Error: 529"), model="<synthetic>", isApiErrorMessage=True)
    path = log.write(tmp_path)
    session = read_transcript(path)
    assert shape(session) == ["user:look", "assistant:No response requested."]
    assert session.items[1].usage is None
    assert session.items[1].extra == {"source": "synthetic"}
    assert "model" not in session.metadata
    assert (records_of(path)[2].fate, records_of(path)[2].reason) == ("not context", "an API error, shown only to the user")


# Results


def test_results_carry_text_images_errors_and_tool_names(log: Log, tmp_path: Path) -> None:
    log.user("look")
    log.answer("m1", call("a", "Shot"), call("b", "Find"), call("c", "Run"), call("d", "Void"))
    log.user([result("a", [text("see"), image(png(30, 20))])])
    log.user([result("b", [{"type": "tool_reference", "tool_name": "WebFetch"}]), result("c", "boom", is_error=True), result("d", [])])
    outputs = [item for item in read_transcript(log.write(tmp_path)).items if isinstance(item, FunctionCallOutput)]
    shot, find, run, void = outputs
    assert shot.output == (Text("see"), Image(data=png(30, 20), media_type="image/png", width=30, height=20))
    assert find.output == (Text("WebFetch"),)
    assert (run.name, run.text, run.is_error) == ("Run", "boom", True)
    assert void.output == ()
    assert not any(output.is_error for output in (shot, find, void))


def test_text_next_to_results_becomes_a_message_after_them(log: Log, tmp_path: Path) -> None:
    log.user("look")
    log.answer("m1", call("a"), call("b"))
    log.user([result("a"), text("and hurry"), result("b")])
    session = read_transcript(log.write(tmp_path))
    assert shape(session)[-3:] == ["output:a", "output:b", "user:and hurry"]
    assert [item.id for item in session.items[-3:]] == ["00000003", "00000003.1", "00000003.2"]


def test_a_second_result_of_a_call_is_merged_into_the_first(log: Log, tmp_path: Path) -> None:
    log.user("look")
    log.answer("m1", call("a"))
    log.user([result("a", "first")])
    log.user([result("a", "second")])
    path = log.write(tmp_path)
    assert [item.text for item in read_transcript(path).items if isinstance(item, FunctionCallOutput)] == ["first"]
    assert (records_of(path)[3].fate, records_of(path)[3].reason) == ("merged", "the result of call a is already on line 3")


def test_an_output_without_a_call_has_an_unknown_tool(log: Log, tmp_path: Path) -> None:
    log.user("look")
    log.user([result("gone")])
    assert read_transcript(log.write(tmp_path)).items[1].name == "unknown"  # type: ignore[union-attr]


def test_damaged_images_become_a_note(log: Log, tmp_path: Path) -> None:
    log.user([text("see"), image("no base64!")])
    path = log.write(tmp_path)
    session = read_transcript(path)
    assert session.items[0].content == (Text("see"), Text("[image: its data is damaged in the transcript]"))  # type: ignore[union-attr]
    assert session.metadata["warnings"] == ["line 1: the data of an image is damaged"]
    assert records_of(path)[0].reason == "the data of an image is damaged"


def test_wrapped_base64_is_decoded(log: Log, tmp_path: Path) -> None:
    log.user([image(image()["source"]["data"][:20] + "\r\n" + image()["source"]["data"][20:])])
    assert read_transcript(log.write(tmp_path)).items[0].content[0].data == png()  # type: ignore[union-attr]


def test_documents_become_documents(log: Log, tmp_path: Path) -> None:
    coded = {"type": "document", "title": "t", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}}
    plain = {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "words"}}
    log.user([coded, plain, {"type": "hologram"}])
    path = log.write(tmp_path)
    parts = read_transcript(path).items[0].content  # type: ignore[union-attr]
    pdf = Document(data=b"%PDF-", media_type="application/pdf", title="t")
    assert parts == (pdf, Document(text="words", media_type="text/plain"))
    assert "hologram" in records_of(path)[0].reason


# System lines, compactions


def test_a_system_prompt_is_the_system_message(log: Log, tmp_path: Path) -> None:
    log.system("system_prompt", content="Be terse.")
    log.add("system", message={"role": "system", "content": [text("Be kind.")]})
    log.user("look")
    session = read_transcript(log.write(tmp_path))
    assert shape(session) == ["system:Be terse.", "system:Be kind.", "user:look"]
    assert session.items[0].category is MessageCategory.SYSTEM


def test_a_compaction_replaces_everything_before_it_except_the_system_prompt(log: Log, tmp_path: Path) -> None:
    log.system("system_prompt", content="Be terse.")
    log.user("look")
    end = log.answer("m1", text("seen"))
    boundary = {"trigger": "auto", "preTokens": 900}
    log.system("compact_boundary", compactMetadata=boundary, parentUuid=None, logicalParentUuid=end)
    log.user("We looked.", isCompactSummary=True, isVisibleInTranscriptOnly=True)
    log.user("go on")
    path = log.write(tmp_path)
    session = read_transcript(path)
    assert shape(session)[-2:] == ["summary:We looked.", "user:go on"]
    summary = session.items[3]
    assert isinstance(summary, Compaction)
    assert summary.replaces == (session.items[1].id, session.items[2].id)
    assert summary.extra == {"source": "compaction", "trigger": "auto", "pre_tokens": 900}
    assert (records_of(path)[3].fate, records_of(path)[3].reason) == ("merged", "its summary is on line 5")


def test_a_compaction_that_keeps_some_records_does_not_replace_them(log: Log, tmp_path: Path) -> None:
    log.user("look")
    log.answer("m1", text("seen"))
    head = log.user("and now")
    tail = log.answer("m2", text("sure"))
    log.system("compact_boundary", compactMetadata={"preservedSegment": {"headUuid": head, "tailUuid": tail}}, parentUuid=None)
    log.user("We looked.", isCompactSummary=True)
    session = read_transcript(log.write(tmp_path))
    assert session.items[4].replaces == (session.items[0].id, session.items[1].id)  # type: ignore[union-attr]


def test_a_boundary_without_a_summary_replaces_nothing(log: Log, tmp_path: Path) -> None:
    log.user("look")
    log.system("compact_boundary", parentUuid=None)
    path = log.write(tmp_path)
    assert len(read_transcript(path).items) == 1
    assert records_of(path)[1].reason == "the boundary of a compaction whose summary is missing"


def test_a_microcompaction_is_a_warning(log: Log, tmp_path: Path) -> None:
    log.user("look")
    log.system("microcompact_boundary", microcompactMetadata={"compactedToolIds": ["a", "b"], "tokensSaved": 500})
    path = log.write(tmp_path)
    assert "the model saw 2 older tool results cleared" in read_transcript(path).metadata["warnings"][0]
    assert records_of(path)[1].reason.endswith("(2 results, 500 tokens)")


@pytest.mark.parametrize(
    ("kind", "fields", "reason"),
    [
        ("summary", {"summary": "a title", "leafUuid": "x"}, "a title for the list of sessions"),
        ("progress", {"data": {"type": "bash_progress"}}, "progress of a tool or hook, for the screen"),
        ("file-history-snapshot", {"snapshot": {}}, "a backup of files, for undoing edits"),
        ("system", {"subtype": "turn_duration", "durationMs": 5}, "a duration, for the user"),
        ("system", {"subtype": "brand_new"}, "unknown system subtype 'brand_new'"),
        ("brand-new", {}, "unknown type 'brand-new'"),
    ],
)
def test_lines_that_are_not_context_have_a_reason(log: Log, tmp_path: Path, kind: str, fields: Json, reason: str) -> None:
    log.user("look")
    log.add(kind, **fields)
    record = records_of(log.write(tmp_path))[1]
    assert (record.line, record.fate, record.reason, record.items) == (2, "not context", reason, ())


def test_output_of_a_local_command_is_context(log: Log, tmp_path: Path) -> None:
    log.user("look")
    log.system("local_command", content="<command-name>/cost</command-name>")
    assert read_transcript(log.write(tmp_path)).items[1].extra == {"source": "local command"}


# Times, ids, metadata


def test_times_come_from_the_lines_and_missing_ones_from_the_line_before(log: Log, tmp_path: Path) -> None:
    log.user("zero", timestamp=...)
    log.user("one", minute=1)
    log.user("two", timestamp="yesterday")
    log.user("three", timestamp=None)
    log.user("four", timestamp="2026-03-01T00:04:00")
    start = 1772323200.0  # 2026-03-01, midnight UTC
    assert [item.created_at for item in read_transcript(log.write(tmp_path)).items] == [
        0.0,
        start + 60,
        start + 60,
        start + 60,
        start + 240,
    ]


def test_ids_are_as_short_as_they_can_be(log: Log, tmp_path: Path) -> None:
    names = ["abcdefgh-1111-1", "abcdefgh-1111-2", "abcdefgh-2222-1", "abcdefgh-1111-1", "short", "a.b", ...]
    for index, name in enumerate(names):
        log.user(f"{index}", uuid=name)
    ids = [item.id for item in read_transcript(log.write(tmp_path)).items]
    assert ids == ["abcdefgh", "abcdefgh-1111", "abcdefgh-2222", "abcdefgh-1111-1", "short", "a-b", "L7"]


def test_metadata_names_the_source(log: Log, tmp_path: Path) -> None:
    log.user("look")
    log.answer("m1", text("a"), model="claude-old")
    log.answer("m2", text("b"), model="claude-new")
    log.add("summary", summary="t")
    session = read_transcript(log.write(tmp_path))
    assert session.id == "s-1"
    assert session.metadata == {
        "source": {"format": "claude_code", "path": "log.jsonl"},
        "session_id": "s-1",
        "keeps_thinking": True,
        "model": "claude-new",
        "lines": {"item": 3, "not context": 1},
        "warnings": [],
    }
    assert all(item.agent_id is None for item in session.items)


def test_reading_twice_gives_equal_sessions(log: Log, tmp_path: Path) -> None:
    log.user("look", timestamp=...)
    log.answer("m1", call("a"))
    log.user([result("a")])
    path = log.write(tmp_path)
    assert read_transcript(path).to_dict() == read_transcript(path).to_dict()


# The window

SHORT = {"tokens": 200_000, "evidence": "compaction"}


@pytest.mark.parametrize(
    ("prompts", "compactions", "window"),
    [
        ([150_000, 173_215], [("auto", 174_247)], SHORT | {"at": 174_247}),
        ([150_000], [("auto", 155_100), ("manual", 90_000)], SHORT | {"at": 155_100}),
        ([150_000], [], None),  # nothing shows where the window ends
        ([150_000], [("manual", 174_247)], None),  # the user asked for it
        ([60_000], [("auto", 66_000)], None),  # by a setting, at a part of the window
        ([230_000], [], {"tokens": 1_000_000, "evidence": "request", "at": 230_000}),
        ([230_000, 20_000], [("auto", 170_000)], {"tokens": 1_000_000, "evidence": "request", "at": 230_000}),
        ([20_000], [("auto", 967_000)], None),  # the long window, which the model's name shows
    ],
)
def test_requests_and_compactions_reveal_the_window(
    log: Log, tmp_path: Path, prompts: list[int], compactions: list[tuple[str, int]], window: Json | None
) -> None:
    log.user("look")
    for number, tokens in enumerate(prompts):
        log.answer(f"m{number}", text("so"), usage={"input_tokens": 10, "cache_read_input_tokens": tokens - 10, "output_tokens": 5})
    for trigger, tokens in compactions:
        log.system("compact_boundary", compactMetadata={"trigger": trigger, "preTokens": tokens})
        log.user("So far.", isCompactSummary=True)
    assert read_transcript(log.write(tmp_path)).metadata.get("context_window") == window
