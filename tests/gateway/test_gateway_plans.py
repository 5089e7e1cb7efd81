"""Limits of plans in the headers of answers: on the page, in the last line, and in the file that `context-window` reads."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from context_window.gateway.ledger import GatewayLedger
from context_window.spend.limits import stated_limits
from session.plan_limits import LimitPeriod
from tests.gateway.test_gateway_http import post, says, upstream_that
from tests.gateway.test_gateway_page import get
from tests.spend.logs import answer, write
from tests.support.gateways import gateway


def anthropic_headers(used: float) -> dict[str, str]:
    begin, resets = "anthropic-ratelimit-unified-5h", str(int(time.time()) + 7_200)
    return {f"{begin}-utilization": str(used), f"{begin}-reset": resets, f"{begin}-status": "allowed"}


CODEX_HEADERS = {
    "x-codex-primary-used-percent": "80",
    "x-codex-primary-window-minutes": "300",
    "x-codex-primary-reset-after-seconds": "7200",
}


@pytest.fixture(autouse=True, name="home")
def its_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CONTEXT_WINDOW_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.mark.parametrize("status", [200, 429])
def test_the_page_the_last_line_and_the_file_have_them(status: int) -> None:
    """of a refused request, too; and both providers' stand beside each other"""
    ledger = GatewayLedger()
    for number, headers in enumerate((CODEX_HEADERS, anthropic_headers(0.235))):
        upstream_of_plan = upstream_that(says(status, b"{}", headers))
        with upstream_of_plan as upstream, gateway(upstream.url, 10_000, ledger=ledger, keeps_limits=True) as address:
            version = get(address).text.partition('data-version="')[2].partition('"')[0]
            assert post(address).headers.items() >= headers.items()
            update = get(address, f"/live?version={version}").text
            assert len(stated_limits(())) == number  # no request waits for the file
    assert "<p>Claude Code, 5 hours: 24 %, resets " in update
    assert "<p>Codex, 5 hours: 80 %, full " in update
    assert "; Codex, 5 hours: 80 %, full " in ledger.line()
    claude, codex = stated_limits(())
    assert [(period.minutes, period.percent) for plan in (claude, codex) for period in plan.periods] == [(300, 23.5), (300, 80)]
    assert isinstance(codex.periods[0], LimitPeriod)
    assert codex.periods[0].resets == pytest.approx(time.time() + 7_200, abs=60)


def test_a_key_without_a_plan_has_none(home: Path) -> None:
    ledger = GatewayLedger()
    headers = {"anthropic-ratelimit-requests-limit": "50", "anthropic-ratelimit-unified-5h-utilization": "much"}
    with upstream_that(says(200, b"{}", headers)) as upstream, gateway(upstream.url, 10_000, ledger=ledger, keeps_limits=True) as address:
        post(address)
        assert "hours" not in get(address).text
    assert "hours" not in ledger.line()
    assert not home.exists()


def test_limits_of_others_plans_are_not_kept(home: Path) -> None:
    """as of a gateway with tokens: they are shown, but the file is the user's own"""
    ledger = GatewayLedger()
    with upstream_that(says(200, b"{}", CODEX_HEADERS)) as upstream, gateway(upstream.url, 10_000, ledger=ledger) as address:
        post(address)
    assert "Codex, 5 hours" in ledger.line()
    assert not home.exists()


def test_they_are_written_while_the_gateway_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """once in so many seconds, however many answers there are"""
    monkeypatch.setattr("context_window.gateway.app.KEEP_SECONDS", 0.05)
    with upstream_that(says(200, b"{}", CODEX_HEADERS)) as upstream, gateway(upstream.url, 10_000, keeps_limits=True) as address:
        post(address)
        end = time.monotonic() + 20
        while not stated_limits(()) and time.monotonic() < end:
            time.sleep(0.02)
        assert [limits.tool for limits in stated_limits(())] == ["codex"]


CLIENT = """
import os, urllib.request
body = b'{"model": "claude-sonnet-5-5", "max_tokens": 10, "messages": [{"role": "user", "content": "Hi"}]}'
urllib.request.urlopen(urllib.request.Request(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", data=body)).read()
"""


def run(*command: str, input: str = "", **variables: str) -> subprocess.CompletedProcess[str]:  # noqa: A002 - that of subprocess
    return subprocess.run(
        [sys.executable, "-m", "context_window", *command],
        env={**os.environ, "NO_PROXY": "*", **variables},
        input=input,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("has_tokens", [False, True])
def test_the_command_keeps_them_unless_others_use_it(home: Path, tmp_path: Path, has_tokens: bool) -> None:
    options = ["--token", str(tmp_path / "tokens")] if has_tokens else []
    with upstream_that(says(200, b"{}", anthropic_headers(0.5))) as upstream:
        done = run("gateway", *options, "--upstream", f"anthropic={upstream.url}", "--", sys.executable, "-c", CLIENT)
    assert done.returncode == 0, done.stderr
    assert "; Claude Code, 5 hours: 50 %, " in done.stderr
    assert len(stated_limits(())) == (not has_tokens)
    assert home.exists() == (not has_tokens)


def test_a_header_reaches_the_first_screen_with_what_used_the_period_and_the_status_line(home: Path, tmp_path: Path) -> None:
    """The status line's only while Claude Code's requests pass a gateway, and states none of its own."""
    now = datetime.now(UTC).isoformat()
    write(tmp_path / ".claude" / "projects" / "shop" / "s1.jsonl", answer("m1", 500, timestamp=now))
    with upstream_that(says(200, b"{}", anthropic_headers(0.5))) as upstream:
        run("gateway", "--upstream", f"anthropic={upstream.url}", "--", sys.executable, "-c", CLIENT)
    assert home.exists()
    screen = run(HOME=str(tmp_path), COLUMNS="200").stdout
    assert re.search(r"Claude Code, 5 hours: 50 %, (full .*)?resets .*; 100% in shop, session of today", screen), screen
    through, direct = (run("statusline", input="{}", ANTHROPIC_BASE_URL=url).stdout for url in ("http://127.0.0.1:9/anthropic", ""))
    assert "5h 50%" in through
    assert "5h" not in direct
    stated = '{"rate_limits": {"five_hour": {"used_percentage": 60}}}'
    assert "5h 60%" in run("statusline", input=stated, ANTHROPIC_BASE_URL="http://127.0.0.1:9/anthropic").stdout
