"""The items of a session: frozen values, cleaned at the door. The parts of their content live in `parts.py`.

What a list of items means (which stand or fall together, what a response is) lives in `units.py`; saving in `serial.py`.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, cast, final, get_args

from .door import check, check_choice, clean_object, clean_text, clean_texts
from .errors import FormatError, short
from .parts import Content, Part, joined_text, parts_of
from .usage import Usage

Role = Literal["system", "developer", "user", "assistant"]
ROLES: tuple[Role, ...] = ("system", "developer", "user", "assistant")


class MessageCategory(Enum):
    """What an item is to the model, in falling priority: the last is trimmed first."""

    SYSTEM = "SYSTEM"
    CONTEXT = "CONTEXT"
    DIALOG = "DIALOG"
    SYSTEM_OUTPUT = "SYSTEM_OUTPUT"


def new_id() -> str:
    """A fresh item id of 12 hexadecimal digits: short, because placeholders spell it out to the model."""
    return os.urandom(6).hex()


_DERIVED = cast(MessageCategory, None)


_set = object.__setattr__
"""How a frozen value is given its final form while it is made."""


class _Memo:
    """Room on an item for one object of whoever measures it (see `context_window.counting.memo`).

    It is no part of the item's value: not compared, shown, copied or saved. Kept here, it goes when the item goes.
    """

    __slots__ = ("memo",)

    memo: object


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemBase(_Memo):
    """What every item has.

    Attributes:
        id: Unique in its session.
        created_at: Unix seconds.
        agent_id: The agent it belongs to, where there are several.
        category: Its kind for budgets; derived from role and type unless given.
        pinned: True if it must survive every trim.
        usage: What the provider reported for the request whose answer this item begins.
        extra: What else a transcript or a voice stack brings: JSON values, copied, and to be read only. A plain `dict`,
            so that every encoder and debugger knows it; to change it, make another item with `dataclasses.replace`.
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
            raise FormatError(f"{type(self).__name__}.id", "an empty text; leave `id` out to have one made")
        if type(self.created_at) is not float or not math.isfinite(self.created_at):
            _set(self, "created_at", _seconds(self.created_at, f"{type(self).__name__}.created_at"))
        if self.agent_id is not None:
            clean_text(self, "agent_id")
        if self.category is _DERIVED:
            _set(self, "category", self._default_category())
        else:
            check(self, "category", MessageCategory)
        if self.pinned is not False:
            check(self, "pinned", bool)
        if self.usage is not None:
            check(self, "usage", Usage)
        clean_object(self, "extra")

    def __reduce__(self) -> tuple[Callable[..., object], tuple[Any, ...]]:
        # What dataclasses with slots do by themselves would leave `memo` unset.
        return _revived, (type(self), tuple((one.name, getattr(self, one.name)) for one in fields(self)))

    def _default_category(self) -> MessageCategory:
        return MessageCategory.DIALOG


def _revived(kind: type[ItemBase], values: tuple[tuple[str, object], ...]) -> ItemBase:
    """A copied or unpickled item: its values were cleaned when the first one was made."""
    item = kind.__new__(kind)
    for name, value in (*values, ("memo", None)):
        _set(item, name, value)
    return item


def _seconds(value: object, where: str) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            seconds = float(value)
        except OverflowError:
            seconds = math.inf
        if math.isfinite(seconds):
            return seconds
    raise FormatError(where, f"{short(value)} is not a number of seconds")


@final
@dataclass(frozen=True, slots=True)
class Message(ItemBase):
    """Something said in a role. A message of role assistant with `extra["summary"] is True` is a summary."""

    type: ClassVar[str] = "message"

    role: Role
    content: tuple[Part, ...]
    interrupted: bool = field(default=False, kw_only=True)

    if TYPE_CHECKING:  # accepts more than it keeps: a str is one Text

        def __init__(
            self,
            role: Role,
            content: Content,
            *,
            interrupted: bool = False,
            id: str = ...,
            created_at: float = ...,
            agent_id: str | None = None,
            category: MessageCategory = ...,
            pinned: bool = False,
            usage: Usage | None = None,
            extra: Mapping[str, Any] = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        check_choice(self, "role", ROLES)
        _set(self, "content", parts_of(self.content, "Message.content"))
        if self.interrupted is not False:
            check(self, "interrupted", bool)
        ItemBase.__post_init__(self)

    def _default_category(self) -> MessageCategory:
        return MessageCategory.SYSTEM if self.role in ("system", "developer") else MessageCategory.DIALOG

    @property
    def is_summary(self) -> bool:
        """Whether this message stands for earlier ones. Told by `extra`, never by its text."""
        return self.extra.get("summary") is True

    @property
    def text(self) -> str:
        """The text parts, one a line."""
        return joined_text(self.content)


@final
@dataclass(frozen=True, slots=True)
class Reasoning(ItemBase):
    """What the model thought.

    Attributes:
        text: The thought, as far as it is shown.
        signature: The provider's seal on it, to be sent back unchanged.
        data: An encrypted or redacted payload, to be sent back unchanged.
    """

    type: ClassVar[str] = "reasoning"

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
    """The model's wish to have a tool run.

    Attributes:
        name: The tool.
        arguments: A JSON text, as the model wrote it: it may be broken.
        call_id: What its output refers to.
        metadata: What the provider wants back with the call, such as Gemini's thought signature.
    """

    type: ClassVar[str] = "function_call"

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
    """What a tool answered."""

    type: ClassVar[str] = "function_call_output"

    name: str
    output: tuple[Part, ...]
    call_id: str
    is_error: bool = field(default=False, kw_only=True)

    if TYPE_CHECKING:  # accepts more than it keeps: a str is one Text

        def __init__(
            self,
            name: str,
            output: Content,
            call_id: str,
            *,
            is_error: bool = False,
            id: str = ...,
            created_at: float = ...,
            agent_id: str | None = None,
            category: MessageCategory = ...,
            pinned: bool = False,
            usage: Usage | None = None,
            extra: Mapping[str, Any] = ...,
        ) -> None: ...

    def __post_init__(self) -> None:
        clean_text(self, "name")
        clean_text(self, "call_id")
        _set(self, "output", parts_of(self.output, "FunctionCallOutput.output"))
        check(self, "is_error", bool)
        ItemBase.__post_init__(self)

    def _default_category(self) -> MessageCategory:
        return MessageCategory.SYSTEM_OUTPUT

    @property
    def text(self) -> str:
        """The text parts, one a line."""
        return joined_text(self.output)


@final
@dataclass(frozen=True, slots=True)
class AgentHandoff(ItemBase):
    """The conversation goes from one agent to another."""

    type: ClassVar[str] = "agent_handoff"

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
    """From here on an agent has other instructions or other tools (their names); None leaves them as they are."""

    type: ClassVar[str] = "agent_config_update"

    instructions: str | None = None
    tools: tuple[str, ...] | None = None

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
    """A summary that stands for earlier items: a view shows it instead of them.

    Attributes:
        summary: The text.
        replaces: The ids of the items it stands for. They stay in the log.
    """

    type: ClassVar[str] = "compaction"

    summary: str
    replaces: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        clean_text(self, "summary")
        clean_texts(self, "replaces")
        ItemBase.__post_init__(self)


Item: TypeAlias = Message | Reasoning | FunctionCall | FunctionCallOutput | AgentHandoff | AgentConfigUpdate | Compaction
ITEM_TYPES: frozenset[type] = frozenset(get_args(Item))
"""There are no others, and no subclasses: what they add could not be saved. `extra` is for that."""
