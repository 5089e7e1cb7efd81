"""Plain message lists: their place in a document, each provider's style, and the rest of their request."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from session import FunctionCall, Image, Message, MessageCategory, Reasoning, Session, TranscriptError, Usage
from session.transcripts import read_transcript, read_transcripts
from session.units import request_points
from tests.support.list_logs import Json, account, assistant, called, lines, shown, system, tool, user
from tests.support.pictures import png

CHAT = [system("Be terse."), user("hi"), assistant("hello")]
PICTURE = base64.b64encode(png()).decode()


def session_of(folder: Path, log: Any, name: str = "log.json") -> Session:
    transcript = account(folder, log, name)
    assert transcript.format == "message_lists"
    assert len(transcript.sessions) == 1
    return transcript.sessions[0]


@pytest.mark.parametrize(
    "document",
    [CHAT, {"messages": CHAT}, {"run": {"deep": [[{"messages": CHAT}]]}}, {"traj": CHAT}, {"conversation": CHAT, "chosen": CHAT[:2]}],
    ids=["bare", "messages", "deep", "traj", "the best name of two"],
)
def test_a_list_is_found_at_any_depth(tmp_path: Path, document: Any) -> None:
    assert shown(session_of(tmp_path, document)) == ["system: Be terse.", "user: hi", "assistant: hello"]


def test_lists_without_a_known_name_are_separate_sessions(tmp_path: Path) -> None:
    transcript = account(tmp_path, {"chosen": CHAT, "rejected": CHAT[:2]})
    assert [len(session.items) for session in transcript.sessions] == [3, 2]
    assert transcript.main_count == 2
    assert [line.line for line in transcript.lines] == [1, 2, 3, 4, 5]


def test_descriptions_of_a_benchmark_are_not_sessions(tmp_path: Path) -> None:
    document = {"tasks": [{"initial": {"messages": CHAT}}], "simulations": [{"id": "run-1", "messages": CHAT[1:]}]}
    session = session_of(tmp_path, document)
    assert session.id == "run-1"
    assert shown(session) == ["user: hi", "assistant: hello"]


def test_lines_that_are_messages_are_one_session(tmp_path: Path) -> None:
    transcript = account(tmp_path, lines(*CHAT) + "\n" + '{"note": 1}\n' + '{"role": "us', "talk.jsonl")
    assert shown(transcript.sessions[0]) == ["system: Be terse.", "user: hi", "assistant: hello"]
    assert [line.fate for line in transcript.lines] == ["item", "item", "item", "not context", "not context", "damaged"]
    assert transcript.lines[-1].reason == "incomplete line; the tool may still be writing it"


def test_each_line_with_a_request_is_a_session(tmp_path: Path) -> None:
    transcript = account(tmp_path, lines({"messages": CHAT[:2]}, {"messages": CHAT}, {"nothing": 1}), "log.jsonl")
    assert [session.id for session in transcript.sessions] == ["log:1", "log:2"]
    assert [line.fate for line in transcript.lines] == ["item", "item", "not context"]
    path = tmp_path / "log.jsonl"
    with pytest.raises(TranscriptError, match="holds 2 sessions"):
        read_transcript(path)
    assert len(read_transcripts(path)) == 2


def test_calls_of_the_chat_style_are_answered_by_their_ids(tmp_path: Path) -> None:
    log = [
        user("look"),
        assistant("I look.", called("c1", "ls", '{"path": "."}'), called("c2", "cat")),
        tool("c2", "b", name="cat"),
        tool("c1", [{"type": "text", "text": "a"}]),
        assistant(None, function_call={"name": "old", "arguments": "{}"}),
        {"role": "function", "name": "old", "content": "w"},
    ]
    session = session_of(tmp_path, log)
    assert shown(session) == [
        "user: look",
        "assistant: I look.",
        'call c1 ls {"path": "."}',
        "call c2 cat {}",
        "output c2 cat: b",
        "output c1 ls: a",
        "call call-L5 old {}",
        "output call-L5 old: w",
    ]
    assert len(request_points(session)) == 3


def test_repeated_call_ids_become_unique(tmp_path: Path) -> None:
    log = [user("go"), *[message for n in range(3) for message in (assistant(None, called("c")), tool("c", str(n)))]]
    lines_shown = shown(session_of(tmp_path, log))
    assert lines_shown[1:] == ["call c ls {}", "output c ls: 0", "call c.2 ls {}", "output c.2 ls: 1", "call c.3 ls {}", "output c.3 ls: 2"]


def test_one_id_for_everything_costs_no_more_than_ids_of_their_own(tmp_path: Path) -> None:
    turn = [assistant(None, called("c"), id="m"), tool("c")]
    session = session_of(tmp_path, [user("go"), *turn * 5_000])
    assert len({item.id for item in session.items}) == 10_001
    assert shown(session)[-1] == "output c.5000 ls: done"


def test_a_second_result_of_a_call_is_not_repeated(tmp_path: Path) -> None:
    transcript = account(tmp_path, [user("go"), assistant(None, called("c")), tool("c", "a"), tool("c", "b")])
    assert shown(transcript.sessions[0])[-1] == "output c ls: a"
    assert transcript.lines[-1].fate == "merged"


def test_two_adjacent_messages_stay_two_responses(tmp_path: Path) -> None:
    session = session_of(tmp_path, [user("hi"), assistant("one"), assistant("two")])
    assert request_points(session) == [1, 2]


def test_anthropic_blocks_become_items(tmp_path: Path) -> None:
    blocks = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "redacted_thinking", "data": "xx"},
        {"type": "text", "text": "I look."},
        {"type": "tool_use", "id": "t1", "name": "ls", "input": {"a": 1}},
    ]
    results = [
        {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "no"}], "is_error": True},
        {"type": "text", "text": "go on"},
    ]
    log = {"system": [{"type": "text", "text": "S"}], "messages": [user("hi"), assistant(blocks), user(results)], "model": "claude-x"}
    session = session_of(tmp_path, log)
    assert shown(session) == [
        "system: S",
        "user: hi",
        "thought: hm",
        "thought: xx",
        "assistant: I look.",
        'call t1 ls {"a":1}',
        "error t1 ls: no",
        "user: go on",
    ]
    assert session.metadata["model"] == "claude-x"
    assert all("provider" not in item.extra for item in session.items)


def test_server_tool_results_follow_the_response(tmp_path: Path) -> None:
    blocks = [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "x"}},
        {
            "type": "web_search_tool_result",
            "tool_use_id": "s1",
            "content": [{"type": "web_search_result", "title": "T", "encrypted_content": "e"}],
        },
        {"type": "text", "text": "found"},
    ]
    lines_shown = shown(session_of(tmp_path, {"messages": [user("hi"), assistant(blocks)], "model": "m"}))
    assert lines_shown[1:3] == ['call s1 web_search {"query":"x"}', "assistant: found"]
    assert lines_shown[3].startswith("output s1 web_search: ")
    assert "encrypted" not in lines_shown[3]


def test_consecutive_items_of_the_responses_api_are_one_response(tmp_path: Path) -> None:
    log = {
        "model": "gpt",
        "instructions": "S",
        "input": [
            user([{"type": "input_text", "text": "hi"}, {"type": "input_image", "image_url": f"data:image/png;base64,{PICTURE}"}]),
            {"type": "reasoning", "id": "rs", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "enc"},
            {"type": "function_call", "call_id": "c1", "name": "ls", "arguments": "{}"},
            {"type": "web_search_call", "id": "ws", "action": {"query": "q"}, "status": "completed"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "so"}]},
            {"type": "function_call_output", "call_id": "c1", "output": "a"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]},
        ],
    }
    session = session_of(tmp_path, log)
    assert shown(session) == [
        "system: S",
        "user: hi + image",
        "thought: hm",
        "call c1 ls {}",
        'call ws web_search {"action":{"query":"q"}}',
        "assistant: so",
        "output ws web_search: completed",
        "output c1 ls: a",
        "assistant: done",
    ]
    thought = session.items[2]
    assert isinstance(thought, Reasoning)
    assert (thought.data, thought.extra) == ("enc", {"provider": "openai"})
    assert request_points(session) == [2, 8]


def test_a_text_input_is_a_request_only_with_request_options(tmp_path: Path) -> None:
    assert shown(session_of(tmp_path, {"request": {"model": "gpt", "input": "hi"}})) == ["user: hi"]
    with pytest.raises(TranscriptError, match="known format"):
        account(tmp_path, {"model": "embed", "input": "hi"})


def test_google_contents_keep_their_signatures_and_pair_without_ids(tmp_path: Path) -> None:
    log = {
        "systemInstruction": {"parts": [{"text": "S"}]},
        "contents": [
            {"role": "user", "parts": [{"text": "hi"}, {"inlineData": {"mimeType": "image/png", "data": PICTURE}}]},
            {
                "role": "model",
                "parts": [
                    {"text": "hm", "thought": True, "thoughtSignature": "t"},
                    {"functionCall": {"name": "ls", "args": {"a": 1}}, "thoughtSignature": "sig"},
                    {"functionCall": {"name": "ls", "args": {}}},
                ],
            },
            {"role": "user", "parts": [{"functionResponse": {"name": "ls", "response": {"result": r}}} for r in ("1", "2")]},
        ],
        "tools": [{"functionDeclarations": [{"name": "ls"}]}],
    }
    session = session_of(tmp_path, log)
    assert shown(session) == [
        "system: S",
        "user: hi + image",
        "thought: hm",
        'call ls ls {"a":1}',
        "call ls.2 ls {}",
        "output ls ls: 1",
        "output ls.2 ls: 2",
    ]
    call, thought = session.items[3], session.items[2]
    assert isinstance(call, FunctionCall)
    assert call.metadata == {"thought_signature": "sig"}
    assert thought.extra == {"provider": "google"}
    assert session.metadata["tools"] == [{"functionDeclarations": [{"name": "ls"}]}]


def test_bedrock_blocks_are_recognized_by_their_fields(tmp_path: Path) -> None:
    log = {
        "converse": {
            "system": [{"text": "S"}, {"cachePoint": {"type": "default"}}],
            "messages": [
                {"role": "user", "content": [{"text": "hi"}, {"image": {"format": "png", "source": {"bytes": PICTURE}}}]},
                {"role": "assistant", "content": [{"toolUse": {"toolUseId": "b", "name": "ls", "input": {}}}]},
                {"role": "user", "content": [{"toolResult": {"toolUseId": "b", "content": [{"json": {"a": 1}}], "status": "error"}}]},
            ],
        }
    }
    assert shown(session_of(tmp_path, log)) == ["system: S", "user: hi + image", "call b ls {}", 'error b ls: {"a":1}']


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PICTURE}", "detail": "low"}},
        {"type": "image_url", "image_url": f"data:image/png;base64,{PICTURE}"},
        {"type": "input_image", "image_url": f"data:image/png;base64,{PICTURE}"},
        {"type": "image", "image": f"data:image/png;base64,{PICTURE}"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PICTURE}},
        {"type": "image", "data": PICTURE, "mimeType": "image/png"},
        {"image": {"format": "png", "source": {"bytes": PICTURE}}},
        {"inline_data": {"mime_type": "image/png", "data": PICTURE.replace("+", "-").replace("/", "_").rstrip("=")}},
    ],
    ids=["url object", "url", "responses", "inspect", "anthropic", "mcp", "bedrock", "google"],
)
def test_an_image_has_the_same_bytes_in_every_style(tmp_path: Path, part: Json) -> None:
    session = session_of(tmp_path, [user([part]), assistant("nice")])
    message = session.items[0]
    assert isinstance(message, Message)
    image = message.content[0]
    assert isinstance(image, Image)
    assert (image.data, image.width, image.height) == (png(), 3, 2)


def test_damaged_media_leave_a_note_and_a_warning(tmp_path: Path) -> None:
    session = session_of(tmp_path, [user([{"type": "image_url", "image_url": {"url": "data:image/png;base64,%%%"}}])])
    assert shown(session) == ["user: [image: its data is damaged in the transcript]"]
    assert session.metadata["warnings"] == ["line 1: the data of an image is damaged"]


@pytest.mark.parametrize(
    ("reported", "usage"),
    [
        ({"input_tokens": 5, "cache_read_input_tokens": 2, "cache_creation_input_tokens": 1, "output_tokens": 3}, Usage(5, 2, 1, 3)),
        ({"prompt_tokens": 8, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 2}}, Usage(6, 2, 0, 3)),
        ({"prompt_tokens": 8, "completion_tokens": 3, "cache_read_input_tokens": 2, "cache_creation_input_tokens": 1}, Usage(5, 2, 1, 3)),
        ({"input_tokens": 8, "output_tokens": 3, "input_tokens_details": {"cached_tokens": 2}}, Usage(6, 2, 0, 3)),
        ({"inputTokens": 5, "outputTokens": 3, "cacheReadInputTokens": 2, "cacheWriteInputTokens": 1}, Usage(5, 2, 1, 3)),
        ({"promptTokenCount": 8, "cachedContentTokenCount": 2, "candidatesTokenCount": 1, "thoughtsTokenCount": 2}, Usage(6, 2, 0, 3)),
        ({"prompt_tokens": 1, "completion_tokens": -3, "prompt_tokens_details": {"cached_tokens": 9}}, Usage(0, 1, 0, 0)),
    ],
    ids=["anthropic", "openai", "litellm", "responses", "bedrock", "google", "more cached than there is"],
)
def test_usage_is_kept_in_every_style_of_counting(tmp_path: Path, reported: Json, usage: Usage) -> None:
    record = {"request": {"messages": CHAT[:2], "model": "m"}, "usage": reported}
    without = session_of(tmp_path, record).metadata["usage"]
    assert Usage(**without) == usage
    session = session_of(tmp_path, {**record, "response": {"choices": [{"message": assistant("hello")}], "usage": reported}})
    assert shown(session)[-1] == "assistant: hello"
    assert [item.usage for item in session.items] == [None, None, usage]
    assert "usage" not in session.metadata


@pytest.mark.parametrize(
    "response",
    [
        {"choices": [{"message": assistant("so", called("c"))}]},
        {"role": "assistant", "content": [{"type": "text", "text": "so"}, {"type": "tool_use", "id": "c", "name": "ls", "input": {}}]},
        {
            "output": [
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "so"}]},
                {"type": "function_call", "call_id": "c", "name": "ls", "arguments": "{}"},
            ]
        },
        {"candidates": [{"content": {"role": "model", "parts": [{"text": "so"}, {"functionCall": {"name": "ls", "id": "c"}}]}}]},
        {"output": {"message": {"role": "assistant", "content": [{"text": "so"}, {"toolUse": {"toolUseId": "c", "name": "ls"}}]}}},
    ],
    ids=["chat", "anthropic", "responses", "google", "bedrock"],
)
def test_the_answer_of_a_recorded_request_is_its_last_response(tmp_path: Path, response: Json) -> None:
    session = session_of(tmp_path, {"request": {"messages": CHAT[:2], "model": "m"}, "response": response})
    assert shown(session)[2:] == ["assistant: so", "call c ls {}"]
    assert request_points(session) == [2]


def test_the_rest_of_a_request_is_in_the_metadata(tmp_path: Path) -> None:
    record = {"kind": "k", "host": "h", "request": {"model": "m", "messages": CHAT, "tools": [called("x")], "tool_choice": "auto"}}
    metadata = session_of(tmp_path, record).metadata
    assert metadata["model"] == "m"
    assert metadata["tools"] == [called("x")]
    assert metadata["options"] == {"model": "m", "tool_choice": "auto"}
    assert metadata["record"] == {"kind": "k", "host": "h"}


def test_tools_that_messages_add_are_among_the_tools(tmp_path: Path) -> None:
    """Anthropic's by name or by value, besides the definition that waits for a search"""
    waiting, named = {"name": "a", "defer_loading": True}, {"type": "tool_reference", "name": "a"}
    given = {"type": "tool_definition", "definition": {"name": "b"}}
    added = [{"type": "tool_addition", "tool": tool} for tool in (named, given, {"type": "tool_reference", "name": "none"})]
    request = {"model": "m", "messages": [*CHAT, {"role": "system", "content": added}], "tools": [waiting]}
    assert session_of(tmp_path, {"request": request}).metadata["tools"] == [waiting, {"name": "a"}, {"name": "b"}]


def test_tools_of_a_simulated_user_are_not_the_models(tmp_path: Path) -> None:
    log = [
        assistant("hi", timestamp="2026-01-01T00:00:00", usage=None),
        {"role": "user", "content": None, "tool_calls": [{"id": "u", "name": "reboot", "arguments": {}, "requestor": "user"}]},
        {"role": "tool", "id": "u", "content": "ok", "requestor": "user"},
        {**user("it works"), "usage": {"prompt_tokens": 9, "completion_tokens": 9}},
        {**assistant(None, {"id": "a", "name": "close", "arguments": {"n": 1}}), "usage": {"prompt_tokens": 5, "completion_tokens": 2}},
        {"role": "tool", "id": "a", "content": "no", "error": True},
    ]
    transcript = account(tmp_path, {"simulations": [{"id": "s", "messages": log}]})
    session = transcript.sessions[0]
    assert shown(session) == ["assistant: hi", "user: it works", 'call a close {"n":1}', "error a close: no"]
    assert [item.usage for item in session.items] == [None, None, Usage(5, 0, 0, 2), None]
    assert session.items[0].created_at == 1767225600.0
    assert [line.fate for line in transcript.lines] == ["item", "not context", "not context", "item", "item", "item"]


def test_a_conversation_written_out_as_text_has_its_calls_without_their_names(tmp_path: Path) -> None:
    text = "user: hi\nthere\nassistant: None\ntool: found\nassistant: It is\nhere.\ntool: moved\nuser: bye"
    lines_shown = shown(session_of(tmp_path, {"messages_display": text}))
    assert lines_shown == [
        "user: hi\nthere",
        "call call-L2 unknown {}",
        "output call-L2 unknown: found",
        "assistant: It is\nhere.",
        "call call-L4.2 unknown {}",
        "output call-L4.2 unknown: moved",
        "user: bye",
    ]


def test_a_sample_of_inspect_has_its_attachments_and_the_usage_of_each_call(tmp_path: Path) -> None:
    answers = [{"input_tokens": 5, "output_tokens": 1}, {"input_tokens": 9, "output_tokens": 2}]
    sample = {
        "id": "q1",
        "input": "attachment://x",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "attachment://x"}], "source": "input"},
            assistant("one", {"id": "c", "function": "ls", "arguments": {}, "type": "function"}),
            {"role": "tool", "tool_call_id": "c", "function": "ls", "content": "", "error": {"type": "timeout", "message": "late"}},
            assistant("two"),
        ],
        "attachments": {"x": "the text"},
        "output": {"model": "m", "choices": [{"message": assistant("two")}], "usage": answers[1]},
        "events": [{"event": "model", "input": [user("attachment://x")], "output": {"usage": usage}} for usage in answers],
    }
    session = session_of(tmp_path, {"eval": {"model": "p/m"}, "samples": [sample]})
    assert session.id == "q1"
    assert shown(session) == ["user: the text", "assistant: one", "call c ls {}", "error c ls: ", "assistant: two"]
    assert [item.usage for item in session.items if item.usage] == [Usage(5, 0, 0, 1), Usage(9, 0, 0, 2)]


def test_reasoning_next_to_the_content_keeps_its_sendable_form(tmp_path: Path) -> None:
    log = [
        user("hi"),
        assistant("a", reasoning_content="plain"),
        assistant("b", reasoning_content="plain", thinking_blocks=[{"type": "thinking", "thinking": "signed", "signature": "s"}]),
        assistant("c", reasoning="p", reasoning_details=[{"type": "reasoning.encrypted", "data": "enc", "format": "google-gemini-v1"}]),
    ]
    thoughts = [item for item in session_of(tmp_path, log).items if isinstance(item, Reasoning)]
    assert [(thought.text, thought.signature, thought.data, dict(thought.extra)) for thought in thoughts] == [
        ("plain", None, None, {"provider": "openai"}),
        ("signed", "s", None, {}),
        ("", None, "enc", {"provider": "google"}),
    ]


def test_speaker_names_are_kept_and_developer_messages_are_system(tmp_path: Path) -> None:
    session = session_of(tmp_path, [{"role": "developer", "content": "D"}, {**user("hi"), "name": "ann"}])
    assert [item.category for item in session.items] == [MessageCategory.SYSTEM, MessageCategory.DIALOG]
    assert session.items[1].extra == {"openai_name": "ann"}


def test_a_damaged_message_costs_only_itself(tmp_path: Path) -> None:
    log = [*CHAT, 7, {"role": "alien", "content": "x"}, user({"type": 5}), assistant("a", {"function": 3}), user("bye")]
    transcript = account(tmp_path, log)
    assert shown(transcript.sessions[0])[-1] == "user: bye"
    assert [line.fate for line in transcript.lines][:5] == ["item", "item", "item", "damaged", "damaged"]
    assert len(transcript.lines) == len(log)
    assert all(line.items or line.reason for line in transcript.lines)


@pytest.mark.parametrize(
    "content",
    [
        b"[" * 100_000,
        b'{"messages": ' + b"[" * 5_000 + b"]" * 5_000 + b"}",
        b'[{"role": "user", "content": ' + b'[{"content":' * 900 + b"1" + b"}]" * 900 + b"}]",
        b'{"messages": []}',
        b'{"role": "user", "content": ["\\ud800", NaN, 1e999, ' + b"9" * 5_000 + b"]}",
        b"\xff\xfe\x00",
        b"\n\n",
    ],
    ids=["open brackets", "deep", "deep content", "nothing said", "numbers", "no text", "blank"],
)
def test_hostile_files_give_a_session_or_our_error(tmp_path: Path, content: bytes) -> None:
    try:
        transcript = account(tmp_path, content)
    except TranscriptError:
        return
    assert transcript.sessions[0].items


@pytest.mark.parametrize(
    "log",
    [
        {"info": {"agent_info": {"llm": "gpt-x"}, "user_info": {"llm": "gpt-y"}}, "simulations": [{"id": "s", "messages": [user("hi")]}]},
        {"eval": {"model": "gpt-x"}, "samples": [{"id": 1, "messages": [user("hi")]}]},
    ],
)
def test_a_benchmarks_log_names_the_model_of_its_conversations(tmp_path: Path, log: Json) -> None:
    assert session_of(tmp_path, log).metadata["model"] == "gpt-x"
