"""What people typed who had never seen it, and what they should have read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from context_window import ArgumentError, manage
from context_window.spend import SpendCache, cache_file
from context_window.spend.log_files import log_files
from tests.spend.logs import answer, write
from tests.support.claude_lines import Log, text
from tests.support.shell import Shell


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Shell:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.chdir(tmp_path)
    return Shell(capsys, monkeypatch)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["spend", "weak"], "weak is neither a file nor a period; did you mean week?"),
        (["spend", "last", "moth"], "did you mean last month?"),
        (["spend", "2026-13"], "2026-13 is neither a file nor a period; periods are week, last month"),
        (["spend", "--by", "caus"], "Did you mean cause?"),
        (["usage", "x", "--strategy", "extrct"], "Did you mean extract?"),
        (["setup", "claude"], "Did you mean claude-code?"),
        (["spnd"], "No such command 'spnd'. Did you mean spend?"),
        (["where"], "Without a command, it shows what sessions have cost."),
    ],
)
def test_a_word_of_no_vocabulary_names_those_that_are_alike(shell: Shell, words: list[str], said: str) -> None:
    code, out, err = shell(*words)
    assert (code, out) == (2, "")
    assert said in err


def test_a_filter_that_nothing_passes_says_what_there_is(shell: Shell, tmp_path: Path) -> None:
    write(tmp_path / "claude" / "projects" / "p" / "a.jsonl", answer("m", 1))

    def said(*words: str) -> str:
        _, out, err = shell("spend", *words)
        return " ".join(f"{out} {err}".split())

    assert "none passes the filters. The newest is of 2026-03-25." in said("today")
    assert "None is of the model opuss; did you mean claude-opus-4-6?" in said("--model", "opuss")
    assert "None is of the tool claude; did you mean claude_code?" in said("--tool", "claude", "--csv")
    assert "None is of the project x; there are shop." in said("--project", "x", "--by", "cause")
    assert "2026-03-01 to 2026-03-31, model *opus*: 1 of 1 request." in said("2026-03", "--model", "*opus*")
    for grouping in ("day", "cause"):
        report = json.loads(shell("spend", "--since", "2026-03", "--by", grouping, "--json")[1])
        assert (report["since"], report["until"]) == ("2026-03-01", None)


def test_only_logs_of_the_period_are_explained(shell: Shell, tmp_path: Path) -> None:
    logs = tmp_path / "claude" / "projects" / "p"
    for month in "34":
        write(logs / f"{month}.jsonl", answer(f"m{month}", 1, timestamp=f"2026-0{month}-25T12:00:00Z"))
    assert json.loads(shell("spend", "2026-04", "--by", "cause", "--json")[1])["total"]["requests"] == 1
    with SpendCache(cache_file()) as cache:
        rows = [cache.get(log) for log in log_files(logs.iterdir())]
    assert [row and row.is_explained for row in rows] == [False, True]


def test_a_session_is_found_by_the_beginning_of_its_id(shell: Shell, tmp_path: Path) -> None:
    for name in ("0d3c1111-aaaa", "0d3c2222-bbbb"):
        log = Log()
        log.user("Hi.")
        log.answer("m1", text("Hello."), usage={"input_tokens": 9, "output_tokens": 1})
        log.write(tmp_path / "claude" / "projects" / "p", f"{name}.jsonl")
    code, out, err = shell("timeline", "0d3c1111", "--json")
    assert (code, json.loads(out)["path"]) == (0, str(tmp_path / "claude" / "projects" / "p" / "0d3c1111-aaaa.jsonl"))
    assert err.startswith("context-window: reading ")
    code, _, err = shell("usage", "0d3c11112222")
    assert (code, "no such file" in err) == (2, True)
    code, _, err = shell("timeline", "0d3c-", "--why")
    assert (code, "no such file" in err) == (2, True)


def test_sessions_are_shown_by_the_part_of_the_id_that_finds_them_their_day_folder_and_first_words(shell: Shell, tmp_path: Path) -> None:
    for id_ in ("0d3c1111-aaaa-1", "0d3c2222-bbbb-1", "0d3c2222-cccc-1"):
        user = {
            "type": "user",
            "uuid": "u",
            "sessionId": id_,
            "cwd": "/home/me/shop",
            "message": {"role": "user", "content": f"Hi, {id_[9:]}."},
        }
        write(tmp_path / "claude" / "projects" / "p" / f"{id_}.jsonl", user, answer(f"m{id_}", 1, sessionId=id_))
    lines = shell("spend", "--by", "session")[1].splitlines()[1:4]
    names = [
        f"{id_} 2026-03-25 shop: Hi, {words}."
        for id_, words in (("0d3c1111", "aaaa-1"), ("0d3c2222-bbbb", "bbbb-1"), ("0d3c2222-cccc", "cccc-1"))
    ]
    assert [line.startswith(name) for line, name in zip(lines, names, strict=True)] == 3 * [True]


def test_the_first_screen_says_where_limits_come_from(shell: Shell, tmp_path: Path) -> None:
    write(tmp_path / "claude" / "projects" / "p" / "a.jsonl", answer("m", 1))
    assert "setup claude-code shows your plan's limits here" in " ".join(shell()[1].split())


HAYSTACK: list[Any] = [
    {"role": "user", "content": [{"text": "Look."}], "meta": {}, "name": None},
    {"role": "assistant", "content": [{"tool_call": {"tool_name": "ls", "arguments": {}, "id": "c"}}], "meta": {}, "name": None},
    {"role": "tool", "content": [{"tool_call_result": {"result": "a", "origin": {}, "error": False}}], "meta": {}, "name": None},
]


@pytest.mark.parametrize("head", [[], [{"role": "system", "content": [{"text": "Be brief."}]}]])
def test_messages_of_a_framework_that_manage_does_not_know_are_refused(head: list[Any]) -> None:
    """Not read as another format's, which would lose their calls and results."""
    with pytest.raises(ArgumentError, match="has no type and only 'tool_call'"):
        manage([*head, *HAYSTACK], model="gpt-5")
