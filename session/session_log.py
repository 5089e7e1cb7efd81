"""`SessionLog`: the items of a session, their indexes, and everything that appends to it. Edits and conversions live in `session.py`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self, TypeVar, cast, overload

from .call_index import CallIndex
from .errors import DuplicateItemError, FormatError, ReadOnlyError, short
from .items import (
    ITEM_TYPES,
    AgentConfigUpdate,
    AgentHandoff,
    CategoryName,
    FunctionCall,
    FunctionCallOutput,
    Item,
    ItemBase,
    Message,
    MessageCategory,
    Role,
    checked_iterable,
    new_id,
    no_item,
)
from .parts import Content, ProviderContent
from .removed import KEY as REMOVED
from .removed import Removed
from .rewrite import index_log
from .sanitize import clean, clean_json, json_text
from .snapshot import Snapshot
from .usage import Usage

if TYPE_CHECKING:
    from .session import Session

USAGE_NOTED_AFTER = "usage_noted_after"
"""The key of `Session.usage_noted_after` in the metadata of a view."""

AnyItem = TypeVar("AnyItem", bound=ItemBase)


class SessionLog:
    """The item list of a session, its indexes, queries, and the methods that append to it.

    A view is a session that shares the item list of another one, and refuses every change.
    """

    __slots__ = (
        "__weakref__",
        "_breaks",
        "_by_call",
        "_ends",
        "_is_view",
        "_items",
        "_length",
        "_metadata",
        "_origin",
        "_positions",
        "_settled",
        "_settled_tokens",
        "id",
    )

    def __init__(self, items: Iterable[Item] | None = None, *, id: str | None = None, metadata: Mapping[str, Any] | None = None) -> None:
        """
        Args:
            items: The initial log.
            id: The session's own id; a new one by default.
            metadata: JSON values to store with it.

        Raises:
            DuplicateItemError: Two items have the same id.
            FormatError: A value is not an item, `id` is not a str, or `metadata` is not a mapping of values that JSON can hold.
        """
        if not (id is None or isinstance(id, str)):
            raise FormatError("Session.id", f"{short(id)} is not a str")
        if not (metadata is None or isinstance(metadata, Mapping)):
            raise FormatError("Session.metadata", f"expected a mapping, got {short(metadata)}")
        self.id = clean(id) if id else new_id()
        self._metadata: dict[str, Any] = clean_json(metadata or {}, "Session.metadata")
        self._is_view = False
        self._items: list[Item] = []
        self._length = 0
        self._origin: Session | None = None
        self._positions: dict[str, int] | None = {}
        self._by_call: CallIndex | None = None
        self._breaks: frozenset[str] = frozenset()
        self._ends: frozenset[str] = frozenset()
        self._settled = 0
        self._settled_tokens: int | None = None
        for item in () if items is None else checked_iterable(items, "Session.items"):
            self.append(item)

    @classmethod
    def showing(
        cls,
        origin: Session,
        items: list[Item],
        *,
        breaks: frozenset[str],
        settled: int,
        settled_tokens: int | None = None,
        ends: frozenset[str] = frozenset(),
        removed: Removed | None = None,
        length: int | None = None,
        usage_noted_after: str | None = None,
    ) -> Self:
        """Return a read-only view of `origin` in O(1). It shares the list `items`, to which others may go on appending.

        Args:
            origin: The session whose id and metadata the view has.
            items: Items of the view. Their ids are unique, and the list only ever grows.
            breaks: As `response_breaks`.
            settled: As `settled`.
            settled_tokens: As `recorded_total` returns them.
            ends: As `request_ends`.
            removed: As `removed`; None for the same as `origin`.
            length: Number of leading items that the view has; None for all.
            usage_noted_after: As `usage_noted_after`.
        """
        view = cls.__new__(cls)
        view.id = origin.id
        view._metadata = {**origin.metadata, **({} if removed is None else removed.to_metadata())}
        view._metadata.pop(USAGE_NOTED_AFTER, None)
        if usage_noted_after is not None:
            view._metadata[USAGE_NOTED_AFTER] = usage_noted_after
        view._is_view = True
        view._items = items
        view._length = len(items) if length is None else length
        view._origin = origin
        view._positions = None
        view._by_call = None
        view._breaks = breaks
        view._ends = ends
        view._settled = settled
        view._settled_tokens = settled_tokens
        return view

    def __repr__(self) -> str:
        return f"<{'view of session' if self._is_view else 'Session'} {self.id}: {self._length} items>"

    def _repr_html_(self) -> str:
        from .conversation_text import items_table

        return items_table(repr(self), self.items)

    def __bool__(self) -> bool:
        return True  # an empty session is one too

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Item]:
        return iter(self.items)

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Item]: ...
    def __getitem__(self, index: int | slice) -> Item | Sequence[Item]:
        return self.items[index]

    def __getstate__(self) -> dict[str, Any]:
        # A copy gets a list of its own with only this session's items. If two sessions appended to one list, each would see the
        # other's items; and the list of a view can hold more than the view shows.
        return {
            "id": self.id,
            "is_view": self._is_view,
            "metadata": dict(self.metadata),
            "items": self._items[: self._length],
            "breaks": self._breaks,
            "ends": self._ends,
            "settled": self._settled,
            "settled_tokens": self._settled_tokens,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.id = state["id"]
        self._metadata = state["metadata"]
        self._origin = None  # the copy of a view is independent of it
        self._items, self._length, self._settled = [], 0, 0
        self._is_view = False
        self._rewrite(state["items"])
        self.restore_seams(state["breaks"], state["settled"], state["settled_tokens"], state["ends"])
        self._is_view = state["is_view"]

    # Contents

    @property
    def items(self) -> Sequence[Item]:
        """The items in order: an immutable snapshot, made in O(1)."""
        return Snapshot(self._items, self._length)

    @property
    def response_breaks(self) -> frozenset[str]:
        """Ids of items that begin a response although the item before them is in a response too.

        Views need them: two responses must not merge when the items between them are hidden.
        """
        return self._breaks

    @property
    def request_ends(self) -> frozenset[str]:
        """Ids of answers after which a request ended, although the next item is an answer too, or there is none.

        Views need them: a summary that followed the answer in the log stands earlier in the view.
        """
        return self._ends

    @property
    def settled(self) -> int:
        """Number of leading items whose trim decisions were final when this view was made; 0 for a log.

        If items were removed from a log and one of the others carries `usage`, all its items are settled too: that usage counts a prompt
        with the removed items. After an edit it still ends at the last item that it covered; items inserted before that are settled too.
        """
        return self._settled

    @property
    def is_view(self) -> bool:
        """True for a read-only view of a session, which `process_session` returns: append to the session, not to the view."""
        return self._is_view

    @property
    def metadata(self) -> dict[str, Any]:
        """JSON values of your own; read-only in a view."""
        return cast("dict[str, Any]", MappingProxyType(self._metadata)) if self._is_view else self._metadata

    @metadata.setter
    def metadata(self, values: dict[str, Any]) -> None:
        self._check_editable("metadata")
        self._metadata = values

    @property
    def origin(self) -> Session | None:
        """The session that this one is a view of, or goes on from. None for any other log, and for a view that was saved and loaded."""
        return self._origin

    @property
    def removed(self) -> Removed | None:
        """The items that were removed to fit the window, which the request's first line counts; None for a log."""
        return Removed.from_metadata(self.metadata) if REMOVED in self.metadata else None

    @property
    def usage_noted_after(self) -> str | None:
        """Id of the item after which requests tell the model that the window is filling up; None for a log, and without that line.

        The line stands before the next response, or at the end. There is none if the item has left the session.
        """
        noted_after = self.metadata.get(USAGE_NOTED_AFTER)
        return noted_after if isinstance(noted_after, str) else None

    @property
    def lineage(self) -> object:
        """A token that stays the same object while the log only grows. Any other edit replaces it."""
        return self._items

    def messages(self) -> list[Message]:
        """The messages, in order."""
        return [item for item in self.items if isinstance(item, Message)]

    def turn_count(self) -> int:
        """Return the number of turns: user messages, except those of category CONTEXT."""
        users = (item for item in self.items if isinstance(item, Message) and item.role == "user")
        return sum(1 for item in users if item.category is not MessageCategory.CONTEXT)

    def estimated_tokens(self) -> int:
        """Return the tokens of all items at four characters each: a baseline, too low for most real sessions."""
        from .estimate import estimate_item

        return sum(map(estimate_item, self.items))

    def get_by_id(self, id: str) -> Item | None:
        """Return the item with this id, or None."""
        position = self.position(id)
        return None if position is None else self._items[position]

    def position(self, id: str) -> int | None:
        """Return the position in the log of the item with this id, or None."""
        return self._position_map().get(id) if isinstance(id, str) else None

    def positions(self, ids: Iterable[str]) -> list[int]:
        """Return the positions of the items with these ids, in order. Ids that are not in the log are left out."""
        positions = set(map(self._position_map().get, ids))
        positions.discard(None)
        return sorted(cast("set[int]", positions))

    # Appending

    def append(self, item: AnyItem) -> AnyItem:
        """Append an item and return it.

        Raises:
            DuplicateItemError: Its id is in use.
            FormatError: It is not an item.
            ReadOnlyError: This is a view, or read-only. So does every other method that changes a session.
        """
        self._check_editable("append")
        if type(item) not in ITEM_TYPES:
            raise no_item("Session.append", item)
        positions = self._position_map()
        if item.id in positions:
            raise DuplicateItemError(item.id)
        positions[item.id] = self._length
        self._items.append(item)  # type: ignore[arg-type]  # ITEM_TYPES are those of Item
        self._length += 1
        if self._by_call is not None:
            self._by_call.add(item)
        return item

    def add_message(
        self,
        role: Role,
        content: ProviderContent,
        message_id: str | None = None,
        created_at: float | None = None,
        replace: bool = False,
        agent_id: str | None = None,
        *,
        category: MessageCategory | CategoryName | None = None,
        pinned: bool = False,
        usage: Usage | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> Message:
        """Append a message and return it.

            session.add_message("user", ["What is this?", Image(path="plot.png")])
            session.add_message("user", [{"type": "image_url", "image_url": {"url": "https://example.org/plot.png"}}])

        Args:
            role: system, developer, user or assistant.
            content: A text, a part, or several parts: `Text`, `Image`, `Document`, or as Anthropic's, OpenAI's or Google's messages have
                them.
            message_id: Its id; a new one by default.
            created_at: Unix seconds; now by default.
            replace: With role system: remove all system messages and put this one first.
            agent_id: The agent it belongs to.
            category: Its category, if it should not follow from the role.
            pinned: True if every trim must keep it.
            usage: Usage reported for the request that produced it.
            extra: JSON values to store with it.

        Raises:
            DuplicateItemError: The id is in use.
            FormatError: A value has the wrong type; or `replace` with another role than system.
        """
        self._check_editable("add_message")
        message = Message(
            role,
            _own_content(content, "add_message.content"),
            agent_id=agent_id,
            pinned=pinned,
            usage=usage,
            extra={} if extra is None else extra,
            **_without_none(id=message_id, created_at=created_at, category=category),
        )
        if not replace:
            return self.append(message)
        if role != "system":
            raise FormatError("add_message.replace", f"only the system message can be replaced, not role {role!r}")
        self._replace_instructions(message)
        return message

    def add_context(self, content: ProviderContent, *, source: str | None = None, role: Role = "user", pinned: bool = False) -> Message:
        """Append a message of category CONTEXT and return it: a file, a memory, a retrieved passage.

        Args:
            content: As in `add_message`.
            source: Its origin, stored as `extra["source"]`.
            role: The role in which the model sees it.
            pinned: True if every trim must keep it.
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
        """Append a tool call and return it. If the log already has this call (same id, name and JSON), return that one.

        Args:
            name: The tool.
            arguments: A JSON text, or a mapping to convert to one.
            call_id: Id that its output will refer to; a new one by default.
            agent_id: The agent that calls.
            metadata: Data that the provider wants back with the call.

        Raises:
            DuplicateItemError: A call with this id and other content waits for its output.
            FormatError: A value has the wrong type, or the arguments hold a value that JSON cannot.
        """
        self._check_editable("add_function_call")
        if isinstance(arguments, Mapping):
            arguments = json_text(arguments, "FunctionCall.arguments")
        call = FunctionCall(
            name, arguments, call_id or f"call_{new_id()}", agent_id=agent_id, metadata={} if metadata is None else metadata
        )
        return self._calls().same_call(call) or self.append(call)

    def add_function_output(
        self, name: str, output: ProviderContent, call_id: str, is_error: bool = False, agent_id: str | None = None
    ) -> FunctionCallOutput:
        """Append a tool output and return it. If the log already has this output, return that one.

        Args:
            name: The tool.
            output: A text, a part, several parts, or a mapping or a list of mappings, which the model sees as JSON.
            call_id: The call it belongs to.
            is_error: True if the tool failed.
            agent_id: The agent that made the call.

        Raises:
            DuplicateItemError: The call already has another output.
            FormatError: A value has the wrong type.
        """
        self._check_editable("add_function_output")
        if isinstance(output, Mapping) or (isinstance(output, list) and any(isinstance(member, Mapping) for member in output)):
            output = json_text(output, "FunctionCallOutput.output")
        item = FunctionCallOutput(name, cast("Content", output), call_id, is_error=is_error, agent_id=agent_id)
        return self._calls().same_output(item) or self.append(item)

    def add_handoff(self, to_agent: str, from_agent: str | None = None, reason: str | None = None) -> AgentHandoff:
        """Append a handoff and return it."""
        return self.append(AgentHandoff(to_agent, from_agent, reason))

    def add_config_update(
        self, instructions: str | None = None, tools: Iterable[str] | None = None, agent_id: str | None = None
    ) -> AgentConfigUpdate:
        """Append a config update and return it. None leaves instructions or tools unchanged.

            session.add_config_update(instructions="Answer in French.")

        From here on these instructions are the system prompt of every request. They replace earlier system and developer messages and
        the instructions of earlier updates; `Session.active_config_at` says which. `tools` is recorded only: requests take their tools
        from the manager or the caller.
        """
        return self.append(AgentConfigUpdate(instructions, tools, agent_id=agent_id))

    # For code that derives sessions

    def restore_seams(
        self, breaks: frozenset[str], settled: int, settled_tokens: int | None = None, ends: frozenset[str] | None = None
    ) -> None:
        """Set these attributes: for readers of saved views and transcripts. `request_ends` stays as it is if `ends` is None."""
        self._check_editable("restore_seams")
        self._breaks = breaks
        self._ends = self._ends if ends is None else ends
        self._settled = settled
        self._settled_tokens = settled_tokens

    # Inside

    def _check_editable(self, operation: str) -> None:
        """Raise ReadOnlyError if this is a view. Every method that changes a session begins with this."""
        if self._is_view:
            raise ReadOnlyError(operation, is_view=True)

    def _replace_instructions(self, message: Message) -> None:
        """Put a system message in the place of all others."""
        log = index_log(self)
        rest = log.excerpt(position for position, item in enumerate(log.items) if not (isinstance(item, Message) and item.role == "system"))
        if any(item.id == message.id for item in rest.items):
            raise DuplicateItemError(message.id)
        self._rewrite([message, *rest.items])
        self._breaks = rest.breaks

    def _position_map(self) -> dict[str, int]:
        if self._positions is None:
            self._positions = {item.id: position for position, item in enumerate(self.items)}
        return self._positions

    def _rewrite(self, items: list[Item]) -> None:
        """Replace the list. Every edit except growth ends here: the new list object tells trackers of the log to start over.

        Settled items stay settled: their usage counts a prompt with more items and must not be applied again.
        """
        if self._settled:
            decided = {item.id for item in self._items[: self._settled]}
            self._settled = next((length for length in range(len(items), 0, -1) if items[length - 1].id in decided), 0)
        self._settled_tokens = None
        self._items = items
        self._length = len(items)
        self._positions = None
        self._by_call = None

    def _calls(self) -> CallIndex:
        if self._by_call is None:
            self._by_call = CallIndex(self.items)
        return self._by_call


def fill(session: SessionLog, items: list[Item]) -> None:
    """Append items to a new, empty session, at less cost than one at a time.

    Raises DuplicateItemError if two have the same id. The session then holds the items before the second.
    """
    positions = {item.id: position for position, item in enumerate(items)}
    if len(positions) == len(items):
        session._items += items
        session._length, session._positions = len(items), positions
    else:
        for item in items:
            session.append(item)


def recorded_total(session: SessionLog) -> int | None:
    """Return the tokens of a request with the first `settled` items, as recorded when this view was made; None if nothing was reported.

    Only calibration needs it: the usage in a view's items counts other requests, with more items.
    """
    return session._settled_tokens


def settled_after_removal(items: Sequence[Item]) -> int:
    """Return `settled` for a log that items were removed from: `len(items)` if any item carries `usage`, else 0.

    Such usage counts a prompt with the removed items. So the remaining items are settled, and only later reports describe this log.
    """
    return len(items) if any(item.usage is not None for item in items) else 0


def _own_content(content: ProviderContent, where: str) -> Content:
    """Return the content with the parts that are in a provider's form as our own."""
    if isinstance(content, Mapping):
        content = [content]
    if not isinstance(content, list | tuple) or not any(isinstance(part, Mapping) for part in content):
        return cast("Content", content)
    from .providers.content_parts import read_part

    return [read_part(part, f"{where}[{index}]") if isinstance(part, Mapping) else part for index, part in enumerate(content)]


def _without_none(**values: Any) -> dict[str, Any]:
    """Return the values that are not None, so that the others keep their defaults."""
    return {name: value for name, value in values.items() if value is not None}
