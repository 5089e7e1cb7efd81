"""What all stubs share: a server on the loopback, requests as they came, and refusals. No rule of any provider is here."""

from __future__ import annotations

import abc
import hashlib
import hmac
import json
import socketserver
import threading
import traceback
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, NoReturn, Self

from .answers import Say, Script

Body = dict[str, Any]


class Refusal(Exception):  # noqa: N818 - it is an answer, and no error of the stub's
    """A request that the provider would not take.

    Attributes:
        status: The HTTP status.
        message: What the provider says.
        kind: The provider's word for this sort of error.
        param: Where in the request, as OpenAI tells it.
        code: OpenAI's word for the cause.
    """

    def __init__(
        self, message: str, *, status: int = 400, kind: str = "invalid_request_error", param: str | None = None, code: str | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.kind, self.param, self.code = status, message, kind, param, code


class _Server(ThreadingHTTPServer):
    def server_bind(self) -> None:
        socketserver.TCPServer.server_bind(self)  # http.server would look the host's name up


class Stub(abc.ABC):
    """A provider on 127.0.0.1, for as long as the `with` lasts.

        with AnthropicStub(script) as stub:
            client = anthropic.Anthropic(base_url=stub.url, api_key="k", max_retries=0)

    Attributes:
        requests: The bodies that came, in order, refused ones too.
        answers: The answers, without refusals.
        script: The model.
        halves: Returns True for a request whose answer stops in its middle, until `gate` is set, and then breaks off.
    """

    largest = 32 * 1024 * 1024
    """Bytes that a request may have."""
    key = b"known to the stub alone"

    def __init__(self, script: Script | None = None) -> None:
        self.script: Script = script or (lambda request: [Say("Fine.")])
        self.halves: Callable[[Body], bool] = lambda request: False
        self.gate = threading.Event()
        self.requests: list[Body] = []
        self.answers: list[Body] = []
        self._crashes: list[str] = []
        self._lock = threading.Lock()
        self._serial = 0

    def __enter__(self) -> Self:
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        # Looked at often: `shutdown` waits for it.
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.gate.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        assert not self._crashes, self._crashes[0]

    @property
    def url(self) -> str:
        """Where it listens, without a path."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @abc.abstractmethod
    def serve(self, path: str, headers: Mapping[str, str], body: Body) -> Body:
        """The answer to a request.

        Raises:
            Refusal: The provider would not take it.
        """

    @abc.abstractmethod
    def envelope(self, refusal: Refusal) -> Body:
        """A refusal as the provider writes it."""

    def new_id(self, prefix: str) -> str:
        """An id that this stub has not given yet; the same ones in every run."""
        self._serial += 1
        return prefix + hashlib.sha256(f"{type(self).__name__} {self._serial}".encode()).hexdigest()[:24]

    def mac(self, *pieces: str | bytes) -> bytes:
        """What nobody else could have made of these pieces."""
        joined = b"\0".join(hashlib.sha256(piece.encode() if isinstance(piece, str) else piece).digest() for piece in pieces)
        return hmac.new(self.key, joined, hashlib.sha256).digest()[:16]

    def written(self, raw: bytes, status: int, body: Body) -> tuple[str, bytes]:
        """The content type and the bytes of an answer to the request `raw`: here, JSON."""
        return "application/json", json.dumps(body).encode()

    def respond(self, path: str, headers: Mapping[str, str], raw: bytes) -> tuple[int, Body]:
        """Status and body for the bytes of a request."""
        with self._lock:  # one at a time: simultaneous requests are answered in some order
            try:
                if len(raw) > self.largest:
                    raise Refusal("Request exceeds the maximum size", status=413, kind="request_too_large")  # noqa: TRY301 - as all others
                body = parsed(raw)
                self.requests.append(body)
                answer = self.serve(path, headers, body)
            except Refusal as refusal:
                return refusal.status, self.envelope(refusal)
            except Exception as error:  # noqa: BLE001 - told to the client and at the end of the `with`
                self._crashes.append(traceback.format_exc())
                return 500, self.envelope(Refusal(f"the stub crashed: {error!r}", status=500, kind="api_error"))
            self.answers.append(answer)
            return 200, answer


def parsed(raw: bytes) -> Body:
    """The body, where it is strict JSON: no NaN, no half surrogates, one object.

    Raises:
        Refusal: It is not.
    """

    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is no JSON")

    try:
        body = json.loads(raw.decode(), parse_constant=refuse)
        json.dumps(body, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        raise Refusal(f"The request body is not valid JSON: {error}") from error
    if not isinstance(body, dict):
        raise Refusal("The request body is not valid JSON: expected an object")
    return body


def canonical(value: object) -> str:
    """The same text for the same value."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _handler(stub: Stub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = 1 << 16  # headers and body in one packet

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length", "0")))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, body = stub.respond(self.path, headers, raw)
            kind, sent = stub.written(raw, status, body)
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(sent)))
            if status >= 429:
                self.send_header("retry-after-ms", "1")  # a client that tries again need not wait: nothing here recovers with time
            self.end_headers()
            if status == 200 and stub.halves(parsed(raw)):
                self.wfile.write(sent[: len(sent) // 2])
                self.wfile.flush()
                self.close_connection = stub.gate.wait(30)
            else:
                self.wfile.write(sent)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the base class
            pass

    return Handler
