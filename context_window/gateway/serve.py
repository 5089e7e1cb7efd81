"""Runs the gateway: until it is interrupted, or for as long as a client runs that is started with it."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import uvicorn
from starlette.applications import Starlette

from ..errors import ContextWindowError
from .clients import started
from .connections import MOST_CONNECTIONS, BoundedConnection

BACKLOG = 2_048
"""Connections that wait to be accepted."""
UNREAD = 128 * 1024
"""Bytes of an answer that the system keeps for a client that does not read. Left alone it takes megabytes, while others wait."""
GRACE_SECONDS = 1
"""Seconds that answers have at the end."""


class GatewayError(ContextWindowError):
    """The gateway's server did not start. The cause is printed by its thread."""

    def __str__(self) -> str:
        return "the gateway's server did not start; the error above says why"


def bound_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address.

    Args:
        host: A name or an address of this machine.
        port: 0 for any that is free.

    Raises:
        OSError: The address is not this machine's, or in use.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Only for sockets that name their protocol does asyncio send small pieces at once. Otherwise each waits up to 40 ms for the one before.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, UNREAD)  # each connection has its listener's
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def address_of(listener: socket.socket) -> str:
    """Return the URL of a socket."""
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve(app: Starlette, listener: socket.socket) -> None:
    """Serve until the process is interrupted."""
    _allow_files(3 * MOST_CONNECTIONS)
    _server(app).run(sockets=[listener])


@contextmanager
def serving(app: Starlette, listener: socket.socket) -> Iterator[None]:
    """Serve in a thread for as long as the `with` lasts.

    Raises:
        GatewayError: The server did not start.
    """
    server = _server(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        while not server.started:
            thread.join(0.01)
            if not thread.is_alive():
                raise GatewayError
        yield
    finally:
        server.should_exit = True
        thread.join()


def run_client(command: Sequence[str], address: str) -> int:
    """Run a client that sends its requests to the gateway. Returns its exit code.

    Args:
        command: The program and its arguments.
        address: The gateway's URL.

    Raises:
        OSError: There is no such program.
    """
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the client's, which shares the terminal
    try:
        # The client must not inherit that: its own handling of Ctrl-C is to work as always.
        start = _default_interrupt if os.name == "posix" else None
        with TemporaryDirectory(prefix="context-window-") as folder:
            client = started(command, address, os.environ, Path(folder))
            code = subprocess.Popen(client.command, env=client.variables, preexec_fn=start).wait()  # noqa: PLW1509, S603
    finally:
        signal.signal(signal.SIGINT, previous)
    return code if code >= 0 else 128 - code


def _default_interrupt() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _allow_files(count: int) -> None:
    """Let the process have more files open than a shell allows: 256 or 1,024, of which each client that is answered needs two."""
    with suppress(ImportError, OSError, ValueError):
        import resource  # not on Windows, where sockets are no files

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        if soft < count:
            resource.setrlimit(resource.RLIMIT_NOFILE, (count if hard == resource.RLIM_INFINITY else min(count, hard), hard))


class _Server(uvicorn.Server):
    """Ends answers at the end as if their clients had left. uvicorn would cancel them, with a traceback for each."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End."""
        asyncio.get_running_loop().call_later(GRACE_SECONDS, self._abort)
        await super().shutdown(sockets)

    def _abort(self) -> None:
        for connection in list(self.server_state.connections):
            connection.transport.abort()


def _server(app: Starlette) -> uvicorn.Server:
    # No log: it would name addresses, and warn of every odd request in the terminal that an assistant has.
    # No headers of its own: the upstream's are relayed.
    return _Server(
        uvicorn.Config(
            app,
            http=BoundedConnection,
            limit_concurrency=MOST_CONNECTIONS,
            log_config=None,
            log_level="error",
            access_log=False,
            ws="none",
            server_header=False,
            date_header=False,
            lifespan="on",
            timeout_graceful_shutdown=3 * GRACE_SECONDS,
        )
    )
