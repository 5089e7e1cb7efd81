"""aider's chat history: who wrote each line, sessions, commands, and reported tokens."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pytest

from context_window.spend import find_logs
from context_window.spend.newest import newest_log
from session import TranscriptError, Usage
from session.transcripts import read_transcript
from session.transcripts.aider import FILE
from session.transcripts.reported_requests import read_requests
from session.units import request_points
from tests.support.list_logs import account, shown
from tests.support.shared import TRANSCRIPTS

SESSION_START = "\n# aider chat started at 2026-01-02 03:04:05\n\n"
CHAT_LINES = """\
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
"""  # noqa: W291 - aider marks its lines with these two spaces


def test_each_line_belongs_to_user_tool_or_model(tmp_path: Path) -> None:
    transcript = account(tmp_path, SESSION_START + CHAT_LINES, "chat.md")
    session = transcript.sessions[0]
    assert transcript.format == "aider"
    reply = "It is a library:\n\n#### A heading of the model's\n\n> and a quotation\n\n    code"
    assert shown(session) == ["user: What is this?\nTell me all.", f"assistant: {reply}"]
    assert session.items[1].usage == Usage(7_500, 3_000, 1_500, 950)
    assert session.metadata["model"] == "gemini/pro"
    assert session.metadata["started"] == "2026-01-02 03:04:05"
    assert session.items[0].created_at == 1767323045.0
    assert [line.line for line in transcript.lines] == list(range(1, (SESSION_START + CHAT_LINES).count("\n") + 1))
    assert [line.fate for line in transcript.lines].count("item") == 2
    assert [line.fate for line in transcript.lines].count("merged") == 7


def test_each_start_of_aider_with_a_message_is_a_session(tmp_path: Path) -> None:
    transcript = account(tmp_path, f"{SESSION_START}{CHAT_LINES}{SESSION_START}> nothing  \n{SESSION_START}#### hi  \n", "chat.md")
    assert [shown(session)[0] for session in transcript.sessions] == ["user: What is this?\nTell me all.", "user: hi"]
    assert transcript.main_count == 2
    with pytest.raises(TranscriptError, match="holds 2 sessions"):
        read_transcript(tmp_path / "chat.md")


@pytest.mark.parametrize(
    ("typed", "prompts"),
    [
        ("/add a.py", []),
        ("/run ls", []),
        ("!ls", []),
        ("/ask why?", ["user: why?"]),
        ("/code", []),
        ("/home/a is broken", ["user: /home/a is broken"]),
    ],
)
def test_only_commands_with_a_prompt_reach_the_model(tmp_path: Path, typed: str, prompts: list[str]) -> None:
    transcript = account(tmp_path, f"{SESSION_START}#### {typed}  \n\n#### bye  \n", "chat.md")
    assert shown(transcript.sessions[0]) == [*prompts, "user: bye"]


def test_a_token_report_ends_a_response(tmp_path: Path) -> None:
    report = "> Tokens: 1k sent, 10 received.  \n"
    session = account(tmp_path, f"{SESSION_START}#### go  \n\nplan\n\n{report}\nedit\n\n{report}{report}", "chat.md").sessions[0]
    assert shown(session) == ["user: go", "assistant: plan", "assistant: edit"]
    assert [item.usage for item in session.items[1:]] == [Usage(1_000, 0, 0, 10)] * 2
    assert request_points(session) == [1, 2]


def test_a_message_from_aider_does_not_split_a_response(tmp_path: Path) -> None:
    log = f"{SESSION_START}#### go  \n\none\n> Retrying in 1 seconds...  \ntwo\n> Tokens: 2M sent, 1,000 received.  \n"
    session = account(tmp_path, log, "chat.md").sessions[0]
    assert shown(session) == ["user: go", "assistant: one\ntwo"]
    assert session.items[1].usage == Usage(2_000_000, 0, 0, 1_000)
    assert request_points(session) == [1]


def test_prefixes_count_without_spaces_if_an_editor_removed_them(tmp_path: Path) -> None:
    trimmed = "\n".join(line.rstrip() for line in (SESSION_START + "#### hi  \n> ok  \n\nhello\n").split("\n"))
    assert shown(account(tmp_path, trimmed, "chat.md").sessions[0]) == ["user: hi", "assistant: hello"]


@pytest.mark.parametrize("ending", ["\r\n", "\n"])
def test_windows_line_endings_are_not_part_of_the_text(tmp_path: Path, ending: str) -> None:
    log = (SESSION_START + "#### hi  \n\nhello\nthere\n").replace("\n", ending).encode()
    assert shown(account(tmp_path, log, "chat.md").sessions[0]) == ["user: hi", "assistant: hello\nthere"]


@pytest.mark.parametrize(
    "tail", ["> Tokens: 1.2.3k sent, 9 received.  \n", "> Tokens: 9" + "9" * 5_000 + "M sent, 1 received.  \n", "\x00\ud83d\n"]
)
def test_strange_reports_and_characters_are_tolerated(tmp_path: Path, tail: str) -> None:
    log = (SESSION_START + "#### hi  \n\nhello\n" + tail).encode("utf-8", "surrogatepass")
    assert shown(account(tmp_path, log, "chat.md").sessions[0])[:1] == ["user: hi"]


def test_a_history_without_messages_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match="contains no messages"):
        account(tmp_path, SESSION_START + "> Aider v0.84.0  \n", "chat.md")


def tokens(sent: str, received: str, cost: str = "") -> str:
    return f"> Tokens: {sent} sent, {received} received.{cost}  \n"


def test_each_line_of_tokens_is_a_request_with_the_price_that_it_states(tmp_path: Path) -> None:
    path = tmp_path / FILE
    more = (
        "#### Go on  \n\nYes.\n\n"
        + tokens("3,398", "1.1k")
        + "#### And?  \n\nNo.\n\n"
        + tokens("2M", "5", " Cost: $1,234.5 request, $1,234.52 session.")
    )
    path.write_text(SESSION_START + CHAT_LINES + more, encoding="utf-8")
    requests = read_requests(path).requests
    assert [(one.prompt, one.cache_read, one.output_tokens, one.cost) for one in requests] == [
        (12_000, 3_000, 950, Decimal("0.01")),
        (3_398, 0, 1_100, None),
        (2_000_000, 0, 5, Decimal("1234.5")),
    ]
    assert {(one.tool, one.model, one.project, one.time) for one in requests} == {("aider", "pro", str(tmp_path), 1767323045.0)}


def test_tokens_that_a_model_quotes_are_no_request_and_answers_without_tokens_are_a_fault(tmp_path: Path) -> None:
    """A quotation of the model's lacks the two spaces that end aider's own lines."""
    path = tmp_path / FILE
    path.write_text(SESSION_START + "#### Show it  \n\nIt says:\n> Tokens: 1k sent, 2 received.\n", encoding="utf-8")
    with pytest.raises(TranscriptError, match="has answers of a model, but no usage"):
        read_requests(path)


def test_a_copy_of_a_history_does_not_count_twice(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / FILE).write_text(SESSION_START + CHAT_LINES, encoding="utf-8")
    paths = find_logs([str(tmp_path)])
    assert [path.name for path in paths] == [FILE, FILE]
    assert len({one.id for path in paths for one in read_requests(path).requests}) == 1


def test_the_history_of_a_folder_or_of_one_above_it_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    (tmp_path / FILE).write_text(SESSION_START + CHAT_LINES, encoding="utf-8")
    assert find_logs(environment={}, home=tmp_path / "home", folder=below) == [tmp_path / FILE]
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    monkeypatch.chdir(below)
    assert newest_log(below) == tmp_path / FILE


@pytest.mark.skipif(not TRANSCRIPTS.is_dir(), reason="there are no recorded transcripts")
def test_recorded_histories_cost_what_their_lines_say() -> None:
    """The costs are those of a count with one expression, and each session's sum is what its last line says, but for rounding."""
    for path in sorted((TRANSCRIPTS / "aider").rglob("*.md")):
        lines = re.findall(r"^> Tokens: .*Cost: \$([\d.]+) message, \$([\d.]+) session\.  $", path.read_text("utf-8"), re.MULTILINE)
        requests = [one for one in read_requests(path).requests if one.cost is not None]
        assert [one.cost for one in requests] == [Decimal(cost) for cost, _ in lines]
        totals = [float(total) for _, total in lines]
        ends = [total for total, after in zip(totals, [*totals[1:], 0.0], strict=True) if after < total]
        assert sum(ends) == pytest.approx(float(sum(one.cost or 0 for one in requests)), abs=0.006 * len(requests))
