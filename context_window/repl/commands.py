"""The commands of the chat. Each takes the chat and the rest of the line, and returns drawings.

They need no terminal. A command that cannot do its job raises an error of this package, which the chat loop shows as one line.
The commands on whole sessions (/fork, /save, /load) are in `session_commands.py`.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from session.image_check import image_problem
from session.images import image_size
from session.parts import Document, Image

from ..decision.plan import Action, Decision, describe
from ..decision.plan_text import DONE
from ..display.plan import PlanDisplay, plan_draw
from ..display.render import Draw
from ..display.usage import usage_draw
from ..errors import CompactionError, UnknownModelError
from ..recall import content_of
from .chat import Chat, ChatError
from .file_kinds import binary_kind
from .render import definition_list, dim, parts_text, text_block, text_table
from .session_commands import fork, load, save
from .storage_paths import parse_path

MAX_IMAGE = 5 * 1024 * 1024
"""Bytes of the largest image that providers accept."""
IMAGES = {"PNG image": "image/png", "JPEG image": "image/jpeg", "GIF image": "image/gif"}
TRIMS = 20
"""Changes that `/trims` lists without `all`."""
RECALLED = 60
"""Lines that `/recall` shows without `all`."""
ALL = "all"


@dataclass(frozen=True, slots=True)
class Command:
    """One command.

    Attributes:
        name: Its name, with the slash.
        arguments: Its arguments, as `/help` shows them.
        summary: A description of one line.
        run: Runs it on a chat with the rest of the line.
        is_chat_only: True if a replay does not offer it.
    """

    name: str
    arguments: str
    summary: str
    run: Callable[[Chat, str], Sequence[Draw] | Awaitable[Sequence[Draw]]]
    is_chat_only: bool = False

    @property
    def usage(self) -> str:
        """The name with its arguments."""
        return f"{self.name} {self.arguments}".rstrip()


def find_command(line: str, *, is_replay: bool = False) -> tuple[Command, str]:
    """Return the command that the line names, and the rest of the line. A unique prefix of a name is enough.

    Args:
        line: The user's input.
        is_replay: True to complete a prefix only to commands that a replay offers. The full name of any other command still finds it;
            running it then explains that a replay does not have it.

    Raises:
        ChatError: The name is unknown or ambiguous.
    """
    name, _, rest = line.strip().partition(" ")
    available = [command for command in COMMANDS if not (command.is_chat_only and is_replay)]
    matches = [command for command in COMMANDS if command.name == name]
    matches = matches or [command for command in available if name != "/" and command.name.startswith(name)]
    if len(matches) > 1:
        raise ChatError(f"{name[:40]} is ambiguous: {', '.join(command.name for command in matches)}")
    if not matches:
        raise ChatError(f"unknown command {name[:40]}; the commands are {', '.join(command.name for command in available)}")
    return matches[0], rest.strip()


def context(chat: Chat, _: str) -> Sequence[Draw]:
    """Show where the tokens go: the grid, the tools, the largest items."""
    chat.usage()
    return [usage_draw(chat.manager.usage(title="what the model sees"))]


def plan(chat: Chat, rest: str) -> Sequence[Draw]:
    """Show the trimmed items, with reasons."""
    most = {"most": None} if rest == ALL else {}
    return [plan_draw(PlanDisplay(chat.manager.plan_session(chat.session), **most))]  # type: ignore[arg-type]  # None lists all changes


def trims(chat: Chat, rest: str) -> Sequence[Draw]:
    """List the changes that the view makes to the log, with the ids to recall the originals by."""
    changes = chat.manager.plan_session(chat.session).changes
    if not changes:
        return [dim("nothing is trimmed: the model sees the whole log")]
    listed = changes if rest == ALL else changes[-TRIMS:]
    rows = [
        (change.item_id, DONE[change.action], change.what, f"{change.before - change.after:,}", _reason_text(change)) for change in listed
    ]
    draws = [text_table(("id", "", "item", "freed", "reason"), rows, number_columns=(3,))]
    omitted = len(changes) - len(listed)
    return [*draws, *([dim(f"{omitted:,} earlier trims are not shown: /trims {ALL} lists them")] if omitted else [])]


def _reason_text(change: Decision) -> str:
    images = f"{len(change.images)} of its images; " if change.action is Action.REPLACE_IMAGES and len(change.images) > 1 else ""
    refused = f"{len(change.refused)} of its parts; " if change.action is Action.REPLACE_REFUSED and len(change.refused) > 1 else ""
    later = f": {change.superseded_by}" if change.superseded_by is not None else ""
    return images + refused + change.reason.value + later


def recall(chat: Chat, rest: str) -> Sequence[Draw]:
    """Show the original content of a trimmed item."""
    id, _, extent = rest.partition(" ")
    if not id:
        raise ChatError("pass an id: /recall ID (/trims lists the ids)")
    item_id, mark, part_number = (id, "", "") if chat.session.get_by_id(id) else id.partition("#")
    original = chat.manager.recall(chat.session, _item_id(chat, item_id) + mark + part_number)
    title = type(original).__name__.lower() if isinstance(original, Image | Document) else describe(original)
    return [dim(f"{title} {id}"), text_block(parts_text(content_of(original)), most=None if extent.strip() == ALL else RECALLED)]


def pin(chat: Chat, rest: str) -> Sequence[Draw]:
    """Protect an item from trimming; without an id, list the pinned items."""
    if not rest:
        pinned = [item for item in chat.session.items if item.pinned]
        return [text_table(("id", "pinned"), [(item.id, describe(item)) for item in pinned])] if pinned else [dim("nothing is pinned")]
    item = chat.session.pin(_item_id(chat, rest))
    return [dim(f"pinned: {describe(item)} {item.id} stays in the view"), chat.usage_line()]


def unpin(chat: Chat, rest: str) -> Sequence[Draw]:
    """Allow an item to be trimmed again."""
    if not rest:
        raise ChatError("pass an id: /unpin ID (/pin lists the pinned items)")
    item = chat.session.unpin(_item_id(chat, rest))
    return [dim(f"unpinned: {describe(item)} {item.id}"), chat.usage_line()]


def complete_id(chat: Chat, prefix: str) -> str:
    """Return the id of the item whose id begins with the prefix, or the prefix itself if there is none.

    Raises:
        ChatError: Several ids begin with it.
    """
    prefix = prefix.removesuffix("…").removesuffix("..")  # the display shortens ids this way
    if not prefix or chat.session.get_by_id(prefix) is not None:
        return prefix
    matches = [item.id for item in chat.session.items if item.id.startswith(prefix)]
    if len(matches) > 1:
        raise ChatError(f"{len(matches):,} ids begin with {prefix}: {', '.join(matches[:3])}{', …' if len(matches) > 3 else ''}")
    return matches[0] if matches else prefix


def _item_id(chat: Chat, prefix: str) -> str:
    """Return the id of the item whose id begins with the prefix.

    Raises:
        ChatError: No id or several ids begin with it.
    """
    id = complete_id(chat, prefix)
    if chat.session.get_by_id(id) is None:
        raise ChatError(f"no item has the id {prefix[:40]}; /trims lists the trimmed items, /context the largest")
    return id


def image(chat: Chat, rest: str) -> Sequence[Draw]:
    """Attach an image to the next message."""
    if chat.is_replay:
        raise ChatError("a replay does not take messages, so there is nothing to attach an image to")
    if not rest:
        raise ChatError("pass an image file: /image PATH")
    data = _image_bytes(parse_path(rest))
    size = image_size(data)
    media_type = IMAGES.get(binary_kind(data) or "") or ("image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else None)
    if size is None or media_type is None:
        raise ChatError(f"{rest} is not a PNG, JPEG, GIF or WebP image")
    if (problem := image_problem(data)) is not None:
        raise ChatError(f"{rest} is {problem}")
    chat.attached_images.append(Image(data=data, media_type=media_type, width=size[0], height=size[1]))
    return [dim(f"attached an image of {size[0]}x{size[1]} to your next message ({len(chat.attached_images)} so far)")]


def _image_bytes(path: Path) -> bytes:
    try:
        if path.is_dir():
            raise ChatError(f"{path} is a folder, not an image file")
        with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise ChatError(f"{path} is not a regular file")
            if status.st_size > MAX_IMAGE:
                raise ChatError(f"{path} has {status.st_size:,} bytes; the limit for an image is {MAX_IMAGE:,}: make it smaller")
            return file.read(MAX_IMAGE) or b""
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise ChatError(f"cannot read {path}: {getattr(error, 'strerror', None) or error}") from None


def model(chat: Chat, rest: str) -> Sequence[Draw]:
    """Switch to another model; without a name, show the current one."""
    if not rest:
        return [dim(f"the model is {chat.model}" if chat.model else "no model is set; /model NAME sets one")]
    chat.check_model(rest)
    try:
        chat.manager.use_model(rest)
    except UnknownModelError as error:
        hint = f"did you mean {' or '.join(error.alike)}?" if error.alike else "`context-window models` lists the known ones"
        raise ChatError(f"unknown model {rest[:60]}; {hint}") from None
    chat.model = chat.session.metadata["model"] = rest
    return [dim(f"the model is now {rest}; the conversation continues"), chat.usage_line()]


async def compact(chat: Chat, rest: str) -> Sequence[Draw]:
    """Have the model summarize the older turns or steps."""
    if chat.summarizer is None:
        raise ChatError("there is no model to write a summary: a replay does not call one")
    try:
        summary = await chat.manager.compact(chat.session, chat.summarizer, focus=rest or None)
    except CompactionError:
        chat.notices.take()  # the error repeats them
        raise
    if summary is None:
        raise ChatError("there is nothing to summarize: the newest turns and steps are kept, and nothing older is left")
    chat.save()
    return [dim(f"the originals stay in the log, and /recall shows them; /recall {summary.id} shows the summary"), chat.usage_line()]


def retry(chat: Chat, _: str) -> Sequence[Draw]:
    """Call the model again with the current log."""
    if chat.is_replay:
        raise ChatError("a replay does not call a model; press Enter for the next turn")
    if not chat.has_started:
        raise ChatError("there is nothing to retry: you have not sent a message yet")
    if chat.is_answered:
        raise ChatError("the last message already has an answer; send a new message")
    chat.is_retry_requested = True
    return []


def leave(chat: Chat, _: str) -> Sequence[Draw]:
    """End the chat."""
    chat.is_over = True
    return []


def show_help(chat: Chat, _: str) -> Sequence[Draw]:
    """List the commands and keys."""
    rows = [(command.usage, command.summary) for command in COMMANDS if not (command.is_chat_only and chat.is_replay)]
    return [definition_list(rows), dim(REPLAY_KEYS if chat.is_replay else KEYS)]


KEYS = "Alt-Enter starts a new line. Ctrl-C stops an answer, or clears the line you are typing. Ctrl-D leaves."
REPLAY_KEYS = "Enter shows the next turn. Ctrl-D leaves."


COMMANDS = (
    Command("/context", "", "show where the tokens go: the grid, the tools, the largest items", context),
    Command("/plan", "[all]", "show what is trimmed now, and why", plan),
    Command("/trims", "[all]", "list what the model does not see, with the ids to recall it by", trims),
    Command("/recall", "ID [all]", "show the original content of a trimmed item", recall),
    Command("/pin", "[ID]", "protect an item from trimming; without an id, list the pinned items", pin),
    Command("/unpin", "ID", "allow an item to be trimmed again", unpin),
    Command("/image", "PATH", "attach an image to the next message", image, is_chat_only=True),
    Command("/model", "[NAME]", "switch to another model; without a name, show the current one", model),
    Command("/compact", "[FOCUS]", "have the model summarize the older part; FOCUS: what to keep in detail", compact, is_chat_only=True),
    Command("/retry", "", "call the model again after an error or an interruption", retry, is_chat_only=True),
    Command("/fork", "", "continue in a copy, and leave the original as it is", fork),
    Command("/save", "[--force] [FILE]", "write the session to a file; --force replaces an existing file", save),
    Command("/load", "[ID|FILE]", "continue another session; without an id, list the saved sessions", load, is_chat_only=True),
    Command("/help", "", "show this list", show_help),
    Command("/quit", "", "leave", leave),
)
NAMES = tuple(command.name for command in COMMANDS)
"""Names of all commands."""
REPLAY_NAMES = tuple(command.name for command in COMMANDS if not command.is_chat_only)
"""Names of the commands that a replay offers."""
