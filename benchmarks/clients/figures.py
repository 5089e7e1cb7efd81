"""`Figures`: what the requests of one run cost, and what the model could see in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from .coder import RULE, TASK, Coder, messages_of, shows, texts_of

UNCHANGED = ("unchanged since", "Wasted call")
"""Words of Claude Code's notices that a file was read before and is not shown again."""
CACHED_PART = 0.5
"""A request that reads less than this part of the one before from the cache has lost it."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Dollars for a million tokens."""

    input: float
    read: float
    write: float
    output: float


SONNET = Prices(3.0, 0.3, 3.75, 15.0)
GPT_4_1 = Prices(2.0, 0.5, 2.0, 8.0)
GPT_5 = Prices(1.25, 0.125, 1.25, 10.0)


@dataclass(frozen=True, slots=True)
class Figures:
    """What one run came to.

    Attributes:
        requests: Requests of the main conversation.
        refused: Requests that the provider refused.
        dollars: The price of all requests.
        peak: Tokens of the largest request.
        lost: Requests that found less than half of the one before in the cache.
        whole: Requests that show the file being worked on as a whole.
        working: Requests in which a file is worked on.
        blind: Second reads that the client refused, of a file that the request does not show.
        notices: Second reads that the client refused.
        lacking: Requests without the task or without the project's rule.
        recovered: Requests that the model made to find a line.
        given_up: Edits for which it was not found.
    """

    requests: int
    refused: int
    dollars: float
    peak: int
    lost: int
    whole: int
    working: int
    blind: int
    notices: int
    lacking: int
    recovered: int
    given_up: int


def figures(coder: Coder, requests: Sequence[Mapping[str, Any]], answers: Sequence[Mapping[str, Any]], prices: Prices) -> Figures:
    """Return what a run came to.

    Args:
        coder: The model. It has answered each request that was not refused.
        requests: All requests that reached the provider, refused ones and those to count tokens too.
        answers: Its answers, without refusals.
        prices: What it bills.
    """
    spent = [_spent(answer) for answer in answers if "usage" in answer]
    main = [*coder.working.values()]
    working = [(request, file) for request, file in main if file is not None]
    notices = [file for request, file in working if _ends_with_notice(request)]
    blind = [request for request, file in working if _ends_with_notice(request) and not is_whole(request, coder.lines_of(file))]
    sizes = [sum(each[:3]) for each in spent]
    reads = [(before, now) for before, now in pairwise([spent[number] for number in coder.working])]
    return Figures(
        requests=len(main),
        refused=len(requests) - len(answers),
        dollars=sum(_dollars(each, prices) for each in spent),
        peak=max(sizes),
        lost=sum(now[0] < CACHED_PART * sum(before[:3]) for before, now in reads),
        whole=sum(is_whole(request, coder.lines_of(file)) for request, file in working),
        working=len(working),
        blind=len(blind),
        notices=len(notices),
        lacking=sum(not (shows(request, TASK) and shows(request | {"input": [request]}, RULE)) for request, _ in main),
        recovered=coder.recovered,
        given_up=coder.given_up,
    )


def is_whole(request: Mapping[str, Any], lines: Sequence[str]) -> bool:
    """True if the messages show all of some lines; the one that is edited before or after the edit."""
    shown = "\n".join(texts_of(messages_of(request)))
    return all(line in shown for line in lines)


def _ends_with_notice(request: Mapping[str, Any]) -> bool:
    last = list(texts_of(messages_of(request)[-1]))
    return any(words in text for text in last for words in UNCHANGED)


def _spent(answer: Mapping[str, Any]) -> tuple[int, int, int, int]:
    """Return the tokens read from the cache, written to it, neither, and of the answer."""
    usage = answer["usage"]
    if "cache_read_input_tokens" in usage:
        return (
            usage["cache_read_input_tokens"],
            usage["cache_creation_input_tokens"],
            usage["input_tokens"],
            usage["output_tokens"],
        )
    if "prompt_tokens" in usage:
        read = usage["prompt_tokens_details"]["cached_tokens"]
        return read, 0, usage["prompt_tokens"] - read, usage["completion_tokens"]
    read = usage["input_tokens_details"]["cached_tokens"]
    return read, 0, usage["input_tokens"] - read, usage["output_tokens"]


def _dollars(spent: tuple[int, int, int, int], prices: Prices) -> float:
    read, written, rest, output = spent
    return (read * prices.read + written * prices.write + rest * prices.input + output * prices.output) / 1e6
