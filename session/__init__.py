"""Session: the log of a conversation, the items in it, and the formats it is read from and saved to."""

from .lazy import lazy_names

_NAMES = {
    ".conversation_text": "render_items",
    ".errors": (
        "DuplicateItemError FormatError PositionError ReadOnlyError SessionError StoreBusyError StoreConflictError "
        "StoreDamagedError StoreError SummaryError TranscriptError UnknownItemError UnknownSessionError"
    ),
    ".items": "AgentConfigUpdate AgentHandoff Compaction FunctionCall FunctionCallOutput Item Message MessageCategory Reasoning Role",
    ".parts": "Content Document Image Part Text",
    ".read_only": "ReadOnlySession",
    ".removed": "Removed",
    ".session": "Session",
    ".summarizers": "AnthropicSummarizer Summarizer",
    ".usage": "Usage",
}
__getattr__, __dir__ = lazy_names(__name__, _NAMES)

SESSION_OF_CONTEXT_WINDOW = True
"""Lets `context_window` tell this package from a user's own `session.py`."""

__all__ = [*sorted(" ".join(_NAMES.values()).split())]
