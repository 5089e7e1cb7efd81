"""`CallIndex`: tool calls and their outputs by call id, so that a call or an output that arrives twice is recorded once."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from .errors import DuplicateItemError, short
from .items import FunctionCall, FunctionCallOutput, ItemBase
from .stack import with_room


@dataclass(slots=True)
class _CallState:
    """State of one call id: its latest call, its calls without an output, oldest first, and its outputs.

    Only a merge can cause more than one call without an output. The outputs are those since a call arrived while none was unanswered.
    """

    latest: FunctionCall | None = None
    unanswered: list[FunctionCall] = field(default_factory=list)
    outputs: list[FunctionCallOutput] = field(default_factory=list)


class CallIndex:
    """The calls of a log by call id. An output answers the same call as in `units.Grouping`."""

    __slots__ = ("_states",)

    def __init__(self, items: Iterable[ItemBase]) -> None:
        self._states: dict[str, _CallState] = {}
        for item in items:
            self.add(item)

    def add(self, item: ItemBase) -> None:
        """Add the next item of the log."""
        if isinstance(item, FunctionCall):
            state = self._states.setdefault(item.call_id, _CallState())
            if not state.unanswered:
                state.outputs = []
            state.latest = item
            state.unanswered.append(item)
        elif isinstance(item, FunctionCallOutput):
            state = self._states.setdefault(item.call_id, _CallState())
            if state.unanswered or not state.outputs:  # an orphan after the real output is ignored
                state.outputs.append(item)
            if state.unanswered:
                state.unanswered.pop()

    def unanswered(self) -> dict[str, FunctionCall]:
        """Return the calls that wait for an output, by call id, in the order in which their ids came up."""
        return {call_id: state.unanswered[-1] for call_id, state in self._states.items() if state.unanswered}

    def same_call(self, call: FunctionCall) -> FunctionCall | None:
        """Return the recorded call that this one repeats, or None. Raises DuplicateItemError if another one with this id waits."""
        state = self._states.get(call.call_id)
        if state is None or state.latest is None:
            return None
        for recorded in (state.latest, *reversed(state.unanswered)):
            if recorded.name == call.name and _same_arguments(recorded.arguments, call.arguments):
                return recorded
        if state.unanswered:
            name = short(state.unanswered[-1].name)
            message = f"call {short(call.call_id)} to {name} still waits for its output; give this call an id of its own"
            raise DuplicateItemError(call.call_id, message)
        return None

    def same_output(self, output: FunctionCallOutput) -> FunctionCallOutput | None:
        """Return the recorded output that this one repeats, or None. Raises DuplicateItemError if the call already has another one.

        While a call waits for its output, the next output with its id is new, whatever its content.
        """
        state = self._states.get(output.call_id)
        if state is None or state.unanswered:
            return None
        for recorded in state.outputs:
            if (recorded.output, recorded.is_error) == (output.output, output.is_error):
                return recorded
        message = f"call {short(output.call_id)} already has another output; a call has one output"
        raise DuplicateItemError(output.call_id, message)


def _same_arguments(first: str, second: str) -> bool:
    """True if two argument texts are equal, or equal as JSON: a repeated report may have other spacing or another order of keys."""
    if first == second:
        return True
    try:
        return with_room(lambda: _canonical(first) == _canonical(second))
    except (ValueError, RecursionError):  # not JSON, too deep, or integers of thousands of digits: compared as text only
        return False


def _canonical(arguments: str) -> str:
    return json.dumps(json.loads(arguments), sort_keys=True)
