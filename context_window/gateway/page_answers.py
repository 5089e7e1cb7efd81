"""`page_answer`: the answers to a browser that shows the gateway's page."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import HTMLResponse, PlainTextResponse, Response

from session.extras import install_line

from .history import History
from .page import page_document, page_update

HEADERS = {
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
"""Headers of each answer: nothing is stored, no other page can read or frame it."""


def page_answer(history: History, path: str, query: Mapping[str, str]) -> Response:
    """Return the page, or its changed parts.

    Args:
        history: The figures.
        path: `/` for the page, `/live` for the changed parts.
        query: `conversation`: the number of the one to show. `version`: that of the part which the browser has.
    """
    number, version = _whole(query.get("conversation")), _whole(query.get("version"))
    try:
        if path == "/":
            document = page_document(history, number)
            return HTMLResponse(document.html, headers={**HEADERS, "content-security-policy": f"{document.policy}; frame-ancestors 'none'"})
        update = page_update(history, number, -1 if version is None else version)
    except ModuleNotFoundError:
        return PlainTextResponse(f"the page needs one more package: {install_line('gateway')}", 501, headers=HEADERS)
    return Response(status_code=204, headers=HEADERS) if update is None else HTMLResponse(update, headers=HEADERS)


def _whole(text: str | None) -> int | None:
    """Return a whole number that a browser sends; None for anything else."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 16 else None
