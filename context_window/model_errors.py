"""The exceptions for a model's provider that gave no answer.

ModelError                 the model's provider gave no answer  (`.status`, `.kind`, `.request_id`, `.retry_after`)
├── ModelRateLimitError    too many requests, or too many tokens, a minute
├── ModelOverloadedError   the provider is overloaded, or failed inside
├── ModelAccessError       the key is missing, wrong, or may not do this
├── ModelNetworkError      no answer came through
├── PromptTooLongError     the provider counts more than its window holds  (`.tokens`, `.limit`)
└── PartRefusedError       the provider cannot read an image or a document  (`.part_kind`, `.place`)
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from .errors import ContextWindowError

PartKind: TypeAlias = Literal["image", "document"]


class ModelError(ContextWindowError):
    """The model's provider gave no answer. The log is as it was before the call of the model.

    Attributes:
        reason: What the provider says, in one line of at most 300 characters.
        status: The HTTP status; None where there was none.
        kind: The provider's word for this sort of error; empty where it gave none.
        request_id: What the provider calls the request, for its support; empty where it gave none.
        retry_after: Seconds after which the provider wants to be asked again; None where it did not say.
    """

    advice = "Mend the request; sent again as it is, it fails again."
    """What to do, the last sentence of the message."""

    def __init__(
        self, reason: str, status: int | None = None, kind: str = "", request_id: str = "", retry_after: float | None = None
    ) -> None:
        self.reason = reason
        self.status = status
        self.kind = kind
        self.request_id = request_id
        self.retry_after = retry_after
        super().__init__(reason, status, kind, request_id, retry_after)

    def __str__(self) -> str:
        status = "" if self.status is None else f" (HTTP {self.status}{f' {self.kind}' if self.kind else ''})"
        wait = "" if self.retry_after is None else f" It asks to wait {self.retry_after:g} s."
        return f"the model did not answer{status}: {self.reason.rstrip('.')}.{wait} {self.advice}"


class ModelRateLimitError(ModelError):
    """Too many requests, or too many tokens, in the last minute."""

    advice = "Wait, then go on with the session as it is."


class ModelOverloadedError(ModelError):
    """The provider is overloaded, or failed inside: it is not the request."""

    advice = "It is the provider's trouble: wait, then go on with the session as it is."


class ModelAccessError(ModelError):
    """The key is missing, wrong, or may not do this."""

    advice = "Check the API key, and what its account may use and pay for."


class ModelNetworkError(ModelError):
    """No answer came through: no connection, or it broke, or none came in time."""

    advice = "Check the network and the base URL, then go on with the session as it is."


class PromptTooLongError(ModelError):
    """The provider counts more for the request than its window holds.

    Attributes:
        tokens: What the provider counts for the prompt; None where it gave no figure.
        limit: What it allows for one, the room for the answer left out; None where it gave no figure.
    """

    advice = "Set a smaller budget (ContextWindow(max_tokens=…)), or take something large out of what must be kept."

    def __init__(
        self,
        reason: str,
        status: int | None = None,
        kind: str = "",
        request_id: str = "",
        retry_after: float | None = None,
        *,
        tokens: int | None = None,
        limit: int | None = None,
    ) -> None:
        super().__init__(reason, status, kind, request_id, retry_after)
        self.tokens = tokens
        self.limit = limit


class PartRefusedError(ModelError):
    """The provider cannot read an image or a document of the request, or does not take one like it.

    Attributes:
        part_kind: `image` or `document`; None where the provider's words fit either.
        place: Indices into the request, each from 0: (message, block), or (message, tool result, block in it). None where the provider
            named no place.
    """

    advice = "Shrink, convert or leave out the image or document that it names."

    def __init__(
        self,
        reason: str,
        status: int | None = None,
        kind: str = "",
        request_id: str = "",
        retry_after: float | None = None,
        *,
        part_kind: PartKind | None = None,
        place: tuple[int, ...] | None = None,
    ) -> None:
        super().__init__(reason, status, kind, request_id, retry_after)
        self.part_kind = part_kind
        self.place = place
