"""The door to whatever knows more about a request's cost than the local count. The local count itself is in `view_contents.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from .view_contents import ViewContents


class Totals(Protocol):
    """Corrects the local count of a request. The engine adds the correction to its count and knows nothing else about it.

    The correction may treat items before the view's mark (`ViewContents.mark`) otherwise than items from the mark on.
    """

    def on_request(self, view: ViewContents) -> None:
        """Take note that the model is called with this view now."""

    def correction(self, view: ViewContents, newer: int, removed: int) -> int:
        """Return the tokens that a request costs beyond its local count.

        Args:
            view: The view.
            newer: Local tokens of the request's items from the mark on.
            removed: Local tokens taken from the items before the mark since it was set. Negative if some came back.
        """

    def untrimmed_correction(self, view: ViewContents, costs: Sequence[int]) -> int:
        """Return the same for a request from which nothing was taken.

        Args:
            view: The view.
            costs: By position in the log, the local tokens of each item of that request; -1 if the item is not in it.
        """


class LocalTotals:
    """Totals where the local count is all that is known."""

    def on_request(self, _view: ViewContents) -> None:
        """Do nothing: an earlier request says nothing about the next one."""

    def correction(self, _view: ViewContents, _newer: int, _removed: int) -> int:
        """Return 0."""
        return 0

    def untrimmed_correction(self, _view: ViewContents, _costs: Sequence[int]) -> int:
        """Return 0."""
        return 0
