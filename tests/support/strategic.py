"""Strategies to try guarantees on, some of them strange, and the slow twin of a view that one of them decides on.

They depend on their arguments only, as `Strategy` asks, and on no position in the log, so that a view used as a log goes on as
it did.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction

from hypothesis import strategies as st

from context_window import Action, Choice, Extraction, MeasuredUnit, Reason, Strategy, StrategyBudget
from context_window.strategies import DropOldest, NeverTrim, PriorityTrim, SlidingWindow, Summarize, advisers_of, is_final, parts_of
from session.items import FunctionCallOutput, Message, MessageCategory
from session.session import Session
from tests.support.engine import Limits, changed, note_of, subject_of, without_number
from tests.support.extracting import EXTRACTING, SlowChoice
from tests.support.harness import trim
from tests.support.twin import Twin, cost, is_silent, is_summary, responses


@dataclass(frozen=True)
class Whim:
    """Takes any of the free units, for no reason that anybody could guess: the same ones of the same view.

    Attributes:
        seed: Which whim.
        above_units: As of any strategy.
        final: As of any strategy.
    """

    seed: int
    above_units: int | None = None
    final: bool = False

    def __call__(self, units: Sequence[MeasuredUnit], budget: StrategyBudget, /) -> Iterator[Choice]:
        free = [unit for unit in units if unit.free]
        if self.seed % 3 == 0:
            free.reverse()
        for position, unit in enumerate(free):
            fancy = (position * 5 + unit.items * 7 + unit.tokens * 3 + unit.begins_turn + budget.items + self.seed) % 11
            always = fancy % 4 == 0
            if fancy < 3:
                yield unit.clear(always=always)
            elif fancy == 3:
                yield unit.summarise()
            if 1 < fancy < 7 and fancy != 3:
                yield unit.drop(Reason.BY_STRATEGY if always else Reason.OVER_BUDGET, always=always)


def clear_all_then_drop(units: Sequence[MeasuredUnit], budget: StrategyBudget) -> list[Choice]:
    """A plain function, as users write them."""
    free = [unit for unit in units if unit.free and unit.category is not MessageCategory.CONTEXT]
    return [*(unit.clear() for unit in free), *(unit.drop() for unit in free if budget.over)]


def keep_errors(units: Sequence[MeasuredUnit], _budget: StrategyBudget) -> list[Choice]:
    """Looks at the items: all that holds no error may go."""
    return [unit.drop() for unit in units if unit.free and not any(output.is_error for output in unit.outputs)]


def newest_of_each_tool(units: Sequence[MeasuredUnit], _budget: StrategyBudget) -> list[Choice]:
    """Looks at the items and at their age: what a tool gave before its last two results is cleared, and dropped once it is old."""
    names = {name for unit in units for name in unit.tool_names}
    kept = {unit.head for name in names for unit in [unit for unit in units if name in unit.tool_names][-2:]}
    older = [unit for unit in units if unit.free and unit.tool_names and unit.head not in kept]
    return [*(unit.clear() for unit in older), *(unit.drop() for unit in older if unit.age > 1)]


@dataclass(eq=False)  # a strategy must be hashable
class Recorder:
    """Chooses nothing, and keeps its arguments each time.

    Attributes:
        units: The units.
        budgets: The limits, and their use.
        above_units: As of any strategy: it is always asked.
    """

    units: list[list[MeasuredUnit]] = field(default_factory=list)
    budgets: list[StrategyBudget] = field(default_factory=list)
    above_units: int = 0

    def __call__(self, units: Sequence[MeasuredUnit], budget: StrategyBudget, /) -> list[Choice]:
        self.units.append([units[position] for position in range(len(units))])
        self.budgets.append(budget)
        return []


def measured(log: Session, limits: Limits) -> list[MeasuredUnit]:
    """Return the units of a log as a strategy sees them in a one-shot trim."""
    recorder = Recorder()
    trim(log, decided_by(recorder, limits))
    return recorder.units[0] if recorder.units else []


WINDOWS = st.tuples(st.integers(1, 9), st.integers(1, 9)).map(lambda drawn: SlidingWindow(max(drawn), min(drawn)))
NAMED: st.SearchStrategy[Strategy] = st.one_of(
    WINDOWS, st.builds(DropOldest, st.booleans()), st.builds(Summarize, st.integers(0, 9)), st.just(NeverTrim()), st.just(PriorityTrim())
)
WHIMS = st.builds(Whim, st.integers(0, 99), st.sampled_from((None, None, 0, 8)), st.sampled_from((False, False, True)))
ANY: st.SearchStrategy[Strategy] = st.one_of(
    WHIMS, EXTRACTING, NAMED, st.sampled_from([clear_all_then_drop, keep_errors, newest_of_each_tool])
)


@st.composite
def strategies(draw: st.DrawFn, one: st.SearchStrategy[Strategy] = ANY) -> Strategy:
    """One strategy, or two in a chain."""
    first = draw(one)
    return PriorityTrim() | first | draw(one) if draw(st.integers(0, 3)) == 3 else first


def decided_by(strategy: Strategy, limits: Limits) -> Limits:
    """The limits with the strategy, as the manager makes them. A final strategy knows no limit of items."""
    items_max = None if is_final(strategy) else limits.items_max
    return replace(limits, items_max=items_max, advisers=advisers_of(strategy), final=is_final(strategy))


@dataclass
class StrategicTwin(Twin):
    """The slow twin of a view that a strategy trims. It follows the docstring of `Strategy` and the rules in `decision/__init__.py`."""

    strategy: Strategy = PriorityTrim()  # noqa: RUF009 - frozen

    def decide(self) -> None:
        final = is_final(self.strategy)
        before, read_before = self.changes(), self.changes_of_read()
        self.compact()
        self.put_back(only_if_it_fits=False)
        self.shorten_arrivals()
        if not final:
            self.images()
        for part in parts_of(self.strategy):
            self.ask(part)
        if self.total() > self.limits.trigger:
            self.withdraw_state_note()
        if not final:
            self.by_items()
        self.note_usage()
        if not final and not (any(getattr(part, "shortens_unread", False) for part in parts_of(self.strategy)) and self.shortens_unread()):
            self.by_tokens()
        if self.changes() != before:
            self.put_back(only_if_it_fits=True)
            if self.changes_of_read() != read_before:
                self.withdraw_state_note()
                self.restate_work()
            if self.noted >= 0:
                self.withdraw_note()
            self.move_digests()

    def shorten_arrivals(self) -> None:
        """Outputs that the model has not read yet, if they are larger than their part of the budget: first, last and best lines."""
        runs = self.responses()
        for position in self.unread_outputs():
            most, item = self.largest_output(position), self.items[position]
            if (
                position < runs[-1][0]
                or position in {*self.cuts, *self.restored, *self.cleared, *self.extracts}
                or most is None
                or self.cost(position) <= most
            ):
                continue
            assert isinstance(item, FunctionCallOutput)
            for tenths in (10, 9, 8, 6, 4):
                cut = SlowChoice(self, []).cut_within(position, most * tenths // 10)
                if cut is not None and cost(changed(item, (), cut)) <= most:
                    break
            else:
                images = self.replaced.pop(position, ())
                cut = self.longest(position, most)
                self.replaced |= {position: images} if images else {}
            if cut is not None and self.form_cut(position, cut)[1] < self.cost(position):
                self.cuts[position] = cut
                self.restored.pop(position, None)
                self.edited(self.wire(position))

    def largest_output(self, position: int) -> int | None:
        """The tokens that the output may have; None for any number."""
        rule, part = self.rule(position), self.limits.output_part
        if self.tool(position) == "recall":
            return None
        if rule is not None and rule.largest_output is not None:
            part = Fraction(str(rule.largest_output))
        elif rule is not None and (rule.clear == "never" or rule.keep_last):
            return None
        return None if part is None or part == 1 else int(part * self.limits.budget)

    def changes_of_read(self) -> object:
        """What the trims so far have taken of what the model has read."""
        runs = self.responses()
        end = runs[-1][0] if runs else min(self.frontier(), default=self.length)
        taken = {position for position in (*self.dropped, *self.unthought, *self.cleared) if position < end}
        forms = [[getattr(self, name).get(position) for position in range(end)] for name in ("replaced", "cuts", "extracts", "digests")]
        return taken, forms, [self.restored.get(position) for position in range(end)]

    def withdraw_state_note(self) -> None:
        """The note of an earlier trim goes."""
        if self.state_note is not None:
            before = self.state_note[0]
            self.state_note = None
            self.edited(before - 1)

    def restate_work(self) -> None:
        """A note at the end of a request: at most .15 of the window, and not if more than .9 of it would be in use."""
        asked = self.limits.items_max is None and any(getattr(part, "restates_work", False) for part in parts_of(self.strategy))
        window = self.limits.trigger
        most = int(0.15 * window) if self.limits.auto is None else self.limits.auto.kept // 4
        room = min(most, int(0.9 * window) - self.total())
        if not (asked and self.is_request() and self.speaks_before(self.length) and room > 0):
            return
        lines = SlowChoice(self, [])
        shown = {without_number(lines.line(position, number)) for position in self.in_view() for number in lines.lines(position)}
        message = note_of(self.log(), shown, self.traces(), room, cost)
        if message is not None and self.total() + cost(message) <= 0.9 * window:
            self.state_note = (self.length, message)

    def traces(self) -> list[str]:
        """What the outputs that are neither in the view nor summarised were about: the newest of each subject, the newest first."""
        lines: dict[str, str] = {}
        for position in reversed(range(self.length)):
            call = self.call_of(position)
            subject = None if call is None or position in self.in_view() or position in self.summarised() else subject_of(call)
            if subject is not None and call is not None:
                name = f"{call.name} {subject}"[:200]
                lines.setdefault(name, f"{name} {self.items[position].id}")
        return list(lines.values())

    def shortens_unread(self) -> bool:
        """Truncate what the model has not read yet, if the view then fits, and say whether it fits."""
        kinds = (self.unread_outputs(), self.unread_calls())
        unread = [position for places in kinds for position in places]
        if sum(map(self.least, unread)) > self.room(unread):
            return False
        for places in kinds:
            if self.total() > self.limits.budget:
                self.truncate(places, self.room(places))
        return True

    def ask(self, part: Strategy) -> None:
        limits = self.limits
        heavy = self.total() > limits.trigger
        many = limits.items_max is not None and len(self.in_view()) > limits.items_max
        above = getattr(part, "above_units", None)
        if not (heavy or many or (above is not None and self.budget().units > above)):
            return
        budget = self.budget()
        for choice in list(part(self.measured(), budget)):
            if isinstance(choice, Extraction):
                self.extract(choice)
                continue
            unit = self.units()[choice.head]
            if choice.action is Action.CLEAR:
                for position in self.clearable_in(unit):
                    if choice.always or (heavy and self.total() > budget.target):
                        self.clear(position)
            elif choice.action is Action.DROP and set(unit).intersection(self.in_view()):
                too_heavy = heavy and self.total() > budget.target
                too_many = many and len(self.in_view()) > budget.items_target
                if choice.always or too_heavy or too_many:
                    self.drop(unit)

    def extract(self, extraction: Extraction) -> None:
        units = [self.units()[head] for head in extraction.heads]
        units = [unit for unit in units if set(unit).intersection(self.in_view()) and not any(map(self.kept, unit))]
        choice = SlowChoice(self, units)
        choice.take(extraction.tokens)
        chosen: dict[int, tuple[int, ...]] = {}
        for unit, members in zip(units, choice.units, strict=True):
            lines = {position: tuple(sorted(choice.chosen[position])) for position in members if position in choice.chosen}
            size = sum(self.form(position, lines=numbers)[1] for position, numbers in lines.items())
            if members in choice.whole or (lines and not set(lines) & set(self.digests) and size >= sum(map(choice.cost, members))):
                continue
            if not lines:
                if set(unit).intersection(self.in_view()):
                    self.drop(unit, is_told=False)
            else:
                self.leave([position for position in unit if position in self.in_view() and position not in lines])
                chosen |= lines
        self.put_into_digest(chosen)

    def put_into_digest(self, chosen: dict[int, tuple[int, ...]]) -> None:
        """One digest shows all of these lines: before the first item, or before the response which that one is in."""
        if not chosen:
            return
        before = min(next((run[0] for run in self.responses() if position in run), position) for position in chosen)
        changed = [
            position for position in chosen if (chosen[position], before) != (self.extracts.get(position), self.digests.get(position))
        ]
        edited = min((before, *(self.digests.get(position, before) for position in changed))) - 1
        self.extracts |= chosen
        self.digests |= dict.fromkeys(chosen, before)
        if changed:
            self.edited(edited)

    def budget(self) -> StrategyBudget:
        limits = self.limits
        target = self.goal(limits.trigger, limits.target, weigh=True)
        system, context, dialog, output = (int(share * target) for share in limits.shares)
        return StrategyBudget(
            total=self.total(),
            overhead=limits.overhead + self.additions(),
            budget=limits.budget,
            trigger=limits.trigger,
            target=target,
            shares=(system, context, dialog, output),
            units=sum(unit.category is not MessageCategory.SYSTEM for unit in self.measured()),
            items=len(self.in_view()),
            items_max=limits.items_max,
            items_target=0 if limits.items_max is None else self.goal(limits.items_max, limits.items_target, weigh=False),
            kept=None if limits.auto is None else limits.auto.kept,
        )

    def measured(self) -> list[MeasuredUnit]:
        visible = set(self.in_view())
        units = {tuple(unit): unit for unit in self.units().values() if visible.intersection(unit)}
        return [self.unit(unit, visible) for unit in sorted(units.values(), key=lambda unit: unit[-1], reverse=self.limits.newest_first)]

    def unit(self, unit: list[int], shown: set[int]) -> MeasuredUnit:
        items, category = [self.items[position] for position in unit], self.category(unit[0])
        system = category is MessageCategory.SYSTEM or any(item.category is MessageCategory.SYSTEM for item in items)
        protected = None
        if any(item.pinned or (is_summary(item) and item.category is MessageCategory.SYSTEM) for item in items):
            protected = Reason.PINNED
        elif any(map(is_summary, items)) and not system:
            protected = Reason.SUMMARY
        elif self.frontier().intersection(unit):
            protected = Reason.FRONTIER
        elif self.waits(unit):
            protected = Reason.WAITING
        elif self.first_message() == unit and not system:
            protected = Reason.FIRST_MESSAGE
        elif system:
            protected = Reason.SYSTEM
        return MeasuredUnit(
            unit[0],
            tuple(position for position in unit if position in shown),
            category,
            sum(self.cost(position) for position in unit if position in shown),
            0 if protected else sum(map(self.saved_by_clearing, self.clearable_in(unit))),
            protected,
            begins_turn=self.begins_turn(unit[0]),
            age=sum(self.begins_turn(position) for position in shown if position > unit[-1]),
            is_shortened=any(self.is_shortened(position) for position in unit if position in shown),
            contents=tuple(self.items[position] for position in unit if position in shown),
        )

    def begins_turn(self, position: int) -> bool:
        item = self.items[position]
        is_user = isinstance(item, Message) and item.role == "user" and not is_silent(item)
        return is_user and item.category is not MessageCategory.CONTEXT


def decided(session: Session, limits: Limits, strategy: Strategy, *, one_shot: bool = False) -> StrategicTwin:
    """The slow form of the view of the whole log."""
    twin = StrategicTwin(list(session.items), session.response_breaks, limits, strategy=strategy)
    for response in [] if one_shot else responses(twin.items, twin.breaks):
        twin.grow(response[0])
        if response[0] >= session.settled:
            twin.trim()
    twin.grow(len(twin.items))
    twin.trim()
    return twin
