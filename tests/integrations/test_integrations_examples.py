"""The adapters' examples run unchanged: the whole history is kept, and less is sent."""

from __future__ import annotations

import re
import runpy

import pytest

from context_window import ContextWindowManager
from tests.support.shared import ROOT

EXAMPLES = ROOT / "examples"


@pytest.mark.parametrize("name", ["anthropic_sdk", "pydantic_ai_agent", "langchain_agent", "openai_agents_run"])
def test_an_example_keeps_the_whole_history_and_sends_what_fits(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    views: list[int] = []
    process, aprocess = ContextWindowManager.process_session, ContextWindowManager.aprocess_session

    def processed(self: ContextWindowManager, session: object) -> object:
        view = process(self, session)  # type: ignore[arg-type]  # handed on
        views.append(self.available_tokens)
        return view

    async def aprocessed(self: ContextWindowManager, session: object) -> object:
        view = await aprocess(self, session)  # type: ignore[arg-type]  # handed on
        views.append(self.available_tokens)
        return view

    monkeypatch.setattr(ContextWindowManager, "process_session", processed)
    monkeypatch.setattr(ContextWindowManager, "aprocess_session", aprocessed)
    monkeypatch.setattr("sys.argv", [name])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    output = capsys.readouterr().out
    assert len(views) >= 24, "a request before each call, and one after it"
    assert min(views) >= 0, "none was over the budget"
    assert "tokens freed" in output
    (kept_count,) = re.findall(r"^(\d+) (?:messages|items) in the (?:history|state|log),", output, re.MULTILINE)
    assert int(kept_count) in (48, 49)
