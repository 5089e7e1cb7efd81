"""Reads trajectories in the Agent Trajectory Interchange Format, which Harbor and Terminal-Bench write: documents
`{schema_version: "ATIF-v1.…", session_id, agent, steps, final_metrics}`, https://harborframework.com/docs/trajectory-format.

A step is a message of the system or the user, or an answer with its calls and then their results. A result that names no call belongs to
the call at its place if there are as many results as calls; else it is CONTEXT. Trajectories of sub-agents stand inside since 1.7.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from .account import TranscriptAccount
from .block_parser import text_or_json
from .draft import Draft, finish
from .record import Record
from .record_feed import ReadRecord, feed_entries, skip_strangers, text_size
from .requests import Request, amounts_of
from .source import Source
from .usage import Counts, dollars, split_total
from .values import Clock, JsonObject, carried, count_at, list_at, moment, object_at, objects_at, stated_at, text_at
from .writer import Writer

NAME = "atif"
ROLES = {"system": "system", "user": "user", "agent": "assistant"}
READ = frozenset({"source", "message", "reasoning_content", "tool_calls", "observation", "timestamp", "model_name"})
NOT_IN_PROMPT = frozenset({"step_id", "reasoning_effort", "metrics", "extra", "is_copied_context", "llm_call_count"})


def claims(value: object) -> bool:
    """Return True if the value is a trajectory."""
    return isinstance(value, dict) and text_at(value, "schema_version").startswith("ATIF") and isinstance(value.get("steps"), list)


def usage_of(metrics: JsonObject) -> Counts | None:
    """Return the tokens of a step's metrics, or None if they state none. Prompt tokens include the cached ones."""
    extra = object_at(metrics, "extra")
    written = count_at(extra, "cache_creation_input_tokens") or count_at(extra, "cache_write_tokens")
    amounts = (count_at(metrics, "prompt_tokens"), count_at(metrics, "cached_tokens"), written, count_at(metrics, "completion_tokens"))
    return split_total(*amounts) if any(amounts) else None


def read(source: Source, *, with_sidechains: bool) -> TranscriptAccount:
    """Return the session in the document, and those of its sub-agents.

    Raises:
        TranscriptError: The document contains no messages.
    """
    drafts: list[Draft] = []
    count = 0
    for trajectory in _trajectories(source.document_object) if with_sidechains else [source.document_object]:
        steps, agent = list_at(trajectory, "steps"), object_at(trajectory, "agent")
        session = text_at(trajectory, "trajectory_id", "session_id")
        names = {"session_id": text_at(trajectory, "session_id"), "agent": text_at(agent, "name"), "model": text_at(agent, "model_name")}
        metadata = {name: value for name, value in names.items() if value} | ({"sidechain": True} if drafts else {})
        draft = Draft(NAME, source, session or f"{source.path.stem}-{len(drafts)}", metadata)
        draft.describe(tools=carried(objects_at(agent, "tool_definitions"), 10_000_000))
        feed_entries(steps, draft, _reader(draft), first=count + 1)
        drafts.append(draft)
        count += len(steps)
    return finish(NAME, source, drafts, main_count=1)


def _trajectories(value: JsonObject) -> Iterator[JsonObject]:
    """Yield a trajectory and those inside it, however deep."""
    waiting = [value]
    while waiting:
        trajectory = waiting.pop(0)
        yield trajectory
        waiting += objects_at(trajectory, "subagent_trajectories")


def _reader(draft: Draft) -> ReadRecord:
    writer = Writer(draft)

    def read_step(_: Draft, record: Record, value: JsonObject) -> None:
        role = ROLES.get(text_at(value, "source"))
        if role is None:
            record.skip(f"a step of unknown source {text_or_json(value.get('source'))}"[:100])
            return
        skip_strangers(record, value, "tool_calls")
        skip_strangers(record, object_at(value, "observation"), "results")
        calls = objects_at(value, "tool_calls")
        message: JsonObject = {"role": role, "content": _content(value.get("message"), record), "timestamp": value.get("timestamp")}
        if role == "assistant":
            message["reasoning_content"] = value.get("reasoning_content")
            functions = ({"name": call.get("function_name"), "arguments": call.get("arguments")} for call in calls)
            message["tool_calls"] = [{"id": call.get("tool_call_id"), "function": one} for call, one in zip(calls, functions, strict=True)]
        if response := writer.write(record, message):
            draft.report(response, usage_of(object_at(value, "metrics")))
        results = objects_at(object_at(value, "observation"), "results")
        named = [text_at(result, "source_call_id") for result in results]
        if not any(named) and len(results) == len(calls):
            named = [text_at(call, "tool_call_id") for call in calls]
        for result, call in zip(results, named, strict=True):
            content = _content(result.get("content"), record)
            if call:
                output = {"role": "tool", "tool_call_id": call, "content": content, "is_error": result.get("is_error")}
                writer.write(record, {**output, "timestamp": value.get("timestamp")})
            elif content:
                writer.write(record, {"role": "user", "content": content, "timestamp": value.get("timestamp")}, source="observation")
        for name, member in value.items():
            if name not in READ | NOT_IN_PROMPT and text_size(member):
                record.skip(f"unknown field {name!r}"[:100])

    return read_step


def _content(content: object, record: Record) -> list[object]:
    """Return the blocks of a content, without images in files beside the trajectory."""
    blocks: list[object] = []
    for part in content if isinstance(content, list) else [] if content in (None, "") else [content]:
        path = text_at(object_at(part, "source"), "path", "url") if isinstance(part, dict) and part.get("type") == "image" else ""
        if path.startswith(("http:", "https:", "data:")):
            blocks.append({"type": "image_url", "image_url": path})
        elif path:
            record.skip("left out a file that the log names and does not hold")
        else:
            blocks.append(part)
    return blocks


class Requests:
    """A step has the metrics of its request. Without any, the trajectory's sums become one request.

    Attributes:
        note: A sentence on that; empty if steps have metrics.
    """

    def __init__(self, path: Path) -> None:
        self.note = ""
        self._path = path

    def read(self, value: JsonObject) -> Iterator[Request]:
        """Yield the requests of a trajectory and of those inside it. Steps copied from an earlier trajectory do not count again."""
        main = text_at(value, "session_id", "trajectory_id") or self._path.stem
        for trajectory in _trajectories(value):
            agent = "" if trajectory is value else text_at(trajectory, "trajectory_id", "session_id") or "sub-agent"
            steps = [step for step in objects_at(trajectory, "steps") if step.get("is_copied_context") is not True]
            times = [moment(step.get("timestamp")) for step in steps]
            clock, reports = Clock(), []
            for step, time in zip(steps, times, strict=True):
                reports.append(self._of_step(trajectory, step, main, agent, clock.at(time) or None))
            if any(report.total or report.cost for report in reports):
                yield from reports
                continue
            sums = {name.removeprefix("total_"): amount for name, amount in object_at(trajectory, "final_metrics").items()}
            start = next((time for time in times if time is not None), None)
            report = self._of_step(trajectory, {"metrics": sums}, main, agent, start)
            if report.total or report.cost:
                self.note = "only the sum of its requests is known, which counts as one request"
                yield report

    def _of_step(self, trajectory: JsonObject, step: JsonObject, main: str, agent: str, time: float | None) -> Request:
        metrics, wrote = object_at(step, "metrics"), object_at(trajectory, "agent")
        counts = usage_of(metrics) or Counts()
        figures = (agent, step.get("step_id"), step.get("timestamp"), *counts[:4])
        return Request(
            f"atif:{main}:{'.'.join(map(str, figures))}",
            time,
            text_at(wrote, "name") or NAME,
            text_at(step, "model_name") or text_at(wrote, "model_name"),
            "",
            main,
            agent,
            **amounts_of(counts),
            reasoning=None
            if (stated := stated_at(object_at(metrics, "extra"), "reasoning_tokens")) is None
            else min(stated, counts.output_tokens),
            cost=dollars(metrics.get("cost_usd")),
        )
