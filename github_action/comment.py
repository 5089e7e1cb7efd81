"""Writes what a pull request has cost as a comment on it, or into the comment that an earlier run wrote. `action.yml` runs it.

It reads LOGS, GITHUB_TOKEN and what GitHub sets for every step: GITHUB_EVENT_PATH, GITHUB_REPOSITORY and GITHUB_API_URL.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

Json = dict[str, Any]
MARK = "<!-- context-window: cost of this pull request -->"
"""How the comment begins. Nobody sees it."""
PAGE = 100
"""Comments of a page: GitHub has no larger ones."""
SECONDS = 30
"""Patience with GitHub."""
READ_ONLY = (403, 404)
"""Statuses of GitHub's answers to a token that may not write, such as that of a pull request from a fork."""


class Api:
    """GitHub's REST API: https://docs.github.com/en/rest/issues/comments."""

    def __init__(self, url: str, repository: str, token: str) -> None:
        """
        Args:
            url: Its address.
            repository: The owner and the name of the repository.
            token: Who asks.
        """
        self._url, self._repository, self._token = url.rstrip("/"), f"repos/{repository}", token

    def comments(self, number: int) -> Iterator[Json]:
        """Yield the comments on a pull request, the oldest first.

        Raises:
            urllib.error.URLError: GitHub refused, or cannot be reached.
        """
        page = 1
        while comments := self._ask("GET", f"{self._repository}/issues/{number}/comments?per_page={PAGE}&page={page}"):
            yield from comments
            page += 1

    def login(self) -> str | None:
        """Return whose token it is; None for that of an app, such as the one that a workflow has.

        Raises:
            urllib.error.URLError: GitHub cannot be reached.
        """
        try:
            return str(self._ask("GET", "user")["login"])
        except urllib.error.HTTPError:
            return None

    def write(self, number: int, comment: Json | None, body: str) -> None:
        """Write a new comment, or a new text into one.

        Args:
            number: The pull request's.
            comment: The one to write into; None for a new one.
            body: The text.

        Raises:
            urllib.error.URLError: GitHub refused, or cannot be reached.
        """
        if comment is None:
            self._ask("POST", f"{self._repository}/issues/{number}/comments", {"body": body})
        elif comment["body"] != body:
            self._ask("PATCH", f"{self._repository}/issues/comments/{comment['id']}", {"body": body})

    def _ask(self, method: str, path: str, fields: Json | None = None) -> Any:
        headers = {
            "accept": "application/vnd.github+json",
            "authorization": f"Bearer {self._token}",
            "content-type": "application/json",
            "user-agent": "context-window",
            "x-github-api-version": "2022-11-28",
        }
        content = None if fields is None else json.dumps(fields).encode()
        request = urllib.request.Request(f"{self._url}/{path}", content, headers, method=method)  # noqa: S310 - the runner names the address
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:  # noqa: S310
            return json.loads(answer.read())


def main(environment: Mapping[str, str]) -> int:
    """Write the comment, and a line about it. Return the exit code: 0, also if the token may only read; 1 if there is nothing to read.

    Args:
        environment: The step's variables.

    Raises:
        urllib.error.URLError: GitHub refused for another reason, or cannot be reached.
    """
    pull = json.loads(Path(environment["GITHUB_EVENT_PATH"]).read_bytes()).get("pull_request")
    if not pull:
        print("::error::run this on: pull_request")
        return 1
    logs = [line.strip() for line in environment["LOGS"].splitlines() if line.strip()]
    if not logs:  # without any, spend would read those of the whole machine
        print("::error::the input logs names no log")
        return 1
    command = [sys.executable, "-m", "context_window", "spend", "--by", "pr", "--json", "--no-cache", "--", *logs]
    spent = subprocess.run(command, stdout=subprocess.PIPE, check=False)  # noqa: S603
    report = json.loads(spent.stdout or "{}")
    if spent.returncode:
        for fault in report.get("faults", ()):  # quoted, since a line that begins with two colons is a command to the runner
            print(f"{json.dumps(fault['path'])}: {fault['problem']}")
        print("::error::the logs cannot be read; see above")
        return 1
    row = next((row for row in report["rows"] if row["name"] == pull["html_url"]), None)
    if row is None:
        read = f"{report['logs']:,} {'was' if report['logs'] == 1 else 'were'} read"
        print(f"no session in the logs ({read}) opened {pull['html_url']}")
        return 0
    api = Api(environment["GITHUB_API_URL"], environment["GITHUB_REPOSITORY"], environment["GITHUB_TOKEN"])
    text = comment_text(row, len(report["faults"]))
    try:
        login = api.login()
        api.write(pull["number"], own_comment(api.comments(pull["number"]), login), text)
    except urllib.error.HTTPError as error:
        if error.code not in READ_ONLY:
            raise
        print(f"::warning::no comment was written: GitHub answers {error.code}. The job needs permissions: pull-requests: write")
    print(text.removeprefix(MARK).strip())
    return 0


def own_comment(comments: Iterator[Json], login: str | None) -> Json | None:
    """Return the comment that an earlier run wrote. One by somebody else is none, whatever it begins with.

    Args:
        comments: Those on the pull request.
        login: Whose token it is; None for an app's.
    """

    def is_own(comment: Json) -> bool:
        user = comment.get("user") or {}
        return str(comment.get("body")).startswith(MARK) and (user.get("type") == "Bot" if login is None else user.get("login") == login)

    return next(filter(is_own, comments), None)


def comment_text(row: Json, faults: int) -> str:
    """Return the comment.

    Args:
        row: The sums of the pull request, as `spend --json` has them.
        faults: Logs that could not be read in full.
    """
    read = row["cache_read_tokens"]
    prompts = row["input_tokens"] + read + row["cache_write_tokens"] + row["cache_write_1h_tokens"]
    cost = "an unknown sum" if row["cost_usd"] is None else f"${float(row['cost_usd']):,.2f}"
    requests = f"{row['requests']:,} request{'' if row['requests'] == 1 else 's'}"
    lines = [f"The sessions that made this pull request cost **{cost}**: {requests}, {row['total_tokens']:,} tokens"]
    lines[0] += f", {read / prompts:.0%} of the prompts read from the cache." if prompts else "."
    if row["unpriced_requests"] and row["cost_usd"] is not None:
        lines.append(f"The price of {row['unpriced_requests']:,} of the requests is unknown and not in it.")
    if faults:
        lines.append("1 log could not be read in full." if faults == 1 else f"{faults:,} logs could not be read in full.")
    return "\n".join([MARK, *lines])


if __name__ == "__main__":
    sys.exit(main(os.environ))
