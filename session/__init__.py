"""What was said: the log of a conversation, its items, and the files it is read from and saved to."""

from .errors import (
    DuplicateItemError,
    FormatError,
    PositionError,
    ReadOnlyError,
    SessionError,
    StoreBusyError,
    StoreConflictError,
    StoreDamagedError,
    StoreError,
    SummaryError,
    TranscriptError,
    UnknownItemError,
    UnknownSessionError,
)
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
from .read_only import ReadOnlySession
from .rendering import render_items
from .session import Session
from .summarizers import AnthropicSummarizer, Summarizer
from .usage import Usage

SESSION_OF_CONTEXT_WINDOW = True
"""Lets `context_window` tell this package from a user's own `session.py`."""

__all__ = [
    "AgentConfigUpdate",
    "AgentHandoff",
    "AnthropicSummarizer",
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
    "PositionError",
    "ReadOnlyError",
    "ReadOnlySession",
    "Reasoning",
    "Role",
    "Session",
    "SessionError",
    "StoreBusyError",
    "StoreConflictError",
    "StoreDamagedError",
    "StoreError",
    "Summarizer",
    "SummaryError",
    "Text",
    "TranscriptError",
    "UnknownItemError",
    "UnknownSessionError",
    "Usage",
    "render_items",
]
