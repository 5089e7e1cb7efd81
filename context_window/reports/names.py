"""Names for people: of a session by its time, its folder and its title, and of an item by its tool and its file or command."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo

from session.items import FunctionCall, Item, Message, MessageCategory
from session.redaction import redacted
from session.session import Session

from ..decision.tool_rules import subject_of
from ..spend.names import last_part, local_time
from ..timeline.reasons import command_name, command_of, shortened, subjects_of

MARKS = ("/", "<")
"""What begins a message that a command of the tool has written."""
LOOKED_AT = 2_000
"""Characters of a message in which a title's words are looked for."""


def session_name(time: float | None, project: str, title: str = "", zone: tzinfo | None = None) -> str:
    """Return a session's name, such as `2026-03-25 14:03 shop: Fix the build`.

    Args:
        time: Unix seconds of its first request; None if unknown.
        project: The folder; empty if unknown.
        title: Its title; empty for none.
        zone: The time zone. Default: the machine's.
    """
    start = local_time(time, zone)
    name = f"{start:%Y-%m-%d %H:%M}" if start else "time unknown"
    name += f" {last_part(project)}" if project else ""
    return f"{name}: {title}" if title else name


def title_of(session: Session) -> str:
    """Return a session's title: its tool's, else the first words that the user wrote, without keys and passwords. Empty if it has none."""
    given = session.metadata.get("title")
    written = [
        item.text.strip()
        for item in session.items
        if isinstance(item, Message) and item.role == "user" and item.category is MessageCategory.DIALOG and not item.is_summary
    ]
    own = next((text for text in written if text and not text.startswith(MARKS)), "")
    text = given if isinstance(given, str) and given.strip() else own
    return shortened(" ".join(redacted(text[:LOOKED_AT]).split()))


def item_names(items: Sequence[Item]) -> list[str]:
    """Return a name for each item, such as `Read output: plan.py` or `Bash call: git diff`. It names files and commands."""
    return subjects_of(items, subject_of=_subject)


def _subject(call: FunctionCall) -> str:
    command = command_of(call)
    if command is not None:
        return command_name(command)
    return shortened(redacted(last_part(subject_of(call) or "")))
