"""The steps of recorded sessions: from one request whose tokens were reported to the next, as each counter has it.

Reads logs and counts; what is made of the steps is in `session_accuracy.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from accuracy import TRANSCRIPTS, family_of, is_held_out, provider_of

from context_window import ContextWindow
from context_window.budget import UNKNOWN, calibration_of
from context_window.choice import choose_counter
from context_window.counting.counter import CharacterCounter, TokenCounter
from context_window.counting.ctok_counter import CtokCounter
from context_window.counting.measure import Measurer
from context_window.counting.tiktoken_counter import TiktokenCounter, default_counter
from context_window.following import Following
from context_window.models import describe_model
from context_window.trimming.anchor import CalibrationRule
from context_window.trimming.limits import BOUNDLESS, Limits
from session import Session
from session.errors import SessionError
from session.items import Compaction, Item
from session.transcripts import read_transcripts
from session.units import grouping

FOLDERS = ("claude_code", "codex", "pi", "mini_swe_agent", "opencode", "tau2_bench", "cline", "gemini_chat", "openhands")
"""Folders of the recorded transcripts whose logs say what was reported."""
CHARACTERS, RAW, OURS, CTOK = "4 characters", "o200k", "o200k x ratio", "ctok"
"""The counters: the estimate without a vocabulary; tiktoken alone; tiktoken as this library counts with it; ctok, for Claude only."""
COUNTERS = (CHARACTERS, RAW, OURS, CTOK)


@dataclass(frozen=True, slots=True)
class Exchange:
    """An answer in a log, and what came between it and the next. Amounts are tokens.

    Attributes:
        reported: The prompt that it answered; 0 where that was not reported.
        output: The answer, as reported; 0 where it was not.
        own: The answer, counted here; its reasoning included.
        after: What came after it, counted here.
        edited: Whether something after it took earlier content out of the prompt.
        cold: The prompt that it answered, counted here.
    """

    reported: int
    output: int
    own: int
    after: int
    edited: bool = False
    cold: int = 0


class Foretold(NamedTuple):
    """What the library says of a request, in tokens: the likeliest total, and the upper bound."""

    point: int
    bound: int


@dataclass(frozen=True, slots=True)
class Step:
    """From one reported request to the next, as one counter has it. Amounts are tokens of whole prompts, or of what was added.

    Attributes:
        id: The session; steps of one are on the same side of the split.
        tool: What wrote the log.
        provider: Who made the model.
        family: Which of its models, roughly.
        counter: What counted.
        anchor: The request before, as reported.
        reported: This one, as reported.
        cold: This one, counted here; what the log does not have is not in it.
        added: What was added between, counted here and not calibrated.
        point: This one, calibrated: the likeliest total.
        bound: This one, calibrated: the upper bound.
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
        """Whether no constant may be fitted on it."""
        return is_held_out(self.id)


def recorded(paths: Sequence[Path]) -> list[Path]:
    """The logs that the paths name: files, and all files in folders, in order; where none are named, the recorded transcripts."""
    places = paths or [folder for name in FOLDERS if (folder := TRANSCRIPTS / name).is_dir()]
    found = [file for place in places for file in (sorted(place.rglob("*")) if place.is_dir() else [place])]
    return [file for file in found if not file.is_dir()]


def measure(paths: Iterable[Path], counters: Collection[str] = COUNTERS) -> tuple[list[Step], Counter[str]]:
    """The steps in the logs by these counters; and of what is left out, how much for which reason."""
    steps: list[Step] = []
    left_out: Counter[str] = Counter()
    seen: set[tuple[object, ...]] = set()
    for path in paths:
        try:
            sessions = read_transcripts(path)
        except SessionError:
            left_out["a file that no reader takes"] += 1
            continue
        for session in sessions:
            usages = tuple((item.usage.total_input, item.usage.output_tokens) for item in session.items if item.usage is not None)
            if why := "a session that was read already" if usages and usages in seen else _reason_against([total for total, _ in usages]):
                left_out[why] += 1
                continue
            seen.add(usages)
            found, reasons = steps_of(session, path, counters)
            steps += found
            left_out += reasons
    return steps, left_out


def _reason_against(totals: Sequence[int]) -> str:
    known = [total for total in totals if total]
    if len(known) < 2:
        return "a session with fewer than two reported requests"
    return "a session whose figures are rounded" if all(total % 100 == 0 for total in known) else ""


def steps_of(session: Session, path: Path, counters: Collection[str] = COUNTERS) -> tuple[list[Step], Counter[str]]:
    """The steps of one session by those of the counters that are there for its model, and which steps are left out."""
    name = str(session.metadata.get("model", ""))
    source = session.metadata.get("source")
    tool = str(source.get("format") or path.parent.name) if isinstance(source, dict) else path.parent.name
    about = (f"{path.name}/{session.id}", tool, provider_of(name), family_of(name))
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
        for place, (one, told) in enumerate(zip(exchanges, foretold(session, measurer, rule), strict=True)):
            if not one.reported:
                continue
            since, last = exchanges[place if last is None else last : place], place
            if not since:
                continue
            if why := _reason_against_step(since, one, told):
                left_out[why] += 1
            elif told is not None:
                added = sum(step.own + step.after for step in since)
                steps.append(Step(*about, label, since[0].reported, one.reported, one.cold, added, told.point, told.bound))
    return steps, left_out


def _reason_against_step(since: Sequence[Exchange], now: Exchange, told: Foretold | None) -> str:
    if any(step.edited for step in since):
        return "a step with a compaction in it"
    if now.reported < since[0].reported:
        return "a step after which less was reported: the tool took out what the log still has"
    return "" if told is not None else "a step to another agent or other tools, of which nothing was reported yet"


def foretold(session: Session, measurer: Measurer, rule: CalibrationRule) -> Iterator[Foretold | None]:
    """For each answer what the library says of its request, from the log before it alone; None where it has no report to go by."""
    limits = Limits(BOUNDLESS, BOUNDLESS, BOUNDLESS, ContextWindow().shares.exact, images_max=BOUNDLESS, calibration=rule)
    log = Session(metadata=dict(session.metadata))
    log.restore_seams(session.response_breaks, 0)
    following = Following(log, limits, measurer)
    starts = set(grouping(session).starts)
    for place, item in enumerate(session.items):
        if place in starts:
            following.catch_up(log)
            fold = following.fold
            yield None if fold.anchor is None else Foretold(fold.estimate, fold.total)
        log.append(item)


def counters_for(name: str) -> dict[str, TokenCounter]:
    """The counters that there are for the model, by what they are called here."""
    model = describe_model(name)
    ours = default_counter(model.image_rule, model.token_ratio)
    best = choose_counter(None, model).counter
    found: dict[str, TokenCounter] = {CHARACTERS: CharacterCounter(), RAW: TiktokenCounter(), OURS: ours}
    return {**found, CTOK: best} if isinstance(best, CtokCounter) else found


def exchanges_of(session: Session, measurer: Measurer) -> list[Exchange]:
    """The answers of a log with what came after each, and what the whole prompt before each was counted as."""
    groups = grouping(session)
    items = session.items
    costs = [measurer.measured(item).tokens for item in items]
    exchanges = []
    for start, end, cold in zip(groups.starts, [*groups.starts, len(items)][1:], _cold(items, costs, groups.starts), strict=True):
        answered = next((place for place in range(start, end) if groups.response[place] != start), end)
        usage = next((item.usage for item in items[start:answered] if item.usage is not None), None)
        exchanges.append(
            Exchange(
                reported=usage.total_input if usage is not None else 0,
                output=usage.output_tokens if usage is not None else 0,
                own=sum(costs[start:answered]),
                after=sum(costs[answered:end]),
                edited=any(isinstance(item, Compaction) for item in items[start:end]),
                cold=cold,
            )
        )
    return exchanges


def _cold(items: Sequence[Item], costs: Sequence[int], starts: Sequence[int]) -> Iterator[int]:
    """What stands before each of the places; what a summary stands for does not."""
    standing: dict[str, int] = {}
    for begin, end in zip([0, *starts], starts, strict=False):
        for item, tokens in zip(items[begin:end], costs[begin:end], strict=True):
            standing[item.id] = tokens
            for replaced in item.replaces if isinstance(item, Compaction) else ():
                standing.pop(replaced, None)
        yield sum(standing.values())
