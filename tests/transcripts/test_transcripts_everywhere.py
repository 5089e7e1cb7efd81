"""Every real transcript of every tool, cut at its last request, valid for every provider: untrimmed, and at five budgets."""

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

BUDGET_RATIOS = (0.1, 0.25, 0.5, 0.75, 0.9)
"""Budgets, as parts of the session's tokens."""

FORMAT_OF_FOLDER = {
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
"""Format of the files in each folder."""

EXCEPTIONS = {"openhands_llm_logs/OpenHands+software-agent-sdk/events.jsonl": "openhands"}
"""Files in a folder of another format."""
WITHOUT_MESSAGES = "gemini_chat/entireio+cli/29eb990e-c773-4302-a4e7-317f0af0001f.jsonl"
"""A file with nothing but a warning to the user."""

FILES = sorted(path for path in TRANSCRIPTS.rglob("*") if path.is_file() and path.parent != TRANSCRIPTS)


def relative_path(path: Path) -> str:
    return path.relative_to(TRANSCRIPTS).as_posix()


def case_id(path: Path) -> str:
    return f"{FILES.index(path)} {relative_path(path)[:40]}"


WITH_MESSAGES = [path for path in FILES if relative_path(path) != WITHOUT_MESSAGES]
FIRST_OF_A_FOLDER = {path.parent: path for path in reversed(WITH_MESSAGES)}.values()


def test_a_log_without_messages_is_an_error() -> None:
    with pytest.raises(TranscriptError, match="contains no messages"):
        read_account(TRANSCRIPTS / WITHOUT_MESSAGES)


@pytest.mark.parametrize("path", WITH_MESSAGES, ids=case_id)
def test_every_file_is_detected_as_its_format(path: Path) -> None:
    transcript = account_of(path)
    assert transcript.format == EXCEPTIONS.get(relative_path(path), FORMAT_OF_FOLDER[relative_path(path).partition("/")[0]])
    assert all(record.items or record.reason for record in transcript.lines)
    item_ids = sorted(item_id for record in transcript.lines for item_id in record.items)
    assert item_ids == sorted(item.id for session in transcript.sessions for item in session.items)


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=[] if path in FIRST_OF_A_FOLDER else pytest.mark.long) for path in WITH_MESSAGES],
    ids=map(case_id, WITH_MESSAGES),
)
def test_every_session_is_valid_for_every_provider(path: Path) -> None:
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
        for part in BUDGET_RATIOS:
            window = ContextWindow(max_tokens=max(1, int(total * part)))
            views.append(ContextWindowManager(token_counter=counter, context_window=window).process_session(log))
        for view in views:
            for name, (convert, validate) in FORMATS.items():
                payload = convert(view)
                if payload and (name.startswith("openai") or payload[0]):
                    assert validate(payload) == [], f"{session.id} for {name}"
