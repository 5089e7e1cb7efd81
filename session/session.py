"""`Session`: the log of a conversation with its edits, copies, merges and conversions. Appending and queries live in `session_log.py`."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace as changed
from operator import is_
from typing import TYPE_CHECKING, Any

from .errors import FormatError, UnknownItemError, short
from .items import FunctionCallOutput, Item, Message
from .session_log import AnyItem, SessionLog, settled_after_removal
from .stack import with_room

if TYPE_CHECKING:
    from .providers.anthropic import AnthropicMessages
    from .providers.google import GoogleContents
    from .read_only import ReadOnlySession
    from .rewrite import Excerpt
    from .summarizers import Summarizer, Summarizing


class Session(SessionLog):
    """The ordered log of a conversation: messages, reasoning, tool calls and their outputs.

        session = Session()
        session.add_message("system", "You are terse.")
        session.add_message("user", "What is in main.py?")

    Items are frozen and their ids unique. Appending is O(1). Every other edit makes a new list, so snapshots (`items`, views) never
    change, and code that tracks the log can tell an edit from growth.

    Use a session in one thread at a time. Snapshots of it can be read in any thread while it grows.

    A manager's `process_session` returns a view of a session: a session too, but read-only. Append to the session, and make a new view
    for each request. Copies and forks of a view are logs of their own, and so is `Session.from_view(view)`.

    Attributes:
        id: The session's own id.
        metadata: JSON values of your own. A value that cannot be saved raises FormatError when the session is saved, copied or forked.
    """

    __slots__ = ()

    @classmethod
    def empty(cls) -> Session:
        """Return a session without items."""
        return Session()

    @classmethod
    def view_of(cls, session: Session, length: int | None = None) -> Session:
        """Return a read-only view of all that the session holds now, in O(1), or of its first `length` items.

        Of a view, it is a view of the same log.

        view = Session.view_of(session)
        session.add_message("user", "more")  # the view does not show it
        """
        return Session.showing(
            session._origin if session._is_view and session._origin is not None else session,
            session._items,
            breaks=session._breaks,
            settled=session._settled,
            settled_tokens=session._settled_tokens,
            ends=session._ends,
            removed=session.removed,
            length=session._length if length is None else length,
            usage_noted_after=session.usage_noted_after,
        )

    @classmethod
    def from_view(cls, view: Session) -> Session:
        """Return a log that goes on from a view: it has the view's items and id, and may be appended to.

            log = Session.from_view(manager.process_session(session))

        It is independent of the session that the view was made from, and never gets back what the view left out, though `recall` returns
        that. To go on with a conversation, append to the session and make another view.

        Raises:
            FormatError: `view` is not a session.
        """
        if not isinstance(view, Session):
            raise FormatError("Session.from_view", f"{short(view)} is not a session; pass a view, as `process_session` returns it")
        log = Session()
        log.__setstate__({**view.__getstate__(), "is_view": False})
        log._origin = view._origin
        return log

    # Answers of a provider

    def add_response(self, response: object, *, agent_id: str | None = None, extra: Mapping[str, Any] | None = None) -> list[Item]:
        """Append a provider's answer and return its items: reasoning with its signatures, texts and calls, with the reported usage.

            session.add_response(client.messages.create(**manager.anthropic_request(session, …)), extra=manager.answer_notes(session))
            session.add_tool_results({call.call_id: run(call) for call in …})

        Args:
            response: A response of Anthropic's Messages, OpenAI's Chat Completions or Responses, or Google's Gemini: an SDK object, its
                JSON values, or a list of all chunks or events of a stream.
            agent_id: The agent that answered.
            extra: JSON values to store with the first item, such as `manager.answer_notes(session)`. The first item also carries the
                usage, and the model's name as `extra["model"]`.

        Raises:
            FormatError: It is no such response; `.where` names the place. Nothing is appended.
        """
        from .providers.response import append_response

        self._check_editable("add_response")
        return append_response(self, response, agent_id, extra)

    def add_tool_results(self, results: object, *, is_error: bool | Collection[str] = False) -> list[FunctionCallOutput]:
        """Append the results of several tool calls and return their outputs.

            session.add_tool_results({"call_1": "42 files", "call_2": {"size": 7}, "call_3": OSError("disk full")})
            session.add_tool_results([{"type": "tool_result", "tool_use_id": "call_4", "content": "ok"}])

        Args:
            results: Results by call id: texts, images, documents, lists of these, exceptions (which count as errors), or any JSON value.
                Or a list of tool results as a provider's request takes them: Anthropic's `tool_result` blocks, `tool` messages of Chat
                Completions, `function_call_output` items of Responses, Gemini's function responses, or messages that hold them.
            is_error: True if all the tools failed, or the ids of the calls that failed.

        Raises:
            FormatError: No call with such an id waits for its output, or a result has none of these forms. Nothing is appended.
            DuplicateItemError: Two results have the same call id. Nothing is appended.
        """
        from .providers.tool_results import append_results

        self._check_editable("add_tool_results")
        return append_results(self, self._calls().unanswered(), results, is_error)

    # Edits in place

    def pin(self, id: str) -> Item:
        """Replace the item by its pinned twin, and return that.

        Raises:
            UnknownItemError: No item has this id.
        """
        return self._set_pinned(id, True)

    def unpin(self, id: str) -> Item:
        """Replace the item by its unpinned twin, and return that.

        Raises:
            UnknownItemError: No item has this id.
        """
        return self._set_pinned(id, False)

    def insert(self, item: AnyItem) -> AnyItem:
        """Insert an item after the last one that is not younger, and return it. A log need not be ordered by time: see `merge`.

        Nothing is inserted into a response: if the position is inside one, the item goes right after the response.

        Raises:
            DuplicateItemError: Its id is in use.
            FormatError: It is not an item.
        """
        self.insert_many([item])  # type: ignore[list-item]  # other types are refused
        return item

    def insert_many(self, items: Iterable[Item]) -> list[Item]:
        """Insert several items as `insert` does, the oldest first, and return them. If one is refused, none is inserted.

        Raises:
            DuplicateItemError: An id is in use, or occurs twice.
            FormatError: A value is not an item.
        """
        from .edits import check_new_items, insert_by_time

        self._check_editable("insert")
        new = check_new_items(self, items)
        if not new:
            return new
        in_order = sorted(new, key=lambda item: item.created_at)
        if not self._length or self._items[self._length - 1].created_at <= in_order[0].created_at:
            for item in in_order:  # the log only grows
                self.append(item)
        else:
            self._set_items(insert_by_time(self, in_order))
        return new

    def truncate(self, max_items: int | None = None, max_tokens: int | None = None) -> Session:
        """Drop the oldest units until the log meets the limits or nothing more may go, and return this session.

        A unit is a response's reasoning, its calls and their outputs, or a single item: a call and its output are never separated.
        These stay: items of category SYSTEM, system and developer messages, handoffs, config updates, summaries, pinned items, the last
        user message, calls that wait for their outputs, and the units of all these. To show a model less but keep the log, use a
        manager's `process_session`.

        Args:
            max_items: Number of items the log may have; None for no limit.
            max_tokens: Tokens it may have, as `estimated_tokens` counts them; None for no limit.

        Raises:
            FormatError: A limit is not a whole number of 0 or more.
        """
        from .edits import truncate_log

        self._check_editable("truncate")
        excerpt = truncate_log(self, max_items, max_tokens)
        if excerpt is not None:
            self._set_items(excerpt)
        return self

    async def summarize(self, llm: Summarizer | Summarizing, *, keep_recent_turns: int = 3) -> Session:
        """Replace everything before the last turns by one summary, and return this session.

        An earlier summary is merged into the new one. These stay: system and developer messages, handoffs, config updates, items of
        category SYSTEM, pinned items, calls that wait for their outputs, the units of all these, and items appended while the summary
        is written. If there is nothing to summarize, `llm` is not called.

        The summary is an assistant message with `extra={"summary": True}`; its time is that of the last item it replaces. If it is blank,
        a UserWarning is issued and the log is unchanged.

        Args:
            llm: The summarizer: an async function from a prompt to a text, or a `context_window.Model`.
            keep_recent_turns: Turns to leave unchanged; 0 summarizes everything.

        Raises:
            SummaryError: `llm` failed or returned something that is not a text, or the items to summarize were removed meanwhile. The log
                is unchanged.
            FormatError: An argument has the wrong type.
        """
        from .summary import EmptySummaryError, check_summarizer, plan_summary, replace_with_summary, request_summary, warn_unchanged

        self._check_editable("summarize")
        summarizer = check_summarizer(llm)
        task = plan_summary(self, keep_recent_turns)
        if task is not None:
            try:
                text = await request_summary(summarizer, task.prompt)
            except EmptySummaryError as error:
                warn_unchanged(f"summarize: {error.problem}")
                return self
            self._set_items(replace_with_summary(self, task, text))
        return self

    def cleanup(self) -> None:
        """Drop all items, indexes and metadata. The session is empty then, and may be used again.

        Items, snapshots, views and copies that others hold stay complete.
        """
        self._check_editable("cleanup")
        self._rewrite([])
        self._breaks = frozenset()
        self._origin = None
        self.metadata = {}

    # Configuration

    def active_config_at(self, target: str | int | None = None) -> tuple[str | None, tuple[str, ...] | None]:
        """Return `(instructions, tools)` in force just after an item; None where nothing sets them.

        The instructions are those that a request sends there, with a blank line between them: system and developer messages and config
        updates alike. A config update with instructions replaces the earlier ones of its agent and of no agent. It replaces all of them
        if it has no agent, or if the last handoff before it is to its agent. Pinned instructions stay. The tools are those of the last
        update that names any.

        Args:
            target: An item's id, its position (negative: from the end), or None for the end of the log. An id that no item has, such as
                one that a trim removed, also means the end.

        Raises:
            PositionError: No item has this position.
            FormatError: `target` is neither of these.
        """
        from .copies import active_config

        return active_config(self, target)

    # Copies and forks

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
        """Return a new session with all or some of the items. It has an id of its own, and the same metadata.

        Args:
            exclude_system_messages: Leave out messages of role system.
            exclude_instructions: Leave out messages of role system and developer.
            exclude_empty_messages: Leave out messages that hold nothing but white space.
            exclude_handoffs: Leave out handoffs.
            exclude_config_updates: Leave out config updates.
            tools: Keep only calls of these tools, with their outputs: names, or the functions themselves. None keeps all calls, an empty
                list none. If all calls of a response go, its reasoning goes too: providers accept reasoning only with its calls.
            filter_agent_id: Keep only items of this agent, handoffs, and config updates and system and developer messages of no agent. An
                output stays if its call does.

        Raises:
            FormatError: `tools` holds a value that is neither a name nor a function, or `filter_agent_id` is not a str.
        """
        from .copies import CopyFilter, clean_agent_id, remaining_positions, tool_names
        from .rewrite import index_log

        copy_filter = CopyFilter(
            system_messages=exclude_system_messages,
            instructions=exclude_instructions,
            empty_messages=exclude_empty_messages,
            handoffs=exclude_handoffs,
            config_updates=exclude_config_updates,
            tools=tool_names(tools),
            agent_id=clean_agent_id(filter_agent_id, "copy.filter_agent_id"),
        )
        log = index_log(self)
        return self._derive(log.excerpt(remaining_positions(log, lambda index: copy_filter.excludes(log.items[index]))))

    def fork(self) -> Session:
        """Return an independent session with the same items; `metadata["forked_from"]` is this session's id."""
        from .rewrite import Excerpt

        return self._derive(Excerpt(list(self.items), self.response_breaks), is_fork=True)

    def fork_filtered(self, recent_turns: int = 3, tools: Iterable[str | Callable[..., object]] | None = None) -> Session:
        """Return a new session for an agent that takes over: instructions, the config in force, handoffs, the summary, the last turns.

        Instructions that a config update replaced are left out. The config comes after the leading instructions: one update, or one for
        each agent that has instructions of its own. `metadata["forked_from"]` is this session's id.

        Args:
            recent_turns: Number of last turns to take along, at least 1.
            tools: As in `copy`.

        Raises:
            FormatError: `recent_turns` is below 1, or `tools` holds a value that is neither a name nor a function.
        """
        from .forks import filtered_fork

        return self._derive(filtered_fork(self, recent_turns, tools), is_fork=True)

    def fork_brief(
        self, instructions: str, task_brief: str | None = None, agent_id: str | None = None, *, recent_turns: int = 0
    ) -> Session:
        """Return a new session for an agent with a task of its own: its instructions, the last turns if requested, and the task.

        The last turns come without instructions, config updates and unanswered calls. The last handoff comes along if it is to this
        agent. `metadata["forked_from"]` is this session's id.

        Args:
            instructions: The agent's instructions: the system message.
            task_brief: The agent's task: the last user message.
            agent_id: The agent these two messages belong to.
            recent_turns: Number of last turns to take along.

        Raises:
            FormatError: The instructions are empty, or `recent_turns` is not a whole number of 0 or more.
        """
        from .forks import brief_fork

        return self._derive(brief_fork(self, instructions, task_brief, agent_id, recent_turns), is_fork=True)

    def read_only(self) -> ReadOnlySession:
        """Return a live view of this session that refuses every change."""
        from .read_only import ReadOnlySession

        return ReadOnlySession(self)

    # Merging

    async def merge(self, other: Session) -> Session:
        """Insert the other session's items by time, each once, and return this session.

        - Each log keeps its order, so a summary stays before the items it was put before, although it is younger. At equal times this
          session's items come first.
        - Nothing is inserted into a response, nor between a response and its outputs.
        - If both have an output for one call, this session's counts.
        - An item that shares its id with a different item here gets a new id.
        - Reported usage of a prompt that was not this session's is removed.

        Raises:
            FormatError: `other` is not a session.
        """
        from .merge import check_session, merge_logs

        self._check_editable("merge")
        check_session(other, "merge.other")
        excerpt = merge_logs(self, other)
        if excerpt is not None:
            self._set_items(excerpt)
        return self

    async def merge_result(self, other: Session, *, agent_id: str | None = None) -> Session:
        """Append the last assistant message of the other session, and return this session. A message that is already here is ignored.

        If the other session has no assistant message with content, a UserWarning is issued and this log is unchanged. While calls of the
        same agent wait for their outputs, the message goes to the end of their response and interrupts none of them.

        Args:
            other: The session with the result.
            agent_id: The agent it belongs to here; None keeps its agent.

        Raises:
            FormatError: `other` is not a session.
        """
        from .merge import check_session, final_message
        from .summary import warn_unchanged

        self._check_editable("merge_result")
        check_session(other, "merge_result.other")
        message = final_message(other, agent_id)
        if message is None:
            warn_unchanged("merge_result: the other session has no assistant message with content")
        else:
            self._add_foreign_message(message)
        return self

    async def merge_with_summary(self, other: Session, *, llm: Summarizer | Summarizing, agent_id: str | None = None) -> Session:
        """Append a summary of the other session, and return this session. It is an assistant message headed `[Sub-agent Summary]`.

        Its time is that of the last item of either log. If the summary is blank, or the other session has nothing to summarize, a
        UserWarning is issued and this log is unchanged.

        Args:
            other: The session to summarize, without its instructions.
            llm: The summarizer: an async function from a prompt to a text, or a `context_window.Model`.
            agent_id: The agent whose work it summarizes.

        Raises:
            SummaryError: `llm` failed or returned something that is not a text. The log is unchanged.
            FormatError: An argument has the wrong type.
        """
        from .copies import clean_agent_id
        from .merge import check_session
        from .summary import (
            SUB_AGENT_HEADER,
            EmptySummaryError,
            check_summarizer,
            request_summary,
            sub_agent_prompt,
            warn_unchanged,
            with_header,
        )

        self._check_editable("merge_with_summary")
        check_session(other, "merge_with_summary.other")
        summarizer = check_summarizer(llm)
        clean_agent_id(agent_id, "merge_with_summary.agent_id")  # before a summary is paid for
        prompt = sub_agent_prompt(other)
        if prompt is None:
            warn_unchanged("merge_with_summary: the other session has nothing to summarize")
            return self
        last = other.items[-1].created_at
        try:
            text = with_header(SUB_AGENT_HEADER, await request_summary(summarizer, prompt))
        except EmptySummaryError as error:
            warn_unchanged(f"merge_with_summary: {error.problem}")
            return self
        time = max([last, *(item.created_at for item in self.items[-1:])])
        self.append(Message("assistant", text, agent_id=agent_id, created_at=time, extra={"summary": True}))
        return self

    # Saving and converting

    def to_dict(self) -> dict[str, Any]:
        """Return the whole session as JSON values that you may change; images are base64.

        Raises:
            FormatError: `metadata` or an item's `extra` holds a value that JSON cannot.
        """
        from .serial import session_to_dict

        return with_room(lambda: session_to_dict(self))

    @classmethod
    def from_dict(cls, data: object, *, read_files_below: str | os.PathLike[str] | None = None) -> Session:
        """Return the session that `to_dict` saved. Opens no file that the data names, except below a folder that you pass.

        Also reads `{"items": […]}`, which VideoSDK's `ChatContext.to_dict` returns. The session then gets a new id.

        Args:
            data: The values.
            read_files_below: A folder. If an image has only a path, and the path is in this folder, its file is read. A relative path is
                resolved against the folder. A file outside of it, reached by a link, larger than 32 MiB or without the header of an
                image is not read: that image keeps only its path, and is sent as a note.

        Raises:
            FormatError: The data is damaged, of an unknown version, or not a session, or the folder does not exist; `.where` names the
                place.
        """
        from .serial import session_from_dict

        return with_room(lambda: session_from_dict(Session, data, read_files_below))

    def to_anthropic_messages(self, *, caching: bool = False) -> AnthropicMessages:
        """Return `(messages, system)` for Anthropic's Messages API. See `session.providers.anthropic`."""
        from .providers.anthropic.write import to_anthropic

        return to_anthropic(self, caching=caching)

    def to_openai_messages(self, *, reasoning_model: bool = False) -> list[Any]:
        """Return the messages for OpenAI's Chat Completions API. See `session.providers.openai_chat`.

        Args:
            reasoning_model: True to send system messages as developer messages, as reasoning models expect.
        """
        from .providers.openai_chat import to_openai_chat

        return to_openai_chat(self, reasoning_model=reasoning_model)

    def to_openai_responses(self) -> list[Any]:
        """Return the input items for OpenAI's Responses API. See `session.providers.openai_responses`."""
        from .providers.openai_responses import to_openai_responses

        return to_openai_responses(self)

    async def to_google_contents(self, *, thought_signatures: Mapping[str, str | bytes] | None = None) -> GoogleContents:
        """Return `(contents, system)` for Google's Gemini API, made in a thread. See `session.providers.google`.

        Args:
            thought_signatures: By call id, signatures that are not in the calls' metadata.
        """
        import asyncio

        from .providers.google import to_google

        # The log may grow meanwhile.
        return await asyncio.to_thread(to_google, Session.view_of(self), thought_signatures=thought_signatures)

    @classmethod
    def from_anthropic(cls, messages: object, system: object = None) -> Session:
        """Return the session that these messages of Anthropic's API describe. See `session.providers.anthropic`.

        Raises:
            FormatError: They are not such messages; `.where` names the place. Those of another provider are refused.
        """
        from .providers.anthropic import from_anthropic

        return from_anthropic(messages, system)

    @classmethod
    def from_converse(cls, messages: object, system: object = None) -> Session:
        """Return the session that these messages of Amazon Bedrock's Converse API describe. See `session.providers.bedrock_converse`.

        Raises:
            FormatError: They are not such messages; `.where` names the place.
        """
        from .providers.bedrock_converse import from_converse

        return from_converse(messages, system)

    @classmethod
    def from_openai(cls, messages: object) -> Session:
        """Return the session that these messages of OpenAI's Chat Completions API describe. See `session.providers.openai_chat`.

        Raises:
            FormatError: They are not such messages; `.where` names the place.
        """
        from .providers.openai_chat import from_openai_chat

        return from_openai_chat(messages)

    @classmethod
    def from_openai_responses(cls, items: object) -> Session:
        """Return the session that these items of OpenAI's Responses API describe. See `session.providers.openai_responses`.

        Raises:
            FormatError: They are not such items; `.where` names the place.
        """
        from .providers.openai_responses import from_openai_responses

        return from_openai_responses(items)

    @classmethod
    def from_google(cls, contents: object, system: object = None) -> Session:
        """Return the session that these contents of Google's Gemini API describe. See `session.providers.google`.

        Raises:
            FormatError: They are not such contents; `.where` names the place.
        """
        from .providers.google import from_google

        return from_google(contents, system)

    # Inside

    def _derive(self, excerpt: Excerpt, *, is_fork: bool = False) -> Session:
        """Return a new session with these items."""
        derived = Session(metadata={**self.metadata, "forked_from": self.id} if is_fork else self.metadata)
        is_complete = len(excerpt.items) == len(self.items) and all(map(is_, excerpt.items, self.items))
        derived._rewrite(excerpt.items)
        settled = (self._settled, self._settled_tokens) if is_complete else (settled_after_removal(excerpt.items), None)
        derived.restore_seams(excerpt.breaks, *settled, self._ends)
        return derived

    def _set_items(self, excerpt: Excerpt) -> None:
        """Change to these items: by appending if the log only grows, else as an edit."""
        length = self._length
        if len(excerpt.items) >= length and all(map(is_, self.items, excerpt.items)):
            for item in excerpt.items[length:]:
                self.append(item)
        else:
            ids = {item.id for item in excerpt.items}
            is_shorter = any(item.id not in ids for item in self.items)
            self._rewrite(excerpt.items)
            self._settled = max(self._settled, settled_after_removal(excerpt.items) if is_shorter else 0)
        self._breaks = excerpt.breaks

    def _add_foreign_message(self, message: Message) -> None:
        """Append a message of another log as a response of its own, unless this log already has it.

        While calls of the same agent wait for their outputs, it becomes part of their response: see `merge.insert_while_calls_run`.
        """
        from .identity import with_id
        from .merge import insert_while_calls_run, local_id
        from .units import is_answer

        item_id = local_id(self, message)
        if self.position(item_id) is not None:
            return
        message = with_id(message, item_id)
        excerpt = insert_while_calls_run(self, message)
        if excerpt is not None:
            self._set_items(excerpt)
            return
        last = self._items[self._length - 1] if self._length else None
        self.append(message)
        if last is not None and is_answer(last) and last.agent_id == message.agent_id:
            self._breaks |= {message.id}

    def _set_pinned(self, id: str, pinned: bool) -> Item:
        self._check_editable("pin" if pinned else "unpin")
        index = self.position(id)
        if index is None:
            raise UnknownItemError(id)
        item = self._items[index]
        if item.pinned == pinned:
            return item
        twin = changed(item, pinned=pinned)
        tokens = self._settled_tokens
        self._rewrite([*self._items[:index], twin, *self._items[index + 1 : self._length]])
        self._settled_tokens = tokens
        return twin
