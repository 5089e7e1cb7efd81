"""A session as the bytes of a file, in any format of `--to`, and the rules of the provider that it would break as a request."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from session.providers import Violation
    from session.session import Session

SESSION = "session"


@dataclass(frozen=True, slots=True)
class ExportedSession:
    """A session in one format.

    Attributes:
        value: JSON values.
        length: Number of messages, items or contents.
        unit: Name of these, in the plural.
        violations: The provider's rules that it would break as a request.
    """

    value: dict[str, Any]
    length: int
    unit: str
    violations: tuple[Violation, ...] = ()

    @property
    def content(self) -> bytes:
        """The bytes of a file."""
        return f"{json.dumps(self.value, ensure_ascii=False)}\n".encode()


def _session(session: Session) -> ExportedSession:
    return ExportedSession(session.to_dict(), len(session.items), "items")


def _anthropic(session: Session) -> ExportedSession:
    from session.providers.anthropic import to_anthropic, validate_anthropic

    messages, system = to_anthropic(session)
    value: dict[str, Any] = {"messages": messages} if not system else {"system": system, "messages": messages}
    return ExportedSession(value, len(messages), "messages", tuple(validate_anthropic(value)))


def _openai(session: Session) -> ExportedSession:
    from session.providers.openai_chat import to_openai_chat, validate_openai_chat

    value = {"messages": (messages := to_openai_chat(session))}
    return ExportedSession(value, len(messages), "messages", tuple(validate_openai_chat(value)))


def _openai_responses(session: Session) -> ExportedSession:
    from session.providers.openai_responses import to_openai_responses, validate_openai_responses

    value = {"input": (items := to_openai_responses(session))}
    return ExportedSession(value, len(items), "input items", tuple(validate_openai_responses(value)))


def _google(session: Session) -> ExportedSession:
    from session.providers.google import to_google, validate_google

    contents, system = to_google(session)
    value = {"contents": contents} if system is None else {"system_instruction": system, "contents": contents}
    return ExportedSession(value, len(contents), "contents", tuple(validate_google(value)))


_EXPORTERS: dict[str, Callable[[Session], ExportedSession]] = {
    SESSION: _session,
    "anthropic": _anthropic,
    "openai": _openai,
    "openai-responses": _openai_responses,
    "google": _google,
}

to_option = click.option(
    "--to",
    "to",
    type=click.Choice(list(_EXPORTERS)),
    default=SESSION,
    help="Format to write: a session, which these commands can read again (default), or messages for a provider's API.",
)


def export(session: Session, to: str) -> ExportedSession:
    """Return the session in one of the formats of `--to`."""
    return _EXPORTERS[to](session)
