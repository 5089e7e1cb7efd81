"""Turns of a chat, printed as they happen: those of a model, and those of a log that is replayed. The log keeps everything so far."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

from session.errors import StoreError
from session.items import FunctionCall, FunctionCallOutput, Item, Message, MessageCategory
from session.session import Session

from ..decision.plan import smallest_budget
from ..loop import Toolbox, run_turn
from ..loop.model import END_TURN, STOP_SEQUENCE
from ..loop.unanswered import awaits_model
from ..model_errors import ModelError
from .bill import BilledModel
from .chat import Chat, ChatError
from .screen import LiveAnswer

INSTRUCTIONS = (
    "You are an assistant in a terminal. Answer briefly, in Markdown. Older tool outputs may be replaced by placeholders that name a "
    "recall id; the recall tool gives the content back, if you need it again."
)
SMALL = 4_000
"""Tokens of a window that instructions and tools alone may fill."""


class ModelTurns:
    """Asks a model."""

    prompt = "> "
    """The text before the user's line."""

    def __init__(self, chat: Chat, tools: Toolbox) -> None:
        self._chat, self._tools = chat, tools

    async def take(self, text: str) -> None:
        """Send a message; for an empty one, ask again if the log awaits an answer."""
        chat = self._chat
        self._check_room(text)
        if chat.llm is None or not (text or awaits_model(chat.session)):
            return
        chat.paid = replace(chat.bill)
        chat.session.metadata |= {"model": chat.model, "chat": chat.kept(str(chat.model))}
        model = BilledModel(chat, chat.llm)
        try:
            with chat.screen.working(f"waiting for {chat.model}") as answer:
                result = await run_turn(
                    chat.session,
                    text or None,
                    model=model,
                    tools=self._tools,
                    manager=chat.manager,
                    on_text=answer.add_text,
                    on_item=lambda item: self._show(item, answer),
                )
            if result.stop not in (END_TURN, STOP_SEQUENCE):
                chat.screen.inform(f"the model stopped early ({result.stop}); a message such as “go on” may give the rest")
        except ModelError as error:
            refused = f"{error} Nothing is lost: Enter asks again."
            broken = f"the answer broke off, and what is above is not in the log ({error.reason}): Enter asks for a whole one"
            chat.screen.inform(refused if model.unfinished is None else broken, "red")
        finally:
            if (known := model.unfinished) is not None:
                wrote = f" and at least {known.output_tokens:,} of output" if known.output_tokens else ""
                chat.screen.inform(f"an unfinished answer is billed too: about {known.total_input:,} tokens of input{wrote} (hence the +)")
            chat.show_usage()
            chat.save()

    def _check_room(self, text: str) -> None:
        """Refuse a message of which the model would see only a part.

        Raises:
            ChatError: The window has no room for the whole of it.
        """
        manager, message = self._chat.manager, Message("user", text)
        if 4 * len(text) + SMALL < manager.total_budget:  # a character has few tokens, most of them less than one
            return
        trial = self._chat.session.fork()
        trial.append(message)
        plan = manager.plan_session(trial)
        change = next(change for change in plan if change.item_id == message.id)
        if change.after < change.before or plan.over_budget:
            others = plan.after - change.after
            again = "--continue " * (self._chat.session.turn_count() > 0) + f"--max-tokens {smallest_budget(others + change.before)}"
            if others >= plan.budget:
                problem = (
                    f"the window of {plan.budget:,} tokens is too small: instructions, tools and what must be kept take {others:,}. Start"
                )
            else:
                problem = (
                    f"your message has {change.before:,} tokens, and the window of {plan.budget:,} has room for {plan.budget - others:,}"
                )
                problem += ". Send it in parts, or start"
            raise ChatError(f"not sent: {problem} the chat with {again}")

    def _show(self, item: Item, answer: LiveAnswer) -> None:
        """Print an item that the turn has added to the log, unless it was printed as it arrived, and save it."""
        answer.end_text()
        if not isinstance(item, Message) or (item.role == "assistant" and not answer.has_text):
            self._chat.screen.item(item)
        if isinstance(item, FunctionCall):
            answer.what = f"running {item.name}"
        elif isinstance(item, FunctionCallOutput):
            answer.what, answer.has_text = f"waiting for {self._chat.model}", False
        with suppress(StoreError):  # reported at the end of the turn
            self._chat.save()  # after a crash, finished calls need not run again


def turns_of(log: Session) -> list[Sequence[Item]]:
    """Return the items of a log by turn: a user message and everything up to the next one. The first turn also has what comes before."""
    messages = [(index, item) for index, item in enumerate(log.items) if isinstance(item, Message) and item.role == "user"]
    starts = [index for index, message in messages if message.category is not MessageCategory.CONTEXT]
    return [log.items[start:end] for start, end in pairwise([0, *starts[1:], len(log.items)])]


class Replay:
    """Shows a log turn by turn: the chat's session grows as the log did. No model is asked."""

    def __init__(self, chat: Chat, log: Session) -> None:
        self._chat = chat
        self._turns = turns_of(log)
        self._breaks = log.response_breaks
        self.turns_left = len(self._turns)

    @property
    def prompt(self) -> str:
        """The text before the user's line."""
        return f"{self.turns_left} turn{'' if self.turns_left == 1 else 's'} left> " if self.turns_left else "end> "

    async def take(self, text: str) -> None:
        """Show the next turn, with the usage after it. A replay takes no messages."""
        if text:
            raise ChatError("a replay takes no messages: press Enter for the next turn, or type /help for the commands")
        if not self.turns_left:
            raise ChatError("that was the last turn; /quit leaves")
        chat, items = self._chat, self._turns[-self.turns_left]
        self.turns_left -= 1
        chat.paid = replace(chat.bill)
        chat.screen.inform(f"turn {len(self._turns) - self.turns_left:,} of {len(self._turns):,}")
        for item in items:
            chat.session.append(item)
            chat.screen.item(item)
            if item.usage is not None:
                chat.bill.add(item.usage, item.extra.get("model") or chat.model, item.created_at)
        if breaks := self._breaks & {item.id for item in items}:
            chat.session.restore_seams(chat.session.response_breaks | breaks, chat.session.settled)
        chat.show_usage()
