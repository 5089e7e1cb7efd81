"""OpenHands' logs: histories of events, as lists, in documents and one a line, and the newer kind of its agent SDK.

What an event of each kind says is in `openhands_events.py` and `openhands_sdk.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

from . import openhands_sdk
from .account import TranscriptAccount
from .draft import Draft, finish
from .feeding import feed, feed_entries
from .openhands_events import Events, is_event
from .reading import Line
from .shape import document_or_lines
from .source import Source
from .usages import usage_of
from .values import JsonObject, carried, id_at, list_at, object_at, text_at

NAME = "openhands"

DETAILS = 2_000
"""Characters of JSON that one field beside a history may have to be carried in the metadata."""
SAID = ("history", "metrics", "instruction", "git_patch", "error", "test_result")
"""Fields beside a history that are no description of the run."""


def claims(value: object) -> bool:
    """Whether the value is a history of events, a record with one, or one event."""
    if isinstance(value, dict):
        return is_event(value) or openhands_sdk.is_event(value) or _is_history(value.get("history"))
    return _is_history(value)


def _is_history(value: object) -> bool:
    """Whether the value is a list of events; older logs pair an action with what came of it."""
    if not isinstance(value, list):
        return False
    first = next((one for one in _flat(value[:2]) if isinstance(one, dict)), None)
    return first is not None and (is_event(first) or openhands_sdk.is_event(first))


def _flat(history: list[object]) -> Iterator[object]:
    for entry in history:
        yield from entry if isinstance(entry, list) else [entry]


def read(source: Source, *, sidechains: bool) -> TranscriptAccount:  # noqa: ARG001 - sub-agents speak in the same history
    """The sessions in the file: one, or one for each line that is a record with a history of its own.

    Raises:
        TranscriptError: Nobody says anything in it.
    """
    document, lines = document_or_lines(source)
    if isinstance(document, list):
        draft = Draft(NAME, source, source.path.stem)
        _entries(draft, document)
        return finish(NAME, source, [draft])
    if isinstance(document, dict) and _is_history(document.get("history")):
        draft = _record_draft(source, document, source.path.stem)
        _entries(draft, list_at(document, "history"))
        _metrics(draft, document)
        return finish(NAME, source, [draft])
    return finish(NAME, source, _of_lines(source, lines))


def _entries(draft: Draft, history: list[object]) -> None:
    feed_entries(_flat(history), draft, _taker(draft, next(iter(_flat(history)), None)))


def _taker(draft: Draft, first: object) -> openhands_sdk.Take:
    sdk = isinstance(first, dict) and openhands_sdk.is_event(first)
    return openhands_sdk.Events(draft).take if sdk else Events(draft).take


def _of_lines(source: Source, lines: Iterator[Line]) -> list[Draft]:
    """One draft for the lines that are events, and one for each that is a record with a history."""
    loose = Draft(NAME, source, source.path.stem)
    takers: list[openhands_sdk.Take] = []
    drafts = [loose]
    for line in lines:
        record = None
        for value in line.values:
            if isinstance(value, dict) and _is_history(value.get("history")):
                draft = _record_draft(source, value, f"{source.path.stem}:{line.number}")
                own = draft.record(line.number)
                history = list(_flat(list_at(value, "history")))
                take = _taker(draft, history[0])
                for event in history:
                    feed(draft, own, event, take)
                _metrics(draft, value)
                drafts.append(draft)
                continue
            record = record or loose.record(line.number)
            takers = takers or [_taker(loose, value)]
            feed(loose, record, value, takers[0])
        if line.problem:
            loose.damage(record or loose.record(line.number), line.problem)
        elif not line.values:
            loose.record(line.number).skip("a blank line")
    return drafts


def _record_draft(source: Source, whole: JsonObject, otherwise: str) -> Draft:
    kept = {name: found for name, value in whole.items() if name not in SAID and value and (found := carried(value, DETAILS)) is not None}
    model = text_at(object_at(object_at(whole, "metadata"), "llm_config"), "model")
    instance = id_at(whole, "instance_id")
    metadata = {
        **({"session_id": instance} if instance else {}),
        **({"model": model} if model else {}),
        **({"record": kept} if kept else {}),
    }
    return Draft(NAME, source, otherwise, metadata)


def _metrics(draft: Draft, whole: JsonObject) -> None:
    """What was reported for each response, where the record has it in a list of its own."""
    for reported in list_at(object_at(whole, "metrics"), "token_usages"):
        if isinstance(reported, dict) and (response := text_at(reported, "response_id")):
            draft.report(response, usage_of(reported))
