"""Records of a file and what tells them apart, before they are sorted into sessions.

`Entry` is a record with its items, `EntryIds` makes their ids, `skip_reason` names the lines that the model never sees, `source_of`
recognizes texts in the user's role that the tool wrote, and `PromptQueue` holds prompts that were typed while the model was working.
"""

from __future__ import annotations

import re
from collections import OrderedDict, deque
from dataclasses import dataclass, replace

from session.items import Item, Message, MessageCategory
from session.parts import Part, Text
from session.transcripts.account import Fate
from session.usage import Usage

CAVEAT = "caveat"
COMMAND = "command"
BOUNDARY = "boundary"
QUEUED = "queued"
"""Marks of entries: a note that a local command follows; a slash command that a user typed; a compaction boundary; a prompt
that was queued while the model was working."""


@dataclass(slots=True)
class Entry:
    """One record of the file, with its position in the tree of the conversation.

    Attributes:
        line: The line's number, counted from 1.
        uuid: The record's id, or an empty text.
        parent: Id of the record that it follows, or an empty text.
        session: The session id in the record, or else in the previous one.
        thread: The sidechain that it belongs to; empty for the main conversation.
        items: The items made from it.
        response: A name shared by all records of one response; empty for others.
        usage: The reported usage of the response.
        model: The model that gave the response.
        is_prompt: True if it contains a user's own words and so begins a turn.
        mark: CAVEAT, COMMAND, BOUNDARY, QUEUED or empty. It affects how the next records are read.
        compaction: For a compaction: its trigger, the tokens before it, and the first and last record that it preserved.
        fate: What became of it.
        reason: The reason for the fate.
        owner: Id of the session that it went into.
        text_bytes: Bytes of text in the record.
        unknown_bytes: Those of them that the reader does not know.
    """

    line: int
    uuid: str
    parent: str
    session: str
    thread: str
    items: tuple[Item, ...] = ()
    response: str = ""
    usage: Usage | None = None
    model: str = ""
    is_prompt: bool = False
    mark: str = ""
    compaction: dict[str, str | int] | None = None
    fate: Fate = "not context"
    reason: str = ""
    owner: str = ""
    text_bytes: int = 0
    unknown_bytes: int = 0

    @property
    def is_talk(self) -> bool:
        """True if it continues the conversation. Text that the tool adds by itself can be anywhere in the tree and does not count."""
        return any(not (isinstance(item, Message) and item.category is MessageCategory.CONTEXT) for item in self.items)


class EntryIds:
    """Item ids that are unique in a file: the first 8 characters of the record's uuid, or more if those are in use.

    The second item of a record gets `.1` at the end, the third `.2`. Records without a uuid use their line: `L17`.
    """

    LENGTHS = (8, 13, 18, 23)

    def __init__(self) -> None:
        self._used: set[str] = set()

    def base(self, uuid: str, line: int) -> str:
        """Return an unused id for the first item of a record."""
        full_id = uuid.replace(".", "-") or f"L{line}"
        candidates = [*(full_id[:length] for length in self.LENGTHS if uuid and length < len(full_id)), full_id]
        for candidate in candidates:
            if candidate not in self._used:
                return candidate
        number = 2
        while f"{full_id}-{number}" in self._used:
            number += 1
        return f"{full_id}-{number}"

    def use(self, item_id: str) -> None:
        """Mark an id as used."""
        self._used.add(item_id)


def item_id_at(base: str, index: int) -> str:
    """Return the id of the item at this index of its record."""
    return base if index == 0 else f"{base}.{index}"


def are_equal(items: tuple[Item, ...], other_items: tuple[Item, ...]) -> bool:
    """Return True if the items of two records are equal except for their ids and times."""
    return len(items) == len(other_items) and all(
        type(item) is type(other) and replace(other, id=item.id, created_at=item.created_at) == item
        for item, other in zip(items, other_items, strict=True)
    )


LINE_TYPES = {
    "agent-color": "a display setting",
    "agent-name": "a name for the user",
    "agent-setting": "a setting of the tool",
    "ai-title": "a title for the user",
    "attribution-snapshot": "the tool's record of who wrote which code",
    "content-replacement": "content that the tool keeps on disk",
    "custom-title": "a title for the user",
    "file-history-snapshot": "a backup of files, for undoing edits",
    "last-prompt": "a copy of a prompt, for the list of sessions",
    "mode": "a setting of the tool",
    "permission-mode": "a setting of the tool",
    "pr-link": "a link for the user",
    "progress": "progress of a tool or hook, for the screen",
    "queue-operation": "a queued prompt, which has a line of its own",
    "result": "statistics of a finished run",
    "speculation-accept": "a speculative result of the tool",
    "summary": "a title for the list of sessions",
    "tag": "a label for the user",
    "task-summary": "a note for the user",
    "worktree-state": "a setting of the tool",
}

SYSTEM_SUBTYPES = {
    "agents_killed": "a note for the user",
    "api_error": "an API error, after which the tool sent the request again",
    "api_metrics": "statistics for the user",
    "away_summary": "a note for the user",
    "bridge_status": "a note for the user",
    "compact_boundary": "the boundary of a compaction whose summary is missing",
    "informational": "a note for the user",
    "init": "the settings of the tool",
    "memory_saved": "a note for the user",
    "microcompact_boundary": "the place where the tool cleared old results",
    "permission_retry": "a note for the user",
    "scheduled_task_fire": "a note for the user",
    "stop_hook_summary": "a note for the user",
    "turn_duration": "a duration, for the user",
}

API_ERROR = "an API error, shown only to the user"


def skip_reason(kind: str, subtype: str) -> str:
    """Return the reason why the model does not see a line of this type and subtype."""
    if kind == "system":
        return SYSTEM_SUBTYPES.get(subtype) or f"unknown system subtype {subtype!r}"[:100]
    return LINE_TYPES.get(kind) or f"unknown type {kind!r}"[:100]


_COMMAND = re.compile(r"\s*<command-(?:name|message)>")

_TAGS = {
    "local-command-caveat": "local command",
    "local-command-stdout": "local command",
    "local-command-stderr": "local command",
    "bash-input": "shell command",
    "bash-stdout": "shell command",
    "bash-stderr": "shell command",
    "user-memory-input": "memory",
    "task-notification": "task notification",
    "teammate-message": "teammate",
    "system-reminder": "system reminder",
    "ide_selection": "ide",
    "ide_opened_file": "ide",
    "ide_diagnostics": "ide",
    "new-diagnostics": "ide",
}
"""Sources of texts that the tool wrote, by the tag at their start."""

_OPENINGS = {
    "[Request interrupted by user": "interruption",
    "Caveat: The messages below were generated by the user": "local command",
}
"""Sources of texts without a tag, by their first words."""

_TAG = re.compile(rf"\s*<({'|'.join(_TAGS)})[ >]")
_MEMORY = re.compile(r"Contents of ([^\n]{1,500}?\.mdc?)\b(?: \([^\n]*\))?:")


def source_of(text: str) -> str | None:
    """Return the source of a text that the tool wrote, or None for a user's text."""
    match = _TAG.match(text)
    if match is None:
        return next((source for opening, source in _OPENINGS.items() if text.lstrip().startswith(opening)), None)
    if match[1] == "system-reminder":
        if not text.rstrip().endswith("</system-reminder>"):
            return None  # the user's own text follows the reminder
        if _MEMORY.search(text):
            return "memory"
    elif match[1].startswith("ide_") and not text.rstrip().endswith(f"</{match[1]}>"):
        return None
    return _TAGS[match[1]]


def memory_path(text: str) -> str | None:
    """Return the path of the memory file that a text quotes, or None."""
    match = _MEMORY.search(text)
    return match[1] if match else None


def is_command(text: str) -> bool:
    """Return True if the text is a slash command."""
    return _COMMAND.match(text) is not None


@dataclass(frozen=True, slots=True, eq=False)
class Queued:
    """A prompt or note in the queue.

    Attributes:
        entry: The record that added it.
        parts: Its content.
    """

    entry: Entry
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """Its first text, or an empty one."""
        return next((part.text for part in self.parts if isinstance(part, Text)), "")

    @property
    def is_prompt(self) -> bool:
        """True if a user typed it for the model."""
        return bool(self.text.strip()) and self.text[0] not in "{/" and source_of(self.text) is None


class PromptQueue:
    """Queued prompts and notes, oldest first. Each operation takes constant time on average."""

    def __init__(self) -> None:
        self._members: OrderedDict[int, Queued] = OrderedDict()  # by number
        self._numbers_by_text: dict[str, list[int]] = {}
        self._candidates: deque[int] = deque()  # numbers of possible prompts; some may have left the queue
        self._next_number = 0

    def put(self, entry: Entry, parts: tuple[Part, ...]) -> None:
        """Add a prompt or note at the end."""
        queued = self._members[self._next_number] = Queued(entry, parts)
        self._numbers_by_text.setdefault(queued.text, []).append(self._next_number)
        self._candidates.append(self._next_number)
        self._next_number += 1

    def drop_first(self) -> None:
        """Remove the oldest: it begins a turn, and a line of its own will repeat it."""
        if self._members:
            self._members.popitem(last=False)

    def drop(self, text: str) -> None:
        """Remove everything with this text: a line of its own repeated it."""
        for number in self._numbers_by_text.pop(text, ()):
            self._members.pop(number, None)

    def clear(self) -> None:
        """Remove everything: the user is editing it."""
        self._members.clear()
        self._numbers_by_text.clear()
        self._candidates.clear()

    def take_prompt(self) -> Queued | None:
        """Remove and return the oldest prompt, or None if there is none."""
        while self._candidates:
            number = self._candidates.popleft()
            if (queued := self._members.get(number)) is not None and queued.is_prompt:
                return self._members.pop(number)
        return None
