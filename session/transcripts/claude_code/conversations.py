"""Sorts the records of a file into conversations: main ones, sidechains, and branches that the user left.

Claude Code only ever appends. When a user goes back and asks again, the old branch stays in the file, but the model no longer
sees it. Following the tree (`parentUuid`) from its last leaf upwards would not do, because parallel calls and their results
are siblings in it: in the 34 real files at hand that would lose 46 of 618 results. So a branch counts as abandoned only if
two prompts have the same parent: the one with the latest activity in its branch stays. All other records stay, in the order
of the file. (In those 34 files nothing is removed.)

A record may stand in a file twice. Its place in the tree is that of the first copy, and copies are no branches.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from session.items import Message
from session.transcripts.account import MERGED, NOT_CONTEXT

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
