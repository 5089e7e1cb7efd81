"""One request to a model as a log reports it, and what reads such requests: only values. Each format's reader makes them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol, TypedDict

from .makeup import Makeup
from .usage import Counts
from .values import JsonObject

NO_PROMPT = "prompt not reported"
"""In place of a tier: of such a request only the answer is known."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request to a model, as a log reports it. Amounts are in tokens; no token is in two of them, except `reasoning`.

    Attributes:
        id: Equal for reports of the same request, in this log and in copies of it. Empty if the log does not tell.
        time: Unix seconds; None if unknown.
        tool: The assistant that wrote the log, such as `claude-code`.
        model: The model's name; empty if unknown.
        project: The folder in which the assistant worked; empty if unknown.
        session: The session's id. A sub-agent's requests belong to the session that started it.
        agent: The sub-agent's id or name; empty for the main conversation.
        input_tokens: Prompt tokens that were neither read from the cache nor written to it.
        cache_read: Prompt tokens read from the cache.
        cache_write: Prompt tokens written to the cache for five minutes, or for a time that the log does not state.
        cache_write_1h: Prompt tokens written to the cache for an hour.
        output_tokens: Tokens of the answer, reasoning included.
        reasoning: Those of them that are reasoning; None if the log does not tell.
        cost: Price in US dollars that the log states; None if it states none.
        speed: `fast` if the request was served faster at a higher price; empty otherwise.
        tier: The service tier that has prices of its own: `batch`, `flex`, `priority`; or `NO_PROMPT`; empty otherwise.
        region: The region that inference was limited to, such as `us`; empty if it was not.
        searches: Web searches that the provider ran and charges for.
        largest_prompt: Tokens of the largest prompt, if the answer took several; 0 if it took one. Prices can rise with it.
        branch: The branch of the repository on which the assistant worked; empty if the log does not tell.
        makeup: What the prompt was made of; None unless someone has worked it out.
    """

    id: str
    time: float | None
    tool: str
    model: str
    project: str
    session: str
    agent: str = ""
    input_tokens: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cache_write_1h: int = 0
    output_tokens: int = 0
    reasoning: int | None = None
    cost: Decimal | None = None
    speed: str = ""
    tier: str = ""
    region: str = ""
    searches: int = 0
    largest_prompt: int = 0
    branch: str = ""
    makeup: Makeup | None = None

    @property
    def prompt(self) -> int:
        """Tokens of the prompt."""
        return self.input_tokens + self.cache_read + self.cache_write + self.cache_write_1h

    @property
    def total(self) -> int:
        """All tokens of the request: prompt and answer."""
        return self.prompt + self.output_tokens


class Amounts(TypedDict):
    """The amounts of a request that every format reports."""

    input_tokens: int
    cache_read: int
    cache_write: int
    output_tokens: int


def amounts_of(counts: Counts) -> Amounts:
    """Return the counts under the names that a request has for them."""
    uncached, cache_read, cache_write, output_tokens, _ = counts
    return Amounts(input_tokens=uncached, cache_read=cache_read, cache_write=cache_write, output_tokens=output_tokens)


class RequestReader(Protocol):
    """Reads the values of one file."""

    def read(self, value: JsonObject) -> Iterator[Request]:
        """Yield the requests that a value reports. Reports without any token are left out by the caller."""
