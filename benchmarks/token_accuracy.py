"""How far off the counts are: what is estimated of whole requests before any answer, against what the provider reported for them.

    python benchmarks/token_accuracy.py [--json] [--svg FILE] [PATH ...]

A path is a file of recorded requests, or a folder of such files: any that `message_lists` reads and that says what was reported. Where
the counts come from, and what is left out of them, is said below the tables. Drawing is in `token_accuracy_plot.py`.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from accuracy import PROVIDERS, TRANSCRIPTS, at_most, family_of, is_held_out

from context_window import ContextWindow, ContextWindowManager
from context_window.models import describe_model
from session import Session
from session.items import FunctionCallOutput, Message
from session.parts import Document, Image, Part
from session.transcripts import read_transcripts

TRUTH = TRANSCRIPTS / "provider_truth"
SMALL = 1_000
"""Tokens reported below which an error is told in tokens: of so few, a percentage says nothing."""
OWN_HOSTS = re.compile(
    r"(^|\.)(api\.anthropic\.com|api\.openai\.com|generativelanguage\.googleapis\.com|[\w-]*aiplatform\.googleapis\.com)$"
)
"""Where the makers of the models serve them themselves: what others report, they may have counted otherwise."""
KINDS = {"claude": "anthropic", "openai": "openai", "google": "gemini"}
UNKNOWABLE = """\
What cannot be known from a transcript, and is in these errors:
- of OpenAI and Gemini, the schema that an answer must have (content `schema`): a setting of a request that is no part of a session.
  What Claude is told of such settings is counted, since a manager may be told of them (`options`);
- which of the tools that wait to be searched (`defer_loading`) Claude has been shown: all are counted;
- what is in media that a request names by address: such requests are left out, as are those with the provider's own tools, or
  with a conversation that the provider keeps;
- in the logs of agents, the system prompt and the tools, which mostly are not in them. Only requests recorded whole count here.
"""


@dataclass(frozen=True, slots=True)
class Record:
    """One request: what was reported, and what was estimated.

    Attributes:
        id: Where it was recorded; requests of one conversation have it in common, so that they are on the same side of the split.
        provider: Whose model it asked.
        family: Which of its models, roughly.
        content: What is in it: text, tools, images (any media), or a schema for the answer.
        counter: What counted.
        reported: Tokens of the prompt, cached ones included.
        estimated: Tokens, overhead included.
    """

    id: str
    provider: str
    family: str
    content: str
    counter: str
    reported: int
    estimated: int

    @property
    def held_out(self) -> bool:
        """Whether no constant may be fitted on it."""
        return is_held_out(self.id)

    @property
    def is_small(self) -> bool:
        """Whether its error is told in tokens."""
        return self.reported < SMALL

    @property
    def error(self) -> float:
        """Estimated less reported: tokens of a small one, else percent of what was reported."""
        off = self.estimated - self.reported
        return float(off) if self.is_small else 100 * off / self.reported


@dataclass(frozen=True, slots=True)
class Errors:
    """The errors of some records, all small or all not.

    Attributes:
        records: How many.
        median: Of the errors without their signs: tokens, or percent.
        p95: What 95 in 100 of them are at most.
        bias: The median of the errors with their signs; below 0 where too little is counted.
        under: The part of the records of which too little was counted.
    """

    records: int
    median: float
    p95: float
    bias: float
    under: float


def errors_of(records: Sequence[Record]) -> Errors | None:
    """What is to be said of the errors; None of none."""
    if not records:
        return None
    signed = [record.error for record in records]
    sizes = list(map(abs, signed))
    under = sum(error < 0 for error in signed) / len(signed)
    return Errors(len(sizes), statistics.median(sizes), at_most(sizes, 95), statistics.median(signed), under)


def measure(paths: Iterable[Path]) -> tuple[list[Record], Counter[str]]:
    """Every request in the files that can be compared, and of the others how many are left out for which reason."""
    records: list[Record] = []
    left_out: Counter[str] = Counter()
    for path in paths:
        for session in read_transcripts(path):
            if why := reason_against(session):
                left_out[why] += 1
            else:
                records.append(measured(session, path.name))
    return records, left_out


def measured(session: Session, file: str) -> Record:
    """The request's record."""
    metadata: dict[str, Any] = dict(session.metadata)
    about, name = metadata.get("record", {}), str(metadata["model"])
    asked: dict[str, Any] = {"tools": metadata.get("tools", ()), "options": metadata.get("options")}
    manager = ContextWindowManager(name, context_window=ContextWindow(max_tokens=10**9), **asked)
    stats = manager.analyze_session(session)
    place = f"{about.get('repo', '')}/{about['path']}" if "path" in about else f"{file}/{session.id}"
    return Record(
        place,
        PROVIDERS[describe_model(name).family],
        family_of(name),
        content_of(session),
        stats["counter"],
        reported_for(session),
        stats["total_tokens"],
    )


def reason_against(session: Session) -> str:
    """Why the request cannot be compared; empty where it can."""
    about: dict[str, Any] = dict(session.metadata.get("record", {}))
    family = describe_model(str(session.metadata.get("model", ""))).family
    if not reported_for(session):
        return "nothing was reported"
    if about.get("server_tools") or about.get("server_state"):
        return "the provider's own tools, or state that it keeps"
    if family not in PROVIDERS or not str(about.get("kind", KINDS[family])).startswith(KINDS[family]):
        return "not a model of Anthropic, OpenAI or Google in its own format"
    if "host" in about and not OWN_HOSTS.search(str(about["host"])):
        return "not served by the maker of the model"
    if any(is_remote(part) for part in parts_of(session)):
        return "media elsewhere"
    return ""


def reported_for(session: Session) -> int:
    """Tokens of the prompt that the provider reported; 0 where it did not. Cached ones are in it."""
    usage: dict[str, Any] = dict(session.metadata.get("usage", {}))
    return sum(int(usage.get(name, 0)) for name in ("input_tokens", "cache_read_tokens", "cache_write_tokens"))


def parts_of(session: Session) -> Iterator[Part]:
    """The parts of all messages and outputs."""
    for item in session.items:
        if isinstance(item, Message):
            yield from item.content
        elif isinstance(item, FunctionCallOutput):
            yield from item.output


def is_remote(part: Part) -> bool:
    """Whether the part is media that only its address stands for."""
    if isinstance(part, Document):
        return part.text is None and part.data is None
    return isinstance(part, Image) and part.data is None


def content_of(session: Session) -> str:
    """What is in the request, the hardest to count first."""
    if any(isinstance(part, Image | Document) for part in parts_of(session)):
        return "images"
    if asks_for_schema(session.metadata.get("options")):
        return "schema"
    return "tools" if session.metadata.get("tools") else "text"


def asks_for_schema(options: object) -> bool:
    """Whether the request's settings have a schema for the answer in them."""
    if not isinstance(options, dict):
        return False
    names = ("response_format", "output_format", "output_config", "text", "format", "generationConfig")
    inner = any(asks_for_schema(options.get(name)) for name in names)
    typed = str(options.get("type", "")) in ("json_schema", "json_object")
    return typed or inner or any(name in options for name in ("responseSchema", "responseJsonSchema", "json_schema"))


GROUPINGS: tuple[tuple[str, Callable[[Record], str]], ...] = (
    ("all", lambda _: "all"),
    ("family", lambda record: record.family),
    ("content", lambda record: record.content),
)


def rows(records: Sequence[Record]) -> Iterator[tuple[str, str, str, str, Errors]]:
    """Provider, grouping, group, size (`small` or `large`) and errors; in each grouping, all of a provider's records."""
    for provider in PROVIDERS.values():
        own = [record for record in records if record.provider == provider]
        for grouping, group_of in GROUPINGS:
            for group in sorted(set(map(group_of, own))):
                for size in ("small", "large"):
                    of_size = [record for record in own if group_of(record) == group and record.is_small == (size == "small")]
                    if (found := errors_of(of_size)) is not None:
                        yield provider, grouping, group, size, found


def table(title: str, records: Sequence[Record]) -> str:
    """The errors of the records as a table of plain text."""
    lines = [title, f"{'':28}{'records':>8}{'median':>9}{'p95':>9}{'bias':>9}{'under':>7}"]
    for size, unit, heading in (("small", "", f"below {SMALL:,} tokens: tokens"), ("large", "%", f"{SMALL:,} tokens and more: percent")):
        lines.append(heading)
        for provider, grouping, group, of_size, found in rows(records):
            if of_size == size:
                label = provider if grouping == "all" else f"  {group}"
                cells = (f"{amount:,.1f}{unit}" for amount in (found.median, found.p95, found.bias))
                lines.append(f"{label:28}{found.records:>8}{''.join(f'{cell:>9}' for cell in cells)}{found.under:>7.0%}")
    return "\n".join(lines)


def as_json(records: Sequence[Record], left_out: Counter[str]) -> str:
    """The tables and every record as JSON."""
    sides = {"held_out": [record for record in records if record.held_out], "fitted": [record for record in records if not record.held_out]}
    names = ("provider", "grouping", "group", "size")
    tables = {side: [{**dict(zip(names, row, strict=False)), **asdict(row[4])} for row in rows(own)] for side, own in sides.items()}
    every = [{**asdict(record), "held_out": record.held_out} for record in records]
    return json.dumps({"tables": tables, "left_out": dict(left_out), "records": every}, indent=1)


def files_of(paths: Sequence[Path]) -> list[Path]:
    """The files that the paths name, each folder's in order."""
    return [file for path in paths for file in (sorted(path.glob("*.jsonl")) if path.is_dir() else [path])]


def main(arguments: Sequence[str] | None = None) -> int:
    """Does what the command line asks for, and gives the exit code."""
    parser = argparse.ArgumentParser(description="How far off the counts of whole requests are.")
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="recorded requests: files, or folders of them")
    parser.add_argument("--json", action="store_true", help="print JSON, every record in it")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="draw the errors into a file")
    asked = parser.parse_args(arguments)
    files = files_of(asked.paths or [TRUTH])
    if not files:
        print("there are no recorded requests here; name a file or a folder of them", file=sys.stderr)
        return 2
    records, left_out = measure(files)
    if asked.svg is not None:
        from token_accuracy_plot import plot  # beside this file: a script's folder is where it imports from

        asked.svg.write_text(plot(records), encoding="utf-8")
    print(as_json(records, left_out) if asked.json else report(records, left_out))
    return 0


def report(records: Sequence[Record], left_out: Counter[str]) -> str:
    """All that is printed."""
    held = [record for record in records if record.held_out]
    fitted = [record for record in records if not record.held_out]
    counters = ", ".join(sorted({record.counter for record in records}))
    reasons = "".join(f"- {number}: {reason}\n" for reason, number in left_out.most_common())
    return "\n".join(
        (
            table(f"Held out: {len(held)} requests on which nothing was fitted", held),
            "",
            table(f"The other two thirds: {len(fitted)} requests", fitted),
            "",
            f"Counted with {counters}.\nErrors are the estimate less what was reported; `under` is how many were under-counted.",
            f"Left out, {left_out.total()}:\n{reasons}",
            UNKNOWABLE,
        )
    )


if __name__ == "__main__":
    sys.exit(main())
