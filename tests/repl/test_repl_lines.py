"""The chat without a terminal: lines from a pipe, commands, errors of one line, money, replays."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import pairwise
from pathlib import Path

import pytest

from context_window import ContextWindow, ContextWindowManager, Extract, Session
from context_window.cli.chat import PROVIDERS
from context_window.display.lines import width_of
from context_window.models import describe_model
from context_window.repl import connection
from context_window.repl.screen import LiveAnswer, Screen
from context_window.repl.turns import turns_of
from session.store import SessionStore
from tests.support.chatting import APIS, USAGE_LINE, environment
from tests.support.screens import long_session, read_report, saved
from tests.support.shared import ROOT
from tests.support.shell import Shell, program
from tests.support.stubs import AnthropicStub, Call, OpenAIResponsesStub, Say, Script, Think, in_order
from tests.support.stubs.server import Refusal

CLAUDE = APIS["anthropic"]
HOSTILE = "\x1b[2J\x1b]0;title\x07 \u202eabc [bold]x[/bold] 漢字 " * 20
Talk = Callable[..., tuple[str, AnthropicStub]]


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Shell:
    for name, value in environment(tmp_path / "home").items():
        monkeypatch.setenv(name, value)
    for name in ("ANTHROPIC_AUTH_TOKEN", "GOOGLE_API_KEY", "ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return Shell(capsys, monkeypatch)


@pytest.fixture
def talk(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Talk:
    """Returns the output of a chat with these lines, and the stub that has answered."""

    def run(*lines: str, script: Script | None = None, options: tuple[object, ...] = ("--max-tokens", 20_000)) -> tuple[str, AnthropicStub]:
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        with AnthropicStub(script) as stub:
            code, out, err = shell("chat", *CLAUDE.arguments(stub), *options)
        assert (code, err) == (0, "")
        assert "\x1b" not in out
        assert max(map(width_of, out.split("\n"))) <= 100
        return out, stub

    return run


@pytest.fixture
def log(tmp_path: Path) -> str:
    return saved(long_session(4, model="claude-sonnet-4-5"), tmp_path / "session.json")


def newest(home: Path) -> Session:
    with SessionStore(home / "sessions.db") as store:
        info = store.latest()
        assert info is not None
        return store.load(info.id)


def flat(text: str) -> str:
    return " ".join(text.split())


# Turns


def test_the_costs_of_the_turns_add_up_to_the_list_price_of_all_requests(talk: Talk, tmp_path: Path) -> None:
    out, stub = talk("first", "use the tool", "/usage", script=in_order([Say("One.")], [Call("recall", {"id": "x"})], [Say("Two.")]))
    lines = [(Decimal(turn), Decimal(session)) for *_, turn, session in USAGE_LINE.findall(out)]
    assert len(lines) == 3
    assert lines[1] == lines[2], "a command costs nothing"
    assert lines[0][0] + lines[1][0] == pytest.approx(lines[1][1], abs=Decimal("0.0001"))
    prices = describe_model(CLAUDE.model).prices
    assert prices is not None
    assert prices.cache_read is not None
    assert prices.cache_write is not None
    reports = [answer["usage"] for answer in stub.answers]
    price = sum(
        report["input_tokens"] * prices.input
        + report["cache_read_input_tokens"] * prices.cache_read
        + report["cache_creation_input_tokens"] * prices.cache_write
        + report["output_tokens"] * prices.output
        for report in reports
    )
    assert len(reports) == 3
    assert lines[-1][1] == pytest.approx(price / 1_000_000, abs=Decimal("0.0001"))


def test_the_usage_line_shows_the_tokens_that_the_report_shows(talk: Talk) -> None:
    out, _ = talk("hello", "/usage")
    [(first, *_), (second, budget, percent, *_)] = USAGE_LINE.findall(out)
    assert first == second == f"{read_report(out).total:,}"
    assert budget == "20,000"
    assert int(percent) == round(read_report(out).total / 200)


def test_a_server_of_ones_own_needs_no_key_and_its_price_is_unknown(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.setattr(sys, "stdin", io.StringIO("Hello\n/model llama-local\nAgain\n"))
    with APIS["openai"].stub() as stub:
        code, out, _ = shell("chat", "--model", "qwen3-local", "--base-url", f"{stub.url}/v1", "--max-tokens", 5_000)
    assert code == 0
    assert [request["model"] for request in stub.requests] == ["qwen3-local", "llama-local"]
    assert out.count("Fine.") == 2
    assert out.count("price unknown") == 3


def test_what_an_answer_holds_cannot_steer_the_terminal(talk: Talk) -> None:
    out, _ = talk(
        "Go", script=lambda _: [Say(HOSTILE), Call(HOSTILE[:60], {"x": HOSTILE})] if "Go" in str(_["messages"][-1]) else [Say("End.")]
    )
    assert not set(out) & set("\x1b\x07\u202e")
    assert "[bold]x[/bold]" in out
    assert "failed" in out


def test_an_answer_is_drawn_as_it_arrives_and_printed_once() -> None:
    screen = Screen()
    screen.console.file = io.StringIO()
    progress = LiveAnswer(screen, "waiting for the model")
    for piece in ("# Half", " a title\n\nand **a par", "agraph"):
        progress.add_text(piece)
    with screen.console.capture() as drawn:
        screen.console.print(progress)
    assert "Half a title" in drawn.get()
    assert "**a paragraph" in drawn.get()
    assert "waiting for the model" in drawn.get()
    assert screen.console.file.getvalue() == ""
    progress.end_text()
    progress.end_text()
    assert screen.console.file.getvalue().count("Half a title") == 1


@pytest.mark.parametrize("name", APIS)
def test_each_text_of_an_answer_is_shown_once_and_thoughts_never(shell: Shell, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    answers = in_order([Think("Secret thought."), Say("First text."), Call("recall", {"id": "x"})], [Think("Hm."), Say("Last text.")])
    monkeypatch.setattr(sys, "stdin", io.StringIO("Go\n"))
    with APIS[name].stub(answers) as stub:
        out = shell("chat", *APIS[name].arguments(stub))[1]
    assert [out.count(text) for text in ("First text.", "· recall", "  recall", "Last text.", "thought")] == [1, 1, 1, 1, 0]
    assert out.index("First text.") < out.index("· recall") < out.index("Last text.")


@pytest.mark.parametrize("encoding", [pytest.param("ascii", marks=pytest.mark.long), "cp1252", "utf-8"])
def test_a_terminal_without_unicode_or_colours_gets_what_it_can_show(tmp_path: Path, encoding: str) -> None:
    answer = "# Title\n\n- one ☃\n- **two**\n\n> said"
    with AnthropicStub(lambda _: [Say(answer)]) as stub:
        env = {**os.environ, **environment(tmp_path), "PYTHONIOENCODING": encoding, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
        done = subprocess.run(
            program("chat", *CLAUDE.arguments(stub)), input=b"Hello\n/help\n", capture_output=True, env=env, cwd=tmp_path, check=True
        )
    assert done.stderr == b""
    out = done.stdout.decode(encoding)
    assert "\x1b" not in out
    assert "one" in out
    assert ("- **two**" in out) is (encoding != "utf-8")


@pytest.mark.parametrize(
    ("status", "kind", "expected"),
    [
        (401, "authentication_error", "Check the API key, and the permissions and credit of its account."),
        (429, "rate_limit_error", "Wait, then go on with the session as it is."),
        (529, "overloaded_error", "wait, then go on with the session as it is."),
        (None, "", "Check the network and the base URL, then go on with the session as it is."),
    ],
)
def test_a_failed_request_is_one_clear_line_and_an_empty_line_asks_again(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, status: int | None, kind: str, expected: str
) -> None:
    def script(_: object) -> list[Say]:
        if status is not None:
            raise Refusal("no", status=status, kind=kind)
        return [Say("It works again.")]

    monkeypatch.setattr(sys, "stdin", io.StringIO("Remember me\n"))
    with AnthropicStub(script) as stub:
        url = stub.url if status else "http://127.0.0.1:9"
        code, out, err = shell("chat", "--model", CLAUDE.model, "--base-url", url)
    assert (code, err) == (0, "")
    assert f"{expected} Nothing is lost: Enter asks again." in flat(out)
    assert "Traceback" not in out
    monkeypatch.setattr(sys, "stdin", io.StringIO("\n"))
    with AnthropicStub(lambda _: [Say("It works again.")]) as stub:
        assert "It works again." in shell("chat", "--continue", "--base-url", stub.url)[1]
        assert "Remember me" in str(stub.requests[0]["messages"])
    assert newest(tmp_path / "home").turn_count() == 1


def test_a_trim_is_reported_and_what_it_took_can_be_recalled(talk: Talk, tmp_path: Path) -> None:
    (tmp_path / "pagetools.py").write_text("def page(number: int) -> str:\n    return f'page {number} ' * 900\n", encoding="utf-8")
    script = in_order(*([Call("page", {"number": number})] for number in range(4)), [Say("Read.")])
    options = ("--max-tokens", 6_000, "--tools", "pagetools:page")
    out, _ = talk("Read", "/plan", "/recall", script=script, options=options)
    assert "tokens freed" in out
    listed = re.findall(r"^(\w{12})  +[\d,]+ tokens +(\w+) +(\w+ output)$", out, re.MULTILINE)
    assert listed
    out, _ = talk(f"/recall {listed[0][0]}", "/recall nothing", options=(*options, "--continue"))
    assert flat("page 0 " * 50) in flat(out)
    assert "nothing" in out


# Commands


def test_a_session_is_saved_loaded_by_the_beginning_of_its_id_and_never_overwritten_by_accident(talk: Talk, tmp_path: Path) -> None:
    talk("The first question")
    first = newest(tmp_path / "home")
    out, _ = talk("The second question", "/save a.json", "/save a.json", "/save --force a.json", "/load", f"/load {first.id[:5]}", "More")
    assert out.count("wrote 3 items to a.json") == 2
    assert "a.json exists; /save --force a.json replaces it" in out
    assert first.id in out
    assert Session.from_dict(json.loads(Path("a.json").read_text(encoding="utf-8"))).turn_count() == 1
    again = newest(tmp_path / "home")
    assert (again.id, again.turn_count()) == (first.id, 2)
    out, stub = talk("/load a.json", "Third", "/load nowhere.json", "/save no/folder", "/save", "/save a\0b")
    assert "The second question" in str(stub.requests[0]["messages"])
    assert "nowhere.json" in out
    assert "no/folder cannot be used: No such file or directory" in out
    assert "pass a file: /save FILE" in out
    with SessionStore(tmp_path / "home" / "sessions.db") as store:
        assert len(store.list()) == 3, "a loaded file is a session of its own"


def test_the_conversation_goes_on_with_a_model_of_another_provider(shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("Hello\n/model gpt-5.2\nAnd you?\n/model gtp-5\n/model gpt-99\n/model nobody\n/model\n"))
    with AnthropicStub(lambda _: [Say("I am Claude.")]) as claude, OpenAIResponsesStub(lambda _: [Say("I am GPT.")]) as gpt:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", claude.url)
        monkeypatch.setenv("OPENAI_BASE_URL", f"{gpt.url}/v1")
        code, out, _ = shell("chat", "--model", CLAUDE.model)
    assert code == 0
    assert "I am Claude." in str(gpt.requests[0]["input"])
    assert "who serves 'nobody'?" in out
    assert "who serves 'gtp-5'? Did you mean gpt-5?" in flat(out)
    assert "the window of gpt-99 is unknown; start the chat with --max-tokens N" in flat(out)
    assert "the model is gpt-5.2;" in out
    assert newest(tmp_path / "home").metadata["model"] == "gpt-5.2"


def test_a_command_is_completed_from_a_prefix_and_a_wrong_one_is_named(talk: Talk) -> None:
    out, stub = talk("/he", "/", "/nonsense x", " /etc/hosts?", "/q", "never sent")
    assert "what fills the window" in out
    assert "several commands begin with /: " in out
    assert "there is no command /nonsense: /usage, /plan" in out
    assert [request["messages"][-1]["content"][0]["text"] for request in stub.requests] == ["/etc/hosts?"]


def test_two_chats_that_continue_one_session_both_keep_what_they_said(
    talk: Talk, shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    talk("Start")
    id = newest(tmp_path / "home").id

    def lines() -> Iterator[str]:
        yield "Mine\n"
        with SessionStore(tmp_path / "home" / "sessions.db") as store:
            other = store.load(id)
            other.add_message("user", "Theirs")
            store.save(other)
        yield "Mine again\n"

    class Typed(io.StringIO):
        typed = lines()

        def readline(self, _: object = -1) -> str:  # type: ignore[override]
            return next(self.typed, "")

    monkeypatch.setattr(sys, "stdin", Typed())
    with AnthropicStub() as stub:
        out = shell("chat", "--continue", "--base-url", stub.url)[1]
    assert f"another chat has continued {id}; this one goes on as " in flat(out)
    with SessionStore(tmp_path / "home" / "sessions.db") as store:
        texts = [[message.text for message in store.load(info.id).messages() if message.role == "user"] for info in store.list()]
    assert sorted(texts) == [["Start", "Mine", "Mine again"], ["Start", "Mine", "Theirs"]]


# Starting


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ((), "which model? Pass --model NAME, or export a key (ANTHROPIC_API_KEY, OPENAI_API_KEY, GEMINI_API_KEY)"),
        (("--continue",), "there is no session to continue yet"),
        (("--model", "gpt-5.2"), "OPENAI_API_KEY is not set"),
        (("--provider", "openai"), "which model?"),
        (("--model", "nobody-knows"), "is unknown"),
        (("--model", "nobody-knows", "--max-tokens", "5000"), "who serves"),
        (("--model", "gpt-5.2", "--base-url", "localhost:8000"), "begin it with http:// or https://"),
        (("--model", "gpt-5.2", "--base-url", "http://\x00"), "the client of openai-responses cannot be made"),
        (("--replay", "{log}", "--continue"), "--replay asks no model: leave out"),
        (("--auto",), "--auto needs --replay"),
        (("--session", "x"), "--session needs --replay"),
        (("--replay", "nowhere.json"), "nowhere.json"),
        (("--replay", "-"), "add --auto"),
        (("--replay", "{log}", "--model", "nobody-knows"), "is unknown"),
        (("--model", "gpt-5.2", "--base-url", "http://127.0.0.1:9", "--tools", "os"), "write MODULE:FUNCTION"),
        (("--model", "gpt-5.2", "--base-url", "http://127.0.0.1:9", "--tools", "no_such_module:f"), "No module named 'no_such_module'"),
        (("--model", "gpt-5.2", "--base-url", "http://127.0.0.1:9", "--tools", "os:nothing"), "nothing"),
        (("--model", "gpt-5.2", "--base-url", "http://127.0.0.1:9", "--mcp", "no-such-program"), "the server does not start"),
        (
            ("--model", "gpt-5.2", "--base-url", "http://127.0.0.1:9", "--mcp", "{python} -c 'raise SystemExit(\"I am broken\")'"),
            "start: I am broken",
        ),
        (("--model", "gpt-5.2", "--base-url", "http://127.0.0.1:9", "--mcp", "'"), "the server does not start"),
    ],
)
def test_an_error_at_the_start_is_one_line(
    shell: Shell, log: str, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...], expected: str
) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name)
    code, out, err = shell("chat", *(arg.replace("{log}", log).replace("{python}", sys.executable) for arg in args))
    assert (code, out) == (2, "")
    assert expected in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(("key", "model"), [("ANTHROPIC_API_KEY", "claude"), ("OPENAI_API_KEY", "gpt"), ("GOOGLE_API_KEY", "gemini")])
def test_the_key_decides_which_model_answers_if_none_is_named(shell: Shell, monkeypatch: pytest.MonkeyPatch, key: str, model: str) -> None:
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv(key, "key")
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    code, out, _ = shell("chat")
    assert code == 0
    assert out.startswith(model)


def test_every_default_model_has_a_window_and_a_price_and_every_provider_is_offered() -> None:
    assert tuple(connection.PROVIDERS) == PROVIDERS
    models = [provider.model for provider in connection.PROVIDERS.values() if provider.model]
    assert [model for model in models if describe_model(model).window is None or describe_model(model).prices is None] == []


def test_a_server_gets_no_key_of_the_models_provider_and_may_die(talk: Talk, tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(
        "import os\nfrom context_window.cli.mcp import server_class\nserver = server_class()('env')\n"
        "@server.tool()\ndef names() -> str:\n    return ' '.join(os.environ)\n"
        "@server.tool()\ndef die() -> str:\n    os._exit(1)\nserver.run()\n",
        encoding="utf-8",
    )
    script = in_order([Call("names")], [Say("Seen.")], [Call("die")], [Call("names")], [Say("Gone.")])
    out, stub = talk("Look", "Die", script=script, options=("--mcp", f"{sys.executable} {tmp_path / 'server.py'}"))
    result = str(stub.requests[1]["messages"][-1])
    assert "CONTEXT_WINDOW_HOME" in result
    assert "API_KEY" not in result
    assert "die failed" in out
    assert "names failed" in out
    assert "Gone." in out


# Replays


@pytest.mark.parametrize("width", [40, 80, 120])
def test_auto_replays_every_turn_with_the_tokens_of_its_view(shell: Shell, log: str, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    code, out, err = shell("chat", "--replay", log, "--auto", "--max-tokens", 3_000)
    assert (code, err) == (0, "")
    assert re.findall(r"turn (\d+) of 6", out) == list("123456")
    assert max(map(width_of, out.splitlines())) <= width
    session, grown = Session.from_dict(json.loads(Path(log).read_text(encoding="utf-8"))), Session()
    manager = ContextWindowManager(
        "claude-sonnet-4-5", context_window=ContextWindow(max_tokens=3_000, keep_first_message=True, strategy=Extract())
    )
    totals = []
    for turn in turns_of(session):
        for item in turn:
            grown.append(item)
        manager.process_session(grown)
        totals.append(f"{manager.get_token_usage()['total']:,}")
    assert re.findall(r"([\d,]+) of 3,000 ?", out.replace("\n", " ")) == totals


def test_the_turns_of_a_log_are_all_of_its_items_and_each_starts_with_a_user_message() -> None:
    for log in (Session(), long_session(3)):
        turns = turns_of(log)
        assert [item for turn in turns for item in turn] == list(log.items)
        assert all(first[-1] is not second[0] and second[0].type == "message" for first, second in pairwise(turns))


def test_a_replay_takes_commands_between_its_turns(shell: Shell, log: str, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "/usage\nhello\n\n/load\n/model gpt-5.2\n/save part.json\n/quit\n\n"
    monkeypatch.setattr(sys, "stdin", io.StringIO(lines))
    code, out, _ = shell("chat", "--replay", log, "--max-tokens", 3_000)
    assert code == 0
    assert re.findall(r"turn (\d+) of 6", out) == list("12")
    assert read_report(out[out.index("what the model sees") :]).total
    assert "a replay takes no messages" in out
    assert "a replay shows only its own log" in out
    assert "the model is now gpt-5.2" in out
    assert Session.from_dict(json.loads(Path("part.json").read_text(encoding="utf-8"))).turn_count() == 2
