"""Names of sessions and items."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window.reports.names import item_names, session_name, title_of
from context_window.spend.names import last_part
from context_window.timeline.reasons import NAME_LENGTH
from session import Session

NOON = datetime(2026, 3, 25, 12, tzinfo=UTC).timestamp()
KEY = "sk-ant-" + "api03-Zq8vT2nR5xW9kL4mB7cD1fG6hJ3pS0uY"


@pytest.mark.parametrize(
    ("time", "project", "title", "name"),
    [
        (NOON, "/x/shop", "", "2026-03-25 12:00 shop"),
        (NOON, "D:\\work\\shop\\", "Fix it", "2026-03-25 12:00 shop: Fix it"),
        (NOON, "7e8989f7" * 8, "Fix it", "2026-03-25 12:00 7e8989f7: Fix it"),
        (None, "", "", "time unknown"),
        (1e18, "/", "", "time unknown /"),
    ],
)
def test_a_session_is_named_by_time_folder_and_title(time: float | None, project: str, title: str, name: str) -> None:
    assert session_name(time, project, title, UTC) == name


def test_a_title_is_the_tools_own_or_the_first_words_of_the_user() -> None:
    session = Session()
    assert title_of(session) == ""
    session.add_message("system", "You are an assistant.")
    session.add_message("user", "/clear")
    session.add_message("user", f"Fix  the\nbuild with {KEY} " + "word " * 99)
    title = title_of(session)
    assert title.startswith("Fix the build with sk-a")
    assert KEY not in title
    assert len(title) == NAME_LENGTH
    session.metadata["title"] = "Builds"
    assert title_of(session) == "Builds"


def test_items_are_named_by_file_and_command() -> None:
    session = Session()
    session.add_message("user", "secret words")
    session.add_function_call("Bash", {"command": "cd src && git diff --stat secret.txt"}, "a")
    session.add_function_output("Bash", "secret", "a")
    session.add_function_call("Read", {"file_path": "/secret/plan.py"}, "b")
    session.add_function_output("Read", "secret", "b")
    session.add_function_call("Think", {"thought": "secret"}, "c")
    assert list(item_names(session.items)) == [
        "user message",
        "Bash call: git diff",
        "Bash output: git diff",
        "Read call: plan.py",
        "Read output: plan.py",
        "Think call",
    ]


@given(st.text())
def test_a_last_part_is_never_empty_and_has_no_folder(path: str) -> None:
    part = last_part(path)
    assert bool(part) == bool(path)
    assert "/" not in part or not part.strip("/\\")
