"""Retries of one refused request: one for a prompt that is too long, one for an image or document that the provider cannot read."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Self

from session.session import Session

from ..model_errors import ModelError, PartRefusedError, PromptTooLongError

if TYPE_CHECKING:
    from ..manager import ContextWindowManager


class RefusalRetries:
    """The retries of one request.

        with RefusalRetries(manager, session) as retries:
            while True:
                view = manager.process_session(session)
                try:
                    return send(view)
                except (PromptTooLongError, PartRefusedError) as refusal:
                    if not retries.accept(refusal):
                        raise

    If the last attempt fails too, a guess about the refused part is taken back: see `ContextWindowManager.withdraw_refusal`.
    """

    def __init__(self, manager: ContextWindowManager, session: Session) -> None:
        self._manager = manager
        self._session = session
        self._accepted_kinds: set[type[ModelError]] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None and PartRefusedError in self._accepted_kinds:
            self._manager.withdraw_refusal(self._session)

    def accept(self, refusal: PromptTooLongError | PartRefusedError) -> bool:
        """Adapt the session's views to a refusal. Return True if the request should be sent again, with a new view.

        A second refused part of the same request is not retried. If the provider named it, views show a note for it from now on.
        """
        kind = PartRefusedError if isinstance(refusal, PartRefusedError) else PromptTooLongError
        if kind not in self._accepted_kinds:
            self._accepted_kinds.add(kind)
            return self._manager.accept_refusal(self._session, refusal)
        if isinstance(refusal, PartRefusedError) and refusal.place is not None:
            self._manager.accept_refusal(self._session, refusal)
        return False
