"""`CallerGate`: who may use a gateway that others than this machine can reach, and what each of them has to themselves.

1. A token stands in the header `x-gateway-token`, or first in the path of the client's base URL: `http://HOST:PORT/TOKEN/anthropic`.
2. Each token has a gateway of its own behind the gate: conversations, refusals, repairs, page and limit of cost are not shared.
3. A wrong token and a missing one get the same answer, and are compared in constant time. Neither token nor header goes upstream.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Mount
from starlette.types import ASGIApp, Receive, Scope, Send

from session.opening import create_private_folder, open_regular

from ..errors import ArgumentError

HEADER = "x-gateway-token"
SHORTEST = 16
"""Characters of a token at least."""
LARGEST = 1_000_000
"""Bytes of a file of tokens that are read."""
REFUSED = (
    f"this gateway needs a token: in the header {HEADER}, or first in the path of the base URL, as in http://HOST:PORT/TOKEN/anthropic"
)


def tokens_in(path: str | os.PathLike[str]) -> list[str]:
    """Return the tokens in a file, one a line. A file that is missing is made, with a new token, for its owner alone.

    Raises:
        ArgumentError: A token is too short, has other characters than a URL's, or is there twice; or there is none.
        OSError: The file cannot be used.
    """
    file = Path(path)
    if not file.exists():
        create_private_folder(file.parent)
        with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as new:
            new.write(secrets.token_urlsafe(24) + "\n")
    with open_regular(file) as opened:  # not a pipe, which would be waited for
        tokens = opened.read(LARGEST).decode("utf-8", errors="replace").split()
    for number, token in enumerate(tokens, 1):
        if len(token) < SHORTEST or not all(each.isascii() and (each.isalnum() or each in "-_") for each in token):
            raise ArgumentError(f"token {number}", len(token), f"a token has at least {SHORTEST} letters, digits, - and _")
    if not tokens or len(set(tokens)) < len(tokens):
        raise ArgumentError("tokens", len(tokens), "write one token a line into the file, each another one")
    return tokens


def gated_app(apps: Mapping[str, Starlette]) -> Starlette:
    """Return an application that passes requests on to those of their tokens.

    Args:
        apps: The gateway of each token.
    """

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for app in apps.values():
                await stack.enter_async_context(app.router.lifespan_context(app))
            yield

    return Starlette(routes=[Mount("", app=CallerGate(apps))], lifespan=lifespan)


class CallerGate:
    """Finds the gateway of a request's token."""

    def __init__(self, apps: Mapping[str, ASGIApp]) -> None:
        """
        Args:
            apps: The gateway of each token.
        """
        self._apps = [(digest_of(token), app) for token, app in apps.items()]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, without its token."""
        raw: bytes = scope["raw_path"] if scope.get("raw_path") else scope["path"].encode()
        first, _, rest = raw.lstrip(b"/").partition(b"/")
        headers = [(name, value) for name, value in scope["headers"] if name != HEADER.encode()]
        given = [value for name, value in scope["headers"] if name == HEADER.encode()]
        by_header = self._app_of(given[0]) if len(given) == 1 else None
        by_path = self._app_of(first) if not given else None
        if by_header is not None:
            await by_header({**scope, "headers": headers}, receive, send)
        elif by_path is not None:
            path = scope["path"].lstrip("/").partition("/")[2]
            await by_path({**scope, "headers": headers, "raw_path": b"/" + rest, "path": f"/{path}", "root_path": ""}, receive, send)
        else:
            await JSONResponse({"error": {"message": REFUSED}}, 401)(scope, receive, send)

    def _app_of(self, token: bytes) -> ASGIApp | None:
        """Return the gateway of a token. All are compared."""
        found: ASGIApp | None = None
        digest = hashlib.sha256(token).digest()
        for known, app in self._apps:
            if hmac.compare_digest(known, digest):
                found = app
        return found


def digest_of(token: str) -> bytes:
    """Return the hash that stands for a token."""
    return hashlib.sha256(token.encode()).digest()
