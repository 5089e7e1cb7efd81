"""Nothing is fetched and no file is opened because a log names it: sessions full of addresses, with sockets and files forbidden."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Never

import pytest

from context_window import ContextWindow, ContextWindowManager
from session import Document, FunctionCall, FunctionCallOutput, Image, Message, Part, Session
from session.transcripts import read_account
from tests.support.shell import POSIX, Shell

URLS = (
    "http://127.0.0.1:9/named-by-data.png",
    "https://named-by-data.example/it.png",
    "HTTPS://named-by-data.example/it.pdf",
    "ftp://named-by-data.example/it.png",
    "gs://named-by-data/it.png",
    "s3://named-by-data/it.png",
    "file:///named-by-data/it.png",
    "FILE://named-by-data/share/it.png",
    "file:named-by-data.png",
    "//named-by-data/share/it.png",
    "\\\\named-by-data\\share\\it.png",
    "/named-by-data/it.png",
    "~/named-by-data.png",
    "C:\\named-by-data.png",
    "named-by-data.png",
    "jar:http://named-by-data.example/a.zip!/it.png",
    "data:image/png,named-by-data",
    "",
)
PROVIDERS = ("anthropic", "openai", "openai-responses", "google", "session")
MODELS = ("claude-sonnet-5-5", "gpt-5", "gemini-2.5-pro", None)


class ForbiddenSocket(socket.socket):
    """Refuses to be made, but for the ends of a pair, which event loops wake themselves with."""

    def __init__(self, *args: Any) -> None:
        assert len(args) == 4, "a socket was opened"  # family, type, protocol, and the descriptor of an end that is there
        super().__init__(*args)


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No socket can be made, no name resolved, and nothing opened or looked at whose name the data holds."""

    def refuse(*args: object, **more: object) -> Never:
        raise AssertionError(f"the network was asked for {args}")

    def guarded(call: Callable[..., Any]) -> Callable[..., Any]:
        def guard(path: object, *args: object, **more: object) -> Any:
            in_opened_folder = more.get("dir_fd") is not None  # the one that was opted in for
            assert in_opened_folder or "named-by-data" not in str(path), f"{path} was opened or looked at"
            return call(path, *args, **more)

        return guard

    with monkeypatch.context() as patched:
        patched.setattr(socket, "socket", ForbiddenSocket)
        for name in ("getaddrinfo", "gethostbyname", "gethostbyname_ex", "create_connection"):
            patched.setattr(socket, name, refuse)
        for name in ("open", "stat", "lstat", "readlink", "scandir"):
            patched.setattr(os, name, guarded(getattr(os, name)))
        patched.setattr("builtins.open", guarded(open))
        yield


@pytest.mark.usefixtures("offline")
def test_sockets_are_forbidden_here() -> None:
    """Else the tests below would show nothing."""
    with pytest.raises(AssertionError):
        socket.socket()
    with pytest.raises(AssertionError):
        open("named-by-data")  # noqa: SIM115 - it does not open


def session_of_addresses() -> Session:
    """Every address as an image, as a document and as a path, in messages and in tool outputs."""
    session = Session(id="s")
    for number, url in enumerate(URLS):
        parts: list[Part] = [Image(url=url), Image(path=url, open_path=False), Image(file_id=url)]
        parts += [Document(url=url, title=url), Document(file_id=url)]
        session.append(Message("user", ["Look at", *parts, url], id=f"m{number}", created_at=number))
        session.append(FunctionCall("fetch", json.dumps({"url": url}), f"c{number}", id=f"f{number}", created_at=number))
        session.append(FunctionCallOutput("fetch", parts, f"c{number}", id=f"o{number}", created_at=number))
    session.add_message("user", "And?", message_id="last", created_at=1e6)
    return session


def written(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


BLOCKS: dict[str, Callable[[str], list[Any]]] = {
    "anthropic": lambda url: [
        {"type": "image", "source": {"type": "url", "url": url}},
        {"type": "document", "source": {"type": "url", "url": url}},
        {"type": "image", "source": {"type": "file", "file_id": url or "f"}},
        {"type": "image", "source": {"type": "path", "path": url}},
        {"type": "image", "path": url},
    ],
    "openai": lambda url: [
        {"type": "image_url", "image_url": {"url": url}},
        {"type": "image_url", "image_url": url},
        {"type": "file", "file": {"file_id": url, "filename": url}},
        {"type": "file", "file": {"file_url": url}},
        {"type": "input_image", "image_url": url},
        {"type": "input_file", "file_url": url},
        {"type": "localImage", "path": url},
    ],
    "google": lambda url: [{"fileData": {"fileUri": url, "mimeType": "image/png"}}, {"file_data": {"file_uri": url}}],
    "bedrock": lambda url: [
        {"image": {"format": "png", "source": {"s3Location": {"uri": url}}}},
        {"document": {"format": "pdf", "name": url, "source": {"url": url}}},
    ],
    "langchain": lambda url: [
        {"type": "image", "url": url},
        {"type": "image", "source_type": "url", "url": url},
        {"type": "file", "url": url},
    ],
    "pydantic": lambda url: [{"kind": "image-url", "url": url}, {"kind": "document-url", "url": url}],
}


def transcripts(folder: Path) -> Iterator[Path]:
    """The addresses as tools and providers write them."""
    yield written(folder / "saved.json", session_of_addresses().to_dict())
    for name, blocks in BLOCKS.items():
        content = [{"type": "text", "text": "Look"}, *(block for url in URLS for block in blocks(url))]
        key, answer = ("parts", "model") if name == "google" else ("content", "assistant")
        messages = [
            {"role": "user", key: content},
            {"role": answer, key: [{"type": "text", "text": "I see"}]},
            {"role": "user", key: content},
        ]
        yield written(folder / f"{name}.json", {"contents" if name == "google" else "messages": messages})
    content = [{"type": "text", "text": "Look"}, *(block for url in URLS for block in BLOCKS["anthropic"](url))]
    claude = {"type": "user", "uuid": "u", "sessionId": "s", "message": {"role": "user", "content": content}}
    yield written(folder / "claude.jsonl", claude)
    codex = [{"type": "input_text", "text": "Look"}, *({"type": "input_image", "image_url": url} for url in URLS)]
    rollout = folder / "codex.jsonl"
    lines = [
        {"timestamp": "2026-01-01T00:00:00Z", "type": "session_meta", "payload": {"id": "s", "cwd": "/named-by-data"}},
        {
            "timestamp": "2026-01-01T00:00:00Z",
            "type": "response_item",
            "payload": {"type": "message", "role": "user", "content": codex},
        },
    ]
    rollout.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    yield rollout


@POSIX
@pytest.mark.parametrize("to", PROVIDERS)
def test_convert_and_process_fetch_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, request: pytest.FixtureRequest, to: str
) -> None:
    """Files and addresses in a log are never fetched: an address goes to the provider as an address, or is a note."""
    shell, paths = Shell(capsys, monkeypatch), list(transcripts(tmp_path))
    request.getfixturevalue("offline")
    for path in paths:
        for command in (("convert",), ("process", "--max-tokens", 3_000), ("process", "--max-tokens", 3_000, "--one-shot")):
            code, out, err = shell(*command, path, "--to", to, "-o", "-")
            assert code == 0, (path, command, err)
            assert json.loads(out)
        assert shell("convert", path, "--to", to, "--read-files-below", tmp_path, "-o", "-")[0] == 0
    for path in paths[:1]:
        out = shell("convert", path, "--to", to, "-o", "-")[1]
        assert "https://named-by-data.example/it.png" in out


@POSIX
@pytest.mark.parametrize("model", MODELS)
def test_a_manager_fetches_nothing(tmp_path: Path, request: pytest.FixtureRequest, model: str | None) -> None:
    paths = list(transcripts(tmp_path))
    ContextWindowManager(model).process_session(Session([Message("user", "x")]))  # loads its own tables
    request.getfixturevalue("offline")
    for path in paths:
        for session in read_account(path).sessions:
            manager = ContextWindowManager(model, context_window=ContextWindow(max_tokens=4_000))
            manager.process_session(session)
            manager.trim_session(session)
            manager.analyze_session(session)
            manager.plan_session(session)
            manager.usage(session)
            for item in session.items:
                manager.recall(session, item.id)
