"""The entries of one conversation, turned into its session: one response together, then its outputs in their order.

A response's items lie on several lines, and results stand between them. An output that comes only after the next response
has begun stays where it is: the model saw that response's prompt without it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import replace

from session.items import Compaction, FunctionCall, FunctionCallOutput, Item, MessageCategory
from session.session import Session
from session.transcripts.account import MERGED
from session.units import is_answer

from .entry import Entry
from .standing import Standing


def fill(session: Session, entries: list[Entry]) -> None:
    """Appends the items of the entries to the session, and sets where one response ends and the next begins at once.

    Args:
        session: An empty one.
        entries: Those of one conversation. Copies of outputs lose their items here.
    """
    groups: dict[str, list[Entry]] = {}
    for entry in entries:
        if entry.response:
            groups.setdefault(entry.response, []).append(entry)
    answers = _answers(entries, groups)
    breaks: set[str] = set()
    standing = Standing(entries)
    last_response = ""
    for item, entry in _in_order(entries, groups, answers):
        if isinstance(item, Compaction):
            item = replace(item, replaces=standing.replaced_by(entry))  # noqa: PLW2901
        if is_answer(item):
            if last_response not in ("", entry.response):
                breaks.add(item.id)
            last_response = entry.response
        else:
            last_response = ""
        session.append(item)
        if item.category is not MessageCategory.SYSTEM:
            standing.add(item.id, entry.line)
    if breaks:
        session.restore_seams(frozenset(breaks), 0)


def _in_order(
    entries: list[Entry], groups: dict[str, list[Entry]], answers: dict[str, list[tuple[FunctionCallOutput, Entry]]]
) -> Iterator[tuple[Item, Entry]]:
    moved = {output.id for found in answers.values() for output, _ in found}
    for entry in entries:
        if not entry.response:
            yield from ((item, entry) for item in entry.items if item.id not in moved)
            continue
        if (group := groups.pop(entry.response, None)) is None:
            continue  # came with the first entry of its response
        usage = next((one.usage for one in reversed(group) if one.usage), None)
        for one in group:
            for item in one.items:
                if item.id not in moved:
                    yield (item if usage is None else replace(item, usage=usage)), one
                    usage = None
        yield from answers.pop(entry.response, ())


def _answers(entries: list[Entry], groups: dict[str, list[Entry]]) -> dict[str, list[tuple[FunctionCallOutput, Entry]]]:
    """For each response, the outputs that follow it at once. Second answers to a call are taken out of their entries."""
    starts = sorted(group[0].line for group in groups.values())
    limits = {}
    for response, group in groups.items():
        after = bisect_right(starts, group[-1].line)
        limits[response] = starts[after] if after < len(starts) else float("inf")
    open_calls: dict[str, list[tuple[FunctionCall, str]]] = {}
    early: dict[str, tuple[FunctionCallOutput, Entry]] = {}  # before their calls, which are looked for as the file goes on
    answered: dict[str, int] = {}
    found: dict[str, list[tuple[FunctionCallOutput, Entry]]] = {}
    for entry in entries:
        for item in entry.items:
            if isinstance(item, FunctionCall):
                if item.call_id in early:
                    output, its_entry = early.pop(item.call_id)
                    found.setdefault(entry.response, []).append((_named(output, item.name), its_entry))
                else:
                    open_calls.setdefault(item.call_id, []).append((item, entry.response))
            elif isinstance(item, FunctionCallOutput):
                if calls := open_calls.get(item.call_id):
                    call, response = calls.pop()
                    answered[item.call_id] = entry.line
                    if entry.line < limits[response]:
                        found.setdefault(response, []).append((_named(item, call.name), entry))
                elif item.call_id in answered or item.call_id in early:
                    first = answered.get(item.call_id) or early[item.call_id][1].line
                    _take_out(item, entry, f"the call {item.call_id} was answered on line {first}")
                else:
                    early[item.call_id] = item, entry
    return found


def _named(output: FunctionCallOutput, tool: str) -> FunctionCallOutput:
    return output if output.name == tool else replace(output, name=tool)


def _take_out(item: Item, entry: Entry, reason: str) -> None:
    entry.items = tuple(one for one in entry.items if one is not item)
    entry.reason = f"{entry.reason}; {reason}" if entry.reason else reason
    if not entry.items:
        entry.fate = MERGED
