"""`GatewayLedger`: numbers of what the gateway has done. It holds no content, no key and no address."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from .plan_notes import PlanNotes
from .repairs import Repairs
from .savings import Savings
from .secret_warnings import SecretWarnings


@dataclass(slots=True)
class GatewayLedger:
    """Totals since the start.

    Attributes:
        requests: Requests of conversations.
        shortened: Those of them that were sent with fewer or shorter messages.
        received: Bytes of the requests' bodies.
        forwarded: Bytes of the bodies that went upstream.
        recalls: Calls of the recall tool that were answered.
        unmanaged: Requests that could not be fitted, by the kind of error. They were sent unchanged, or refused if the gateway is strict.
        answers: Answers of upstreams, by the upstream's name and the HTTP status; 502 also for one that could not be reached.
        decision_seconds: Time that fitting conversations took, in all.
        savings: What they cost, and saved.
        repairs: Refused requests that were mended.
        plans: The limits of the plans that it was told of.
        secrets: Warns of keys in requests; None if nobody asked for it.
    """

    requests: int = 0
    shortened: int = 0
    received: int = 0
    forwarded: int = 0
    recalls: int = 0
    unmanaged: dict[str, int] | None = None
    answers: Counter[tuple[str, int]] = field(default_factory=Counter)
    decision_seconds: float = 0.0
    savings: Savings = field(default_factory=Savings)
    repairs: Repairs = field(default_factory=Repairs)
    plans: PlanNotes = field(default_factory=PlanNotes)
    secrets: SecretWarnings | None = None

    def add(self, received: int, forwarded: int, *, shortened: bool) -> None:
        """Count one request of a conversation.

        Args:
            received: Bytes of its body.
            forwarded: Bytes of the body that goes upstream.
            shortened: True if the view is not the whole conversation.
        """
        self.requests += 1
        self.received += received
        self.forwarded += forwarded
        self.shortened += shortened

    def is_first(self, error: BaseException) -> bool:
        """True if no request was unmanaged for this kind of error yet."""
        return type(error).__name__ not in (self.unmanaged or {})

    def add_unmanaged(self, error: BaseException) -> None:
        """Count one request that could not be fitted."""
        self.unmanaged = self.unmanaged or {}
        kind = type(error).__name__
        self.unmanaged[kind] = self.unmanaged.get(kind, 0) + 1

    def line(self) -> str:
        """Return the totals as one line."""
        saved = 100 * (self.received - self.forwarded) / max(1, self.received)
        money = f"{text}; " if (text := self.savings.text()) else ""
        text = f"gateway: {money}{self.requests:,} requests, {self.shortened:,} shortened, {saved:.0f} % of their bytes left out"
        text += f", {self.repairs.text() or '0 repairs'}"
        if not self.requests:
            text = "gateway: no conversation was fitted" if self.unmanaged else "gateway: no request of a conversation"
        text += f", {self.recalls:,} recalls answered" if self.recalls else ""
        text += "" if self.secrets is None else f", {self.secrets.count:,} keys in requests"
        text += f"; {warning}" if (warning := self.savings.warning) else ""
        text = "; ".join([text, *self.plans.sentences()])
        problems = ", ".join(f"{count:,} × {kind}" for kind, count in (self.unmanaged or {}).items())
        return f"{text}; not managed: {problems}" if problems else text
