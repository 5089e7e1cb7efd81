"""`foreign_problem`: keeps browser pages out. They can reach a server on this machine under any name that its owner gives it."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import urlsplit

from starlette.requests import Request


def foreign_problem(request: Request, hosts: Collection[str], *, is_page: bool = False) -> str | None:
    """Return why a request may not come in; None if it may. Browsers send an `Origin` with whatever a page asks for.

    Args:
        request: The request.
        hosts: The gateway's names.
        is_page: True if the gateway's own page may ask for this.
    """
    if _host(request) not in hosts:
        return "the request's Host is not one of this gateway's names"
    sites = ("none", "same-origin") if is_page else ("none",)
    if "origin" in request.headers or request.headers.get("sec-fetch-site", "none") not in sites:
        return "a browser page may not use this gateway"
    return None


def _host(request: Request) -> str | None:
    """Return the name under which the client reached the gateway, without the port."""
    try:
        return urlsplit(f"//{request.headers.get('host', '')}").hostname
    except ValueError:
        return None
