"""Events exported to OpenTelemetry, under the names of its conventions and without content."""

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
    Usage,
)
from context_window.events.definitions import Compacted, Event, Trimmed
from context_window.events.telemetry import attributes_of, export, name_of
from tests.support.managing import make_manager, session_of

EVENTS: list[Event] = [
    ThresholdCrossed("s", 100, 200, 0.5),
    Trimmed("s", 100, 200, 3, 50, (("message", 1), ("config update", 2))),
    OverBudget("s", 300, 200),
    ProviderOverBudget("s", 300, 200, 190),
    PartRefused("s", 100, 200, "m", 1, "image", "Could not process image"),
    CounterFellBack("s", 100, 200, "no vocabulary", "4 characters"),
    Compacted("s", 100, 200, 12, 90, 20, Usage(700, output_tokens=30)),
    CompactionFailed("s", 100, 200, "it took too long"),
    CalibrationReset("s", 100, 200, "another model"),
    PartUnusable("s", 100, 200, "m1", 2, "image", "damaged: it ends in the middle"),
]


@pytest.fixture
def spans() -> Iterator[InMemorySpanExporter]:
    """An exporter that collects ended spans; one span is open."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with provider.get_tracer("test").start_as_current_span("turn"):
        yield exporter
    provider.shutdown()


@pytest.fixture
def records(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemoryLogRecordExporter]:
    """A configured logger provider. The API accepts one per process, so the fixture restores it by hand."""
    exporter, provider = InMemoryLogRecordExporter(), LoggerProvider()  # type: ignore[no-untyped-call]
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    monkeypatch.setattr("opentelemetry._logs._internal._LOGGER_PROVIDER", provider)
    assert logs_api.get_logger_provider() is provider
    yield exporter
    provider.shutdown()


def events_of_the_span() -> list[tuple[str, dict[str, Any]]]:
    from opentelemetry.trace import get_current_span

    return [(event.name, dict(event.attributes or {})) for event in get_current_span().events]  # type: ignore[attr-defined]


def overfull() -> Session:
    """A budget of 1,000 tokens: one trim, and one threshold."""
    session = session_of(3)
    session.add_message("user", "zebra " * 100)
    return session


def test_every_kind_of_event_is_tried_here() -> None:
    assert {type(event) for event in EVENTS} == set(get_args(Event))


def test_an_event_is_logged_with_its_name_its_severity_and_the_span_it_happened_in(
    spans: InMemorySpanExporter, records: InMemoryLogRecordExporter
) -> None:
    from opentelemetry.trace import get_current_span

    make_manager(1000).process_session(overfull())
    logs = [log.log_record for log in records.get_finished_logs()]
    assert [log.event_name for log in logs] == [
        "context_window.trimmed",
        "context_window.threshold_crossed",
    ]
    assert logs[0].severity_text == "INFO"
    assert str(logs[0].body).startswith("context window at 69%")
    context = get_current_span().get_span_context()
    assert {(log.trace_id, log.span_id) for log in logs} == {(context.trace_id, context.span_id)}
    assert events_of_the_span() == [], "told once, not twice"


def test_serious_events_are_warnings(records: InMemoryLogRecordExporter) -> None:
    for event in EVENTS:
        export(event)
    severities = [(log.log_record.event_name, log.log_record.severity_text) for log in records.get_finished_logs()]
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
    assert attributes["context_window.before"] == attributes["gen_ai.usage.input_tokens"] + attributes["context_window.freed"]
    assert attributes["gen_ai.request.model"] == "gpt-5"
    assert attributes["context_window.budget"] == 1000


def test_outside_a_span_and_without_a_logger_nothing_happens(caplog: pytest.LogCaptureFixture) -> None:
    for event in EVENTS:
        export(event)
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
        "context_window.before": 150,
        "context_window.kinds.message": 1,
        "context_window.kinds.config_update": 2,
    }
    assert attributes_of(EVENTS[7]) == {
        "gen_ai.conversation.id": "s",
        "gen_ai.usage.input_tokens": 100,
        "context_window.budget": 200,
        "context_window.stage": "compact",
        "context_window.why": "it took too long",
        "context_window.seconds": 0.0,
    }
    assert (
        attributes_of(EVENTS[6]).items()
        >= {
            "context_window.usage.input_tokens": 700,
            "context_window.usage.output_tokens": 30,
        }.items()
    )


def test_characters_that_exporters_cannot_encode_are_replaced() -> None:
    """Names of counters and models come from the user."""
    attributes = attributes_of(CounterFellBack("s", 1, 2, "why \ud800", "\udfff"), "gpt-\ud800")
    assert "\ud800" not in str([str(value).encode() for value in attributes.values()])


@pytest.mark.parametrize("event", EVENTS, ids=name_of)
def test_no_attribute_is_dropped_by_opentelemetry(event: Event, spans: InMemorySpanExporter) -> None:
    """OpenTelemetry accepts strings and numbers; it logs and drops everything else."""
    export(event, "m")
    ((_, attributes),) = events_of_the_span()
    assert attributes == attributes_of(event, "m")
    assert all(type(value) in (str, int, float) for value in attributes.values())


def test_no_content_is_exported(spans: InMemorySpanExporter, records: InMemoryLogRecordExporter) -> None:
    session = overfull()
    session.add_function_call("quagga", {"path": "zebra"}, "marked")
    session.add_function_output("quagga", "zebra " * 400, "marked")
    manager = make_manager(1000, strict=True)
    manager.analyze_session(session)
    manager.trim_session(session)
    session.add_message("user", "zebra " * 400, pinned=True)
    with pytest.raises(ContextOverflowError):
        manager.process_session(session)
    logs = records.get_finished_logs()
    assert len(logs) >= 4
    texts = [log.to_json() for log in logs]
    assert all("gen_ai.conversation.id" in text and "tokens" in text for text in texts)
    assert not any(word in text for text in texts for word in ("zebra", "quagga"))


@pytest.mark.usefixtures("spans")
def test_a_provider_that_fails_costs_nobody_a_turn(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    class Broken(LoggerProvider):
        def get_logger(self, *args: Any, **kwargs: Any) -> Any:
            raise RuntimeError("the secret is tr0ub4dor")

    events: list[Event] = []
    monkeypatch.setattr("opentelemetry._logs._internal._LOGGER_PROVIDER", Broken())
    manager = ContextWindowManager(token_counter=len, context_window=ContextWindow(1000), on_event=events.append)
    with caplog.at_level(logging.ERROR):
        assert len(manager.process_session(overfull()).items) < 14
    assert len(events) == 2
    assert [record.getMessage() for record in caplog.records] == [
        f"OpenTelemetry failed on {type(event).__name__}: RuntimeError" for event in events
    ]
    assert "tr0ub4dor" not in caplog.text


@pytest.mark.parametrize(
    ("before", "loaded"),
    [("", False), ("import sys, types; sys.modules['opentelemetry'] = types.ModuleType('opentelemetry')", True)],
    ids=["not imported by the program", "a package of that name without the API"],
)
def test_a_program_without_opentelemetry_gets_none(before: str, loaded: bool) -> None:
    """OpenTelemetry is not imported for events: a program that has not imported it cannot have configured it."""
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
    assert ran.stdout.split() == ["2", str(loaded), "False"]
    assert not ran.stderr
