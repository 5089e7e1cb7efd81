"""`CostLimit`: US dollars from which on a gateway sends nothing more, of its own time or of a day.

1. A request is sent as soon as what was spent, and the most that those under way can still cost, is below the limit. Until then it waits.
   So what all cost together stays below the limit but for the last request, which may go above it.
2. What nobody can count is refused: a model without a price, and work whose answer comes later.
3. An answer that reports no usage is charged by its size.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from session.transcripts.anthropic_invoice import TIERS
from session.transcripts.reported_requests import Request
from session.transcripts.values import text_at

from ..models import describe_model
from ..models.prices import priced_model
from ..spend.money import cost_of, rates_of
from .history import reported_request
from .wire_format import Json, tokens_in

TOO_DEAR = "{what} have cost ${cost:,.2f}, and the gateway was started with a limit of ${most:,.2f} (--max-cost)"
UNCOUNTED = "the gateway was started with a limit of dollars (--max-cost) and cannot tell what this request costs: {reason}"
NO_MODEL, LATER = "it names no model", "its answer comes later"
NO_PRICE = "its model has no price in the lists"
FREE = re.compile(r"(?:/count_tokens|:countTokens|/input_tokens)$")
_MODEL_IN_PATH = re.compile(r"/models/([^/]+):\w+$")
_ELSEWHERE = re.compile(
    rb'base64|inline_?data|previous_response|"conversation|file_?(?:id|uri)|cached_?content|url"|"prompt"', re.IGNORECASE
)
"""Words in a body whose prompt can have more tokens than the body has bytes."""
WINDOW, ANSWER = 1_000_000, 128_000
"""Tokens that a prompt and an answer may have if the model's limits are unknown."""
LONGEST_MODEL = 200
"""Characters of a model's name. What is known of a model is kept by its name, and a longer one is none."""
BYTES = 4
"""Bytes of a token, about."""


def today() -> date:
    """Return the day in the machine's time zone."""
    return datetime.now().astimezone().date()


class Charge:
    """What one request has cost, and the most that it may cost.

    Attributes:
        cost: US dollars so far.
        most: US dollars at most, by the limits of the model and of the request; None if the model has no price.
    """

    def __init__(self, model: str, fields: Json, body: bytes) -> None:
        """
        Args:
            model: The model's name.
            fields: The request's body, parsed.
            body: The request's body.
        """
        tier = text_at(fields, "service_tier")
        self._request = Request("", time.time(), "", model, "", "", tier=tier if tier in TIERS else "", speed=text_at(fields, "speed"))
        self._prompt = len(body) // BYTES
        facts = describe_model(model)
        window = facts.input_limit or WINDOW
        prompt = window if len(body) >= window or _ELSEWHERE.search(body) else len(body)
        answer = tokens_in(fields, "max_tokens", "max_completion_tokens", "max_output_tokens") or facts.output_limit or ANSWER
        rates = rates_of(replace(self._request, input_tokens=prompt))
        self.cost = Decimal(0)
        self.most: Decimal | None = None
        if rates is not None:
            written = max(rates.input, rates.cache_write, rates.cache_write_1h)
            self.most = prompt * written + (tokens_in(fields, "n") or 1) * answer * rates.output

    @property
    def left(self) -> Decimal:
        """The most that it can still cost, in US dollars."""
        return max(Decimal(0), (self.most or Decimal(0)) - self.cost)

    def note(self, usage: Json) -> None:
        """Add an answer's reported usage."""
        reported = reported_request(usage, self._request.model, self._request.time or 0)
        if reported is not None:
            terms = self._request
            self._add(replace(reported, tier=reported.tier or terms.tier, speed=reported.speed or terms.speed))

    def note_silence(self, tokens: int) -> None:
        """Add an answer that reports no usage and has about this many tokens."""
        self._add(replace(self._request, input_tokens=self._prompt, output_tokens=tokens))

    def _add(self, request: Request) -> None:
        self.cost += cost_of(request) or 0


class CostLimit:
    """A limit. It belongs to one event loop."""

    def __init__(self, most: Decimal, spent_today: Decimal | None) -> None:
        """
        Args:
            most: The limit.
            spent_today: What today's requests have cost so far, if it is the limit of a day; None for one of the gateway.
        """
        self._most, self._is_of_day, self._ended = most, spent_today is not None, spent_today or Decimal(0)
        self._day = today()
        self._under_way: set[Charge] = set()
        self._has_ended = asyncio.Event()
        priced_model("")  # loads the price list, which takes a while

    def problem(self) -> str | None:
        """Return why nothing more is sent; None below the limit."""
        if self._is_of_day and today() != self._day:
            self._day, self._ended = today(), Decimal(0)
        if (spent := self._spent()) < self._most:
            return None
        what = "today's requests" if self._is_of_day else "the requests through this gateway"
        return TOO_DEAR.format(what=what, cost=spent, most=self._most)

    async def charge(self, path: str, fields: Json | None, body: bytes) -> Charge | str | None:
        """Wait until a request can be sent. Returns its charge, which `end` takes; why it is refused; or None if it costs nothing.

        Args:
            path: Its path at the provider.
            fields: Its body if that is a JSON object.
            body: Its body.
        """
        if not body or FREE.search(path):
            return self.problem()
        model = text_at(fields or {}, "model") or next(iter(_MODEL_IN_PATH.findall(path)), "")
        if fields is None or not model:
            return self.problem() or UNCOUNTED.format(reason=NO_MODEL)
        if fields.get("background") or "batch" in path.lower():
            return self.problem() or UNCOUNTED.format(reason=LATER)
        charge = Charge(model, fields, body) if len(model) <= LONGEST_MODEL else None
        if charge is None or charge.most is None:
            return self.problem() or UNCOUNTED.format(reason=NO_PRICE)
        while (problem := self.problem()) is None:
            left = sum((other.left for other in self._under_way), Decimal(0))
            if not self._under_way or self._spent() + left < self._most:
                self._under_way.add(charge)
                return charge
            await self._has_ended.wait()
        return problem

    def end(self, charge: Charge) -> None:
        """Take the charge of a request that has ended."""
        self._under_way.discard(charge)
        self._ended += charge.cost
        self._has_ended.set()
        self._has_ended = asyncio.Event()

    def _spent(self) -> Decimal:
        return self._ended + sum((charge.cost for charge in self._under_way), Decimal(0))


class ChargedResponse(Response):
    """A response whose charge ends with it."""

    def __init__(self, response: Response, end: Callable[[], None]) -> None:
        """
        Args:
            response: The response.
            end: Takes the charge.
        """
        self._response, self._end = response, end
        self.background = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response."""
        try:
            await self._response(scope, receive, send)
        finally:
            self._end()
