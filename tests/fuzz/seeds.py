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

from context_window.strategies import Extract
from session import Session, SessionError
from session.providers.anthropic import to_anthropic
from session.providers.google import to_google
from session.providers.openai_chat import to_openai_chat
from session.providers.openai_responses import to_openai_responses
from session.transcripts import read_account
from tests.session.test_serial import sound
from tests.support.claude_lines import a_bit_of_everything
from tests.support.list_logs import assistant, called, system, tool, user
from tests.support.looping import manager
from tests.support.screens import long_session
from tests.support.tool_logs import DOCUMENTS, LINES
from tests.transcripts.test_transcripts_accounted import LOGS as ACCOUNTED
from tests.transcripts.test_transcripts_aider import CHAT_LINES, SESSION_START
from tests.transcripts.test_transcripts_amp import AMP
from tests.transcripts.test_transcripts_atif import ATIF
from tests.transcripts.test_transcripts_cline import CALL, METRICS, RESULT, session_file, text
from tests.transcripts.test_transcripts_hermes import HERMES
from tests.transcripts.test_transcripts_mini_swe_agent import OBSERVATION, answer, trajectory
from tests.transcripts.test_transcripts_openhands import HISTORY, SDK
from tests.transcripts.test_transcripts_swe_agent import CALLS
from tests.transcripts.test_transcripts_traces import FORMS as TRACES

Layout = Literal["lines", "document", "text", "events", "bytes"]

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
    "amp": AMP,
    "atif": ATIF,
    "hermes": HERMES,
    "langfuse_trace": TRACES["langfuse, a trace"][0],
    "otel_batch": TRACES["otel in one batch"][0],
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
        layout: Layout of its file: one value per line, one document, plain text, server-sent events, or bytes that are not read.
        data: The JSON value (a list of values for lines, a list of texts for plain text), marshalled. Unmarshalling it makes a fresh copy.
        target: Name of the target whose check reads it.
    """

    name: str
    reader: str
    layout: Layout
    data: bytes
    target: str = "readers"

    def value(self) -> Any:
        """Return a fresh copy of the JSON value."""
        return marshal.loads(self.data)


def make_seed(name: str, reader: str, layout: Layout, value: Any, target: str = "readers") -> Seed:
    """Return a seed that holds this value."""
    return Seed(name, reader, layout, marshal.dumps(value), target)


def event_stream(events: list[Any]) -> str:
    """Return a stream of server-sent events."""
    return "".join(f"event: x\ndata: {json.dumps(data)}\n\n" for data in events) + "data: [DONE]\n\n"


@cache
def seeds(*, recorded: bool = True) -> tuple[Seed, ...]:
    """Return the inputs of the target `readers`.

    Args:
        recorded: False to leave out excerpts of recorded transcripts.
    """
    folder = os.environ.get("CONTEXT_WINDOW_TRANSCRIPTS", "") if recorded else ""
    return (*_own_seeds(), *(_excerpts(Path(folder)) if folder else ()))


def _own_seeds() -> Iterator[Seed]:
    yield make_seed("claude_code", "file", "lines", [json.loads(line) for line in a_bit_of_everything().lines])
    yield make_seed("aider", "file", "text", (SESSION_START + CHAT_LINES).split("\n"))
    for name, make in LINES.items():
        yield make_seed(name, "file", "lines", make())
    for name in sorted(ACCOUNTED.keys() - LINES.keys()):
        yield make_seed(name, "file", "lines", ACCOUNTED[name])
    for name, make_one in DOCUMENTS.items():
        yield make_seed(name, "file", "document", make_one())
    for name, log in LOGS.items():
        yield make_seed(name, "file", "document", log)
        if isinstance(log, list):
            yield make_seed(f"{name}, a message a line", "file", "lines", log)
    yield make_seed("requests", "file", "lines", [LOGS["anthropic"], LOGS["responses"], LOGS["google"]])
    session = Session.from_dict({**(long_log := long_session().to_dict()), "items": long_log["items"][:12]})
    yield make_seed("session_json", "file", "document", session.to_dict())
    yield make_seed("session_json", "from_dict", "document", session.to_dict())
    yield make_seed("every kind of item", "from_dict", "document", sound())
    yield make_seed("digests and a state note", "from_dict", "document", shortened_view().to_dict())
    yield make_seed(
        "anthropic", "from_anthropic", "document", dict(zip(("messages", "system"), to_anthropic(session, caching=True), strict=True))
    )
    yield make_seed("google", "from_google", "document", dict(zip(("contents", "system"), to_google(session), strict=True)))
    yield make_seed("openai_chat", "from_openai_chat", "document", to_openai_chat(session))
    yield make_seed("openai_responses", "from_openai_responses", "document", to_openai_responses(session))


def shortened_view() -> Session:
    """Return the view of a session of coding, with digests and a state note."""
    log, engine = Session(id="coded"), manager(12_000, strategy=Extract())
    view = log
    for step in range(12):
        log.add_message("user", f"Now mend step {step} in src/step_{step}.py, as the plan says. " * 4)
        for name, arguments, output in (
            ("Read", {"file_path": f"src/step_{step}.py"}, "\n".join(f"{number}\tdef f_{number}(): return {step}" for number in range(40))),
            ("Edit", {"file_path": f"src/step_{step}.py", "old_string": "a", "new_string": "b"}, "done"),
            ("Bash", {"command": "pytest"}, f"FAILED tests/test_{step}.py::test_it - AssertionError: {step}\n" * 5),
        ):
            log.add_function_call(name, arguments, f"{name}{step}")
            log.add_function_output(name, output, f"{name}{step}", is_error=name == "Bash")
            view = engine.process_session(log)
    return view


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
        seed = make_seed(f"{form}: {path.name}", "file", "lines" if layout == "lines" else "document", _excerpt(values))
        if len(seed.data) <= EXCERPT_BYTES:
            yield seed


def _excerpt(value: Any) -> Any:
    """Return the value with long lists and texts shortened."""
    if isinstance(value, str):
        return value[:EXCERPT_CHARS]
    if isinstance(value, dict):
        return {name[:EXCERPT_CHARS]: _excerpt(member) for name, member in value.items()}
    return [_excerpt(member) for member in value[:EXCERPT_MEMBERS]] if isinstance(value, list) else value
