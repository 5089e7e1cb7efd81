"""The steps of recorded sessions: from one request whose tokens were reported to the next, as each counter has it.

Reads logs and counts; what is made of the steps is in `session_accuracy.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from accuracy import OTHER, TRANSCRIPTS, family_of, is_held_out, provider_of
from calibration_reference import PRIORS, UNKNOWN, Exchange, estimate

from context_window.choice import choose_counter
from context_window.counting.counter import CharacterCounter, TokenCounter
from context_window.counting.ctok_counter import CtokCounter
from context_window.counting.measure import Measurer
from context_window.counting.tiktoken_counter import TiktokenCounter, default_counter
from context_window.models import describe_model
from session import Session
from session.errors import SessionError
from session.items import Compaction, FunctionCall, FunctionCallOutput, Item, Message, Reasoning
from session.parts import Part, Text
from session.transcripts import read_transcripts
from session.units import grouping

FOLDERS = ("claude_code", "codex", "pi", "mini_swe_agent", "opencode", "tau2_bench", "cline", "gemini_chat", "openhands")
"""Folders of the recorded transcripts whose logs say what was reported."""
CHARACTERS, RAW, OURS, CTOK = "4 characters", "o200k", "o200k x ratio", "ctok"
"""The counters: the estimate without a vocabulary; tiktoken alone; tiktoken as this library counts with it; ctok, for Claude only."""
AROUND = 20
"""Tokens that the frame of an item costs at most, beside its bytes."""


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


def measure(paths: Iterable[Path]) -> tuple[list[Step], Counter[str]]:
    """The steps in the logs by every counter; and of what is left out, how much for which reason."""
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
            found, reasons = steps_of(session, path)
            steps += found
            left_out += reasons
    return steps, left_out


def _reason_against(totals: Sequence[int]) -> str:
    known = [total for total in totals if total]
    if len(known) < 2:
        return "a session with fewer than two reported requests"
    return "a session whose figures are rounded" if all(total % 100 == 0 for total in known) else ""


def steps_of(session: Session, path: Path) -> tuple[list[Step], Counter[str]]:
    """The steps of one session by every counter that is there for its model, and which steps are left out."""
    name = str(session.metadata.get("model", ""))
    source = session.metadata.get("source")
    tool = str(source.get("format") or path.parent.name) if isinstance(source, dict) else path.parent.name
    about = (f"{path.name}/{session.id}", tool, provider_of(name), family_of(name))
    steps: list[Step] = []
    left_out: Counter[str] = Counter()
    for label, counter in counters_for(name).items():
        known = label in (OURS, CTOK) and about[2] != OTHER
        exchanges, before = exchanges_of(session, Measurer(counter))
        left_out = Counter()
        for place, one in enumerate(exchanges):
            found = estimate(exchanges[:place], PRIORS[about[2]] if known else UNKNOWN) if one.reported else None
            if found is None:
                continue
            since = exchanges[max(at for at in range(place) if exchanges[at].reported) : place]
            if any(step.edited for step in since):
                left_out["a step with a compaction in it"] += 1
            elif one.reported < found.anchor:
                left_out["a step after which less was reported: the tool took out what the log still has"] += 1
            else:
                added = sum(step.own + step.after for step in since)
                steps.append(Step(*about, label, found.anchor, one.reported, before[place], added, found.point, found.bound))
    return steps, left_out


def counters_for(name: str) -> dict[str, TokenCounter]:
    """The counters that there are for the model, by what they are called here."""
    model = describe_model(name)
    ours = default_counter(model.image_rule, model.token_ratio)
    best = choose_counter(None, model).counter
    found: dict[str, TokenCounter] = {CHARACTERS: CharacterCounter(), RAW: TiktokenCounter(), OURS: ours}
    return {**found, CTOK: best} if isinstance(best, CtokCounter) else found


def exchanges_of(session: Session, measurer: Measurer) -> tuple[list[Exchange], list[int]]:
    """The answers of a log with what came after each, and before each what the whole prompt was counted as."""
    groups = grouping(session)
    items = session.items
    costs = [measurer.measured(item).tokens for item in items]
    exchanges = []
    for start, end in zip(groups.starts, [*groups.starts[1:], len(items)], strict=True):
        answered = next((place for place in range(start, end) if groups.response[place] != start), end)
        usage = next((item.usage for item in items[start:answered] if item.usage is not None), None)
        exchanges.append(
            Exchange(
                reported=usage.total_input if usage is not None else 0,
                output=usage.output_tokens if usage is not None else 0,
                own=sum(costs[start:answered]),
                after=sum(costs[answered:end]),
                ceiling=sum(bytes_of(item) + AROUND + sum(measurer.images(item)) for item in items[start:end]),
                edited=any(isinstance(item, Compaction) for item in items[start:end]),
            )
        )
    return exchanges, list(_cold(items, costs, groups.starts))


def _cold(items: Sequence[Item], costs: Sequence[int], starts: Sequence[int]) -> Iterator[int]:
    """What stands before each of the places; what a summary stands for does not."""
    standing: dict[str, int] = {}
    for begin, end in zip([0, *starts], starts, strict=False):
        for item, tokens in zip(items[begin:end], costs[begin:end], strict=True):
            standing[item.id] = tokens
            for replaced in item.replaces if isinstance(item, Compaction) else ():
                standing.pop(replaced, None)
        yield sum(standing.values())


def bytes_of(item: Item) -> int:
    """UTF-8 bytes of all that an item says."""
    return sum(len(text.encode("utf-8", "replace")) for text in _texts(item))


def _texts(item: Item) -> Iterator[str]:
    match item:
        case Message():
            yield from _texts_in(item.content)
        case FunctionCall():
            yield from (item.name, item.arguments)
        case FunctionCallOutput():
            yield item.name
            yield from _texts_in(item.output)
        case Compaction():
            yield item.summary
        case Reasoning():
            yield from (item.text, item.data or "", item.signature or "")


def _texts_in(parts: Sequence[Part]) -> Iterator[str]:
    yield from (part.text for part in parts if isinstance(part, Text))
