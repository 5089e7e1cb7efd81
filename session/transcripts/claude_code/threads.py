"""The records of a file, sorted into conversations: main ones, sidechains, and branches that a user left.

Claude Code only ever appends. When a user goes back and asks again, the old branch stays in the file, and the model never
sees it any more. The tree (`parentUuid`) cannot simply be followed from its last leaf upwards, because parallel calls and
their results hang side by side: in the 34 real files at hand that would lose 46 of 618 results. So a branch counts as left
only where two users' prompts hang on one record: the prompt whose branch speaks last is the one that holds. All other
records stay, in the order of the file. (Of those 34 files this takes nothing.)
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from session.items import Message
from session.transcripts.account import MERGED, NOT_CONTEXT

from .entry import QUEUED, Entry


@dataclass(slots=True)
class Conversation:
    """Records that belong to one session.

    Attributes:
        session: The session's id as the file names it, last; may be empty.
        thread: The sidechain, or an empty text.
        entries: In the order of the file.
    """

    session: str
    thread: str
    entries: list[Entry] = field(default_factory=list)

    @property
    def asks(self) -> bool:
        """Whether a user speaks in it; a piece torn out of a session has none."""
        return any(entry.typed for entry in self.entries)


def conversations(entries: list[Entry]) -> list[Conversation]:
    """The conversations in a file that have items: main ones first, each kind in the order in which they begin."""
    _settle_queued(entries)
    linked = _linked_sessions(entries)
    found: dict[tuple[str, str], Conversation] = {}
    for entry in entries:
        key = (entry.thread, "" if entry.thread else linked.get(entry.session, ""))
        one = found.setdefault(key, Conversation(entry.session, entry.thread))
        one.session = entry.session or one.session
        one.entries.append(entry)
    told = [one for one in found.values() if any(entry.items for entry in one.entries)]
    for one in told:
        _leave_out_branches(one.entries)
    told = [one for one in told if any(entry.items for entry in one.entries)]
    # Of the main ones those come first in which a user speaks: the others are pieces of sessions that lie elsewhere.
    return sorted(told, key=lambda one: 2 if one.thread else 0 if one.asks else 1)


def equals(found: list[Conversation]) -> int:
    """How many conversations at the head of the list have the same right to be called the main one."""
    first = found[0]
    return sum(1 for one in found if (bool(one.thread), one.asks) == (bool(first.thread), first.asks))


def _linked_sessions(entries: list[Entry]) -> dict[str, str]:
    """For each session id, the first one of those that its records hang together with: a resumed session has a new id."""
    session_of = {entry.uuid: entry.session for entry in reversed(entries) if entry.uuid and not entry.thread}
    root: dict[str, str] = {}

    def find(session: str) -> str:
        while root.setdefault(session, session) != session:
            session = root[session]
        return session

    for entry in entries:
        if not entry.thread:
            mine = find(entry.session)
            other = find(session_of.get(entry.parent, entry.session))
            root[mine] = other
    return {session: find(session) for session in root}


def _leave_out_branches(entries: list[Entry]) -> None:
    """Takes the items out of the branches that were left."""
    children: dict[str, list[Entry]] = {}
    first: dict[str, Entry] = {}  # by record: who speaks first from there on, and the line of the last word
    last: dict[str, int] = {}
    for entry in reversed(entries):  # parents stand before their children, so one walk from the end sees whole branches
        said = entry if entry.talks else first.get(entry.uuid) if entry.uuid else None
        if entry.uuid and said is not None:
            first[entry.uuid] = said
            last[entry.uuid] = max(last.get(entry.uuid, 0), said.line)
        if entry.parent and entry.uuid:
            children.setdefault(entry.parent, []).append(entry)
            if said is not None:
                if entry.parent not in first or said.line < first[entry.parent].line:
                    first[entry.parent] = said
                last[entry.parent] = max(last.get(entry.parent, 0), last[entry.uuid])
    known = Counter(entry.uuid for entry in entries if entry.uuid)
    for parent, branches in list(children.items()):
        turns = [branch for branch in branches if branch.uuid in first and _begins_turn(first[branch.uuid])]
        if len(turns) > 1 and known[parent] == 1:  # a uuid that stands twice says nothing about what follows what
            held = max(turns, key=lambda branch: last[branch.uuid])
            for branch in turns:
                if branch is not held:
                    _leave(branch, children, held)


def _begins_turn(said: Entry) -> bool:
    """Whether it is a prompt that was asked for. Of those that waited in the queue several may hang on one record."""
    return said.typed and said.mark != QUEUED


def _leave(branch: Entry, children: dict[str, list[Entry]], held: Entry) -> None:
    waiting = [branch]
    while waiting:
        entry = waiting.pop()
        if entry.items:
            entry.items, entry.fate, entry.typed, entry.response = (), NOT_CONTEXT, False, ""
            entry.reason = f"in a branch that the user left: line {held.line} goes on from the same place"
        waiting += children.pop(entry.uuid, ())  # popped: a damaged file may go in circles


def _settle_queued(entries: list[Entry]) -> None:
    """A queued prompt that an attachment after it brings too is taken from there."""
    waiting: dict[str, Entry] = {}
    for entry in entries:
        if text := _queued_prompt(entry):
            waiting[text] = entry
        elif waiting and entry.mark == QUEUED and (queued := waiting.pop(_text(entry), None)):
            queued.items, queued.typed, queued.fate = (), False, MERGED
            queued.reason = f"its prompt is on line {entry.line}"


def _queued_prompt(entry: Entry) -> str:
    return _text(entry) if entry.items and entry.items[0].extra.get("source") == "queued prompt" else ""


def _text(entry: Entry) -> str:
    return next((item.text for item in entry.items if isinstance(item, Message)), "")
