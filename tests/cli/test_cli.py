"""The command line: its numbers are the manager's, in every form in which it shows them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from context_window import Action, ContextWindow, ContextWindowManager, DropOldest, Extract, PriorityTrim, Session, Strategy
from session import Message, Usage
from session.identity import is_digest
from session.items import parts_of_item
from session.parts import Text
from session.transcripts import read_transcript
from session.transcripts.detect import ALL_FORMATS
from tests.support.claude_lines import Log
from tests.support.claude_lines import text as text_block
from tests.support.screens import ESCAPES, long_session, read_report, saved
from tests.support.shared import ROOT
from tests.support.shell import Shell
from tests.support.tool_logs import codex, codex_said, write_lines


def test_usage_shows_the_managers_numbers(shell: Shell, path: str) -> None:
    code, out, err = shell("usage", path, "--max-tokens", 3000)
    usage = ContextWindowManager(context_window=ContextWindow(max_tokens=3000, keep_first_message=True)).get_token_usage(long_session())
    report = read_report(out)
    assert (code, err) == (0, "")
    assert report.rows == {name: usage[name] for name in report.rows}
    assert len(report.rows) == 5
    assert (report.total, report.over) == (usage["total"], -usage["available"])
    assert "has no system prompt" not in out


def test_usage_as_json_is_the_same(shell: Shell, path: str) -> None:
    values = json.loads(shell("usage", path, "--json")[1])
    printed = read_report(shell("usage", path)[1])
    report = ContextWindowManager().usage(read_transcript(path), title="session.json").to_dict()
    assert {name: values[name] for name in report if name != "budget_from"} == {
        name: report[name] for name in report if name != "budget_from"
    }
    assert printed.rows == {name: row["tokens"] for name, row in values["categories"].items()} | {"overhead": values["overhead"]}
    assert values["total"] == printed.total == values["overhead"] + sum(row["tokens"] for row in values["categories"].values())
    assert values["other_sessions"] == []


def test_output_that_is_piped_is_plain_text(shell: Shell, path: str) -> None:
    for command in ("usage", "plan"):
        out = shell(command, path)[1]
        assert "\x1b" not in out
        assert max(map(len, out.split("\n"))) <= 100


def test_colours_can_be_forced_and_forbidden(shell: Shell, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = shell("usage", path)[1]
    monkeypatch.setenv("FORCE_COLOR", "1")
    coloured = shell("usage", path)[1]
    assert "\x1b[" in coloured
    assert ESCAPES.sub("", coloured) == plain
    monkeypatch.setenv("NO_COLOR", "1")
    assert shell("usage", path)[1] == plain


@pytest.mark.parametrize(
    ("model", "options", "expected"),
    [
        ("claude-sonnet-4-5", (), r"168,000: the limit of claude-sonnet-4-5, the transcript's model \(window 200,000 minus 32,000"),
        ("claude-sonnet-4-5", ("--model", "gpt-4o"), r"96,000: the limit of gpt-4o"),
        ("claude-sonnet-4-5", ("--max-tokens", "9000"), r"9,000: set by --max-tokens"),
        ("nobody-knows-1", (), r"128,000: the default, because the limit of nobody-knows-1 is unknown"),
        (None, (), r"128,000: the default, because the transcript names no model"),
        (None, ("--model", "nobody-knows-1", "--max-tokens", "9000"), r"9,000: set by --max-tokens"),
    ],
)
def test_the_budget_says_where_it_comes_from(
    shell: Shell, tmp_path: Path, model: str | None, options: tuple[str, ...], expected: str
) -> None:
    path = saved(long_session(2, model=model), tmp_path / "s.json")
    for command in ("usage", "plan"):
        code, out, _ = shell(command, path, *options)
        assert code == 0
        assert re.search(rf"budget {expected}", " ".join(out.split())), out


STATED = {"tokens": 121_600, "evidence": "stated"}
COMPACTED = {"tokens": 200_000, "evidence": "compaction", "at": 174_247}
REQUEST = {"tokens": 1_000_000, "evidence": "request", "at": 230_000}
DEFAULT = r"922,000: the limit of gpt-5.5, the transcript's model \(window 1,050,000 minus 128,000 reserved for the answer\)"


@pytest.mark.parametrize(
    ("window", "options", "expected"),
    [
        (STATED, (), "121,600: the window of 121,600 tokens that the log states counted"),
        (STATED, ("--model", "gpt-5.5"), "121,600: the window of 121,600 tokens that the log states counted"),
        (STATED, ("--max-tokens", "9000"), "9,000: set by --max-tokens"),
        (STATED, ("--model", "gpt-4o"), "96,000: the limit of gpt-4o"),  # the log says nothing of another model
        (COMPACTED, (), r"168,000: a window of 200,000 tokens, since the log was compacted at 174,247 \(window 200,000 minus 32,000"),
        (REQUEST, (), "922,000: a window of 1,000,000 tokens, since the log has a request of 230,000"),
        *(
            (wrong, (), DEFAULT)
            for wrong in (
                None,
                121_600,
                {},
                {"tokens": "many", "evidence": "stated"},
                {"tokens": 9, "evidence": "compaction"},
                {"tokens": 9},
            )
        ),
    ],
)
def test_the_window_of_the_log_replaces_the_models(
    shell: Shell, tmp_path: Path, window: object, options: tuple[str, ...], expected: str
) -> None:
    """The log's own statement wins over the table, and --max-tokens over both."""
    session = long_session(2, model="gpt-5.5")
    session.metadata["context_window"] = window
    path = saved(session, tmp_path / "s.json")
    for command in ("usage", "plan"):
        code, out, err = shell(command, path, *options)
        assert (code, err) == (0, "")
        assert re.search(rf"budget {expected}", " ".join(out.split())), out


@pytest.mark.parametrize("evidence", ["stated", "compaction"])
@pytest.mark.parametrize("model", ["gpt-5.5", "nobody-knows-1", None])
def test_a_window_smaller_than_a_prompt_that_the_provider_took_is_said_to_be_wrong(
    evidence: str, model: str | None, shell: Shell, tmp_path: Path
) -> None:
    session = long_session(2, model=model)
    session.metadata["context_window"] = {"tokens": 2_432, "evidence": evidence, "at": 2_000}
    session.append(Message("assistant", "As I said.", usage=Usage(2_000, cache_read_tokens=23_050), extra={"model": "another"}))
    path = saved(session, tmp_path / "s.json")
    assert "budget 2,432" in " ".join(shell("usage", path)[1].split()) or evidence == "compaction"
    session.append(Message("assistant", "Done.", usage=Usage(2_000, cache_read_tokens=23_050)))
    budget = {"gpt-5.5": "922,000: the limit of gpt-5.5", "nobody-knows-1": "128,000: the default", None: "128,000: the default"}[model]
    for command in ("usage", "plan"):
        code, out, err = shell(command, saved(session, tmp_path / "s.json"))
        assert (code, err) == (0, "")
        assert f"budget {budget}" in (text := " ".join(out.split()))
        assert re.search(r"2,432 tokens,? .{0,60}cannot be right: the provider took a prompt of 25,050", text), out


@pytest.mark.parametrize("budget", [150, 300, 100_000])
def test_usage_and_plan_count_a_compacted_log_alike(shell: Shell, tmp_path: Path, budget: int) -> None:
    """The request before the trim is the same, and so are the words for what the tool's own summary replaced."""
    talk = [codex_said(role, f"{role} {number} " + "word " * 40) for number in range(6) for role in ("user", "assistant")]
    compacted = codex("compacted", message="So far.", replacement_history=[talk[0]["payload"]])
    path = write_lines(tmp_path, [codex("turn_context", model="gpt-5.5"), *talk, compacted, codex_said("user", "go on")])
    usage = shell("usage", path, "--max-tokens", budget)[1]
    plan = shell("plan", path, "--max-tokens", budget)[1]
    (total,) = re.findall(r"^([\d,]+) of", usage, re.MULTILINE)
    (before,) = re.findall(r"^before .* ([\d,]+)$", plan, re.MULTILINE)
    (words,) = re.findall(r"10 items \([\d,]+ tokens\) replaced by summaries in the log", usage)
    assert (total, f"Not counted: {words}.") == (before, next(line for line in plan.splitlines() if line.startswith("Not counted")))


def test_thinking_that_the_tool_of_the_log_keeps_is_counted_for_a_model_that_would_drop_it(shell: Shell, tmp_path: Path) -> None:
    log = Log()
    log.user("look")
    thought = {"type": "thinking", "thinking": "so long a thought " * 50, "signature": "s"}
    log.answer("m1", thought, text_block("so"), model="claude-haiku-4-5")
    log.user("and?")
    path = log.write(tmp_path)
    session = read_transcript(path)
    dropped = ContextWindowManager("claude-haiku-4-5").usage(session).total
    assert json.loads(shell("usage", path, "--json")[1])["total"] > dropped + 100


def test_a_replay_has_the_window_of_the_log(shell: Shell, tmp_path: Path) -> None:
    session = long_session(2, model="gpt-5.5")
    session.metadata["context_window"] = STATED
    assert "of 121,600 tokens" in shell("chat", "--replay", saved(session, tmp_path / "s.json"), "--auto")[1]


def test_a_budget_above_the_largest_prompt_is_warned_of(shell: Shell, path: str) -> None:
    warning = (
        "the budget of 300,000 tokens is larger than the largest prompt of gpt-5, 272,000 tokens; the model will refuse larger requests"
    )
    assert warning in shell("usage", path, "--model", "gpt-5", "--max-tokens", 300_000)[2]
    assert shell("usage", path, "--model", "gpt-5", "--max-tokens", 272_000)[2] == ""


@pytest.mark.parametrize(("command", "rest"), [("usage", ()), ("plan", ()), ("process", ("-o", os.devnull))])
def test_a_budget_above_the_models_window_is_warned_of(shell: Shell, path: str, command: str, rest: tuple[str, ...]) -> None:
    code, _, err = shell(command, path, "--model", "gpt-4", "--max-tokens", 9000, *rest)
    warning = "the budget of 9,000 tokens is larger than the window of gpt-4, 8,192 tokens; the model will refuse larger requests"
    assert (code, err.splitlines()[0]) == (0, f"context-window: {warning}")
    assert "window of" not in shell(command, path, "--model", "gpt-4", "--max-tokens", 8192, *rest)[2]
    assert shell("usage", path, path, "--model", "gpt-4", "--max-tokens", 9000)[2].count(warning) == 1


def test_several_paths_give_a_table_with_a_row_each(shell: Shell, path: str, tmp_path: Path) -> None:
    other = saved(long_session(3), tmp_path / "other.json")
    code, out, _ = shell("usage", path, other)
    totals = [ContextWindowManager().get_token_usage(read_transcript(transcript))["total"] for transcript in (path, other)]
    assert code == 0
    assert "Largest items" not in out
    rows = [line.split() for line in out.splitlines()[1:3]]
    assert [row[0] for row in rows] == ["session.json", "other.json"]
    assert all(f"{total:,}" in row for row, total in zip(rows, totals, strict=True))
    assert f"{sum(totals):,}" not in out  # a sum of last windows is nothing that was paid
    assert shell("usage", tmp_path)[1].splitlines()[1:3] == [*reversed(out.splitlines()[1:3])]
    assert [json.loads(line)["total"] for line in shell("usage", path, other, "--json")[1].splitlines()] == totals


def test_a_path_that_fails_does_not_hide_the_others(shell: Shell, path: str) -> None:
    code, out, err = shell("usage", "no-such-file", path)
    assert code == 2
    assert "Largest items" in out
    assert err == "context-window: no-such-file: no such file\n"


def test_a_folder_without_logs_is_bad_input(shell: Shell, tmp_path: Path) -> None:
    code, out, err = shell("usage", tmp_path)
    assert (code, out) == (2, "")
    assert err == f"context-window: no logs found in {tmp_path}; pass the path of a log or of a folder of logs\n"


def claude_lines(*texts: str, session: str, agent: str | None = None) -> Iterator[str]:
    for number, text in enumerate(texts):
        role = "assistant" if number % 2 else "user"
        about = {"isSidechain": True, "agentId": agent} if agent else {"isSidechain": False}
        message = {"role": role, "content": text if role == "user" else [{"type": "text", "text": text}]}
        yield json.dumps(
            {
                "type": role,
                "uuid": f"{session}-{agent}-{number}",
                "parentUuid": f"{session}-{agent}-{number - 1}" if number else None,
                "timestamp": f"2026-01-01T00:00:0{number}Z",
                "sessionId": session,
                "message": message,
                **about,
            }
        )


@pytest.fixture
def with_agent(tmp_path: Path) -> str:
    """A transcript whose session has a sub-agent, and a line that is cut off."""
    path = tmp_path / "main.jsonl"
    path.write_text("\n".join([*claude_lines("Hello", "Hi", session="main"), '{"type": "user", "mess']), encoding="utf-8")
    (tmp_path / "main" / "subagents").mkdir(parents=True)
    agent = "\n".join(claude_lines("Look it up, at length, please", "Done", session="main", agent="abc"))
    (tmp_path / "main" / "subagents" / "agent-abc.jsonl").write_text(agent, encoding="utf-8")
    return str(path)


def test_sub_agents_have_a_line_each_and_can_be_asked_for(shell: Shell, with_agent: str) -> None:
    code, out, err = shell("usage", with_agent)
    agent_report = json.loads(shell("usage", with_agent, "--session", "abc", "--json")[1])
    assert code == 0
    assert re.search(rf"agent abc +{agent_report['total']} +2\n", out)
    assert read_report(out).total != agent_report["total"]
    assert "has no system prompt" in out
    assert err.startswith("context-window: main.jsonl: line 3: ")
    assert err.count("\n") == 1
    assert [other_session["agent_id"] for other_session in json.loads(shell("usage", with_agent, "--json")[1])["other_sessions"]] == ["abc"]


def test_sessions_of_equal_rank_have_to_be_told_apart(shell: Shell, tmp_path: Path) -> None:
    path = tmp_path / "two.jsonl"
    path.write_text(
        "\n".join([*claude_lines("Hello", "Hi", session="one"), *claude_lines("Hello you", "Hi", session="two")]), encoding="utf-8"
    )
    code, out, err = shell("plan", path)
    assert (code, out) == (2, "")
    assert "pick one with --session" in err
    assert shell("plan", path, "--session", "two")[0] == 0
    assert shell("usage", path)[0] == 0
    assert shell("plan", path, "--session", "three")[0] == 2


def test_the_plan_as_json_has_every_decision(shell: Shell, path: str) -> None:
    for options, one_shot in ((), False), (("--one-shot",), True):
        values = json.loads(shell("plan", path, "--max-tokens", 3000, "--json", *options)[1])
        manager = ContextWindowManager(context_window=ContextWindow(max_tokens=3000, keep_first_message=True))
        plan = manager.plan_session(read_transcript(path), one_shot=one_shot)
        assert {name: values[name] for name in plan.to_dict()} == plan.to_dict()
        assert len(values["decisions"]) == len(plan) == values["items"]
        assert values["after"] <= 3000


def test_one_shot_plans_what_trim_session_does() -> None:
    session = long_session()
    manager = ContextWindowManager(context_window=ContextWindow(max_tokens=3000, keep_first_message=True))
    plan = manager.plan_session(session, one_shot=True)
    view = manager.trim_session(session)
    assert [item.id for item in view.items] == [decision.item_id for decision in plan if decision.action.value != "drop"]
    assert plan.after == manager.get_token_usage()["total"]


def test_all_lists_every_run_of_changes(shell: Shell, path: str) -> None:
    options = ("--max-tokens", "700", "--one-shot")
    some, everything = shell("plan", path, *options)[1], shell("plan", path, *options, "--all")[1]
    assert len(everything) >= len(some)
    assert not re.search(r"^(…|\.\.) and [\d,]+ more$", everything, re.MULTILINE)


def test_the_demo_shows_a_trim(shell: Shell) -> None:
    code, out, err = shell("demo")
    totals = [int(number.replace(",", "")) for number in re.findall(r"^([\d,]+) of 32,000 tokens", out, re.MULTILINE)]
    assert (code, err) == (0, "")
    assert totals[0] > 32_000 >= totals[1] > 0
    assert "items change" in out
    picture = re.findall(r"([\d,]+) tokens\n.*?([\d,]+) of 32,000", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert picture == [(f"{totals[0]:,}", f"{totals[1]:,}")]


@pytest.mark.parametrize(
    ("count", "expected"), [(0, ""), (1, "1 tool output has no call in the log"), (3, "3 tool outputs have no call in the log")]
)
def test_usage_says_what_of_a_log_no_request_can_hold(shell: Shell, tmp_path: Path, count: int, expected: str) -> None:
    outputs = [{"role": "tool", "tool_call_id": f"c{number}", "content": "x"} for number in range(count)]
    log = tmp_path / "log.json"
    log.write_text(json.dumps([*outputs, {"role": "user", "content": "hi"}]), encoding="utf-8")
    code, out, _ = shell("usage", log)
    assert code == 0
    assert expected in " ".join(out.split())
    assert ("in the log" in out) == bool(count)


READABLE = {
    "claude_code": "Claude Code",
    "codex": "Codex",
    "copilot_cli": "Copilot CLI",
    "gemini_cli": "Gemini CLI",
    "opencode": "opencode",
    "pi": "pi",
    "qwen": "Qwen Code",
    "cursor": "Cursor",
    "droid": "droid",
    "grok": "Grok",
    "kimi": "Kimi",
    "amp": "Amp",
    "goose": "Goose",
    "crush": "crush",
    "hermes": "Hermes",
    "atif": "ATIF",
    "otel": "OpenTelemetry",
    "langfuse": "Langfuse",
    "cline": "Cline",
    "mini_swe_agent": "mini-swe-agent",
    "swe_agent": "SWE-agent",
    "openhands": "OpenHands",
    "aider": "aider",
    "message_lists": "OpenAI, Anthropic",
    "session_json": "saved",
}
"""By format: its name for people."""


@pytest.mark.parametrize("command", ["usage", "plan", "process", "convert"])
def test_every_format_is_named_where_a_newcomer_looks(shell: Shell, command: str) -> None:
    assert READABLE.keys() == {form.NAME for form in ALL_FORMATS}
    help_text = " ".join(shell(command, "--help")[1].split()).replace("- ", "-")  # a name may be wrapped at its hyphens
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for name in READABLE.values():
        assert re.search(rf"\b{name}\b", help_text)
        assert re.search(rf"\b{name}\b", readme)


def coded_session() -> Session:
    """A session whose outputs have lines of different value."""
    session = Session(id="s")
    session.add_message("user", "Why does parse_rows fail?")
    for number in range(12):
        call = session.add_function_call("read_file", {"path": f"src/module_{number}.py"})
        lines = [f"value_{number}_{line} = parse_rows(source, limit={line}00)" for line in range(30)]
        session.add_function_output("read_file", "\n".join(lines), call.call_id)
    session.add_message("user", "Go on.")
    return session


@pytest.mark.parametrize(
    ("line", "strategy"),
    [([], Extract()), (["--strategy", "priority"], PriorityTrim()), (["--strategy", "drop-oldest"], DropOldest())],
    ids=["unset", "priority", "drop-oldest"],
)
def test_the_chat_keeps_the_most_valuable_lines_unless_told_otherwise(
    line: list[str], strategy: Strategy, shell: Shell, tmp_path: Path
) -> None:
    session = coded_session()
    manager = ContextWindowManager(context_window=ContextWindow(max_tokens=3000, keep_first_message=True, strategy=strategy))
    manager.process_session(session)
    code, out, err = shell("chat", "--replay", saved(session, tmp_path / "coded.json"), "--auto", "--max-tokens", 3000, *line)
    assert (code, err) == (0, "")
    totals = re.findall(r"([\d,]+) of 3,000 tokens", out)
    assert totals[-1] == f"{manager.get_token_usage()['total']:,}"


def test_a_plan_with_extracts_shows_the_largest_as_the_model_sees_it(shell: Shell, tmp_path: Path) -> None:
    session = coded_session()
    window = ContextWindow(max_tokens=3000, keep_first_message=True, strategy=Extract())
    manager = ContextWindowManager(context_window=window)
    view, plan = manager.process_session(session), manager.plan_session(session)
    extracts = [decision for decision in plan if decision.action is Action.EXTRACT]
    freed = max(decision.before - decision.after for decision in extracts)
    largest = [decision.item_id for decision in extracts if decision.before - decision.after == freed]  # they can tie
    path = saved(session, tmp_path / "coded.json")
    code, out, err = shell("plan", path, "--max-tokens", 3000, "--strategy", "extract")
    assert (code, err) == (0, "")
    assert "extracted " in out
    sections = [part.text for item in view.items if is_digest(item) for part in parts_of_item(item) if isinstance(part, Text)]
    texts = [text for text in sections if text.split("\n")[0].endswith(tuple(f" {item_id}" for item_id in largest))]
    assert any("\n".join(f"  {line}" for line in text.split("\n")[:3]) in out for text in texts)
    written = tmp_path / "view.json"
    assert shell("process", path, "--max-tokens", 3000, "--strategy", "extract", "-o", str(written))[0] == 0
    assert [item["id"] for item in json.loads(written.read_text(encoding="utf-8"))["items"]] == [item.id for item in view.items]
