"""What a request costs beside the session's items."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from session.estimate import CALL_TOKENS, ITEM_TOKENS
from session.providers.additions import INTERRUPTED, PREAMBLE

from ..tools import Tool, tool_texts
from .counter import TokenCounter


@dataclass(frozen=True, slots=True)
class RequestOverhead:
    """Tokens of a request beside its items.

    Attributes:
        frame: What the provider adds to every request.
        tools: Tool definitions.
        preamble: What a converter adds where the first message is not the user's; only then does it count.
        synthetic: What a converter adds for each call without an output.
    """

    frame: int = 0
    tools: int = 0
    preamble: int = 0
    synthetic: int = 0

    @property
    def fixed(self) -> int:
        """What every request costs."""
        return self.frame + self.tools


def request_overhead(counter: TokenCounter, tools: Iterable[Tool], frame: int) -> RequestOverhead:
    """The overhead of requests with these tools.

    Raises:
        BudgetError: A tool cannot be written as a definition.
    """
    return RequestOverhead(
        frame=frame,
        tools=sum(map(counter.count_text, tool_texts(tools))),
        preamble=ITEM_TOKENS + counter.count_text(PREAMBLE),
        synthetic=ITEM_TOKENS + CALL_TOKENS + counter.count_text(INTERRUPTED),
    )
