"""Session: the log of a conversation, the items in it, and the formats it is read from and saved to."""

from typing import TYPE_CHECKING

from .lazy import lazy_names

if TYPE_CHECKING:
    from .conversation_text import render_items
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
    from .removed import Removed
    from .session import Session
    from .summarizers import AnthropicSummarizer, Summarizer
    from .usage import Usage
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            ".conversation_text": "render_items",
            ".errors": (
                "DuplicateItemError FormatError PositionError ReadOnlyError SessionError StoreBusyError StoreConflictError "
                "StoreDamagedError StoreError SummaryError TranscriptError UnknownItemError UnknownSessionError"
            ),
            ".items": (
                "AgentConfigUpdate AgentHandoff Compaction FunctionCall FunctionCallOutput Item Message MessageCategory Reasoning Role"
            ),
            ".parts": "Content Document Image Part Text",
            ".read_only": "ReadOnlySession",
            ".removed": "Removed",
            ".session": "Session",
            ".summarizers": "AnthropicSummarizer Summarizer",
            ".usage": "Usage",
        },
    )

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
    "Removed",
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
