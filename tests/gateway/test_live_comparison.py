"""What a model does next with the view and without it, asked of a stub: `benchmarks.clients --live`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path
from typing import Any

import anthropic
import pytest

from benchmarks.clients.__main__ import main
from benchmarks.clients.live import Agreement, compare
from context_window.gateway.recording import Recorder
from tests.support.gateways import gateway
from tests.support.stubs.answers import Call, Say
from tests.support.stubs.anthropic import AnthropicStub

TOOLS: list[Any] = [{"name": "read", "input_schema": {"type": "object"}}]
TURNS = 14


def recording(folder: Path) -> None:
    """Record a conversation that outgrows its window."""
    recorder = Recorder(folder)
    with (
        AnthropicStub(lambda _: [Call("read", {"path": "a.py"})]) as stub,
        gateway(stub.url, 3_000, recorder=recorder) as address,
        ExitStack() as on_exit,
    ):
        client = on_exit.enter_context(anthropic.Anthropic(base_url=f"{address}/anthropic", api_key="made up", max_retries=0))
        messages: list[Any] = [{"role": "user", "content": "Read all."}]
        for number in range(TURNS):
            answer: Any = client.messages.create(model="claude-sonnet-4-6", max_tokens=100, messages=messages, tools=TOOLS)
            result = {"type": "tool_result", "tool_use_id": answer.content[-1].id, "content": f"{number} word" * 300}
            messages += [
                {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in answer.content]},
                {"role": "user", "content": [result]},
            ]
    recorder.close()


def compared(folder: Path, model: Any, dollars: str = "5", most: int = 50) -> Agreement:
    with AnthropicStub(model) as stub:
        return compare(folder, Decimal(dollars), {"anthropic": stub.url}, most)


def sure(_: Mapping[str, Any]) -> list[Any]:
    return [Say("Now:"), Call("read", {"path": "b.py"})]


def confused(request: Mapping[str, Any]) -> list[Any]:
    """Reads what it can see last, and says nothing if that is a placeholder."""
    return [Call("read", {"path": str(len(json.dumps(request)))})]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "made up")
    recording(tmp_path / "seen")
    return tmp_path / "seen"


def test_the_next_action_is_compared_with_and_without_the_view(folder: Path) -> None:
    """One that does the same agrees each time; one that acts on what it sees agrees with itself, not with the view."""
    same = compared(folder, sure)
    assert same.compared >= 5
    assert (same.again, same.view, same.problems) == (same.compared, same.compared, [])
    other = compared(folder, confused)
    assert (other.compared, other.again, other.view_tool, other.view) == (same.compared, same.compared, same.compared, 0)
    assert compared(folder, sure, most=3).compared == 3


def test_it_stops_before_the_dollars_are_spent(folder: Path) -> None:
    everything = compared(folder, sure)
    part = compared(folder, sure, str(everything.dollars / 2))
    assert 0 < part.compared < everything.compared
    assert part.dollars <= everything.dollars / 2
    assert "may be spent" in part.problems[0]


def test_the_command_prints_a_table(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a key, it says so and asks nobody."""
    with AnthropicStub(sure) as stub:
        command = ["--live", str(folder), "--upstream", f"anthropic={stub.url}"]
        assert main(command) == 0
        assert "| view |" in capsys.readouterr().out
        asked = len(stub.requests)
        monkeypatch.delenv("ANTHROPIC_API_KEY")
        assert main(command) == 0
        assert "left out: ANTHROPIC_API_KEY is not set" in capsys.readouterr().out
        assert len(stub.requests) == asked
