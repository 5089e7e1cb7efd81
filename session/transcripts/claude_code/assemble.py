"""Assembles the session of one conversation: the items of each response together, then the outputs of its calls.

The items of a response are on several lines, with tool results between them. An output that comes only after the next response
has begun stays where it is, because the model gave that response without it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace
from typing import TypeAlias

from session.items import Compaction, FunctionCall, FunctionCallOutput, Item, MessageCategory
from session.session import Session
from session.transcripts.account import MERGED
from session.transcripts.draft import append_items, attributed

from .entry import Entry
from .uncompacted import UncompactedItems

Outputs: TypeAlias = list[tuple[FunctionCallOutput, Entry]]
"""Outputs, each with the entry that it is from."""


def assemble_session(session: Session, entries: list[Entry]) -> None:
    """Append the items of a conversation to its session, and set the breaks between adjacent responses.

    Args:
        session: The session, still empty.
        entries: The entries of the conversation. Entries with a repeated output lose it here.
    """
    response_entries: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.response:
            response_entries.setdefault(entry.response, []).append(entry)
    outputs = _outputs_by_response(entries, response_entries)
    append_items(session, _resolve_compactions(entries, _in_order(entries, response_entries, outputs, session.metadata.get("model"))))


def _resolve_compactions(entries: list[Entry], items: Iterator[tuple[Item, Entry]]) -> Iterator[tuple[Item, str]]:
    """Yield the items, each with its response. Compactions get the ids that they replace."""
    uncompacted = UncompactedItems(entries)
    for item, entry in items:
        if isinstance(item, Compaction):
            item = replace(item, replaces=uncompacted.replaced_by(entry))  # noqa: PLW2901
        yield item, entry.response
        if item.category is not MessageCategory.SYSTEM:
            uncompacted.add(item.id, entry.line)


def _in_order(
    entries: list[Entry], response_entries: dict[str, list[Entry]], outputs: dict[str, Outputs], session_model: object
) -> Iterator[tuple[Item, Entry]]:
    """Yield the items in session order, each with its entry."""
    moved_ids = {output.id for response_outputs in outputs.values() for output, _ in response_outputs}
    for entry in entries:
        if not entry.response:
            yield from ((item, entry) for item in entry.items if item.id not in moved_ids)
            continue
        if (group := response_entries.pop(entry.response, None)) is None:
            continue  # already yielded with the first entry of the response
        usage = next((member.usage for member in reversed(group) if member.usage), None)
        model = entry.model
        for member in group:
            for item in member.items:
                if item.id not in moved_ids:
                    yield attributed(item, usage, model, session_model), member
                    usage, model = None, ""
        yield from outputs.pop(entry.response, ())


def _outputs_by_response(entries: list[Entry], response_entries: dict[str, list[Entry]]) -> dict[str, Outputs]:
    """Return the outputs that directly follow each response. Repeated outputs of a call are removed from their entries."""
    starts = sorted(group[0].line for group in response_entries.values())
    end_lines = {}  # by response: the line on which the next response begins
    for response, group in response_entries.items():
        next_start = bisect_right(starts, group[-1].line)
        end_lines[response] = starts[next_start] if next_start < len(starts) else float("inf")
    open_calls: dict[str, list[tuple[FunctionCall, str]]] = {}
    early_outputs: dict[str, tuple[FunctionCallOutput, Entry]] = {}  # outputs whose calls have not been seen yet
    output_lines: dict[str, int] = {}  # by call id
    outputs: dict[str, Outputs] = {}
    for entry in entries:
        for item in entry.items:
            if isinstance(item, FunctionCall):
                if item.call_id in early_outputs:
                    output, output_entry = early_outputs.pop(item.call_id)
                    outputs.setdefault(entry.response, []).append((_with_name(output, item.name), output_entry))
                else:
                    open_calls.setdefault(item.call_id, []).append((item, entry.response))
            elif isinstance(item, FunctionCallOutput):
                if calls := open_calls.get(item.call_id):
                    call, response = calls.pop()
                    output_lines[item.call_id] = entry.line
                    if entry.line < end_lines[response]:
                        outputs.setdefault(response, []).append((_with_name(item, call.name), entry))
                elif item.call_id in output_lines or item.call_id in early_outputs:
                    line = output_lines.get(item.call_id) or early_outputs[item.call_id][1].line
                    _remove(item, entry, f"the result of call {item.call_id} is already on line {line}")
                else:
                    early_outputs[item.call_id] = item, entry
    return outputs


def _with_name(output: FunctionCallOutput, tool: str) -> FunctionCallOutput:
    return output if output.name == tool else replace(output, name=tool)


def _remove(item: Item, entry: Entry, reason: str) -> None:
    entry.items = tuple(other for other in entry.items if other is not item)
    entry.reason = f"{entry.reason}; {reason}" if entry.reason else reason
    if not entry.items:
        entry.fate = MERGED
