"""OpenAI's Agents SDK: before every call of the model its input becomes the items that fit. The run keeps all of them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agents import FunctionTool, TResponseInputItem
from agents.run_config import CallModelData, ModelInputData

from session.door import clean_json
from session.items import FunctionCall, FunctionCallOutput, Item, Message, MessageCategory, Reasoning, Role
from session.parts import Part
from session.providers.additions import PREAMBLE
from session.transcripts.values import json_text

from ..manager import ContextWindowManager
from .contents import blocks_of, content_shown, part_for
from .conversations import REMEMBERED, Conversations

__all__ = ["ContextWindowFilter"]

_BOUND = (None, "message", "function_call", "custom_tool_call")
"""Items that the API refuses by their id without the reasoning that they came with (docs/provider-rules.md, R2); without, it takes them."""


class ContextWindowFilter:
    """Shows the model what fits: a filter for runs.

        config = RunConfig(call_model_input_filter=ContextWindowFilter(ContextWindowManager("gpt-5")))
        result = await Runner.run(agent, "…", run_config=config)

    The run keeps every item (`result.to_input_list()`). What is sent are the run's own items; of one that is shown in part, a copy.
    `recall` is a function that can be given to the agent as a tool (`function_tool(filter.recall)`).
    """

    def __init__(self, manager: ContextWindowManager, *, remembered: int = REMEMBERED) -> None:
        """
        Args:
            manager: What decides. Instructions and function tools of an agent are counted without its being told.
            remembered: Conversations that are gone on with, those asked about last; others are decided anew, and alike.
        """
        self._conversations: Conversations[TResponseInputItem] = Conversations(manager, _ResponsesWords(), remembered=remembered)

    def recall(self, id: str) -> str:
        """Gives back content that was taken out of this conversation to save space, by the recall id that its placeholder names.

        Args:
            id: The recall id.
        """
        return self._conversations.recall(id)

    async def __call__(self, data: CallModelData[Any]) -> ModelInputData:
        """The input with the items that fit.

        Args:
            data: The input as the run made it, and the agent.

        Raises:
            ContextOverflowError: What must be kept does not fit, and the window is `strict`.
        """
        given = data.model_data
        tools = [_definition(tool) for tool in data.agent.tools if isinstance(tool, FunctionTool)]
        items = await self._conversations.afit(given.input, system=given.instructions or "", tools=tools)
        return ModelInputData(input=items, instructions=given.instructions)


def _definition(tool: FunctionTool) -> dict[str, Any]:
    return {"type": "function", "name": tool.name, "description": tool.description, "parameters": tool.params_json_schema}


class _ResponsesWords:
    """Items of the Responses API as ours, one each, and copies of them with less."""

    answers_whole = False

    def __init__(self) -> None:
        self._preamble: TResponseInputItem = {"role": "user", "content": PREAMBLE}

    def digest(self, message: TResponseInputItem) -> bytes:
        try:
            said = json.dumps(message, sort_keys=True, default=repr)
        except (TypeError, ValueError, RecursionError):  # keys of several kinds, or endlessly deep
            said = repr(message)
        return hashlib.sha256(said.encode(errors="backslashreplace")).digest()

    def items(self, message: TResponseInputItem, ids: Iterator[str]) -> list[Item]:
        return [_item(message, next(ids))]

    def partly(self, message: TResponseInputItem, items: Sequence[Item], shown: Sequence[Item | None]) -> TResponseInputItem | None:
        whole, now = items[0], shown[0]
        name = "content" if isinstance(whole, Message) else "output"
        if not (isinstance(now, Message | FunctionCallOutput) and isinstance(whole, Message | FunctionCallOutput)):
            return None
        content: Any = message.get(name)
        return {**message, name: content_shown(content, whole, now, _block)}  # type: ignore[return-value]

    def joined(self, earlier: TResponseInputItem, later: TResponseInputItem) -> TResponseInputItem:  # noqa: ARG002 - as the others' is called
        return later  # never asked for: each item stands for itself

    def preamble(self) -> TResponseInputItem:
        return self._preamble

    def unbound(self, message: TResponseInputItem) -> TResponseInputItem:
        if message.get("id") is None or message.get("type") not in _BOUND:
            return message
        return {name: value for name, value in message.items() if name != "id"}  # type: ignore[return-value]

    def is_system(self, message: TResponseInputItem) -> bool:
        return message.get("role") in ("system", "developer")


def _block(text: str) -> dict[str, str]:
    return {"type": "input_text", "text": text}


def _item(given: Mapping[str, Any], id: str) -> Item:
    """The item that one of theirs is. What the provider keeps its own books with is never taken."""
    kind = given.get("type") or ("message" if "role" in given else "")
    match kind:
        case "message":
            return Message(_role(given), _parts(given.get("content")), id=id, created_at=0.0)
        case "function_call" | "custom_tool_call":
            arguments = given.get("arguments" if kind == "function_call" else "input")
            return FunctionCall(str(given.get("name", "tool")), str(arguments or ""), str(given.get("call_id", "")), id=id, created_at=0.0)
        case "function_call_output" | "custom_tool_call_output":
            return FunctionCallOutput("", _parts(given.get("output")), str(given.get("call_id", "")), id=id, created_at=0.0)
        case "reasoning":
            return Reasoning(_thought(given), data=_text(given.get("encrypted_content")), id=id, created_at=0.0)
    told = json_text(clean_json(dict(given), "input"))
    if isinstance(call_id := given.get("call_id"), str) and kind.endswith("_output"):  # a computer, a shell
        return FunctionCallOutput(kind, told, call_id, pinned=True, id=id, created_at=0.0)
    if isinstance(call_id, str):
        return FunctionCall(kind, told, call_id, pinned=True, id=id, created_at=0.0)
    if kind.endswith("_call"):  # what the provider ran by itself: it goes with the answer that it is part of
        return Reasoning(told, id=id, created_at=0.0)
    return Message("system", told, category=MessageCategory.SYSTEM, id=id, created_at=0.0)


def _role(given: Mapping[str, Any]) -> Role:
    roles: dict[object, Role] = {"system": "system", "developer": "developer", "assistant": "assistant"}
    return roles.get(given.get("role"), "user")


def _parts(content: object) -> list[Part]:
    return [part_for(block) for block in blocks_of(content)]


def _thought(given: Mapping[str, Any]) -> str:
    shown = [*blocks_of(given.get("summary")), *blocks_of(given.get("content"))]
    return "\n".join(block["text"] for block in shown if isinstance(block, dict) and isinstance(block.get("text"), str))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
