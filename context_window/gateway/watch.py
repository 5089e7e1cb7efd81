"""`RequestWatch`: follows one request for the page, from its view to the end of its answers."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

from starlette.requests import Request

from ..usage.view_figures import ViewFigures
from .history import History
from .relay import OpenAnswer
from .usage_reader import UsageReader
from .wire_format import Json


class RequestWatch:
    """Adds a request to the history as soon as it is answered."""

    def __init__(self, history: History, client: str, model: str) -> None:
        """
        Args:
            history: Where the request is added.
            client: The request's `User-Agent`.
            model: The model's name.
        """
        self._history, self._client, self._model = history, client, model
        self._view: tuple[str, ViewFigures] | None = None
        self._report: Callable[[Json], None] | None = None

    def remember_view(self, id: str, figures: ViewFigures) -> None:
        """Take the conversation's id and the figures of the view that is sent. A smaller view after a refusal replaces it."""
        self._view = id, figures

    def follow(self, answer: OpenAnswer) -> None:
        """Add the request, and read the usage in its answer. Later answers belong to the same request: those to recalls."""
        if self._view is None:
            return
        if self._report is None:
            self._report = self._history.begin(self._view[0], self._client, self._model, self._view[1])
        answer.watch(UsageReader(dict(answer.headers), self._report))


def begin_watch(request: Request, history: History, model: str) -> RequestWatch | None:
    """Follow a request. Returns None for a request that only counts tokens.

    Args:
        request: The client's request.
        history: Where it is added.
        model: The model's name.
    """
    if request.url.path.endswith("/count_tokens"):
        return None
    watch = request.state.watch = RequestWatch(history, request.headers.get("user-agent", ""), model)
    return watch


def watched(request: Request, answer: OpenAnswer) -> OpenAnswer:
    """Return an answer of the upstream's, which the request's watch reads as it passes if there is one."""
    watch: RequestWatch | None = getattr(request.state, "watch", None)
    if watch is not None and answer.status == HTTPStatus.OK:
        watch.follow(answer)
    return answer
