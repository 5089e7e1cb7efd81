"""Spans of trims and compactions, and the metric of tokens, with the real SDK and exporters in memory."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from context_window import Answer, ArgumentError, Message, Session, ThresholdCrossed, Usage, run_turn
from context_window.events.telemetry import attributes_of
from context_window.integrations.opentelemetry import Telemetry
from tests.support.looping import ScriptedModel, manager
from tests.support.managing import session_of


class Exported:
    """What a listener exports."""

    def __init__(self, model: str = "claude-opus-5") -> None:
        self._spans, self._reader = InMemorySpanExporter(), InMemoryMetricReader()
        tracers = self.tracers = TracerProvider()
        tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        self.telemetry = Telemetry(model, tracers=tracers, meters=MeterProvider([self._reader], shutdown_on_exit=False))

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self._spans.get_finished_spans())

    def points(self) -> list[tuple[dict[str, Any], float, int]]:
        """Return each series' labels, sum and number of values."""
        data = self._reader.get_metrics_data()
        metrics = [] if data is None else [m for r in data.resource_metrics for scope in r.scope_metrics for m in scope.metrics]
        assert {(metric.name, metric.unit) for metric in metrics} <= {("gen_ai.client.token.usage", "{token}")}
        found: list[Any] = [point for metric in metrics for point in metric.data.data_points]
        assert all(list(point.explicit_bounds) == [4**power for power in range(14)] for point in found)
        return [(dict(point.attributes), point.sum, point.count) for point in found]


def labels(kind: str, model: str = "claude-opus-5", provider: str = "anthropic") -> dict[str, str]:
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider,
        "gen_ai.request.model": model,
        "gen_ai.token.type": kind,
    }


def test_a_trim_is_a_span_within_the_one_it_happened_in() -> None:
    exported = Exported()
    seen: list[Any] = []

    def listener(event: Any) -> None:
        seen.append(event)
        exported.telemetry(event)

    session = session_of(3)
    session.add_message("user", "zebra " * 100)
    with exported.tracers.get_tracer("test").start_as_current_span("turn") as turn:
        manager(1000, on_event=listener).process_session(session)
    trim, outer = exported.spans
    assert (trim.name, outer.name) == ("context_window.trim", "turn")
    assert trim.parent == turn.get_span_context()
    assert dict(trim.attributes or {}) == attributes_of(seen[0], "claude-opus-5")
    assert any(isinstance(event, ThresholdCrossed) for event in seen), "which is no work, and no span"
    assert "zebra" not in trim.to_json()
    assert exported.points() == []


@pytest.mark.parametrize("works", [True, False])
def test_a_compaction_is_a_span_as_long_as_it_took_and_its_tokens_count(works: bool) -> None:
    class Model(ScriptedModel):
        async def answer(self, *args: Any, **options: Any) -> Answer:
            await asyncio.sleep(0.05)
            text = "Earlier: q and a." if works else ""
            return Answer((Message("assistant", text),), "end_turn", Usage(700, cache_read_tokens=50, output_tokens=30))

    exported = Exported()
    session = session_of(9, size=300)
    session.add_message("user", "and now?")
    limits = manager(2000, on_event=exported.telemetry)
    asyncio.run(limits.manage(session, Model()))
    span = next(span for span in exported.spans if span.name == "context_window.compact")
    assert span.start_time is not None
    assert span.end_time is not None
    assert 0.05 <= (span.end_time - span.start_time) / 1e9 < 30
    assert (span.status.status_code is StatusCode.ERROR) == (not works)
    paid = limits.summary_usage(session)
    assert exported.points() == [(labels("input"), paid.total_input, 1), (labels("output"), paid.output_tokens, 1)]
    assert paid.total_input > 0


def test_each_request_of_a_turn_is_measured() -> None:
    exported = Exported("gpt-5.2")
    answer = Answer((Message("assistant", "Hello."),), "end_turn", Usage(10, cache_read_tokens=90, cache_write_tokens=5, output_tokens=7))
    model = ScriptedModel(answer, answer)
    session = Session()
    for _ in range(2):
        asyncio.run(run_turn(session, "hi", model=model, manager=manager(), interceptors=[exported.telemetry]))
    expected = [(labels(kind, "gpt-5.2", "openai"), total, 2) for kind, total in (("input", 210), ("output", 14))]
    assert exported.points() == expected
    assert exported.spans == []


def test_a_loop_of_ones_own_passes_what_its_client_reports() -> None:
    exported = Exported("gemini-3-pro-preview")
    exported.telemetry.record({"input_tokens": 12, "output_tokens": 3})
    exported.telemetry.record(Usage())
    assert exported.points() == [
        (labels("input", "gemini-3-pro-preview", "gcp.gen_ai"), 12, 1),
        (labels("output", "gemini-3-pro-preview", "gcp.gen_ai"), 3, 1),
    ]
    with pytest.raises(ArgumentError):
        exported.telemetry.record("many")


def test_a_program_that_has_configured_nothing_loses_nothing() -> None:
    session = session_of(3)
    session.add_message("user", "zebra " * 100)
    view = manager(1000, on_event=Telemetry("claude-opus-5")).process_session(session)
    assert view.items == manager(1000).process_session(session).items
