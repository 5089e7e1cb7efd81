"""Events reach OpenTelemetry where a program has configured it, under the conventions' names, and nothing of what was said does."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from opentelemetry import _logs as logs_api
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from context_window import (
    CalibrationReset,
    CompactionFailed,
    ContextOverflowError,
    ContextWindow,
    ContextWindowManager,
    CounterFellBack,
    OverBudget,
    PartRefused,
    PartUnusable,
    ProviderOverBudget,
    Session,
    ThresholdCrossed,
)
from context_window.events import Compacted, Event, Trimmed
from context_window.telemetry import attributes_of, export, name_of
from tests.support.managing import manager, session_of

EVENTS: list[Event] = [
    ThresholdCrossed("s", 100, 200, 0.5),
    Trimmed("s", 100, 200, 3, 50, (("message", 1), ("config update", 2))),
    OverBudget("s", 300, 200),
    ProviderOverBudget("s", 300, 200, 190),
    PartRefused("s", 100, 200, "m", 1, "image", "Could not process image"),
    CounterFellBack("s", 100, 200, "no vocabulary", "4 characters"),
    Compacted("s", 100, 200, 12, 90, 20),
    CompactionFailed("s", 100, 200, "it took too long"),
    CalibrationReset("s", 100, 200, "another model"),
    PartUnusable("s", 100, 200, "m1", 2, "image", "damaged: it ends in the middle"),
]


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    """A span is open, and what has ended is in here."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with provider.get_tracer("test").start_as_current_span("turn"):
        yield exporter
    provider.shutdown()


@pytest.fixture
def records(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemoryLogRecordExporter]:
    """A logger provider is configured; the API takes one a process, so it is put back by hand."""
    exporter, provider = InMemoryLogRecordExporter(), LoggerProvider()  # type: ignore[no-untyped-call]
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    monkeypatch.setattr("opentelemetry._logs._internal._LOGGER_PROVIDER", provider)
    assert logs_api.get_logger_provider() is provider
    yield exporter
    provider.shutdown()


def events_of_the_span() -> list[tuple[str, dict[str, Any]]]:
    from opentelemetry.trace import get_current_span

    return [(one.name, dict(one.attributes or {})) for one in get_current_span().events]  # type: ignore[attr-defined]


def overfull() -> Session:
    """For 1,000 tokens: one trim, and one threshold above it."""
    session = session_of(3)
    session.add_message("user", "zebra " * 100)
    return session


def test_every_kind_of_event_is_tried_here() -> None:
    assert {type(one) for one in EVENTS} == set(get_args(Event))


def test_an_event_is_logged_with_its_name_its_severity_and_the_span_it_happened_in(
    spans: InMemorySpanExporter, records: InMemoryLogRecordExporter
) -> None:
    from opentelemetry.trace import get_current_span

    manager(1000).process_session(overfull())
    found = [one.log_record for one in records.get_finished_logs()]
    assert [one.event_name for one in found] == [
        "context_window.trimmed",
        "context_window.threshold_crossed",
    ]
    assert found[0].severity_text == "INFO"
    assert str(found[0].body).startswith("context window at 69%")
    context = get_current_span().get_span_context()
    assert {(one.trace_id, one.span_id) for one in found} == {(context.trace_id, context.span_id)}
    assert events_of_the_span() == [], "told once, not twice"


def test_what_calls_for_attention_is_a_warning(records: InMemoryLogRecordExporter) -> None:
    for one in EVENTS:
        export(one)
    severities = [(one.log_record.event_name, one.log_record.severity_text) for one in records.get_finished_logs()]
    assert severities == [
        ("context_window.threshold_crossed", "INFO"),
        ("context_window.trimmed", "INFO"),
        ("context_window.over_budget", "WARN"),
        ("context_window.provider_over_budget", "WARN"),
        ("context_window.part_refused", "WARN"),
        ("context_window.counter_fell_back", "WARN"),
        ("context_window.compacted", "INFO"),
        ("context_window.compaction_failed", "WARN"),
        ("context_window.calibration_reset", "INFO"),
        ("context_window.part_unusable", "WARN"),
    ]


def test_without_a_logger_provider_events_are_events_of_the_span(spans: InMemorySpanExporter) -> None:
    session = overfull()
    ContextWindowManager("gpt-5", len, context_window=ContextWindow(1000)).process_session(session)
    (name, attributes), *_ = events_of_the_span()
    assert name == "context_window.trimmed"
    assert attributes["gen_ai.conversation.id"] == session.id
    assert attributes["gen_ai.request.model"] == "gpt-5"
    assert attributes["context_window.budget"] == 1000


def test_outside_a_span_and_without_a_logger_nothing_happens(caplog: pytest.LogCaptureFixture) -> None:
    for one in EVENTS:
        export(one)
    assert caplog.records == []


def test_attributes_have_the_names_of_the_conventions_and_ours_a_prefix() -> None:
    assert attributes_of(EVENTS[1], "claude-opus-5") == {
        "gen_ai.request.model": "claude-opus-5",
        "gen_ai.conversation.id": "s",
        "gen_ai.usage.input_tokens": 100,
        "context_window.budget": 200,
        "context_window.stage": "trim",
        "context_window.items": 3,
        "context_window.freed": 50,
        "context_window.kinds.message": 1,
        "context_window.kinds.config_update": 2,
    }
    assert attributes_of(EVENTS[7]) == {
        "gen_ai.conversation.id": "s",
        "gen_ai.usage.input_tokens": 100,
        "context_window.budget": 200,
        "context_window.stage": "compact",
        "context_window.why": "it took too long",
    }


def test_what_no_exporter_could_encode_is_replaced() -> None:
    """Names of counters and models are the user's."""
    attributes = attributes_of(CounterFellBack("s", 1, 2, "why \ud800", "\udfff"), "gpt-\ud800")
    assert "\ud800" not in str([str(value).encode() for value in attributes.values()])


@pytest.mark.parametrize("one", EVENTS, ids=name_of)
def test_no_attribute_is_dropped_by_opentelemetry(one: Event, spans: InMemorySpanExporter) -> None:
    """It takes texts and numbers, and logs and leaves out everything else."""
    export(one, "m")
    ((_, attributes),) = events_of_the_span()
    assert attributes == attributes_of(one, "m")
    assert all(type(value) in (str, int, float) for value in attributes.values())


def test_no_content_goes_out(spans: InMemorySpanExporter, records: InMemoryLogRecordExporter) -> None:
    session = overfull()
    session.add_function_call("quagga", {"path": "zebra"}, "marked")
    session.add_function_output("quagga", "zebra " * 400, "marked")
    asked = manager(1000, strict=True)
    asked.analyze_session(session)
    asked.trim_session(session)
    session.add_message("user", "zebra " * 400)
    with pytest.raises(ContextOverflowError):
        asked.process_session(session)
    found = records.get_finished_logs()
    assert len(found) >= 4
    texts = [one.to_json() for one in found]
    assert all("gen_ai.conversation.id" in text and "tokens" in text for text in texts)
    assert not any(word in text for text in texts for word in ("zebra", "quagga"))


@pytest.mark.usefixtures("spans")
def test_a_provider_that_fails_costs_nobody_a_turn(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    class Broken(LoggerProvider):
        def get_logger(self, *args: Any, **more: Any) -> Any:
            raise RuntimeError("the secret is tr0ub4dor")

    told: list[Event] = []
    monkeypatch.setattr("opentelemetry._logs._internal._LOGGER_PROVIDER", Broken())
    asked = ContextWindowManager(token_counter=len, context_window=ContextWindow(1000), on_event=told.append)
    with caplog.at_level(logging.ERROR):
        assert len(asked.process_session(overfull()).items) < 14
    assert len(told) == 2
    assert [record.getMessage() for record in caplog.records] == [
        f"OpenTelemetry failed on {type(one).__name__}: RuntimeError" for one in told
    ]
    assert "tr0ub4dor" not in caplog.text


@pytest.mark.parametrize(
    ("before", "loaded"),
    [("", False), ("import sys, types; sys.modules['opentelemetry'] = types.ModuleType('opentelemetry')", True)],
    ids=["not imported by the program", "a package of that name without the API"],
)
def test_a_program_without_opentelemetry_gets_none(before: str, loaded: bool) -> None:
    """Nothing is imported for its sake: who has not imported it cannot have configured it."""
    code = f"""
{before}
import sys
from context_window import ContextWindow, ContextWindowManager, Session
told = []
session = Session()
session.add_message("user", "x" * 500)
ContextWindowManager(token_counter=len, context_window=ContextWindow(100), on_event=told.append).process_session(session)
print(len(told), "opentelemetry" in sys.modules, "opentelemetry.trace" in sys.modules)
"""
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60)
    assert ran.stdout.split() == ["4", str(loaded), "False"]
    assert not ran.stderr
