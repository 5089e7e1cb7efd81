"""opencode's session exports: one document `{info, messages: [{info, parts}]}`. Each message is an entry of the account.

What becomes what:

- User messages: what the user wrote; texts that opencode put in (`synthetic`) are CONTEXT. Files are images and documents.
- Assistant messages: each step is a response, with its usage. A tool part is a call and, once it has ended, its output.
- An assistant message marked as a summary is a `Compaction` of all before it but system messages.
- Messages from the one on that the user reverted to are not context.

Exports may hold `REDACTED` in the place of ids and of encrypted thoughts: neither is kept.
"""

from __future__ import annotations

from session.items import Compaction, FunctionCall, FunctionCallOutput, Message, MessageCategory, Reasoning
from session.parts import Part, Text

from .account import TranscriptAccount
from .blocks import media_of
from .draft import Draft, Record, finish
from .feeding import Calls, feed_entries
from .replacing import Keeps
from .source import Source
from .usages import Counts
from .values import Clock, JsonObject, count_at, id_at, json_text, list_at, millis, object_at, text_at

NAME = "opencode"

PROVIDERS = ("openai", "google", "anthropic")
"""Whose encrypted thoughts are told apart."""
FRAME = frozenset({"step-start", "step-finish", "snapshot", "patch", "agent", "retry", "compaction"})
"""Types of parts that the model is not shown."""


def claims(value: object) -> bool:
    """Whether the value is an export of opencode."""
    if not isinstance(value, dict) or not isinstance(value.get("info"), dict) or not isinstance(value.get("messages"), list):
        return False
    messages = list_at(value, "messages")
    return not messages or any(isinstance(one, dict) and isinstance(one.get("info"), dict) and "parts" in one for one in messages)


def read(source: Source, *, sidechains: bool) -> TranscriptAccount:  # noqa: ARG001 - sub-agents have exports of their own
    """The one session in the document.

    Raises:
        TranscriptError: Nobody says anything in it.
    """
    document = source.document
    whole: JsonObject = document if isinstance(document, dict) else {}
    about = object_at(whole, "info")
    told = {
        "session_id": text_at(about, "id"),
        "cwd": text_at(about, "directory"),
        "version": text_at(about, "version"),
        "title": text_at(about, "title"),
    }
    metadata: JsonObject = {name: found for name, found in told.items() if found}
    if parent := text_at(about, "parentID"):
        metadata |= {"sidechain": True, **({"parent_session": parent} if id_at(about, "parentID") else {})}
    draft = Draft(NAME, source, text_at(about, "id") or source.path.stem, metadata)
    feed_entries(list_at(whole, "messages"), draft, _Messages(id_at(object_at(about, "revert"), "messageID")).take)
    return finish(NAME, source, [draft], equals=1)


class _Messages:
    """Reads the messages of one session."""

    def __init__(self, reverted: str) -> None:
        self._reverted = reverted
        self._gone = False
        self._calls = Calls()
        self._clock = Clock()
        self._system = ""

    def take(self, draft: Draft, record: Record, value: JsonObject) -> None:
        """Reads one message."""
        info, parts = value.get("info"), value.get("parts")
        if not isinstance(info, dict) or not isinstance(parts, list):
            draft.damage(record, "a message without info or parts")
            return
        own = id_at(info, "id")
        self._gone = self._gone or bool(own and own == self._reverted)
        if self._gone:
            record.skip("the user reverted the session to before it")
            return
        self._clock.at(millis(object_at(info, "time").get("created")))
        message = _Message(self._calls, draft, record, info, self._clock)
        role = text_at(info, "role")
        if role == "user":
            if (system := text_at(info, "system")) and system != self._system:
                self._system = system
                draft.put(record, Message("system", system, id=draft.new_id("", record), created_at=self._clock.now))
            message.said(parts)
        elif role == "assistant" and info.get("summary") is True:
            message.summary(parts)
        elif role == "assistant":
            message.answer(parts)
        else:
            draft.damage(record, f"a message of unknown role {role!r}"[:100])


class _Message:
    """One message: its parts, put into the session."""

    def __init__(self, calls: Calls, draft: Draft, record: Record, info: JsonObject, clock: Clock) -> None:
        self._calls = calls
        self._draft = draft
        self._record = record
        self._info = info
        self._clock = clock
        self._notes: list[str] = []

    def said(self, parts: list[object]) -> None:
        """What stands in the user's role: what the user wrote and what opencode did, apart."""
        runs: list[tuple[str | None, list[Part]]] = []
        first = ""
        for part in parts:
            if not isinstance(part, dict):
                self._broken("a part is no object")
                continue
            first = first or id_at(part, "id")
            shown = self._shown(part)
            if shown is None:
                continue
            source = "subtask" if part.get("type") == "subtask" else "synthetic" if part.get("synthetic") is True else None
            if runs and runs[-1][0] == source:
                runs[-1][1].append(shown)
            else:
                runs.append((source, [shown]))
        for source, run in runs:
            item_id, time = self._id(id_at(self._info, "id")), self._clock.now
            if source is None:
                self._draft.put(self._record, Message("user", run, id=item_id, created_at=time))
            else:
                context, extra = MessageCategory.CONTEXT, {"source": source}
                self._draft.put(self._record, Message("user", run, category=context, extra=extra, id=item_id, created_at=time))
        self._tell()

    def _shown(self, part: JsonObject) -> Part | None:
        """What a user's part shows to the model."""
        kind = text_at(part, "type")
        if kind == "text":
            text = "" if part.get("ignored") is True else text_at(part, "text")
            return Text(text) if text else None
        if kind == "subtask":
            return Text(f"The user ran the sub-agent {text_at(part, 'agent')}: {text_at(part, 'prompt', 'description')}")
        if kind == "file":
            mime = text_at(part, "mime")
            if mime in ("text/plain", "application/x-directory"):
                self._notes.append("the text of a file is in a part of its own")
                return None
            return media_of(text_at(part, "url"), mime, self._notes, title=text_at(part, "filename"))
        if kind not in FRAME:
            self._notes.append(f"left out a part of unknown type {kind!r}"[:100])
        return None

    def summary(self, parts: list[object]) -> None:
        """From here on the model saw a summary."""
        text = "\n\n".join(text_at(part, "text") for part in parts if isinstance(part, dict) and part.get("type") == "text")
        if not text or "error" in self._info:
            self._record.skip("a compaction that failed")
            return
        item = Compaction(text, extra={"source": "compaction"}, id=self._id(id_at(self._info, "id")), created_at=self._clock.now)
        self._draft.compact(self._record, item, Keeps(self._draft.mark()))

    def answer(self, parts: list[object]) -> None:
        """What the model said, step by step."""
        if model := text_at(self._info, "modelID"):
            self._draft.metadata["model"] = model
        if provider := text_at(self._info, "providerID"):
            self._draft.metadata["provider"] = provider
        if isinstance(cwd := object_at(self._info, "path").get("cwd"), str):
            self._draft.metadata.setdefault("cwd", cwd)
        if self._failed(parts):
            self._record.skip("an answer that failed: opencode does not send it again")
            return
        steps, reported, response = 0, False, f"M{self._record.place}"
        for part in parts:
            kind = text_at(part, "type") if isinstance(part, dict) else ""
            if not isinstance(part, dict):
                self._broken("a part is no object")
            elif kind == "step-start":
                steps, response = steps + 1, f"M{self._record.place}.{steps}"
            elif kind == "step-finish":
                reported |= self._report(response, object_at(part, "tokens"))
            elif kind == "text":
                self._text(part, response)
            elif kind == "reasoning":
                self._thought(part, response)
            elif kind == "tool":
                self._tool(part, response)
            elif kind not in FRAME:
                self._notes.append(f"left out a part of unknown type {kind!r}"[:100])
        if not reported:
            self._report(response, object_at(self._info, "tokens"))
        self._tell()

    def _failed(self, parts: list[object]) -> bool:
        """Whether the answer came to nothing. One that the user stopped half-way is kept as far as it got."""
        if not isinstance(error := self._info.get("error"), dict):
            return False
        said = any(isinstance(part, dict) and part.get("type") not in ("step-start", "reasoning") for part in parts)
        return not (text_at(error, "name") == "MessageAbortedError" and said)

    def _report(self, response: str, tokens: JsonObject) -> bool:
        cache = object_at(tokens, "cache")
        fresh, read, wrote = count_at(tokens, "input"), count_at(cache, "read"), count_at(cache, "write")
        output, thought = count_at(tokens, "output"), count_at(tokens, "reasoning")
        if count_at(tokens, "total") == fresh + read + wrote + output + thought:
            output += thought  # where there is no such total, the output has the thoughts in it
        if not (fresh or read or wrote or output):
            return False
        self._draft.report(response, Counts(fresh, read, wrote, output))
        return True

    def _text(self, part: JsonObject, response: str) -> None:
        if text := text_at(part, "text"):
            item = Message("assistant", text, id=self._id(id_at(part, "id")), created_at=self._time(part))
            self._draft.put(self._record, item, response)

    def _thought(self, part: JsonObject, response: str) -> None:
        text, seal, sealed, provider = text_at(part, "text"), "", "", ""
        for name, held in object_at(part, "metadata").items():
            if isinstance(held, dict):
                sealed = sealed or id_at(held, "reasoningEncryptedContent", "redactedData")
                seal = seal or id_at(held, "signature", "thoughtSignature")
                if "reasoningEncryptedContent" in held:
                    provider = "openai"
                provider = provider or (name if name in PROVIDERS else "")
        if text or sealed or seal:
            extra = {"provider": provider} if provider not in ("", "anthropic") else {}
            item_id = self._id(id_at(part, "id"))
            item = Reasoning(text, seal or None, sealed or None, extra=extra, id=item_id, created_at=self._time(part))
            self._draft.put(self._record, item, response)

    def _tool(self, part: JsonObject, response: str) -> None:
        """A call, and its output where the tool has come to an end."""
        state, own = object_at(part, "state"), id_at(part, "id")
        tool, item_id, time = text_at(part, "tool") or "unknown", self._id(id_at(part, "id")), self._time(state)
        call_id = self._calls.made(text_at(part, "callID"), tool, item_id)
        self._calls.answered(text_at(part, "callID"), self._record)  # the output is in the same part: nobody else answers it
        arguments = state.get("input")
        seal = next(
            (
                found
                for held in object_at(part, "metadata").values()
                if isinstance(held, dict) and (found := id_at(held, "thoughtSignature"))
            ),
            "",
        )
        metadata = {"thought_signature": seal} if seal else {}
        call = FunctionCall(
            tool, json_text({} if arguments is None else arguments), call_id, metadata=metadata, id=item_id, created_at=time
        )
        self._draft.put(self._record, call, response)
        status = text_at(state, "status")
        if status not in ("completed", "error"):
            self._notes.append("a call that was never answered")
            return
        said = text_at(state, "output", "error")
        parts: list[Part] = [Text(said)] if said else []
        for file in list_at(state, "attachments"):
            if isinstance(file, dict):
                part_of_it = media_of(text_at(file, "url"), text_at(file, "mime"), self._notes, title=text_at(file, "filename"))
                parts += [part_of_it] if part_of_it is not None else []
        if millis(object_at(state, "time").get("compacted")):
            self._draft.warn(self._record, "from some point on the model saw the output of a call cleared; it is whole here")
        ended = self._clock.at(millis(object_at(state, "time").get("end")), time)
        out_id = self._id(f"{own}.out" if own else "")
        self._draft.put(self._record, FunctionCallOutput(tool, parts, call_id, is_error=status == "error", id=out_id, created_at=ended))

    def _time(self, part: JsonObject) -> float:
        return self._clock.at(millis(object_at(part, "time").get("start")))

    def _id(self, wanted: str) -> str:
        return self._draft.new_id(wanted or f"M{self._record.place}", self._record)

    def _broken(self, problem: str) -> None:
        self._draft.damage(self._record, problem)

    def _tell(self) -> None:
        for note in self._notes:
            if note.endswith("damaged"):
                self._broken(note)
            else:
                self._record.skip(note)
