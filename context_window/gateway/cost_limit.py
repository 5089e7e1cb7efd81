"""`CostLimit`: US dollars after which a gateway refuses requests, over its own time or over a day.

1. A request is refused once those before it have cost the limit, as far as their answers have reported usage. Nothing waits: requests that
   are under way at that moment are finished, and may take the sum beyond the limit.
2. A request whose cost nobody will know is refused: a model without a price in the lists, unless it runs on this machine; batches,
   background work and forms for media, which report no usage.
3. An answer that reports no usage, or that broke off before its last report, is charged by its size.
4. What costs nothing, or next to nothing, passes without a charge: token counts, embeddings, moderations, uploads.
"""

from __future__ import annotations

import re
import time
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from urllib.parse import urlsplit

from session.transcripts.anthropic_invoice import TIERS
from session.transcripts.reported_requests import Request
from session.transcripts.values import text_at

from ..hosts import is_loopback
from ..models.prices import priced_model
from ..spend.money import cost_of, rates_of
from .history import reported_request
from .wire_format import Json

TOO_DEAR = "{what} have cost ${cost:,.2f}, and the gateway was started with a spending limit of ${most:,.2f} (--max-cost)"
UNCOUNTED = "the gateway has a spending limit (--max-cost), and {reason}. Start another gateway without a limit for it"
NO_MODEL, LATER = "this request cannot be read, or names no model", "batches, background work and media forms are billed without a report"
NO_PRICE = "no price list knows the model of this request"
_FREE = re.compile(r"(?:/count_tokens|:countTokens|/input_tokens|/embeddings|:(?:embedContent|batchEmbedContents)|/moderations)$")
_LATER = re.compile(r"(?:/batches|:batchGenerateContent|:asyncBatchEmbedContent|/fine_tuning/jobs|/runs|/realtime/\w+)$")
_MEDIA = re.compile(r"/(?:audio|images|videos)\b")
_MODEL_IN_PATH = re.compile(r"/models/([^/]+):\w+$")
LONGEST_MODEL = 200
"""Characters of a model's name. What is known of a model is kept by its name, and a longer one is none."""
BYTES = 4
"""Bytes of a token, about."""
FRAMES = 4
"""Events of a stream that may follow its last report without any text."""


def today() -> date:
    """Return the day in the machine's time zone."""
    return datetime.now().astimezone().date()


class CostLimit:
    """A limit. It belongs to one event loop."""

    def __init__(self, most: Decimal, spent_today: Decimal | None) -> None:
        """
        Args:
            most: The limit.
            spent_today: What today's requests have cost so far, if it is the limit of a day; None for one of the gateway.
        """
        self._most, self._is_of_day, self._spent = most, spent_today is not None, spent_today or Decimal(0)
        self._day = today()
        priced_model("")  # loads the price list, which takes a while

    def problem(self) -> str | None:
        """Return why nothing more is sent; None below the limit."""
        self._begin_day()
        if self._spent < self._most:
            return None
        what = "today's requests" if self._is_of_day else "the requests through this gateway"
        return TOO_DEAR.format(what=what, cost=self._spent, most=self._most)

    def charge(self, url: str, path: str, fields: Json | None, body: bytes) -> Charge | str | None:
        """Return the charge of a request to be sent; why it is refused; or None if it costs nothing.

        Args:
            url: Its provider's address.
            path: Its path there.
            fields: Its body if that is a JSON object.
            body: Its body.
        """
        if (problem := self.problem()) is not None:
            return problem
        if not body or _FREE.search(path):
            return None
        if fields is None:
            reason = LATER if _MEDIA.search(path) else NO_MODEL if body.lstrip().startswith(b"{") else None
            return reason and UNCOUNTED.format(reason=reason)
        if fields.get("background") or _LATER.search(path):
            return UNCOUNTED.format(reason=LATER)
        model = next(iter(_MODEL_IN_PATH.findall(path)), "") or text_at(fields, "model")
        if not model:
            return None
        charge = Charge(self, model, fields, len(body)) if len(model) <= LONGEST_MODEL else None
        if charge is not None and charge.is_priced:
            return charge
        return None if is_loopback(urlsplit(url).hostname or "") else UNCOUNTED.format(reason=NO_PRICE)

    def add(self, cost: Decimal) -> None:
        """Add what a request has cost."""
        self._begin_day()
        self._spent += cost

    def _begin_day(self) -> None:
        if self._is_of_day and today() != self._day:
            self._day, self._spent = today(), Decimal(0)


class Charge:
    """Charges a limit for one request.

    Attributes:
        is_priced: True if its model has a price.
    """

    def __init__(self, limit: CostLimit, model: str, fields: Json, size: int) -> None:
        """
        Args:
            limit: The limit.
            model: The model's name.
            fields: The request's body, parsed.
            size: Bytes of the body.
        """
        tier = text_at(fields, "service_tier")
        self._limit = limit
        self._request = Request("", time.time(), "", model, "", "", tier=tier if tier in TIERS else "", speed=text_at(fields, "speed"))
        self._prompt = size // BYTES
        self.is_priced = rates_of(replace(self._request, input_tokens=1)) is not None

    def note(self, usage: Json, tokens: int, since: int) -> None:
        """Charge for an answer that has ended or broken off.

        Args:
            usage: The usage that it reported; empty if none.
            tokens: About the number of tokens that it has.
            since: About the number of those after the last report.
        """
        reported = reported_request(usage, self._request.model, self._request.time or 0)
        if reported is None:
            self._limit.add(cost_of(replace(self._request, input_tokens=self._prompt, output_tokens=tokens)) or Decimal(0))
            return
        terms, unreported = self._request, since if since > FRAMES else 0
        request = replace(reported, output_tokens=reported.output_tokens + unreported)
        self._limit.add(cost_of(replace(request, tier=request.tier or terms.tier, speed=request.speed or terms.speed)) or Decimal(0))
