"""What twenty summaries in a row do not lose, although the summariser keeps nothing of the one before."""

from __future__ import annotations

import asyncio

from context_window import (
    Compaction,
    ContextWindow,
    ContextWindowManager,
    FunctionCall,
    FunctionCallOutput,
    Message,
    MessageCategory,
    Session,
)
from session.decisions import HEADING, MOST, decisions_of, with_decisions
from session.parts import Text

RULES = "You must never edit the tests.\nAlways run the linter before you commit."
TASK = "Move the ledger to SQLite, file by file. Do not change what the reports print."
TOOL = "mcp__tickets__find"


class Forgetful:
    """A summariser that states one decision each time, and nothing of what it was told before. The fifth summary revokes the first one."""

    def __init__(self) -> None:
        self.count = 0

    async def __call__(self, prompt: str) -> str:
        assert RULES.splitlines()[0] not in prompt
        assert TASK not in prompt
        self.count += 1
        revoked = "\n- revoked: decision 1" if self.count == 5 else ""
        return f"They talked about file {self.count}.\n\n{HEADING}\n- decision {self.count}{revoked}"


def test_twenty_summaries_lose_neither_rules_nor_task_nor_decisions_nor_tools_nor_calls_in_flight() -> None:
    """after each of twenty compactions the rules, the task, the decisions, the results that loaded tools in use, and calls in flight are in
    the view word for word"""
    manager = ContextWindowManager(token_counter=len, context_window=ContextWindow(max_tokens=16_000))
    log, llm = Session(), Forgetful()
    log.append(Message("user", RULES, category=MessageCategory.CONTEXT, id="rules"))
    log.append(Message("user", TASK, id="task"))
    search = log.add_function_call("ToolSearch", {"query": "tickets"})
    log.append(FunctionCallOutput("ToolSearch", [Text(TOOL)], search.call_id, extra={"loaded_tools": 1}, id="loader"))
    waiting = log.add_function_call("deploy", {"to": "staging"})
    number = 0
    while llm.count < 20:
        number += 1
        call = log.add_function_call(TOOL, {"text": f"file {number}"})
        log.add_function_output(TOOL, "ticket " * 40, call.call_id)
        log.add_message("assistant", f"File {number} is done. " + "It went well. " * 60)
        log.add_message("user", f"Go on with file {number + 1}.")
        view = asyncio.run(manager.manage(log, llm))
        assert number < 400
        texts = {item.id: item.text for item in view.items if isinstance(item, Message | FunctionCallOutput)}
        assert (texts["rules"], texts["task"], texts["loader"]) == (RULES, TASK, TOOL)
        assert any(isinstance(item, FunctionCall) and item.call_id == waiting.call_id for item in view.items)
        assert not any(isinstance(item, FunctionCallOutput) and item.call_id == waiting.call_id for item in view.items)
        summaries = [item.summary for item in view.items if isinstance(item, Compaction)]
        assert len(summaries) == min(1, llm.count)
        if summaries:
            expected = [f"decision {one}" for one in range(2 if llm.count >= 5 else 1, llm.count + 1)]
            assert decisions_of(summaries[0]) == expected


def test_a_block_of_decisions_stays_small_and_keeps_the_newest() -> None:
    summary = ""
    for number in range(100):
        summary = with_decisions(f"Text.\n{HEADING}\n- {number:03} {'x' * 96}", [summary])
    assert [line[:3] for line in decisions_of(summary)] == [f"{number:03}" for number in range(60, 100)]
    assert sum(map(len, decisions_of(summary))) == MOST
    assert summary.startswith("Text.\n\nSettled")


def test_text_around_a_block_stays() -> None:
    summary = f"Before.\n\n**{HEADING}**\n- a\n- b\nAfter."
    assert decisions_of(summary) == ["a", "b"]
    assert with_decisions(summary, []) == f"Before.\n\nAfter.\n\n{HEADING}\n- a\n- b"
    assert with_decisions("No block.", ["None here."]) == "No block."
    assert with_decisions(f"{HEADING}\n- revoked: a", [summary]) == f"{HEADING}\n- b"
