"""`RequestWatch`: follows one request, from its view to the end of its answers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from http import HTTPStatus

from starlette.requests import Request

from ..usage.view_figures import ViewFigures
from .cost_limit import Charge
from .history import SUBAGENT_HEADERS, History, Report
from .relay import OpenAnswer
from .unmanaged import prompt_tokens
from .usage_reader import UsageReader
from .wire_format import Json


class RequestWatch:
    """Adds a request to the history as soon as it is answered, and passes on the provider's count of it."""

    def __init__(self, history: History, client: str, model: str, *, is_subagent: bool = False) -> None:
        """
        Args:
            history: Where the request is added.
            client: The request's `User-Agent`.
            model: The model's name.
            is_subagent: True if an agent asks that the client has started for a part of its work.
        """
        self._history, self._client, self._model, self._is_subagent = history, client, model, is_subagent
        self._view: tuple[str, ViewFigures] | None = None
        self._on_count: Callable[[ViewFigures, int], object] | None = None
        self._report: Report | None = None

    def remember_view(self, on_count: Callable[[ViewFigures, int], object], id: str, figures: ViewFigures) -> None:
        """Take a view that is sent. A smaller view after a refusal replaces it.

        Args:
            on_count: Called with the figures and the provider's count, in tokens, once that is reported.
            id: The conversation's id.
            figures: The figures of the view.
        """
        self._view, self._on_count = (id, figures), on_count

    def follow(self) -> Callable[[Json], object] | None:
        """Add the request, and return what takes the usage of its answer. Later answers belong to the same request: those to recalls."""
        if self._view is None:
            return None
        if self._report is None:
            self._report = self._history.begin(self._view[0], self._client, self._model, self._view[1], is_subagent=self._is_subagent)
        return partial(self._note_usage, self._report)

    def _note_usage(self, report: Report, usage: Json) -> None:
        reported = report(usage)
        if self._view is not None and self._on_count is not None and reported is not None:
            self._on_count(self._view[1], prompt_tokens(reported))
            self._on_count = None  # the next answer is to a request with what was recalled


def begin_watch(request: Request, history: History, model: str) -> RequestWatch | None:
    """Follow a request. Returns None for a request that only counts tokens.

    Args:
        request: The client's request.
        history: Where it is added.
        model: The model's name.
    """
    if request.scope["path"].endswith("/count_tokens"):
        return None
    is_subagent = any(name in request.headers for name in SUBAGENT_HEADERS)
    watch = request.state.watch = RequestWatch(history, request.headers.get("user-agent", ""), model, is_subagent=is_subagent)
    return watch


def watched(request: Request, answer: OpenAnswer) -> OpenAnswer:
    """Return an answer of the upstream's, which the request's watch and its charge read as it passes if there are such."""
    watch: RequestWatch | None = getattr(request.state, "watch", None)
    charge: Charge | None = getattr(request.state, "charge", None)
    if answer.status == HTTPStatus.OK:
        followed = watch.follow() if watch else None
        if followed is not None or charge is not None:
            answer.watch(UsageReader(dict(answer.headers), followed or bool, charge.note if charge else None))
    return answer
