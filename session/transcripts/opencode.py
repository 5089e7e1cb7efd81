"""Reads opencode's sessions: exports, which are documents `{info, messages: [{info, parts}]}`, and its storage, which
`opencode_storage.py` reads as such. Each message is one record of the account.

- User messages: the user's text. Texts that opencode added (`synthetic`) are CONTEXT. Files become images and documents.
- Assistant messages: each step is a response with its usage. A tool part is a call and, once it has finished, its output.
- Assistant messages marked as summaries: a `Compaction` of everything before them except system messages.
- Messages from the one that the user reverted to onwards: not context.

Exports may contain `REDACTED` instead of ids and encrypted thoughts. Both then count as missing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter

from session.errors import TranscriptError
from session.items import Compaction, FunctionCall, FunctionCallOutput, Message, Reasoning
from session.parts import Part, Text

from .account import TranscriptAccount
from .call_ids import UNKNOWN_TOOL, CallIds
from .compactions import KeepRule
from .draft import Draft, finish
from .media import linked_media
from .opencode_storage import is_storage_file, stored_sessions
from .opencode_v2 import SWITCHES
from .record import Record
from .record_feed import feed_entries
from .source import Source
from .usage import Counts
from .values import Clock, JsonObject, count_at, id_at, json_text, list_at, millis, object_at, objects_at, text_at

NAME = "opencode"

PROVIDERS = ("openai", "google", "anthropic")
"""Providers whose encrypted thoughts are kept under their name."""
HIDDEN_TYPES = frozenset({"step-start", "step-finish", "snapshot", "patch", "agent", "retry", "compaction"})
"""Types of parts that the model never sees."""


def claims(value: object) -> bool:
    """Return True if the value is an export of opencode."""
    if not isinstance(value, dict) or not isinstance(value.get("info"), dict) or not isinstance(value.get("messages"), list):
        return False
    return not value["messages"] or any(
        isinstance(message.get("info"), dict) and "parts" in message for message in objects_at(value, "messages")
    )


def read(source: Source, *, with_sidechains: bool) -> TranscriptAccount:
    """Return the session in the document, or those in the storage: first those that no other one of them has started.

    Raises:
        TranscriptError: There are no messages.
    """
    if not is_storage_file(source):
        draft = _draft(source, object_at(source.document_object, "info"), list_at(source.document_object, "messages"), 1)
        return finish(NAME, source, [draft], main_count=1)
    with stored_sessions(source.path) as sessions:
        ids = {session.info.get("id") for session in sessions}
        main = [session for session in sessions if session.info.get("parentID") not in ids]
        others = [session for session in sessions if session.info.get("parentID") in ids] if with_sidechains else []
        drafts: list[Draft] = []
        count = 0
        for session in [*main, *others]:
            messages = session.messages(True)
            drafts.append(_draft(source, session.info, messages, count + 1))
            count += len(messages)
    if not drafts:
        raise TranscriptError(source.path, "contains no messages")
    return finish(NAME, source, drafts, main_count=sum(bool(draft.mark()) for draft in drafts[: len(main)]))


def _draft(source: Source, info: JsonObject, messages: Sequence[object], first: int) -> Draft:
    """Return a session.

    Args:
        source: The file.
        info: The session's description.
        messages: Its messages.
        first: Number of the first one's record.
    """
    metadata: JsonObject = {
        "session_id": text_at(info, "id"),
        "cwd": text_at(info, "directory"),
        "version": text_at(info, "version"),
        "title": text_at(info, "title"),
        "sidechain": bool(text_at(info, "parentID")),
        "parent_session": id_at(info, "parentID"),
    }
    draft = Draft(NAME, source, text_at(info, "id") or source.path.stem, metadata)
    reader = _OpencodeMessageReader(id_at(object_at(info, "revert"), "messageID"))
    feed_entries(messages, draft, reader.read_message, first=first)
    return draft


class _OpencodeMessageReader:
    """Reads the messages of one session."""

    def __init__(self, reverted_id: str) -> None:
        self._reverted_id = reverted_id
        self._is_reverted = False
        self._call_ids = CallIds()
        self._clock = Clock()
        self._system_prompt = ""

    def read_message(self, draft: Draft, record: Record, value: JsonObject) -> None:
        """Read one message."""
        info, parts = value.get("info"), value.get("parts")
        if not isinstance(info, dict) or not isinstance(parts, list):
            draft.damage(record, "a message without info or parts")
            return
        message_id = id_at(info, "id")
        self._is_reverted = self._is_reverted or bool(message_id and message_id == self._reverted_id)
        if self._is_reverted:
            record.skip("the user reverted the session to before this message")
            return
        self._clock.at(millis(object_at(info, "time").get("created")))
        message = _OpencodeMessage(self._call_ids, draft, record, info, self._clock)
        role = text_at(info, "role")
        if role == "user":
            if (system_prompt := text_at(info, "system")) and system_prompt != self._system_prompt:
                self._system_prompt = system_prompt
                draft.put(record, Message("system", system_prompt, id=draft.new_id("", record), created_at=self._clock.now))
            message.put_prompt(parts)
        elif role == "assistant" and info.get("summary") is True:
            message.put_summary(parts)
        elif role == "assistant":
            message.put_response(parts)
        elif role in SWITCHES:
            record.skip(role)
        else:
            draft.damage(record, f"a message with unknown role {role!r}"[:100])


class _OpencodeMessage:
    """Puts the parts of one message into the draft."""

    def __init__(self, call_ids: CallIds, draft: Draft, record: Record, info: JsonObject, clock: Clock) -> None:
        self._call_ids = call_ids
        self._draft = draft
        self._record = record
        self._info = info
        self._clock = clock
        self._reasons: list[str] = []

    def put_prompt(self, parts: list[object]) -> None:
        """Put a user message. Text that opencode added becomes a message of its own."""
        file_id = id_at(self._info, "id") or self._fallback_id
        for source, run in groupby(list(self._prompt_parts(parts)), key=itemgetter(0)):
            self._draft.put_user(self._record, [part for _, part in run], file_id, self._clock.now, source)
        self._draft.add_reasons(self._record, self._reasons)

    def _prompt_parts(self, parts: list[object]) -> Iterator[tuple[str | None, Part]]:
        """Yield the parts that the model saw, each with its source if opencode wrote it."""
        for part in parts:
            if not isinstance(part, dict):
                self._damage("a part that is not an object")
            elif (prompt_part := self._prompt_part(part)) is not None:
                source = "subtask" if part.get("type") == "subtask" else "synthetic" if part.get("synthetic") is True else None
                yield source, prompt_part

    def _prompt_part(self, part: JsonObject) -> Part | None:
        kind = text_at(part, "type")
        if kind == "text":
            text = "" if part.get("ignored") is True else text_at(part, "text")
            return Text(text) if text else None
        if kind == "subtask":
            return Text(f"The user ran the sub-agent {text_at(part, 'agent')}: {text_at(part, 'prompt', 'description')}")
        if kind == "file":
            media_type = text_at(part, "mime")
            if media_type in ("text/plain", "application/x-directory"):
                self._reasons.append("left out a text file, whose content is in another part")
                return None
            return linked_media(text_at(part, "url"), media_type, self._reasons, title=text_at(part, "filename"))
        if kind not in HIDDEN_TYPES:
            self._reasons.append(f"left out a part of unknown type {kind!r}"[:100])
        return None

    def put_summary(self, parts: list[object]) -> None:
        """Put a compaction of everything before it."""
        text = "\n\n".join(text_at(part, "text") for part in parts if isinstance(part, dict) and part.get("type") == "text")
        if not text or "error" in self._info:
            self._record.skip("a failed compaction")
            return
        item = Compaction(text, extra={"source": "compaction"}, id=self._new_id(id_at(self._info, "id")), created_at=self._clock.now)
        self._draft.compact(self._record, item, KeepRule(self._draft.mark()))

    def put_response(self, parts: list[object]) -> None:
        """Put an assistant message, step by step."""
        self._draft.describe(model=text_at(self._info, "modelID"), provider=text_at(self._info, "providerID"))
        if isinstance(cwd := object_at(self._info, "path").get("cwd"), str):
            self._draft.metadata.setdefault("cwd", cwd)
        if self._is_failed(parts):
            self._record.skip("a failed response, which opencode does not send again")
            return
        steps, is_reported, response = 0, False, f"M{self._record.number}"
        for part in parts:
            kind = text_at(part, "type") if isinstance(part, dict) else ""
            if not isinstance(part, dict):
                self._damage("a part that is not an object")
            elif kind == "step-start":
                steps, response = steps + 1, f"M{self._record.number}.{steps}"
            elif kind == "step-finish":
                is_reported |= self._report(response, object_at(part, "tokens"))
            elif kind == "text":
                self._put_text(part, response)
            elif kind == "reasoning":
                self._put_reasoning(part, response)
            elif kind == "tool":
                self._put_call(part, response)
            elif kind not in HIDDEN_TYPES:
                self._reasons.append(f"left out a part of unknown type {kind!r}"[:100])
        if not is_reported:
            self._report(response, object_at(self._info, "tokens"))
        self._draft.add_reasons(self._record, self._reasons)

    def _is_failed(self, parts: list[object]) -> bool:
        """Return True if the response failed. One that the user interrupted does not count as failed if it has any content."""
        if not isinstance(error := self._info.get("error"), dict):
            return False
        has_content = any(isinstance(part, dict) and part.get("type") not in ("step-start", "reasoning") for part in parts)
        return not (text_at(error, "name") == "MessageAbortedError" and has_content)

    def _report(self, response: str, tokens: JsonObject) -> bool:
        """Report the tokens of a step. Returns False if there are none."""
        counts = usage_of(tokens)
        if not any(counts):
            return False
        self._draft.report(response, counts)
        return True

    def _put_text(self, part: JsonObject, response: str) -> None:
        if text := text_at(part, "text"):
            item = Message("assistant", text, id=self._new_id(id_at(part, "id")), created_at=self._start_time(part))
            self._draft.put(self._record, item, response)

    def _put_reasoning(self, part: JsonObject, response: str) -> None:
        text, signature, data, provider = text_at(part, "text"), "", "", ""
        for name, fields in object_at(part, "metadata").items():
            if isinstance(fields, dict):
                data = data or id_at(fields, "reasoningEncryptedContent", "redactedData")
                signature = signature or id_at(fields, "signature", "thoughtSignature")
                if "reasoningEncryptedContent" in fields:
                    provider = "openai"
                provider = provider or (name if name in PROVIDERS else "")
        if text or data or signature:
            extra = {"provider": provider} if provider not in ("", "anthropic") else {}
            item_id = self._new_id(id_at(part, "id"))
            item = Reasoning(text, signature or None, data or None, extra=extra, id=item_id, created_at=self._start_time(part))
            self._draft.put(self._record, item, response)

    def _put_call(self, part: JsonObject, response: str) -> None:
        """Put a call, and its output if the tool has finished."""
        state, file_call_id = object_at(part, "state"), text_at(part, "callID")
        tool, item_id, time = text_at(part, "tool") or UNKNOWN_TOOL, self._new_id(id_at(part, "id")), self._start_time(state)
        call_id = self._call_ids.add_call(file_call_id, tool, item_id)
        self._call_ids.add_result(file_call_id, self._record)  # the output is in the same part
        arguments = json_text({} if state.get("input") is None else state.get("input"))
        signatures = (id_at(fields, "thoughtSignature") for fields in object_at(part, "metadata").values() if isinstance(fields, dict))
        signature = next(filter(None, signatures), "")
        metadata = {"thought_signature": signature} if signature else {}
        self._draft.put(self._record, FunctionCall(tool, arguments, call_id, metadata=metadata, id=item_id, created_at=time), response)
        status = text_at(state, "status")
        if status not in ("completed", "error"):
            self._reasons.append("a call without a result")
            return
        text = text_at(state, "output", "error")
        parts: list[Part] = [Text(text)] if text else []
        for file in objects_at(state, "attachments"):
            media = linked_media(text_at(file, "url"), text_at(file, "mime"), self._reasons, title=text_at(file, "filename"))
            parts += [media] if media is not None else []
        if millis(object_at(state, "time").get("compacted")):
            self._draft.warn(self._record, "the model later saw this tool output cleared; the session has it in full")
        end_time = self._clock.at(millis(object_at(state, "time").get("end")), time)
        output_id = self._new_id(f"{id_at(part, 'id')}.out" if id_at(part, "id") else "")
        output = FunctionCallOutput(tool, parts, call_id, is_error=status == "error", id=output_id, created_at=end_time)
        self._draft.put(self._record, output)

    def _start_time(self, part: JsonObject) -> float:
        return self._clock.at(millis(object_at(part, "time").get("start")))

    @property
    def _fallback_id(self) -> str:
        return f"M{self._record.number}"

    def _new_id(self, file_id: str) -> str:
        return self._draft.new_id(file_id or self._fallback_id, self._record)

    def _damage(self, problem: str) -> None:
        self._draft.damage(self._record, problem)


def usage_of(tokens: JsonObject) -> Counts:
    """Return the tokens of a step. The output includes the reasoning."""
    cache = object_at(tokens, "cache")
    uncached, cache_read, cache_write = count_at(tokens, "input"), count_at(cache, "read"), count_at(cache, "write")
    output, reasoning = count_at(tokens, "output"), count_at(tokens, "reasoning")
    if count_at(tokens, "total") == uncached + cache_read + cache_write + output + reasoning:
        output += reasoning  # without such a total, the output tokens include the reasoning
    return Counts(uncached, cache_read, cache_write, output)
