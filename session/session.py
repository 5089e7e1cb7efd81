"""`Session`: the log of a conversation, and all that can be done to one. What it holds and how it grows lives in `record.py`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace as changed
from operator import is_
from typing import TYPE_CHECKING, Any

from .errors import UnknownItemError
from .items import Item, Message
from .record import AnyItem, Record, reported
from .stack import with_room

if TYPE_CHECKING:
    from .excerpts import Excerpt
    from .providers.anthropic import AnthropicMessages
    from .providers.google import GoogleContents
    from .read_only import ReadOnlySession
    from .summarizers import Summarizer


class Session(Record):
    """The ordered log of everything said in a conversation.

        session = Session()
        session.add_message("system", "You are terse.")
        session.add_message("user", "What is in main.py?")

    Items are frozen and their ids unique. Appending is O(1); every other edit takes a new list, so that snapshots
    (`items`, views) stay what they were, and whoever follows the log can tell an edit from growth.

    A session is for one thread at a time; snapshots taken from it may be read by any, while it goes on growing.

    Attributes:
        id: The session's own id.
        metadata: JSON values to carry along, yours to change. What cannot be saved is a FormatError when it is saved, copied or forked.
    """

    __slots__ = ()

    @classmethod
    def empty(cls) -> Session:
        """A session without items."""
        return Session()

    # Edits in place

    def pin(self, id: str) -> Item:
        """The item's pinned twin, which now stands in its place.

        Raises:
            UnknownItemError: No item has this id.
        """
        return self._set_pinned(id, True)

    def unpin(self, id: str) -> Item:
        """The item's unpinned twin, which now stands in its place.

        Raises:
            UnknownItemError: No item has this id.
        """
        return self._set_pinned(id, False)

    def insert(self, item: AnyItem) -> AnyItem:
        """The item, now after the last one that is not younger. A log need not be in order of time: see `merge`.

        Nothing is put into a response: where its place would be there, it comes right after the response.

        Raises:
            DuplicateItemError: Its id is taken.
            FormatError: It is no item.
        """
        self.insert_many([item])  # type: ignore[list-item]  # what is no Item is refused
        return item

    def insert_many(self, items: Iterable[Item]) -> list[Item]:
        """The items, each now where `insert` would have put it, one after the other, the oldest first. All come in, or none.

        Raises:
            DuplicateItemError: An id is taken, or given twice.
            FormatError: Something is no item.
        """
        from .editing import checked_new, inserted

        new = checked_new(self, items)
        if not new:
            return new
        in_order = sorted(new, key=lambda item: item.created_at)
        if not self._length or self._items[self._length - 1].created_at <= in_order[0].created_at:
            for item in in_order:  # the log as it grows: nothing of it need be read
                self.append(item)
        else:
            self._become(inserted(self, in_order))
        return new

    def truncate(self, max_items: int | None = None, max_tokens: int | None = None) -> Session:
        """This session, rewritten: its oldest units are gone until it keeps the limits, or nothing is left that may go.

        A unit is a response's reasoning, its calls and their outputs, or one item: calls and outputs never part. What stays: items of
        category SYSTEM, system and developer messages, handoffs, config updates, summaries, pinned items, the last user message,
        calls that wait for their outputs, and the units those are in. Within the limits nothing changes. To show a model less and
        keep the log, use a manager's `process_session`.

        Args:
            max_items: Items the log may have; None for any number.
            max_tokens: Tokens it may have, as `estimated_tokens` counts them; None for any number.

        Raises:
            FormatError: A limit is no whole number of 0 or more.
        """
        from .editing import truncated

        found = truncated(self, max_items, max_tokens)
        if found is not None:
            self._become(found)
        return self

    async def summarize(self, llm: Summarizer, *, keep_recent_turns: int = 3) -> Session:
        """This session, rewritten: one summary stands for all before the last turns.

        An earlier summary is folded into it. System and developer messages, handoffs, config updates, items of category SYSTEM,
        pinned items, calls that wait for their outputs, and the units those are in stay as they are. What is appended while the
        summary is written stays too. Where there is nothing to sum up, `llm` is not asked.

        The summary is an assistant message with `extra={"summary": True}`; its time is that of the last item it stands for.

        Args:
            llm: Who writes it.
            keep_recent_turns: Turns that stay as they are; with 0 everything is summed up.

        Raises:
            SummaryError: `llm` failed or gave no text, or what was to be summed up is gone by now. The log is as it was.
            FormatError: An argument has the wrong type.
        """
        from .summary import check_summarizer, job, replaced, written

        check_summarizer(llm)
        due = job(self, keep_recent_turns)
        if due is not None:
            text = await written(llm, due.prompt)
            self._become(replaced(self, due, text))
        return self

    def cleanup(self) -> None:
        """Lets go of all items, indexes and metadata. The session is empty then, and may be used again.

        What others hold stays whole: items, snapshots, views, copies, and lists shared with them.
        """
        self._rewrite([])
        self._breaks = frozenset()
        self._origin = None
        self.metadata = {}

    # What is in force

    def active_config_at(self, target: str | int | None = None) -> tuple[str | None, tuple[str, ...] | None]:
        """`(instructions, tools)` that config updates put in force, after the item at a place; None for what none of them set.

        Args:
            target: An item's id, its position (counted from the end if negative), or None for the end of the log.

        Raises:
            UnknownItemError: No item has this id.
            PositionError: No item has this position.
            FormatError: It is neither.
        """
        from .copying import active_config

        return active_config(self, target)

    # Sessions made of it

    def copy(
        self,
        *,
        exclude_system_messages: bool = False,
        exclude_instructions: bool = False,
        exclude_empty_messages: bool = False,
        exclude_handoffs: bool = False,
        exclude_config_updates: bool = False,
        tools: Iterable[str | Callable[..., object]] | None = None,
        filter_agent_id: str | None = None,
    ) -> Session:
        """A new session of the same items, or of some of them. It has an id of its own, and the metadata.

        Args:
            exclude_system_messages: Leave out messages of role system.
            exclude_instructions: Leave out messages of role system and developer.
            exclude_empty_messages: Leave out messages that hold nothing but white space.
            exclude_handoffs: Leave out handoffs.
            exclude_config_updates: Leave out config updates.
            tools: Keep calls of these tools alone, with their outputs: names, or the functions themselves. None keeps all calls, an
                empty list none. Where none of a response's calls stays, its reasoning goes too: providers take it back only with them.
            filter_agent_id: Keep this agent's items alone, beside those of no agent, handoffs and config updates. An output goes with
                its call.

        Raises:
            FormatError: `tools` holds what is neither a name nor a function, or `filter_agent_id` is no text.
        """
        from .copying import Choice, agent_name, tool_names, without
        from .excerpts import read

        choice = Choice(
            system_messages=exclude_system_messages,
            instructions=exclude_instructions,
            empty_messages=exclude_empty_messages,
            handoffs=exclude_handoffs,
            config_updates=exclude_config_updates,
            tools=tool_names(tools),
            agent_id=agent_name(filter_agent_id, "copy.filter_agent_id"),
        )
        log = read(self)
        return self._made(log.excerpt(without(log, lambda place: choice.excludes(log.items[place]))))

    def fork(self) -> Session:
        """A new session of the same items, which goes its own way; `metadata["forked_from"]` is this one's id."""
        from .excerpts import Excerpt

        return self._made(Excerpt(list(self.items), self.response_breaks), forked=True)

    def fork_filtered(self, recent_turns: int = 3, tools: Iterable[str | Callable[..., object]] | None = None) -> Session:
        """A new session for an agent that takes over: instructions, the config in force, handoffs, the summary, the last turns.

        The config is one update behind the leading instructions. `metadata["forked_from"]` is this session's id.

        Args:
            recent_turns: Turns that come along, at least 1.
            tools: As in `copy`.

        Raises:
            FormatError: `recent_turns` is below 1, or `tools` holds what is neither a name nor a function.
        """
        from .branching import filtered

        return self._made(filtered(self, recent_turns, tools), forked=True)

    def fork_brief(
        self, instructions: str, task_brief: str | None = None, agent_id: str | None = None, *, recent_turns: int = 0
    ) -> Session:
        """A new session for an agent with a task of its own: its instructions, the last turns if wanted, and the task.

        Of the last turns neither instructions nor config updates come along, nor calls without an output. The last handoff does, if it
        hands over to this agent. `metadata["forked_from"]` is this session's id.

        Args:
            instructions: What the agent is to be, its system message.
            task_brief: What it is to do, its last user message.
            agent_id: Whose these two messages are.
            recent_turns: Turns that come along.

        Raises:
            FormatError: The instructions say nothing, or `recent_turns` is no whole number of 0 or more.
        """
        from .branching import brief

        return self._made(brief(self, instructions, task_brief, agent_id, recent_turns), forked=True)

    def read_only(self) -> ReadOnlySession:
        """A view that sees this session as it grows and changes, and refuses to change it."""
        from .read_only import ReadOnlySession

        return ReadOnlySession(self)

    # Other sessions brought in

    async def merge(self, other: Session) -> Session:
        """This session, rewritten: the other's items are in it, by time, each once.

        Each log keeps its order, so that a summary stays before what it was put before, however young it is; at equal times this
        session's items come first. Nothing is put into a response, nor between it and its outputs. Where both answer one call, this
        session's answer counts. An item that only has the id of one here, and says something else, comes in under another id. What a
        provider reported of a prompt that was not this session's is left behind.

        Raises:
            FormatError: `other` is no session.
        """
        from .merging import check_other, merged

        check_other(other, "merge.other")
        found = merged(self, other)
        if found is not None:
            self._become(found)
        return self

    async def merge_result(self, other: Session, *, agent_id: str | None = None) -> Session:
        """This session, with the last assistant message of the other appended. The same message again is passed over.

        Where calls of the same agent wait for their outputs, the message comes in at the end of their response: it interrupts none.

        Args:
            other: Whose result it is.
            agent_id: The agent it belongs to here; None leaves the agent it has.

        Raises:
            FormatError: `other` is no session, or its assistant said nothing.
        """
        from .merging import check_other, result_of

        check_other(other, "merge_result.other")
        self._say(result_of(other, agent_id))
        return self

    async def merge_with_summary(self, other: Session, *, llm: Summarizer, agent_id: str | None = None) -> Session:
        """This session, with a summary of the other appended: an assistant message headed `[Sub-agent Summary]`.

        Its time is that of the last item of either log.

        Args:
            other: What is summed up, its instructions left out.
            llm: Who writes the summary.
            agent_id: The agent whose work it sums up.

        Raises:
            SummaryError: `llm` failed or gave no text. The log is as it was.
            FormatError: An argument has the wrong type, or nothing was said in `other`.
        """
        from .copying import agent_name
        from .merging import check_other
        from .summary import SUB_AGENT_HEADER, check_summarizer, headed, prompt_of, written

        check_other(other, "merge_with_summary.other")
        check_summarizer(llm)
        agent_name(agent_id, "merge_with_summary.agent_id")  # before anybody is paid for a summary
        prompt, last = prompt_of(other), other.items[-1].created_at
        text = headed(SUB_AGENT_HEADER, await written(llm, prompt))
        time = max([last, *(item.created_at for item in self.items[-1:])])
        self.append(Message("assistant", text, agent_id=agent_id, created_at=time, extra={"summary": True}))
        return self

    # Saving and sending

    def to_dict(self) -> dict[str, Any]:
        """The whole session as JSON values, the caller's to change; images as base64.

        Raises:
            FormatError: `metadata` or an item's `extra` was given a value that JSON cannot hold.
        """
        from .serial import session_to_dict

        return with_room(lambda: session_to_dict(self))

    @classmethod
    def from_dict(cls, data: object, *, read_files_below: str | os.PathLike[str] | None = None) -> Session:
        """The session that `to_dict` saved. No file that the data names is opened, unless it is in a folder that the caller names.

        Args:
            data: The values.
            read_files_below: A folder. Where an image has no bytes, only a path, and the path lies in this folder, its file is
                read. A relative path is resolved against the folder. A file that is outside, reached by a link, larger than 32 MiB
                or no image is not read: that image stays a path, and is sent as a note.

        Raises:
            FormatError: The data is damaged, of an unknown version, or no session, or there is no such folder; `.where` names the
                place.
        """
        from .serial import session_from_dict

        return with_room(lambda: session_from_dict(data, read_files_below))

    def to_anthropic_messages(self, *, caching: bool = False) -> AnthropicMessages:
        """`(messages, system)` for Anthropic's Messages API. See `session.providers.anthropic`."""
        from .providers.anthropic import to_anthropic

        return to_anthropic(self, caching=caching)

    def to_openai_messages(self, *, reasoning_model: bool = False) -> list[dict[str, Any]]:
        """The messages for OpenAI's Chat Completions API. See `session.providers.openai_chat`.

        Args:
            reasoning_model: Whether system messages go out as developer messages, as reasoning models want them.
        """
        from .providers.openai_chat import to_openai_chat

        return to_openai_chat(self, reasoning_model=reasoning_model)

    def to_openai_responses(self) -> list[dict[str, Any]]:
        """The input items for OpenAI's Responses API. See `session.providers.openai_responses`."""
        from .providers.openai_responses import to_openai_responses

        return to_openai_responses(self)

    async def to_google_contents(self, *, thought_signatures: Mapping[str, str | bytes] | None = None) -> GoogleContents:
        """`(contents, system)` for Google's Gemini API, made in a thread, so that no loop waits. See `session.providers.google`.

        Args:
            thought_signatures: By call id, the signature that a call's metadata does not hold.
        """
        import asyncio

        from .providers.google import to_google

        # The log may grow meanwhile; what is converted is the log as it is now.
        now = Session.showing(self, list(self.items), breaks=self._breaks, settled=self._settled)
        return await asyncio.to_thread(to_google, now, thought_signatures=thought_signatures)

    @classmethod
    def from_anthropic(cls, messages: object, system: object = None) -> Session:
        """The session that these messages of Anthropic's API tell. See `session.providers.anthropic`.

        Raises:
            FormatError: They are none; `.where` names the place.
        """
        from .providers.anthropic import from_anthropic

        return from_anthropic(messages, system)

    @classmethod
    def from_openai(cls, messages: object) -> Session:
        """The session that these messages of OpenAI's Chat Completions API tell. See `session.providers.openai_chat`.

        Raises:
            FormatError: They are none; `.where` names the place.
        """
        from .providers.openai_chat import from_openai_chat

        return from_openai_chat(messages)

    @classmethod
    def from_openai_responses(cls, items: object) -> Session:
        """The session that these items of OpenAI's Responses API tell. See `session.providers.openai_responses`.

        Raises:
            FormatError: They are none; `.where` names the place.
        """
        from .providers.openai_responses import from_openai_responses

        return from_openai_responses(items)

    @classmethod
    def from_google(cls, contents: object, system: object = None) -> Session:
        """The session that these contents of Google's Gemini API tell. See `session.providers.google`.

        Raises:
            FormatError: They are none; `.where` names the place.
        """
        from .providers.google import from_google

        return from_google(contents, system)

    # Inside

    def _made(self, found: Excerpt, *, forked: bool = False) -> Session:
        """A session of its own with these items."""
        made = Session(metadata={**self.metadata, "forked_from": self.id} if forked else self.metadata)
        whole = len(found.items) == len(self.items) and all(map(is_, found.items, self.items))
        made._rewrite(found.items)
        made.restore_seams(found.breaks, *((self.settled, self.settled_tokens) if whole else (reported(found.items), None)))
        return made

    def _become(self, found: Excerpt) -> None:
        """Takes on these items: as growth where they go on from those there are, else as an edit."""
        length = self._length
        if len(found.items) >= length and all(map(is_, self.items, found.items)):
            for item in found.items[length:]:
                self.append(item)
        else:
            there = {item.id for item in found.items}
            shorter = any(item.id not in there for item in self.items)
            self._rewrite(found.items)
            self._settled = max(self._settled, reported(found.items) if shorter else 0)
        self._breaks = found.breaks

    def _say(self, message: Message) -> None:
        """Brings in a message of another log, unless this log holds it: at the end, where it stands apart from an answer before it.

        While calls of the same agent are being run, it is a part of the response that they are in: see `merging.beside_calls`.
        """
        from .merging import beside_calls, id_here
        from .sameness import under
        from .units import is_answer

        item_id = id_here(self, message)
        if self.position(item_id) is not None:
            return
        message = under(message, item_id)
        found = beside_calls(self, message)
        if found is not None:
            self._become(found)
            return
        last = self._items[self._length - 1] if self._length else None
        self.append(message)
        if last is not None and is_answer(last) and last.agent_id == message.agent_id:
            self._breaks |= {message.id}

    def _set_pinned(self, id: str, pinned: bool) -> Item:
        place = self.position(id)
        if place is None:
            raise UnknownItemError(id)
        item = self._items[place]
        if item.pinned == pinned:
            return item
        twin = changed(item, pinned=pinned)
        tokens = self._settled_tokens
        self._rewrite([*self._items[:place], twin, *self._items[place + 1 : self._length]])
        self._settled_tokens = tokens
        return twin
