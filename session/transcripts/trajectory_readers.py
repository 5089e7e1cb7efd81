"""Finds the reported usage in the logs of agents that write whole runs: mini-swe-agent, SWE-agent and OpenHands.

A reader gets the document, or the entries one by one if the document is a list or the file has lines.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

from . import mini_swe_agent, openhands, swe_agent
from .requests import Request, RequestReader, amounts_of
from .usage import Counts, dollars, usage_of
from .values import JsonObject, count_at, id_at, list_at, moment, object_at, objects_at, seconds, stated_at, text_at


class MiniSweReader:
    """mini-swe-agent keeps each response of the provider with its message."""

    def read(self, value: JsonObject) -> Iterator[Request]:
        """Yield the requests of a trajectory, or of one of its messages."""
        for message in objects_at(value, "messages") if "messages" in value else [value]:
            extra = object_at(message, "extra")
            response = object_at(extra, "response")
            time = moment(response.get("created")) or moment(extra.get("timestamp"))
            yield from _of_response(response, mini_swe_agent.NAME, id_at(value, "instance_id"), time)


class SweAgentReader:
    """SWE-agent keeps the sums of a run only. They become one request without a time."""

    def read(self, value: JsonObject) -> Iterator[Request]:
        """Yield the sums of a trajectory."""
        stats = object_at(object_at(value, "info"), "model_stats")
        model = object_at(object_at(object_at(value, "replay_config"), "agent"), "model")
        yield Request(
            "",
            None,
            swe_agent.NAME,
            text_at(model, "name"),
            "",
            text_at(value, "environment"),
            input_tokens=count_at(stats, "tokens_sent"),
            output_tokens=count_at(stats, "tokens_received"),
            cost=dollars(stats.get("instance_cost")),
        )


class OpenHandsReader:
    """OpenHands repeats a response in each event that came from it. Its agent SDK reports the totals so far instead, by purpose.

    Runs of older versions state only their price. It becomes one request without tokens.
    """

    def __init__(self) -> None:
        self._totals: dict[str, _Total] = {}

    def read(self, value: JsonObject) -> Iterator[Request]:
        """Yield the requests of a record with a history, or of one event."""
        if "history" not in value:
            yield from self._of_event(value, "")
            return
        requests = list(self._of_record(value))
        yield from requests
        price = dollars(object_at(value, "metrics").get("accumulated_cost"))
        if price and not requests:
            yield Request("", None, openhands.NAME, "", "", id_at(value, "instance_id"), "", cost=price)

    def _of_record(self, record: JsonObject) -> Iterator[Request]:
        session = id_at(record, "instance_id")
        for entry in list_at(record, "history"):
            for event in entry if isinstance(entry, list) else [entry]:  # older logs pair each action with its observation
                if isinstance(event, dict):
                    yield from self._of_event(event, session)
        for usage in objects_at(object_at(record, "metrics"), "token_usages"):
            yield from _of_response({"id": usage.get("response_id"), "usage": usage} | usage, openhands.NAME, session, None)

    def _of_event(self, event: JsonObject, session: str) -> Iterator[Request]:
        time = seconds(event.get("timestamp"))
        response = object_at(object_at(event, "tool_call_metadata"), "model_response")
        yield from _of_response(response, openhands.NAME, session, moment(response.get("created")) or time)
        by_purpose = object_at(object_at(event, "value"), "usage_to_metrics")
        for purpose in by_purpose:
            metrics = object_at(by_purpose, purpose)
            total = _total_of(metrics)
            new = total.since(self._totals.get(purpose, NOTHING))
            self._totals[purpose] = total
            model = text_at(metrics, "model_name")
            agent = "" if purpose == "default" else purpose
            yield Request(
                "", time, openhands.NAME, model, "", session, agent, **amounts_of(new.counts), reasoning=new.reasoning, cost=new.cost
            )


class _Total(NamedTuple):
    """Tokens used for a purpose so far."""

    counts: Counts
    reasoning: int | None
    cost: Decimal | None

    def since(self, before: _Total) -> _Total:
        """Return the usage after an earlier report; all of it if the totals have begun again."""
        counts = Counts(*(count - then for count, then in zip(self.counts, before.counts, strict=True)))
        if min(counts) < 0:
            return self
        cost = None if self.cost is None else max(self.cost - (before.cost or 0), Decimal(0))
        reasoning = None if self.reasoning is None else max(self.reasoning - (before.reasoning or 0), 0)
        return _Total(counts, reasoning, cost)


NOTHING = _Total(Counts(), None, None)


def _total_of(metrics: JsonObject) -> _Total:
    report = object_at(metrics, "accumulated_token_usage")
    return _Total(usage_of(report) or Counts(), stated_at(report, "reasoning_tokens"), dollars(metrics.get("accumulated_cost")))


def _of_response(response: JsonObject, tool: str, session: str, time: float | None) -> Iterator[Request]:
    """Yield the request that a provider's response reports, if it reports one."""
    usage = object_at(response, "usage")
    counts = usage_of(usage)
    if counts is None:
        return
    response_id = id_at(response, "id")
    reasoning = stated_at(object_at(usage, "completion_tokens_details"), "reasoning_tokens")
    key, model, cost = f"{tool}:{response_id}" if response_id else "", text_at(response, "model"), dollars(usage.get("cost"))
    yield Request(key, time, tool, model, "", session, "", **amounts_of(counts), reasoning=reasoning, cost=cost)


TRAJECTORY_READERS: dict[str, type[RequestReader]] = {
    mini_swe_agent.NAME: MiniSweReader,
    swe_agent.NAME: SweAgentReader,
    openhands.NAME: OpenHandsReader,
}
"""The readers by the name of their format."""
