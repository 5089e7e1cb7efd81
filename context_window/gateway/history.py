"""`History`: figures of the latest conversations, for the page. Bounded, in memory only; it holds no content, no key and no address."""

from __future__ import annotations

import re
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from threading import Lock
from typing import TypeAlias

from session.sanitize import MAX_COUNT
from session.transcripts.anthropic_invoice import with_terms
from session.transcripts.reported_requests import Request
from session.transcripts.usage import usage_of
from session.transcripts.values import count_at, object_at

from ..events.definitions import Kind
from ..spend.money import cost_of
from ..usage.view_figures import ViewFigures
from .plan_notes import PlanNotes
from .savings import OwnCompaction, Savings, own_compaction
from .secret_warnings import SecretWarnings
from .unmanaged import Cost, LeftOut, cost_without_management, prompt_tokens
from .wire_format import Json

SUBAGENT_HEADERS = ("x-claude-code-agent-id", "x-openai-subagent")
"""Headers of requests of agents that Claude Code and Codex have started for a part of their work."""
CONVERSATIONS = 50
"""Conversations that are kept: the most recently used ones."""
REQUESTS = 300
"""Requests that are kept of each: the newest ones. Totals include all."""
Report: TypeAlias = Callable[[Json], Request | None]
_CLIENT = re.compile(r"[A-Za-z][\w.-]{0,39}(?:/[\w.-]{1,20})?", re.ASCII)
_MODEL = re.compile(r"[\w.:/@\[\]-]{1,80}", re.ASCII)


@dataclass(slots=True)
class AnsweredRequest:
    """One request that the upstream has answered. Amounts are tokens.

    Attributes:
        number: Its number in the conversation, from 1.
        time: Unix seconds of the answer's beginning.
        figures: The figures of its view.
        taken: Items that it lacks and the request before did not, by kind.
        freed: Tokens that were taken out since the request before; positive if this is the request of a trim.
        reported: The reported usage; None until the answer has ended, and if nothing was reported.
        cost: Its cost, without that of requests that follow recalls; None without reported usage.
    """

    number: int
    time: float
    figures: ViewFigures
    taken: dict[Kind, int]
    freed: int
    reported: Request | None = None
    cost: Cost | None = None

    @property
    def view_tokens(self) -> int:
        """Tokens of the request, as counted here."""
        return self.figures.tokens

    @property
    def size(self) -> Json:
        """The request's tokens and those that it may have: by the provider's count, if that was reported and is higher."""
        more = 0 if self.reported is None else max(0, prompt_tokens(self.reported) - self.view_tokens)
        return {"view": self.view_tokens + more, "limit": self.figures.budget + more}

    @property
    def log_tokens(self) -> int:
        """Tokens of the request with the whole conversation, as counted here."""
        return self.view_tokens + self.figures.freed


@dataclass(slots=True)
class ConversationHistory:
    """The figures of one conversation. Amounts are tokens.

    Attributes:
        number: Its number since the start of the gateway, from 1. It says nothing of the conversation.
        client: The client's program, as its `User-Agent` names it.
        model: The model of its latest request.
        begun: Unix seconds of its first answer.
        requests: The newest requests.
        count: All requests.
        trims: Those that took something out.
        uncached: Reported prompt tokens that were neither read from the cache nor written to it.
        cache_read: Reported tokens read from the cache.
        cache_write: Reported tokens written to it.
        output: Reported tokens of answers.
        cost: Cost in US dollars of the requests whose price is known.
        priced: Number of these requests.
        compared_cost: Cost of the requests that could also have been sent without management.
        unmanaged_cost: The estimate for the same requests without management.
        unsendable: Requests that would not have fitted the model's window without management.
        own: How its client would have kept it; None if that is not known.
        own_cost: The estimate for the same requests if its client had kept it so.
        own_compared: Their cost.
        is_subagent: True for one of an agent that the client has started for a part of its work.
    """

    number: int
    client: str
    model: str
    begun: float
    requests: deque[AnsweredRequest] = field(default_factory=lambda: deque(maxlen=REQUESTS))
    count: int = 0
    trims: int = 0
    uncached: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    cost: Decimal = Decimal(0)
    priced: int = 0
    compared_cost: Decimal = Decimal(0)
    unmanaged_cost: Decimal = Decimal(0)
    unsendable: int = 0
    own: OwnCompaction | None = None
    own_cost: Decimal = Decimal(0)
    own_compared: Decimal = Decimal(0)
    is_subagent: bool = False

    def add(self, figures: ViewFigures, now: float) -> AnsweredRequest:
        """Add a request whose answer has begun."""
        last = self.requests[-1].figures if self.requests else None
        freed = figures.freed - (last.freed if last else 0)
        before = dict(last.kinds) if last else {}
        taken = {kind: count - before.get(kind, 0) for kind, count in figures.kinds if count > before.get(kind, 0)} if freed > 0 else {}
        self.count += 1
        self.trims += freed > 0
        self.requests.append(request := AnsweredRequest(self.count, now, figures, taken, max(0, freed)))
        return request

    def report(self, request: AnsweredRequest, report: Request) -> tuple[Cost, Decimal | None]:
        """Add the usage of a request, and return its cost, and that with the client's own compaction if it is known.

        A request whose recalls the gateway has answered has several reports.
        """
        own: Decimal | None = Decimal(0)
        if request.reported is None:
            cost, own = self._cost(request, report)
            request.reported, request.cost = report, cost
        else:  # without management there would have been nothing to recall
            request.reported = _sum(request.reported, report)
            cost = Cost(cost_of(report), Decimal(0), is_sendable=True)
        self.uncached += report.input_tokens
        self.cache_read += report.cache_read
        self.cache_write += report.cache_write + report.cache_write_1h
        self.output += report.output_tokens
        self.unsendable += not cost.is_sendable
        if cost.managed is not None:
            self.cost += cost.managed
            self.priced += 1
            if cost.unmanaged is not None:
                self.compared_cost += cost.managed
                self.unmanaged_cost += cost.unmanaged
            if own is not None:
                self.own_cost += own
                self.own_compared += cost.managed
        return cost, own

    def _cost(self, request: AnsweredRequest, report: Request) -> tuple[Cost, Decimal | None]:
        earlier = next((other for other in reversed(self.requests) if other.number < request.number), None)
        scale = Fraction(prompt_tokens(report), max(1, request.view_tokens))
        grown = 0 if earlier is None else max(0, request.log_tokens - earlier.log_tokens)
        left_out = LeftOut(round(scale * request.figures.freed), round(scale * grown), is_trim=request.freed > 0)
        before = None if earlier is None else earlier.reported
        own = None if self.own is None else self.own.cost(report, left_out, before)
        return cost_without_management(report, left_out, before), own


class History:
    """The conversations, the most recently used last. Thread-safe.

    Attributes:
        version: Changes with every change.
        savings: Totals of all conversations since the start.
        secrets: What warns of keys in requests; None if nobody asked for it.
        plans: The limits of plans.
    """

    def __init__(self, savings: Savings | None = None, secrets: SecretWarnings | None = None, plans: PlanNotes | None = None) -> None:
        """
        Args:
            savings: Where the totals are added up.
            secrets: What warns of keys in requests.
            plans: Where the limits of plans are noted.
        """
        self.plans = PlanNotes() if plans is None else plans
        self.version = 0
        self.secrets = secrets
        self.savings = Savings() if savings is None else savings
        self._by_id: OrderedDict[str, ConversationHistory] = OrderedDict()
        self._begun = 0
        self._lock = Lock()

    def begin(self, id: str, client: str, model: str, figures: ViewFigures, *, is_subagent: bool = False) -> Report:
        """Add a request whose answer has begun. Returns a function that takes its reported usage, and returns it as a request.

        Args:
            id: The conversation's id. It is never shown.
            client: The request's `User-Agent`.
            model: The model's name.
            figures: The figures of the request's view.
            is_subagent: True if an agent asks that the client has started for a part of its work.
        """
        now, shown_model = time.time(), model if _MODEL.fullmatch(model) else "another model"
        with self._lock:
            conversation = self._by_id.get(id)
            if conversation is None:
                self._begun += 1
                conversation = self._by_id[id] = ConversationHistory(self._begun, client_name(client), shown_model, now)
                conversation.is_subagent = is_subagent
                conversation.own = own_compaction(conversation.client, model)
            self._by_id.move_to_end(id)
            if len(self._by_id) > CONVERSATIONS:
                self._by_id.popitem(last=False)
            conversation.model = shown_model
            request = conversation.add(figures, now)
            self.savings.trims += request.freed > 0
            self.version += 1

        def report(usage: Json) -> Request | None:
            if (reported := reported_request(usage, model, now)) is not None:
                with self._lock:
                    cost, own = conversation.report(request, reported)
                    (self.savings.outgrown.discard if cost.is_sendable else self.savings.outgrown.add)(conversation.number)
                    self.savings.add(cost, None if conversation.own is None or own is None else (conversation.own.name, own))
                    self.version += 1
            return reported

        return report

    def note_plan(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Note the limits of the plan that an answer's headers state.

        Args:
            headers: Names in lower case, and values.
        """
        with self._lock:
            self.version += self.plans.note(headers, time.time())

    def status(self) -> Json:
        """Return figures for a status line, in tokens and US dollars.

        They are those of the conversation that was used last and goes on, and the trims, the cost and that without management of all.
        """
        _, conversations = self.snapshot()
        chosen = next(filter(_is_main, conversations), conversations[0] if conversations else None)
        shown: Json = {} if chosen is None else chosen.requests[-1].size
        savings = self.savings
        money = {"cost": float(savings.managed), "without": float(savings.unmanaged)}
        keys = 0 if self.secrets is None else self.secrets.count
        return {**shown, **money, "trims": savings.trims, "outgrown": bool(savings.outgrown), "smallest": savings.smallest, "keys": keys}

    def snapshot(self) -> tuple[int, list[ConversationHistory]]:
        """Return the version and copies of the conversations, the most recently used first."""
        with self._lock:
            copies = [replace(conversation, requests=conversation.requests.copy()) for conversation in self._by_id.values()]
            return self.version, copies[::-1]


def _is_main(conversation: ConversationHistory) -> bool:
    """True for the user's conversation that goes on, unlike a request for a title, or a sub-agent's."""
    return conversation.count > 1 and not conversation.is_subagent


def client_name(user_agent: str) -> str:
    """Return the program that a `User-Agent` names first, such as `claude-cli/2.1.0`."""
    match = _CLIENT.match(user_agent)
    return match[0] if match else "a client"


def reported_request(usage: Json, model: str, now: float) -> Request | None:
    """Return the request that a usage report of any provider is about; None if it reports no tokens."""
    counts = usage_of(usage)
    if counts is None or not 0 < sum(counts) <= MAX_COUNT:
        return None
    for_hour = min(count_at(object_at(usage, "cache_creation"), "ephemeral_1h_input_tokens"), counts.cache_write_tokens)
    request = Request(
        "",
        now,
        "",
        model,
        "",
        "",
        input_tokens=counts.input_tokens,
        cache_read=counts.cache_read_tokens,
        cache_write=counts.cache_write_tokens - for_hour,
        cache_write_1h=for_hour,
        output_tokens=counts.output_tokens,
        searches=count_at(object_at(usage, "server_tool_use"), "web_search_requests"),
    )
    return with_terms(request, usage)


def _sum(first: Request, second: Request) -> Request:
    return replace(
        first,
        input_tokens=first.input_tokens + second.input_tokens,
        cache_read=first.cache_read + second.cache_read,
        cache_write=first.cache_write + second.cache_write,
        cache_write_1h=first.cache_write_1h + second.cache_write_1h,
        output_tokens=first.output_tokens + second.output_tokens,
    )
