"""What a chat costs. Each request is priced once, when it ends, and written to `requests.jsonl`, which `context-window spend` reads."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from session.errors import SummaryError
from session.items import new_id
from session.session import Session
from session.usage import Usage

from ..display.usage_line import money
from ..loop import Answer, Model
from ..loop.model import OnText
from ..model_errors import ModelError
from ..spend.money import cost_of_usage

if TYPE_CHECKING:
    from .chat import Chat

MAX_SUMMARY_REQUESTS = 8
"""Requests for summaries in one turn. In a small window, each tool call can make another summary due."""


@dataclass(slots=True)
class Bill:
    """What a session has cost.

    Attributes:
        dollars: List price of its requests so far in US dollars, summaries included; None if that of one is unknown.
        unfinished: Number of answers that did not come to their end. Their price is not fully known, so the sum is a least one.
        file: The file that each request is written to; None for a replay, whose requests are in a log already.
    """

    dollars: Decimal | None = Decimal(0)
    unfinished: int = 0
    file: Path | None = None

    def figures(self, before: Bill) -> list[str]:
        """Return in words what the last turn and the session have cost, given the bill before the turn."""
        if self.dollars is None or before.dollars is None:
            return ["price unknown"]
        turn = f"turn {money(self.dollars - before.dollars)}{'+' * (self.unfinished > before.unfinished)}"
        return [turn, f"session {money(self.dollars)}{'+' * bool(self.unfinished)}"]

    def add(self, usage: Usage, model: object, moment: float) -> None:
        """Add a request. What it costs does not change any more, whichever model comes later."""
        cost = cost_of_usage(usage, str(model or ""), moment)
        self.dollars = None if cost is None or self.dollars is None else self.dollars + cost

    def write(self, usage: Usage, model: str, session: Session) -> None:
        """Add a request that ends now, keep the sum with the session, and write the request to the file."""
        now = time.time()
        self.add(usage, model, now)
        session.metadata["bill"] = {"dollars": None if self.dollars is None else str(self.dollars), "unfinished": self.unfinished}
        if self.file is not None:
            line = {"context_window_request": new_id(), "time": now, "model": model, "session": session.id, "project": str(Path.cwd())}
            with open(self.file, "a", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
                file.write(json.dumps({**line, "usage": asdict(usage)}) + "\n")

    def read(self, session: Session, model: str | None) -> None:
        """Begin with what a session has cost: as it was billed by a chat, else by the usage in its log.

        Args:
            session: The session.
            model: The model of answers that name none.
        """
        self.dollars, self.unfinished = Decimal(0), 0
        kept = session.metadata.get("bill")
        if isinstance(kept, Mapping):
            try:
                self.dollars, self.unfinished = Decimal(str(kept["dollars"])), int(kept["unfinished"])
            except (ArithmeticError, KeyError, TypeError, ValueError):
                self.dollars = None
            return
        for item in session.items:
            if item.usage is not None:
                self.add(item.usage, item.extra.get("model") or session.metadata.get("model") or model, item.created_at)


class BilledModel:
    """The chat's model. Each of its requests is billed, also a summary, or an answer that was stopped or broke off.

    Attributes:
        model: Its name.
        unfinished: Usage of the last answer that did not come to its end, as far as it is known; None if there was none.
        summary_requests: Requests of the turn that were for summaries.
    """

    def __init__(self, chat: Chat, llm: Model) -> None:
        self.model = str(chat.model)
        self.unfinished: Usage | None = None
        self.summary_requests = 0
        self._chat, self._llm = chat, llm

    async def answer(
        self, view: Session, tools: Sequence[Mapping[str, Any]], *, allow_tools: bool, on_text: OnText | None = None
    ) -> Answer:
        """Ask the model and return its answer.

        Raises:
            SummaryError: It is for a summary, and the turn has had enough of those.
        """
        if on_text is None:  # the loop listens to answers, and not to summaries
            self.summary_requests += 1
            if self.summary_requests > MAX_SUMMARY_REQUESTS:
                raise SummaryError(f"this turn has asked for summaries {MAX_SUMMARY_REQUESTS} times; now older parts are only cut")
        texts: list[str] = []
        bill = self._chat.bill

        def receive(text: str) -> None:
            texts.append(text)
            if on_text is not None:
                on_text(text)

        try:
            answer = await self._llm.answer(view, tools, allow_tools=allow_tools, on_text=receive)
        except (asyncio.CancelledError, ModelError) as error:
            if texts or isinstance(error, asyncio.CancelledError):  # else it was refused, which costs nothing
                self.unfinished = self._known_usage(view, "".join(texts))
                bill.unfinished += 1
                bill.write(self.unfinished, self.model, self._chat.session)
            raise
        if answer.usage is not None:
            bill.write(answer.usage, answer.model or self.model, self._chat.session)
        return answer

    def _known_usage(self, view: Session, text: str) -> Usage:
        """Return what is known of an answer that did not come to its end: our count of the prompt and of the text so far.

        The price is then a least one: what the provider had cached by the last answer counts as read from there.
        """
        count, said = self._chat.manager.get_token_usage, Session()
        prompt = count(view)["total"]
        last = next((item.usage for item in reversed(self._chat.session.items) if item.usage is not None), Usage())
        cached = min(prompt, last.total_input) if last.cache_read_tokens or last.cache_write_tokens else 0
        if text.strip():
            said.add_message("assistant", text)
        return Usage(prompt - cached, cached, output_tokens=count(said)["DIALOG"])
