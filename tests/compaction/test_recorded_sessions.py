"""Compaction of recorded sessions: large ones can be summarised, however few messages the user sent."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterator

from context_window import CompactionError, ContextWindow, ContextWindowManager, Session
from session import SessionError
from session.transcripts import read_transcripts
from session.units import request_points
from tests.support.compacting import SHORT
from tests.support.shared import TRANSCRIPTS, needs_transcripts

LARGE = 5_000


def estimate(text: str) -> int:
    return len(text) // 4 + 1


async def summarise(prompt: str) -> str:
    return SHORT


def manager_of(max_tokens: int | None) -> ContextWindowManager:
    """Return a manager that ignores usage reports: they contain system prompts and tools, which the logs do not."""
    return ContextWindowManager(token_counter=estimate, context_window=ContextWindow(max_tokens, coverage=None))


def large_sessions() -> Iterator[Session]:
    counting = manager_of(None)
    for path in sorted(path for path in TRANSCRIPTS.rglob("*") if path.is_file()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                sessions = read_transcripts(path)
            except SessionError:  # a manifest, or a damaged log
                continue
        yield from (session for session in sessions if counting.analyze_session(session)["total_tokens"] > LARGE)


def is_compacted(session: Session) -> bool:
    """True if a summary can be written before the last request, or before one of the four requests before it, at a budget of half the log.

    It is asked for: where clearing results is enough, none is due.
    """
    tokens = manager_of(None).analyze_session(session)["total_tokens"]
    for end in reversed(request_points(session)[-5:]):
        log = Session.showing(session, list(session.items[:end]), breaks=session.response_breaks, settled=0)
        log = Session.from_dict(log.to_dict())
        try:
            summary = asyncio.run(manager_of(tokens // 2).compact(log, summarise))
        except CompactionError:
            continue
        if summary is not None:
            assert log.items[-1] is summary
            return True
    return False


@needs_transcripts
def test_large_recorded_sessions_can_be_summarised() -> None:
    """The user sent at most four messages in most of them. Where the last steps are nearly the whole log, there is nothing older."""
    counting = manager_of(None)
    rows = [(counting.analyze_session(session)["total_tokens"], is_compacted(session)) for session in large_sessions()]
    assert sum(is_done for _, is_done in rows) >= len(rows) * 85 // 100
    assert [tokens for tokens, is_done in rows if tokens > 20_000 and not is_done] == []
