"""Call ids that are unique in a session, and which call each tool result answers. Ids of items are in `draft.py`."""

from __future__ import annotations

from collections import deque

from session.sanitize import clean

from .record import Record
from .unique_ids import UniqueIds
from .values import REDACTED

UNKNOWN_TOOL = "unknown"
"""The tool name of a result whose call is not in the file."""


class CallIds:
    """The call ids of a session: the file's own if they are unique, generated ones if they repeat, are missing or are redacted.

    A call and its result have the same id in the file. If several calls share an id, a result answers the oldest open one.
    """

    def __init__(self) -> None:
        self._ids = UniqueIds()
        self._open_calls: dict[str, deque[tuple[str, str]]] = {}  # by the file's id: our call ids and their tools
        self._result_numbers: dict[str, int] = {}  # by the file's id: the record of the last result

    def add_call(self, file_id: str, tool: str, item_id: str) -> str:
        """Return the session's id for a call.

        Args:
            file_id: The call's id in the file; may be empty.
            tool: Name of the tool.
            item_id: Id of the call's item, from which a call id is made if the file has none.
        """
        is_usable = file_id and REDACTED not in file_id
        call_id = self._ids.claim(clean(file_id) if is_usable else f"call-{item_id}")
        self._open_calls.setdefault(file_id, deque()).append((call_id, tool))
        return call_id

    def add_result(self, file_id: str, record: Record, tool: str = "") -> tuple[str, str] | None:
        """Return the call id and tool name of a result, or None for a second result of the same call, which is merged.

        Args:
            file_id: The call's id in the file; may be empty.
            record: The record that holds the result.
            tool: Name of the tool as stated in the result; may be empty.
        """
        if open_calls := self._open_calls.get(file_id):
            self._result_numbers[file_id] = record.number
            return open_calls.popleft()
        if file_id in self._result_numbers:
            record.merge(f"the result of call {file_id} is already on line {self._result_numbers[file_id]}")
            return None
        self._result_numbers[file_id] = record.number
        return clean(file_id) or f"call-L{record.number}", tool or UNKNOWN_TOOL
