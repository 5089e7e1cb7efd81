"""`Recorder`: writes what the gateway did with each request of a conversation. Nothing is recorded unless there is one.

The files of a request begin with the time of the request:

    20261124T101500.123456Z-1f2e.request.json   the client's body
    20261124T101500.123456Z-1f2e.sent-1.json    what went upstream instead; sent-2, … after a refusal or a recall
    20261124T101500.123456Z-1f2e.answer.sse     what the client got
    20261124T101500.123456Z-1f2e.about.json     the rest. Written last: a recording without it is incomplete
"""

from __future__ import annotations

import json
import os
import secrets
import time
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from .recorded_files import RecordedFiles
from .request_keys import RequestKeys

REQUEST_HEADERS = ("content-type", "anthropic-version", "anthropic-beta", "openai-beta")
ANSWER_HEADERS = ("content-type", "content-encoding", "retry-after", "request-id", "x-request-id")
"""Headers that are recorded. No other one is."""
PARAMETERS = frozenset({"alt", "beta"})
"""Parameters of an address that are recorded. Google's clients send their key as one."""
_SUFFIXES = {"application/json": "json", "text/event-stream": "sse"}


class Recorder:
    """Records requests into a folder.

    Recording delays no answer. A fault, such as a full disk, is logged once and ends one recording.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """
        Args:
            folder: Where to write. It is created, for its owner only, if it is missing.

        Raises:
            OSError: It cannot be created, or is a link or no folder.
        """
        self._files = RecordedFiles(folder)

    def __enter__(self) -> Self:
        """Return the recorder."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Wait until everything is written. Later requests are not recorded."""
        self._files.close()

    def begin(self, request: Request, body: bytes) -> None:
        """Begin the recording of a request. `add_sent` and `recorded_response` continue it.

        Args:
            request: The client's request.
            body: Its body.
        """
        request.state.recording = Recording(self._files, request, body)

    def line(self) -> str:
        """Return the record as one line."""
        files = self._files
        text = f"recorded {files.complete:,} requests in {files.folder}"
        return f"{text}; {files.incomplete:,} are incomplete: {files.problem}" if files.incomplete else text


class Recording:
    """One request."""

    def __init__(self, files: RecordedFiles, request: Request, body: bytes) -> None:
        """
        Args:
            files: Where to write.
            request: The client's request.
            body: Its body.
        """
        began = datetime.now(UTC)
        self._name = f"{began:%Y%m%dT%H%M%S.%f}Z-{secrets.token_hex(2)}"
        self._files, self._body, self._keys = files, body, RequestKeys(request, body)
        self._answer_file: str | None = None
        self._start = time.perf_counter()
        query = urlencode([(name, value) for name, value in request.query_params.multi_items() if name in PARAMETERS and value])
        self._sent: list[str] = []
        self._about: dict[str, Any] = {
            "began": began.isoformat(),
            "address": request.scope["path"] + (f"?{query}" if query else ""),
            "request": {"file": self._write("request.json", body), "headers": _chosen(request.headers.raw, REQUEST_HEADERS)},
            "sent": self._sent,
        }

    def add_sent(self, body: bytes) -> None:
        """Add a body that goes upstream. The client's own is not written again."""
        is_own = body is self._body
        self._sent.append(f"{self._name}.request.json" if is_own else self._write(f"sent-{len(self._sent) + 1}.json", body))

    def begin_answer(self, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        """Add the head of the answer to the client."""
        chosen = _chosen(headers, ANSWER_HEADERS)
        answer: dict[str, Any] = {"status": status, "headers": chosen}
        self._about["answer"] = answer
        if chosen.get("content-encoding", "identity") != "identity":
            answer["left_out"] = "compressed, although the gateway asked for a plain answer: keys in it could not be found"
            return
        kind = chosen.get("content-type", "").partition(";")[0].strip().lower()
        self._answer_file = f"answer.{_SUFFIXES.get(kind, 'txt')}"
        answer["file"] = f"{self._name}.{self._answer_file}"
        self._files.append(self._name, self._answer_file, b"", self._keys.hidden_piece)

    def add_answer(self, piece: bytes) -> None:
        """Add bytes of the answer."""
        if self._answer_file is not None:
            self._files.append(self._name, self._answer_file, piece, self._keys.hidden_piece)

    def end(self, *, is_complete: bool) -> None:
        """End the recording.

        Args:
            is_complete: True if the client got the whole answer.
        """
        if self._answer_file is not None:
            self._files.append(self._name, self._answer_file, b"", lambda _: self._keys.hidden_end())
        self._about |= {"complete": is_complete, "seconds": round(time.perf_counter() - self._start, 3)}
        self._write("about.json", json.dumps(self._about, indent=2).encode())
        self._files.end(self._name)

    def _write(self, suffix: str, content: bytes) -> str:
        """Write one of the files and return its name."""
        self._files.write(self._name, suffix, content, self._keys.hidden)
        return f"{self._name}.{suffix}"


class RecordedResponse(Response):
    """A response that is recorded while it is sent."""

    def __init__(self, response: Response, recording: Recording) -> None:
        """
        Args:
            response: The response.
            recording: Where it is recorded.
        """
        self._response, self._recording = response, recording
        self.background = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the response."""
        is_complete = False

        async def recorded(message: Message) -> None:
            nonlocal is_complete
            await send(message)
            if message["type"] == "http.response.start":
                self._recording.begin_answer(message["status"], list(message["headers"]))
            else:
                self._recording.add_answer(message.get("body", b""))
                is_complete = not message.get("more_body", False)

        try:
            await self._response(scope, receive, recorded)
        finally:
            self._recording.end(is_complete=is_complete)


def is_recorded(request: Request) -> bool:
    """True if a recording of the request has begun."""
    return _recording_of(request) is not None


def add_sent(request: Request, body: bytes) -> None:
    """Record a body that goes upstream, if the request is recorded."""
    if (recording := _recording_of(request)) is not None:
        recording.add_sent(body)


def recorded_response(request: Request, response: Response) -> Response:
    """Return the response that also records itself, if the request is recorded."""
    recording = _recording_of(request)
    return response if recording is None else RecordedResponse(response, recording)


def _recording_of(request: Request) -> Recording | None:
    return getattr(request.state, "recording", None)


def _chosen(headers: list[tuple[bytes, bytes]], names: tuple[str, ...]) -> dict[str, str]:
    pairs = [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in headers]
    return {name: value for name, value in pairs if name in names}
