"""`Record`: what a session holds and how it grows. What else can be done to one lives in `session.py`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar

from .calls import CallIndex
from .door import clean, clean_json
from .errors import DuplicateItemError, FormatError, short
from .items import (
    ITEM_TYPES,
    AgentConfigUpdate,
    AgentHandoff,
    FunctionCall,
    FunctionCallOutput,
    Item,
    ItemBase,
    Message,
    MessageCategory,
    Role,
    new_id,
)
from .log import Snapshot
from .parts import Content
from .stack import with_room
from .usage import Usage

if TYPE_CHECKING:
    from .session import Session

AnyItem = TypeVar("AnyItem", bound=ItemBase)


class Record:
    """The list of a session, its indexes, its queries, and all that appends to it."""

    __slots__ = (
        "__weakref__",
        "_breaks",
        "_by_call",
        "_items",
        "_length",
        "_origin",
        "_owned",
        "_places",
        "_settled",
        "_settled_tokens",
        "id",
        "metadata",
    )

    def __init__(self, items: Iterable[Item] | None = None, *, id: str | None = None, metadata: Mapping[str, Any] | None = None) -> None:
        """
        Args:
            items: What the log starts with.
            id: The session's own id; made where not given.
            metadata: JSON values to carry along.

        Raises:
            DuplicateItemError: Two items have one id.
            FormatError: Something is no item, `id` is no text, or `metadata` is no mapping of what JSON can hold.
        """
        if not (id is None or isinstance(id, str)):
            raise FormatError("Session.id", f"{short(id)} is not a text")
        if not (metadata is None or isinstance(metadata, Mapping)):
            raise FormatError("Session.metadata", f"{short(metadata)} where a mapping is expected")
        self.id = clean(id) if id else new_id()
        self.metadata: dict[str, Any] = clean_json(metadata or {}, "Session.metadata")
        self._items: list[Item] = []
        self._length = 0
        self._origin: Session | None = None
        self._owned = True
        self._places: dict[str, int] | None = {}
        self._by_call: CallIndex | None = None
        self._breaks: frozenset[str] = frozenset()
        self._settled = 0
        self._settled_tokens: int | None = None
        for item in () if items is None else listed(items, "Session.items"):
            self.append(item)

    @classmethod
    def showing(
        cls, origin: Session, items: list[Item], *, breaks: frozenset[str], settled: int, settled_tokens: int | None = None
    ) -> Self:
        """A view of `origin`, made in O(1): it shares `items`, of which others may go on to append to the end.

        Args:
            origin: Whose id and metadata the view has.
            items: What the view shows. Ids are unique and the list is never changed but at its end.
            breaks: As `response_breaks`.
            settled: As `settled`.
            settled_tokens: As `settled_tokens`.
        """
        view = cls.__new__(cls)
        view.id = origin.id
        view.metadata = dict(origin.metadata)
        view._items = items
        view._length = len(items)
        view._origin = origin
        view._owned = False
        view._places = None
        view._by_call = None
        view._breaks = breaks
        view._settled = settled
        view._settled_tokens = settled_tokens
        return view

    def __repr__(self) -> str:
        return f"<Session {self.id}: {self._length} items>"

    def __getstate__(self) -> dict[str, Any]:
        # Copies get a list of their own, with the items of this session alone: two sessions that both append to one list
        # would each see the other's items, and the list of a view can hold more than the view shows.
        return {
            "id": self.id,
            "metadata": dict(self.metadata),
            "items": self._items[: self._length],
            "breaks": self._breaks,
            "settled": self._settled,
            "settled_tokens": self._settled_tokens,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.id = state["id"]
        self.metadata = state["metadata"]
        self._origin = None  # a copy of a view stands for itself
        self._items, self._length, self._settled = [], 0, 0
        self._rewrite(state["items"])
        self.restore_seams(state["breaks"], state["settled"], state["settled_tokens"])

    # What it holds

    @property
    def items(self) -> Sequence[Item]:
        """The items now, in order: an immutable snapshot, made in O(1)."""
        return Snapshot(self._items, self._length)

    @property
    def response_breaks(self) -> frozenset[str]:
        """Ids of items that begin a response although the item before them belongs to one too.

        A view needs them, so that two answers do not merge when what stood between them is gone.
        """
        return self._breaks

    @property
    def settled(self) -> int:
        """How many leading items were decided on when this view was made; 0 for a log that is no view.

        Likewise of a log that items were left out of, if any of the others carries a `usage`: it is of a prompt that had them. An edit
        keeps it at the last item that it was about: what comes in before that is decided on with it.
        """
        return self._settled

    @property
    def settled_tokens(self) -> int | None:
        """Tokens that a request with the `settled` items costs, where a provider's report said so when this view was made.

        The reports that its items carry are of other requests, with more in them.
        """
        return self._settled_tokens

    @property
    def origin(self) -> Session | None:
        """The session that this one is a view of; None for a log, and for a view that was saved and read back."""
        return self._origin

    @property
    def lineage(self) -> object:
        """A token that stays the same object while the log only grows, and is another after every other edit."""
        return self._items

    def messages(self) -> list[Message]:
        """The messages, in order."""
        return [item for item in self.items if isinstance(item, Message)]

    def turn_count(self) -> int:
        """How many turns there are: user messages, those of category CONTEXT not counted."""
        users = (item for item in self.items if isinstance(item, Message) and item.role == "user")
        return sum(1 for item in users if item.category is not MessageCategory.CONTEXT)

    def estimated_tokens(self) -> int:
        """Tokens of all items, estimated at four characters each: a baseline, too low for most real sessions."""
        from .estimate import estimate_item

        return sum(map(estimate_item, self.items))

    def get_by_id(self, id: str) -> Item | None:
        """The item with this id, or None."""
        place = self.position(id)
        return None if place is None else self._items[place]

    def position(self, id: str) -> int | None:
        """Where the item with this id stands in the log, or None."""
        return self._place_map().get(id) if isinstance(id, str) else None

    # Growing it

    def append(self, item: AnyItem) -> AnyItem:
        """The item, now the last of the log.

        Raises:
            DuplicateItemError: Its id is taken.
            FormatError: It is no item.
        """
        if type(item) not in ITEM_TYPES:
            raise FormatError("Session.append", f"{short(item)} is no item; pass a Message, a FunctionCall or another of the item classes")
        places = self._place_map()
        if item.id in places:
            raise DuplicateItemError(item.id)
        if not self._owned:  # the list of a view is another's: from here on they differ
            self._items = self._items[: self._length]
            self._owned = True
        places[item.id] = self._length
        self._items.append(item)  # type: ignore[arg-type]  # ITEM_TYPES are those of Item
        self._length += 1
        if self._by_call is not None:
            self._by_call.note(item)
        return item

    def add_message(
        self,
        role: Role,
        content: Content,
        message_id: str | None = None,
        created_at: float | None = None,
        replace: bool = False,
        agent_id: str | None = None,
        *,
        category: MessageCategory | None = None,
        pinned: bool = False,
        usage: Usage | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> Message:
        """The message, appended.

        Args:
            role: system, developer, user or assistant.
            content: A text, a part, or several parts.
            message_id: Its id; made where not given.
            created_at: Unix seconds; now where not given.
            replace: With role system: take out every system message there is and put this one at the head.
            agent_id: The agent it belongs to.
            category: Its category, where it is not to follow from the role.
            pinned: True if it must survive every trim.
            usage: What the provider reported for this answer.
            extra: JSON values to carry along.

        Raises:
            DuplicateItemError: The id is taken.
            FormatError: A value has the wrong type; or `replace` with another role than system.
        """
        message = Message(
            role,
            content,
            agent_id=agent_id,
            pinned=pinned,
            usage=usage,
            extra={} if extra is None else extra,
            **_given(id=message_id, created_at=created_at, category=category),
        )
        if not replace:
            return self.append(message)
        if role != "system":
            raise FormatError("add_message.replace", f"only the system message can be replaced, not role {role!r}")
        from .excerpts import read

        log = read(self)  # type: ignore[arg-type]  # every record is a session
        kept = log.excerpt(place for place, item in enumerate(log.items) if not (isinstance(item, Message) and item.role == "system"))
        if any(item.id == message.id for item in kept.items):
            raise DuplicateItemError(message.id)
        self._rewrite([message, *kept.items])
        self._breaks = kept.breaks
        return message

    def add_context(self, content: Content, *, source: str | None = None, role: Role = "user", pinned: bool = False) -> Message:
        """A message of category CONTEXT, appended: a file, a memory, a retrieved passage.

        Args:
            content: A text, a part, or several parts.
            source: Where it comes from, kept as `extra["source"]`.
            role: Whose message the model takes it for.
            pinned: True if it must survive every trim.
        """
        extra = {"source": source} if source is not None else None
        return self.add_message(role, content, category=MessageCategory.CONTEXT, pinned=pinned, extra=extra)

    def add_function_call(
        self,
        name: str,
        arguments: str | Mapping[str, Any],
        call_id: str | None = None,
        agent_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> FunctionCall:
        """The call, appended. A call that the log holds already (same id and name, the same JSON) comes back as it is.

        Args:
            name: The tool.
            arguments: A JSON text, or a mapping to write as one.
            call_id: What its output will refer to; made where not given.
            agent_id: The agent that calls.
            metadata: What the provider wants back with the call.

        Raises:
            DuplicateItemError: An unanswered call with this id and other content is there.
            FormatError: A value has the wrong type, or the arguments hold what JSON cannot.
        """
        if isinstance(arguments, Mapping):
            data = clean_json(arguments, "FunctionCall.arguments")
            arguments = with_room(lambda: json.dumps(data, ensure_ascii=False))
        given = {} if metadata is None else metadata
        call = FunctionCall(name, arguments, call_id or f"call_{new_id()}", agent_id=agent_id, metadata=given)
        return self._calls().same_call(call) or self.append(call)

    def add_function_output(
        self, name: str, output: Content, call_id: str, is_error: bool = False, agent_id: str | None = None
    ) -> FunctionCallOutput:
        """The output, appended. The same output given twice is recorded once: the first comes back.

        Args:
            name: The tool.
            output: A text, a part, or several parts.
            call_id: The call it answers.
            is_error: Whether the tool failed.
            agent_id: The agent whose call it answers.

        Raises:
            DuplicateItemError: The call has another answer already.
            FormatError: A value has the wrong type.
        """
        item = FunctionCallOutput(name, output, call_id, is_error=is_error, agent_id=agent_id)
        return self._calls().same_output(item) or self.append(item)

    def add_handoff(self, to_agent: str, from_agent: str | None = None, reason: str | None = None) -> AgentHandoff:
        """The handoff, appended."""
        return self.append(AgentHandoff(to_agent, from_agent, reason))

    def add_config_update(
        self, instructions: str | None = None, tools: Iterable[str] | None = None, agent_id: str | None = None
    ) -> AgentConfigUpdate:
        """The update, appended. None leaves instructions or tools as they are."""
        return self.append(AgentConfigUpdate(instructions, tools, agent_id=agent_id))

    # For those who derive sessions from others

    def restore_seams(self, breaks: frozenset[str], settled: int, settled_tokens: int | None = None) -> None:
        """Sets what these are called of a session just read: for readers of saved views and transcripts."""
        self._breaks = breaks
        self._settled = settled
        self._settled_tokens = settled_tokens

    # Inside

    def _place_map(self) -> dict[str, int]:
        if self._places is None:
            self._places = {item.id: place for place, item in enumerate(self.items)}
        return self._places

    def _rewrite(self, items: list[Item]) -> None:
        """Every edit but growth ends here: a new list tells whoever follows the log that it must begin anew.

        What was decided on stays so: a report among it is of a prompt that had more in it, and must not count again.
        """
        if self._settled:
            decided = {item.id for item in self._items[: self._settled]}
            self._settled = next((place for place in range(len(items), 0, -1) if items[place - 1].id in decided), 0)
        self._settled_tokens = None
        self._items = items
        self._length = len(items)
        self._owned = True
        self._places = None
        self._by_call = None

    def _calls(self) -> CallIndex:
        if self._by_call is None:
            self._by_call = CallIndex(self.items)
        return self._by_call


def listed(items: Iterable[Item], where: str) -> Iterable[Item]:
    """The items themselves, where there can be several.

    Raises:
        FormatError: It is nothing that has members.
    """
    if not isinstance(items, Iterable):
        raise FormatError(where, f"{short(items)} where several items are expected; pass a list of them, such as `session.items`")
    return items


def reported(items: Sequence[Item]) -> int:
    """Of a log that others were left out of, what `settled` has to be: all of it, where an item says what a prompt had; else 0.

    That prompt had the others in it, so these count as decided on, and reports from here on alone are of this log.
    """
    return len(items) if any(item.usage is not None for item in items) else 0


def _given(**values: Any) -> dict[str, Any]:
    """The values that are not None: the others keep their defaults."""
    return {name: value for name, value in values.items() if value is not None}
