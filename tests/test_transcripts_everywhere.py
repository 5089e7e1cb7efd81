"""Every real transcript of every tool, cut where the model was called last, sent to every provider: whole, and at five budgets."""

from __future__ import annotations

from pathlib import Path

import pytest

from context_window import CharacterCounter, ContextWindow, ContextWindowManager
from session.errors import TranscriptError
from session.session import Session
from session.transcripts import read_account
from session.units import request_points
from tests.properties.test_provider_valid import FORMATS
from tests.support.recordings import account_of
from tests.support.shared import TRANSCRIPTS, needs_transcripts

pytestmark = needs_transcripts

PARTS = (0.1, 0.25, 0.5, 0.75, 0.9)
"""Of the tokens of the whole: the budgets."""

KNOWN = {
    "aider": "aider",
    "claude_code": "claude_code",
    "claude_code_fixtures": "claude_code",
    "cline": "cline",
    "codex": "codex",
    "copilot_cli": "copilot_cli",
    "gemini_chat": "gemini_cli",
    "inspect_eval_log": "message_lists",
    "mini_swe_agent": "mini_swe_agent",
    "opencode": "opencode",
    "openhands": "openhands",
    "openhands_llm_logs": "message_lists",
    "pi": "pi",
    "provider_truth": "message_lists",
    "swe_agent": "swe_agent",
    "tau2_bench": "message_lists",
    "tau_bench": "message_lists",
}
"""By folder: the format of its files."""

ODD = {"openhands_llm_logs/OpenHands+software-agent-sdk/events.jsonl": "openhands"}
"""Files that lie with those of another format."""
SILENT = "gemini_chat/entireio+cli/29eb990e-c773-4302-a4e7-317f0af0001f.jsonl"
"""All it holds is a warning to the user."""

FILES = sorted(path for path in TRANSCRIPTS.rglob("*") if path.is_file() and path.parent != TRANSCRIPTS)


def place(path: Path) -> str:
    return path.relative_to(TRANSCRIPTS).as_posix()


def named(path: Path) -> str:
    return f"{FILES.index(path)} {place(path)[:40]}"


TELLING = [path for path in FILES if place(path) != SILENT]


def test_a_log_in_which_nobody_says_anything_is_an_error() -> None:
    with pytest.raises(TranscriptError, match="nobody says anything"):
        read_account(TRANSCRIPTS / SILENT)


@pytest.mark.parametrize("path", TELLING, ids=named)
def test_every_file_is_known_for_what_it_is(path: Path) -> None:
    found = account_of(path)
    assert found.format == ODD.get(place(path), KNOWN[place(path).partition("/")[0]])
    assert all(record.items or record.reason for record in found.lines)
    told = sorted(item_id for record in found.lines for item_id in record.items)
    assert told == sorted(item.id for session in found.sessions for item in session.items)


@pytest.mark.parametrize("path", TELLING, ids=named)
def test_every_session_is_taken_by_every_provider(path: Path) -> None:
    for session in account_of(path).sessions:
        if not (points := request_points(session)):
            continue
        log = Session(session.items[: points[-1]], id=session.id)
        log.restore_seams(session.response_breaks, 0)
        if not log.items:
            continue
        counter = CharacterCounter()
        total = ContextWindowManager(token_counter=counter).analyze_session(log)["total_tokens"]
        views = [log]
        for part in PARTS:
            window = ContextWindow(max_tokens=max(1, int(total * part)))
            views.append(ContextWindowManager(token_counter=counter, context_window=window).process_session(log))
        for view in views:
            for name, (convert, validate) in FORMATS.items():
                sent = convert(view)
                if sent and (name.startswith("openai") or sent[0]):
                    assert validate(sent) == [], f"{session.id} for {name}"
