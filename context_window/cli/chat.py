"""`context-window chat`: a chat with a model in the terminal, and the replay of logs turn by turn."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from .options import READABLE_FORMATS, CommandOptions, max_tokens_option, strategy_option
from .output import BadInputError
from .packages import needs

PROVIDERS = ("anthropic", "openai-responses", "google", "openai")  # those of context_window/repl, which takes long to import

EPILOG = """\b
Examples:
  context-window chat
  context-window chat --model gpt-5.2 --mcp 'uvx mcp-server-git' --tools mytools:search,read_page
  context-window chat --model qwen3 --base-url http://localhost:8000/v1 --max-tokens 30000
  context-window chat --continue
  context-window chat --replay session.jsonl --max-tokens 20000
"""


@click.command(epilog=READABLE_FORMATS + EPILOG)
@click.option("--model", metavar="NAME", help="Model to use. Default: one of the provider whose key is set; in a replay, the log's.")
@click.option("--provider", type=click.Choice(PROVIDERS), help="API to use. Default: its maker's. openai is Chat Completions.")
@click.option("--base-url", metavar="URL", help="Address of the API, for a server of your own. Default: the provider's.")
@click.option("--mcp", multiple=True, metavar="COMMAND", help="Start an MCP server and offer its tools. Repeatable.")
@click.option("--tools", multiple=True, metavar="MODULE:FUNCTION,…", help="Offer Python functions as tools. Repeatable.")
@max_tokens_option
@strategy_option("extract")
@click.option("--continue", "resume", is_flag=True, help="Continue the last session, with its model, server and budget.")
@click.option("--replay", "log", metavar="LOG", help="Replay a session log instead. Needs no key and no network.")
@click.option("--auto", is_flag=True, help="With --replay: show all turns without waiting for Enter.")
@click.option("--session", "session_id", metavar="ID", help="With --replay: session to use if the log has several.")
def chat(
    model: str | None, max_tokens: int | None, strategy: str, log: str | None, auto: bool, session_id: str | None, **options: Any
) -> None:
    """Talk to a model; see what fills its window and what that costs.

    Any model of Anthropic, OpenAI or Google, or of a server with the same API. Keys come from ANTHROPIC_API_KEY, OPENAI_API_KEY or
    GEMINI_API_KEY. OpenAI's models need the package openai, Google's google-genai. The model can call the tools that you name with
    --mcp and --tools, without asking you, and no others. Sessions are saved on this machine, for --continue and
    /load; CONTEXT_WINDOW_HOME sets the folder.

    --replay asks no model: each Enter shows the next turn of the log and the content of the window at that point.
    """
    import asyncio

    needs("chat", "the chat", "rich", "prompt_toolkit")
    settings = CommandOptions(model=model, max_tokens=max_tokens, strategy=strategy)
    if log is not None:
        if any(options.values()):
            raise BadInputError("--replay asks no model: leave out --provider, --base-url, --mcp, --tools and --continue")
        asyncio.run(_replay(log, session_id, settings, auto=auto))
        return
    if auto or session_id is not None:
        raise BadInputError(f"{'--auto' if auto else '--session'} needs --replay LOG")
    with warnings.catch_warnings():
        if not sys.warnoptions:
            warnings.simplefilter("ignore")  # those of libraries would appear in the middle of an answer, and so would log records
        logging.getLogger().addHandler(logging.NullHandler())
        asyncio.run(_talk(settings, **options))


async def _talk(
    settings: CommandOptions, *, provider: str | None, base_url: str | None, mcp: Sequence[str], tools: Sequence[str], resume: bool
) -> None:
    from contextlib import AsyncExitStack

    from session.session import Session
    from session.store import SessionStore

    from ..events.definitions import Event
    from ..loop import Toolbox
    from ..repl.bill import Bill
    from ..repl.chat import Chat
    from ..repl.commands import show_last_turn
    from ..repl.connection import Server, connect, continued, default_model
    from ..repl.screen import Screen
    from ..repl.talk import talk
    from ..repl.tools import functions, mcp_server
    from ..repl.turns import INSTRUCTIONS, ModelTurns

    events: list[Event] = []
    folder, screen = _data_folder(), Screen()
    async with AsyncExitStack() as stack:
        store = stack.enter_context(SessionStore(folder / "sessions.db"))
        last = store.latest() if resume else None
        if resume and last is None:
            raise BadInputError("there is no session to continue yet; start one without --continue")
        session = Session() if last is None else store.load(last.id)
        if last is None:
            session.add_message("system", INSTRUCTIONS)
        kept = session.metadata.get("chat", {})
        server = continued(Server(provider, base_url), kept, is_same_model=settings.model is None)
        model = settings.model or session.metadata.get("model") or default_model(server.provider)
        server = server.fixed(model)
        # 40 calls: exploring something takes more than the loop's default
        settings = replace(settings, model=model, max_tokens=settings.max_tokens or kept.get("max_tokens"), max_tool_calls=40)
        manager, _ = settings.manager(session, events.append)
        offered: list[Any] = [function for names in tools for function in functions(names)]
        for number, command in enumerate(mcp, 1):
            with screen.working(f"starting {command}"):
                offered += await stack.enter_async_context(mcp_server(command, "" if number == 1 else f"mcp{number}_"))
        toolbox = Toolbox([*offered, manager.recall_tool("anthropic")])
        manager.count_tools(toolbox.definitions)
        bill = Bill(file=folder / "requests.jsonl")
        state = Chat(manager, session, screen, model, events, store, lambda name: connect(name, server, stack, screen.tell), bill=bill)
        state.kept = lambda name: {**server.fixed(name, is_kept=True)._asdict(), "max_tokens": settings.max_tokens}
        with screen.working(f"loading the client of {model}"):
            state.llm = connect(model, server, stack, screen.tell)
        names = ", ".join(definition["name"] for definition in toolbox.definitions[:-1])
        screen.inform(f"{model}{server.said(model)}{f' with {names}' if names else ''}. /help lists the commands, Ctrl-D leaves.")
        if session.turn_count():
            show_last_turn(state)
        screen.console.print()
        await talk(state, ModelTurns(state, toolbox), folder / "history")
        if state.session.turn_count():
            screen.inform(f"saved as {state.session.id}; `context-window chat --continue` goes on with it")


async def _replay(log: str, session_id: str | None, settings: CommandOptions, *, auto: bool) -> None:
    from session.session import Session

    from ..events.definitions import Event
    from ..repl.chat import Chat
    from ..repl.screen import Screen
    from ..repl.talk import talk
    from ..repl.turns import Replay
    from .read_transcript import STDIN, read_one

    if log == STDIN and not auto:
        raise BadInputError("the log comes from standard input, so Enter cannot be read from it; add --auto")
    events: list[Event] = []
    session, screen = read_one(log, session_id).session, Screen()
    manager, _ = settings.manager(session, events.append)
    state = Chat(manager, Session(id=session.id, metadata=session.metadata), screen, manager.usage().model, events)
    replay = Replay(state, session)
    for _ in range(replay.turns_left if auto else 1):
        await replay.take("")
        screen.console.print()
    if not auto:
        screen.inform("Enter shows the next turn, /help lists the commands, Ctrl-D leaves.")
        screen.console.print()
        await talk(state, replay)


def _data_folder() -> Path:
    """Return the folder of saved sessions and input history, created if necessary. Only the user can read it."""
    from session.opening import create_private_folder

    folder = click.get_app_dir("context-window", roaming=False)
    if sys.platform not in ("win32", "darwin"):
        folder = f"{os.environ.get('XDG_STATE_HOME') or '~/.local/state'}/context-window"
    path = Path(os.path.expanduser(os.environ.get("CONTEXT_WINDOW_HOME") or folder))  # noqa: PTH111 - pathlib's raises without a home
    create_private_folder(path)
    (path / "history").touch(0o600)  # the editor would make it readable for everybody
    return path
