"""Reads the logs of Kimi Code (`wire.jsonl` of an agent) and of its forerunner Kimi CLI (`wire.jsonl` of a session).

Kimi Code: records `{"type", "time", …}`. Those named `context.…` make the model's context, the others repeat it or are for the tool:
https://moonshotai.github.io/kimi-code/en/guides/sessions. An answer is a step: `step.begin`, its parts and calls, `step.end` with its
usage. `context.apply_compaction` keeps some of the user's messages, or, in older versions, the messages after the first ones.

Kimi CLI: `{"timestamp", "message": {"type", "payload"}}`. It keeps neither the system prompt nor summaries there, but in `context.jsonl`
beside it: the messages of the context as it is now, without their usage.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from session.errors import TranscriptError

from .account import TranscriptAccount
from .draft import Draft, finish
from .kimi_log import EVENTS, FAMILIES, OTHER_ROLES, KimiReader, event_of, usage_of
from .places import Place
from .record_feed import feed_lines
from .requests import Request, amounts_of
from .source import Source
from .usage import Counts
from .values import JsonObject, id_at, moment, object_at, text_at

NAME = "kimi"
PLACES = (
    Place("~/.kimi-code", "sessions/*/*/agents/*/wire.jsonl", "KIMI_CODE_HOME"),
    Place("~/.kimi", "sessions/*/*/wire.jsonl", "KIMI_SHARE_DIR"),
)


def claims(value: object) -> bool:
    """Return True if the value is a record of Kimi Code, or an event of Kimi CLI."""
    if not isinstance(value, dict):
        return False
    if text_at(value, "role") in OTHER_ROLES:
        return True
    if text_at(value, "type") == "metadata":
        return "protocol_version" in value
    family, dot, _ = text_at(value, "type").partition(".")
    return (bool(dot) and family in FAMILIES and "time" in value) or event_of(value)[0] in EVENTS


def read(source: Source, *, with_sidechains: bool) -> TranscriptAccount:  # noqa: ARG001 - sub-agents have files of their own
    """Return the session in the file.

    Raises:
        TranscriptError: The file contains no messages.
    """
    session, agent = _names(source.path)
    draft = Draft(NAME, source, agent or session or source.path.stem, {"session_id": session} if session else {})
    feed_lines(source.lines(), draft, KimiReader(draft).read)
    return finish(NAME, source, [draft], main_count=1)


def _names(path: Path) -> tuple[str, str]:
    """Return the ids of the session and of the sub-agent that a log's path names; empty if it names none."""
    folder = path.parent
    if path.name != "wire.jsonl":
        return "", ""
    if folder.parent.name in ("agents", "subagents"):
        return folder.parents[1].name, folder.name.removeprefix("main")
    return folder.name, ""


class Requests:
    """Kimi Code reports a step's usage at its end, then again in a `usage.record`, which also reports what compactions used.

    Kimi CLI reports it in a `StatusUpdate`, without the model. Those of sub-agents stand in the session's log, in newer versions also in
    logs of their own.

    Attributes:
        note: A sentence on requests whose model is not known; empty if there are none.
    """

    MARKS = (b'"usage"', b'"modelAlias"', b'"cwd"', b'"token_usage"')

    def __init__(self, path: Path) -> None:
        self.note = ""
        self._session, self._agent = _names(path)
        self._model, self._project = "", project_of(path)
        self._open: list[Counts] = []  # reports of steps that no `usage.record` has repeated

    def read(self, value: JsonObject) -> Iterator[Request]:
        """Yield the request that a record reports."""
        kind = text_at(value, "type")
        event, payload = event_of(value)
        cwd = text_at(value, "cwd") or text_at(object_at(value, "environmentDisclosure"), "cwd")
        self._project = self._project or cwd
        self._model = text_at(value, "modelAlias") or self._model
        if event:
            yield from self._of_event(event, payload, moment(value.get("timestamp")), self._agent)
            return
        loop = object_at(value, "event")
        is_step = kind == "context.append_loop_event" and text_at(loop, "type") == "step.end"
        counts = usage_of(object_at(loop if is_step else value, "usage"))
        if counts is None or not (is_step or kind == "usage.record"):
            return
        if is_step:
            self._open.append(counts)
            yield self._request(id_at(loop, "uuid"), moment(value.get("time")), self._model, self._agent, counts)
        elif counts in self._open:
            self._open.remove(counts)
        else:
            name = f"{value.get('time')}:{'.'.join(map(str, counts))}"
            yield self._request(name, moment(value.get("time")), text_at(value, "model") or self._model, self._agent, counts)

    def _of_event(self, event: str, payload: JsonObject, time: float | None, agent: str) -> Iterator[Request]:
        if event == "SubagentEvent":
            inner = object_at(payload, "event")
            agent = text_at(payload, "agent_id", "parent_tool_call_id", "task_tool_call_id") or "sub-agent"
            yield from self._of_event(text_at(inner, "type"), object_at(inner, "payload"), time, agent)
        counts = usage_of(object_at(payload, "token_usage")) if event == "StatusUpdate" else None
        if counts is not None:
            self.note = "requests whose model the log does not name"
            yield self._request(id_at(payload, "message_id"), time, "", agent, counts)

    def _request(self, name: str, time: float | None, model: str, agent: str, counts: Counts) -> Request:
        request_id = f"kimi:{name}" if name else ""
        return Request(request_id, time, NAME, model.rpartition("/")[2], self._project, self._session, agent, **amounts_of(counts))


def project_of(path: Path) -> str:
    """Return the folder that the session's `state.json` names; empty if there is none."""
    if path.name != "wire.jsonl" or path.parent.parent.name != "agents":
        return ""
    try:
        return text_at(Source(path.parents[2] / "state.json", is_named_by_data=True).document_object, "workDir")
    except TranscriptError:
        return ""
