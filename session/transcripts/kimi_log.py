"""Makes a session of the records of Kimi Code and of Kimi CLI. `kimi.py` opens the logs and describes the records."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from session.items import Compaction

from .compactions import KeepRule
from .draft import Draft
from .record import Record
from .record_feed import skip_strangers
from .usage import Counts
from .values import JsonObject, carried, count_at, id_at, moment, object_at, objects_at, text_at
from .writer import Writer, is_message

FAMILIES = frozenset(
    [
        *("config", "context", "full_compaction", "goal", "interaction", "llm", "mcp", "micro_compaction"),
        *("permission", "plan", "plan_mode", "plugin", "profile", "runtime", "skill", "swarm_mode"),
        *("task", "token_counting", "tools", "turn", "usage"),
    ]
)
"""First words of the types of Kimi Code's records."""
SCREEN = FAMILIES - {"context", "micro_compaction"}
"""Those of records that the model never sees, or that another record repeats. System prompts are read."""
EVENTS = frozenset(
    [
        *("ApprovalRequest", "ApprovalRequestResolved", "ApprovalResponse", "CompactionBegin", "CompactionEnd", "ContentPart"),
        *("HookResolved", "HookTriggered", "MCPLoadingBegin", "MCPLoadingEnd", "Notification", "PlanDisplay"),
        *("QuestionRequest", "StatusUpdate", "SteerInput", "StepBegin", "StepInterrupted", "SubagentEvent"),
        *("ToolCall", "ToolCallRequest", "ToolResult", "TurnBegin", "TurnEnd"),
    ]
)
"""Events of Kimi CLI."""
OTHER_ROLES = frozenset({"_system_prompt", "_usage", "_checkpoint"})
"""Roles that only lines of Kimi CLI's `context.jsonl` have."""
USAGE = {
    "inputOther": "input_other",
    "inputCacheRead": "input_cache_read",
    "inputCacheCreation": "input_cache_creation",
    "output": "output",
}
"""The amounts of a request, in Kimi Code's words and in Kimi CLI's."""
TOOLS_CHARS_MAX = 10_000_000
"""Characters of JSON that definitions of tools may have to go into the metadata."""
MEDIA = {"image_url": "imageUrl", "audio_url": "audioUrl", "video_url": "videoUrl"}


def usage_of(report: JsonObject) -> Counts | None:
    """Return the tokens of a report, in Kimi Code's words or in Kimi CLI's; None if it has none."""
    counts = Counts(*(count_at(report, new) or count_at(report, old) for new, old in USAGE.items()))
    return counts if any(counts) else None


def event_of(value: JsonObject) -> tuple[str, JsonObject]:
    """Return the type of an event of Kimi CLI and its payload."""
    message = object_at(value, "message")
    return (text_at(message, "type"), object_at(message, "payload")) if "payload" in message else ("", {})


def _content(content: object, record: Record) -> tuple[list[JsonObject | str], str]:
    """Return the blocks of a content as others write them, without its thoughts, and the thoughts."""
    blocks: list[JsonObject | str] = []
    thoughts: list[str] = []
    for part in content if isinstance(content, list) else [content]:
        kind = text_at(part, "type") if isinstance(part, dict) else ""
        if isinstance(part, dict) and kind == "think":
            thoughts.append(text_at(part, "think"))
        elif isinstance(part, dict) and kind in MEDIA:
            url = text_at(object_at(part, MEDIA[kind]) or object_at(part, kind), "url")
            if url.startswith(("data:", "http:", "https:")):
                blocks.append({"type": "image_url" if kind == "image_url" else "document_url", "image_url": url, "document_url": url})
            else:
                record.skip("left out a file that the log names and does not hold")
        elif isinstance(part, dict | str):
            blocks.append(part)
        elif part is not None:
            record.skip("left out a part of unknown form")
    return blocks, "\n\n".join(thoughts)


class KimiReader:
    """Reads the records of one log.

    Attributes:
        draft: The session that grows.
    """

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self._writer = Writer(draft)
        self._system: tuple[Record, int] | None = None  # the record of the system prompt and its place
        self._starts: list[int] = []  # where each message begins, in the order of the log
        self._context: list[int] = []  # the messages of the context, as indices of their starts
        self._prompts: list[int] = []  # those that a compaction can keep: the user's own
        self._undoable: list[int] = []  # those that the user can go back to
        self._step = ""

    def read(self, _: Draft, record: Record, value: JsonObject) -> None:
        """Read one record."""
        kind = text_at(value, "type")
        family, name = kind.partition(".")[::2]
        event, payload = event_of(value)
        if event:
            self._read_event(record, value, event, payload)
        elif "role" in value:
            self._read_role(record, value, text_at(value, "role"))
        elif family == "context":
            self._read_context(record, value, name)
        elif kind in ("config.update", "profile.bind"):
            cwd = text_at(value, "cwd") or text_at(object_at(value, "environmentDisclosure"), "cwd")
            self.draft.describe(model=text_at(value, "modelAlias").rpartition("/")[2], cwd=cwd)
            self._read_system(record, value)
        elif kind == "llm.tools_snapshot":
            self.draft.describe(tools=carried(objects_at(value, "tools"), TOOLS_CHARS_MAX))
            record.skip("definitions of tools, which are in the metadata")
        elif kind == "llm.request" and "systemPrompt" in value:
            record.skip("a system prompt of this request alone, unknown to the session")
        elif kind == "micro_compaction.apply":
            self.draft.warn(record, "from here on the model saw older tool results cleared; the session has them in full")
            record.skip("older tool results are cleared")
        elif family in SCREEN or kind in ("metadata", "forked"):
            record.skip("repeated in the context" if kind in ("turn.prompt", "turn.steer") else "for the tool")
        else:
            record.skip(f"unknown type {kind!r}"[:100])

    def _read_role(self, record: Record, value: JsonObject, role: str) -> None:
        """Read a line of Kimi CLI's `context.jsonl`: a message, or what stands between them."""
        if role == "_system_prompt":
            self._write(record, {"role": "system", "content": value.get("content")}, value)
        elif role in OTHER_ROLES:
            record.skip("the size of the context" if role == "_usage" else "a place to go back to")
        elif is_message(value) and "content" in value:
            self._write(record, value, value)
        else:
            record.skip(f"a message of unknown role {role!r}"[:100])

    def _read_system(self, record: Record, value: JsonObject) -> None:
        text = text_at(value, "systemPrompt")
        if not text:
            record.skip("settings without a system prompt")
        elif self._system is None or self.draft.mark() == self._system[1] + 1:
            if self._system is not None:
                self.draft.undo(self._system[1], "a later system prompt took its place")
            self._system = record, self.draft.mark()
            self._write(record, {"role": "system", "content": text}, value)
        else:
            record.merge(f"a new system prompt; that of line {self._system[0].number} stands for it")

    def _write(self, record: Record, message: JsonObject, value: JsonObject, response: str = "", source: str | None = None) -> None:
        blocks, thoughts = _content(message.get("content"), record)
        time = {"timestamp": value.get("time", value.get("timestamp"))}
        more = {"reasoning_content": thoughts} if thoughts else {}
        self._writer.write(record, {**message, "content": blocks, **more, **time}, response=response, source=source)

    def _read_context(self, record: Record, value: JsonObject, name: str) -> None:
        if name == "append_message":
            self._read_message(record, value, object_at(value, "message"))
        elif name == "append_loop_event":
            self._read_loop(record, value, object_at(value, "event"))
        elif name == "apply_compaction":
            self._compact(record, value)
        elif name == "clear":
            self._replace(record, Compaction("", id=self.draft.new_id("", record)))
        elif name == "undo":
            count = count_at(value, "count")
            if not 0 < count <= len(self._undoable):
                self.draft.damage(record, "an undo of messages that are not in the log")
                return
            first = self._undoable[-count]
            self.draft.undo(self._starts[first], "undone")
            del self._starts[first:]
            for messages in (self._context, self._prompts, self._undoable):
                messages[:] = [message for message in messages if message < first]
            record.skip("an undo")
        else:
            record.skip(f"unknown type 'context.{name}'"[:100])

    def _read_message(self, record: Record, value: JsonObject, message: JsonObject) -> None:
        skip_strangers(record, message, "toolCalls")
        names = ("name", "arguments")
        calls = [
            {"id": call.get("id"), "function": object_at(call, "function") or {field: call.get(field) for field in names}}
            for call in objects_at(message, "toolCalls")
        ]
        message = {**message, **({"tool_calls": calls} if calls else {}), "tool_call_id": message.get("toolCallId")}
        if not (is_message(message) and "content" in message):
            record.skip(f"a message of unknown role {text_at(message, 'role')!r}"[:100])
            return
        origin = object_at(message, "origin")
        kind = text_at(origin, "kind")
        source = None if kind in ("", "user") else text_at(origin, "variant", "name") or kind
        number = self._begin()
        if text_at(message, "role") == "user" and (source is None or text_at(origin, "trigger") == "user-slash"):
            self._prompts.append(number)
            self._undoable.append(number)
        self._write(record, message, value, source=source)

    def _read_loop(self, record: Record, value: JsonObject, event: JsonObject) -> None:
        kind, step = text_at(event, "type"), id_at(event, "stepUuid", "uuid")
        if kind == "step.begin":
            self._begin()
            record.skip("the beginning of a step")
        elif kind == "content.part":
            self._write(record, {"role": "assistant", "content": [event.get("part")]}, value, step)
        elif kind == "tool.call":
            function = {"name": event.get("name"), "arguments": event.get("args")}
            self._write(record, {"role": "assistant", "tool_calls": [{"id": event.get("toolCallId"), "function": function}]}, value, step)
        elif kind == "tool.result":
            self._begin()
            self._write_result(record, value, id_at(event, "toolCallId"), object_at(event, "result"), "note", "isError")
        elif kind == "step.end":
            self.draft.report(step, usage_of(object_at(event, "usage")))
            record.skip("the end of a step")
        else:
            record.skip(f"unknown event {kind!r}"[:100])

    def _write_result(self, record: Record, value: JsonObject, call: str, result: JsonObject, note: str, error: str) -> None:
        output, extra = result.get("output"), text_at(result, note)
        if isinstance(output, str) and extra:
            output = f"{output}\n{extra}" if output else extra
        content = [*(output if isinstance(output, list) else [output or ""]), *([extra] if extra and isinstance(output, list) else [])]
        self._write(record, {"role": "tool", "tool_call_id": call, "content": content, "is_error": result.get(error) is True}, value)

    def _begin(self) -> int:
        """Begin a message of the context, and return its number."""
        self._starts.append(self.draft.mark())
        self._context.append(len(self._starts) - 1)
        return len(self._starts) - 1

    def _items_of(self, message: int) -> Iterator[str]:
        """Yield the ids of a message's items."""
        ends = self._starts[message + 1 : message + 2] or [self.draft.mark()]
        items = map(self.draft.item_at, range(self._starts[message], ends[0]))
        return (item.id for item in items if item is not None)

    def _compact(self, record: Record, value: JsonObject) -> None:
        """Put a summary. It keeps some of the user's messages, or, in older versions, the messages after the first ones."""
        if "keptUserMessageCount" in value:
            first, count = count_at(value, "keptHeadUserMessageCount"), count_at(value, "keptUserMessageCount")
            kept = self._prompts[:first] + self._prompts[max(first, len(self._prompts) - (count - first)) :]
        else:
            kept = self._context[count_at(value, "compactedCount") :]
        tokens = count_at(value, "tokensBefore")
        extra = {"source": "compaction", **({"pre_tokens": tokens} if tokens else {})}
        text, time = text_at(value, "contextSummary", "summary"), moment(value.get("time")) or 0.0
        self._replace(record, Compaction(text, id=self.draft.new_id("", record), created_at=time, extra=extra), kept)

    def _replace(self, record: Record, summary: Compaction, kept: Sequence[int] = ()) -> None:
        """Put a summary in the place of the context, except the messages that are kept."""
        ids = frozenset(item for message in kept for item in self._items_of(message))
        number = self._begin()
        self.draft.compact(record, summary, KeepRule(self.draft.mark(), ids))
        self._prompts = [message for message in self._prompts if message in set(kept)]
        self._context = [number, *kept]
        self._undoable.clear()

    def _read_event(self, record: Record, value: JsonObject, event: str, payload: JsonObject) -> None:
        """Read an event of Kimi CLI. Parts and calls after the beginning of a step are its answer."""
        if event in ("TurnBegin", "SteerInput"):
            self._write(record, {"role": "user", "content": payload.get("user_input")}, value)
        elif event == "ContentPart":
            self._write(record, {"role": "assistant", "content": [payload]}, value, self._step)
        elif event == "ToolCall":
            self._write(record, {"role": "assistant", "tool_calls": [payload]}, value, self._step)
        elif event == "ToolResult":
            self._write_result(record, value, id_at(payload, "tool_call_id"), object_at(payload, "return_value"), "message", "is_error")
        elif event == "CompactionEnd":
            self._replace(record, Compaction("", id=self.draft.new_id("", record)))
            self.draft.warn(record, "a compaction, whose summary is not in the log")
        elif event in EVENTS:
            if event == "StepBegin":
                self._step = f"step {record.number}"
            elif event == "StatusUpdate" and self._step:
                self.draft.report(self._step, usage_of(object_at(payload, "token_usage")))
            record.skip("for the tool, or repeated in the log of a sub-agent")
        else:
            record.skip(f"unknown event {event!r}"[:100])
