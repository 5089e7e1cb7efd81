"""Sorts the records of a file into conversations, and turns each conversation into a session.

Branches. Claude Code only ever appends. When a user goes back and asks again, the old branch stays in the file, but the model no longer
sees it. Following the tree (`parentUuid`) from its last leaf upwards would not do, because parallel calls and their results
are siblings in it: in the 34 real files at hand that would lose 46 of 618 results. So a branch counts as abandoned only if
two prompts have the same parent: the one with the latest activity in its branch stays. All other records stay, in the order
of the file. (In those 34 files nothing is removed.) A record may stand in a file twice. Its place in the tree is that of the first
copy, and copies are no branches.

Responses. The items of a response are on several lines, with tool results between them. They are put together, and the outputs of its
calls after them. An output that comes only after the next response has begun stays where it is, because the model gave that response
without it.

Compactions.

1. A compaction replaces all items before it, except those of the records that it preserved: a range of lines.
2. It names only items that no earlier compaction named, because those are out of the context already. So all compactions of
   a log together name each item at most once.
3. The items are in two heaps by their lines, one with the first line on top, the other with the last. A compaction takes items
   from both tops until it meets the preserved range, and never looks inside it. So each item is handled a constant number of
   times, however many compactions the log has.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from typing import TypeAlias

from session.items import Compaction, FunctionCall, FunctionCallOutput, Item, Message, MessageCategory
from session.session import Session
from session.transcripts.account import MERGED, NOT_CONTEXT
from session.transcripts.draft import append_items, attributed

from .entry import QUEUED, Entry

FEW = 5
"""Records of a branch that may be left out without a warning."""


@dataclass(slots=True)
class Conversation:
    """Records that belong to one session.

    Attributes:
        session: The last session id that its records name; may be empty.
        thread: The sidechain, or an empty text.
        entries: The entries, in the order of the file.
        warnings: A sentence for each branch with more than a few records that was left out.
    """

    session: str
    thread: str
    entries: list[Entry] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    @property
    def has_prompt(self) -> bool:
        """True if it contains a user's prompt. A fragment of another session has none."""
        return any(entry.is_prompt for entry in self.entries)

    @property
    def has_items(self) -> bool:
        """True if any of its records became an item."""
        return any(entry.items for entry in self.entries)


def sort_conversations(entries: list[Entry]) -> list[Conversation]:
    """Return the conversations in a file that have items: main ones first, each kind in the order in which they begin."""
    _merge_queued_prompts(entries)
    first_sessions = _first_linked_sessions(entries)
    by_key: dict[tuple[str, str], Conversation] = {}
    for entry in entries:
        key = (entry.thread, "" if entry.thread else first_sessions.get(entry.session, ""))
        conversation = by_key.setdefault(key, Conversation(entry.session, entry.thread))
        conversation.session = entry.session or conversation.session
        conversation.entries.append(entry)
    conversations = [conversation for conversation in by_key.values() if conversation.has_items]
    for conversation in conversations:
        conversation.warnings = _leave_out_branches(conversation.entries)
    conversations = [conversation for conversation in conversations if conversation.has_items]
    # Main conversations without a prompt come after those with one: they are fragments of sessions in other files.
    return sorted(conversations, key=lambda conversation: 2 if conversation.thread else 0 if conversation.has_prompt else 1)


def count_main(conversations: list[Conversation]) -> int:
    """Return the number of conversations at the head of the list that are equally entitled to be the main one."""
    first = conversations[0]
    kind = bool(first.thread), first.has_prompt
    return sum((bool(conversation.thread), conversation.has_prompt) == kind for conversation in conversations)


def _first_linked_sessions(entries: list[Entry]) -> dict[str, str]:
    """Return for each session id the first session that its records are linked to. A resumed session has a new id."""
    session_of = {entry.uuid: entry.session for entry in reversed(entries) if entry.uuid and not entry.thread}
    root: dict[str, str] = {}

    def find(session: str) -> str:
        while root.setdefault(session, session) != session:
            session = root[session]
        return session

    for entry in entries:
        if not entry.thread:
            own_root = find(entry.session)
            parent_root = find(session_of.get(entry.parent, entry.session))
            root[own_root] = parent_root
    return {session: find(session) for session in root}


def _leave_out_branches(entries: list[Entry]) -> list[str]:
    """Remove the items of abandoned branches from their entries. Return a warning for each long one."""
    parents: dict[str, str] = {}  # by uuid: the parent of its first record
    for entry in entries:
        if entry.uuid:
            parents.setdefault(entry.uuid, entry.parent)
    children: dict[str, list[Entry]] = {}
    first_talk: dict[str, Entry] = {}  # by record: the first entry of its branch that continues the conversation
    last_lines: dict[str, int] = {}  # by record: the line of the last such entry
    for entry in reversed(entries):  # parents precede their children, so one walk from the end sees whole branches
        if not entry.uuid:
            continue
        parent = parents[entry.uuid]
        talk = entry if entry.is_talk else first_talk.get(entry.uuid)
        if talk is not None:
            first_talk[entry.uuid] = talk
            last_lines[entry.uuid] = max(last_lines.get(entry.uuid, 0), talk.line)
        if parent:
            children.setdefault(parent, []).append(entry)
            if talk is not None:
                if parent not in first_talk or talk.line < first_talk[parent].line:
                    first_talk[parent] = talk
                last_lines[parent] = max(last_lines.get(parent, 0), last_lines[entry.uuid])
    uuid_counts = Counter(entry.uuid for entry in entries if entry.uuid)
    warnings: list[str] = []
    for parent, branches in list(children.items()):
        turns = [branch for branch in branches if branch.uuid in first_talk and _begins_turn(first_talk[branch.uuid])]
        if (
            len({branch.uuid for branch in turns}) > 1 and uuid_counts[parent] == 1
        ):  # a repeated uuid does not show which record comes after which
            current = max(turns, key=lambda branch: last_lines[branch.uuid])
            for branch in turns:
                if branch.uuid != current.uuid:
                    lines = _leave_out(branch, children, current)
                    if len(lines) > FEW:
                        warnings.append(
                            f"lines {min(lines)} to {max(lines)}: left out {len(lines)} messages on a branch that the user left; "
                            f"the session continues on line {current.line}"
                        )
    return warnings


def _begins_turn(entry: Entry) -> bool:
    """Return True for a prompt that the model was waiting for. Of queued prompts, several may have the same parent."""
    return entry.is_prompt and entry.mark != QUEUED


def _leave_out(branch: Entry, children: dict[str, list[Entry]], current: Entry) -> list[int]:
    """Remove the items of a branch. Return the lines that had some."""
    lines: list[int] = []
    stack = [branch]
    while stack:
        entry = stack.pop()
        if entry.items:
            lines.append(entry.line)
            entry.items, entry.fate, entry.is_prompt, entry.response = (), NOT_CONTEXT, False, ""
            entry.reason = f"on a branch that the user left; the session continues on line {current.line}"
        stack += children.pop(entry.uuid, ())  # popped, because a damaged file may contain a cycle
    return lines


def _merge_queued_prompts(entries: list[Entry]) -> None:
    """Merge each queued prompt into the attachment that repeats it later."""
    queued_prompts: dict[str, Entry] = {}
    for entry in entries:
        if text := _queued_prompt(entry):
            queued_prompts[text] = entry
        elif queued_prompts and entry.mark == QUEUED and (queued := queued_prompts.pop(_text(entry), None)):
            queued.items, queued.is_prompt, queued.fate = (), False, MERGED
            queued.reason = f"its prompt is on line {entry.line}"


def _queued_prompt(entry: Entry) -> str:
    return _text(entry) if entry.items and entry.items[0].extra.get("source") == "queued prompt" else ""


def _text(entry: Entry) -> str:
    return next((item.text for item in entry.items if isinstance(item, Message)), "")


class UncompactedItems:
    """Ids of the items that no compaction has replaced yet, in the order in which they were added."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        """
        Args:
            entries: All entries of the conversation. A compaction names the records that it preserved by their uuids.
        """
        self._lines = {entry.uuid: entry.line for entry in entries if entry.uuid}
        self._ids: dict[int, str] = {}  # by number, in order
        self._next_number = 0
        self._from_first: list[tuple[int, int]] = []  # line and number; may still contain replaced items
        self._from_last: list[tuple[int, int]] = []  # the same, negated

    def add(self, item_id: str, line: int) -> None:
        """Add the next item of the conversation, which is on this line."""
        self._ids[self._next_number] = item_id
        heappush(self._from_first, (line, self._next_number))
        heappush(self._from_last, (-line, -self._next_number))
        self._next_number += 1

    def replaced_by(self, compaction: Entry) -> tuple[str, ...]:
        """Remove the items that the compaction replaces, and return their ids in order."""
        metadata = compaction.compaction or {}
        head, tail = metadata.get("head"), metadata.get("tail")
        first, last = (self._lines.get(str(head), 0), self._lines.get(str(tail), -1)) if head and tail else (0, -1)
        if first > last:
            replaced = tuple(self._ids.values())
            self._ids.clear()
            self._from_first.clear()
            self._from_last.clear()
            return replaced
        numbers: list[int] = []
        while self._from_first and self._from_first[0][0] < first:
            numbers.append(heappop(self._from_first)[1])
        while self._from_last and -self._from_last[0][0] > last:
            numbers.append(-heappop(self._from_last)[1])
        return tuple(self._ids.pop(number) for number in sorted(set(numbers)) if number in self._ids)


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
