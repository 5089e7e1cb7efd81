"""Refusals that other processes have seen, and their lessons, so that a conversation has one view wherever its next request arrives.

A view is a function of the conversation, with three exceptions: after the provider refused a prompt as too long, later views are smaller;
after a pause in which its cache forgot the conversation, a window that chooses its size trims for nothing; and once the provider has
counted a prompt higher than the local count, the budget allows for it. A `RefusalMemory` keeps all three. A process that has not seen
them repeats them:

1. A refusal is kept with the number of messages that the refused conversation had, their digest, and the provider's figures.
2. The log is made up to that many messages, and the refusal is accepted as if it came now. Then the log goes on.
3. A pause is kept likewise, with figures of 0. The log is made up to the message that came after it, which is younger than those before.
4. A provider's count is kept likewise, with a limit of 0. The budget is lowered when the log has these messages.
5. A log that is already beyond a refusal is made again from the first message.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ..model_errors import PromptTooLongError

LARGEST_FIGURE = 2**53
"""Figures of a provider from here on are not kept."""


class PastRefusal(NamedTuple):
    """One refusal of a prompt as too long, or the provider's count of one, or a pause before the last of its messages.

    `messages` is the number of messages of the conversation then, with their `digest`, and `number` how often it had been refused before.
    `tokens` is the provider's count, None if it gave none, 0 for a pause; `limit` what it allows, None if it gave none, 0 for a count or a
    pause.
    """

    messages: int
    number: int
    digest: bytes
    tokens: int | None
    limit: int | None

    @property
    def is_pause(self) -> bool:
        """True for a pause."""
        return (self.tokens, self.limit) == (0, 0)

    @property
    def is_count(self) -> bool:
        """True for a count of a prompt that was accepted."""
        return bool(self.tokens) and self.limit == 0

    @property
    def length_before(self) -> int:
        """Number of messages that the log has when it takes this."""
        return self.messages - 1 if self.is_pause else self.messages

    def error(self) -> PromptTooLongError:
        """Return the refusal as it came from the provider."""
        return PromptTooLongError("an earlier request was refused", tokens=self.tokens, limit=self.limit)


class RefusalMemory(Protocol):
    """Keeps refusals for several processes. It holds digests and numbers, and no text. Its methods raise nothing."""

    def known(self, start: bytes, /) -> Sequence[PastRefusal] | None:
        """Return the refusals of conversations with this hash of their beginning; None if they cannot be known now."""

    def add(self, start: bytes, refusal: PastRefusal, /) -> None:
        """Keep a refusal. One with the same messages and number that is already kept stays."""


def start_of(system_hash: bytes, hashes: Sequence[bytes]) -> bytes:
    """Return the hash of a conversation's beginning: the system prompt and the first message."""
    return hashlib.sha256(system_hash + hashes[min(1, len(hashes) - 1)]).digest()


def refusals_of(memory: RefusalMemory, start: bytes, hashes: Sequence[bytes], accepted: Sequence[PastRefusal]) -> list[PastRefusal]:
    """Return the refusals of a conversation, in their order. The memory of other processes gets those that only this one knows."""
    by_occasion = {(refusal.messages, refusal.number): refusal for refusal in accepted}
    remembered = memory.known(start)
    if remembered is None:
        return sorted(by_occasion.values())
    still_valid = {
        (refusal.messages, refusal.number): refusal
        for refusal in remembered
        if 0 < refusal.messages < len(hashes) and hashes[refusal.messages] == refusal.digest
    }
    for occasion in by_occasion.keys() - still_valid.keys():
        memory.add(start, by_occasion[occasion])
    return sorted((by_occasion | still_valid).values(), key=lambda refusal: (refusal.messages, refusal.number))


def refusal_now(hashes: Sequence[bytes], accepted: Sequence[PastRefusal], tokens: int | None, limit: int | None) -> PastRefusal | None:
    """Return a refusal of the whole conversation to be kept; None if the provider's figures are impossible."""
    if any(figure is not None and not 0 < figure < LARGEST_FIGURE for figure in (tokens, limit)):
        return None
    return _of_all(hashes, accepted, tokens, limit)


def count_now(hashes: Sequence[bytes], refusals: Sequence[PastRefusal], tokens: int) -> PastRefusal | None:
    """Return the provider's count of the whole conversation to be kept; None if it is impossible."""
    return _of_all(hashes, refusals, tokens, 0) if 0 < tokens < LARGEST_FIGURE else None


def _of_all(hashes: Sequence[bytes], known: Sequence[PastRefusal], tokens: int | None, limit: int | None) -> PastRefusal:
    messages = len(hashes) - 1
    return PastRefusal(messages, sum(refusal.messages == messages for refusal in known), hashes[-1], tokens, limit)


def continues(refusals: Sequence[PastRefusal], accepted: Sequence[PastRefusal], length: int) -> bool:
    """True if a log of so many messages that has accepted some refusals can go on to accept these."""
    rest = refusals[len(accepted) :]
    return list(refusals[: len(accepted)]) == list(accepted) and all(refusal.length_before >= length for refusal in rest)


def pause_now(hashes: Sequence[bytes], refusals: Sequence[PastRefusal]) -> PastRefusal | None:
    """Return a pause before the last message to be kept; None if something is already kept of these messages, or only one has come."""
    messages = len(hashes) - 1
    is_new = messages > 1 and all(refusal.messages != messages for refusal in refusals)
    return PastRefusal(messages, 0, hashes[-1], 0, 0) if is_new else None
