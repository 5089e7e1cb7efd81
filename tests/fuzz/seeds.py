"""The inputs to mutate: small, valid, at least one for every format."""

from __future__ import annotations

import json
import marshal
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from session import Session, SessionError
from session.providers.anthropic import to_anthropic
from session.providers.google import to_google
from session.providers.openai_chat import to_openai_chat
from session.providers.openai_responses import to_openai_responses
from session.transcripts import read_account
from tests.session.test_serial import sound
from tests.support.claude_lines import a_bit_of_everything
from tests.support.list_logs import assistant, called, system, tool, user
from tests.support.screens import long_session
from tests.support.tool_logs import DOCUMENTS, LINES
from tests.transcripts.test_transcripts_accounted import LOGS as ACCOUNTED
from tests.transcripts.test_transcripts_aider import CHAT_LINES, SESSION_START
from tests.transcripts.test_transcripts_cline import CALL, METRICS, RESULT, session_file, text
from tests.transcripts.test_transcripts_mini_swe_agent import OBSERVATION, answer, trajectory
from tests.transcripts.test_transcripts_openhands import HISTORY, SDK
from tests.transcripts.test_transcripts_swe_agent import CALLS

Layout = Literal["lines", "document", "text"]

EXCERPT_LINES, EXCERPT_MEMBERS, EXCERPT_CHARS = 10, 8, 300
"""Size of an excerpt from a recorded transcript: lines of a log, members of a list, characters of a text."""
EXCERPT_BYTES = 16_000
"""Longer excerpts are left out, because they find too little for their time."""

BLOCKS = [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "tool_use", "id": "t", "name": "ls", "input": {"a": 1}}]
CHAT = [system("S"), user([text("hi")]), assistant("a", called("c"), reasoning_content="hm"), tool("c"), user("bye")]
RESPONSES = [
    user("hi"),
    {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "e"},
    {"type": "function_call", "call_id": "c", "name": "ls", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c", "output": "a"},
]
GOOGLE = [
    {"role": "user", "parts": [{"text": "hi"}, {"inlineData": {"mimeType": "image/png", "data": "QUJD"}}]},
    {"role": "model", "parts": [{"functionCall": {"name": "ls", "args": {}}, "thoughtSignature": "s"}]},
    {"role": "user", "parts": [{"functionResponse": {"name": "ls", "response": {"result": "1"}}}]},
]
LOGS: dict[str, Any] = {
    "chat": CHAT,
    "anthropic": {
        "system": "S",
        "messages": [user("hi"), assistant(BLOCKS), user([{"type": "tool_result", "tool_use_id": "t", "content": "a"}])],
    },
    "responses": {"request": {"model": "m", "instructions": "S", "input": RESPONSES}, "usage": {"input_tokens": 1, "output_tokens": 2}},
    "google": {"contents": GOOGLE, "systemInstruction": {"parts": [{"text": "S"}]}},
    "benchmark": {"simulations": [{"id": "s", "messages": CHAT}, {"id": "s", "messages": CHAT[:2]}]},
    "inspect": {
        "samples": [{"id": 1, "messages": CHAT, "attachments": {"x": "y"}, "events": [{"event": "model", "output": {"usage": {}}}]}]
    },
    "displayed": {"messages_display": "user: hi\nassistant: None\ntool: a"},
    "mini_swe_agent": trajectory(answer("a"), user(OBSERVATION), answer("b")),
    "swe_agent": {"trajectory": [], "history": CALLS},
    "openhands": HISTORY,
    "openhands_sdk": SDK,
    "cline": session_file(
        user([text("hi"), {"type": "file", "path": "/a", "content": "b"}]), {**assistant([CALL]), "metrics": METRICS}, user([RESULT])
    ),
}


@dataclass(frozen=True, slots=True)
class Seed:
    """One valid input.

    Attributes:
        name: The format, or the file that the input is from.
        reader: "file" for the transcript readers, else the function that takes the JSON value: "from_dict", "from_google", …
        layout: Layout of its file: one value per line, one document, or plain text.
        data: The JSON value (a list of values for lines, a list of texts for plain text), marshalled. Unmarshalling it makes a fresh copy.
    """

    name: str
    reader: str
    layout: Layout
    data: bytes

    def value(self) -> Any:
        """Return a fresh copy of the JSON value."""
        return marshal.loads(self.data)


def _seed(name: str, reader: str, layout: Layout, value: Any) -> Seed:
    return Seed(name, reader, layout, marshal.dumps(value))


@cache
def seeds(*, recorded: bool = True) -> tuple[Seed, ...]:
    """Return all inputs.

    Args:
        recorded: False to leave out excerpts of recorded transcripts.
    """
    folder = os.environ.get("CONTEXT_WINDOW_TRANSCRIPTS", "") if recorded else ""
    return (*_own_seeds(), *(_excerpts(Path(folder)) if folder else ()))


def _own_seeds() -> Iterator[Seed]:
    yield _seed("claude_code", "file", "lines", [json.loads(line) for line in a_bit_of_everything().lines])
    yield _seed("aider", "file", "text", (SESSION_START + CHAT_LINES).split("\n"))
    for name, make in LINES.items():
        yield _seed(name, "file", "lines", make())
    for name in ("cursor", "droid", "grok"):
        yield _seed(name, "file", "lines", ACCOUNTED[name])
    for name, make_one in DOCUMENTS.items():
        yield _seed(name, "file", "document", make_one())
    for name, log in LOGS.items():
        yield _seed(name, "file", "document", log)
        if isinstance(log, list):
            yield _seed(f"{name}, a message a line", "file", "lines", log)
    yield _seed("requests", "file", "lines", [LOGS["anthropic"], LOGS["responses"], LOGS["google"]])
    session = Session.from_dict({**(long_log := long_session().to_dict()), "items": long_log["items"][:12]})
    yield _seed("session_json", "file", "document", session.to_dict())
    yield _seed("session_json", "from_dict", "document", session.to_dict())
    yield _seed("every kind of item", "from_dict", "document", sound())
    yield _seed(
        "anthropic", "from_anthropic", "document", dict(zip(("messages", "system"), to_anthropic(session, caching=True), strict=True))
    )
    yield _seed("google", "from_google", "document", dict(zip(("contents", "system"), to_google(session), strict=True)))
    yield _seed("openai_chat", "from_openai_chat", "document", to_openai_chat(session))
    yield _seed("openai_responses", "from_openai_responses", "document", to_openai_responses(session))


def _excerpts(folder: Path) -> Iterator[Seed]:
    """Yield the beginning of each recorded transcript, shortened as long as its format is still recognized."""
    for path in sorted(folder.rglob("*.json*")):
        try:
            form = read_account(path).format
        except SessionError:
            continue
        text = path.read_text("utf-8", "replace")
        try:
            values, layout = json.loads(text), "document"
        except ValueError:
            values, layout = [json.loads(line) for line in text.split("\n")[:EXCERPT_LINES] if line.strip()], "lines"
        seed = _seed(f"{form}: {path.name}", "file", "lines" if layout == "lines" else "document", _excerpt(values))
        if len(seed.data) <= EXCERPT_BYTES:
            yield seed


def _excerpt(value: Any) -> Any:
    """Return the value with long lists and texts shortened."""
    if isinstance(value, str):
        return value[:EXCERPT_CHARS]
    if isinstance(value, dict):
        return {name[:EXCERPT_CHARS]: _excerpt(member) for name, member in value.items()}
    return [_excerpt(member) for member in value[:EXCERPT_MEMBERS]] if isinstance(value, list) else value
