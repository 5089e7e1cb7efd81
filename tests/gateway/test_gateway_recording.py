"""`--record`: the line written for each request, and that it changes nothing."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from itertools import pairwise
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request

from context_window.cli import run
from context_window.gateway.recording import Recorder
from context_window.gateway.request_keys import HIDDEN, LEFT_OUT, RequestKeys
from session.transcripts import read_account
from tests.gateway.test_gateway_http import MESSAGES, SHORT, WAIT, Answer, long_body, post, says, upstream_that
from tests.gateway.test_gateway_recall import Model, anthropic_turns
from tests.session.test_secret_finder import shows
from tests.support.gateways import gateway
from tests.support.made_up_keys import SPELLINGS, made_up_keys
from tests.support.stubs.anthropic import AnthropicStub

KEY = "sk-ant-verysecretkey0123456789"


class Recorded:
    """The files of one request."""

    def __init__(self, about: Path) -> None:
        self.folder = about.parent
        self.about: dict[str, Any] = json.loads(about.read_bytes())

    @property
    def request(self) -> bytes:
        return self._content(self.about["request"]["file"])

    @property
    def sent(self) -> list[bytes]:
        return [self._content(name) for name in self.about["sent"]]

    @property
    def answer(self) -> bytes:
        return self._content(self.about["answer"]["file"])

    def _content(self, name: str) -> bytes:
        return (self.folder / name).read_bytes()


def recordings(folder: Path) -> list[Recorded]:
    return [Recorded(about) for about in sorted(folder.glob("*.about.json"))]


@contextmanager
def recording_gateway(answer: Answer, folder: Path, tokens: int | None = 2_000, **options: Any) -> Iterator[tuple[str, list[bytes]]]:
    """Run a gateway that records. Gives its address and the bodies that the upstream gets."""
    with (
        upstream_that(answer) as upstream,
        Recorder(folder) as recorder,
        gateway(upstream.url, tokens, recorder=recorder, **options) as address,
    ):
        yield address, upstream.bodies


def streams(*pieces: bytes) -> Answer:
    """An answer that is streamed in these pieces."""

    def answer(handler: BaseHTTPRequestHandler, _: bytes) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream; charset=utf-8")
        handler.send_header("transfer-encoding", "chunked")
        handler.end_headers()
        for piece in pieces:
            handler.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            handler.wfile.flush()
        handler.wfile.write(b"0\r\n\r\n")

    return answer


def test_a_request_that_fits_and_its_answer_are_recorded_as_they_were(tmp_path: Path) -> None:
    """And nothing about them changes: the body that goes upstream is the client's, byte for byte."""
    with recording_gateway(says(200, b'{"ok":  true}', {"request-id": "r1", "set-cookie": "a=b"}), tmp_path / "seen", 10_000) as (
        url,
        bodies,
    ):
        answer = post(url, f"{MESSAGES}?beta=true&key={KEY}", headers={"x-api-key": KEY, "anthropic-beta": "a,b"})
    assert bodies == [SHORT]
    (recorded,) = recordings(tmp_path / "seen")
    assert (recorded.request, recorded.sent, recorded.answer) == (SHORT, [SHORT], answer.content)
    assert recorded.about["sent"] == [recorded.about["request"]["file"]]  # it is not written twice
    assert recorded.about["address"] == "/anthropic/v1/messages?beta=true"
    assert recorded.about["request"]["headers"] == {"content-type": "application/json", "anthropic-beta": "a,b"}
    headers = {"content-type": "application/json", "request-id": "r1"}
    assert recorded.about["answer"] == {"status": 200, "headers": headers, "file": recorded.about["answer"]["file"]}
    assert recorded.about["answer"]["file"].endswith(".answer.json")
    assert recorded.about["complete"] is True
    assert recorded.about["seconds"] > 0


def test_what_went_upstream_instead_is_recorded_and_our_own_tools_read_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with recording_gateway(says(200, b"{}"), tmp_path) as (url, bodies):
        post(url, body=long_body())
    (recorded,) = recordings(tmp_path)
    assert recorded.request == long_body()
    assert recorded.sent == bodies != [recorded.request]
    request, sent = (read_account(tmp_path / name).sessions[0] for name in (recorded.about["request"]["file"], recorded.about["sent"][0]))
    assert len(request.items) == 121 > len(sent.items)
    assert run(["plan", str(tmp_path / recorded.about["request"]["file"]), "--max-tokens", "2000", "--strategy", "extract"]) == 0
    assert "of 121 items change" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/openai/v1/chat/completions", {"model": "gpt-5", "messages": [{"role": "user", "content": "Hi"}]}),
        ("/openai/v1/responses", {"model": "gpt-5", "input": [{"role": "user", "content": "Hi"}]}),
        ("/google/v1beta/models/gemini-3-pro:generateContent", {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}),
    ],
)
def test_our_own_tools_read_requests_of_every_format(path: str, body: dict[str, Any], tmp_path: Path) -> None:
    with recording_gateway(says(200, b"{}"), tmp_path) as (url, _):
        post(url, path, json.dumps(body).encode())
    (recorded,) = recordings(tmp_path)
    (session,) = read_account(tmp_path / recorded.about["request"]["file"]).sessions
    assert [getattr(item, "text", None) for item in session.items] == ["Hi"]


def test_a_streamed_answer_is_recorded_as_it_was_relayed(tmp_path: Path) -> None:
    pieces = [f"event: a\ndata: {number}\n\n".encode() for number in range(50)]
    with recording_gateway(streams(*pieces), tmp_path) as (url, _):
        answer = post(url)
    (recorded,) = recordings(tmp_path)
    assert recorded.answer == answer.content == b"".join(pieces)
    assert recorded.about["answer"]["file"].endswith(".answer.sse")


def test_recording_neither_waits_for_the_whole_answer_nor_holds_it_back(tmp_path: Path) -> None:
    """The upstream sends the second piece only when the client has the first; by then the first is on the disk."""
    go_on = threading.Event()

    def answer(handler: BaseHTTPRequestHandler, _: bytes) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream")
        handler.send_header("connection", "close")
        handler.end_headers()
        handler.wfile.write(b"data: 1\n\n")
        assert go_on.wait(WAIT)
        handler.wfile.write(b"data: 2\n\n")
        handler.close_connection = True

    with (
        recording_gateway(answer, tmp_path) as (url, _),
        httpx.Client(trust_env=False, timeout=WAIT) as client,
        client.stream("POST", url + MESSAGES, content=SHORT) as stream,
    ):
        pieces = stream.iter_raw()
        assert next(pieces) == b"data: 1\n\n"
        while not any(file.stat().st_size for file in tmp_path.glob("*.answer.sse")):  # the test's time limit ends it
            threading.Event().wait(0.01)
        go_on.set()
        assert b"".join(pieces) == b"data: 2\n\n"
    assert recordings(tmp_path)[0].answer == b"data: 1\n\ndata: 2\n\n"


def test_a_client_that_leaves_is_seen_in_the_recording(tmp_path: Path) -> None:
    left = threading.Event()

    def answer(handler: BaseHTTPRequestHandler, _: bytes) -> None:
        handler.send_response(200)
        handler.send_header("connection", "close")
        handler.end_headers()
        handler.wfile.write(b"first")
        handler.connection.settimeout(WAIT)
        if not handler.connection.recv(1):
            left.set()
        handler.close_connection = True

    with recording_gateway(answer, tmp_path) as (url, _):
        with httpx.Client(trust_env=False, timeout=WAIT) as client, client.stream("POST", url + MESSAGES, content=SHORT) as stream:
            assert next(stream.iter_raw()) == b"first"
        assert left.wait(WAIT)
    (recorded,) = recordings(tmp_path)
    assert (recorded.about["complete"], recorded.answer) == (False, b"first")


def test_a_refused_prompt_and_the_smaller_one_are_both_recorded(tmp_path: Path) -> None:
    refusal = b'{"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 9000 tokens > 5000 maximum"}}'
    answers = iter([says(400, refusal), says(200, b'{"second": 1}')])

    def answer(handler: BaseHTTPRequestHandler, body: bytes) -> None:
        next(answers)(handler, body)

    with recording_gateway(answer, tmp_path, 8_000) as (url, bodies):
        post(url, body=long_body())
    (recorded,) = recordings(tmp_path)
    assert recorded.sent == bodies
    assert len(bodies) == 2
    assert (recorded.about["answer"]["status"], recorded.answer) == (200, b'{"second": 1}')


@pytest.mark.parametrize("streamed", [False, True])
def test_each_request_of_an_answer_with_recalls_is_recorded(streamed: bool, tmp_path: Path) -> None:
    model = Model()
    with (
        AnthropicStub(model) as stub,
        Recorder(tmp_path) as recorder,
        gateway(stub.url, 3_000, recall=True, recorder=recorder) as address,
    ):
        blocks = list(anthropic_turns(address, streamed, turns=6))
    assert model.recalls > 0
    recorded = recordings(tmp_path)
    assert len(recorded) == len(blocks) == 6
    assert [json.loads(body) for each in recorded for body in each.sent] == stub.requests
    assert len(stub.requests) == 6 + model.recalls
    assert b'"recall"' not in b"".join(each.answer for each in recorded)


@pytest.mark.parametrize("strict", [False, True])
def test_a_conversation_that_cannot_be_fitted_is_recorded_with_what_became_of_it(strict: bool, tmp_path: Path) -> None:
    body = json.dumps({"model": "no-such-model-at-all", "messages": [{"role": "user", "content": "a"}]}).encode()
    with recording_gateway(says(200, b"{}"), tmp_path, None, strict=strict) as (url, bodies):
        answer = post(url, "/openai/v1/chat/completions", body)
    (recorded,) = recordings(tmp_path)
    assert bodies == recorded.sent == ([] if strict else [body])
    assert (recorded.about["answer"]["status"], recorded.answer) == (answer.status_code, answer.content)


def test_only_requests_of_conversations_are_recorded(tmp_path: Path) -> None:
    with recording_gateway(says(200, b"{}"), tmp_path) as (url, bodies):
        post(url, "/openai/v1/embeddings", b'{"model": "e", "input": "a"}')
        post(url, body=b"no json")
        post(url, body=SHORT, headers={"origin": "http://a.example"})
    assert len(bodies) == 2
    assert [*tmp_path.iterdir()] == []


# Keys


@pytest.mark.parametrize("piece", [1, 7, 1_000])
def test_keys_never_reach_the_disk(piece: int, tmp_path: Path) -> None:
    """Neither from headers and addresses, nor from a body or an answer that repeats them, in whatever pieces it comes."""
    said = f'data: {{"error": "Incorrect key {KEY}, {KEY}"}}\n\n'.encode()
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": f"I ran env: ANTHROPIC_API_KEY={KEY}"}]}).encode()
    pieces = [said[start : start + piece] for start in range(0, len(said), piece)]
    secret_headers = {"x-api-key": KEY, "authorization": f"Bearer {KEY}-2", "cookie": f"session={KEY}-3", "x-goog-api-key": f"{KEY}-4"}
    with recording_gateway(streams(*pieces), tmp_path) as (url, bodies):
        for name, value in secret_headers.items():
            answer = post(url, f"{MESSAGES}?key={KEY}-5&beta=true", body, {name: value} | {"x-api-key": KEY})
            assert answer.content == said
    assert bodies == [body] * len(secret_headers)
    assert all(KEY.encode() not in file.read_bytes() for file in tmp_path.iterdir())
    for recorded in recordings(tmp_path):
        assert recorded.answer == said.replace(KEY.encode(), HIDDEN)
        assert recorded.request == body.replace(KEY.encode(), HIDDEN)


def test_a_compressed_answer_in_which_no_key_can_be_found_is_left_out(tmp_path: Path) -> None:
    """The gateway asks for a plain one. The client still gets what came."""
    compressed = gzip.compress(f'{{"error": "{KEY}"}}'.encode())
    answers = says(401, compressed, {"content-encoding": "gzip"})
    with upstream_that(answers) as upstream, Recorder(tmp_path) as recorder, gateway(upstream.url, 2_000, recorder=recorder) as url:
        answer = post(url, headers={"x-api-key": KEY})
    assert {name.lower(): value for name, value in upstream.headers[0]}["accept-encoding"] == "identity"
    assert answer.json() == {"error": KEY}
    (recorded,) = recordings(tmp_path)
    assert "file" not in recorded.about["answer"]
    assert "compressed" in recorded.about["answer"]["left_out"]
    assert not [*tmp_path.glob("*.answer.*")]


def request_with(headers: dict[str, str]) -> Request:
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    return Request(
        {"type": "http", "method": "POST", "path": "/", "query_string": b"", "server": ("h", 80), "scheme": "http", "headers": pairs}
    )


@given(
    text=st.lists(st.one_of(st.sampled_from([KEY, KEY[:9], KEY[4:]]), st.text("sk-ant0 ", max_size=12))).map("".join),
    cuts=st.lists(st.integers(0, 300), max_size=8),
)
def test_pieces_are_the_whole_without_keys(text: str, cuts: list[int]) -> None:
    """and where the stream ends within a key, without its beginning"""
    content, borders = text.encode(), sorted({0, len(text), *(min(cut, len(text)) for cut in cuts)})
    written = written_of(RequestKeys(request_with({"x-api-key": KEY})), [content[start:end] for start, end in pairwise(borders)])
    whole = content.replace(KEY.encode(), HIDDEN)
    begun = next((size for size in range(len(KEY) - 1, 3, -1) if whole.endswith(KEY[:size].encode())), 0)
    assert written == (whole[:-begun] + HIDDEN if begun else whole)


def written_of(keys: RequestKeys, pieces: list[bytes]) -> bytes:
    return b"".join([*map(keys.hidden_piece, pieces), keys.hidden_end()])


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("header", ["x-api-key", "authorization", "basic", "body"])
def test_a_key_is_recorded_in_no_spelling(header: str, spelling: str) -> None:
    """Keys of the headers or of the body alone never reach the disk: not in ten spellings, in pieces, or cut off at a stream's end."""
    for key in made_up_keys():
        spelled = SPELLINGS[spelling](key)
        login = base64.b64encode(f"anna:{key}".encode()).decode()
        value = {"authorization": f"Bearer {key}", "basic": f"Basic {login}"}.get(header, key)
        body = json.dumps({"messages": [{"role": "user", "content": spelled}]}).encode()
        name = "authorization" if header == "basic" else header
        keys = RequestKeys(request_with({} if header == "body" else {name: value}), body)
        assert not shows(keys.hidden(body).decode(), key)
        for text in (spelled, f"no name here: {key}", f"{spelled[: spelled.find(key) + len(key) - 1]}" if key in spelled else spelled):
            answer = text.encode()
            written = written_of(keys, [answer[start : start + 7] for start in range(0, len(answer), 7)]).decode()
            assert not shows(written, key), text


ESCAPES: dict[str, Callable[[str], str]] = {
    "u": lambda text: "".join(f"\\u{ord(letter):04x}" for letter in text),
    "%": lambda text: "".join(f"%{ord(letter):02X}" for letter in text),
    "&": lambda text: "".join(f"&#{ord(letter)};" for letter in text),
    "{": lambda text: "".join(f"\\u{{{ord(letter):x}}}" for letter in text),
    "U": lambda text: "".join(f"\\U{ord(letter):08x}" for letter in text),
}


@pytest.mark.parametrize("escapes", [*ESCAPES, "uu", "%%%", "u%", "%u", "uuu", "&%u", "U{"])
@pytest.mark.parametrize("size", [1, 7, 100])
def test_a_key_is_recorded_in_no_escape_of_escapes(escapes: str, size: int) -> None:
    """A key escaped twice, in small pieces, was longer than what waited for its end."""
    spelled = KEY
    for escape in escapes:
        spelled = ESCAPES[escape](spelled)
    answer = f'data: {{"a": "{spelled}", "b": "{spelled[:-3]}'.encode()
    keys = RequestKeys(request_with({"x-api-key": KEY}))
    written = written_of(keys, [answer[start : start + size] for start in range(0, len(answer), size)])
    assert written == b'data: {"a": "[key]", "b": "[key]'


def test_of_a_request_with_thousands_of_keys_no_answer_is_recorded() -> None:
    """To look for each of them, in each piece, took time with the square of the request."""
    made_up = ["sk-ant-api03-" + hashlib.sha256(str(number).encode()).hexdigest() for number in range(3_000)]
    keys = RequestKeys(request_with({"x-api-key": KEY}), json.dumps(made_up).encode())
    begun = time.process_time()
    assert written_of(keys, [made_up[5].encode(), b" and more"] * 100) == LEFT_OUT
    assert b"api03" not in keys.hidden(json.dumps(made_up).encode())
    assert time.process_time() - begun < 10


def test_a_key_that_repeats_itself_is_not_held_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("context_window.gateway.request_keys.HELD_MAX", 5_000)
    keys = RequestKeys(request_with({"x-api-key": "a" * 20}))
    pieces = [keys.hidden_piece(b"a" * 500) for _ in range(40)]
    assert any(pieces)
    assert b"aaaa" not in b"".join([*pieces, keys.hidden_end()])


@pytest.mark.parametrize("key", ["dev1", "abc123", "local-7"])
def test_a_short_key_is_hidden_as_a_word(key: str) -> None:
    """A key of four characters may be one, and is none inside another word."""
    for headers in ({"x-api-key": key}, {"authorization": f"Bearer {key}"}):
        answer = f"you sent {key}, not x{key}y: {json.dumps(json.dumps(key))}".encode()
        written = written_of(RequestKeys(request_with(headers)), [answer])
        assert written == answer.replace(f" {key},".encode(), b" [key],").replace(f'"{key}'.encode(), b'"[key]')


# The command


def test_the_command_records_and_says_how_much(tmp_path: Path) -> None:
    client = (
        "import os, urllib.request as r; "
        "r.urlopen(r.Request(os.environ['ANTHROPIC_BASE_URL'] + '/v1/messages', data=open('b', 'rb').read())).read()"
    )
    (tmp_path / "b").write_bytes(long_body())
    command = [sys.executable, "-W", "error", "-m", "context_window", "gateway", "--max-tokens", "2000", "--record", "seen"]
    with upstream_that(says(200, b"{}")) as upstream:
        options = ["--upstream", f"anthropic={upstream.url}", "--", sys.executable, "-c", client]
        environment = {**os.environ, "NO_PROXY": "*"}
        done = subprocess.run([*command, *options], env=environment, cwd=tmp_path, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert done.stderr.decode().splitlines()[-1] == "recorded 1 requests in seen"
    assert recordings(tmp_path / "seen")[0].sent == upstream.bodies


def test_a_folder_that_cannot_be_written_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert run(["gateway", "--record", str(tmp_path / "file")]) == 2
    error = capsys.readouterr().err
    assert "cannot record into" in error
    assert "Traceback" not in error
