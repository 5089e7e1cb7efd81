"""What was said: the log of a conversation, its items, and the files it is read from and saved to."""

from .errors import DuplicateItemError, FormatError, ReadOnlyError, SessionError, TranscriptError, UnknownItemError
from .items import (
    AgentConfigUpdate,
    AgentHandoff,
    Compaction,
    FunctionCall,
    FunctionCallOutput,
    Item,
    Message,
    MessageCategory,
    Reasoning,
    Role,
)
from .parts import Content, Document, Image, Part, Text
from .session import Session
from .usage import Usage

SESSION_OF_CONTEXT_WINDOW = True
"""Lets `context_window` tell this package from a user's own `session.py`."""

__all__ = [
    "AgentConfigUpdate",
    "AgentHandoff",
    "Compaction",
    "Content",
    "Document",
    "DuplicateItemError",
    "FormatError",
    "FunctionCall",
    "FunctionCallOutput",
    "Image",
    "Item",
    "Message",
    "MessageCategory",
    "Part",
    "ReadOnlyError",
    "Reasoning",
    "Role",
    "Session",
    "SessionError",
    "Text",
    "TranscriptError",
    "UnknownItemError",
    "Usage",
]
