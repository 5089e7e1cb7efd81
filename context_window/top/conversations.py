"""Reads a session: the conversations in its logs, each with its window at every request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from session.errors import SessionError
from session.session import Session
from session.transcripts import read_account
from session.transcripts.reported_requests import Request, read_requests
from session.units import PRIORITY

from ..errors import ContextWindowError
from ..models import describe_model
from ..spend.money import cost_of
from ..timeline.contents import WindowContents
from ..timeline.matches import match_requests
from ..timeline.points import Point, Timeline
from .entries import Entry
from .titles import place_of

if TYPE_CHECKING:
    from ..manager import ContextWindowManager

Grown: TypeAlias = "Callable[[Session], tuple[Session, ContextWindowManager, str]]"
"""Takes a session as its log has it now. Returns the one to count, in which only new items are new, and its manager."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation of a session: the main one, or a sub-agent's.

    Attributes:
        log: Its log.
        agent: The sub-agent's id or name; empty for the main conversation.
        timeline: Its requests.
        contents: The items in its window; None if its log cannot be read as a conversation.
    """

    log: str
    agent: str
    timeline: Timeline
    contents: WindowContents | None


@dataclass(frozen=True, slots=True)
class Opened:
    """A session that was read.

    Attributes:
        entry: The session.
        conversations: Its conversations, the main one first.
        problems: The reasons why logs could not be read as conversations, in words.
    """

    entry: Entry
    conversations: tuple[Conversation, ...]
    problems: tuple[str, ...] = ()


def opened(entry: Entry, grown: Callable[[str], Grown]) -> Opened:
    """Return the conversations of a session. Of a log that cannot be read as one, only the reported requests are known.

    Args:
        entry: The session.
        grown: Returns what keeps a conversation's counts, by a name of the conversation.
    """
    conversations: list[Conversation] = []
    problems: list[str] = []
    for log in entry.logs:
        found: list[Conversation] = []
        try:
            found += _conversations(log, entry.key.session, grown)
        except (SessionError, ContextWindowError, OSError) as error:
            problems.append(str(error))
        conversations += found if any(conversation.timeline.requests for conversation in found) else _reported(log, entry)
    return Opened(entry, tuple(conversations), tuple(problems))


def _conversations(log: str, session_id: str, grown: Callable[[str], Grown]) -> Iterable[Conversation]:
    path = place_of(log, session_id)
    account = read_account(path)
    requests: Sequence[Request] = read_requests(path).requests
    sessions = [found for index, found in enumerate(account.sessions) if index >= account.main_count or found.id == session_id]
    sessions = sessions if sessions and account.main_count > 1 else list(account.sessions)
    for session in sessions:
        reports = match_requests(requests, session, [other for other in sessions if other is not session])
        if session is not sessions[0] and not reports.by_item:
            continue  # a sub-agent with a log of its own
        current, manager, _ = grown(f"{log}\0{session.id}")(session)
        contents = manager.contents(current, reports)
        agents = Counter(request.agent for request in reports.by_item.values())
        yield Conversation(log, agents.most_common(1)[0][0] if agents else "", contents.timeline, contents)
        requests = reports.elsewhere


def _reported(log: str, entry: Entry) -> Iterable[Conversation]:
    """Yield the requests of a log by agent, without what was in their windows."""
    agents: dict[str, list[Request]] = {}
    for request, origin in zip(entry.requests, entry.origins, strict=True):
        if origin == log:
            agents.setdefault(request.agent, []).append(request)
    for agent, requests in sorted(agents.items()):
        points = tuple(
            Point(
                number,
                0,
                (0,) * len(PRIORITY),
                request.prompt,
                unlogged=request.prompt,
                is_reported=True,
                is_in_log=False,
                time=request.time,
                request=request,
                cost=cost_of(request),
            )
            for number, request in enumerate(requests, 1)
        )
        model = requests[-1].model
        yield Conversation(log, agent, Timeline(entry.key.session, points, (), 0, describe_model(model).window, model, ""), None)
