"""The items of a session: frozen values, cleaned when they are made. Their content lives in `parts.py`.

Relations between items (units, responses) live in `units.py`; saving in `serial.py`.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, TypedDict, TypeVar, Unpack, cast, final, get_args

from .errors import FormatError, short
from .parts import Content, Part, joined_text, parts_of
from .sanitize import check, check_choice, clean_object, clean_text, clean_texts
from .usage import Usage


class MessageCategory(StrEnum):
    """Kind of an item for the budget, in falling priority: the last one is trimmed first. Items also take its name: `"CONTEXT"`."""

    SYSTEM = "SYSTEM"
    CONTEXT = "CONTEXT"
    DIALOG = "DIALOG"
    SYSTEM_OUTPUT = "SYSTEM_OUTPUT"


CategoryName: TypeAlias = Literal["SYSTEM", "CONTEXT", "DIALOG", "SYSTEM_OUTPUT"]


def category_of(name: object, where: str) -> MessageCategory:
    """Return the category with this name. Raises FormatError if none has it."""
    category = next((member for member in MessageCategory if isinstance(name, str) and member.value == name), None)
    if category is None:  # not `MessageCategory(name)`: its error would show the value, however deep it is
        raise FormatError(where, f"{short(name)} is none of {', '.join(member.value for member in MessageCategory)}")
    return category


def new_id() -> str:
    """Return a new item id of 12 hexadecimal digits: short, because placeholders show it to the model."""
    return os.urandom(6).hex()


_DERIVED = cast(MessageCategory, None)


Setter: TypeAlias = Callable[[object, object], None]
ItemT = TypeVar("ItemT", bound="ItemBase")

_set = object.__setattr__
"""Sets a field of a frozen value while it is constructed."""


class _Memo:
    """A slot on each item for one object of the code that measures it (see `context_window.counting.item_tokens`).

    It is not part of the item's value: not compared, shown, copied or saved. It is garbage-collected with the item.
    """

    __slots__ = ("memo",)

    memo: object


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemBase(_Memo):
    """Fields that every item has.

    Attributes:
        id: Unique in its session.
        created_at: Unix seconds.
        agent_id: The agent it belongs to, if there are several.
        category: Its kind for budgets; by default it follows from role and type.
        pinned: True if every trim must keep it.
        usage: Usage reported for the request whose response begins with this item.
        extra: Further data of a transcript or a voice stack: JSON values, copied, read-only. A plain `dict`, which every encoder and
            debugger knows; to change it, make another item with `dataclasses.replace`.
    """

    type: ClassVar[str]

    id: str = field(default_factory=new_id)
    created_at: float = field(default_factory=time.time)
    agent_id: str | None = None
    category: MessageCategory = _DERIVED
    pinned: bool = False
    usage: Usage | None = None
    extra: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        _set(self, "memo", None)
        clean_text(self, "id")
        if not self.id:
            raise FormatError(f"{type(self).__name__}.id", "empty; leave `id` out to get a new one")
        if type(self.created_at) is not float or not math.isfinite(self.created_at):
            _set(self, "created_at", _seconds(self.created_at, f"{type(self).__name__}.created_at"))
        if self.agent_id is not None:
            clean_text(self, "agent_id")
        if self.category is _DERIVED:
            _set(self, "category", self._default_category())
        elif not isinstance(self.category, MessageCategory):
            _set(self, "category", category_of(self.category, f"{type(self).__name__}.category"))
        if self.pinned is not False:
            check(self, "pinned", bool)
        if self.usage is not None:
            check(self, "usage", Usage)
        clean_object(self, "extra")

    def __reduce__(self) -> tuple[Callable[..., object], tuple[Any, ...]]:
        # The default for dataclasses with slots would leave `memo` unset.
        return _restored, (type(self), tuple((spec.name, getattr(self, spec.name)) for spec in fields(self)))

    def _default_category(self) -> MessageCategory:
        return MessageCategory.DIALOG


def _restored(kind: type[ItemBase], values: tuple[tuple[str, object], ...]) -> ItemBase:
    """Return a copied or unpickled item. Its values were cleaned when the original was made."""
    item = kind.__new__(kind)
    for name, value in (*values, ("memo", None)):
        _set(item, name, value)
    return item


def copy_with(item: ItemT, **values: object) -> ItemT:
    """Return a copy of an item with other values in some fields.

    `dataclasses.replace` cleans and checks every field again, which takes ten times as long. Here the new values must be clean: they are
    parts of clean ones, or texts that the caller has made.
    """
    copied = object.__new__(type(item))
    kind: object = type(item)
    for name, set_field in field_setters(kind).items():
        set_field(copied, values[name] if name in values else getattr(item, name))
    MEMO(copied, None)
    return copied


@cache
def field_setters(kind: object) -> dict[str, Setter]:
    """Return the functions that set the fields of a frozen class while a value is built, by name. They take half the time of `_set`."""
    return {spec.name: getattr(kind, spec.name).__set__ for spec in fields(cast("type[ItemBase]", kind))}


MEMO: Setter = getattr(_Memo, "memo").__set__  # noqa: B009 - its type is that of the slot, not of the value
"""Sets the slot `memo`, which is no field."""


def _seconds(value: object, where: str) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            seconds = float(value)
        except OverflowError:
            seconds = math.inf
        if math.isfinite(seconds):
            return seconds
    raise FormatError(where, f"{short(value)} is not a number of seconds")


class _CommonFields(TypedDict, total=False):
    """The fields of `ItemBase`, as constructors take them: a category also by its name."""

    id: str
    created_at: float
    agent_id: str | None
    category: MessageCategory | CategoryName
    pinned: bool
    usage: Usage | None
    extra: Mapping[str, Any]


Role = Literal["system", "developer", "user", "assistant"]
ROLES: tuple[Role, ...] = ("system", "developer", "user", "assistant")
_OTHER_ROLES = {
    **dict.fromkeys(("tool", "function"), "append a tool's output with add_function_output(name, output, call_id) or add_tool_results"),
    **dict.fromkeys(("model", "ai"), "pass 'assistant'"),
    "human": "pass 'user'",
}
"""What to do instead, by the name of a role that other libraries have."""


@final
@dataclass(frozen=True, slots=True)
class Message(ItemBase):
    """A message in a role. A message of role assistant with `extra["summary"] is True` is a summary."""

    type: ClassVar[Literal["message"]] = "message"

    role: Role
    content: tuple[Part, ...]
    interrupted: bool = field(default=False, kw_only=True)

    if TYPE_CHECKING:  # accepts more types than it stores: a str becomes one Text

        def __init__(self, role: Role, content: Content, *, interrupted: bool = False, **fields: Unpack[_CommonFields]) -> None: ...

    def __post_init__(self) -> None:
        check_choice(self, "role", ROLES, advice=_OTHER_ROLES)
        object.__setattr__(self, "content", parts_of(self.content, "Message.content"))
        if self.interrupted is not False:
            check(self, "interrupted", bool)
        ItemBase.__post_init__(self)

    def _default_category(self) -> MessageCategory:
        return MessageCategory.SYSTEM if self.role in ("system", "developer") else MessageCategory.DIALOG

    @property
    def is_summary(self) -> bool:
        """True if this message replaces earlier ones as their summary. Recorded in `extra`; the text does not matter."""
        return self.extra.get("summary") is True

    @property
    def text(self) -> str:
        """The text parts, joined by line breaks."""
        return joined_text(self.content)


@final
@dataclass(frozen=True, slots=True)
class Reasoning(ItemBase):
    """Reasoning of the model.

    Attributes:
        text: The readable part of the reasoning.
        signature: The provider's signature of it, to be sent back unchanged.
        data: An encrypted or redacted payload, to be sent back unchanged.
    """

    type: ClassVar[Literal["reasoning"]] = "reasoning"

    text: str = ""
    signature: str | None = None
    data: str | None = None

    def __post_init__(self) -> None:
        clean_text(self, "text")
        clean_text(self, "signature", optional=True)
        clean_text(self, "data", optional=True)
        ItemBase.__post_init__(self)


@final
@dataclass(frozen=True, slots=True)
class FunctionCall(ItemBase):
    """A tool call requested by the model.

    Attributes:
        name: The tool.
        arguments: JSON text exactly as the model wrote it; it may be invalid.
        call_id: Connects the call with its output.
        metadata: Data that the provider wants back with the call, such as Gemini's thought signature.
    """

    type: ClassVar[Literal["function_call"]] = "function_call"

    name: str
    arguments: str
    call_id: str
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False, kw_only=True)

    def __post_init__(self) -> None:
        for name in ("name", "arguments", "call_id"):
            clean_text(self, name)
        clean_object(self, "metadata")
        ItemBase.__post_init__(self)

    def _default_category(self) -> MessageCategory:
        return MessageCategory.SYSTEM_OUTPUT


@final
@dataclass(frozen=True, slots=True)
class FunctionCallOutput(ItemBase):
    """The output of a tool call."""

    type: ClassVar[Literal["function_call_output"]] = "function_call_output"

    name: str
    output: tuple[Part, ...]
    call_id: str
    is_error: bool = field(default=False, kw_only=True)

    if TYPE_CHECKING:  # accepts more types than it stores: a str becomes one Text

        def __init__(
            self, name: str, output: Content, call_id: str, *, is_error: bool = False, **fields: Unpack[_CommonFields]
        ) -> None: ...

    def __post_init__(self) -> None:
        clean_text(self, "name")
        clean_text(self, "call_id")
        object.__setattr__(self, "output", parts_of(self.output, "FunctionCallOutput.output"))
        check(self, "is_error", bool)
        ItemBase.__post_init__(self)

    def _default_category(self) -> MessageCategory:
        return MessageCategory.SYSTEM_OUTPUT

    @property
    def text(self) -> str:
        """The text parts, joined by line breaks."""
        return joined_text(self.output)


@final
@dataclass(frozen=True, slots=True)
class AgentHandoff(ItemBase):
    """The conversation passes from one agent to another."""

    type: ClassVar[Literal["agent_handoff"]] = "agent_handoff"

    to_agent: str
    from_agent: str | None = None
    reason: str | None = None

    def __post_init__(self) -> None:
        clean_text(self, "to_agent")
        clean_text(self, "from_agent", optional=True)
        clean_text(self, "reason", optional=True)
        ItemBase.__post_init__(self)

    def _default_category(self) -> MessageCategory:
        return MessageCategory.SYSTEM


@final
@dataclass(frozen=True, slots=True)
class AgentConfigUpdate(ItemBase):
    """From here on an agent has other instructions or other tools (by name); None leaves them unchanged.

    The instructions become the system prompt: `Session.active_config_at` lists the instructions that they replace.
    """

    type: ClassVar[Literal["agent_config_update"]] = "agent_config_update"

    instructions: str | None = None
    tools: tuple[str, ...] | None = None

    if TYPE_CHECKING:  # accepts more types than it stores: any iterable of names

        def __init__(
            self, instructions: str | None = None, tools: Iterable[str] | None = None, **fields: Unpack[_CommonFields]
        ) -> None: ...

    def __post_init__(self) -> None:
        clean_text(self, "instructions", optional=True)
        if self.tools is not None:
            clean_texts(self, "tools")
        ItemBase.__post_init__(self)

    def _default_category(self) -> MessageCategory:
        return MessageCategory.SYSTEM


@final
@dataclass(frozen=True, slots=True)
class Compaction(ItemBase):
    """A summary that replaces earlier items in views.

    Attributes:
        summary: The text.
        replaces: Ids of the items that it replaces in views. They stay in the log.
    """

    type: ClassVar[Literal["compaction"]] = "compaction"

    summary: str
    replaces: tuple[str, ...] = ()

    if TYPE_CHECKING:  # accepts more types than it stores: any iterable of ids

        def __init__(self, summary: str, replaces: Iterable[str] = (), **fields: Unpack[_CommonFields]) -> None: ...

    def __post_init__(self) -> None:
        clean_text(self, "summary")
        clean_texts(self, "replaces")
        ItemBase.__post_init__(self)


Item: TypeAlias = Message | Reasoning | FunctionCall | FunctionCallOutput | AgentHandoff | AgentConfigUpdate | Compaction
ITEM_TYPES: frozenset[type] = frozenset(get_args(Item))
"""All item types. Subclasses are not allowed, because their fields could not be saved; use `extra` instead."""


def parts_of_item(item: Item) -> tuple[Part, ...]:
    """Return the parts of a message or an output, and () for any other item."""
    return item.content if isinstance(item, Message) else item.output if isinstance(item, FunctionCallOutput) else ()


def no_item(where: str, value: object) -> FormatError:
    """Return the error for a value that is not an item, given to the method `where`."""
    advice = "pass a Message, a FunctionCall or another of the item classes"
    is_message = isinstance(value, dict)
    return FormatError(
        where, f"{short(value)} is not an item; {advice}{'; Session.from_openai(…) reads dictionaries' if is_message else ''}"
    )


def checked_iterable(items: Iterable[Item], where: str) -> Iterable[Item]:
    """Return the argument if it is iterable. Raises FormatError if it is not."""
    if not isinstance(items, Iterable):
        raise FormatError(where, f"expected several items, got {short(items)}; pass a list of them, such as `session.items`")
    return items
