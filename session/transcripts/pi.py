"""The pi coding agent's session logs: JSONL, a header of type `session`, then one entry a line.

What becomes what:

- `message` entries: users' messages, answers, results of tools; `bashExecution` and messages of extensions are CONTEXT.
  Answers that broke off (`aborted`, `error`) are not context: pi leaves them out of what it sends, as the reported usage of
  the requests after them shows.
- `compaction`: a `Compaction` of all before the first entry that it kept. `branch_summary`, `custom_message`: CONTEXT.
- Entries with `id` and `parentId` form a tree: the session is the way from its root to the last entry; other branches are
  not context.
"""

from __future__ import annotations

from session.errors import short
from session.items import Compaction, FunctionCall, FunctionCallOutput, Message, MessageCategory, Reasoning
from session.parts import Part, Text

from .account import TranscriptAccount
from .blocks import image_of
from .draft import Draft, Record, finish
from .feeding import Calls, feed_lines
from .reading import parse, read_lines
from .replacing import Keeps
from .source import Source
from .usages import Counts
from .values import Clock, JsonObject, count_at, id_at, json_text, millis, object_at, seconds, text_at

NAME = "pi"

OWN = frozenset({"thinking_level_change", "model_change", "compaction", "branch_summary", "custom_message", "session_info"})
"""Types of entries that only pi has."""
ROLES = frozenset({"user", "assistant", "toolResult", "bashExecution", "custom", "hookMessage"})
BROKEN_OFF = ("aborted", "error")


def claims(value: object) -> bool:
    """Whether the value is a line of pi."""
    if not isinstance(value, dict) or not isinstance(value.get("timestamp"), str):
        return False
    kind = text_at(value, "type")
    if kind == "message":
        return text_at(object_at(value, "message"), "role") in ROLES
    if kind == "session":
        return isinstance(value.get("cwd"), str) and isinstance(value.get("id"), str)
    return kind in OWN and "data" not in value and "payload" not in value


def read(source: Source, *, sidechains: bool) -> TranscriptAccount:  # noqa: ARG001 - there are none
    """The one session in the file.

    Raises:
        TranscriptError: Nobody says anything in it.
    """
    draft = Draft(NAME, source, source.path.stem)
    feed_lines(source.lines(), draft, _Log(_left_branches(source)).take)
    return finish(NAME, source, [draft], equals=1)


def _left_branches(source: Source) -> set[int]:
    """The places of entries that are not on the way to the last one; none in logs without a tree."""
    ids: dict[str, int] = {}
    parents: list[tuple[bool, str]] = []
    for line in read_lines(source.path):
        for value in line.values:
            if isinstance(value, dict):
                own = id_at(value, "id") if text_at(value, "type") != "session" else ""
                if own:
                    ids[own] = len(parents)
                parents.append((bool(own), text_at(value, "parentId")))
    if not any(in_tree for in_tree, _ in parents):
        return set()
    left = {place for place, (in_tree, _) in enumerate(parents) if in_tree}
    place = max(left)
    while place in left:
        left.remove(place)
        parent = parents[place][1]
        if not parent:
            break
        before = ids.get(parent, place)
        place = before if before < place else place - 1  # where the parent's line is damaged, the one before is the best guess
        while place >= 0 and place not in left:
            place -= 1
    return left


class _Log:
    """Reads the entries of one file."""

    def __init__(self, left: set[int]) -> None:
        self._left = left
        self._calls = Calls()
        self._clock = Clock()
        self._place = -1
        self._starts: list[int] = []  # of each entry: the mark of the draft before it
        self._marks: dict[str, int] = {}  # the same by the entry's id

    def take(self, draft: Draft, record: Record, value: JsonObject) -> None:
        """Reads one entry."""
        self._place += 1
        kind = text_at(value, "type")
        self._starts.append(draft.mark())
        self._marks.setdefault(id_at(value, "id"), draft.mark())
        if self._place in self._left:
            record.skip("in a branch that the user left")
            return
        message = value.get("message")
        self._clock.at(seconds(value.get("timestamp")))
        match kind:
            case "message" if isinstance(message, dict):
                self._clock.at(millis(message.get("timestamp")), seconds(value.get("timestamp")))
                self._message(draft, record, message, id_at(value, "id"))
            case "message":
                draft.damage(record, "its message is no object")
            case "":
                draft.damage(record, "a JSON object without a type")
            case "session":
                self._header(draft, record, value)
            case "model_change":
                self._model(draft, value)
                record.skip("another model")
            case "compaction":
                self._compaction(draft, record, value)
            case "branch_summary":
                self._context(draft, record, text_at(value, "summary"), "branch summary", id_at(value, "id"))
            case "custom_message":
                self._context(draft, record, value.get("content"), text_at(value, "customType") or "extension", id_at(value, "id"))
            case _:
                record.skip(f"an entry for the tool: {kind}"[:100])

    def _header(self, draft: Draft, record: Record, value: JsonObject) -> None:
        if own := text_at(value, "id"):
            draft.id = draft.metadata["session_id"] = own
        for name, key in (("cwd", "cwd"), ("forked_from", "parentSession"), ("forked_from", "branchedFrom")):
            if found := text_at(value, key):
                draft.metadata[name] = found
        if version := count_at(value, "version"):
            draft.metadata["version"] = version
        self._model(draft, value)
        record.skip("what is known of the session")

    def _model(self, draft: Draft, value: JsonObject) -> None:
        for name, key in (("model", "modelId"), ("provider", "provider")):
            if found := text_at(value, key):
                draft.metadata[name] = found

    def _message(self, draft: Draft, record: Record, message: JsonObject, own: str) -> None:
        role = text_at(message, "role")
        if role == "user":
            notes: list[str] = []
            if parts := _parts(message.get("content"), notes):
                draft.put(record, Message("user", parts, id=draft.new_id(own, record), created_at=self._clock.now))
            _tell(draft, record, notes)
        elif role == "assistant":
            self._answer(draft, record, message, own)
        elif role == "toolResult":
            self._output(draft, record, message, own)
        elif role == "bashExecution":
            if message.get("excludeFromContext") is True:
                record.skip("a command that the user kept from the model")
                return
            code = message.get("exitCode")
            failed = f"\n(exit code {code})" if isinstance(code, int) and code else ""
            text = f"$ {text_at(message, 'command')}\n{text_at(message, 'output')}{failed}"
            self._context(draft, record, text, "shell command", own)
        elif role in ("custom", "hookMessage"):
            self._context(draft, record, message.get("content"), text_at(message, "customType") or "extension", own)
        else:
            record.skip(f"a message of unknown role {role!r}"[:100])

    def _context(self, draft: Draft, record: Record, content: object, source: str, own: str) -> None:
        """What the tool wrote in the user's role."""
        notes: list[str] = []
        if parts := _parts(content, notes):
            context, extra = MessageCategory.CONTEXT, {"source": source}
            item_id = draft.new_id(own, record)
            draft.put(record, Message("user", parts, category=context, extra=extra, id=item_id, created_at=self._clock.now))
        _tell(draft, record, notes)

    def _answer(self, draft: Draft, record: Record, message: JsonObject, own: str) -> None:
        reason = text_at(message, "stopReason")
        if reason in BROKEN_OFF:
            record.skip(f"an answer that broke off ({reason}): pi does not send it again")
            return
        provider, response = text_at(message, "provider"), f"L{record.place}-{self._place}"
        for name, found in (("model", text_at(message, "model")), ("provider", provider)):
            if found:
                draft.metadata[name] = found
        content = message.get("content")
        notes: list[str] = []
        for block in content if isinstance(content, list) else [content]:
            kind = text_at(block, "type") if isinstance(block, dict) else "text"
            text = text_at(block, "text") if isinstance(block, dict) else block
            item_id = draft.new_id(own, record)
            if isinstance(block, dict) and kind == "toolCall":
                draft.put(record, self._call(block, item_id), response)
            elif isinstance(block, dict) and kind == "thinking":
                if (thought := _thought(block, provider or text_at(message, "api"), item_id, self._clock.now)) is not None:
                    draft.put(record, thought, response)
            elif kind == "text" and isinstance(text, str):
                if text:
                    draft.put(record, Message("assistant", text, id=item_id, created_at=self._clock.now), response)
            else:
                notes.append(f"left out a block of unknown type {short(kind)}")
        _tell(draft, record, notes)
        if usage := _usage(object_at(message, "usage")):
            draft.report(response, usage)

    def _call(self, block: JsonObject, item_id: str) -> FunctionCall:
        tool, given = text_at(block, "name") or "unknown", block.get("arguments")
        call_id = self._calls.made(text_at(block, "id"), tool, item_id)
        arguments = given if isinstance(given, str) else json_text({} if given is None else given)
        seal = id_at(block, "thoughtSignature")
        metadata = {"thought_signature": seal} if seal else {}
        return FunctionCall(tool, arguments, call_id, metadata=metadata, id=item_id, created_at=self._clock.now)

    def _output(self, draft: Draft, record: Record, message: JsonObject, own: str) -> None:
        found = self._calls.answered(text_at(message, "toolCallId"), record, text_at(message, "toolName"))
        if found is None:
            return
        call_id, tool = found
        notes: list[str] = []
        parts, failed = _parts(message.get("content"), notes), message.get("isError") is True
        item_id = draft.new_id(own, record)
        draft.put(record, FunctionCallOutput(tool, parts, call_id, is_error=failed, id=item_id, created_at=self._clock.now))
        _tell(draft, record, notes)

    def _compaction(self, draft: Draft, record: Record, value: JsonObject) -> None:
        """The summary stands for what was before the first entry that was kept."""
        first, place = id_at(value, "firstKeptEntryId"), value.get("firstKeptEntryIndex")
        if first:
            start = self._marks.get(first, draft.mark())
        else:
            start = self._starts[place] if isinstance(place, int) and 0 <= place < len(self._starts) else draft.mark()
        extra: dict[str, object] = {"source": "compaction"}
        if tokens := count_at(value, "tokensBefore"):
            extra["pre_tokens"] = tokens
        item_id = draft.new_id(id_at(value, "id"), record)
        item = Compaction(text_at(value, "summary"), extra=extra, id=item_id, created_at=self._clock.now)
        draft.compact(record, item, Keeps(start))


def _parts(content: object, notes: list[str]) -> tuple[Part, ...]:
    """The texts and images of a content."""
    found: list[Part] = []
    for block in content if isinstance(content, list) else [content]:
        if isinstance(block, str):
            found += [Text(block)] if block else []
        elif isinstance(block, dict) and block.get("type") == "text":
            found += [Text(text)] if (text := text_at(block, "text")) else []
        elif isinstance(block, dict) and block.get("type") == "image":
            picture = image_of(block.get("data"), text_at(block, "mimeType"), notes)
            found += [picture] if picture is not None else []
        elif block is not None:
            kind = block.get("type") if isinstance(block, dict) else type(block).__name__
            notes.append(f"left out a block of unknown type {short(kind)}")
    return tuple(found)


def _tell(draft: Draft, record: Record, notes: list[str]) -> None:
    for note in notes:
        if note.endswith("damaged"):
            draft.damage(record, note)
        else:
            record.skip(note)


def _thought(block: JsonObject, provider: str, item_id: str, time: float) -> Reasoning | None:
    """A thought, with its seal in the form that its provider gave it."""
    text, seal = text_at(block, "thinking"), id_at(block, "thinkingSignature")
    if seal.startswith("{"):  # OpenAI's: the whole reasoning item
        values, _ = parse(seal)
        whole = values[0] if values and isinstance(values[0], dict) else {}
        if text or id_at(whole, "encrypted_content"):
            extra = {"provider": "openai"}
            return Reasoning(text, data=id_at(whole, "encrypted_content") or None, extra=extra, id=item_id, created_at=time)
        return None
    if not (text or seal):
        return None
    named = next((name for name in ("google", "openai") if name in provider), "")
    extra = {"provider": named} if named else {}
    if block.get("redacted") is True:
        return Reasoning(data=seal or None, extra=extra, id=item_id, created_at=time)
    return Reasoning(text, seal or None, extra=extra, id=item_id, created_at=time)


def _usage(reported: JsonObject) -> Counts | None:
    """The usage of an answer; None where nothing was reported."""
    numbers = [count_at(reported, name) for name in ("input", "cacheRead", "cacheWrite", "output")]
    return Counts(*numbers) if any(numbers) else None
