"""The log as a provider tells it: what the user says, what the model answers, each call with its answer.

Shared by all converters. Here is decided what comes after what; which words the wire has for it, in each one's own file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias, cast

from session.items import Compaction, FunctionCall, FunctionCallOutput, Message, Reasoning
from session.session import Session
from session.units import KIND_ORPHAN, KIND_OUTPUT, KIND_SILENT, KIND_USER, Grouping, is_answer

Answer: TypeAlias = Reasoning | Message | FunctionCall


@dataclass(slots=True)
class Response:
    """What the model said in one answer, in its order, and what its calls were answered.

    Attributes:
        items: Reasoning, assistant messages and calls.
        outputs: By the item id of the call. A call that is not in it was never answered.
    """

    items: list[Answer] = field(default_factory=list)
    outputs: dict[str, FunctionCallOutput] = field(default_factory=dict)

    @property
    def calls(self) -> list[FunctionCall]:
        """The calls, in the order they were made."""
        return [item for item in self.items if isinstance(item, FunctionCall)]


Step: TypeAlias = Response | Message | Compaction
"""A response; a user message, or a summary of role assistant, or a system message that stays where it is; a compaction."""


@dataclass(slots=True)
class Conversation:
    """A log in steps.

    Attributes:
        system: The messages of role system or developer, wherever they stood; none where they stay in their places.
        steps: All else, in order. An output stands with its call, however late it came; one without a call is left out.
        preamble: Whether the converter adds `additions.PREAMBLE` at the head.
    """

    system: list[Message]
    steps: list[Step]
    preamble: bool


def conversation(session: Session, *, system_in_place: bool = False) -> Conversation:
    """The session in steps. Handoffs and config updates are no steps: nothing is sent for them.

    Args:
        session: A log or a view.
        system_in_place: Whether messages of role system or developer are steps where they stand, for providers that take
            them anywhere. One that stood between a call and its output comes after the response.
    """
    told = Conversation([], [], preamble=False)
    groups, breaks = Grouping(), session.response_breaks
    asked: dict[int, tuple[Response, str]] = {}  # by position of a call: its response, its item id
    for place, item in enumerate(session.items):
        groups.feed(item, item.id in breaks)
        if is_answer(item):
            if groups.starts[-1] == place:
                told.steps.append(Response())
            response = told.steps[-1]
            assert isinstance(response, Response)
            response.items.append(cast(Answer, item))
            if isinstance(item, FunctionCall):
                asked[place] = response, item.id
        elif isinstance(item, FunctionCallOutput):
            if groups.kind[place] == KIND_OUTPUT:
                response, call = asked[groups.last_answered]
                response.outputs[call] = item
        elif isinstance(item, Message):
            if item.role in ("system", "developer") and not system_in_place:
                told.system.append(item)
            else:
                told.steps.append(item)
        elif isinstance(item, Compaction):
            told.steps.append(item)
    told.preamble = preamble_due(groups)
    return told


def preamble_due(groups: Grouping) -> bool:
    """Whether `additions.PREAMBLE` stands at the head: the first item that becomes a message is no user message.

    Planners reserve its tokens by the same rule.
    """
    first = next((kind for kind in groups.kind if kind not in (KIND_SILENT, KIND_ORPHAN)), None)
    return first not in (None, KIND_USER)
