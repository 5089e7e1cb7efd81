"""Show that two checkouts make the same views: record the views of many logs with each, then compare the records.

    PYTHONPATH=OLD python benchmarks/same_views.py record old.jsonl.gz [--part 1/2] [--quick] [--only PATTERN] [--seconds N]
    PYTHONPATH=NEW python … record new.jsonl.gz
    python -m benchmarks.same_views compare old.jsonl.gz new.jsonl.gz     # exit code 1 if a view differs
    PYTHONPATH=OLD python … show CASE PREFIX [--wire openai] > old.txt    # one decision a line, to be compared by diff

A case is a log under one setting: a recorded transcript or a random log, a budget, a `ContextWindow`, a model, and usage reports or none.
Its log grows item by item. Views are compared at every request (before an item that begins a response, and at the end) and at other
prefixes. `--fresh` makes each view from nothing: `compare` then shows whether a manager that has seen the log grow decides otherwise.
Only the public API is used, so that one file serves both checkouts. Names that a checkout may change have two spellings (`either`).
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, replace
from fnmatch import fnmatch
from functools import cache
from hashlib import blake2b
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

from PIL import Image as Picture

import context_window
from context_window import (
    AgentConfigUpdate,
    AgentHandoff,
    CharacterCounter,
    Choice,
    Compaction,
    ContextWindow,
    ContextWindowManager,
    Document,
    DropOldest,
    Extract,
    Extraction,
    FunctionCall,
    FunctionCallOutput,
    Image,
    Item,
    MeasuredUnit,
    Message,
    MessageCategory,
    NeverTrim,
    PartRefusedError,
    Plan,
    PriorityTrim,
    PromptTooLongError,
    Reason,
    Reasoning,
    Session,
    SessionError,
    Shares,
    SlidingWindow,
    StrategyBudget,
    Summarize,
    ToolRule,
    Usage,
    keep_lines,
)
from session.transcripts import read_transcripts

Row = dict[str, Any]
FOLDERS = [Path(folder) for folder in os.environ.get("CONTEXT_WINDOW_TRANSCRIPTS", "").split(os.pathsep) if folder]
ITEMS_MOST = 900
RANDOM_LOGS = 3_600
WIRES = ("anthropic", "openai", "responses", "google")
FIELDS = {"p": "plan", "v": "view", "u": "usage", "w": "wire formats", "o": "one-shot trim", "s": "summary", "a": "analysis", "e": "events"}

# Settings


def clear_then_drop(units: Sequence[MeasuredUnit], budget: StrategyBudget) -> list[Choice]:
    free = [unit for unit in units if unit.free and unit.category is not MessageCategory.CONTEXT]
    return [*(unit.clear() for unit in free), *(unit.drop(Reason.OVER_BUDGET) for unit in free if budget.excess)]


def whims(units: Sequence[MeasuredUnit], budget: StrategyBudget) -> Iterator[Choice]:
    for number, unit in enumerate(unit for unit in reversed(units) if unit.free):
        whim = (number * 5 + unit.items * 7 + unit.tokens * 3 + unit.begins_turn + budget.items) % 11
        if whim < 3:
            yield unit.clear(always=whim == 0)
        if 1 < whim < 7:
            yield unit.drop(always=whim == 4)


def lines_of_old_units(units: Sequence[MeasuredUnit], budget: StrategyBudget) -> list[Extraction]:
    old = [unit for unit in units if unit.free and unit.age > 0]
    return [keep_lines(old, sum(unit.tokens for unit in old) // 3, Reason.OVER_BUDGET)] if budget.excess else []


RULES = {"read*": ToolRule(keep_last=2), "bash": ToolRule(clear="first"), "Bash": ToolRule(clear="first", keep_last=1)}
NEVER = {"list_files": ToolRule(clear="never"), "Read": ToolRule(clear="never"), "exec*": ToolRule(clear="never")}
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {},
    "extract": {"strategy": Extract()},
    "images": {"images_max": 3, "images_kept": 1},
    "items": {"max_context_items": 14},
    "rules": {"tool_rules": RULES, "clear_superseded": True},
    "drop_oldest": {"strategy": DropOldest()},
    "first": {"keep_first_message": True},
    "usage_note": {"note_usage_at": 0.6},
    "extract_other": {"strategy": Extract(tail=0.2, fresh=0.5, room=0.7)},
    "window": {"strategy": SlidingWindow(12, step=5)},
    "no_note": {"note_removed": False},
    "no_clamp": {"clamp_messages": False},
    "no_call_inputs": {"clear_call_inputs": False},
    "ratios": {"trigger_ratio": 0.8, "target_ratio": 0.4},
    "window_ratio": {"strategy": SlidingWindow(9, step=3), "trigger_ratio": 0.7},
    "shares": {"shares": Shares(system=0.2, context=0.1, dialog=0.2, system_output=0.5)},
    "zero_shares": {"shares": Shares(system=0, context=0, dialog=0, system_output=0), "target_ratio": 1.0},
    "uncalibrated": {"coverage": None},
    "drop_system": {"strategy": DropOldest(keep_system=False), "note_usage_at": 0.8},
    "window_then_oldest": {"strategy": SlidingWindow(16) | DropOldest()},
    "oldest_then_extract": {"strategy": lines_of_old_units},
    "extract_rules": {"strategy": Extract(), "tool_rules": {**RULES, **NEVER}, "keep_first_message": True, "note_usage_at": 0.7},
    "never": {"strategy": NeverTrim()},
    "window_final": {"strategy": SlidingWindow(10, step=2) | NeverTrim()},
    "summarize": {"strategy": Summarize(keep_recent=6)},
    "priority": {"strategy": PriorityTrim() | SlidingWindow(30, step=10), "images_kept": 2},
    "clear_then_drop": {"strategy": clear_then_drop},
    "whims": {"strategy": whims, "max_context_items": 25},
    "extract_items": {"strategy": Extract(), "max_context_items": 20, "images_kept": 0},
    "strict": {"strict": True, "keep_first_message": True, "clear_superseded": True},
    "rules_never": {"tool_rules": NEVER, "images_kept": 3, "note_usage_at": 0.5},
    "items_ratio": {"max_context_items": 30, "trigger_ratio": 0.9, "target_ratio": 0.9, "coverage": 0.5},
}
MODELS: dict[str, dict[str, Any]] = {
    "claude-sonnet-5-5": {"model_config": "claude-sonnet-5-5"},  # binds reasoning
    "claude-haiku-4-5": {"model_config": "claude-haiku-4-5"},  # drops earlier thinking
    "claude-opus-4-6": {"model_config": "claude-opus-4-6"},
    "gpt-5.2": {"model_config": "gpt-5.2"},
    "gemini-3-pro": {"model_config": "gemini-3-pro"},
    "characters": {"token_counter": CharacterCounter()},
}
TOOLS = [
    {"name": "read_file", "description": "Reads a file.", "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}}}
]


@dataclass(frozen=True)
class Case:
    """A log under one setting.

    Attributes:
        log: The log's name. That of a random log ends in its features.
        budget: Tokens.
        setting: A name in `SETTINGS`; "live" instead if the manager gets reports, refusals and other calls while the log grows.
        model: A name in `MODELS`.
        usage: The usage reports on the log's answers: "none", its "own", or "made" up.
        items: Makes the log.
    """

    log: str
    budget: int
    setting: str
    model: str
    usage: str
    items: Callable[[], list[Item]]

    @property
    def name(self) -> str:
        return f"{self.log}@{self.budget}:{self.setting}:{self.model}:{self.usage}"

    def manager(self, on_event: Callable[[Any], None] | None = None) -> ContextWindowManager:
        window = ContextWindow(max_tokens=self.budget, **SETTINGS.get(self.setting, {}))
        return ContextWindowManager(**MODELS[self.model], context_window=window, on_event=on_event)


# Logs


def is_answer(item: Item) -> bool:
    return isinstance(item, Reasoning | FunctionCall) or (isinstance(item, Message) and item.role == "assistant" and not item.is_summary)


def is_request(items: Sequence[Item], n: int) -> bool:
    """True if the item at this position begins a response."""
    item, before = items[n], items[n - 1] if n else None
    return is_answer(item) and (before is None or not is_answer(before) or before.agent_id != item.agent_id)


def renamed(items: Iterable[Item]) -> list[Item]:
    """Return the items with ids and times that are the same in every run."""
    items = list(items)
    ids = {item.id: f"i{n:03}" for n, item in enumerate(items)}
    named: list[Item] = []
    for n, item in enumerate(items):
        more: dict[str, Any] = {"replaces": tuple(ids.get(id, id) for id in item.replaces)} if isinstance(item, Compaction) else {}
        named.append(replace(item, id=ids[item.id], created_at=1_700_000_000.0 + n, **more))
    return named


def reported(items: list[Item], usage: str, budget: int, seed: str) -> list[Item]:
    """Return the items with their own usage reports, none, or made-up ones that grow with the log and stay near the budget."""
    if usage == "own":
        return items
    plain = [item if item.usage is None else replace(item, usage=None) for item in items]
    if usage == "none":
        return plain
    rng, size = Random(seed), 0
    factor = rng.choice((0.25, 0.3, 0.4))
    for n, item in enumerate(plain):
        if is_request(plain, n) and size and rng.random() < 0.8:
            tokens = int(min(size * factor, budget * rng.uniform(0.5, 1.0)))
            plain[n] = replace(item, usage=Usage(tokens // 3, tokens - tokens // 3, rng.randrange(9), rng.randrange(200)))
        size += size_of(item)
    return plain


def size_of(item: Item) -> int:
    """Return an estimate of the item's size in characters."""
    return 16 + len(str(getattr(item, "arguments", ""))) + len(str(getattr(item, "text", "")))


@cache
def png(width: int, height: int, shade: int) -> bytes:
    file = BytesIO()
    Picture.new("RGB", (width, height), (shade, 90, 200 - shade)).save(file, "PNG")
    return file.getvalue()


FEATURES = ("agents", "blanks", "categories", "context", "documents", "huge", "images", "late", "orphans", "pins", "summaries", "thoughts")
WORDS = (
    "the",
    "value",
    "of",
    "parse_args",
    "is",
    "not",
    "in_view",
    "read_only",
    "HTTPServer",
    "4711",
    "0x7fe3",
    "while",
    "return",
    "class",
)


@cache
def some_lines() -> list[str]:
    """Return the lines that texts of random logs are made of."""
    rng = Random(0)
    ends = ["", *(f" src/m{number}.py" for number in range(30)), *(f" n{number}" for number in range(99))]
    return [" ".join(rng.choices(WORDS, k=rng.randint(2, 12))) + rng.choice(ends) for _ in range(1_500)]


class RandomLog:
    """A log of 5 to 60 items with a random choice of features.

    Attributes:
        name: The seed and the features.
        items: The items.
    """

    def __init__(self, seed: int) -> None:
        self.rng = rng = Random(seed)
        self.features = {feature for feature in FEATURES if rng.random() < 0.35} | ({"images", "documents"} if seed % 5 == 0 else set())
        self.name = "+".join([f"random-{seed:04}", *sorted(self.features)])
        self.items: list[Item] = []
        self.waiting: list[FunctionCall] = []
        self.agent: str | None = None
        size = rng.randint(5, 60)
        if rng.random() < 0.7:
            self.add(Message, "system", self.text(6))
        while len(self.items) < size:
            for step, chance in ((self.question, 0.5), (self.answer, 0.9), (self.results, 0.95), (self.other, 0.4)):
                if rng.random() < chance:
                    step()
        self.items = renamed(self.items[:size])

    def has(self, feature: str, chance: float) -> bool:
        return feature in self.features and self.rng.random() < chance

    def text(self, scale: int) -> str:
        if self.has("blanks", 0.12):
            return self.rng.choice(("", " ", "\n\t"))
        lines = min(400, int(self.rng.lognormvariate(0, 1.1) * scale / 4) + 1)
        return "\n".join(self.rng.choices(some_lines(), k=lines * (12 if self.has("huge", 0.15) else 1)))

    def content(self, scale: int) -> list[Any]:
        rng, parts = self.rng, list[Any]([self.text(scale)])
        while self.has("images", 0.3):
            data = png(rng.choice((40, 300, 900)), rng.choice((50, 400, 1000)), rng.randrange(0, 200, 40))
            remote = rng.choice((Image(url="https://example.org/a.png", width=640, height=480), Image(file_id="f1")))
            parts.insert(rng.randrange(len(parts) + 1), Image(data=data) if rng.random() < 0.6 else remote)
        if self.has("documents", 0.2):
            documents = Document(text=self.text(scale), title="notes"), Document(url="https://example.org/d.pdf"), Document(file_id="d1")
            parts.append(rng.choice(documents))
        return parts

    def add(self, kind: Any, *values: Any, **named: Any) -> Any:
        if self.has("categories", 0.08):
            named["category"] = self.rng.choice(list(MessageCategory))
        item = kind(*values, **{"pinned": self.has("pins", 0.08), "agent_id": self.agent, **named})
        self.items.append(item)
        return item

    def question(self) -> None:
        is_context = self.has("context", 0.3)
        self.add(Message, "user", self.content(8), **({"category": MessageCategory.CONTEXT} if is_context else {}))

    def answer(self) -> None:
        rng = self.rng
        for _ in range(rng.choice((0, 1, 1, 2)) if "thoughts" in self.features else 0):
            self.add(Reasoning, self.text(5), rng.choice((None, "sig" * 20)), rng.choice((None, None, None, "blob" * 30)))
        if rng.random() < 0.5:
            self.add(Message, "assistant", self.text(4))
        for _ in range(rng.choice((0, 1, 1, 1, 2, 4))):
            tool = rng.choice(("read_file", "read_file", "write_file", "bash", "list_files"))
            arguments: dict[str, Any] = {"path": f"src/m{rng.randrange(3)}.py"}
            arguments |= {"content": self.text(16)} if tool == "write_file" else {"command": self.text(3)} if tool == "bash" else {}
            call_id = f"c{rng.randrange(3)}" if self.has("orphans", 0.3) else f"call{len(self.items)}"
            self.waiting.append(self.add(FunctionCall, tool, json.dumps(arguments), call_id))

    def results(self) -> None:
        self.rng.shuffle(self.waiting)
        for call in list(self.waiting):
            if self.has("late", 0.4):
                continue
            self.waiting.remove(call)
            if not self.has("orphans", 0.1):
                self.add(FunctionCallOutput, call.name, self.content(30), call.call_id, is_error=self.rng.random() < 0.05)
        if self.has("orphans", 0.1):
            self.add(FunctionCallOutput, "bash", self.text(9), self.rng.choice(("c0", "c1", "nobody")))

    def other(self) -> None:
        """Add a handoff, other instructions, a summary, or a late system message."""
        rng = self.rng
        if self.has("agents", 0.5):
            self.agent = rng.choice((None, "x", "y"))
            if rng.random() < 0.5:
                self.add(AgentHandoff, self.agent or "main", agent_id=None)
            if rng.random() < 0.6:
                self.add(AgentConfigUpdate, rng.choice(("Be brief.", self.text(6), None, " ")), ["bash"])
        if self.has("summaries", 0.4):
            start = rng.randrange(len(self.items) + 1) if rng.random() < 0.3 else 0
            replaced = [item.id for item in self.items[start : rng.randrange(len(self.items) + 1)] if rng.random() < 0.95]
            if rng.random() < 0.7:
                self.add(Compaction, self.text(6), replaced)
            else:
                self.add(Message, "assistant", self.text(6), extra={"summary": True})
        if rng.random() < 0.05:
            self.add(Message, rng.choice(("system", "developer")), self.text(4))


# Cases


def cases(folders: Iterable[Path], *, quick: bool) -> Iterator[Case]:
    """Yield all cases, or those of a quick run, in an order in which every part of them is mixed."""
    every = [*transcript_cases(folders, 12 if quick else 1), *random_cases(range(0, RANDOM_LOGS, 18 if quick else 1))]
    return iter(sorted(every, key=lambda case: crc32(case.name.encode())))


def transcript_cases(folders: Iterable[Path], step: int) -> Iterator[Case]:
    names, start = list(SETTINGS), 0
    for log, items in transcripts(folders):
        size = local_tokens(items)
        passes = 6 if len(items) < 25 else 12 if len(items) < 80 else len(names)
        passes = passes // step or 1
        has_usage = any(item.usage for item in items)
        for number in range(start, start + passes):
            rng = Random(f"{log} {number}")
            budgets = [max(200, size * part // 100) for part in (10, 25, 50)] + [most for most in (32_000, 80_000, 120_000) if most < size]
            usage = rng.choice(("none", "none", "own", "made")) if has_usage else rng.choice(("none", "none", "made"))
            yield Case(log, rng.choice(budgets), names[number % len(names)], rng.choice(list(MODELS)), usage, lambda items=items: items)  # type: ignore[misc]
        start += passes


@cache
def sizer() -> ContextWindowManager:
    return ContextWindowManager("claude-opus-4-6", context_window=ContextWindow(max_tokens=10**9, coverage=None))


def local_tokens(items: list[Item]) -> int:
    return sizer().get_token_usage(Session(reported(items, "none", 0, "")))["total"]


def transcripts(folders: Iterable[Path]) -> Iterator[tuple[str, list[Item]]]:
    """Yield the different logs of at least 8 items below these folders, at most their first 900 items."""
    known = set[str]()
    for folder in folders:
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            try:
                sessions = read_transcripts(path)
            except SessionError:
                continue
            for number, session in enumerate(sessions):
                items = renamed(session.items[:ITEMS_MOST])
                key = short_hash(repr(items))
                if len(items) >= 8 and key not in known:
                    known.add(key)
                    yield f"{path.relative_to(folder).as_posix().replace(':', '_')}#{number}", items


def random_cases(seeds: Iterable[int]) -> Iterator[Case]:
    for seed in seeds:
        log = RandomLog(seed)
        rng = Random(f"case {seed}")
        budget = max(60, int(sum(map(size_of, log.items)) / 3.5 * rng.choice((0.1, 0.2, 0.3, 0.5, 0.7, 0.9))))
        setting = "live" if seed % 5 == 0 else rng.choice(list(SETTINGS))
        usage = rng.choice(("none", "none", "made"))
        yield Case(log.name, budget, setting, rng.choice(list(MODELS)), usage, lambda seed=seed: RandomLog(seed).items)  # type: ignore[misc]


# Rows


def short_hash(text: str) -> str:
    return blake2b(text.encode(errors="surrogatepass"), digest_size=6).hexdigest()


def either(value: Any, *names: str) -> Any:
    """Return the attribute that has one of these names."""
    return next(getattr(value, name) for name in names if hasattr(value, name))


def tried(make: Callable[[], Any]) -> Any:
    """Return the result, or the exception's type and figures as a text."""
    try:
        return make()
    except Exception as error:
        values = sorted((name, value) for name, value in vars(error).items() if isinstance(value, int | str))
        return f"{type(error).__name__} {[re.findall(r'[0-9]+', str(value)) for _, value in values]}"


def decision_lines(plan: Plan) -> list[str]:
    lines = []
    for one in plan.decisions:
        details = {
            "images": one.images,
            "refused": one.refused,
            "cut": one.cut and astuple(one.cut),
            "lines": one.lines,
            "digest": one.digest_before,
            "by": one.superseded_by,
        }
        told = "".join(f" {name}={value}" for name, value in details.items() if value not in {None, ()})
        lines.append(f"{one.item_id} {one.category.name} {one.action.name} {one.reason.name} {one.before} {one.after}{told}")
    return lines


def plan_totals(plan: Plan) -> dict[str, Any]:
    return {
        "budget": plan.budget,
        "before": plan.before,
        "after": plan.after,
        "overhead_before": plan.overhead_before,
        "overhead": plan.overhead,
        "protected": plan.protected,
        "calibrated": plan.calibrated,
        "removed": plan.removed and plan.removed.line,
        "usage_noted_after": plan.usage_noted_after,
        "breaks": sorted(plan.breaks),
        "ends": sorted(plan.ends),
        "summaries": sorted(either(plan, "summary_places", "summary_positions").items()),
    }


def view_text(view: Session) -> str:
    return json.dumps([[item.id for item in view.items], view.removed and view.removed.line, view.usage_noted_after])


def wire(view: Session, provider: str, runner: asyncio.Runner) -> Any:
    match provider:
        case "anthropic":
            messages, system = view.to_anthropic_messages(caching=True)
            return messages, system or None  # an empty prompt has two spellings
        case "openai":
            return view.to_openai_messages()
        case "responses":
            return view.to_openai_responses()
    return runner.run(view.to_google_contents())


def wire_text(view: Session, provider: str, runner: asyncio.Runner, **how: Any) -> str:
    return json.dumps(wire(view, provider, runner), sort_keys=True, default=repr, **how)


class Growing:
    """A case whose log grows from one compared prefix to the next."""

    def __init__(self, case: Case, runner: asyncio.Runner, *, fresh: bool = False) -> None:
        self.case, self.runner, self.fresh = case, runner, fresh
        self.rng = Random(f"live {case.name}")
        self.items = reported(case.items(), case.usage, case.budget, case.name)
        self.events = list[str]()
        self.manager = case.manager(lambda event: self.events.append(repr(event)))
        self.session = Session(id="s")
        self.forms = list[tuple[Any, ...]]()
        self.compared = 0

    def prefixes(self) -> Iterator[int]:
        """Append the items, and yield each compared prefix's length when the session has it."""
        looks_always = crc32(self.case.name.encode()) % 2 == 0 and len(self.items) <= 60
        for n, item in enumerate(self.items):
            is_live = self.case.setting == "live" and n > 0 and is_request(self.items, n)
            if n and (is_request(self.items, n) or looks_always or crc32(f"{n} {self.case.name}".encode()) % 4 == 0):
                yield n
            self.session.append(self.live(item) if is_live else item)
        yield len(self.items)

    def live(self, item: Item) -> Item:
        """Call the manager as a program would between a request and its answer; return the answer's item."""
        manager, session, rng = self.manager, self.session, self.rng
        tokens = max(1, int(manager.get_token_usage()["total"] * rng.uniform(0.9, 1.2)))
        match rng.randrange(12):
            case 0 | 1:
                manager.record_usage(Usage(tokens, output_tokens=5), session)
            case 2 | 3 | 4:
                return replace(item, usage=Usage(tokens, output_tokens=7), extra={**item.extra, **manager.answer_notes(session)})
            case 5:
                tried(lambda: manager.accept_refusal(session, PromptTooLongError("long", tokens=tokens * 9 // 8, limit=tokens)))
            case 6 | 7:
                kind = rng.choice(("image", "document", None))
                tried(lambda: manager.accept_refusal(session, PartRefusedError("no", part_kind=kind)))  # type: ignore[arg-type]
            case 8:
                manager.withdraw_refusal(session)
            case 9:
                manager.use_model(rng.choice([name for name in MODELS if name != "characters"]))
            case 10:
                tried(lambda: manager.count_tools(TOOLS))
            case _:
                session.pin(rng.choice(session.items).id)
        return item

    def row(self, n: int) -> Row:
        """Return the hashes of what the manager makes of the session as it is now."""
        self.compared += 1
        if self.fresh:
            self.session, self.manager = Session(self.items[:n], id="s"), self.case.manager()
        manager, session, mark = self.manager, self.session, crc32(f"mark {n} {self.case.name}".encode())
        self.events.clear()
        view, plan = tried(lambda: manager.process_session(session)), None
        row: Row = {"c": self.case.name, "n": n, "v": view if isinstance(view, str) else short_hash(view_text(view))}
        row["u"] = short_hash(json.dumps(tried(manager.get_token_usage), sort_keys=True))
        plan = tried(lambda: manager.plan_session(session))
        row["p"] = plan if isinstance(plan, str) else short_hash("\n".join([*decision_lines(plan), repr(plan_totals(plan))]))
        if not self.fresh:
            row["e"] = short_hash("\n".join(self.events))
        if not isinstance(view, str) and self.is_converted(plan, mark):
            row["w"] = [tried(lambda p=p: short_hash(wire_text(view, p, self.runner))) for p in WIRES]  # type: ignore[misc]
        if mark % 20 == 0:
            row["o"] = [self.one_shot(True), self.one_shot(False)]
            row["a"] = short_hash(json.dumps(tried(lambda: dict(manager.analyze_session(session))), sort_keys=True, default=repr))
        if mark % 45 == 1:
            row["s"] = self.summary()
        return row

    def is_converted(self, plan: Any, mark: int) -> bool:
        """True for a view that is no continuation of the one before, and for some others."""
        if isinstance(plan, str):
            return True
        forms = [(one.action, one.after, one.lines, one.images) for one in plan.decisions]
        before, self.forms = self.forms, forms
        return forms[: len(before)] != before or mark % 10 == 0

    def one_shot(self, preserve_recency: bool) -> str:
        view = tried(lambda: self.manager.trim_session(self.session, preserve_recency))
        if isinstance(view, str):
            return view
        plan: Any = tried(lambda: self.manager.plan_session(self.session, one_shot=True)) if preserve_recency else ""
        return short_hash(view_text(view) + wire_text(view, "openai", self.runner) + ("" if not plan else "\n".join(decision_lines(plan))))

    def summary(self) -> str:
        """Summarise a copy of the log: what was asked, and what the summary replaces."""
        prompts, copy = list[str](), Session(self.session.items, id="copy")

        async def summarizer(prompt: str) -> str:
            prompts.append(prompt)
            return "The user asked, and the agent did it."

        made = tried(lambda: self.runner.run(self.case.manager().compact(copy, summarizer)))
        return made if isinstance(made, str) else short_hash(repr((prompts, made and (made.summary, made.replaces))))


# The verbs


def record(args: argparse.Namespace) -> None:
    part, parts = map(int, args.part.split("/"))
    start, looked, done = time.process_time(), time.monotonic(), Counter[str]()
    known = read_rows(args.skip) if args.skip else {}
    chosen = [case for case in cases(args.folders, quick=args.quick) if is_chosen(case, args) and case.name not in known][part - 1 :: parts]
    print(f"{context_window.__file__}: {len(chosen)} cases, {time.process_time() - start:.0f} s to make them", flush=True)
    with gzip.open(args.out, "wt", encoding="utf-8", compresslevel=4) as file, asyncio.Runner() as runner:
        for number, case in enumerate(chosen, 1):
            growing = Growing(case, runner, fresh=args.fresh)
            rows = [{"c": case.name, "n": 0, "log": short_hash(repr(growing.items))}]
            rows += [growing.row(n) for n in growing.prefixes()]
            file.writelines(json.dumps(row) + "\n" for row in rows)
            done.update(prefixes=len(rows) - 1, conversions=sum(4 for row in rows if "w" in row))
            is_over = args.seconds is not None and time.process_time() - start > args.seconds
            if is_over or number == len(chosen) or time.monotonic() - looked > 15:
                looked = time.monotonic()
                print(f"{number} cases, {dict(done)}, {time.process_time() - start:.0f} CPU-seconds", flush=True)
            if is_over:
                break


def is_chosen(case: Case, args: argparse.Namespace) -> bool:
    return fnmatch(case.name, f"*{args.only}*") and not (args.fresh and case.setting == "live")


def read_rows(paths: str) -> dict[str, dict[int, Row]]:
    """Return the rows of a record by case and prefix. Parts are separated by commas. A record may still be under way."""
    rows: dict[str, dict[int, Row]] = {}
    for path in paths.split(","):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            try:
                for line in file:
                    row = json.loads(line)
                    rows.setdefault(row["c"], {})[row["n"]] = row
            except (EOFError, json.JSONDecodeError):
                print(f"{path} is not complete")
                rows.popitem()
    return rows


def compare(args: argparse.Namespace) -> int:
    old, new = read_rows(args.old), read_rows(args.new)
    left_out = set(args.without.split(","))
    both = sorted(name for name in old.keys() & new.keys() if fnmatch(name, f"*{args.only}*") and not left_out & groups_of(name))
    counts, groups, firsts = Counter[str](), Counter[str](), list[str]()
    for name in both:
        log, wrong = ("log" if old[name][0] != new[name][0] else ""), list[tuple[int, list[str]]]()
        for n in sorted(old[name].keys() & new[name].keys() - {0}):
            a, b = old[name][n], new[name][n]
            shared = [field for field in FIELDS if field in a and field in b]
            differing = [FIELDS[field] for field in shared if a[field] != b[field]]
            counts.update(f"{FIELDS[field]}: compared" for field in shared)
            counts.update(f"{field}: differ" for field in differing)
            counts["prefixes: compared"] += 1
            counts["prefixes: differ"] += bool(differing)
            if differing:
                wrong.append((n, differing))
        counts["prefixes in one record only"] += len(old[name].keys() ^ new[name].keys())
        if wrong:
            firsts.append(f"{name} {wrong[0][0]}: {', '.join(wrong[0][1])} ({len(wrong)} prefixes){' another log' if log else ''}")
        for group in groups_of(name):
            groups[group] += bool(wrong)
        counts["logs that differ"] += bool(log)
    print(*firsts[: args.most], *(["…"] if len(firsts) > args.most else []), sep="\n")
    alone = f"only old: {len(old.keys() - new.keys())}, only new: {len(new.keys() - old.keys())}"
    print(f"\ncases compared: {len(both)}, that differ: {len(firsts)}; {alone}")
    print(*(f"{name}: {count:,}" for name, count in sorted(counts.items())), sep="\n")
    of = Counter(group for name in both for group in groups_of(name))
    print(
        "differing cases by group:", ", ".join(f"{group} {count}/{of[group]}" for group, count in groups.most_common() if count) or "none"
    )
    return 1 if firsts or counts["prefixes in one record only"] else 0


def groups_of(name: str) -> set[str]:
    """Return the setting, the model, the usage, and the features of a random log."""
    log, _, rest = name.rpartition("@")
    random, *features = log.split("+") if log.startswith("random-") else ["transcript"]
    return {*rest.split(":")[1:], random[:6] if features or random != "transcript" else random, *features}


def show(args: argparse.Namespace) -> None:
    case = next(case for case in cases(args.folders, quick=False) if case.name == args.case)
    with asyncio.Runner() as runner:
        growing = Growing(case, runner, fresh=args.fresh)
        for n in growing.prefixes():
            row = growing.row(n)
            if n >= args.prefix:
                break
        plan: Plan = growing.manager.plan_session(growing.session)
        print(*decision_lines(plan), *(f"{name} = {value}" for name, value in plan_totals(plan).items()), row, *growing.events, sep="\n")
        view = growing.manager.process_session(growing.session)
        print(view_text(view))
        for provider in args.wire:
            print(wire_text(view, provider, runner, indent=1, ensure_ascii=False))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    recording, comparing, showing = (verbs.add_parser(verb) for verb in ("record", "compare", "show"))
    recording.add_argument("out")
    recording.add_argument("--seconds", type=float, help="stop after so much processor time")
    recording.add_argument("--part", default="1/1", help="K/N: only every Nth case")
    recording.add_argument("--only", default="*", help="only cases whose name matches")
    recording.add_argument("--skip", help="records whose cases are left out, separated by commas: to go on after an interruption")
    recording.add_argument("--quick", action="store_true", help="a part of the cases: less than a minute")
    showing.add_argument("case")
    showing.add_argument("prefix", type=int)
    showing.add_argument("--wire", action="append", choices=WIRES, default=[])
    for verb in (recording, showing):
        verb.add_argument("--fresh", action="store_true", help="each view by a new manager")
        verb.add_argument("--folders", type=Path, nargs="+", default=FOLDERS, help="transcripts; default: $CONTEXT_WINDOW_TRANSCRIPTS")
    comparing.add_argument("old", help="a record, or its parts, separated by commas")
    comparing.add_argument("new")
    comparing.add_argument("--only", default="*", help="only cases whose name matches")
    comparing.add_argument(
        "--without", default="", help="no cases of these groups (settings, models, features of random logs): late,images"
    )
    comparing.add_argument("--most", type=int, default=40, help="print so many first differences")
    args = parser.parse_args()
    if args.verb == "compare":
        return compare(args)
    record(args) if args.verb == "record" else show(args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
