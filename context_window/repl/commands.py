"""The commands of the chat: each takes the conversation and what stands behind its name, and gives what is to be drawn.

They need no terminal. What a command cannot do is an error of ours, which whoever asked shows as one line.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

from session.image_check import image_problem
from session.images import image_size
from session.parts import Document, Image

from ..display import PlanTold, plan_draw, usage_draw
from ..errors import CompactionError, UnknownModelError
from ..recall import content_of
from ..trimming.plan import Action, Decision
from ..trimming.summary import DONE
from ..usage import describe
from .chat import Chat, ChatError
from .commanding import Draws, now
from .drawing import listing, pairs, quiet, text_block, words_of
from .file_kinds import binary_kind
from .places import path_of
from .sessions import fork, load, save

MAX_IMAGE = 5 * 1024 * 1024
"""Bytes of an image that providers take."""
IMAGES = {"PNG image": "image/png", "JPEG image": "image/jpeg", "GIF image": "image/gif"}
TRIMS = 20
"""Changes that `/trims` lists unless all are asked for."""
RECALLED = 60
"""Lines that `/recall` shows unless all are asked for."""
ALL = "all"


@dataclass(frozen=True, slots=True)
class Command:
    """One command.

    Attributes:
        name: What is typed, with its slash.
        takes: What may stand behind it.
        told: What it does.
        run: Does it.
        live: Whether it needs a model, or makes sense only with one: a replay says so.
    """

    name: str
    takes: str
    told: str
    run: Callable[[Chat, str], Draws | Awaitable[Draws]]
    live: bool = False

    @property
    def usage(self) -> str:
        """How it is typed."""
        return f"{self.name} {self.takes}".rstrip()


def find(line: str, *, replaying: bool = False) -> tuple[Command, str]:
    """The command that the line names, and what stands behind the name. A name may be cut short where no other begins so.

    Args:
        line: What was typed.
        replaying: Whether to offer only what a replay has. What needs a model is found by its whole name, and says so.

    Raises:
        ChatError: There is no such command.
    """
    name, _, rest = line.strip().partition(" ")
    offered = [command for command in COMMANDS if not (command.live and replaying)]
    found = [command for command in COMMANDS if command.name == name] or [one for one in offered if one.name.startswith(name)]
    if len(found) != 1 or name == "/":
        known = ", ".join(command.name for command in (found or offered))
        raise ChatError(f"{name[:40]} is no command; there are {known}")
    return found[0], rest.strip()


def context(chat: Chat, _: str) -> Draws:
    """Where the tokens go: the grid, the tools, the largest items."""
    chat.usage()
    return [usage_draw(chat.manager.usage(title="what the model sees"))]


def plan(chat: Chat, rest: str) -> Draws:
    """What is trimmed, and why."""
    most = {"most": None} if rest == ALL else {}
    return [plan_draw(PlanTold(chat.manager.plan_session(chat.session), **most))]  # type: ignore[arg-type]  # None is for all


def trims(chat: Chat, rest: str) -> Draws:
    """What is out of the view, with the ids to recall it by."""
    changes = chat.manager.plan_session(chat.session).changes
    if not changes:
        return [quiet("nothing is trimmed: the model sees all of it")]
    shown = changes if rest == ALL else changes[-TRIMS:]
    rows = [(one.item_id, DONE[one.action], one.what, f"{one.before - one.after:,}", _why(one)) for one in shown]
    draws = [listing(("id", "", "what", "freed", "why"), rows, numbers=(3,))]
    left = len(changes) - len(shown)
    return [*draws, *([quiet(f"{left:,} earlier ones: /trims {ALL}")] if left else [])]


def _why(one: Decision) -> str:
    images = f"{len(one.images)} of its images; " if one.action is Action.REPLACE_IMAGES and len(one.images) > 1 else ""
    refused = f"{len(one.refused)} of its parts; " if one.action is Action.REPLACE_REFUSED and len(one.refused) > 1 else ""
    return images + refused + one.reason.value


def recall(chat: Chat, rest: str) -> Draws:
    """What was taken out, as it was."""
    id, _, more = rest.partition(" ")
    if not id:
        raise ChatError("say which: /recall ID; /trims lists the ids")
    item_id, mark, place = (id, "", "") if chat.session.get_by_id(id) else id.partition("#")
    found = chat.manager.recall(chat.session, _item_id(chat, item_id) + mark + place)
    what = type(found).__name__.lower() if isinstance(found, Image | Document) else describe(found)
    return [quiet(f"{what} {id}"), text_block(words_of(content_of(found)), most=None if more.strip() == ALL else RECALLED)]


def pin(chat: Chat, rest: str) -> Draws:
    """Keeps an item from being trimmed."""
    if not rest:
        pinned = [item for item in chat.session.items if item.pinned]
        return [listing(("id", "pinned"), [(item.id, describe(item)) for item in pinned])] if pinned else [quiet("nothing is pinned")]
    item = chat.session.pin(_item_id(chat, rest))
    return [quiet(f"pinned: {describe(item)} {item.id} stays in the view"), now(chat)]


def unpin(chat: Chat, rest: str) -> Draws:
    """Lets an item be trimmed again."""
    if not rest:
        raise ChatError("say which: /unpin ID; /pin lists what is pinned")
    item = chat.session.unpin(_item_id(chat, rest))
    return [quiet(f"unpinned: {describe(item)} {item.id}"), now(chat)]


def whole_id(chat: Chat, start: str) -> str:
    """The id that is meant by its beginning; what is no item's is left as it is, for whoever looks for it.

    Raises:
        ChatError: Several begin so.
    """
    start = start.removesuffix("…").removesuffix("..")  # as the display cuts them
    if not start or chat.session.get_by_id(start) is not None:
        return start
    found = [item.id for item in chat.session.items if item.id.startswith(start)]
    if len(found) > 1:
        raise ChatError(f"{len(found):,} ids begin with {start}: {', '.join(found[:3])}{', …' if len(found) > 3 else ''}")
    return found[0] if found else start


def _item_id(chat: Chat, start: str) -> str:
    """The id of the item that is meant.

    Raises:
        ChatError: None begins so, or several do.
    """
    found = whole_id(chat, start)
    if chat.session.get_by_id(found) is None:
        raise ChatError(f"no item has the id {start[:40]}; /trims lists those that are trimmed, /context the largest")
    return found


def image(chat: Chat, rest: str) -> Draws:
    """Puts an image to the next message."""
    if chat.replaying:
        raise ChatError("a replay takes no messages, and so no images")
    if not rest:
        raise ChatError("say which: /image PATH")
    data = _image_bytes(path_of(rest))
    size = image_size(data)
    kind = IMAGES.get(binary_kind(data) or "") or ("image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None)
    if size is None or kind is None:
        raise ChatError(f"{rest} is no PNG, JPEG, GIF or WebP image")
    if (problem := image_problem(data)) is not None:
        raise ChatError(f"{rest} is {problem}")
    chat.attached.append(Image(data=data, media_type=kind, width=size[0], height=size[1]))
    return [quiet(f"image {size[0]}x{size[1]} goes with your next message ({len(chat.attached)} so far)")]


def _image_bytes(path: Path) -> bytes:
    try:
        if path.is_dir():
            raise ChatError(f"{path} is a folder")
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)), "rb") as file:
            told = os.fstat(file.fileno())
            if not stat.S_ISREG(told.st_mode):
                raise ChatError(f"{path} is no file")
            if told.st_size > MAX_IMAGE:
                raise ChatError(f"{path} has {told.st_size:,} bytes; an image may have {MAX_IMAGE:,}: make it smaller")
            return file.read(MAX_IMAGE) or b""
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise ChatError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def model(chat: Chat, rest: str) -> Draws:
    """Goes on with another model."""
    if not rest:
        return [quiet(f"the model is {chat.model}" if chat.model else "no model is named; /model NAME names one")]
    chat.check_model(rest)
    try:
        chat.manager.use_model(rest)
    except UnknownModelError as error:
        alike = f"; did you mean {' or '.join(error.alike)}?" if error.alike else "; `context-window models` lists those that are"
        raise ChatError(f"{rest[:60]} is not known{alike}") from None
    chat.model = chat.session.metadata["model"] = rest
    return [quiet(f"the model is {rest} from here on; the conversation goes along"), now(chat)]


async def compact(chat: Chat, _: str) -> Draws:
    """Has the older turns summed up."""
    if chat.summarizer is None:
        raise ChatError("there is no model to write a summary: a replay asks none")
    try:
        made = await chat.manager.compact(chat.session, chat.summarizer)
    except CompactionError:
        chat.news.latest()  # the error says the same
        raise
    if made is None:
        turns = chat.manager.context_window.keep_recent_turns
        raise ChatError(f"there is nothing to sum up: the last {turns} turns stay as they are")
    chat.keep()
    return [quiet(f"the originals stay in the log: /recall gives them back, and shows the summary with {made.id}"), now(chat)]


def retry(chat: Chat, _: str) -> Draws:
    """Has the model asked again."""
    if chat.replaying:
        raise ChatError("a replay asks no model; Enter shows the next turn")
    if not chat.begun:
        raise ChatError("nothing was said yet")
    if chat.answered:
        raise ChatError("what was said last has its answer; say how to go on")
    chat.again = True
    return []


def leave(chat: Chat, _: str) -> Draws:
    """Ends the chat."""
    chat.over = True
    return []


def help_(chat: Chat, _: str) -> Draws:
    """The commands."""
    rows = [(command.usage, command.told) for command in COMMANDS if not (command.live and chat.replaying)]
    keys = "Enter shows the next turn. Ctrl-D leaves." if chat.replaying else KEYS
    return [pairs(rows), quiet(keys)]


KEYS = "Alt-Enter begins a new line. Ctrl-C stops an answer, and empties the line where there is none. Ctrl-D leaves."


COMMANDS = (
    Command("/context", "", "where the tokens go: the grid, the tools, the largest items", context),
    Command("/plan", "[all]", "what is trimmed now, and why", plan),
    Command("/trims", "[all]", "what the model does not see, with the ids to recall it by", trims),
    Command("/recall", "ID [all]", "show what was taken out, as it was", recall),
    Command("/pin", "[ID]", "keep an item from being trimmed; without an id, list those that are", pin),
    Command("/unpin", "ID", "let it be trimmed again", unpin),
    Command("/image", "PATH", "put an image to the next message", image, live=True),
    Command("/model", "[NAME]", "go on with another model; without a name, say which it is", model),
    Command("/compact", "", "have the older turns summed up now", compact, live=True),
    Command("/retry", "", "ask the model again, after an error or a stop", retry, live=True),
    Command("/fork", "", "go on with a copy, and keep what there is as it is", fork),
    Command("/save", "[--force] [FILE]", "write the session to a file; --force replaces any file that is there", save),
    Command("/load", "[ID|FILE]", "go on with another session; without an id, list them", load, live=True),
    Command("/help", "", "this list", help_),
    Command("/quit", "", "leave; the session is kept", leave),
)
NAMES = tuple(command.name for command in COMMANDS)
"""What can be typed."""
REPLAYED = tuple(command.name for command in COMMANDS if not command.live)
"""What can be typed in a replay."""
