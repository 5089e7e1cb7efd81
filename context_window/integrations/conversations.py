"""What all adapters share: a framework's messages followed as sessions, and its own messages chosen by what the manager decides.

A message that is kept is the framework's object itself; one that is shown in part is a copy, made once. Which item a message is, and
how a part of it is made, each adapter says in its `Words`.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import accumulate
from operator import is_
from threading import Lock
from typing import Generic, TypeVar

from session.errors import FormatError
from session.items import Item, Message, Reasoning
from session.parts import Document, Image
from session.providers.steps import conversation
from session.session import Session
from session.units import is_answer

from ..config import check_amount
from ..errors import BudgetError, RecallError
from ..manager import ContextWindowManager
from ..model_errors import PromptTooLongError
from ..recall import content_of
from ..refusals import model_error
from ..threads import in_thread
from ..tools import Tool, tool_texts
from .words import START, Copy, Followed, Words, linked, named, new_ids

M = TypeVar("M")

REMEMBERED = 64
"""Conversations that an adapter remembers unless told otherwise, those asked about last."""


class Conversations(Generic[M]):
    """A framework's conversations, each as one session that grows: so a view costs what is new, and prompts stay stable.

    A list of messages that begins as one asked about before goes on from there, also where the framework has kept the trimmed list;
    any other is a new one, and the same list gives the same view in any process. Several threads may ask.
    """

    def __init__(self, manager: ContextWindowManager, words: Words[M], *, remembered: int = REMEMBERED) -> None:
        """
        Args:
            manager: What decides.
            words: The framework's.
            remembered: Conversations to remember.

        Raises:
            BudgetError: The first is no manager, or the last no number of 1 or more.
        """
        if not isinstance(manager, ContextWindowManager):
            raise BudgetError("manager", manager, "pass a ContextWindowManager")
        self._manager = manager
        self._words = words
        self._most = check_amount("remembered", remembered, least=1)
        self._lock = Lock()
        self._known: dict[tuple[bytes, bytes], Followed[M]] = {}
        self._order: OrderedDict[Followed[M], None] = OrderedDict()
        self._tools: list[str] = []

    def fit(self, messages: Sequence[M], *, system: str = "", tools: Iterable[Tool] = (), refusal: Exception | None = None) -> list[M]:
        """The messages to send.

        Args:
            messages: All that were said. Neither the list nor a message is changed.
            system: The system prompt that is sent beside them.
            tools: The definitions that are sent beside them.
            refusal: What the model's client raised for the messages that were given last: they become less.

        Raises:
            ContextOverflowError: What must be kept does not fit, and the window is `strict`.
            Exception: `refusal` itself, where it is not about the prompt's length, or nothing can be taken.
        """
        told = _about_length(refusal)
        followed = self._begin(messages, system, tools)
        try:
            if refusal is not None and told is not None:
                self._give_way(followed, told, refusal)
            return self._end(followed, self._manager.process_session(followed.session))
        finally:
            self._keep(followed)

    async def afit(
        self, messages: Sequence[M], *, system: str = "", tools: Iterable[Tool] = (), refusal: Exception | None = None
    ) -> list[M]:
        """The same, and the event loop goes on meanwhile. Who is cancelled waits until what is being counted is counted.

        Args:
            messages: All that were said. Neither the list nor a message is changed.
            system: The system prompt that is sent beside them.
            tools: The definitions that are sent beside them.
            refusal: What the model's client raised for the messages that were given last: they become less.

        Raises:
            ContextOverflowError: What must be kept does not fit, and the window is `strict`.
            Exception: `refusal` itself, where it is not about the prompt's length, or nothing can be taken.
        """
        told = _about_length(refusal)
        taken: list[Followed[M]] = []
        try:
            await in_thread(lambda: taken.append(self._begin(messages, system, tools)))
            (followed,) = taken
            if refusal is not None and told is not None:
                await in_thread(partial(self._give_way, followed, told, refusal))
            view = await self._manager.aprocess_session(followed.session)
            return await in_thread(lambda: self._end(followed, view))
        finally:
            for followed in taken:  # none where it broke off before
                self._keep(followed)

    def recall(self, id: str) -> str:
        """What was taken out of a conversation, as text: an image or a document is named.

        Args:
            id: The id that a placeholder names.

        Raises:
            RecallError: No conversation that is remembered has it.
        """
        with self._lock:
            sessions = [followed.session for followed in reversed(self._order)]
        for session in sessions:
            try:
                found = self._manager.recall(session, id)
            except RecallError:
                continue
            named = {Image: "[image]", Document: "[document]"}
            return "\n".join(getattr(part, "text", None) or named.get(type(part), "") for part in content_of(found))
        raise RecallError(id, "no conversation that is remembered has it; placeholders name the ids there are")

    # Inside

    def _begin(self, messages: Sequence[M], system: str, tools: Iterable[Tool]) -> Followed[M]:
        """The conversation that these messages are, brought up to date; nobody else has it until `_keep`."""
        self._count(tools)
        digests = [self._words.digest(message) for message in messages]
        chain = list(accumulate(digests, linked, initial=START))
        said_before = hashlib.sha256(system.encode(errors="replace")).digest()
        known, followed = self._found(chain, said_before)
        if followed is None:
            followed = Followed(Session(id=hashlib.sha256(chain[min(1, len(digests))] + said_before).hexdigest()[:12]), said_before)
            if system:
                followed.session.append(Message("system", system, id="system", created_at=0.0))
        try:
            self._go_on(followed, messages, digests, chain, known)
        except BaseException:
            if known:
                self._keep(followed)
            raise
        return followed

    def _count(self, tools: Iterable[Tool]) -> None:
        definitions = tool_texts(tools)
        if definitions and definitions != self._tools:
            self._manager.count_tools(definitions)
            self._tools = definitions

    def _found(self, chain: list[bytes], system: bytes) -> tuple[int, Followed[M] | None]:
        """The conversation that most of the messages are the beginning of, and of how many."""
        with self._lock:
            for place in range(len(chain) - 1, 0, -1):
                followed = self._known.get((system, chain[place]))
                if followed is not None:
                    self._forget(followed)
                    return place, followed
        return 0, None

    def _forget(self, followed: Followed[M]) -> None:
        del self._order[followed]
        for key in followed.keys:
            if self._known.get(key) is followed:
                del self._known[key]

    def _go_on(self, followed: Followed[M], messages: Sequence[M], digests: list[bytes], chain: list[bytes], known: int) -> None:
        """Appends what the conversation does not have yet: nothing where one of the messages cannot be read."""
        said, names = followed.chain, dict(followed.names)
        new: list[list[Item]] = []
        for message, digest in zip(messages[known:], digests[known:], strict=True):
            said = linked(said, digest)
            new.append([named(item, names) for item in self._words.items(message, new_ids(said))])
            if not new[-1]:
                raise FormatError("messages", f"a {type(message).__name__} became no item")
        followed.keys = set()  # nobody goes on with one that an interrupt leaves half appended: it is there to be recalled
        for items in new:
            self._append(followed.session, items)
        if chain[known] == followed.chain:
            followed.messages[:] = messages[:known]  # the same by content: the framework may have read them anew
        followed.messages += messages[known:]
        followed.items += new
        followed.chain, followed.names = said, names
        followed.keys = {(followed.system, chain[-1]), (followed.system, said)}

    def _append(self, session: Session, items: list[Item]) -> None:
        last = session.items[-1] if session.items else None
        apart = last is not None and self._words.answers_whole and is_answer(last) and is_answer(items[0])
        for item in items:
            session.append(item)
        if apart:
            session.restore_seams(session.response_breaks | {items[0].id}, 0)

    def _give_way(self, followed: Followed[M], refusal: PromptTooLongError, error: Exception) -> None:
        if not self._manager.accept_refusal(followed.session, refusal):
            raise error

    def _end(self, followed: Followed[M], view: Session) -> list[M]:
        """The messages that show the view; the conversation is found by them too."""
        whole = view is followed.session
        shown = list(followed.messages) if whole else self._shown(followed, view)
        chain = START
        for message in shown:
            chain = linked(chain, self._words.digest(message))
        followed.keys.add((followed.system, chain))
        return shown

    def _keep(self, followed: Followed[M]) -> None:
        """The conversation is to be found again, whatever came of the call that had it."""
        with self._lock:
            self._order[followed] = None
            for key in followed.keys:
                self._known[key] = followed
            while len(self._order) > self._most:
                self._forget(next(iter(self._order)))

    def _shown(self, followed: Followed[M], view: Session) -> list[M]:
        in_view = {item.id: item for item in view.items}
        shown: list[M] = []
        thoughtless = False  # whether a thought of the answer that is looked at is gone
        answer = -1  # where the last message that is shown is, if the model said it
        for place, items in enumerate(followed.items):
            forms = [in_view.get(item.id) for item in items]
            thoughtless = thoughtless and is_answer(items[0])
            thoughtless |= any(isinstance(item, Reasoning) and form is None for item, form in zip(items, forms, strict=True))
            message: M | None = followed.messages[place]
            whole = all(map(is_, forms, items))
            if not whole or (thoughtless and self._words.unbound(followed.messages[place]) is not message):
                message = self._copy(followed, place, forms, unbound=thoughtless)
            if message is None:
                continue
            if self._words.answers_whole and is_answer(items[0]):
                if 0 <= answer < place - 1:  # what stood between is gone: two answers in a row are refused
                    message = self._joined(followed, place, shown.pop(), message)
                answer = place
            else:
                answer = -1
            shown.append(message)
        if conversation(view).preamble:
            place = next((place for place, message in enumerate(shown) if not self._words.is_system(message)), len(shown))
            shown.insert(place, self._words.preamble())
        return shown

    def _copy(self, followed: Followed[M], place: int, forms: list[Item | None], *, unbound: bool) -> M | None:
        """What shows the message in part; the same object for as long as it shows the same."""
        known = followed.copies.get(place)
        if known is None or known.unbound != unbound or not all(map(is_, forms, known.forms)):
            message = self._made(followed.messages[place], followed.items[place], forms, unbound=unbound)
            known = followed.copies[place] = Copy(forms, unbound, message)
        return known.message

    def _joined(self, followed: Followed[M], place: int, earlier: M, later: M) -> M:
        """Two answers as one; the same object for as long as it is made of the same."""
        known = followed.joined.get(place)
        if known is None or known[0] is not earlier or known[1] is not later:
            known = followed.joined[place] = (earlier, later, self._words.joined(earlier, later))
        return known[2]

    def _made(self, message: M, items: list[Item], forms: list[Item | None], *, unbound: bool) -> M | None:
        made: M | None = message
        if not any(form is not None for form in forms):
            return None
        if not all(map(is_, forms, items)):
            made = self._words.partly(message, items, forms)
        return self._words.unbound(made) if unbound and made is not None else made


def _about_length(error: Exception | None) -> PromptTooLongError | None:
    """What an error says of the prompt's length; raises any that says nothing of it."""
    told = error if error is None or isinstance(error, PromptTooLongError) else model_error(error)
    if error is not None and not isinstance(told, PromptTooLongError):
        raise error
    return told if isinstance(told, PromptTooLongError) else None
