"""`Repairs`: mends a request that the provider refused for a reason which names its cause, and later ones of its conversation likewise."""

from __future__ import annotations

import hashlib
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import replace
from threading import Lock
from typing import NamedTuple

from session.errors import FormatError

from ..model_errors import ModelError, PartRefusedError
from ..recall import Provider
from ..repair import Cause, cause_of, media_at, mended_structure, older_media, without_media, without_thinking
from .body_json import body_bytes, json_bytes, object_of
from .cache_marks import marked_again, without_marks
from .fitted_body import ManagedRequest
from .glance import answered, is_broken
from .wire_format import Json, tools_and_options

KEPT = 10_000
"""Conversations of which it is known how their requests are mended: the ones that were refused last."""


class Remedy(NamedTuple):
    """How the requests of a conversation are mended.

    Attributes:
        is_restructured: True if calls, results, roles and texts are written anew.
        thoughtless_to: Number of the messages, from the first one, whose signed thoughts are left out.
        media: Hashes of the images and documents that a text stands for.
    """

    is_restructured: bool = False
    thoughtless_to: int = 0
    media: frozenset[bytes] = frozenset()

    def applied(self, provider: Provider, fields: Json, field: str) -> Json:
        """Return the mended body.

        Raises:
            FormatError: A message cannot be read.
        """
        results = answered(provider, fields[field])
        mended = fields if results == fields[field] else {**fields, field: results}
        mended = without_media(provider, mended, self.media) if self.media else mended
        if self.thoughtless_to:
            mended = without_thinking(provider, mended, self.thoughtless_to)
        if self.is_restructured or is_broken(provider, mended[field]):
            mended = mended_structure(provider, mended)
        if mended is not fields and provider == "anthropic":
            own = fields[field]
            mended = {**mended, field: marked_again(own, without_marks(own), without_marks(mended[field]))}
        return mended


class Repairs:
    """What was learned from refusals. It holds hashes and numbers. Thread-safe.

    Attributes:
        made: By cause, the number of refused requests that went through once they were mended.
    """

    def __init__(self) -> None:
        self.made: Counter[Cause] = Counter()
        self._remedies: OrderedDict[bytes, Remedy] = OrderedDict()
        self._lock = Lock()

    def applied(self, managed: ManagedRequest) -> ManagedRequest:
        """Return a request as it is sent: mended like earlier ones of its conversation, and of what is broken at a glance."""
        remedy = None
        if self._remedies:
            with self._lock:
                remedy = self._remedies.get(_key(managed))
        return _mended(managed, remedy or Remedy()) or managed

    def mended(self, managed: ManagedRequest, sent: bytes, error: ModelError) -> tuple[ManagedRequest, Callable[[], None]] | None:
        """Return a refused request mended, and a function to call when it went through; None if nothing can be mended.

        Args:
            managed: The client's request.
            sent: The body that was refused.
            error: The refusal.
        """
        cause, key, provider = cause_of(error), _key(managed), managed.wire.joined_answer.provider
        before = self._remedies.get(key, Remedy())
        match cause:
            case Cause.STRUCTURE:
                remedy = before._replace(is_restructured=True)
            case Cause.THINKING:
                remedy = before._replace(thoughtless_to=len(managed.conversation.messages))
            case Cause.MEDIA:
                place = error.place if isinstance(error, PartRefusedError) else None
                remedy = before._replace(media=before.media | media_at(object_of(sent) or managed.fields, provider, place))
            case Cause.AMOUNT:
                remedy = before._replace(media=before.media | older_media(object_of(sent) or managed.fields, provider))
            case None:
                return None
        mended = None if remedy == before else _mended(managed, remedy)

        def keep() -> None:
            with self._lock:
                self.made[cause] += 1
                self._remedies[key] = remedy
                self._remedies.move_to_end(key)
                if len(self._remedies) > KEPT:
                    self._remedies.popitem(last=False)

        return None if mended is None else (mended, keep)

    def text(self) -> str:
        """Return the repairs in words; empty without any."""
        count = self.made.total()
        causes = ", ".join(cause.value for cause in self.made)
        return f"{count:,} refused request{'' if count == 1 else 's'} mended and sent again ({causes})" if count else ""


def _mended(managed: ManagedRequest, remedy: Remedy) -> ManagedRequest | None:
    """Return a request mended; None if that changes nothing, or a message cannot be read or is nested too deeply to be written."""
    wire, conversation, fields, _ = managed
    try:
        mended = remedy.applied(wire.joined_answer.provider, fields, wire.field)
        if mended == fields:
            return None
        body = body_bytes(mended, wire.field)
    except (FormatError, RecursionError):
        return None
    options = tools_and_options(mended)[1]
    return ManagedRequest(wire, replace(conversation, messages=mended[wire.field], options=options), mended, body)


def _key(managed: ManagedRequest) -> bytes:
    """Return a hash of a conversation's beginning, or of the whole body if that is nested too deeply to be written."""
    try:
        first = json_bytes([managed.wire.name, managed.wire.field, without_marks(managed.conversation.messages[:1])])
    except RecursionError:
        first = managed.body
    return hashlib.sha256(first).digest()
