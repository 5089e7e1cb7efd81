"""Commands without a path, `--last`, `--watch` in a real terminal, and completion in a real shell."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from context_window.spend.newest import newest_log
from tests.support.claude_lines import Log, text
from tests.support.shared import ROOT
from tests.support.shell import POSIX, Shell, heed_interrupts, program


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder without logs, and a project in it that is the current folder."""
    folder = tmp_path / "home"
    (folder / "shop" / "src").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("USERPROFILE", str(folder))
    moved = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "PI_CODING_AGENT_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "APPDATA")
    for name in moved:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(folder / "shop")
    return folder


def usage(tokens: int) -> dict[str, int]:
    return {"input_tokens": 10, "cache_read_input_tokens": 0, "cache_creation_input_tokens": tokens, "output_tokens": 5}


def claude(home: Path, name: str, folder: Path, age: int, words: str = "Hello.") -> Path:
    """A log of Claude Code in this folder, whose last record is some seconds old. Its file was copied, so that it is newer."""
    log = Log(name)
    fields = {"cwd": str(folder), "timestamp": datetime.fromtimestamp(time.time() - age, UTC).isoformat()}
    log.user(words, **fields)
    log.answer("m1", text("Done."), usage=usage(9_000), model="claude-opus-4-6", requestId="r1", **fields)
    return log.write(home / ".claude" / "projects" / "-x", f"{name}.jsonl")


def aged(path: Path, age: int) -> Path:
    moment = time.time() - age
    os.utime(path, (moment, moment))
    return path


class TestNewest:
    def test_the_newest_session_of_the_folder_is_found_in_all_tools(self, home: Path) -> None:
        shop, other = home / "shop", home / "other"
        assert newest_log(shop) is None
        older = claude(home, "older", shop, 500)
        assert newest_log(shop) == older
        claude(home, "elsewhere", other, 10)
        claude(home, "agent-1", shop, 5)  # a sub-agent's
        assert newest_log(shop) == older
        codex = home / ".codex" / "sessions" / "2026" / "rollout-1.jsonl"
        codex.parent.mkdir(parents=True)
        codex.write_text(json.dumps({"type": "session_meta", "payload": {"id": "c", "cwd": str(shop)}}) + "\n")
        assert newest_log(shop) == aged(codex, 300)
        gemini = home / ".gemini" / "tmp" / "x" / "chats" / "session-1.json"
        gemini.parent.mkdir(parents=True)
        gemini.write_text(json.dumps({"sessionId": "g", "projectHash": sha256(str(shop).encode()).hexdigest(), "messages": []}))
        assert newest_log(shop) == aged(gemini, 200)

    def test_a_folder_below_has_the_sessions_of_the_nearest_project_above(self, home: Path) -> None:
        above = claude(home, "above", home, 1)
        project = claude(home, "project", home / "shop", 100)
        assert newest_log(home / "shop" / "src") == project
        assert newest_log(home / "other") == above
        assert newest_log(home.parent) is None

    def test_last_is_the_newest_of_all(self, home: Path) -> None:
        claude(home, "project", home / "shop", 100)
        elsewhere = claude(home, "elsewhere", home / "other", 1)
        assert newest_log() == elsewhere

    def test_a_folder_that_content_quotes_is_not_the_log_s(self, home: Path) -> None:
        quoting = json.dumps({"cwd": str(home / "shop")})
        claude(home, "quoting", home / "other", 1, words=quoting)
        assert newest_log(home / "shop") is None


@pytest.mark.parametrize("command", ["usage", "timeline"])
class TestWithoutPath:
    def test_the_newest_session_of_this_folder_is_read(self, command: str, shell: Shell, home: Path) -> None:
        project = claude(home, "project", home / "shop", 100)
        elsewhere = claude(home, "elsewhere", home / "other", 1)
        code, out, error = shell(command, "--json")
        assert (code, json.loads(out)["path"]) == (0, str(project))
        assert str(project) in " ".join(error.split())
        code, out, _ = shell(command, "--json", "--last")
        assert (code, json.loads(out)["path"]) == (0, str(elsewhere))

    def test_nothing_found_and_contradictions_are_bad_input(self, command: str, shell: Shell, home: Path) -> None:
        code, out, error = shell(command)
        assert (code, out) == (2, "")
        assert "--last" in error
        code, _, error = shell(command, "--last")
        assert code == 2
        assert "no session of the known tools found" in error
        code, _, error = shell(command, "x.jsonl", "--last")
        assert code == 2
        assert "exclude" in error

    def test_watch_needs_a_terminal_and_a_file(self, command: str, shell: Shell, home: Path) -> None:
        log = claude(home, "project", home / "shop", 100)
        code, out, error = shell(command, log, "--watch")
        assert (code, out) == (2, "")
        assert "terminal" in error
        code, _, error = shell(command, "-", "--watch")
        assert code == 2
        assert "path" in error


def grow(path: Path, number: int) -> None:
    """Appends a turn to a log, as the assistant does."""
    lines = Log("project")
    lines.last = f"before-{number}"
    lines.user("And now?", parentUuid=...)
    lines.answer(f"g{number}", text("Done."), usage=usage(9_000 + 100 * number), model="claude-opus-4-6", requestId=f"g{number}")
    with path.open("a") as file:
        file.write("".join(f"{line.replace('00000000', f'{number:08x}')}\n" for line in lines.lines))


@POSIX
class TestWatch:
    @pytest.mark.parametrize(
        ("command", "before", "after"), [("timeline", "1 request", "2 requests"), ("usage", "2 messages", "4 messages")]
    )
    def test_a_growing_log_is_drawn_again_until_ctrl_c(self, command: str, before: str, after: str, tmp_path: Path) -> None:
        pexpect = pytest.importorskip("pexpect")
        log = claude(tmp_path, "project", tmp_path, 100)
        environment = {name: value for name, value in os.environ.items() if name not in {"NO_COLOR", "FORCE_COLOR", "COLUMNS"}}
        child = pexpect.spawn(
            sys.executable,
            ["-m", "context_window", command, str(log), "--watch"],
            env={**environment, "TERM": "xterm-256color", "NO_COLOR": "1"},
            dimensions=(60, 90),
            encoding="utf-8",
            timeout=60,
            cwd=str(ROOT),
            preexec_fn=heed_interrupts,
        )
        child.expect(before)
        child.expect("Ctrl-C ends")
        grow(log, 7)
        child.expect(after)
        child.expect(r"\+[\d,]+ tokens.* since this began")
        child.sendintr()
        child.expect(pexpect.EOF)
        child.close()
        assert (child.exitstatus, child.signalstatus) == (0, None)
        assert "Traceback" not in child.before

    def test_json_has_a_line_whenever_the_log_has_grown(self, tmp_path: Path) -> None:
        log = claude(tmp_path, "project", tmp_path, 100)
        command = program("timeline", str(log), "--watch", "--json")

        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, preexec_fn=heed_interrupts) as process:  # noqa: PLW1509
            assert process.stdout is not None
            first = json.loads(process.stdout.readline())
            grow(log, 7)
            second = json.loads(process.stdout.readline())
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=60) == 0
        assert [values["spent"]["requests"] for values in (first, second)] == [1, 2]


def run_bash(script: str, folder: Path) -> list[str]:
    """Completions by a real bash that has loaded our script."""
    tool = folder / "bin" / "context-window"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m context_window "$@"\n')
    tool.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tool.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        ["bash", "--norc", "-c", f'eval "$(context-window completion bash)"\n{script}'],
        env=environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


@POSIX
@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
class TestCompletion:
    @pytest.mark.parametrize(
        ("words", "expected"),
        [
            (["time"], ["timeline"]),
            (["timeline", "--wa"], ["--watch"]),
            (["timeline", "--w"], ["--why", "--watch"]),
            (["spend", "--by", "mo"], ["month", "model"]),
            (["completion", ""], ["bash", "zsh", "fish"]),
        ],
    )
    def test_bash_completes_commands_options_and_values(self, words: list[str], expected: list[str], tmp_path: Path) -> None:
        quoted = " ".join(f"'{word}'" for word in ["context-window", *words])
        script = f"COMP_WORDS=({quoted}); COMP_CWORD={len(words)}; _context_window_completion context-window\necho ${{COMPREPLY[@]}}"
        assert sorted(run_bash(script, tmp_path)) == sorted(expected)

    def test_bash_completes_paths_at_the_tab_key(self, tmp_path: Path) -> None:
        pexpect = pytest.importorskip("pexpect")
        run_bash("true", tmp_path)
        (tmp_path / "a-long-name.jsonl").write_text("")
        child = pexpect.spawn("bash", ["--norc", "-i"], cwd=str(tmp_path), encoding="utf-8", timeout=60, env={**environment_of(tmp_path)})
        child.sendline('eval "$(context-window completion bash)"; echo re""ady')
        child.expect("ready")
        child.send("context-window timeline a-l\t")
        child.expect("a-long-name.jsonl")
        child.close(force=True)

    @pytest.mark.parametrize("name", ["zsh", "fish"])
    def test_other_shells_read_their_script(self, name: str, shell: Shell, tmp_path: Path) -> None:
        code, out, _ = shell("completion", name)
        assert (code, "_CONTEXT_WINDOW_COMPLETE=" in out) == (0, True)
        if shutil.which(name) is None:
            pytest.skip(f"{name} is not installed, so that it reads the script was not tried")
        script = tmp_path / "script"
        script.write_text(out)
        subprocess.run([name, "-n", str(script)], check=True)

    def test_an_unknown_shell_is_bad_input(self, shell: Shell) -> None:
        code, _, error = shell("completion", "tcsh")
        assert code == 2
        assert "bash" in error


def environment_of(folder: Path) -> dict[str, Any]:
    return {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "TERM": "dumb", "PS1": "$ "}
