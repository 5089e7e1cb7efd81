"""The commands on whole sessions (/fork, /save, /load), and the messages at the start and the end of a chat."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from session.errors import StoreDamagedError, StoreError
from session.items import Item, Message
from session.units import is_summary

from ..display.render import Draw
from .chat import Chat, ChatError
from .render import dim, empty_line, error_text, item_block, plural, text_table
from .storage_paths import parse_path

if TYPE_CHECKING:
    from session.store import SessionInfo

SESSIONS = 15
"""Sessions that `/load` lists."""
FORCE = "--force"
"""Makes `/save` replace an existing file."""


def fork(chat: Chat, _: str) -> Sequence[Draw]:
    """Continue in a copy of the session."""
    chat.save()
    original = chat.session
    chat.session = original.fork()
    chat.save()
    if chat.store is None or not chat.has_started:
        return [dim(f"continuing as {chat.session.id}")]
    return [dim(f"continuing as {chat.session.id}; /load {original.id} returns to the original")]


def save(chat: Chat, rest: str) -> Sequence[Draw]:
    """Write the session to a file, or to the store if no file is named."""
    forced_name = _name_with_force(rest)
    name = rest if forced_name is None else forced_name
    if name:
        chat.write_file(chat.session, str(parse_path(name)), forced_name is not None)
        return [dim(f"wrote {plural(len(chat.session.items), 'item')} to {name}")]
    if forced_name is not None or chat.store is None:
        raise ChatError(f"pass a file: /save {'' if forced_name is None else f'{FORCE} '}FILE")
    chat.save()
    return [dim(f"saved as {chat.session.id}; this also happens after every turn. /save FILE writes a file of its own")]


def _name_with_force(rest: str) -> str | None:
    """Return the file's name if `--force` stands before or after it, else None."""
    if f"{rest} ".startswith(f"{FORCE} "):
        return rest.removeprefix(FORCE).strip()
    return rest.removesuffix(FORCE).strip() if rest.endswith(f" {FORCE}") else None


def load(chat: Chat, rest: str) -> Sequence[Draw]:
    """Continue another session, from the store or from a file; without an id, list the saved sessions."""
    if chat.is_replay:
        raise ChatError("a replay shows only its own transcript; start another one with --replay")
    saved: tuple[SessionInfo, ...] = ()
    damage = None
    try:
        saved = chat.store.list() if chat.store is not None else ()
    except StoreDamagedError as error:
        damage = error  # of one session: the others can still be loaded by their full ids
    if not rest:
        if damage is not None:
            raise damage
        return _session_list(saved)
    ids = [info.id for info in saved]
    matches = [id for id in ids if id == rest] or [id for id in ids if id.startswith(rest)]
    if len(matches) > 1:
        raise ChatError(f"{len(matches):,} sessions begin with {rest}: {', '.join(matches[:3])}")
    chat.save()
    if matches and chat.store is not None:
        chat.session = chat.store.load(matches[0])
    elif parse_path(rest).exists():
        session = chat.read_file(rest)
        chat.session = session.fork() if session.id in ids else session  # the saved one may have continued since
    elif damage is not None and chat.store is not None:
        chat.session = chat.store.load(rest)
    else:
        raise ChatError(f"there is no saved session and no file {rest}; /load lists the saved sessions")
    title = f"{chat.session.id}: {plural(len(chat.session.items), 'item')}, {plural(chat.session.turn_count(), 'turn')}"
    return [dim(title), *last_turn(chat), chat.usage_line()]


def _session_list(saved: Sequence[SessionInfo]) -> Sequence[Draw]:
    if not saved:
        return [dim("no session is saved yet; /load FILE reads one from a file")]
    rows = [(info.id, f"{info.items:,}", info.title) for info in saved[:SESSIONS]]
    return [text_table(("session", "items", ""), rows, number_columns=(1,)), dim("/load ID continues one; the first characters are enough")]


def last_turn(chat: Chat) -> Sequence[Draw]:
    """Return the last user message and the messages after it, as a reminder of where the conversation stands."""
    items: list[Item] = []
    for item in reversed(chat.session.items):
        if isinstance(item, Message) and not is_summary(item):
            items.append(item)
        if isinstance(item, Message) and item.role == "user":
            break
    return [block for item in reversed(items) if (block := item_block(item)) is not None]


def welcome(chat: Chat, directory: str) -> Sequence[Draw]:
    """Return the opening lines. For a session that is continued, they include its last turn and its usage."""
    draws = [dim(f"{chat.model} in {directory}; /help lists the commands, Ctrl-D leaves")]
    earlier_directory = chat.session.metadata.get("directory")
    if isinstance(earlier_directory, str) and earlier_directory != directory:
        draws.append(dim(f"this session started in {earlier_directory}; the tools now read {directory}"))
    if not chat.has_started:
        return [*draws, empty_line]
    hint = [] if chat.is_answered else [dim("the last message has no answer yet: /retry asks for one")]
    return [*draws, *last_turn(chat), *hint, chat.usage_line(), empty_line]


def goodbye(chat: Chat) -> Sequence[Draw]:
    """Save the session, and return the closing line."""
    try:
        chat.save()
    except StoreError as error:
        return [error_text(f"the session is not fully saved: {error}")]
    return [dim(f"saved as {chat.session.id}; `context-window chat --continue` continues it")]
