"""The slow twin of calibrated totals: `twin.py` with reported usage, everything computed from all reports so far."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import ceil, floor

from session.items import AgentConfigUpdate, Compaction, MessageCategory, Reasoning
from session.session import Session
from session.session_log import recorded_total
from tests.support.engine import CalibrationRule, Limits
from tests.support.twin import Facts, Twin, cost, responses


@dataclass
class Request:
    """A request that totals start from: reported, or predicted from an earlier report. Amounts are tokens.

    Attributes:
        place: Where the response to the request begins.
        tokens: Cost of the request.
        output: Cost of the response.
        item_costs: Local count of each item in the request.
        local: Local count of the whole request.
        edits: How often the request had been changed.
        is_exact: True if it was reported.
        unlogged: Tokens of the response before it that the local count lacks.
        note: Tokens of its line about removed items; 0 if it has none, or the log came with one.
        summarised: Local count of those of its items that a summary stands for, if it was read from a log.
    """

    position: int
    tokens: int
    output: int
    item_costs: dict[int, int]
    local: int
    edits: int
    is_exact: bool
    unlogged: int = 0
    note: int = 0
    summarised: int = 0

    @property
    def offset(self) -> int:
        """Tokens that it cost beyond its local count. A summary that is read from a log stands for the last items too."""
        return self.tokens - self.local + self.summarised

    @property
    def counted(self) -> int:
        """Its local count, without the items that a summary stands for too."""
        return self.local - self.summarised


@dataclass
class Report:
    """A report, accepted or not. Amounts are tokens.

    Attributes:
        tokens: The reported tokens.
        local: Local count of the request.
        untrimmed: Local count of the same request with the whole log in it.
        unlogged: Tokens of the response before it that the local count lacks.
        sent_count: Local count of the request that was sent, if known.
    """

    tokens: int
    local: int
    untrimmed: int
    unlogged: int
    sent_count: int | None = None

    def reported_worth(self, amount: int) -> int:
        """Reported worth of local tokens, by this report: at most one each."""
        return amount if self.tokens >= self.local else (amount * Fraction(self.tokens, self.local)).__floor__()


@dataclass
class Step:
    """The increase from one reported request to the next. Amounts are tokens.

    Attributes:
        request: The earlier request, as reported.
        local: The increase by the local count.
        reported: The increase as reported.
    """

    request: int
    local: int
    reported: int

    def is_taken_back_by(self, after: Step) -> bool:
        """True if this one was too high by more than half of its count, and the next lacks that, give or take a quarter of it."""
        excess, lack = self.reported - self.local, after.local - after.reported
        is_next = after.request == self.request + self.reported
        return is_next and excess > Fraction(self.local, 2) and abs(lack - excess) <= Fraction(excess, 4)


@dataclass
class AnchoredTwin(Twin):
    """A view whose total starts from reports."""

    last: Request | None = None
    smallest_request: Request | None = None
    steps: list[Step] = field(default_factory=list)
    edit_count: int = 0
    reports: list[Report | None] = field(default_factory=list)

    def edited(self, position: int) -> None:
        self.edit_count += 1
        super().edited(position)

    def grow(self, length: int) -> None:
        while self.length < length:
            free = sum(map(self.is_free, range(self.length)))
            super().grow(self.length + 1)
            self.edit_count += sum(map(self.is_free, range(self.length))) > free

    # The total

    def counted(self) -> int:
        return super().total()

    def costs(self) -> dict[int, int]:
        return {position: self.cost(position) for position in self.in_view()}

    def unlogged(self) -> int:
        """Tokens of the reported response that the local count lacks. Once its turn is over, they have left with its reasoning."""
        if self.last is None or (self.limits.drops_thinking and self.turn() > self.last.position):
            return 0
        response = next((response for response in self.responses() if response[0] == self.last.position), [])
        return max(0, self.last.output - sum(cost(self.items[position]) for position in response))

    def new(self) -> int:
        """Local tokens that were not in the reported request."""
        assert self.last is not None
        return sum(tokens for position, tokens in self.costs().items() if position >= self.last.position)

    def removed(self) -> int:
        """Local tokens of the reported request that have been taken out since."""
        assert self.last is not None
        costs = self.costs()
        before = {position: tokens for position, tokens in self.last.item_costs.items() if position < self.last.position}
        back = sum(tokens for position, tokens in costs.items() if position < self.last.position and position not in before)
        return sum(tokens - costs.get(position, 0) for position, tokens in before.items()) - back

    def latest_steps(self) -> list[tuple[int, int, int]]:
        """Of the latest steps: the request before, the local and the reported tokens. A report much too high counts only in part."""
        rule = self.limits.calibration
        assert rule is not None
        return [(step.request, step.local, min(step.reported, rule.max_ratio * step.local)) for step in self.steps[-rule.max_samples :]]

    def ratio(self) -> Fraction:
        """Median of reported by local tokens in earlier increments; 1 while there are fewer than five."""
        ratios = sorted(1000 * reported // local for _, local, reported in self.latest_steps())
        return Fraction(ratios[len(ratios) // 2], 1000) if len(ratios) >= 5 else Fraction(1)

    def score(self) -> Fraction:
        """Margin above the expected cost of the added items, as a part of `scale`."""
        rule = self.limits.calibration
        assert rule is not None
        scores = sorted(
            Fraction(ceil(Fraction(1000 * (reported - floor(self.ratio() * local)), scale(request, local, rule))), 1000)
            for request, local, reported in self.latest_steps()
        )
        left_out = 1 + floor(len(scores) * Fraction(1000 - rule.coverage, 1000))
        prior = rule.prior_score if len(scores) < rule.prior_samples else 0
        return max([Fraction(max(prior, rule.min_score), 1000), *scores[:-left_out]])

    def most(self, request: int, added: int) -> int:
        """Upper bound on what these local tokens cost after a request."""
        assert self.limits.calibration is not None
        return floor(added * self.ratio()) + ceil(self.score() * scale(request, added, self.limits.calibration)) if added > 0 else 0

    def credit(self, removed: int) -> int:
        """Lower bound on what a request lost with these local tokens: by what was added since the smallest request, else by the request."""
        rule = self.limits.calibration
        assert self.last is not None
        assert self.smallest_request is not None
        assert rule is not None
        steps = self.steps[-rule.max_samples :]
        jumps = sum(max(0, step.reported - 2 * floor(self.ratio() * step.local)) for step in steps)
        added = self.last.counted - self.smallest_request.counted
        most = floor(Fraction(11, 10) * floor(self.ratio() * added))
        cost = min(most, max(0, added + self.last.offset - self.smallest_request.offset - jumps))
        known = min(removed, added) if added >= max(1, rule.worth_tokens) else 0
        parts = max(Fraction(9, 10) * known, added - Fraction(11, 10) * (added - known)) if known else 0
        rest = (removed - known) * Fraction(rule.removal_worth * min(self.last.tokens, self.last.counted), 1000 * max(1, self.last.counted))
        return floor(parts * Fraction(cost, max(1, added))) + floor(rest)

    def bound(self, new: int, removed: int) -> int:
        """Upper bound on the request, for numbers of local tokens added and removed since the anchor."""
        assert self.last is not None
        assert self.smallest_request is not None
        assert self.limits.calibration is not None
        credit = removed
        if removed > 0:
            unknown = floor(Fraction(min(removed, self.smallest_request.counted) * (1000 - self.limits.calibration.removal_worth), 1000))
            credit = max(self.credit(removed), removed - unknown - max(0, self.smallest_request.offset - self.last.offset))
        fixed = self.counted() - sum(self.costs().values()) - (self.last.local - sum(self.last.item_costs.values()))
        most = self.most(self.last.tokens, new + self.unlogged())
        return self.last.tokens + self.last.summarised + most - credit + fixed

    def total(self) -> int:
        if self.last is None:
            return self.counted()
        return max(0, self.bound(self.new(), self.removed()))

    def total_of(self, places: list[int]) -> int:
        if self.last is None:
            return super().total_of(places)
        new = removed = 0
        for position in self.in_view():
            if position not in places:
                new += self.cost(position) * (position >= self.last.position)
                removed += self.cost(position) * (position < self.last.position)
        return max(0, self.bound(self.new() - new, self.removed() + removed))

    def room(self, outputs: list[int]) -> int:
        total = sum(map(self.cost, outputs))
        if self.last is None or not outputs:
            return super().room(outputs)
        new, removed = self.new(), self.removed()

        def excess(cut_tokens: int) -> int:
            """Tokens over the budget after a number of tokens was cut from the outputs. It falls as more are cut."""
            bounds = []
            if outputs[-1] >= self.last.position:  # type: ignore[union-attr]
                bounds.append(self.bound(new - cut_tokens, removed))
            if outputs[0] < self.last.position:  # type: ignore[union-attr]
                bounds.append(self.bound(new, removed + cut_tokens))
            return max(bounds) - self.limits.budget

        return max(0, total - bisect_left(range(total + 1), 0, key=lambda cut_tokens: -excess(cut_tokens)))

    # Reports

    def request(self) -> Request:
        """The request as it is now, not reported yet."""
        unlogged, note = self.unlogged(), self.limits.note if self.told() and self.earlier is None else 0
        return Request(self.length, 0, 0, self.costs(), self.counted(), self.edit_count, False, unlogged, note, self.leaving())

    def leaving(self) -> int:
        """Tokens of the units that a summary stands for, and that only their being the last keeps in the view."""
        replaced, units = self.summarised(), self.units()
        return sum(
            tokens
            for position, tokens in self.costs().items()
            if position in replaced
            and all(member in replaced or isinstance(self.items[member], Reasoning) for member in units[position])
            and not any(map(self.held, units[position]))
            and self.category(units[position][0]) is not MessageCategory.SYSTEM
        )

    def report(self, request: Request, tokens: int, output: int, new: int, sent_count: int | None) -> None:
        """Take a report of the request, or of the one that was sent instead, if its local count is another."""
        replaced = self.summarised_places(request.position) - set(request.item_costs)
        log = sum(
            cost(self.items[position]) for position in range(request.position) if position not in replaced and not self.is_free(position)
        )
        untrimmed = request.local - request.note - sum(request.item_costs.values()) + log
        self.reports.append(Report(tokens, request.local, untrimmed, request.unlogged, sent_count))
        is_accepted, sure = judged(self.reports)
        hidden = request.summarised if sent_count is None else 0
        if not is_accepted:
            is_known = self.last is not None and sure is not None
            predicted = sure.tokens + sure.reported_worth(request.local - sure.local) if sure is not None else 0
            self.start(replace(request, tokens=predicted, output=output, summarised=hidden) if is_known else None)
            return
        last, is_exact = self.last, sent_count in (None, request.local)
        if is_exact and last is not None and last.is_exact and last.edits == request.edits and new > 0 and tokens > last.tokens:
            step = Step(last.tokens, new, tokens - last.tokens)
            if self.steps and self.steps[-1].is_taken_back_by(step):  # the two count as one
                high = self.steps.pop()
                step = Step(high.request, high.local + step.local, high.reported + step.reported)
            self.steps.append(step)
        difference = 0 if sent_count is None else request.local - sent_count
        cost_here = tokens + Report(tokens, sent_count or 0, sent_count or 0, 0).reported_worth(difference)
        self.start(replace(request, tokens=cost_here, output=output, is_exact=is_exact, summarised=hidden))

    def start(self, request: Request | None) -> None:
        """Start totals from a request; from none, if None."""
        self.last = request
        if request is None or self.smallest_request is None or request.counted < self.smallest_request.counted:
            self.smallest_request = request

    def summarised_places(self, length: int) -> set[int]:
        """Positions that the summaries among the first items stand for."""
        positions = {item.id: position for position, item in enumerate(self.items)}
        return {
            positions[item_id]
            for position, item in enumerate(self.items[:length])
            if isinstance(item, Compaction)
            for item_id in item.replaces
            if positions.get(item_id, position) < position
        }

    def forget(self) -> None:
        self.reports.append(None)
        self.start(None)
        self.steps = []


def judged(reports: list[Report | None]) -> tuple[bool, Report | None]:
    """True if the last report is used, and the last report that is surely of a view. None in the list: forget all before it.

    The rules are those of `PlausibilityCheck`.
    """
    balance, is_accepted = 0, False
    sure: Report | None = None
    before: Report | None = None
    small: tuple[int, int] | None = None
    for report in reports:
        if report is None:
            sure = before = small = None
            continue
        local = report.local if report.sent_count is None else report.sent_count
        is_small = 4 * report.tokens <= local
        earlier, small = small, (report.tokens, local) if is_small else None
        is_grown = earlier is not None and 2 * (report.tokens - earlier[0]) >= local - earlier[1] > 0
        if is_small and not (is_grown and sure is not None and report.tokens >= sure.tokens):
            is_accepted, before = False, None
            sure = sure and replace(sure, tokens=sure.tokens + report.unlogged)
            continue
        if report.sent_count is not None:
            is_accepted, before, sure = True, None, replace(report, local=report.sent_count)
            continue
        missing, little = report.untrimmed - report.local, report.local // 10 + 20
        if before is not None:
            balance = max(-little, min(little, balance + evidence(before, report)))
        elif sure is None and balance < little and missing > report.local and 2 * report.tokens > report.local + report.untrimmed:
            balance = -little
        before = report
        if sure is None:
            is_accepted, is_proven = balance >= 0, balance >= little
        else:
            updated = replace(sure, tokens=sure.tokens + report.unlogged)
            above = report.tokens - updated.tokens - updated.reported_worth(report.local - sure.local)
            tolerance = updated.reported_worth(missing) // 2 if balance >= 0 else max(2 * little, (report.tokens - above) // 10)
            is_near = above <= tolerance
            is_accepted, is_proven = missing <= little or balance >= little or is_near, balance >= 0
            hidden = max(0, min(report.unlogged, report.tokens - report.untrimmed + sure.local - sure.tokens))
            sure = updated if is_accepted else replace(sure, tokens=sure.tokens + hidden)
        if is_accepted and (missing <= 0 or is_proven):
            sure = report
    return is_accepted, sure


def evidence(before: Report, report: Report) -> int:
    """Tokens that the view lost between two reports: those missing from the second, less those still in it."""
    lost_tokens = before.reported_worth((report.untrimmed - before.untrimmed) - (report.local - before.local))
    if lost_tokens <= 0:
        return 0
    above = report.tokens - report.unlogged - before.tokens - before.reported_worth(report.local - before.local)
    remaining = min(max(above, 0), lost_tokens)
    return (lost_tokens - remaining) - remaining


def scale(anchored: int, new: int, rule: CalibrationRule) -> int:
    """Tokens that an error is divided by. Over more than 5,000 new ones, errors cancel out."""
    return min(new, 5_000) + anchored // rule.request_part + 20


def fold_anchored(session: Session, limits: Limits, facts: Facts | None = None) -> AnchoredTwin:
    """The view of the whole log, by the usage in its items."""
    twin = AnchoredTwin(list(session.items), session.response_breaks, limits, facts={} if facts is None else facts, earlier=session.removed)
    twin.noted_after = session.usage_noted_after
    reporter: tuple[str | None, object] | None = None
    config: dict[str | None, tuple[object, object]] = {}
    by_start = {response[0]: response for response in responses(twin.items, twin.breaks)}
    position = 0
    while position < len(twin.items):
        if position not in by_start:
            item = twin.items[position]
            twin.grow(position + 1)
            if isinstance(item, AgentConfigUpdate):
                old = config.get(item.agent_id, (None, None))
                new = (old[0] if item.instructions is None else item.instructions, old[1] if item.tools is None else item.tools)
                if old != new:
                    config[item.agent_id] = new
                    twin.forget()
            position += 1
            start_from_view(twin, session)
            continue
        if position >= session.settled:
            twin.trim()
        request = twin.request()
        added = twin.new() + request.unlogged if twin.last is not None else 0
        is_reported = False
        for member in by_start[position]:
            item = twin.items[member]
            twin.grow(member + 1)
            if item.usage is not None and item.usage.total_input:  # else the request is not reported
                source = (item.agent_id, item.extra.get("model"))
                if reporter not in (None, source):
                    twin.forget()
                    is_reported = False
                reporter = source
                if not is_reported and request.position >= session.settled:
                    count = item.extra.get("counted", {"by": "another"})
                    sent_count = count["tokens"] if count["by"] == "" else None
                    is_reported = True
                    twin.report(request, item.usage.total_input, item.usage.output_tokens, added, sent_count)
            start_from_view(twin, session)
        position = by_start[position][-1] + 1
    twin.trim()
    return twin


def start_from_view(twin: AnchoredTwin, session: Session) -> None:
    """Start from the recorded cost of a view once the log is that view."""
    if twin.length == session.settled and (saved_total := recorded_total(session)) is not None:
        request = twin.request()
        twin.reports.append(Report(saved_total, request.local, request.local, 0, request.local))
        twin.start(replace(request, tokens=saved_total, summarised=0))
