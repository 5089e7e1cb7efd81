"""The GitHub Action: with a made-up event, against a stub of GitHub's API on the loopback."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from github_action.comment import MARK, PAGE, comment_text
from tests.support.claude_lines import Log, call, result
from tests.support.shared import ROOT
from tests.support.shell import POSIX

PULL = "https://github.com/me/shop/pull/7"
TOKEN = "made up"


class GitHub:
    """Comments on one pull request, in pages, for one token. Strict about the headers and the bodies that the documentation asks for."""

    def __init__(self, login: str | None = None) -> None:
        self.comments: list[dict[str, Any]] = []
        self.login, self.may_write, self.writes = login, True, 0
        github = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                status, answer = github.answer(self.command, self.path, dict(self.headers.items()), body)
                self.send_response(status)
                self.end_headers()
                self.wfile.write(json.dumps(answer).encode())

            def do_GET(self) -> None:
                self.do_POST()

            def do_PATCH(self) -> None:
                self.do_POST()

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name in the base class
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"

    def add(self, body: str, login: str = "somebody", kind: str = "User") -> None:
        self.comments.append({"id": 1_000 + len(self.comments), "body": body, "user": {"login": login, "type": kind}})

    def answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> tuple[int, Any]:
        given = {name.lower(): value for name, value in headers.items()}
        if given.get("authorization") != f"Bearer {TOKEN}" or not given.get("user-agent"):
            return 401, {"message": "Bad credentials"}
        if (method, path) == ("GET", "/user"):
            return (200, {"login": self.login}) if self.login else (403, {"message": "Resource not accessible by integration"})
        if page := re.fullmatch(r"/repos/me/shop/issues/7/comments\?per_page=(\d+)&page=(\d+)", path):
            size, number = (int(each) for each in page.groups())
            return 200, self.comments[size * (number - 1) : size * number]
        if method == "GET":
            return 404, {"message": "Not Found"}
        if not self.may_write:
            return 403, {"message": "Resource not accessible by integration"}
        text = json.loads(body)["body"]
        self.writes += 1
        if (method, path) == ("POST", "/repos/me/shop/issues/7/comments"):
            self.add(text, *((self.login, "User") if self.login else ("github-actions[bot]", "Bot")))
            return 201, self.comments[-1]
        (one,) = [comment for comment in self.comments if (method, path) == ("PATCH", f"/repos/me/shop/issues/comments/{comment['id']}")]
        one["body"] = text
        return 200, one


@pytest.fixture(params=[None, "me"], ids=["the workflow's token", "a user's token"])
def github(request: pytest.FixtureRequest) -> Iterator[GitHub]:
    stub = GitHub(request.param)
    thread = threading.Thread(target=stub.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield stub
    stub.server.shutdown()
    stub.server.server_close()
    thread.join()


def log_of_pull_request(path: Path, requests: int, model: str = "claude-opus-4-6") -> Path:
    log = Log()
    log.user("Brew tea.")
    usage = {"input_tokens": 100, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 0, "output_tokens": 10}
    for number in range(requests):
        command = "gh pr create --fill" if number == requests - 1 else "ls"
        log.answer(f"m{number}", call(f"c{number}", "Bash", command=command), usage=usage, model=model, requestId=f"r{number}")
        log.user([result(f"c{number}", f"{PULL}\n" if command != "ls" else "a")])
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(log.lines) + "\n", encoding="utf-8")
    return path


def run(folder: Path, github: GitHub, logs: str, event: object = None) -> subprocess.CompletedProcess[str]:
    """Run the script as the action does."""
    if event is None:
        event = {"action": "synchronize", "number": 7, "pull_request": {"number": 7, "html_url": PULL, "head": {"ref": "tea"}}}
    (folder / "event.json").write_text(json.dumps(event))
    variables = {"GITHUB_EVENT_PATH": str(folder / "event.json"), "GITHUB_REPOSITORY": "me/shop", "GITHUB_API_URL": github.url}
    variables |= {"LOGS": logs, "GITHUB_TOKEN": TOKEN, "HOME": str(folder), "NO_PROXY": "*", "PYTHONPATH": ":".join(sys.path)}
    command = [sys.executable, str(ROOT / "github_action" / "comment.py")]
    return subprocess.run(command, env=variables, cwd=folder, capture_output=True, text=True, check=False, timeout=120)


def test_one_comment_is_written_and_then_kept_up_to_date(tmp_path: Path, github: GitHub) -> None:
    """behind pages of others, of whom one pretends to be it; what has not changed is not written again"""
    for number in range(PAGE + 1):
        github.add(MARK if number == 3 else "Nice.")
    others = [dict(comment) for comment in github.comments]
    log_of_pull_request(tmp_path / "logs" / "a.jsonl", 2)
    for _ in range(2):
        done = run(tmp_path, github, "logs\n")
        assert done.returncode == 0, done.stdout + done.stderr
        (comment,) = github.comments[PAGE + 1 :]
        assert comment["body"].startswith(
            f"{MARK}\nThe sessions that made this pull request cost **$0.00**: 2 requests, 2,020 tokens, 90% of"
        )
        assert comment["body"].removeprefix(MARK).strip() in done.stdout
    assert github.writes == 1
    log_of_pull_request(tmp_path / "logs" / "a.jsonl", 200)
    assert run(tmp_path, github, f"logs/*.jsonl\n{tmp_path / 'logs' / 'a.jsonl'}").returncode == 0
    assert github.comments[:-1] == others
    assert re.search(r"cost \*\*\$0\.24\*\*: 200 requests, 202,000 tokens", github.comments[-1]["body"])


def test_a_pull_request_that_no_log_names_gets_no_comment(tmp_path: Path, github: GitHub) -> None:
    log_of_pull_request(tmp_path / "logs" / "a.jsonl", 2)
    event = {"pull_request": {"number": 8, "html_url": PULL.replace("7", "8")}}
    done = run(tmp_path, github, "logs", event)
    assert (done.returncode, done.stdout.strip()) == (0, "no session in the logs (1 was read) opened https://github.com/me/shop/pull/8")
    assert github.comments == []


def test_a_token_that_may_only_read_warns(tmp_path: Path, github: GitHub) -> None:
    github.may_write = False
    log_of_pull_request(tmp_path / "logs" / "a.jsonl", 2)
    done = run(tmp_path, github, "logs")
    assert done.returncode == 0
    assert "::warning::no comment was written: GitHub answers 403" in done.stdout
    assert TOKEN not in done.stdout + done.stderr


@pytest.mark.parametrize(("logs", "event"), [("no-such-folder", None), ("", None), ("logs", {"action": "created", "issue": {}})])
def test_what_cannot_be_read_is_an_error(tmp_path: Path, github: GitHub, logs: str, event: object) -> None:
    log_of_pull_request(tmp_path / "logs" / "a.jsonl", 2)
    done = run(tmp_path, github, logs, event)
    assert done.returncode == 1
    assert "::error::" in done.stdout
    assert "Traceback" not in done.stderr
    assert github.comments == []


@POSIX
def test_what_cannot_be_read_is_named_and_no_name_is_a_command(tmp_path: Path, github: GitHub) -> None:
    """to the runner, which obeys lines that begin with two colons; a name is no command of the shell either"""
    names = ("no $(touch pwned) folder", "::add-mask::a.jsonl", "a\n  ::error::b.jsonl")
    for name in names[1:]:
        (tmp_path / "my logs").mkdir(exist_ok=True)
        (tmp_path / "my logs" / name).write_text("{]")
    done = run(tmp_path, github, f"{names[0]}\nmy logs\n")
    lines = (done.stdout + done.stderr).splitlines()
    assert [line for line in lines if line.lstrip().startswith("::")] == ["::error::the logs cannot be read; see above"]
    assert f'"{names[0]}": no such file' in lines
    assert all(any(line.endswith(f'{json.dumps(name)[1:-1]}": no log of a known format found') for line in lines) for name in names[1:])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["event.json", "my logs"]


def test_what_is_not_known_is_said() -> None:
    row = {"requests": 1, "total_tokens": 5, "cost_usd": None, "unpriced_requests": 1}
    row |= dict.fromkeys(("input_tokens", "cache_read_tokens", "cache_write_tokens", "cache_write_1h_tokens"), 0)
    assert comment_text(row, 0) == f"{MARK}\nThe sessions that made this pull request cost **an unknown sum**: 1 request, 5 tokens."
    assert comment_text(row | {"cost_usd": "1234.5", "requests": 2}, 2).splitlines()[1:] == [
        "The sessions that made this pull request cost **$1,234.50**: 2 requests, 5 tokens.",
        "The price of 1 of the requests is unknown and not in it.",
        "2 logs could not be read in full.",
    ]


def test_the_action_runs_the_script_with_its_inputs() -> None:
    """No input gets into a shell's text, where it would be run: each is a variable. What is run is there."""
    action = (ROOT / "action.yml").read_text("utf-8")
    runs = re.findall(r"^ +run: (?:\|\n((?: {8}.*\n)+)|(.*)\n)", action, re.MULTILINE)
    assert len(runs) == 2
    assert not any("${{" in text for text in map("".join, runs))
    inputs = re.findall(r"^  (\w+):\n    description:", action, re.MULTILINE)
    assert inputs == ["logs", "token"]
    assert set(re.findall(r"\$\{\{ inputs\.(\w+) \}\}", action)) == set(inputs)
    (script,) = re.findall(r"\$GITHUB_ACTION_PATH/([\w./]+\.py)", action)
    assert (ROOT / script).is_file()
    assert "using: composite" in action
    assert action.count("shell: bash") == len(runs)
