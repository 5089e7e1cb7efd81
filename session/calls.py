"""Which calls a log holds, by call id, and what answered each: so that what is reported twice is recorded once."""

from __future__ import annotations

import json
from collections.abc import Iterable

from .errors import DuplicateItemError, short
from .items import FunctionCall, FunctionCallOutput, ItemBase


class CallIndex:
    """The last call of each call id, with the first answer to it."""

    __slots__ = ("_found",)

    def __init__(self, items: Iterable[ItemBase]) -> None:
        self._found: dict[str, tuple[FunctionCall | None, FunctionCallOutput | None]] = {}
        for item in items:
            self.note(item)

    def note(self, item: ItemBase) -> None:
        """Takes in the next item of the log."""
        if isinstance(item, FunctionCall):
            self._found[item.call_id] = (item, None)
        elif isinstance(item, FunctionCallOutput):
            call, answer = self._found.get(item.call_id, (None, None))
            self._found[item.call_id] = (call, answer or item)

    def same_call(self, call: FunctionCall) -> FunctionCall | None:
        """The call that the log holds already, where it is this one; None where this one is new.

        Raises:
            DuplicateItemError: An unanswered call with its call id and other content is there.
        """
        known, answer = self._found.get(call.call_id, (None, None))
        if known is not None and known.name == call.name and _say_the_same(known.arguments, call.arguments):
            return known
        if known is not None and answer is None:
            told = f"call {short(call.call_id)} to {short(known.name)} still waits for its output; give this call an id of its own"
            raise DuplicateItemError(call.call_id, told)
        return None

    def same_output(self, output: FunctionCallOutput) -> FunctionCallOutput | None:
        """The output that the log holds already, where it is this one; None where this one is new.

        Raises:
            DuplicateItemError: The call has another answer already.
        """
        _, answer = self._found.get(output.call_id, (None, None))
        if answer is None or (answer.output, answer.is_error) == (output.output, output.is_error):
            return answer
        told = f"call {short(output.call_id)} is answered already, with another output; a call has one answer"
        raise DuplicateItemError(output.call_id, told)


def _say_the_same(one: str, other: str) -> bool:
    """Whether two arguments are one text, or the same JSON: who reports a call again may space it, or order its keys, in another way."""
    if one == other:
        return True
    try:
        return _canonical(one) == _canonical(other)
    except (ValueError, RecursionError):  # what is no JSON, too deep, or has integers of thousands of digits, is just its text
        return False


def _canonical(arguments: str) -> str:
    return json.dumps(json.loads(arguments), sort_keys=True)
