"""The commands that change which session the chat goes on with, or put one away; and what is said first and last of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from session.errors import StoreDamagedError, StoreError
from session.items import Item, Message
from session.units import is_summary

from .chat import Chat, ChatError
from .commanding import Draws, now
from .drawing import blank, fault, item_lines, listing, many, quiet
from .places import path_of

if TYPE_CHECKING:
    from session.store import SessionInfo

SESSIONS = 15
"""Sessions that `/load` lists."""
FORCE = "--force"
"""Makes `/save` replace whatever file is there."""


def fork(chat: Chat, _: str) -> Draws:
    """Goes on with a copy."""
    chat.keep()
    before = chat.session
    chat.session = before.fork()
    chat.keep()
    if chat.keeper is None or not chat.begun:
        return [quiet(f"this goes on as {chat.session.id}")]
    return [quiet(f"this goes on as {chat.session.id}; /load {before.id} goes back to where it forked")]


def save(chat: Chat, rest: str) -> Draws:
    """Writes the session to a file."""
    forced = _behind_force(rest)
    name = rest if forced is None else forced
    if name:
        chat.write_file(chat.session, str(path_of(name)), forced is not None)
        return [quiet(f"{many(len(chat.session.items), 'item')} written to {name}")]
    if forced is not None or chat.keeper is None:
        raise ChatError(f"say where: /save {'' if forced is None else f'{FORCE} '}FILE")
    chat.keep()
    return [quiet(f"kept as {chat.session.id}, as after every turn; /save FILE writes it to a file of its own")]


def _behind_force(rest: str) -> str | None:
    """Return the file's name if `--force` stands before it or after it, else None."""
    if f"{rest} ".startswith(f"{FORCE} "):
        return rest.removeprefix(FORCE).strip()
    return rest.removesuffix(FORCE).strip() if rest.endswith(f" {FORCE}") else None


def load(chat: Chat, rest: str) -> Draws:
    """Goes on with another session: one that was kept, or a file's."""
    if chat.replaying:
        raise ChatError("a replay goes on with its own transcript; start another with --replay")
    kept: tuple[SessionInfo, ...] = ()
    damage = None
    try:
        kept = chat.keeper.list() if chat.keeper is not None else ()
    except StoreDamagedError as error:
        damage = error  # of one session; the others can be read by their ids
    if not rest:
        if damage is not None:
            raise damage
        if not kept:
            return [quiet("no session is kept yet; /load FILE reads one from a file")]
        rows = [(one.id, f"{one.items:,}", one.title) for one in kept[:SESSIONS]]
        return [listing(("session", "items", ""), rows, numbers=(1,)), quiet("/load ID goes on with one; its first letters do")]
    found = [one.id for one in kept if one.id == rest] or [one.id for one in kept if one.id.startswith(rest)]
    if len(found) > 1:
        raise ChatError(f"{len(found):,} sessions begin with {rest}: {', '.join(found[:3])}")
    chat.keep()
    if found and chat.keeper is not None:
        chat.session = chat.keeper.load(found[0])
    elif path_of(rest).exists():
        read = chat.read_file(rest)
        chat.session = read.fork() if any(one.id == read.id for one in kept) else read  # what is kept may have gone on since
    elif damage is not None and chat.keeper is not None:
        chat.session = chat.keeper.load(rest)
    else:
        raise ChatError(f"{rest} is no kept session and no file; /load lists those that are kept")
    return [
        quiet(f"{chat.session.id}: {many(len(chat.session.items), 'item')}, {many(chat.session.turn_count(), 'turn')}"),
        *last_words(chat),
        now(chat),
    ]


def last_words(chat: Chat) -> Draws:
    """What was said last, so that a conversation can be gone on with."""
    items: list[Item] = []
    for item in reversed(chat.session.items):
        if isinstance(item, Message) and not is_summary(item):
            items.append(item)
        if isinstance(item, Message) and item.role == "user":
            break
    return [drawn for item in reversed(items) if (drawn := item_lines(item)) is not None]


def welcome(chat: Chat, directory: str) -> Draws:
    """What is said first: of a session that is gone on with, how it stands."""
    draws = [quiet(f"{chat.model} in {directory}; /help lists the commands, Ctrl-D leaves")]
    before = chat.session.metadata.get("directory")
    if isinstance(before, str) and before != directory:
        draws.append(quiet(f"this session was begun in {before}; the tools read {directory} now"))
    if not chat.begun:
        return [*draws, blank]
    waiting = [] if chat.answered else [quiet("this has no answer yet: /retry asks for one")]
    return [*draws, *last_words(chat), *waiting, now(chat), blank]


def goodbye(chat: Chat) -> Draws:
    """What is said last."""
    try:
        chat.keep()
    except StoreError as error:
        return [fault(f"not all of this is kept: {error}")]
    return [quiet(f"kept as {chat.session.id}; context-window chat --continue goes on with it")]
