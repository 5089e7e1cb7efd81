"""The names that users import: adding one is a decision, taking one away breaks somebody."""

import session

NAMES = [
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


def test_session_exports_these_names() -> None:
    assert session.__all__ == NAMES


def test_each_of_them_is_there() -> None:
    assert [name for name in NAMES if not hasattr(session, name)] == []


def test_every_error_is_a_session_error() -> None:
    errors = [getattr(session, name) for name in NAMES if name.endswith("Error")]
    assert len(errors) == 6
    assert all(issubclass(error, session.SessionError) for error in errors)
