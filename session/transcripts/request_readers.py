"""Finds the reported usage in the records of each log format. `reported_requests.py` reads the files and calls these readers.

A reader takes the JSON values of one file in order and keeps only what later values need: the session, its folder, the model.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from session.plan_limits import PlanLimits, limits_of

from . import claude_code, cline, codex, copilot_cli, gemini_cli, opencode, pi
from .anthropic_invoice import invoiced
from .codex.content import usage_of as codex_usage
from .opencode_v2 import is_answer
from .requests import NO_PROMPT, Request, RequestReader, amounts_of
from .usage import Counts, dollars, split_total
from .values import JsonObject, count_at, id_at, millis, moment, object_at, objects_at, seconds, stated_at, text_at


@dataclass(frozen=True, slots=True)
class Lineage:
    """The place of a log among the logs of a tool whose forks repeat their parents' reports. Ids of requests are unique in the log only.

    Attributes:
        thread: The log's own id; empty if the tool's forks are told by the ids of requests.
        start: When the log began, in Unix seconds; None if unknown.
        parents: Ids of the logs that it may repeat, the nearest first.
    """

    thread: str = ""
    start: float | None = None
    parents: tuple[str, ...] = ()

    def after(self, *threads: str) -> Lineage:
        """Return the lineage with further parents."""
        parents = dict.fromkeys((*self.parents, *(thread for thread in threads if thread and thread != self.thread)))
        return replace(self, parents=tuple(parents))


NO_LINEAGE = Lineage()


class ClaudeCodeReader:
    """Claude Code repeats a request's usage on every line of its answer. The answer's last line has the final output tokens."""

    def read(self, value: JsonObject) -> Iterator[Request]:
        """Yield the request of an `assistant` line, or of one that a sub-agent's progress repeats."""
        kind, line, agent = value.get("type"), value, ""
        if kind == "progress":
            data = object_at(value, "data")
            if data.get("type") != "agent_progress":
                return
            line, agent = object_at(data, "message"), text_at(data, "agentId")
            kind = line.get("type")
        message = object_at(line, "message")
        usage = object_at(message, "usage")
        if kind != "assistant" or not usage:
            return
        if line is value:
            agent = text_at(value, "agentId") or ("sidechain" if value.get("isSidechain") is True else "")
        own_id = id_at(message, "id") or id_at(line, "requestId")  # a side question repeats an answer under another request id
        request = Request(
            f"claude:{own_id}" if own_id else "",
            seconds(line.get("timestamp") or value.get("timestamp")),
            claude_code.NAME,
            text_at(message, "model"),
            text_at(value, "cwd"),
            text_at(value, "sessionId"),
            agent,
            branch=text_at(value, "gitBranch"),
        )
        yield from invoiced(request, usage, dollars(line.get("costUSD")))


class CodexReader:
    """Codex reports the last request and the total so far. A report with the total of the one before it repeats that one.

    Attributes:
        limits: The limits of the user's plan, as they were stated last; None if they were not.
    """

    def __init__(self) -> None:
        self._session = self._agent = self._model = self._project = self._branch = ""
        self.limits: PlanLimits | None = None
        self._counts: Counter[str] = Counter()
        self.lineage = Lineage()
        self._total: object = None
        self._total_before: JsonObject = {}

    def read(self, value: JsonObject) -> Iterator[Request]:
        """Yield the request of a `token_count` line."""
        payload, kind = object_at(value, "payload"), value.get("type")
        if kind == "session_meta" and not self._session:
            session_id = text_at(payload, "id")
            spawn = object_at(object_at(object_at(payload, "source"), "subagent"), "thread_spawn")
            parents = text_at(payload, "forked_from_id"), text_at(spawn, "parent_thread_id")
            self._session = parents[1] or session_id
            self._agent = session_id if self._session != session_id else ""
            self.lineage = Lineage(session_id, seconds(value.get("timestamp"))).after(*parents)
        elif kind == "session_meta":  # of a log that this one repeats
            self.lineage = self.lineage.after(text_at(payload, "id"), text_at(payload, "forked_from_id"))
        self._project = self._project or text_at(payload, "cwd")
        self._branch = self._branch or text_at(object_at(payload, "git"), "branch")
        if kind == "event_msg" and "rate_limits" in payload:
            self.limits = limits_of(codex.NAME, payload["rate_limits"], seconds(value.get("timestamp"))) or self.limits
        if kind == "turn_context":
            self._model = text_at(payload, "model") or self._model
        info = object_at(payload, "info")
        if kind != "event_msg" or payload.get("type") != "token_count" or not info:
            return
        total = info.get("total_token_usage", info)
        if total == self._total:
            return
        self._total = total
        last, total_before = object_at(info, "last_token_usage"), self._total_before
        self._total_before = object_at(info, "total_token_usage")
        last = _since(total_before, self._total_before, last) or last  # includes a request whose own report is not in the log
        counts = codex_usage(last) or Counts()
        figures = ".".join(map(str, (*object_at(info, "total_token_usage").values(), *last.values())))
        self._counts[figures] += 1
        yield Request(
            f"codex:{figures}:{self._counts[figures]}" if figures and self._session else "",
            seconds(value.get("timestamp")),
            codex.NAME,
            self._model,
            self._project,
            self._session,
            self._agent,
            **amounts_of(counts),
            reasoning=stated_at(last, "reasoning_output_tokens"),
            branch=self._branch,
        )


class GeminiReader:
    """Gemini CLI reports the tokens of each message, in one document or, in newer versions, on lines below a header."""

    def __init__(self) -> None:
        self._session = self._project = ""

    def read(self, value: JsonObject) -> Iterator[Request]:
        """Yield the requests of the answers."""
        self._session = text_at(value, "sessionId") or self._session
        self._project = text_at(value, "projectHash") or self._project
        for message in objects_at(value, "messages") if "messages" in value else [value]:
            tokens = object_at(message, "tokens")
            counts = gemini_cli.usage_of(tokens)
            if message.get("type") == "gemini" and counts is not None:
                yield Request(
                    f"gemini:{self._session}:{message_id}" if (message_id := id_at(message, "id")) else "",
                    seconds(message.get("timestamp")),
                    gemini_cli.NAME,
                    text_at(message, "model"),
                    self._project,
                    self._session,
                    **amounts_of(counts),
                    reasoning=stated_at(tokens, "thoughts"),
                )


class OpencodeReader:
    """An export of opencode. A message's tokens are those of its last step, so its steps are read where they have tokens.

    Attributes:
        note: A sentence on a session whose requests report no usage; empty if they do.
    """

    note = ""

    def read(self, value: JsonObject) -> Iterator[Request]:
        """Yield the requests of the export's messages, or else one with the session's sums."""
        session = object_at(value, "info")
        reports = list(self._of_messages(session, value))
        if any(report.total or report.cost for report in reports):
            yield from reports
            return
        sums = self._sums(session)
        if sums.total or sums.cost:
            self.note = "only the sum of its requests is known, which counts as one request"
            yield sums
        elif any("error" not in object_at(message, "info") for message in objects_at(value, "messages") if is_answer(message)):
            self.note = "answers of a model, but no usage of them that can be read"

    def _sums(self, session: JsonObject) -> Request:
        session_id, parent, tokens = id_at(session, "id"), id_at(session, "parentID"), object_at(session, "tokens")
        return Request(
            f"opencode:{session_id}" if session_id else "",
            millis(object_at(session, "time").get("created")),
            opencode.NAME,
            text_at(object_at(session, "model"), "id", "modelID"),
            text_at(session, "directory"),
            parent or session_id,
            session_id if "parentID" in session else "",
            **amounts_of(opencode.usage_of(tokens)),
            reasoning=stated_at(tokens, "reasoning"),
            cost=dollars(session.get("cost")) or None,
        )

    def _of_messages(self, session: JsonObject, value: JsonObject) -> Iterator[Request]:
        session_id = id_at(session, "id")
        parent = id_at(session, "parentID")
        ids = _ids_of_answers(objects_at(value, "messages"))
        for number, message in enumerate(objects_at(value, "messages")):
            info = object_at(message, "info")
            if not is_answer(message):
                continue
            steps = [part for part in objects_at(message, "parts") if part.get("type") == "step-finish" and object_at(part, "tokens")]
            for index, step in enumerate(steps or [info]):
                tokens = object_at(step, "tokens")
                counts = opencode.usage_of(tokens)
                yield Request(
                    f"opencode:{key}:{index}" if (key := ids[number]) else "",
                    millis(object_at(info, "time").get("created")),
                    opencode.NAME,
                    text_at(info, "modelID"),
                    text_at(object_at(info, "path"), "cwd") or text_at(session, "directory"),
                    parent or session_id,
                    session_id if "parentID" in session else "",
                    **amounts_of(counts),
                    reasoning=stated_at(tokens, "reasoning"),
                    cost=dollars(step.get("cost")),
                )


class PiReader:
    """Pi reports the usage and the cost of each answer. The message is the same in the logs of forks and in a sub-agent's artifacts."""

    def __init__(self) -> None:
        self._session = self._project = ""

    def read(self, value: JsonObject) -> Iterator[Request]:
        """Yield the request of an answer."""
        if value.get("type") == "session":
            self._session, self._project = text_at(value, "id") or self._session, text_at(value, "cwd") or self._project
        message = object_at(value, "message")
        usage = object_at(message, "usage")
        if pi.kind_of(value) == "message" and usage:
            counts = pi.usage_of(usage) or Counts()
            sent, stamp, record_id = millis(message.get("timestamp")), text_at(value, "timestamp"), id_at(value, "id")
            own_id = f"pi:{record_id}:{stamp}" if record_id and stamp else ""
            yield Request(
                own_id if sent is None else f"pi:{sent}:{'.'.join(map(str, counts[:4]))}",
                seconds(stamp) or sent,
                pi.NAME,
                text_at(message, "model"),
                self._project or text_at(value, "cwd"),
                self._session or text_at(value, "runId"),
                text_at(value, "agent"),
                **amounts_of(counts),
                cost=dollars(object_at(usage, "cost").get("total")),
            )


class ClineReader:
    """Cline reports metrics of each answer. Their input includes cache reads and writes."""

    def read(self, value: JsonObject) -> Iterator[Request]:
        """Yield the requests of a file of messages."""
        session, agent = text_at(value, "sessionId"), text_at(value, "agent")
        for message in objects_at(value, "messages"):
            metrics = object_at(message, "metrics")
            if not metrics:
                continue
            names = ("inputTokens", "cacheReadTokens", "cacheWriteTokens", "outputTokens")
            counts = split_total(*(count_at(metrics, name) for name in names))
            yield Request(
                f"cline:{session}:{message_id}" if (message_id := id_at(message, "id")) else "",
                moment(message.get("ts")),
                cline.NAME,
                text_at(object_at(message, "modelInfo"), "id"),
                "",
                session,
                "" if agent == "lead" else agent,
                **amounts_of(counts),
                cost=dollars(metrics.get("cost")),
            )


class CopilotReader:
    """Copilot CLI reports each request only in some versions; otherwise the sums by model at the end of the session are read.

    Of a session that runs, or was killed, only the output of its answers since the last sums is known.
    """

    def __init__(self) -> None:
        self._session = self._project = ""
        self._has_requests = False
        self._answers: list[Request] = []

    @property
    def note(self) -> str:
        """A sentence on answers that no sums contain; empty if there are none."""
        return "the session has not ended, so the prompts of its last answers are not known" if self.rest() else ""

    def rest(self) -> list[Request]:
        """Return the answers since the last sums, without their prompts."""
        return [] if self._has_requests else self._answers

    def read(self, value: JsonObject) -> Iterator[Request]:
        """Yield the request of an `assistant.usage` event, or the sums of a `session.shutdown` event."""
        data, kind = object_at(value, "data"), value.get("type")
        if kind == "session.start":
            self._session, self._project = text_at(data, "sessionId"), text_at(object_at(data, "context"), "cwd")
        elif kind == "assistant.usage":
            self._has_requests = True
            yield self._request(value, text_at(data, "model"), data)
        elif kind == "session.shutdown" and not self._has_requests:
            self._answers = []
            for model, metrics in object_at(data, "modelMetrics").items():
                if isinstance(metrics, dict):
                    yield self._request(value, model, object_at(metrics, "usage"))
        elif kind == "assistant.message" and count_at(data, "outputTokens"):
            answer = self._request(value, text_at(data, "model"), {"outputTokens": data["outputTokens"]})
            self._answers.append(replace(answer, tier=NO_PROMPT))

    def _request(self, event: JsonObject, model: str, usage: JsonObject) -> Request:
        names = ("inputTokens", "cacheReadTokens", "cacheWriteTokens", "outputTokens")
        counts = split_total(*(count_at(usage, name) for name in names))
        return Request(
            f"copilot:{event_id}:{model}" if (event_id := id_at(event, "id")) else "",
            seconds(event.get("timestamp")),
            copilot_cli.NAME,
            model,
            self._project,
            self._session,
            **amounts_of(counts),
            reasoning=stated_at(usage, "reasoningTokens"),
        )


READERS: dict[str, type[RequestReader]] = {
    claude_code.NAME: ClaudeCodeReader,
    codex.NAME: CodexReader,
    copilot_cli.NAME: CopilotReader,
    gemini_cli.NAME: GeminiReader,
    opencode.NAME: OpencodeReader,
    pi.NAME: PiReader,
    cline.NAME: ClineReader,
}
"""The readers by the name of their format. Of other formats, the module of the format has a class `Requests`, as in `qwen.py`."""


def _ids_of_answers(messages: list[JsonObject]) -> list[str]:
    """Return an id for each message of opencode that a fork's copy shares, though its message has another id.

    A copy has the same times, model and tokens. Of a message that has not ended, its own id has to do.
    """
    ids: list[str] = []
    for info in (object_at(message, "info") for message in messages):
        times = [count_at(object_at(info, "time"), name) for name in ("created", "completed")]
        figures = [*times, text_at(info, "modelID"), *opencode.usage_of(object_at(info, "tokens"))[:4]]
        ids.append(".".join(map(str, figures)) if all(times) else id_at(info, "id"))
    counts: Counter[str] = Counter()
    for number, key in enumerate(ids):
        counts[key] += 1
        ids[number] = f"{key}.{counts[key]}" if counts[key] > 1 and key else key
    return ids


MAIN = ("input_tokens", "output_tokens")


def _since(before: JsonObject, totals: JsonObject, last: JsonObject) -> JsonObject:
    """Return what Codex's totals say of the last request: their growth, or all of them if they began again and nothing else is reported.

    It is empty if they say nothing: they grew by less than the report of the request, or there are none before.
    """
    growth = {name: count_at(totals, name) - count_at(before, name) for name in totals}
    grows = min(growth.values(), default=-1) >= 0 and all(growth.get(name, 0) >= count_at(last, name) for name in MAIN)
    if grows and (before or not last):
        return dict(growth)
    return {} if last else totals
