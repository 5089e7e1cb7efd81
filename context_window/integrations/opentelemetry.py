"""OpenTelemetry: spans of trims and compactions, and the conventions' metric of the tokens that requests use. Needs the extra `otel`.

    telemetry = Telemetry("claude-sonnet-5-5")
    manager = ContextWindowManager("claude-sonnet-5-5", on_event=telemetry)
    await run_turn(session, "Hello", model=model, manager=manager, interceptors=[telemetry])

Your program configures the SDK and its exporters. Nothing that is exported holds content. Events become log records without this: see
`context_window/events/telemetry.py`, which has the names of the attributes.
"""

from __future__ import annotations

from time import time_ns

from opentelemetry.metrics import MeterProvider, get_meter
from opentelemetry.trace import Status, StatusCode, TracerProvider, get_tracer

from session.sanitize import clean
from session.session import Session
from session.usage import Usage

from ..events.definitions import Compacted, CompactionFailed, Event, Trimmed
from ..events.telemetry import MODEL, attributes_of
from ..loop.interceptor import Interceptor
from ..models import describe_model
from ..usage.usage_reports import usage_from

NAME = "context_window"
PROVIDERS = {"claude": "anthropic", "openai": "openai", "google": "gcp.gen_ai"}
"""Names of providers in the conventions, by the family of a model's name. Others have that of the family."""
BUCKETS = [4**power for power in range(14)]
"""Bounds of the metric's buckets, in tokens, as the conventions have them: https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-metrics."""


class Telemetry(Interceptor):
    """A listener of events that makes spans of trims and compactions, and an interceptor that measures the tokens of each request."""

    def __init__(self, model: str, *, tracers: TracerProvider | None = None, meters: MeterProvider | None = None) -> None:
        """
        Args:
            model: The name of the model that requests go to.
            tracers: Makes the spans. Default: the provider that the program has configured.
            meters: Makes the metric. Default: the provider that the program has configured.
        """
        self._model = clean(model)
        family = str(describe_model(model).family)
        self._labels = {MODEL: self._model, "gen_ai.operation.name": "chat", "gen_ai.provider.name": PROVIDERS.get(family, family)}
        self._tracer = get_tracer(NAME, tracer_provider=tracers)
        self._tokens = get_meter(NAME, meter_provider=meters).create_histogram(
            "gen_ai.client.token.usage",
            unit="{token}",
            description="Number of input and output tokens used.",
            explicit_bucket_boundaries_advisory=BUCKETS,
        )

    def __call__(self, event: Event) -> None:
        """Make a span of a trim or a compaction; of a compaction, also measure the tokens that its summary cost."""
        if not isinstance(event, (Trimmed, Compacted, CompactionFailed)):
            return
        end = time_ns()
        seconds = 0.0 if isinstance(event, Trimmed) else event.seconds
        attributes = attributes_of(event, self._model)
        span = self._tracer.start_span(f"{NAME}.{event.stage}", start_time=end - int(seconds * 1e9), attributes=attributes)
        if isinstance(event, CompactionFailed):
            span.set_status(Status(StatusCode.ERROR, clean(event.why)))
        span.end(end)
        if not isinstance(event, Trimmed):
            self.record(event.usage)

    async def aafter_model_call(self, session: Session, usage: object = None) -> None:  # noqa: ARG002 - an interceptor's signature
        """Measure the tokens that the provider reported for a request."""
        if usage is not None:
            self.record(usage)

    def record(self, usage: object) -> None:
        """Measure the tokens of one request, for loops of your own. A report of no tokens is ignored.

        Args:
            usage: A `Usage`, or the report of a provider's client.

        Raises:
            ArgumentError: It is not a usage report.
        """
        used: Usage = usage_from(usage)
        for kind, tokens in (("input", used.total_input), ("output", used.output_tokens)):
            if used.total_input or used.output_tokens:
                self._tokens.record(tokens, {**self._labels, "gen_ai.token.type": kind})
