"""How the command line ends: an exit code, one line for each fault, and nothing that steers a terminal."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from context_window import Session
from context_window.cli import commands
from context_window.cli.output import error_text
from tests.support.screens import long_session, saved
from tests.support.shell import HERE, POSIX, Shell, program


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


COMMANDS = ("demo", "usage", "timeline", "spend", "report", "plan", "process")

BAD = {
    "no such file": ("usage", "{tmp}/none.json"),
    "is a folder": ("plan", "{tmp}"),
    "no transcript of a known format": ("usage", "{tmp}/binary"),
    "is empty": ("usage", "{tmp}/empty"),
    "cannot read the saved session": ("usage", "{tmp}/damaged.json"),
    "No such option": ("usage", "{path}", "--color"),
    "not in the range": ("usage", "{path}", "--max-tokens", "-5"),
    "'32k' is not a whole number; write it in digits": ("plan", "{path}", "--max-tokens", "32k"),
    "'two' is not a whole number": ("usage", "{path}", "--images-kept", "two"),
    "the name of a transcript is empty; pass a file, or -": ("usage", ""),
    "xxx cannot be written: ": ("process", "{path}", "-o", "{tmp}/" + 300 * "x"),
    "target_ratio": ("plan", "{path}", "--target-ratio", "nan"),
    "did you mean": ("usage", "{path}", "--model", "claud-sonnet-4-5"),
    "is unknown": ("process", "{path}", "--model", "nobody-knows-1", "-o", "{tmp}/out"),
    "Missing argument": ("plan",),
    "Missing option": ("process", "{path}"),
    "No such command": ("shrink", "{path}"),
    "is in no folder": ("process", "{path}", "-o", "{tmp}/none/out"),
    "is a folder; pass a file name": ("process", "{path}", "-o", "{tmp}"),
    "has an id that begins with": ("usage", "{path}", "--session", "x"),
    "unexpected extra argument": ("plan", "{path}", "{path}"),
    "is not one of": ("process", "{path}", "--to", "word", "-o", "{tmp}/out"),
}


@pytest.mark.parametrize("message", BAD)
def test_bad_input_is_one_line_and_exit_code_two(shell: Shell, path: str, tmp_path: Path, message: str) -> None:
    (tmp_path / "binary").write_bytes(bytes(range(256)) * 40)
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "damaged.json").write_text('{"version": 1, "id": "s", "items": [{"type": "message"}]}')
    before = sorted(tmp_path.iterdir())
    code, out, err = shell(*(arg.format(tmp=tmp_path, path=path) for arg in BAD[message]))
    assert (code, out) == (2, "")
    assert message.lower() in err.lower()
    assert "Errno" not in err
    assert err.startswith("context-window: ")
    assert err.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_bad_input(shell: Shell, path: str) -> None:
    Path(path).chmod(0)
    assert shell("usage", path)[0] == 2


@POSIX
def test_a_pipe_is_asked_for_on_standard_input(shell: Shell, tmp_path: Path) -> None:
    """Such as a shell's `<(…)`. Nothing is read from it, so that the command does not block."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    code, out, err = shell("plan", pipe)
    assert (code, out) == (2, "")
    assert err == f"context-window: {pipe} is a pipe, but a transcript is read more than once; pipe it into standard input and pass -\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("command", [("usage",), ("process", "-o", "-")])
def test_a_full_disk_is_told_in_words(path: str, command: tuple[str, ...]) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(program(*command, path), check=False, stdout=full, stderr=subprocess.PIPE, text=True, cwd=HERE)
    assert (done.returncode, done.stderr) == (2, "context-window: standard output cannot be written: No space left on device\n")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (PermissionError(13, "Permission denied", "some/file"), "some/file cannot be used: Permission denied"),
        (OSError(28, "No space left on device"), "No space left on device"),
        (OSError("odd"), "odd"),
        (ValueError("wrong"), "wrong"),
    ],
)
def test_a_fault_of_the_system_is_told_without_its_number(error: Exception, message: str) -> None:
    assert error_text(error) == message


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


def test_the_list_of_commands_has_whole_sentences(shell: Shell) -> None:
    listed = shell("--help")[1].partition("What sessions cost:\n")[2].partition("  Examples:")[0].splitlines()
    assert sorted(line.strip().split(maxsplit=1) for line in listed if line.startswith("  ")) == [
        [name, commands.commands[name].get_short_help_str(1_000)] for name in sorted(commands.commands)
    ]


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
    with subprocess.Popen(program("usage", "--json", *[path] * 60), stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=HERE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(1)
        process.stdout.close()
        assert process.wait(60) == 141
        assert process.stderr.read() == b""


@POSIX
@pytest.mark.parametrize(("code", "command"), [(2, ("usage", "nowhere")), (0, ("convert", "{path}", "-o", "-")), (2, ("usage", "--none"))])
def test_a_closed_standard_error_is_no_fault(path: str, code: int, command: tuple[str, ...]) -> None:
    """As in `2>&-`: Python has no stream then, and nobody can be told; the exit code and the output are as ever."""
    line = shlex.join(program(*(argument.format(path=path) for argument in command)))
    done = subprocess.run(["sh", "-c", f"{line} 2>&-"], check=False, capture_output=True, cwd=HERE)
    assert done.returncode == code
    assert done.stderr == b""
    assert done.stdout.startswith(b"{" if code == 0 else b"")


@POSIX
def test_ctrl_c_ends_it_quietly() -> None:
    # A shell's background jobs are born deaf to Ctrl-C, and so are their children: the command is started as a terminal would.
    as_in_a_terminal = [
        sys.executable,
        "-c",
        "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])",
    ]
    with subprocess.Popen(
        [*as_in_a_terminal, *program("usage", "-")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=HERE
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
    done = subprocess.run(program("usage", "-", "--json"), input=Path(path).read_bytes(), check=False, capture_output=True, cwd=HERE)
    assert (done.returncode, done.stderr) == (0, b"")
    values = json.loads(done.stdout)
    assert (values["title"], values["session_id"]) == ("standard input", "long")


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "utf-8"])
def test_any_encoding_can_be_printed(tmp_path: Path, encoding: str) -> None:
    session = long_session(4)
    session.add_function_call("日本語", {}, "c")
    path = saved(session, tmp_path / "s.json")
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"}
    done = subprocess.run(program("plan", path, "--max-tokens", "500"), check=False, capture_output=True, cwd=HERE, env=environment)
    assert (done.returncode, done.stderr) == (0, b"")
    out = done.stdout.decode(encoding)
    assert out.isascii() == (encoding != "utf-8")
    assert "500" in out


def test_a_path_that_the_encoding_has_not_is_no_fault(path: str, tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    out = tmp_path / "日本.json"
    done = subprocess.run(program("process", path, "-o", str(out)), check=False, capture_output=True, cwd=HERE, env=environment)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.endswith(b"??.json\n")
    assert out.exists()


def test_bytes_that_are_written_are_utf_8_whatever_the_terminal_is(tmp_path: Path) -> None:
    session = Session()
    session.add_message("user", "日本語 é")
    path = saved(session, tmp_path / "s.json")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(program("process", path, "-o", "-"), check=False, capture_output=True, cwd=HERE, env=environment)
    assert json.load(io.BytesIO(done.stdout))["items"][0]["content"][0]["text"] == "日本語 é"


def test_help_waits_for_nothing_slow() -> None:
    slow = ("rich", "tiktoken", "genai_prices", "anthropic", "pydantic")
    code = (
        "import sys\nfrom context_window.cli import run\n"
        "for args in (['--help'], ['usage', '--help'], ['process', '--help']): run(args)\n"
        f"print([name for name in {slow!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=HERE)
    assert done.stderr == "[]\n"


@pytest.mark.parametrize("budget", [50, 400])
def test_a_budget_that_is_too_small_is_reported_with_the_smallest_sensible_one(
    shell: Shell, path: str, tmp_path: Path, budget: int
) -> None:
    """The suggested budget is enough: with it nothing is over budget, and no other one is suggested."""
    plan = json.loads(shell("plan", path, "--max-tokens", budget, "--json")[1])
    assert plan["smallest_budget"] * 8 >= 10 * (plan["overhead"] + plan["protected"])
    if (plan["overhead"] + plan["protected"]) * 10 <= budget * 9:
        return
    suggestion = f"the smallest sensible budget is {plan['smallest_budget']:,} tokens"
    err = shell("process", path, "--max-tokens", budget, "-o", tmp_path / "out.json")[2]
    assert suggestion in err
    assert suggestion in " ".join(shell("plan", path, "--max-tokens", budget)[1].split())
    code, out, err = shell("process", path, "--max-tokens", plan["smallest_budget"], "-o", tmp_path / "enough.json", "--strict")
    assert (code, err) == (0, "")
    assert "smallest sensible" not in out
