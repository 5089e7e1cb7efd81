"""`manage`: the messages that a model should see, in the format in which they came. One function before any call of a model.

    messages = manage(messages, model="claude-sonnet-5-5")

It decides as the gateway does. The result is a function of the arguments: nothing is kept that a later call depends on, so a list that is
made anew at every turn gives the same views, and the provider's cache holds, as with a session that grows.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from operator import is_
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from session.errors import FormatError, short
from session.session import Session

from .decision.plan import Decision, Plan
from .decision.tool_rules import RECALL
from .errors import ArgumentError, BudgetError, ModelArgumentError, RecallError
from .integrations.recall_mixin import RecallMixin
from .models import describe_model
from .models.names import family
from .settings.context_window import ContextWindow
from .tools import Tool, anthropic_tools, tool_texts

if TYPE_CHECKING:
    from .gateway.windows import Windows
    from .gateway.wire_format import MessageFormat, RequestConversation

Json = dict[str, Any]
M = TypeVar("M")

ANTHROPIC_BLOCKS = frozenset({"tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document", "server_tool_use"})
CHAT_BLOCKS = frozenset({"image_url", "input_audio", "file", "refusal"})
RESPONSES_BLOCKS = frozenset({"input_text", "output_text", "input_image", "input_file"})
VERCEL_BLOCKS = frozenset({"tool-call", "tool-result", "tool-approval-request", "tool-approval-response", "reasoning"})
LANGCHAIN_TYPES = frozenset({"human", "ai", "system", "tool", "function"})
CONVERSE_BLOCKS = frozenset(
    {"text", "image", "document", "video", "audio", "toolUse", "toolResult", "guardContent", "cachePoint", "reasoningContent"}
    | {"citationsContent", "searchResult"}
)
CONTENTS = frozenset({"content", "contents", "parts", "blocks"})
LEVELS_MAX = 200
SMOLAGENTS_ROLES = frozenset({"tool-call", "tool-response"})


class ManagedMessages(list[M], RecallMixin):
    """The messages that the model should see: a list that also tells what it leaves out. Copies, slices and pickles are plain lists."""

    def __init__(self, messages: Iterable[M], source: Source) -> None:
        super().__init__(messages)
        self._source = source
        self._conversations = source  # type: ignore[assignment]  # it recalls as a tracker does

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (list(self),)

    @cached_property
    def _plan(self) -> tuple[Plan, dict[str, int]]:
        return self._source.windows.plan(self._source.wire, self._source.conversation)

    @property
    def plan(self) -> Plan:
        """What was done with each item of the conversation and why, with tokens before and after. `print` shows it."""
        return self._plan[0]

    @property
    def changes(self) -> dict[int, list[Decision]]:
        """By the index of a message that was given: what was shortened in it or left out. A decision's `item_id` recalls it."""
        plan, places = self._plan
        found: dict[int, list[Decision]] = {}
        for decision in plan.changes:
            if decision.item_id in places:
                found.setdefault(places[decision.item_id], []).append(decision)
        return found


@dataclass(frozen=True, slots=True)
class Source:
    """What managed messages were made of."""

    windows: Windows
    wire: MessageFormat
    conversation: RequestConversation

    def recall(self, id: str = "", *, from_line: int = 0, lines: int = 0, query: str = "") -> str:
        """Return content that was taken out, as text. Raises RecallError if nothing in the conversation has it."""
        arguments = {"id": id, "from_line": from_line, "lines": lines, "query": query}
        text, is_error = self.windows.recalled(self.wire, self.conversation, arguments)
        if is_error:
            raise RecallError(id or query, text.removeprefix(f"recall id {short(id)}: "))
        return text


def manage(
    messages: Sequence[M],
    *,
    model: str,
    max_tokens: int | Literal["auto"] = "auto",
    window: ContextWindow | None = None,
    system: str = "",
    tools: Iterable[Tool] = (),
) -> ManagedMessages[M]:
    """Return the messages that fit the window. Those that stay whole are the same objects; if all do, the list is equal to the one given.

    What providers refuse is not passed on in silence. A call without a result gets an error as its result, and a blank message is left
    out, each with a `ContextWindowWarning`; a result that answers no call is refused, as it would be lost. Fields that are not known here
    are passed on as they are.

    Args:
        messages: All messages of the conversation so far, as they would be sent: of Anthropic's Messages API, OpenAI's Chat Completions or
            Responses, Google's `contents`, Bedrock's Converse API, Vercel's AI SDK (`ModelMessage`), smolagents, LlamaIndex, AutoGen
            (`LLMMessage`), the Agent Framework, LangChain or Pydantic AI. Each is a dictionary, or an object of the client or framework,
            such as `types.Content`.
        model: The model's name.
        max_tokens: Tokens that a request may have; `auto` for the window that costs least by the model's prices.
        window: Other settings, with their `max_tokens`, which may be larger than we know the model's window to be.
        system: The system prompt, if it stands outside the messages.
        tools: The tools that are sent with them. With the recall tool among them, placeholders name the ids to recall by.

    Raises:
        ArgumentError: This is no list of messages in one of these formats, or another argument makes no sense.
        FormatError: A message cannot be read, has a role that its format lacks, or is a result that answers no call.
        UnknownModelError: The model's window is unknown; pass `max_tokens`.
        ContextOverflowError: The task and the newest messages alone do not fit.
    """
    from .gateway.framework_objects import format_of_objects
    from .gateway.windows import IDLE_SECONDS
    from .gateway.wire_format import RequestConversation

    _checked_list(messages)
    if not isinstance(model, str) or not model.strip():
        raise ModelArgumentError("model", model, "pass the model's name as a text")
    if not isinstance(system, str):
        raise ArgumentError("system", system, "pass the system prompt as one text")
    windows = _windows(_checked_window(window, max_tokens, model))
    windows.forget_idle(IDLE_SECONDS)
    wire, given = format_of_objects(messages[0] if messages else None), list[Any](messages)
    objects: dict[int, object] = {}
    if wire is None:
        given, objects = _as_dicts(messages)
        wire = _format_of(given or [{"role": "user"}], model, are_steps=bool(given) and hasattr(messages[0], "render_as_markdown"))
        _check_roles(given, wire.adapter.roles)
    definitions = [json.loads(text) for text in tool_texts(tools)]
    recall = next((each for each in definitions if any(tool.get("name") == RECALL for tool in anthropic_tools([each]))), None)
    others = [each for each in definitions if each is not recall]
    conversation = RequestConversation(model, system, given, others, {}, None, recall)
    try:
        fitted = windows.fit(wire, conversation) if given else None
    except RecursionError:
        raise FormatError("messages", "nested too deeply") from None
    shown: Sequence[M] = messages
    if fitted is not None:
        shown = list[Any](fitted) if wire.is_of_objects else _as_given(wire.in_order({}, fitted), given, messages, objects)
    return ManagedMessages(shown, Source(windows, wire, conversation))


def _checked_list(messages: object) -> None:
    if isinstance(messages, Sequence) and not isinstance(messages, str | bytes):
        return
    advice = "pass a list of messages, each a dictionary or an object of a client or framework"
    if isinstance(messages, Iterator):
        advice = f"{advice}: list(…) makes one of this, which could be read only once"
    elif isinstance(messages, Mapping):
        advice = f"{advice}: this is one dictionary; of a request, pass its messages"
    elif isinstance(messages, Session):
        advice = f"{advice}; for a session, it is ContextWindowManager(…).process_session(session)"
    raise ArgumentError("messages", messages, advice)


def _checked_window(window: ContextWindow | None, max_tokens: int | str | None, model: str) -> ContextWindow:
    """Return the settings. An amount that no request to the model can have is refused: it would never be trimmed."""
    if window is not None:
        if not isinstance(window, ContextWindow):
            raise BudgetError("window", window, "pass a ContextWindow(…)")
        if max_tokens != "auto":
            raise BudgetError("max_tokens", max_tokens, "pass it in ContextWindow(max_tokens=…), or leave window out")
        return window
    settings, most = ContextWindow(max_tokens=max_tokens), describe_model(model).input_limit  # type: ignore[arg-type]  # checked there
    if most is not None and isinstance(settings.max_tokens, int) and settings.max_tokens > most:
        advice = f"a request to {short(model)} may have {most:,} tokens at most; pass that or less, or leave it out"
        raise BudgetError("max_tokens", max_tokens, f"{advice}. If your model takes more: window=ContextWindow(max_tokens={max_tokens})")
    return settings


def _as_dicts(messages: Sequence[object]) -> tuple[list[Json], dict[int, object]]:
    """Return messages as dictionaries, and by the id of a dictionary in one the object of which it has the fields."""
    given = [_as_dict(message, f"messages[{index}]") for index, message in enumerate(messages)]
    for index, message in enumerate(given):
        _check(message, f"messages[{index}]")
    objects: dict[int, object] = {}
    return [_plain(message, objects) for message in given], objects


def _as_dict(message: object, where: str) -> Json:
    """Return a message as a dictionary: itself, or its fields."""
    if isinstance(message, dict):
        return message
    if (fields := _dumped(message)) is not None:
        return fields
    if not (hasattr(message, "role") and hasattr(message, "content")):
        raise ArgumentError(
            where, message, "pass each message as a dictionary, or as an object with model_dump, to_dict, or role and content"
        )
    others = [name for name, value in getattr(message, "__dict__", {}).items() if value and name not in ("role", "content")]
    if others and not hasattr(message, "from_dict"):
        raise ArgumentError(
            where, message, f"its {', '.join(others)} would be lost: give it a to_dict and a from_dict, or pass dictionaries"
        )
    return {"role": message.role, "content": message.content}


def _dumped(value: object) -> Json | None:
    """Return the fields of an object of a client or framework; None for any other value."""
    options = {"mode": "json", "by_alias": True, "exclude_none": True}
    # Agno's hold a clock, which has no JSON form. Clients' own `model_dump` may not know of a fallback.
    for name, arguments in (("model_dump", options), ("model_dump", {**options, "fallback": _nothing}), ("to_dict", {})):
        if callable(dump := getattr(value, name, None)) and not isinstance(value, type):
            with suppress(TypeError, ValueError):
                return dump(**arguments)  # type: ignore[no-any-return]  # a dictionary, of any model
    return None


def _plain(value: Any, objects: dict[int, object]) -> Any:
    """Return JSON with the fields of a client's objects in it, as in `{"role": "assistant", "content": answer.content}`."""
    if isinstance(value, dict):
        members = {name: _plain(member, objects) for name, member in value.items()}
        return value if all(map(is_, members.values(), value.values())) else members
    if isinstance(value, list | tuple):
        listed = [_plain(member, objects) for member in value]
        return value if all(map(is_, listed, value)) else listed
    if value is None or isinstance(value, str | int | float | bytes) or (fields := _dumped(value)) is None:
        return value
    objects[id(fields)] = value
    return fields


def _nothing(_: object) -> None:
    """Return None for what has no JSON form."""


def _as_given(view: Sequence[Json], dictionaries: Sequence[Json], messages: Sequence[M], objects: Mapping[int, object]) -> list[M]:
    """Return the messages of a view in the class of those that were given. What stayed whole is the object that was given."""
    originals = {id(each): message for each, message in zip(dictionaries, messages, strict=True)}
    kinds = {type(message) for message in messages}
    made: Callable[[Json], Any] = partial(_with_objects, objects) if dict in kinds else _maker(kinds, messages)
    return [originals[id(each)] if id(each) in originals else made(each) for each in view]


def _with_objects(objects: Mapping[int, object], message: Json) -> Json:
    return {
        name: [objects.get(id(member), member) for member in value] if isinstance(value, list) else value for name, value in message.items()
    }


def _maker(kinds: set[Any], messages: Sequence[Any]) -> Callable[[Json], Any]:
    """Return what makes an object from its fields: of the class that their `type` names, or else of the most general one given."""
    general = min(kinds, key=lambda kind: len(kind.__mro__))
    if not hasattr(general, "model_validate"):
        return getattr(general, "from_dict", partial(_copy_with, messages[0]))  # smolagents' and the Agent Framework's have the first
    if general.model_config.get("val_json_bytes") == "base64":  # Google's bytes are base64 in JSON only
        return lambda message: general.model_validate_json(json.dumps(message))
    classes = {name: each for name, each in vars(sys.modules[general.__module__]).items() if hasattr(each, "model_validate")}
    return lambda message: classes.get(str(message.get("type")), general).model_validate(message)


def _copy_with(example: Any, fields: Json) -> Any:
    """Return an object like another one, which has only a role and a content, with these."""
    copied = copy(example)
    for name, value in fields.items():
        object.__setattr__(copied, name, value)  # a frozen one, too
    return copied


def _check(value: Any, where: str) -> None:
    """Raise `FormatError` for what no provider can be sent, and what readers of messages do not expect."""
    try:
        json.dumps(value, default=_elsewhere)
    except (TypeError, ValueError, RecursionError):
        raise FormatError(where, "is no JSON value, or nested too deeply") from None
    if _is_deep(value):
        raise FormatError(where, f"is nested deeper than {LEVELS_MAX} levels")
    if isinstance(value, dict) and not isinstance(value.get("role", ""), str | None):
        raise FormatError(f"{where}.role", f"{short(value['role'])} where a text is expected")
    if isinstance(value, dict) and isinstance(value.get("content"), bytes):
        raise FormatError(f"{where}.content", "bytes where a text or a list is expected")


def _check_roles(messages: Sequence[Json], roles: Collection[str | None]) -> None:
    """Raise `FormatError` for a role that the format does not have: it is no user's. Also for words in an unknown field."""
    for index, message in enumerate(messages):
        others = [name for name, value in message.items() if value and name != "role"]
        if message.get("role") in ("user", "system", "developer") and others and CONTENTS.isdisjoint(message):
            names = ", ".join(map(short, others[:3]))
            raise FormatError(f"messages[{index}]", f"has no content that can be read, only {names}; pass a format that `manage` names")
        role = message.get("role")
        if roles and getattr(role, "value", role) not in roles:
            names = ", ".join(role for role in roles if role)
            raise FormatError(f"messages[{index}].role", f"{short(role)} is none of {names}; give the message one of these roles")


def _is_deep(value: object) -> bool:
    """True for more than `LEVELS_MAX` levels. How deep `json` goes before it raises depends on the version of Python."""
    level = [value]
    for _ in range(LEVELS_MAX):
        level = [
            member
            for holder in level
            if isinstance(holder, dict | list | tuple)
            for member in (holder.values() if isinstance(holder, dict) else holder)
        ]
        if not level:
            return False
    return True


def _elsewhere(value: object) -> str:
    """Let pass what a framework converts itself: bytes, as boto3's images are, and objects, as smolagents' images are."""
    if isinstance(value, bytes) or type(value).__module__ != "builtins":
        return ""
    raise TypeError


@lru_cache(maxsize=16)
def _windows(window: ContextWindow) -> Windows:
    """Return what fits conversations. It is kept to save work: the views would be the same without."""
    from .gateway.windows import Windows

    return Windows(window, mends_whole=True)


def _format_of(messages: Sequence[Json], model: str, *, are_steps: bool = False) -> MessageFormat:
    """Return the format of the messages, which may be steps of smolagents. Where all formats look alike, the model's name decides."""
    from .function_calls import FunctionCallFormat, is_function_call
    from .gateway.agent_framework_messages import AgentFrameworkFormat
    from .gateway.anthropic_messages import AnthropicWire
    from .gateway.autogen_messages import TYPES, AutoGenFormat
    from .gateway.converse_messages import ConverseFormat
    from .gateway.google_contents import GoogleWire
    from .gateway.llamaindex_messages import LlamaIndexFormat
    from .gateway.openai_chat import ChatWire
    from .gateway.openai_responses import ResponsesWire
    from .gateway.smolagents_messages import SmolagentsFormat, role_of
    from .gateway.vercel_messages import VercelFormat

    if any(str(message.get("type")) in LANGCHAIN_TYPES for message in messages):
        raise ArgumentError("messages", messages, "these are dumps of LangChain's messages; pass the messages themselves")
    if are_steps or any(role_of(message) in SMOLAGENTS_ROLES for message in messages):
        return SmolagentsFormat()
    if any(_is_vercel(block) for message in messages for block in _blocks(message)):
        return VercelFormat()
    if isinstance(messages[0].get("contents"), list):
        return AgentFrameworkFormat()
    if isinstance(messages[0].get("blocks"), list):
        return LlamaIndexFormat()
    if str(messages[0].get("type")) in TYPES:
        return AutoGenFormat()
    if any(map(is_function_call, messages)):
        return FunctionCallFormat()
    for index, message in enumerate(messages):
        for block in _blocks(message):
            if "type" not in block and CONVERSE_BLOCKS.isdisjoint(block):
                names = ", ".join(sorted(map(short, block))[:3])
                problem = f"a block of message {index} has no type and only {names}; pass messages of a format that `manage` names"
                raise ArgumentError("messages", messages, problem)
    for message in messages:
        if isinstance(parts := message.get("parts"), list):
            if any(isinstance(part, dict) and "type" in part for part in parts):
                raise ArgumentError("messages", messages, "these are Vercel's UI messages; pass what `convertToModelMessages` returns")
            return GoogleWire()
        if "tool_calls" in message or message.get("role") in ("system", "developer", "tool", "function"):
            return ChatWire()
        blocks = _blocks(message)
        if any("type" not in block for block in blocks):
            return ConverseFormat()
        marks = {str(block["type"]) for block in blocks}
        if isinstance(message.get("type"), str) or marks & RESPONSES_BLOCKS:
            return ResponsesWire()
        if marks & ANTHROPIC_BLOCKS:
            return AnthropicWire()
        if marks & CHAT_BLOCKS:
            return ChatWire()
        if "role" not in message:
            raise ArgumentError("messages", messages, "a message has neither a role nor a type")
    return AnthropicWire() if family(model) == "claude" else ChatWire()


def _blocks(message: Json) -> list[Json]:
    content = message.get("content")
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _is_vercel(block: Json) -> bool:
    """True for a block that only Vercel's AI SDK has."""
    kind = str(block.get("type"))
    is_file = kind == "file" and not {"mediaType", "mimeType"}.isdisjoint(block)
    return kind in VERCEL_BLOCKS or is_file or (kind == "image" and "image" in block)
