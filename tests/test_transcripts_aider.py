"""aider's chat history: whose each line is, sessions, commands, and what it reports of tokens."""

from __future__ import annotations

from pathlib import Path

import pytest

from session import TranscriptError, Usage
from session.transcripts import read_transcript
from session.units import request_points
from tests.support.list_logs import account, shown

BEGUN = "\n# aider chat started at 2026-01-02 03:04:05\n\n"
TALK = """\
> Aider v0.84.0  
> Main model: gemini/pro with diff edit format  

#### What is this?  
#### Tell me all.  

It is a library:

#### A heading of the model's

> and a quotation

    code

> Tokens: 12k sent, 1.5k cache write, 3k cache hit, 950 received. Cost: $0.01 message, $0.02 session.  
> Applied edit to a.py  
"""  # noqa: W291 - by these two spaces aider's own lines are known


def test_each_line_is_the_users_the_tools_or_the_models(tmp_path: Path) -> None:
    found = account(tmp_path, BEGUN + TALK, "chat.md")
    session = found.sessions[0]
    assert found.format == "aider"
    said = "It is a library:\n\n#### A heading of the model's\n\n> and a quotation\n\n    code"
    assert shown(session) == ["user: What is this?\nTell me all.", f"assistant: {said}"]
    assert session.items[1].usage == Usage(7_500, 3_000, 1_500, 950)
    assert session.metadata["model"] == "gemini/pro"
    assert session.metadata["started"] == "2026-01-02 03:04:05"
    assert session.items[0].created_at == 1767323045.0
    assert [line.line for line in found.lines] == list(range(1, (BEGUN + TALK).count("\n") + 1))
    assert [line.fate for line in found.lines].count("item") == 2
    assert [line.fate for line in found.lines].count("merged") == 7


def test_each_start_of_aider_with_something_said_is_a_session(tmp_path: Path) -> None:
    found = account(tmp_path, f"{BEGUN}{TALK}{BEGUN}> nothing  \n{BEGUN}#### hi  \n", "chat.md")
    assert [shown(session)[0] for session in found.sessions] == ["user: What is this?\nTell me all.", "user: hi"]
    assert found.equals == 2
    with pytest.raises(TranscriptError, match="holds 2 sessions"):
        read_transcript(tmp_path / "chat.md")


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("/add a.py", []),
        ("/run ls", []),
        ("!ls", []),
        ("/ask why?", ["user: why?"]),
        ("/code", []),
        ("/home/a is broken", ["user: /home/a is broken"]),
    ],
)
def test_commands_are_aiders_own_but_those_that_ask_the_model(tmp_path: Path, typed: str, said: list[str]) -> None:
    found = account(tmp_path, f"{BEGUN}#### {typed}  \n\n#### bye  \n", "chat.md")
    assert shown(found.sessions[0]) == [*said, "user: bye"]


def test_answers_that_a_report_of_tokens_parts_are_responses_each(tmp_path: Path) -> None:
    report = "> Tokens: 1k sent, 10 received.  \n"
    session = account(tmp_path, f"{BEGUN}#### go  \n\nplan\n\n{report}\nedit\n\n{report}{report}", "chat.md").sessions[0]
    assert shown(session) == ["user: go", "assistant: plan", "assistant: edit"]
    assert [item.usage for item in session.items[1:]] == [Usage(1_000, 0, 0, 10)] * 2
    assert request_points(session) == [1, 2]


def test_an_answer_that_a_message_of_aiders_parts_is_one_response(tmp_path: Path) -> None:
    log = f"{BEGUN}#### go  \n\none\n> Retrying in 1 seconds...  \ntwo\n> Tokens: 2M sent, 1,000 received.  \n"
    session = account(tmp_path, log, "chat.md").sessions[0]
    assert shown(session) == ["user: go", "assistant: one\ntwo"]
    assert session.items[1].usage == Usage(2_000_000, 0, 0, 1_000)
    assert request_points(session) == [1]


def test_marks_count_without_their_spaces_where_an_editor_trimmed_them(tmp_path: Path) -> None:
    trimmed = "\n".join(line.rstrip() for line in (BEGUN + "#### hi  \n> ok  \n\nhello\n").split("\n"))
    assert shown(account(tmp_path, trimmed, "chat.md").sessions[0]) == ["user: hi", "assistant: hello"]


@pytest.mark.parametrize("ending", ["\r\n", "\n"])
def test_line_endings_of_windows_are_no_part_of_the_text(tmp_path: Path, ending: str) -> None:
    log = (BEGUN + "#### hi  \n\nhello\nthere\n").replace("\n", ending).encode()
    assert shown(account(tmp_path, log, "chat.md").sessions[0]) == ["user: hi", "assistant: hello\nthere"]


@pytest.mark.parametrize(
    "tail", ["> Tokens: 1.2.3k sent, 9 received.  \n", "> Tokens: 9" + "9" * 5_000 + "M sent, 1 received.  \n", "\x00\ud83d\n"]
)
def test_strange_reports_and_characters_are_no_failure(tmp_path: Path, tail: str) -> None:
    log = (BEGUN + "#### hi  \n\nhello\n" + tail).encode("utf-8", "surrogatepass")
    assert shown(account(tmp_path, log, "chat.md").sessions[0])[:1] == ["user: hi"]


def test_a_history_in_which_nobody_speaks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match="nobody says anything"):
        account(tmp_path, BEGUN + "> Aider v0.84.0  \n", "chat.md")
