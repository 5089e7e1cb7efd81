"""Rule: after a trim, one note at the end of the request restates the state of the work (`working_state.py`), as far as the view lacks it.

It has the form of a digest: sections with headings that end in recall ids. It stays in its place until the next trim, which writes another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256

from session.identity import digest_record
from session.items import Item, Message
from session.parts import Text
from session.printable import short_name
from session.removed import short_id

from .edits import Edit
from .extracts import excerpt, texts_of
from .line_choice import read_terms, shown_lines
from .placeholders import DIGEST, GONE, MARK, SHOWN, WAS
from .plan import Note
from .terms import without_number
from .tool_rules import subject_of
from .view import Rule, View
from .working_state import Section, files_under_edit, last_failure, plan_of_work

HEAD = "[the state of the work, from earlier items; the recall id of each ends its heading]"
"""The first text of the note."""
PART = 0.15
"""Part of the window that the note may have."""
AUTO_PART = 4
"""The note may have this part of the tokens that a trim keeps, if the window is chosen automatically."""
FULL = 0.9
"""Part of the window that is in use at most after a note was added, so that it does not bring the next trim nearer."""
GONE_PART = 0.1
"""Part of the note's room for what was taken out whole."""
PLAN_PART, FAILURE_PART, FILE_PART = 0.8, 0.5, 0.6
"""Parts of the note's room: for the plan, for the failure, and of what is left then for each file but the last."""


class StateNote(Rule):
    """The note. Strategies ask for it (`restates_work`)."""

    def decide(self, view: View) -> View:
        """Return the view without the note if more must be taken than strategies have: it would cost other items their room."""
        return without_note(view) if view.state_note is not None and view.total > view.limits.trigger else view

    def settle(self, view: View, before: View) -> View:
        """Return the view with a note at its end in place of an earlier one, if something was taken that the model has read.

        Otherwise the note stays where it is: what only changes in outputs that the model has not read leaves the provider's cache alone.
        """
        if _read_edits(view) == _read_edits(before):
            return view
        view = without_note(view)
        is_request = view.log.groups.is_followed and view.speaks_before(len(view))
        if not (view.limits.restates_work and is_request):
            return view

        def tokens(item: Item) -> int:
            return view.log.measures.measure(item).tokens

        window = view.limits.trigger
        most = int(PART * window) if view.limits.auto is None else view.limits.auto.kept // AUTO_PART
        room = min(most, int(FULL * window) - view.total)
        message = note_of(view.log.items, set(_lines_in_view(view)), _gone(view), room, tokens) if room > 0 else None
        if message is None:
            return view
        draft = view.draft()
        draft.state_note = Note(len(view), message, tokens(message))
        draft.note_change(len(view))
        return draft if draft.total <= FULL * window else view

    def cost(self, view: View) -> int:
        """Return the tokens of the note."""
        return 0 if view.state_note is None else view.state_note.tokens

    def additions(self, view: View) -> Iterable[tuple[int, int, Item]]:
        """Yield the note."""
        if view.state_note is not None:
            yield view.state_note.before, len(view.log), view.state_note.message


def _read_edits(view: View) -> dict[int, Edit]:
    """Return what became of the items that the model has read."""
    return {at: edit for at, edit in view.edits.items() if at < view.log.groups.frontier}


def without_note(view: View) -> View:
    """Return the view without the note."""
    if view.state_note is None:
        return view
    draft = view.draft()
    draft.note_change(view.state_note.before - 1)
    draft.state_note = None
    return draft


def note_of(items: Sequence[Item], shown: set[str], gone: Sequence[str], room: int, tokens: Callable[[Item], int]) -> Message | None:
    """Return the note, of at most `room` tokens, that a view lacks; None if it shows all of the state, or there is no room.

    `shown` has the lines in the view, without numbers of lines; those of the note are added. `gone` has what the view does not show at all,
    a line each, the most important first.
    """

    def cost(text: str) -> int:
        return tokens(Message("user", (Text(text),)))

    left = room - cost(HEAD)
    sections: list[tuple[Section, str]] = []

    def add(section: Section | None, part: float) -> None:
        nonlocal left
        if section is None:
            return
        own = int(part * left)
        chosen: list[int] = []
        for group in section.groups:
            lines = [section.lines[number] for number in group]
            if all(without_number(line) in shown for line in lines):
                continue
            tokens_of_group = cost("\n".join(lines)) + (0 if chosen else cost(_heading(section)))
            if tokens_of_group <= own:
                own, left = own - tokens_of_group, left - tokens_of_group
                chosen += group
                shown.update(map(without_number, lines))
        if chosen:
            sections.append((section, _text(section, sorted(chosen))))

    if left <= 0:
        return None
    add(plan_of_work(items), PLAN_PART)
    add(last_failure(items), FAILURE_PART)
    files = files_under_edit(items)
    for number, file in enumerate(files):
        add(file, FILE_PART if number < len(files) - 1 else 1)
    room_for_gone, lines = min(left, int(GONE_PART * room)) - cost(GONE), []
    for line in gone:
        room_for_gone -= cost(f"\n{line}")
        if room_for_gone < 0:
            break
        lines.append(line)
    if not (sections or lines):
        return None
    last = items[-1]
    return Message(
        "user",
        (Text(HEAD), *(Text(text) for _, text in sections), *([Text("\n".join((GONE, *lines)))] if lines else ())),
        id=f"state-{sha256(last.id.encode()).hexdigest()[:12]}",
        created_at=last.created_at,
        extra={MARK: DIGEST, WAS: digest_record([section.source for section, _ in sections])},
    )


def _lines_in_view(view: View) -> Iterator[str]:
    """Yield the lines that a view shows, without numbers of lines."""
    visible = view.visible()
    read_terms(view, visible)
    for at in visible:
        texts, lines = texts_of(view.log.items[at]), view.log.terms[at].lines
        for number in shown_lines(view, at):
            text, start, end = lines[number]
            yield without_number(texts[text][start:end])


def _gone(view: View) -> list[str]:
    """Return what the outputs that a view does not show were about, with their ids: the newest of each subject, the newest first."""
    ids: dict[str, str] = {}
    for at, call in sorted(view.log.calls.items(), reverse=True):
        subject = None if view.shown[at] or view.log.summarised[at] else subject_of(call)
        if subject is not None:
            ids.setdefault(short_name(f"{call.name} {subject}", SHOWN), view.log.items[at].id)
    return [f"{subject} {short_id(id)}" for subject, id in ids.items()]


def _heading(section: Section) -> str:
    return f"## {section.title} {short_id(section.source.id)}"


def _text(section: Section, numbers: list[int]) -> str:
    """Return a section with these lines, and a gap wherever others are missing."""
    lines = [(number, 0, len(line)) for number, line in enumerate(section.lines)]
    return f"{_heading(section)}\n{excerpt(section.lines, lines, numbers, range(len(lines)))}"
