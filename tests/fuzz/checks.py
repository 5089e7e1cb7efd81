"""Checks the promise for one mutant."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from context_window.recall import recall_tool
from context_window.spend import read_ledger
from context_window.strategies import Extract
from session import FormatError, Session, TranscriptError
from session.providers import Violation, validate_anthropic, validate_google, validate_openai_chat, validate_openai_responses
from session.providers.anthropic import from_anthropic, to_anthropic
from session.providers.google import from_google, to_google
from session.providers.openai_chat import from_openai_chat, to_openai_chat
from session.providers.openai_responses import from_openai_responses, to_openai_responses
from session.transcripts import TranscriptAccount, read_account
from session.units import grouping
from tests.support.looping import manager
from tests.support.tool_logs import check_account as check_records
from tests.transcripts.test_transcripts_accounted import LOGS as ACCOUNTED

from .folder import folder
from .seeds import Seed

REFUSED = "refused"

LINE_FORMATS = frozenset({"aider", "claude_code", "codex", "copilot_cli", *ACCOUNTED}) - {"langfuse", "otel"}  # documents, too
"""Formats that account for every line of any file."""
SESSIONS_CHECKED = 2
"""Sessions of one file that are saved and converted."""


def _with_system(read: Callable[[object, object], Session], name: str) -> Callable[[Any], Session]:
    """Return a reader for one value that holds both the messages and the system prompt."""
    return lambda value: read(value.get(name), value.get("system")) if isinstance(value, Mapping) else read(value, None)


READERS: dict[str, Callable[[Any], Session]] = {
    "from_dict": Session.from_dict,
    "from_anthropic": _with_system(from_anthropic, "messages"),
    "from_google": _with_system(from_google, "contents"),
    "from_openai_chat": from_openai_chat,
    "from_openai_responses": from_openai_responses,
}
VALIDATORS: dict[str, Callable[[Any], list[Violation]]] = {
    "from_anthropic": validate_anthropic,
    "from_google": validate_google,
    "from_openai_chat": validate_openai_chat,
    "from_openai_responses": validate_openai_responses,
}
WRITERS: tuple[tuple[Callable[[Session], Any], Callable[[Any], Session]], ...] = (
    (lambda session: to_anthropic(session, caching=True), lambda payload: from_anthropic(*payload)),
    (to_google, lambda payload: from_google(*payload)),
    (to_openai_chat, from_openai_chat),
    (to_openai_responses, from_openai_responses),
)
"""The writer and the reader of each wire format."""


def check_reader(seed: Seed, mutated: Any, number: int) -> str:
    """Check the promise of the target `readers` for one mutant: the bytes of a file, or a value."""
    if seed.reader == "file":
        return check_file(folder() / f"log{('.json', '.jsonl')[number % 2]}", mutated, number)
    return check_value(seed.reader, mutated, number)


def check_file(path: Path, raw: bytes, number: int = 0) -> str:
    """Return the format that the file was read as, or `REFUSED`.

    Args:
        path: A file to write the mutant to.
        raw: The mutant.
        number: As for `check_session`.
    """
    path.write_bytes(raw)
    try:
        account = read_account(path)
    except TranscriptError:
        return REFUSED
    check_account(account, raw)
    for session in account.sessions[:SESSIONS_CHECKED]:
        check_session(session, number)
    return account.format


def check_database(path: Path, number: int) -> None:
    """Check the promise for a damaged database: its sessions and its usage are read, or refused.

    Args:
        path: The database.
        number: As for `check_session`.
    """
    with suppress(TranscriptError):  # nothing is left
        account = read_account(path)
        check_records(account)
        for session in account.sessions:
            check_session(session, number)
    read_ledger([path])


def check_value(reader: str, value: Any, number: int = 0) -> str:
    """Return the name of the reader, or `REFUSED`."""
    if reader in VALIDATORS:
        with suppress(FormatError):
            VALIDATORS[reader](value)
    try:
        session = READERS[reader](value)
    except FormatError as error:
        return check_refusal(error)
    check_session(session, number)
    if reader == "from_dict" and number % 2:
        check_view(session)
    return reader


def check_view(session: Session) -> None:
    """Check that a session gets a view that can be saved, whose items can be recalled, whatever digests and notes it says it holds."""
    view = manager(2_000, strategy=Extract()).process_session(session)
    check_session(view)
    tool = recall_tool("anthropic")
    for item in view.items:
        tool.handle(view, {"id": item.id}).text.encode()


def check_refusal(error: FormatError) -> str:
    """Check that the error names the field and the problem, in texts that can be written, and return `REFUSED`."""
    assert error.where
    assert error.problem
    str(error).encode()
    return REFUSED


def check_account(account: TranscriptAccount, raw: bytes) -> None:
    """Check that every item belongs to one record, and that every record has items or a reason why it has none."""
    items_of_records = sorted(item_id for record in account.lines for item_id in record.items)
    assert items_of_records == sorted(item.id for session in account.sessions for item in session.items)
    for record in account.lines:
        assert bool(record.items) == (record.fate == "item"), record
        assert record.items or record.reason, record
    if account.format in LINE_FORMATS:
        count = raw.count(b"\n") + (not raw.endswith(b"\n"))
        assert {record.line for record in account.lines} == set(range(1, count + 1)), f"not every one of {count} lines is accounted for"


def check_session(session: Session, number: int = 0) -> None:
    """Check that a session can be saved, loads as an equal session, and converts to every wire format.

    Args:
        session: What a reader returned.
        number: Decides which one of the converted forms is read back.
    """
    grouping(session)
    saved = session.to_dict()
    loaded = Session.from_dict(json.loads(json.dumps(saved, allow_nan=False)))
    assert list(loaded.items) == list(session.items)
    assert loaded.to_dict() == saved
    for index, (write, read) in enumerate(WRITERS):
        payload = write(session)
        json.dumps(payload, allow_nan=False).encode()
        if number % len(WRITERS) == index:
            read(payload)
