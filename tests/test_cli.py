"""The command line: its numbers, its exit codes, its one line for each fault, and files that are whole or not there."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from context_window import ContextWindow, ContextWindowManager, Session
from context_window.cli import run
from session.providers import validate_anthropic
from session.transcripts import read_transcript
from tests.support.screens import ESCAPES, long_session, read_report, saved

COMMANDS = ("demo", "usage", "plan", "process")
POSIX = pytest.mark.skipif(os.name != "posix", reason="signals, links and permissions as POSIX has them")

Said = tuple[int, str, str]


class Shell:
    """Runs the command line here, and says how it ended and what it printed."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture

    def __call__(self, *args: object) -> Said:
        code = run([str(arg) for arg in args])
        said = self._capture.readouterr()
        return code, said.out, said.err


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    monkeypatch.setenv("COLUMNS", "100")
    return Shell(capsys)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return saved(long_session(), tmp_path / "session.json")


def program(*args: str) -> list[str]:
    """The command line of a process of its own."""
    return [sys.executable, "-m", "context_window", *args]


ROOT = Path(__file__).resolve().parents[1]


# What it shows


def test_usage_shows_the_managers_numbers(shell: Shell, path: str) -> None:
    code, out, err = shell("usage", path, "--max-tokens", 3000)
    usage = ContextWindowManager(context_window=ContextWindow(max_tokens=3000)).get_token_usage(long_session())
    shown = read_report(out)
    assert (code, err) == (0, "")
    assert shown.rows == {name: usage[name] for name in shown.rows}
    assert len(shown.rows) == 5
    assert (shown.total, shown.over) == (usage["total"], -usage["available"])
    assert "holds no system prompt" not in out


def test_usage_as_json_is_the_same(shell: Shell, path: str) -> None:
    values = json.loads(shell("usage", path, "--json")[1])
    shown = read_report(shell("usage", path)[1])
    report = ContextWindowManager().usage(read_transcript(path), title="session.json").to_dict()
    assert {name: values[name] for name in report if name != "budget_from"} == {
        name: report[name] for name in report if name != "budget_from"
    }
    assert shown.rows == {name: row["tokens"] for name, row in values["categories"].items()} | {"overhead": values["overhead"]}
    assert values["total"] == shown.total == values["overhead"] + sum(row["tokens"] for row in values["categories"].values())
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
    ("model", "options", "told"),
    [
        ("claude-sonnet-4-5", (), r"168,000: what claude-sonnet-4-5, which the transcript names, allows \(window 200,000 less 32,000"),
        ("claude-sonnet-4-5", ("--model", "gpt-4o"), r"96,000: what gpt-4o allows"),
        ("claude-sonnet-4-5", ("--max-tokens", "9000"), r"9,000: set by --max-tokens"),
        ("nobody-knows-1", (), r"128,000: the default, for nobody-knows-1 is not known"),
        (None, (), r"128,000: the default, for the transcript names no model"),
        (None, ("--model", "nobody-knows-1", "--max-tokens", "9000"), r"9,000: set by --max-tokens"),
    ],
)
def test_the_budget_says_where_it_comes_from(shell: Shell, tmp_path: Path, model: str | None, options: tuple[str, ...], told: str) -> None:
    path = saved(long_session(2, model=model), tmp_path / "s.json")
    for command in ("usage", "plan"):
        code, out, _ = shell(command, path, *options)
        assert code == 0
        assert re.search(rf"budget {told}", " ".join(out.split())), out


def test_several_paths_give_a_report_each_and_a_sum(shell: Shell, path: str, tmp_path: Path) -> None:
    other = saved(long_session(3), tmp_path / "other.json")
    code, out, _ = shell("usage", path, other)
    totals = [ContextWindowManager().get_token_usage(read_transcript(one))["total"] for one in (path, other)]
    assert code == 0
    assert out.count("Largest items") == 2
    assert f"2 sessions · {sum(totals):,} tokens in all" in out
    assert [json.loads(line)["total"] for line in shell("usage", path, other, "--json")[1].splitlines()] == totals


def test_a_path_that_fails_does_not_hide_the_others(shell: Shell, path: str) -> None:
    code, out, err = shell("usage", "no-such-file", path)
    assert code == 2
    assert "Largest items" in out
    assert err == "context-window: no-such-file: no such file\n"


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
    own = json.loads(shell("usage", with_agent, "--session", "abc", "--json")[1])
    assert code == 0
    assert re.search(rf"agent abc +{own['total']} +2\n", out)
    assert read_report(out).total != own["total"]
    assert "holds no system prompt" in out
    assert err.startswith("context-window: main.jsonl: line 3: ")
    assert err.count("\n") == 1
    assert [one["agent_id"] for one in json.loads(shell("usage", with_agent, "--json")[1])["other_sessions"]] == ["abc"]


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
        manager = ContextWindowManager(context_window=ContextWindow(max_tokens=3000))
        plan = manager.plan_session(read_transcript(path), one_shot=one_shot)
        assert {name: values[name] for name in plan.to_dict()} == plan.to_dict()
        assert len(values["decisions"]) == len(plan) == values["items"]
        assert values["after"] <= 3000


def test_one_shot_plans_what_trim_session_does() -> None:
    session = long_session()
    manager = ContextWindowManager(context_window=ContextWindow(max_tokens=3000))
    plan = manager.plan_session(session, one_shot=True)
    view = manager.trim_session(session)
    assert [item.id for item in view.items] == [one.item_id for one in plan if one.action.value != "drop"]
    assert plan.after == manager.get_token_usage()["total"]


def test_all_lists_every_run_of_changes(shell: Shell, path: str) -> None:
    options = ("--max-tokens", "700", "--one-shot")
    some, everything = shell("plan", path, *options)[1], shell("plan", path, *options, "--all")[1]
    assert len(everything) >= len(some)
    assert "more like these" not in everything


def test_the_demo_shows_a_trim(shell: Shell) -> None:
    code, out, err = shell("demo")
    totals = [int(found.replace(",", "")) for found in re.findall(r"^([\d,]+) of 20,000 tokens", out, re.MULTILINE)]
    assert (code, err) == (0, "")
    assert totals[0] > 20_000 >= totals[1] > 0
    assert "items change" in out


# What it writes


def test_process_writes_the_view(shell: Shell, path: str, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    code, told, err = shell("process", path, "--max-tokens", 3000, "-o", out)
    manager = ContextWindowManager(context_window=ContextWindow(max_tokens=3000))
    session = read_transcript(path)
    view = manager.process_session(session)
    assert (code, err) == (0, "")
    assert read_transcript(out).to_dict() == view.to_dict()
    total = manager.get_token_usage()["total"]
    before = manager.get_token_usage(session)["total"]
    assert re.fullmatch(
        rf"\d+ of {len(session.items)} items changed \(.*\): {before:,} -> {total:,} tokens of 3,000; wrote .*out\.json\n", told
    )


def test_process_writes_messages_that_anthropic_takes(shell: Shell, path: str, tmp_path: Path) -> None:
    out = tmp_path / "payload.json"
    assert shell("process", path, "--max-tokens", 3000, "--to", "anthropic", "-o", out)[0] == 0
    payload = json.loads(out.read_text(encoding="utf-8"))
    assert set(payload) == {"messages", "system"}
    assert validate_anthropic({"model": "m", "max_tokens": 1, **payload}) == []


def test_what_is_written_fits_when_it_is_read_again(shell: Shell, path: str, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    told = json.loads(shell("process", path, "--max-tokens", 3000, "--one-shot", "--json", "-o", out)[1])
    again = json.loads(shell("usage", out, "--max-tokens", 3000, "--json")[1])
    assert told["after"] == again["total"] <= 3000
    assert (told["output"], told["changed"] > 0) == (str(out), True)


def test_the_view_can_go_to_standard_output(shell: Shell, path: str) -> None:
    code, out, err = shell("process", path, "--max-tokens", 3000, "-o", "-")
    assert code == 0
    assert len(Session.from_dict(json.loads(out)).items) < len(long_session().items)
    assert "items changed" in err


def test_the_transcript_itself_is_never_overwritten(shell: Shell, path: str, tmp_path: Path) -> None:
    before = Path(path).read_bytes()
    (tmp_path / "folder").mkdir()
    for same in (path, tmp_path / "folder" / ".." / "session.json"):
        code, out, err = shell("process", path, "--max-tokens", 3000, "-o", same)
        assert (code, out) == (2, "")
        assert "never overwritten" in err
    assert Path(path).read_bytes() == before


@POSIX
def test_links_and_permissions_stay_as_they_are(shell: Shell, path: str, tmp_path: Path) -> None:
    kept, link = tmp_path / "kept.json", tmp_path / "link.json"
    kept.write_text("old")
    kept.chmod(0o640)
    link.symlink_to(kept)
    assert shell("process", path, "-o", link)[0] == 0
    assert link.is_symlink()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o640
    assert json.loads(kept.read_text(encoding="utf-8"))["id"] == "long"
    mask = os.umask(0o027)
    try:
        assert shell("process", path, "-o", tmp_path / "new.json")[0] == 0
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "new.json").stat().st_mode) == 0o640
    assert sorted(one.name for one in tmp_path.iterdir()) == ["kept.json", "link.json", "new.json", "session.json"]


@POSIX
def test_a_write_that_fails_halfway_leaves_what_was_there(path: str, tmp_path: Path) -> None:
    """The system stops the file at a thousand bytes, as a full disk would. (-B: it would cut off Python's own caches too.)"""
    out = tmp_path / "out.json"
    out.write_text("old")
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "from context_window.cli import main; main(sys.argv[1:])"
    )
    done = subprocess.run(
        [sys.executable, "-B", "-c", code, "process", path, "-o", str(out)], check=False, capture_output=True, text=True, cwd=ROOT
    )
    assert done.returncode == 2
    assert re.fullmatch(r"context-window: .*out\.json cannot be written: .*\n", done.stderr)
    assert out.read_text() == "old"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["out.json", "session.json"]


# How it ends


def test_strict_is_a_promise(shell: Shell, path: str, tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    for command in (("usage", path), ("plan", path), ("process", path, "-o", out)):
        code, _, err = shell(*command, "--max-tokens", 50, "--strict")
        assert code == 1
        assert err.startswith("context-window: ")
        assert err.count("\n") == 1
        assert "over" in err
    assert not out.exists()


def test_without_strict_what_does_not_fit_is_written_and_said(shell: Shell, path: str, tmp_path: Path) -> None:
    code, _, err = shell("process", path, "--max-tokens", 50, "-o", tmp_path / "out.json")
    assert code == 0
    assert "over budget by" in err
    assert "system message" in err
    assert (tmp_path / "out.json").exists()


BAD = {
    "no such file": ("usage", "{tmp}/none.json"),
    "is a folder": ("plan", "{tmp}"),
    "no line of it belongs": ("usage", "{tmp}/binary"),
    "is empty": ("usage", "{tmp}/empty"),
    "cannot be read": ("usage", "{tmp}/damaged.json"),
    "No such option": ("usage", "{path}", "--color"),
    "not in the range": ("usage", "{path}", "--max-tokens", "-5"),
    "not a valid integer": ("plan", "{path}", "--max-tokens", "many"),
    "target_ratio": ("plan", "{path}", "--target-ratio", "nan"),
    "did you mean": ("usage", "{path}", "--model", "claud-sonnet-4-5"),
    "is not known": ("process", "{path}", "--model", "nobody-knows-1", "-o", "{tmp}/out"),
    "Missing argument": ("usage",),
    "Missing option": ("process", "{path}"),
    "No such command": ("shrink", "{path}"),
    "there is no folder": ("process", "{path}", "-o", "{tmp}/none/out"),
    "is a folder; pass -o": ("process", "{path}", "-o", "{tmp}"),
    "have an id that begins with": ("usage", "{path}", "--session", "x"),
    "unexpected extra argument": ("plan", "{path}", "{path}"),
    "is not one of": ("process", "{path}", "--to", "word", "-o", "{tmp}/out"),
}


@pytest.mark.parametrize("told", BAD)
def test_bad_input_is_one_line_and_exit_code_two(shell: Shell, path: str, tmp_path: Path, told: str) -> None:
    (tmp_path / "binary").write_bytes(bytes(range(256)) * 40)
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "damaged.json").write_text('{"version": 1, "id": "s", "items": [{"type": "message"}]}')
    before = sorted(tmp_path.iterdir())
    code, out, err = shell(*(arg.format(tmp=tmp_path, path=path) for arg in BAD[told]))
    assert (code, out) == (2, "")
    assert told.lower() in err.lower()
    assert err.startswith("context-window: ")
    assert err.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_bad_input(shell: Shell, path: str) -> None:
    Path(path).chmod(0)
    assert shell("usage", path)[0] == 2


def test_no_command_shows_the_help_and_fails(shell: Shell) -> None:
    code, out, err = shell()
    assert (code, out) == (2, "")
    assert all(command in err for command in COMMANDS)


@pytest.mark.parametrize("command", [(), *((command,) for command in COMMANDS)])
def test_every_help_has_an_example(shell: Shell, command: tuple[str, ...]) -> None:
    code, out, err = shell(*command, "--help")
    assert (code, err) == (0, "")
    assert re.search(r"Examples?:\n +context-window ", out)
    assert max(map(len, out.split("\n"))) <= 100


def test_names_in_a_session_do_not_steer_the_terminal(shell: Shell, tmp_path: Path) -> None:
    session = Session(id="\x1b[2Jid", metadata={"model": "\x1b]0;model\x07"})
    session.add_message("user", "Hello", message_id="\x1b[31mid\r")
    session.add_function_call("\x1b[5mtool\u202e", {}, "c")
    session.add_function_output("\x1b[5mtool\u202e", "x" * 4000, "c")
    path = saved(session, tmp_path / "odd\x1bname.json")
    for command in (("usage", path), ("plan", path, "--max-tokens", 5), ("process", path, "--max-tokens", 5, "-o", tmp_path / "out")):
        _, out, err = shell(*command)
        assert all(character.isprintable() for character in (out + err).replace("\n", ""))
    assert "\x1b" not in shell("usage", path, "--json")[1]


# In a process of its own


def test_a_reader_who_goes_early_is_no_fault(path: str) -> None:
    """More than a pipe holds is printed, to a reader who takes one byte and leaves."""
    with subprocess.Popen(program("usage", *[path] * 60), stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(1)
        process.stdout.close()
        assert process.wait(60) == 141
        assert process.stderr.read() == b""


@POSIX
def test_ctrl_c_ends_it_quietly() -> None:
    with subprocess.Popen(
        program("usage", "-"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    ) as process:
        assert process.stdin is not None
        process.stdin.write(b" " * (1 << 21))  # more than a pipe holds: when this returns, the command is reading
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 130
        process.stdin.close()
        assert process.stderr is not None
        assert process.stderr.read().strip() == b""


def test_standard_input_is_read(path: str) -> None:
    done = subprocess.run(program("usage", "-", "--json"), input=Path(path).read_bytes(), check=False, capture_output=True, cwd=ROOT)
    assert (done.returncode, done.stderr) == (0, b"")
    values = json.loads(done.stdout)
    assert (values["title"], values["session_id"]) == ("standard input", "long")


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_any_encoding_can_be_printed(tmp_path: Path, encoding: str) -> None:
    session = long_session(4)
    session.add_function_call("日本語", {}, "c")
    path = saved(session, tmp_path / "s.json")
    kept = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    done = subprocess.run(program("plan", path, "--max-tokens", "500"), check=False, capture_output=True, cwd=ROOT, env=kept)
    assert (done.returncode, done.stderr) == (0, b"")
    out = done.stdout.decode(encoding)
    assert out.isascii() == (encoding != "utf-8")
    assert "500" in out


def test_a_path_that_the_encoding_has_not_is_no_fault(path: str, tmp_path: Path) -> None:
    kept = {**os.environ, "PYTHONIOENCODING": "ascii"}
    out = tmp_path / "日本.json"
    done = subprocess.run(program("process", path, "-o", str(out)), check=False, capture_output=True, cwd=ROOT, env=kept)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.endswith(b"??.json\n")
    assert out.exists()


def test_bytes_that_are_written_are_utf_8_whatever_the_terminal_is(tmp_path: Path) -> None:
    session = Session()
    session.add_message("user", "日本語 é")
    path = saved(session, tmp_path / "s.json")
    kept = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(program("process", path, "-o", "-"), check=False, capture_output=True, cwd=ROOT, env=kept)
    assert json.load(io.BytesIO(done.stdout))["items"][0]["content"][0]["text"] == "日本語 é"


def test_help_waits_for_nothing_slow() -> None:
    slow = ("rich", "tiktoken", "genai_prices", "anthropic", "pydantic")
    code = (
        "import sys\nfrom context_window.cli import run\n"
        "for args in (['--help'], ['usage', '--help'], ['process', '--help']): run(args)\n"
        f"print([name for name in {slow!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT)
    assert done.stderr == "[]\n"
