"""The exceptions raised when a model's provider does not answer.

ModelError                 the model's provider did not answer  (`.status`, `.kind`, `.request_id`, `.retry_after`)
├── ModelRateLimitError    too many requests, or too many tokens, per minute
├── ModelOverloadedError   the provider is overloaded, or failed internally
├── ModelAccessError       the API key is missing, wrong, or lacks a permission
├── ModelNetworkError      the connection failed, or the answer did not arrive in time
├── PromptTooLongError     the provider counts more tokens than its window holds  (`.tokens`, `.limit`)
└── PartRefusedError       the provider cannot read an image or a document  (`.part_kind`, `.place`)
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from .errors import ContextWindowError

PartKind: TypeAlias = Literal["image", "document"]
PlaceApi: TypeAlias = Literal["anthropic", "openai", "openai-responses"]
"""APIs that name the place of a refused part."""


class ModelError(ContextWindowError):
    """The model's provider did not answer. The log is as it was before the call of the model.

    Attributes:
        reason: The provider's message, in one line of at most 300 characters.
        status: The HTTP status; None without one.
        kind: The provider's name for this type of error; empty without one.
        request_id: The provider's id of the request, for its support; empty without one.
        retry_after: Seconds to wait before the next attempt, as the provider requests; None if it does not say.
    """

    advice = "Correct the request; sent again unchanged, it fails again."
    """The last sentence of the message: what to do."""

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
    """The provider is overloaded, or failed internally. The request is not at fault."""

    advice = "The provider is at fault: wait, then go on with the session as it is."


class ModelAccessError(ModelError):
    """The API key is missing, wrong, or lacks a permission."""

    advice = "Check the API key, and the permissions and credit of its account."


class ModelNetworkError(ModelError):
    """There was no connection, it broke, or the answer did not arrive in time."""

    advice = "Check the network and the base URL, then go on with the session as it is."


class PromptTooLongError(ModelError):
    """The provider counts more tokens for the request than its window holds.

    Attributes:
        tokens: The provider's count of the prompt; None if it gave no figure.
        limit: The tokens that it allows for a prompt, without the room for the answer; None if it gave no figure.
    """

    advice = "Set a smaller budget (ContextWindow(max_tokens=…)), or shorten or unpin a large item that is always kept."

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
    """The provider cannot read an image or a document of the request, or does not accept it.

    Attributes:
        part_kind: `image` or `document`; None if the provider's message fits either.
        place: Indices into the request: (message, block); for Anthropic also (message, tool result, block in it); for OpenAI's
            Responses API (item, part of its content or output). None if the provider named no place.
        api: The API whose request has this place; None if there is no place.
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
        api: PlaceApi | None = "anthropic",
    ) -> None:
        super().__init__(reason, status, kind, request_id, retry_after)
        self.part_kind = part_kind
        self.place = place
        self.api = None if place is None else api
