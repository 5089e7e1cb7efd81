"""How often a refused request is tried again: once for a prompt that is too long, and once for a part that the provider cannot read."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Self

from session.session import Session

from .model_errors import ModelError, PartRefusedError, PromptTooLongError

if TYPE_CHECKING:
    from .manager import ContextWindowManager


class Attempts:
    """The attempts at one request.

        with Attempts(manager, session) as attempts:
            while True:
                view = manager.process_session(session)
                try:
                    return ask(view)
                except (PromptTooLongError, PartRefusedError) as refusal:
                    if not attempts.gives_way(refusal):
                        raise

    A request that fails in the end leaves no guess behind: see `ContextWindowManager.withdraw_refusal`.
    """

    def __init__(self, manager: ContextWindowManager, session: Session) -> None:
        """
        Args:
            manager: The manager that makes the views.
            session: The session that is asked about.
        """
        self._manager = manager
        self._session = session
        self._accepted: set[type[ModelError]] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is not None and PartRefusedError in self._accepted:
            self._manager.withdraw_refusal(self._session)

    def gives_way(self, refusal: PromptTooLongError | PartRefusedError) -> bool:
        """Return True if the request is to be tried again, with another view.

        A second part that the provider names becomes a note too, for the next request; this one is over.

        Args:
            refusal: What came of the last attempt.
        """
        kind = PartRefusedError if isinstance(refusal, PartRefusedError) else PromptTooLongError
        if kind not in self._accepted:
            self._accepted.add(kind)
            return self._manager.accept_refusal(self._session, refusal)
        if isinstance(refusal, PartRefusedError) and refusal.place is not None:
            self._manager.accept_refusal(self._session, refusal)
        return False
