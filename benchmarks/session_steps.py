"""Split recorded sessions into steps, each from one request with reported usage to the next, and count them with each counter.

Statistics over the steps are in `session_accuracy.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

from accuracy import TRANSCRIPTS, family_of, is_held_out, provider_of

from context_window import ContextWindow
from context_window.calibration.rule import CalibrationRule
from context_window.counting.counter import CharacterCounter, TokenCounter
from context_window.counting.ctok_counter import CtokCounter
from context_window.counting.item_tokens import Measurer
from context_window.counting.select import select_counter, vocabulary_of
from context_window.counting.tiktoken_counter import TiktokenCounter, default_counter
from context_window.decision.limits import BOUNDLESS, Limits
from context_window.decision.replay import SessionReplay
from context_window.models import describe_model
from context_window.settings.budget import UNKNOWN, calibration_of
from context_window.usage.unlogged import unlogged_tokens
from session import Session
from session.errors import SessionError
from session.items import Compaction, Item
from session.transcripts import read_transcripts
from session.units import grouping

FOLDERS = ("claude_code", "codex", "pi", "mini_swe_agent", "opencode", "tau2_bench", "cline", "gemini_chat", "openhands")
"""Folders of recorded transcripts whose logs contain reported usage."""
CHARACTERS, RAW, OURS, CTOK = "4 characters", "o200k", "ours", "ctok"
"""The counters: the estimate without a vocabulary; tiktoken alone; tiktoken as this library scales it; ctok, for Claude only."""
COUNTERS = (CHARACTERS, RAW, OURS, CTOK)


@dataclass(frozen=True, slots=True)
class Exchange:
    """A response in a log, and the items between it and the next. Amounts are tokens.

    Attributes:
        reported: Reported prompt of the response; 0 if not reported.
        output: Reported output; 0 if not reported.
        response: Local count of the response, reasoning included.
        after: Local count of the items after it.
        edited: True if an item after it removed earlier content from the prompt.
        cold: Local count of its prompt.
    """

    reported: int
    output: int
    response: int
    after: int
    edited: bool = False
    cold: int = 0


class Prediction(NamedTuple):
    """The library's prediction for a request, in tokens: the likeliest total and the upper bound."""

    point: int
    bound: int


@dataclass(frozen=True, slots=True)
class Step:
    """A step from one reported request to the next, with one counter. Amounts are tokens of the whole prompt, except `added`.

    Attributes:
        id: The session. All its steps are on the same side of the split.
        tool: The tool that wrote the log.
        provider: The maker of the model.
        family: The group of its models.
        counter: The counter.
        anchor: The request before, as reported.
        reported: This request, as reported.
        cold: Local count of this request, without anything that is missing from the log.
        added: Local count of the items added since the request before, not calibrated.
        point: Calibrated likeliest total of this request.
        bound: Calibrated upper bound of this request.
    """

    id: str
    tool: str
    provider: str
    family: str
    counter: str
    anchor: int
    reported: int
    cold: int
    added: int
    point: int
    bound: int

    @property
    def held_out(self) -> bool:
        """True if no constant may be fitted on it."""
        return is_held_out(self.id)


@dataclass(frozen=True, slots=True)
class FirstRequest:
    """The first request of a log. Amounts are tokens.

    Attributes:
        id: The session.
        tool: The tool that wrote the log.
        reported: The request, as reported.
        cold: Local count of the request.
        unlogged: The library's estimate of what the log lacks.
        least: The lower end of its interval.
        most: The upper end.
    """

    id: str
    tool: str
    reported: int
    cold: int
    unlogged: int
    least: int
    most: int

    @property
    def held_out(self) -> bool:
        """True if no constant may be fitted on it."""
        return is_held_out(self.id)


def log_files(paths: Sequence[Path]) -> list[Path]:
    """Return the files, and all files in the folders, in order. Without paths, those of the recorded transcripts."""
    places = paths or [folder for name in FOLDERS if (folder := TRANSCRIPTS / name).is_dir()]
    files = [file for place in places for file in (sorted(place.rglob("*")) if place.is_dir() else [place])]
    return [file for file in files if not file.is_dir()]


def measure(paths: Iterable[Path], counters: Collection[str] = COUNTERS) -> tuple[list[Step], Counter[str]]:
    """Return the steps in the logs with these counters, and the number of sessions and steps left out, by reason."""
    steps: list[Step] = []
    left_out: Counter[str] = Counter()
    known_usages: set[tuple[object, ...]] = set()
    for path in paths:
        try:
            sessions = read_transcripts(path)
        except SessionError:
            left_out["a file that no reader accepts"] += 1
            continue
        for session in sessions:
            usages = tuple((item.usage.total_input, item.usage.output_tokens) for item in session.items if item.usage is not None)
            is_known = bool(usages) and usages in known_usages
            if reason := "a session that was read already" if is_known else _reason_against([total for total, _ in usages]):
                left_out[reason] += 1
                continue
            known_usages.add(usages)
            session_steps, reasons = steps_of(session, path, counters)
            steps += session_steps
            left_out += reasons
    return steps, left_out


def first_requests(paths: Iterable[Path]) -> list[FirstRequest]:
    """Return the first request of each log of a tool, if it was reported and the library has an estimate of what the log lacks."""
    found: list[FirstRequest] = []
    known_usages: set[tuple[object, ...]] = set()
    for path in paths:
        try:
            sessions = read_transcripts(path)
        except SessionError:
            continue
        for session in sessions:
            usages = tuple((item.usage.total_input, item.usage.output_tokens) for item in session.items if item.usage is not None)
            unlogged = unlogged_tokens(session.metadata)
            if not usages or usages in known_usages or unlogged is None:
                continue
            known_usages.add(usages)
            measurer = Measurer(counters_for(str(session.metadata.get("model", "")))[OURS])
            first = exchanges_of(session, measurer)[0]
            if first.reported:
                amounts = first.reported, first.cold, unlogged.tokens, unlogged.least, unlogged.most
                found.append(FirstRequest(f"{path.name}/{session.id}", unlogged.tool, *amounts))
    return found


def _reason_against(totals: Sequence[int]) -> str:
    reported = [total for total in totals if total]
    if len(reported) < 2:
        return "a session with fewer than two reported requests"
    return "a session whose figures are rounded" if all(total % 100 == 0 for total in reported) else ""


def steps_of(session: Session, path: Path, counters: Collection[str] = COUNTERS) -> tuple[list[Step], Counter[str]]:
    """Return the steps of one session with the counters available for its model, and the number of steps left out, by reason."""
    name = str(session.metadata.get("model", ""))
    source = session.metadata.get("source")
    tool = str(source.get("format") or path.parent.name) if isinstance(source, dict) else path.parent.name
    labels = (f"{path.name}/{session.id}", tool, provider_of(name), family_of(name))
    steps: list[Step] = []
    left_out: Counter[str] = Counter()
    for label, counter in counters_for(name).items():
        if label not in counters:
            continue
        measurer = Measurer(counter)
        exchanges = exchanges_of(session, measurer)
        rule = calibration_of(describe_model(name).family) if label in (OURS, CTOK) else UNKNOWN
        left_out = Counter()
        last = None
        drops_thinking = describe_model(name).drops_thinking and session.metadata.get("keeps_thinking") is not True
        library = predictions(session, measurer, rule, drops_thinking=drops_thinking)
        for place, (exchange, prediction) in enumerate(zip(exchanges, library, strict=True)):
            if not exchange.reported:
                continue
            since, last = exchanges[place if last is None else last : place], place
            if not since:
                continue
            if reason := _reason_against_step(since, exchange, prediction):
                left_out[reason] += 1
            elif prediction is not None:
                added = sum(step.response + step.after for step in since)
                steps.append(
                    Step(*labels, label, since[0].reported, exchange.reported, exchange.cold, added, prediction.point, prediction.bound)
                )
    return steps, left_out


def _reason_against_step(since: Sequence[Exchange], exchange: Exchange, prediction: Prediction | None) -> str:
    if any(step.edited for step in since):
        return "a step with a compaction in it"
    if exchange.reported < since[0].reported:
        return "a step with a smaller report: the tool removed something that the log still has"
    return "" if prediction is not None else "a step to another agent or other tools, without a report yet"


def predictions(
    session: Session, measurer: Measurer, rule: CalibrationRule, *, drops_thinking: bool = False
) -> Iterator[Prediction | None]:
    """Yield the library's prediction for the request of each response, from the log before it. None if there is no report to use."""
    shares = ContextWindow().shares.exact
    limits = Limits(BOUNDLESS, BOUNDLESS, BOUNDLESS, shares, images_max=BOUNDLESS, drops_thinking=drops_thinking, calibration=rule)
    log = Session(metadata=dict(session.metadata))
    log.restore_seams(session.response_breaks, 0)
    replay = SessionReplay(log, limits, measurer)
    starts = set(grouping(session).response_starts)
    for place, item in enumerate(session.items):
        if place in starts:
            replay.update(log)
            view = replay.decided
            yield Prediction(replay.feed.totals.estimate(view), view.total) if replay.feed.is_anchored else None
        log.append(item)


def counters_for(name: str) -> dict[str, TokenCounter]:
    """Return the counters available for the model, by their labels."""
    model = describe_model(name)
    ours = default_counter(model.image_rule, Fraction(1), vocabulary_of(model))
    best = select_counter(None, model).counter
    counters: dict[str, TokenCounter] = {CHARACTERS: CharacterCounter(), RAW: TiktokenCounter(), OURS: ours}
    return {**counters, CTOK: best} if isinstance(best, CtokCounter) else counters


def exchanges_of(session: Session, measurer: Measurer) -> list[Exchange]:
    """Return the responses of a log, each with the counts of its prompt and of the items after it."""
    groups = grouping(session)
    items = session.items
    costs = [measurer.measure(item).tokens for item in items]
    exchanges = []
    for start, end, cold in zip(
        groups.response_starts, [*groups.response_starts, len(items)][1:], _cold(items, costs, groups.response_starts), strict=True
    ):
        response_end = next((place for place in range(start, end) if groups.response[place] != start), end)
        usage = next((item.usage for item in items[start:response_end] if item.usage is not None), None)
        exchanges.append(
            Exchange(
                reported=usage.total_input if usage is not None else 0,
                output=usage.output_tokens if usage is not None else 0,
                response=sum(costs[start:response_end]),
                after=sum(costs[response_end:end]),
                edited=any(isinstance(item, Compaction) for item in items[start:end]),
                cold=cold,
            )
        )
    return exchanges


def _cold(items: Sequence[Item], costs: Sequence[int], starts: Sequence[int]) -> Iterator[int]:
    """Yield the tokens of the items before each response, without items that a summary has replaced."""
    tokens_by_id: dict[str, int] = {}
    for begin, end in zip([0, *starts], starts, strict=False):
        for item, tokens in zip(items[begin:end], costs[begin:end], strict=True):
            tokens_by_id[item.id] = tokens
            for replaced in item.replaces if isinstance(item, Compaction) else ():
                tokens_by_id.pop(replaced, None)
        yield sum(tokens_by_id.values())
