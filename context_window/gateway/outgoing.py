"""Requests that go upstream: the client's own address, headers and body, and nothing of the HTTP library's."""

from __future__ import annotations

from urllib.parse import quote, unquote

import httpx
from starlette.requests import Request

from .relay import request_headers

PATIENCE = httpx.Timeout(None, connect=30)
"""Only connecting has a limit: clients have their own patience."""

MOST_HEADERS = 200
"""Headers that a request may have. The HTTP client's work grows with their square."""


def name_and_path(request: Request) -> tuple[str, str]:
    """Return the name that a request's address begins with, and the rest of its path as the client wrote it, `%2F` and all.

    A slash at its end is left out: no address of the providers has one, and one that is managed is known without.
    """
    raw: bytes = request.scope.get("raw_path") or quote(request.scope["path"]).encode()
    name, slash, path = raw.decode("latin-1").lstrip("/").partition("/")
    return unquote(name), (slash + path).rstrip("/")


def head_problem(request: Request, path: str) -> str | None:
    """Return why a request may not go upstream: there it might mean another one than it was taken for here. None if it may.

    Args:
        request: The request.
        path: Its path there, as the client wrote it, without a slash at its end.
    """
    segments = unquote(path).split("/")[1:]
    if any(segment in ("", ".", "..") for segment in segments):
        return "the path has empty segments, or leads upwards"
    if "#" in path or b"#" in request.scope["query_string"]:
        return "the address has a fragment, which would not be sent"
    if any(character == "\\" or ord(character) < 32 for character in unquote(path)):
        return "the path has a backslash or a control character"
    if "transfer-encoding" in request.headers and "content-length" in request.headers:
        return "the request states its length in two ways"
    return f"the request has more than {MOST_HEADERS} headers" if len(request.headers) > MOST_HEADERS else None


def without_header(request: Request, name: str) -> Request:
    """Return a request as if its client had not sent a header. Its state is the same.

    Args:
        request: The request.
        name: The header's name, in lower case.
    """
    headers = [pair for pair in request.scope["headers"] if pair[0] != name.encode()]
    return Request({**request.scope, "headers": headers}, request.receive)


def outgoing_request(request: Request, url: str, path: str, content: bytes, *, is_read: bool) -> httpx.Request:
    """Return the request to an upstream.

    It is made without the HTTP client, which would add headers of its own, and cookies that an upstream gave to somebody else.

    Args:
        request: The client's request.
        url: The upstream's address.
        path: The path there, as the client wrote it.
        content: The body.
        is_read: True if the gateway reads the answer, which then must not be compressed.

    Raises:
        httpx.InvalidURL: The address is none.
    """
    query: bytes = request.scope["query_string"]
    address = url + path + (f"?{query.decode('latin-1')}" if query else "")
    headers = request_headers(request.headers.raw, is_read=is_read)
    return httpx.Request(request.method, address, headers=headers, content=content, extensions={"timeout": PATIENCE.as_dict()})
