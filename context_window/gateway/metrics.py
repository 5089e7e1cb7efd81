"""`metrics_text`: the ledger in the text form that Prometheus reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, Metric, SummaryMetricFamily
from prometheus_client.registry import Collector

from .ledger import GatewayLedger

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Labelled = Mapping[tuple[str, ...], int]
"""Counts by the values of labels."""
PREFIX = "context_window_gateway_"


def metrics_text(ledger: GatewayLedger) -> bytes:
    """Return the totals of a ledger. Labels are names of wire formats and of errors, and HTTP statuses: nothing that a request says."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_LedgerCollector(ledger))
    return generate_latest(registry)


class _LedgerCollector(Collector):
    def __init__(self, ledger: GatewayLedger) -> None:
        self._ledger = ledger

    def collect(self) -> Iterable[Metric]:
        """Yield the totals."""
        ledger = self._ledger
        yield _counter("conversation_requests", "Requests of conversations that were fitted.", ledger.requests)
        yield _counter("shortened_requests", "Those of them that were sent with fewer or shorter messages.", ledger.shortened)
        yield _counter("received_bytes", "Bytes of their bodies.", ledger.received)
        yield _counter("forwarded_bytes", "Bytes of the bodies that went upstream.", ledger.forwarded)
        yield _counter("recalls", "Calls of the recall tool that were answered.", ledger.recalls)
        unmanaged: Labelled = {(error,): count for error, count in (ledger.unmanaged or {}).items()}
        yield _counters("unmanaged_requests", "Requests that could not be fitted.", ("error",), unmanaged)
        answers: Labelled = {(name, str(status)): count for (name, status), count in ledger.answers.items()}
        yield _counters("answers", "Answers of upstreams; 502 for those that could not be reached.", ("upstream", "status"), answers)
        decisions = ledger.requests + sum((ledger.unmanaged or {}).values())
        yield SummaryMetricFamily(
            f"{PREFIX}decision_seconds", "Time that fitting a conversation took.", count_value=decisions, sum_value=ledger.decision_seconds
        )


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(PREFIX + name, text, value=value)


def _counters(name: str, text: str, labels: tuple[str, ...], values: Labelled) -> Metric:
    family = CounterMetricFamily(PREFIX + name, text, labels=labels)
    for key, value in values.items():
        family.add_metric(key, value)
    return family
