"""Which calls a log holds, by call id, and what answered each: so that what is reported twice is recorded once."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field

from .errors import DuplicateItemError, short
from .items import FunctionCall, FunctionCallOutput, ItemBase
from .stack import with_room


@dataclass(slots=True)
class _Known:
    """What a log holds of one call id.

    Attributes:
        last: Its last call.
        waiting: Those of its calls that wait for an output, the oldest first. Only a merge makes more than one.
        answers: Its outputs since a call of it last came while none waited.
    """

    last: FunctionCall | None = None
    waiting: list[FunctionCall] = field(default_factory=list)
    answers: list[FunctionCallOutput] = field(default_factory=list)


class CallIndex:
    """The calls of each call id that wait or came last, with the answers to them. An output answers as `units.Grouping` has it."""

    __slots__ = ("_found",)

    def __init__(self, items: Iterable[ItemBase]) -> None:
        self._found: dict[str, _Known] = {}
        for item in items:
            self.note(item)

    def note(self, item: ItemBase) -> None:
        """Takes in the next item of the log."""
        if isinstance(item, FunctionCall):
            known = self._found.setdefault(item.call_id, _Known())
            if not known.waiting:
                known.answers = []
            known.last = item
            known.waiting.append(item)
        elif isinstance(item, FunctionCallOutput):
            known = self._found.setdefault(item.call_id, _Known())
            if known.waiting or not known.answers:  # an orphan beside answers is nobody's
                known.answers.append(item)
            if known.waiting:
                known.waiting.pop()

    def same_call(self, call: FunctionCall) -> FunctionCall | None:
        """The call that the log holds already, where it is this one; None where this one is new.

        Raises:
            DuplicateItemError: An unanswered call with its call id and other content is there.
        """
        known = self._found.get(call.call_id)
        if known is None or known.last is None:
            return None
        for one in (known.last, *reversed(known.waiting)):
            if one.name == call.name and _say_the_same(one.arguments, call.arguments):
                return one
        if known.waiting:
            waits = known.waiting[-1]
            told = f"call {short(call.call_id)} to {short(waits.name)} still waits for its output; give this call an id of its own"
            raise DuplicateItemError(call.call_id, told)
        return None

    def same_output(self, output: FunctionCallOutput) -> FunctionCallOutput | None:
        """The output that the log holds already, where it is this one; None where this one is new.

        Where a call waits, it is the answer to that one, whatever it says.

        Raises:
            DuplicateItemError: The call has another answer already.
        """
        known = self._found.get(output.call_id)
        if known is None or known.waiting:
            return None
        for answer in known.answers:
            if (answer.output, answer.is_error) == (output.output, output.is_error):
                return answer
        told = f"call {short(output.call_id)} is answered already, with another output; a call has one answer"
        raise DuplicateItemError(output.call_id, told)


def _say_the_same(one: str, other: str) -> bool:
    """Whether two arguments are one text, or the same JSON: who reports a call again may space it, or order its keys, in another way."""
    if one == other:
        return True
    try:
        return with_room(lambda: _canonical(one) == _canonical(other))
    except (ValueError, RecursionError):  # what is no JSON, too deep, or has integers of thousands of digits, is just its text
        return False


def _canonical(arguments: str) -> str:
    return json.dumps(json.loads(arguments), sort_keys=True)
