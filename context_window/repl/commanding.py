"""What commands have in common: what they give, and how things stand after one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from ..display.rendering import Draw
from .chat import Chat
from .drawing import usage_line

Draws: TypeAlias = Sequence[Draw]


def now(chat: Chat) -> Draw:
    """The usage line, with what the manager has told."""
    usage = chat.usage()
    return usage_line(usage, chat.news.latest())
