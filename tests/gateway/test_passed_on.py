"""An answer in which nothing is hidden reaches the client byte for byte, whatever is odd about it. `python -m tests.fuzz` found these."""

from __future__ import annotations

import json
from typing import Any

import pytest

from context_window.gateway.anthropic_recall import AnthropicJoinedAnswer
from context_window.gateway.chat_recall import ChatJoinedAnswer
from context_window.gateway.events import StreamEventReader
from context_window.gateway.joined_answer import JoinedAnswer
from context_window.gateway.responses_recall import ResponsesJoinedAnswer

REASONING = {"type": "response.output_item.added", "sequence_number": 1, "output_index": 0, "item": {"type": "reasoning", "id": "rs_1"}}
DONE = {**REASONING, "type": "response.output_item.done", "sequence_number": 2}
UNREADABLE = {"type": "response.output_item.added", "output_index": [], "item": {"type": "message"}}
EMPTY_DELTA = {"choices": [{"index": 0, "delta": {"tool_calls": []}, "finish_reason": None}]}
BLOCK = {"type": "content_block_start", "index": 5, "content_block": {"type": "text", "text": ""}}


@pytest.mark.parametrize(
    ("joined", "events"),
    [
        pytest.param(ResponsesJoinedAnswer(), [REASONING], id="it breaks off during reasoning"),
        pytest.param(ResponsesJoinedAnswer(), [REASONING, DONE, UNREADABLE, DONE], id="an item after reasoning cannot be read"),
        pytest.param(
            ResponsesJoinedAnswer(), [REASONING, "a comment", {"type": "response.in_progress"}], id="others wait behind reasoning"
        ),
        pytest.param(ResponsesJoinedAnswer(), [{**DONE, "output_index": 7}], id="an item that never began"),
        pytest.param(ResponsesJoinedAnswer(), [{**REASONING, "sequence_number": 7}, DONE], id="numbers in no order"),
        pytest.param(ChatJoinedAnswer(), [EMPTY_DELTA], id="an empty list of calls"),
        pytest.param(AnthropicJoinedAnswer(), [BLOCK], id="blocks that begin at five"),
    ],
)
def test_nothing_is_lost_or_changed(joined: JoinedAnswer, events: list[Any]) -> None:
    sent = [f": {event}\n\n" if isinstance(event, str) else f"event: x\ndata: {json.dumps(event)}\n\n" for event in events]
    came = [out.raw for event in StreamEventReader().events("".join(sent).encode()) for out in joined.read(event)]
    joined.finish_round()
    assert not joined.recalls
    assert b"".join([*came, *(out.raw for out in joined.end())]) == "".join(sent).encode()
