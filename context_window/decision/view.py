"""`View`: a log so far, what became of its items, and what that costs. Decides nothing; the rules do (`decide.py`).

A view changes in two ways. The log grows (`append`): this is the fast path, which adds to sums and applies what the new item implies, such
as a unit that comes back. Or a rule edits a `draft`, which is a copy. Whoever does not want the draft keeps the view.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from itertools import compress
from typing import Protocol

from session.items import Item
from session.units import HELD, KIND_CALL, KIND_NOTICE, KIND_ORPHAN, KIND_REASONING, KIND_SILENT, KIND_USER, NONE, PRIORITY, prompt_text

from .edits import NOT_TOLD, Edit
from .limits import Limits
from .log import Log, NewItem
from .plan import Action, Cut, Note, Reason


class Totals(Protocol):
    """The door to whatever knows more about a request's cost than the local count: `context_window/calibration/`."""

    def correction(self, view: View, newer: int, removed: int) -> int:
        """Return the tokens that a request costs beyond its local count.

        `newer` are local tokens of the request's items from the mark on (`View.mark`), `removed` those taken from the items before the mark
        since it was set; negative if some came back.
        """

    def untrimmed_correction(self, view: View, costs: Sequence[int]) -> int:
        """Return the same for a request from which nothing was taken.

        Args:
            view: The view.
            costs: By position in the log, the local tokens of each item of that request; -1 if the item is not in it.
        """


class View:
    """The view of a log so far. Amounts are tokens.

    Attributes:
        log: The log. Its drafts share it.
        limits: The limits of the view.
        rules: The rules that add texts: their costs are part of the total.
        edits: What became of items, by position. The others are as in the log.
        tokens: By rank, the tokens in the view.
        items: By rank, the number of items in the view.
        images: Number of images in the view.
        unanswered: Number of calls in the view without an output.
        removed: Number of items that the line about removed items counts.
        replaced: Number of items that are not in the view and that a summary stands for.
        replaced_tokens: Their tokens in the log.
        digests: Number of items in each digest, by the position before which it stands.
        usage_noted: The line about usage stands before the first response from this position on, or at the end; -1 if there is none.
        state_note: The note that restates the state of the work; None without one.
        changes: How many edits changed an earlier part of the request.
        mark: A position. `newer` sums the items from it on.
        newer: Tokens of the view's items from the mark on.
        tokens_at_mark: Tokens of the items before the mark when it was set.
    """

    def __init__(self, log: Log, limits: Limits, totals: Totals | None = None, rules: Sequence[Rule] = ()) -> None:
        self.log = log
        self.limits = limits
        self.totals = totals
        self.rules = rules
        self.edits: dict[int, Edit] = {}
        self.tokens = [0] * len(PRIORITY)
        self.items = [0] * len(PRIORITY)
        self.images = self.unanswered = self.removed = self.replaced = self.replaced_tokens = self.changes = 0
        self.digests: dict[int, int] = {}
        self.usage_noted = NONE
        self.state_note: Note | None = None
        self.mark = self.newer = self.tokens_at_mark = 0
        self.costs = array("q")  # by position: tokens in the view, 0 if it is not there
        self.shown = bytearray()  # by position: 1 if the item is in the view
        self._first = 0  # nothing before this position becomes a message
        self._first_message = 0  # nothing before this number of the user's messages is in the view

    def __len__(self) -> int:
        return len(self.costs)

    def draft(self) -> View:
        """Return a copy to edit."""
        draft = copy(self)
        draft.edits, draft.digests = self.edits.copy(), self.digests.copy()
        draft.tokens, draft.items = self.tokens[:], self.items[:]
        draft.costs, draft.shown = self.costs[:], self.shown[:]
        return draft

    # The fast path

    def append(self, new: NewItem, *, starts: bool) -> None:
        """Take the next item of the log; `starts` is true if it begins a response."""
        log, groups, position = self.log, self.log.groups, len(self)
        arrival = log.append(new, starts=starts)
        self.costs.append(0)
        self.shown.append(1)
        for at, old_rank in arrival.reranked:
            if self.shown[at]:
                for sums, amount in ((self.tokens, self.costs[at]), (self.items, 1)):
                    sums[old_rank] -= amount
                    sums[groups.rank[at]] += amount
        if groups.kind[position] == KIND_ORPHAN:
            self.edits[position], self.shown[position] = Edit(new.measured.tokens, Reason.ORPHAN), 0
        self._count(position, 1)
        if groups.kind[position] == KIND_ORPHAN:
            return
        for at in arrival.summarised:
            if not self.shown[at]:
                self.replaced += 1
                self.replaced_tokens += log.tokens[at]
        for at, tokens in arrival.freed:
            edit = self.edits.get(at)
            if edit is not None and edit.lines is None:
                self.edits[at] = edit._replace(tokens=edit.tokens - tokens)
            if self.shown[at] and (edit is None or edit.lines is None):
                self._pay(at, -tokens)
            elif log.summarised[at]:
                self.replaced_tokens -= tokens
        self.changes += bool(arrival.freed)
        if (call := arrival.answered) != NONE:
            if self.shown[call]:
                self.unanswered -= 1
            else:
                self._bring_back(groups.head[call])
            if groups.response[call] != groups.response_starts[-1]:  # it takes the place of a synthetic answer
                self.note_change(log.request_index(call))
        elif groups.kind[position] == KIND_SILENT and prompt_text(new.item) is not None:
            self.note_change(NONE)  # the system prompt stands before everything
        elif position in log.moved:
            self.note_change(log.request_index(position))
        for at in arrival.replaced_prompts:
            if self.shown[at]:
                self._set(at, Edit(log.tokens[at], Reason.REPLACED_PROMPT))

    def set_mark(self, position: int) -> None:
        """Sum the items from this position on apart from those before it."""
        self.mark = position
        self.newer = sum(self.costs[position:])
        self.tokens_at_mark = sum(self.tokens) - self.newer

    def _bring_back(self, head: int) -> None:
        """Show a unit again that has left for a summary: that one does not know of the output which has come since."""
        for at in self.log.groups.members(head):
            edit = self.edits.get(at)
            if edit is not None and edit.gone is Reason.COMPACTED:
                is_bound = self.limits.binds_thinking and self.log.groups.kind[at] == KIND_REASONING
                self._set(at, edit._replace(gone=Reason.BOUND_REASONING if is_bound else None))
        self._first = min(self._first, head)
        self.note_change(head)

    # Costs

    @property
    def overhead(self) -> int:
        """Tokens of the request besides its items, by the local count: what it always has, and what rules add."""
        return self.limits.overhead + sum([rule.cost(self) for rule in self.rules])

    @property
    def counted(self) -> int:
        """Tokens of the request by the local count."""
        return self.overhead + sum(self.tokens)

    @property
    def total(self) -> int:
        """Tokens of the request: the local count and its correction."""
        return self.total_with(self.newer, self.taken)

    def total_with(self, newer: int, taken: int) -> int:
        """Return the total if the items from the mark on cost `newer`, and `taken` were taken from those before it."""
        return max(0, self.overhead + newer + self.tokens_at_mark - taken + self.correction_with(newer, taken))

    def correction_with(self, newer: int, taken: int) -> int:
        """Return the tokens that such a request costs beyond its local count."""
        return 0 if self.totals is None else self.totals.correction(self, newer, taken)

    @property
    def correction(self) -> int:
        """Tokens that the request costs beyond the local count; 0 if nothing but the local count is known."""
        return self.total - self.counted

    @property
    def taken(self) -> int:
        """Tokens taken from the items before the mark since it was set; negative if some came back."""
        return self.tokens_at_mark - sum(self.tokens) + self.newer

    def total_of(self, indices: Iterable[int]) -> int:
        """Return the total of a request with only these items of the view, and the overhead of this one."""
        indices = list(indices)
        newer = sum(self.costs[at] for at in indices if at >= self.mark)
        return self.total_with(newer, self.tokens_at_mark - sum(map(self.costs.__getitem__, indices)) + newer)

    # Contents

    def visible(self, indices: Iterable[int] | None = None) -> list[int]:
        """Return the positions in the view, or those of the given ones that are."""
        if indices is None:
            return list(compress(range(len(self)), self.shown))
        return [at for at in indices if self.shown[at]]

    def members(self, head: int) -> list[int]:
        """Return the items of the unit that are in the view."""
        return self.visible(self.log.groups.members(head))

    def edit(self, index: int) -> Edit:
        """Return what became of an item."""
        return self.edits.get(index) or Edit(self.log.tokens[index])

    def is_shortened(self, index: int) -> bool:
        """True if a placeholder or lines stand for the item's content."""
        return index in self.edits and self.edits[index].is_shortened

    def visible_images(self, index: int) -> list[tuple[int, int]]:
        """Return the images of the item that are in the view: the part of each, and the tokens that a placeholder would save."""
        if index not in self.log.images or not self.shown[index] or self.is_shortened(index):
            return []
        return [image for image in self.log.images[index] if image[0] not in self.edit(index).images]

    def saved_by_images(self, index: int) -> int:
        """Return the tokens that the placeholders of the item's images save."""
        replaced = self.edit(index).images
        return sum(saved for part, saved in self.log.images.get(index, ()) if part in replaced)

    def digest_items(self, before: int) -> list[int]:
        """Return the items of the digest that stands before this position, in order."""
        return sorted(at for at, edit in self.edits.items() if edit.before == before and edit.gone is None)

    @property
    def has_note(self) -> bool:
        """True if the request begins with a line about removed items."""
        return self.log.had_note or (self.limits.note_removed and self.removed > 0)

    @property
    def first_summary(self) -> tuple[int, int] | None:
        """The first summary of the view that is not where the log has it: the position before which it is shown, and its own."""
        return min(((before, at) for at, before in self.log.moved.items() if self.shown[at]), default=None)

    def first_spoken(self) -> int:
        """Return the position of the view's first item that becomes a message, without those that are shown elsewhere."""
        kind, first = self.log.groups.kind, self._first
        while first < len(self) and (
            not self.shown[first]
            or kind[first] == KIND_SILENT
            or first in self.log.moved
            or (first in self.edits and self.edits[first].before != NONE)
        ):
            first += 1
        self._first = first
        return first

    def begins_with_user(self) -> bool:
        """True if the request has no message, or its first one is in the user's voice."""
        first, kind, summary = self.first_spoken(), self.log.groups.kind, self.first_summary
        digest = min(self.digests, default=None)
        if digest is not None and digest <= first and (summary is None or (digest, self.digest_items(digest)[0]) < summary):
            return True
        if summary is not None and summary[0] <= first:
            return False
        return first >= len(self) or kind[first] in (KIND_USER, KIND_NOTICE)

    def speaks_before(self, index: int) -> bool:
        """True if an item of the view that becomes a message stands before this position."""
        summary = self.first_summary
        return (summary is not None and summary[0] < index) or min(self.digests, default=index) < index or self.first_spoken() < index

    @property
    def first_message(self) -> int:
        """The position of the first user message in the view if it is kept, -1 otherwise. Those of category CONTEXT do not count.

        It is kept if the settings say so, and beside a summary, which does not have it.
        """
        if not (self.limits.keep_first_message or self.log.replaced):
            return NONE
        messages = self.log.groups.user_messages
        while self._first_message < len(messages) and not self.shown[messages[self._first_message]]:
            self._first_message += 1
        return messages[self._first_message] if self._first_message < len(messages) else NONE

    # Protection (rule 5)

    def is_free(self, head: int) -> bool:
        """True if a trim may take from the unit: it is not protected by what it is, nor in the frontier. Some of it is in the view."""
        groups = self.log.groups
        is_protected = groups.unit_protection[head] or self.log.in_frontier(head)
        return not is_protected and any(map(self.shown.__getitem__, groups.members(head)))

    def is_spared(self, head: int) -> bool:
        """True if the unit is not dropped while there is anything else: it is unread, waits, states the task, or a rule keeps it."""
        return self.log.in_frontier(head) or head == self.first_message or self.log.is_waiting(head) or self.has_kept_result(head)

    def is_kept_result(self, index: int) -> bool:
        """True if a rule for its tool keeps this result."""
        return not self.limits.clears_by_age and self.log.results.is_kept(index, self.edits)

    def has_kept_result(self, head: int) -> bool:
        """True if a rule keeps a result of the unit."""
        return not self.limits.clears_by_age and any(map(self.is_kept_result, self.log.groups.members(head)))

    def protected(self) -> Iterator[int]:
        """Yield the positions in the view that a trim takes last, or never."""
        groups = self.log.groups
        users = [at for at in (groups.last_user, self.first_message) if at != NONE]
        results = self.log.results.kept(self.edits)
        heads: set[int] = set()
        for at in (*users, *range(groups.frontier, len(self)), *results, *groups.unanswered_calls, *groups.protected):
            head = groups.head[at]
            if head not in heads and (self.shown[at] or at >= groups.frontier):
                heads.add(head)
                yield from self.members(head)

    # Edits. Rules make them on drafts; `append` and the replay also note changes of the view itself

    def drop(self, head: int, reason: Reason) -> None:
        """Take the unit out of the view."""
        members = self.members(head)
        first = members[0]
        index = first if first not in self.log.moved and self.edit(first).before == NONE else self.request_index(first)
        for at in members:
            self._set(at, self.edit(at)._replace(gone=reason))
        self.note_change(NONE if self.limits.note_removed and reason not in NOT_TOLD else index)

    def leave(self, leaving: Sequence[int]) -> None:
        """Take these items out of the view: nothing is left of what they belong to, or only lines."""
        if leaving:
            edited = min(before - 1 if (before := self.edit(at).before) != NONE else at for at in leaving)
            for at in leaving:
                self._set(at, self.edit(at)._replace(gone=Reason.NO_LINES))
            self.note_change(edited)

    def clear(self, index: int, reason: Reason) -> None:
        """Put a placeholder for the output's content, or for each long value in the call's arguments."""
        self._alter(index, self.edit(index)._replace(tokens=self.cleared_tokens(index), reason=reason, is_cleared=True))

    def truncate(self, index: int, cut: Cut, tokens: int, reason: Reason = Reason.LAST_RESORT) -> None:
        """Take out the middle of the item's text. It then has this many tokens."""
        self._alter(index, self.edit(index)._replace(tokens=tokens, reason=reason, cut=cut, source=NONE))

    def restore(self, index: int, source: int, tokens: int) -> None:
        """Show the content of an earlier output instead of the item's own. It then has this many tokens."""
        self._alter(index, self.edit(index)._replace(tokens=tokens, reason=Reason.REFUSED_READ, source=source))

    def replace_image(self, index: int, part: int, saved: int, reason: Reason) -> None:
        """Put a placeholder for one image of the item, which saves this many tokens."""
        edit = self.edit(index)
        reason = reason if edit.cut is None else Reason.LAST_RESORT
        self._alter(index, edit._replace(tokens=edit.tokens - saved, reason=reason, images=(*edit.images, part)))

    def show_lines(self, excerpts: Mapping[int, tuple[tuple[int, ...], int]], reason: Reason) -> None:
        """Show these lines of items in one digest, which stands before the first of them or its response (rule 7).

        Their images and documents are taken out. `excerpts` has, by position, the numbers of an item's lines in rising order, and their
        tokens with their heading.
        """
        before = min(map(self.log.response_or_own, excerpts))
        edited = before
        is_changed = False
        for at, (lines, tokens) in sorted(excerpts.items()):
            edit = self.edit(at)
            if (lines, before) != (edit.lines, edit.before):
                is_changed = True
                edited = min(edited, before if edit.before == NONE else edit.before)
                self._set(at, edit._replace(tokens=tokens, reason=reason, lines=lines, before=before))
        if is_changed:
            self.note_change(edited - 1)

    def move_digest(self, indices: Iterable[int], before: int) -> None:
        """Let the digest with these items stand before another position."""
        for at in indices:
            self._set(at, self.edit(at)._replace(before=before))

    def note_change(self, index: int) -> None:
        """Note that the request changes at this position. Reasoning that is bound to what precedes it goes (rule 9)."""
        self.changes += 1
        if not self.limits.binds_thinking:
            return
        groups = self.log.groups
        at = groups.kind.find(KIND_REASONING, index + 1)
        while at != NONE:
            if self.shown[at] and groups.protection[at] != HELD:
                self._set(at, self.edit(at)._replace(gone=Reason.BOUND_REASONING))
            at = groups.kind.find(KIND_REASONING, at + 1)

    def cleared_tokens(self, index: int) -> int:
        """Return the tokens that the output or call would have if it were cleared now."""
        cut = self.edit(index).cut if self.log.groups.kind[index] == KIND_CALL else None
        return self.log.measures.cleared_tokens(self.log.items[index], cut) - self.log.free.get(index, 0)

    def cut_tokens(self, index: int, cut: Cut) -> int:
        """Return the tokens that the item would have if it were truncated so. A cleared output has no text to take from."""
        if not self.edit(index).is_cleared:
            return cut.tokens - self.saved_by_images(index) - self.log.free.get(index, 0)
        is_call = self.log.groups.kind[index] == KIND_CALL
        cleared = self.log.measures.cleared_tokens(self.log.items[index], cut) - self.log.free.get(index, 0)
        return cleared if is_call else self.costs[index]

    def request_index(self, index: int) -> int:
        """Return the position at which a request shows a change of this item."""
        before = self.edit(index).before
        return self.log.request_index(index) if before == NONE else before - 1

    def _alter(self, index: int, edit: Edit) -> None:
        """Show an item of the view in a smaller form, which changes the request there."""
        self._set(index, edit)
        self.note_change(index if self.log.groups.kind[index] == KIND_CALL else self.request_index(index))

    def _set(self, index: int, edit: Edit) -> None:
        """Note what became of an item, and count it anew."""
        self._count(index, -1)
        self.edits[index] = edit
        self.shown[index] = edit.gone is None
        if edit.gone is None and edit.action is Action.KEEP:
            del self.edits[index]
        self._count(index, 1)

    def _count(self, index: int, sign: int) -> None:
        """Add the item to the sums, or take it out of them. Every sum is kept here, but for what the log changes (`append`)."""
        groups, edit = self.log.groups, self.edits.get(index)
        if not self.shown[index]:
            if edit is not None and edit.gone is not None:
                self.removed += 0 if edit.gone in NOT_TOLD else sign
                self.replaced += sign * self.log.summarised[index]
                self.replaced_tokens += sign * self.log.summarised[index] * self.log.tokens[index]
            return
        self.items[groups.rank[index]] += sign
        self.unanswered += sign * (groups.kind[index] == KIND_CALL and not groups.answered[index])
        if index in self.log.images:
            self.images += sign * len(self.visible_images(index))
        if edit is not None and edit.before != NONE:
            self.digests[edit.before] = self.digests.get(edit.before, 0) + sign
            if not self.digests[edit.before]:
                del self.digests[edit.before]
        self._pay(index, (self.log.tokens[index] if edit is None else edit.tokens) if sign > 0 else -self.costs[index])

    def _pay(self, index: int, tokens: int) -> None:
        """Add to the tokens of an item in the view."""
        self.costs[index] += tokens
        self.tokens[self.log.groups.rank[index]] += tokens
        self.newer += tokens if index >= self.mark else 0


class Rule:
    """One rule of the decision: a value without state. It overrides what it needs. `decide.RULES` lists all rules."""

    def decide(self, view: View) -> View:
        """Return the view with what this rule takes or adds: the view itself, unchanged, or a draft of it."""
        return view

    def settle(self, view: View, before: View) -> View:  # noqa: ARG002 - likewise
        """Return the view after a change, once all rules have decided: something that this rule added may no longer be due."""
        return view

    def cost(self, view: View) -> int:  # noqa: ARG002 - for rules that add texts
        """Return the tokens of the text that the rule adds to the view's request, besides those of items."""
        return 0

    def additions(self, view: View) -> Iterable[tuple[int, int, Item]]:  # noqa: ARG002 - likewise
        """Yield the messages that the rule adds: the position before which each stands, its rank among those there, and the message."""
        return ()
