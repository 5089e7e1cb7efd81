"""The servers of the benchmark: a provider's stub, a proxy without the gateway's work, and the gateway.

    python -m benchmarks.gateway.servers KIND [UPSTREAM [MAX_TOKENS]]

prints its address and serves until its input ends.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from threading import Thread
from typing import Literal, NamedTuple

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from context_window import ContextWindow
from context_window.gateway.app import gateway_app
from context_window.gateway.serve import address_of, bound_socket, serving

DIGEST = "x-digest"
"""A header of a request. The stub then answers with a digest of the body."""
UNLIMITED = 10**8
"""Tokens of a window in which nothing is trimmed."""


class Server(NamedTuple):
    """A running server.

    Attributes:
        url: Its address.
        process: The id of its process; None if it runs in this one.
    """

    url: str
    process: int | None = None

    def memory(self) -> int | None:
        """Return the bytes that the process holds in memory; None where the system does not say."""
        status = Path(f"/proc/{self.process}/statm")
        return int(status.read_text("ascii").split()[1]) * 4_096 if self.process is not None and status.exists() else None


def app_of(kind: str, upstream: str = "", max_tokens: int | Literal["auto"] = UNLIMITED) -> Starlette:
    """Return a server's application."""
    if kind == "gateway":
        window = ContextWindow(max_tokens=max_tokens, keep_first_message=True)
        return gateway_app(window, urls=dict.fromkeys(("anthropic", "openai", "google"), upstream))
    return _reference(upstream) if kind == "reference" else _stub()


@contextmanager
def in_thread(kind: str, upstream: str = "", max_tokens: int | Literal["auto"] = UNLIMITED) -> Iterator[Server]:
    """Run a server in this process for as long as the `with` lasts."""
    with bound_socket("127.0.0.1", 0) as listener, serving(app_of(kind, upstream, max_tokens), listener):
        yield Server(address_of(listener))


@contextmanager
def in_process(kind: str, upstream: str = "", max_tokens: int = UNLIMITED) -> Iterator[Server]:
    """Run a server in a process of its own for as long as the `with` lasts."""
    command = [sys.executable, "-m", "benchmarks.gateway.servers", kind, upstream, str(max_tokens)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Server(process.stdout.readline().strip(), process.pid)
        finally:
            process.terminate()


def _stub() -> Starlette:
    async def answer(request: Request) -> Response:
        body = await request.body()
        digest = {"digest": hashlib.sha256(body).hexdigest()} if DIGEST in request.headers else {}
        return JSONResponse({"bytes": len(body), **digest})

    return Starlette(routes=[Route("/{path:path}", answer, methods=["POST"])])


def _reference(upstream: str) -> Starlette:
    client: httpx.AsyncClient

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        nonlocal client
        async with httpx.AsyncClient(timeout=None, limits=httpx.Limits(max_connections=None)) as client:
            yield

    async def relay(request: Request) -> Response:
        headers = [(name, value) for name, value in request.headers.raw if name not in (b"host", b"content-length")]
        url = upstream + request.url.path
        answer = await client.send(client.build_request("POST", url, headers=headers, content=await request.body()), stream=True)
        return StreamingResponse(answer.aiter_raw(), answer.status_code, dict(answer.headers))

    return Starlette(routes=[Route("/{path:path}", relay, methods=["POST"])], lifespan=lifespan)


def main() -> None:
    """Serve until the input ends."""
    kind, upstream, max_tokens = [*sys.argv[1:], "", ""][:3]
    with in_thread(kind, upstream, int(max_tokens or UNLIMITED)) as server:
        print(server.url, flush=True)
        waiting = Thread(target=sys.stdin.read)
        waiting.start()
        waiting.join()


if __name__ == "__main__":
    main()
