"""The commands of the chat. One that cannot do its job raises an error, whose message is shown as one line."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

from session.items import Message
from session.transcripts import read_transcript

from ..display.plan import PlanDisplay, plan_draw
from ..display.usage import usage_draw
from ..errors import UnknownModelError
from ..loop.unanswered import awaits_model
from ..settings.budget import ModelConfig
from .chat import Chat, ChatError
from .screen import parts_text

HELP = """\
/usage         what fills the window: categories, tools, the largest items
/plan [all]    what is trimmed now, and why
/recall [ID]   the whole of something trimmed; without an id, a list
/model NAME    go on with another model, of any provider
/save FILE     write the session to a file; --force FILE replaces one
/load [ID]     go on with another session, or with a log; without an id, a list
/help          this list
/quit          leave

Enter sends. On an empty line it asks again, or shows a replay's next turn.
Alt-Enter starts a new line, Ctrl-C stops an answer, Ctrl-D leaves."""
LISTED = 20
"""Rows of a list, at most."""


async def run_command(chat: Chat, line: str) -> None:
    """Run the command that the line names. A prefix of its name is enough, if no other command begins with it."""
    name, _, rest = line.partition(" ")
    matches = [command for command in COMMANDS if command.startswith(name)]
    if len(matches) != 1:
        problem = "several commands begin with" if matches else "there is no command"
        raise ChatError(f"{problem} {name[:40]}: {', '.join(matches or COMMANDS)}. A message with a slash needs a blank before it.")
    COMMANDS[matches[0]](chat, rest.strip())


def _usage(chat: Chat, _: str) -> None:
    chat.manager.process_session(chat.session)
    chat.screen.draw(usage_draw(chat.manager.usage(title="what the model sees")))
    chat.show_usage()


def _plan(chat: Chat, rest: str) -> None:
    plan = chat.manager.plan_session(chat.session)
    chat.screen.draw(plan_draw(PlanDisplay(plan, most=None) if rest == "all" else PlanDisplay(plan)))


def _recall(chat: Chat, id: str) -> None:
    if id:
        recalled = chat.manager.recall_tool("anthropic").handle(chat.session, json.dumps({"id": id}))
        chat.screen.text(parts_text(recalled.output), "red" if recalled.is_error else "")
        return
    changes = chat.manager.plan_session(chat.session).changes
    for change in changes[-LISTED:]:
        chat.screen.text(f"{change.item_id:14}{change.before - change.after:>8,} tokens  {change.action.value:12}  {change.what}")
    more = f"these are the latest of {len(changes):,}; " if len(changes) > LISTED else ""
    chat.screen.inform(f"{more}/recall ID shows one, as the model can recall it too" if changes else "the model sees the whole log")


def _model(chat: Chat, name: str) -> None:
    if not name:
        raise ChatError(f"the model is {chat.model}; /model NAME goes on with another one")
    llm = chat.connect(name) if chat.connect is not None else None
    try:
        limit = chat.manager.context_window.max_tokens
        chat.manager.use_model(ModelConfig(name, max_tokens=limit) if isinstance(limit, int) else name)
    except UnknownModelError:
        raise ChatError(f"the window of {name[:60]} is unknown; start the chat with --max-tokens N to use it") from None
    chat.llm, chat.model = llm, name
    chat.screen.inform(f"the model is now {name}; the conversation goes on")
    chat.show_usage()


def _save(chat: Chat, rest: str) -> None:
    name = rest.removeprefix("--force ").strip()
    if name in ("", "--force"):
        raise ChatError("pass a file: /save FILE" + ("" if chat.store is None else f" (every turn is saved too, as {chat.session.id})"))
    content = json.dumps(chat.session.to_dict(), ensure_ascii=False)
    try:
        with open(
            Path(name), "x" if rest == name else "w", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o600)
        ) as file:
            file.write(content)
    except FileExistsError:
        raise ChatError(f"{name} exists; /save --force {name} replaces it") from None
    except ValueError as error:  # a NUL
        raise ChatError(f"{name} is no path: {error}") from None
    chat.screen.inform(f"wrote {len(chat.session.items):,} items to {name}")


def _load(chat: Chat, rest: str) -> None:
    if chat.store is None:
        raise ChatError("a replay shows only its own log; start another one with --replay")
    saved = [info for info in chat.store.list() if info.id.startswith(rest)]
    if not rest:
        for info in saved[:LISTED]:
            chat.screen.text(f"{info.id:12}{info.items:>7,} items  {info.title}")
        chat.screen.inform("/load ID goes on with one; its first characters are enough")
        return
    if len(saved) > 1:
        raise ChatError(f"{len(saved):,} sessions begin with {rest}: {', '.join(info.id for info in saved[:3])}")
    chat.save()
    chat.session = chat.store.load(saved[0].id) if saved else read_transcript(rest).fork()  # a fork: a saved one may have grown since
    show_last_turn(chat)


def show_last_turn(chat: Chat) -> None:
    """Show the last two messages, the usage and what the session has cost: where the conversation stands."""
    chat.bill.read(chat.session, chat.model)
    chat.paid = replace(chat.bill)
    for message in [item for item in chat.session.items if isinstance(item, Message)][-2:]:
        chat.screen.item(message)
    chat.show_usage()
    if awaits_model(chat.session):
        chat.screen.inform("the last message has no answer yet: Enter asks for one")


def _help(chat: Chat, _: str) -> None:
    chat.screen.text(HELP)


def _quit(chat: Chat, _: str) -> None:
    chat.is_over = True


COMMANDS = {f"/{run.__name__[1:]}": run for run in (_usage, _plan, _recall, _model, _save, _load, _help, _quit)}
"""By name: the function that runs the command with the rest of the line."""
