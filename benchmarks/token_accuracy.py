"""Measure how accurate the estimates of whole requests are, before any response, against the usage that the provider reported.

    python benchmarks/token_accuracy.py [--json] [--svg FILE] [PATH ...]

A path is a file of recorded requests, or a folder of such files: any file that `message_lists` reads and that contains reported usage. The
printed report names the counters and the requests left out, and counts requests that are much the same once. The plot is in
`token_accuracy_plot.py`.
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

from accuracy import OTHER, PROVIDERS, TRANSCRIPTS, family_of, is_held_out, percentile

from context_window import ContextWindow, ContextWindowManager
from context_window.counting.pdf import is_pdf
from context_window.counting.recordings import kind_of
from context_window.models import describe_model
from session import Session
from session.items import FunctionCall, FunctionCallOutput, Item, Message, Reasoning
from session.parts import Document, Image, Part
from session.transcripts import read_transcripts

TRUTH = TRANSCRIPTS / "provider_truth"
SMALL = 1_000
"""Reported tokens below which errors are given in tokens: a percentage of so little means nothing."""
OWN_HOSTS = re.compile(
    r"(^|\.)(api\.anthropic\.com|api\.openai\.com|generativelanguage\.googleapis\.com|[\w-]*aiplatform\.googleapis\.com)$"
)
"""Hosts of the makers of the models. Other hosts may count differently."""
KINDS = {"claude": "anthropic", "openai": "openai", "google": "gemini"}
APIS = {
    "anthropic": "Messages",
    "openai": "Responses",
    "openai_chat": "Chat Completions",
    "openai_responses": "Responses",
    "gemini": "Gemini API",
    "bedrock": "Bedrock Converse",
    "bedrock_converse": "Bedrock Converse",
    "bedrock_invoke": "Bedrock InvokeModel",
}
MAKERS = (
    ("Amazon", r"nova|amazon"),
    ("DeepSeek", r"deepseek"),
    ("Meta", r"llama"),
    ("Mistral", r"mistral|devstral|magistral|codestral|ministral|pixtral"),
    ("Moonshot", r"kimi|moonshot"),
    ("Qwen", r"qwen|qwq"),
    ("xAI", r"grok"),
    ("Zhipu", r"glm"),
)
"""Other makers of models, by words in the names of these."""
UNKNOWABLE = """\
What cannot be known from a transcript, and affects these errors:
- For Gemini, the schema of a structured answer (content `schema`): it is a setting of the request, not part of a session.
  For Claude and OpenAI such settings are counted, since a manager can be given them (`options`).
- Citations: a setting of documents that a session does not keep. Claude's text about them costs some 850 tokens (4 requests).
- The content of media behind a URL. Such requests are left out, as are requests with server-side tools or with a conversation that
  the provider stores.
- In agents' logs, the system prompt and the tools, which most logs lack. Only requests that were recorded completely are used here.
"""


@dataclass(frozen=True, slots=True)
class Record:
    """One request: its reported and its estimated tokens.

    Attributes:
        id: The recording. Requests of one conversation share it, so that they are on the same side of the split.
        provider: The maker of the model.
        family: The group of its models.
        model: Its name.
        api: The API that was asked; with `, resold` if its host is not the maker's.
        content: Kind of content: text, tools, deferred tools, a schema for the answer, thinking, images, PDFs, other documents, sound, or
            video.
        counter: The counter.
        reported: Tokens of the prompt, cached ones included.
        estimated: Tokens, overhead included.
        least: The lower end of the interval that a report on the request states.
        most: Its upper end; None if it has none.
    """

    id: str
    provider: str
    family: str
    model: str
    api: str
    content: str
    counter: str
    reported: int
    estimated: int
    least: int
    most: int | None

    @property
    def held_out(self) -> bool:
        """True if no constant may be fitted on it."""
        return is_held_out(self.id)

    @property
    def is_direct(self) -> bool:
        """True if one of the three makers with an API of their own served its own model. Other hosts may count differently."""
        return self.provider in PROVIDERS.values() and "resold" not in self.api and "Bedrock" not in self.api

    @property
    def is_within(self) -> bool:
        """True if the reported tokens are in the stated interval."""
        return self.least <= self.reported and (self.most is None or self.reported <= self.most)

    @property
    def is_small(self) -> bool:
        """True if its error is given in tokens."""
        return self.reported < SMALL

    @property
    def percent(self) -> float:
        """Absolute error in percent of the report."""
        return 100 * abs(self.estimated - self.reported) / self.reported

    @property
    def error(self) -> float:
        """Estimate minus report: in tokens for a small request, else in percent of the report."""
        difference = self.estimated - self.reported
        return float(difference) if self.is_small else 100 * difference / self.reported


@dataclass(frozen=True, slots=True)
class Errors:
    """Errors of some records, all small or none. In tokens, or in percent.

    Attributes:
        records: Number of records.
        median: Median of the absolute errors.
        p95: 95th percentile of the absolute errors.
        bias: Median of the signed errors; negative if estimates are too low.
        under: Fraction of the records whose estimate is too low.
    """

    records: int
    median: float
    p95: float
    bias: float
    under: float


def errors_of(records: Sequence[Record]) -> Errors | None:
    """Return the errors of the records; None if there are no records."""
    if not records:
        return None
    signed = [record.error for record in records]
    sizes = list(map(abs, signed))
    under = sum(error < 0 for error in signed) / len(signed)
    return Errors(len(sizes), statistics.median(sizes), percentile(sizes, 95), statistics.median(signed), under)


def measure(paths: Iterable[Path]) -> tuple[list[Record], Counter[str]]:
    """Return a record for each request that can be compared, and the number of the others, by reason.

    Tests of one project repeat requests with other ids or dates, so those with the same model, content, report and estimate count once.
    """
    records: dict[tuple[object, ...], Record] = {}
    left_out: Counter[str] = Counter()
    for path in paths:
        for session in read_transcripts(path):
            if reason := reason_against(session):
                left_out[reason] += 1
                continue
            record = record_of(session, path.name)
            key = (record.model, record.api, record.content, record.reported, record.estimated)
            if key in records:
                left_out["much the same as another"] += 1
            records.setdefault(key, record)
    return list(records.values()), left_out


def record_of(session: Session, file: str) -> Record:
    """Estimate a request and return its record."""
    metadata: dict[str, Any] = dict(session.metadata)
    recording: dict[str, Any] = dict(metadata.get("record", {}))
    name = name_of(str(metadata["model"]), recording)
    request: dict[str, Any] = {"tools": metadata.get("tools", ()), "options": metadata.get("options")}
    manager = ContextWindowManager(name, context_window=ContextWindow(max_tokens=10**9), **request)
    stats, usage = manager.analyze_session(session), manager.usage(session)
    place = f"{recording.get('repo', '')}/{recording['path']}" if "path" in recording else f"{file}/{session.id}"
    return Record(
        place,
        maker_of(name),
        family_of(name),
        str(metadata["model"]),
        api_of(recording, describe_model(name).family),
        content_of(session),
        stats["counter"],
        reported_for(session),
        stats["total_tokens"],
        usage.least or 0,
        usage.most,
    )


def name_of(model: str, recording: dict[str, Any]) -> str:
    """Return the model's name with the API that serves it, in the spelling that decides how it is counted."""
    host, kind = str(recording.get("host")), recording.get("kind")
    if reseller := re.search(r"openrouter|vercel", host):
        return f"{reseller[0]}/{model}"
    return f"vertex_ai/{model}" if "aiplatform" in host else f"responses/{model}" if kind == "openai_responses" else model


def maker_of(name: str) -> str:
    """Return the maker of the model, or `other`."""
    known = PROVIDERS.get(describe_model(name).family)
    return known or next((maker for maker, words in MAKERS if re.search(words, name.lower())), OTHER)


def api_of(recording: dict[str, Any], family: str) -> str:
    """Return the API that was asked. The hosts of makers without an API of their own form are not told apart."""
    kind, host = str(recording.get("kind", KINDS.get(family, ""))).removesuffix("_count"), str(recording.get("host", ""))
    api = "Vertex AI" if "aiplatform" in host else APIS.get(kind, kind)
    return api if family not in PROVIDERS or is_own(recording, family) or kind.startswith("bedrock") else f"{api}, resold"


def is_own(recording: dict[str, Any], family: str) -> bool:
    """True if the maker of the model served it, in its own format."""
    own_kind = family in KINDS and str(recording.get("kind", KINDS[family])).startswith(KINDS[family])
    return own_kind and ("host" not in recording or OWN_HOSTS.search(str(recording["host"])) is not None)


def reason_against(session: Session) -> str:
    """Return the reason why the request cannot be compared; empty if it can be."""
    recording: dict[str, Any] = dict(session.metadata.get("record", {}))
    if not reported_for(session):
        return "nothing was reported"
    if session.metadata.get("model") in ("converse", "count-tokens"):
        return "the model is not named"
    if recording.get("server_tools") or recording.get("server_state"):
        return "the provider's own tools, or state that it keeps"
    if any(is_remote(part) for part in parts_of(session)):
        return "media behind a URL"
    return ""


def reported_for(session: Session) -> int:
    """Return the reported tokens of the prompt, cached ones included; 0 if not reported."""
    usage: dict[str, Any] = dict(session.metadata.get("usage", {}))
    return sum(int(usage.get(name, 0)) for name in ("input_tokens", "cache_read_tokens", "cache_write_tokens"))


def parts_of(session: Session) -> Iterator[Part]:
    """Yield the parts of all messages and tool outputs."""
    for item in session.items:
        if isinstance(item, Message):
            yield from item.content
        elif isinstance(item, FunctionCallOutput):
            yield from item.output


def is_remote(part: Part) -> bool:
    """True if the part is media that is known only by its URL or file id."""
    if isinstance(part, Document):
        return part.text is None and part.data is None
    return isinstance(part, Image) and part.data is None


def content_of(session: Session) -> str:
    """Return the kind of content in the request; of several, the one that is hardest to count."""
    media = [part for part in parts_of(session) if isinstance(part, Image | Document)]
    if media:
        return max(map(medium_of, media), key=MEDIA.index)
    options = session.metadata.get("options")
    if any(map(has_thinking, session.items)) or (isinstance(options, dict) and is_thinking(options.get("thinking"))):
        return "thinking"
    if asks_for_schema(options):
        return "schema"
    tools = json.dumps(session.metadata.get("tools") or [], default=dict)
    return "text" if tools == "[]" else "deferred tools" if '"defer_loading": true' in tools else "tools"


MEDIA = ("images", "documents", "PDFs", "sound", "video")
"""Kinds of media, the hardest to count last."""


def medium_of(part: Part) -> str:
    """Return the kind of an image or a document."""
    if not isinstance(part, Document):
        return "images"
    if kind := kind_of(part.media_type):
        return "sound" if kind == "audio" else "video"
    return "PDFs" if part.data is not None and is_pdf(part.data) else "documents"


def has_thinking(item: Item) -> bool:
    """True if the item is the model's thinking, shown or not, or a call that carries its signature."""
    return isinstance(item, Reasoning) or (isinstance(item, FunctionCall) and "thought_signature" in item.metadata)


def is_thinking(option: object) -> bool:
    """True if Anthropic's option turns thinking on."""
    return isinstance(option, dict) and option.get("type") in ("enabled", "adaptive")


def asks_for_schema(options: object) -> bool:
    """True if the request's settings contain a schema for the answer."""
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
    """Yield provider, grouping, group, size (`small` or `large`) and errors. Each grouping has all of a provider's records."""
    for provider in PROVIDERS.values():
        provider_records = [record for record in records if record.provider == provider and record.is_direct]
        for grouping, group_of in GROUPINGS:
            for group in sorted(set(map(group_of, provider_records))):
                for size in ("small", "large"):
                    of_size = [record for record in provider_records if group_of(record) == group and record.is_small == (size == "small")]
                    if (errors := errors_of(of_size)) is not None:
                        yield provider, grouping, group, size, errors


def table(title: str, records: Sequence[Record]) -> str:
    """Return the errors of the records as a plain-text table."""
    lines = [title, f"{'':28}{'records':>8}{'median':>9}{'p95':>9}{'bias':>9}{'under':>7}"]
    for size, unit, heading in (("small", "", f"below {SMALL:,} tokens: tokens"), ("large", "%", f"{SMALL:,} tokens and more: percent")):
        lines.append(heading)
        for provider, grouping, group, of_size, errors in rows(records):
            if of_size == size:
                label = provider if grouping == "all" else f"  {group}"
                cells = (f"{amount:,.1f}{unit}" for amount in (errors.median, errors.p95, errors.bias))
                lines.append(f"{label:28}{errors.records:>8}{''.join(f'{cell:>9}' for cell in cells)}{errors.under:>7.0%}")
    return "\n".join(lines)


def classes(records: Sequence[Record]) -> str:
    """Return the errors of each class, a maker's models behind one API with one kind of content, as a plain-text table."""
    lines = [
        "By class: percent of the report, large and small requests together",
        f"{'':44}{'others':>8}{'median':>9}{'worst':>9}{'held out':>10}{'median':>9}{'worst':>9}",
    ]
    groups: dict[tuple[str, ...], list[Record]] = {}
    for record in records:
        for key in ((record.provider,), (record.provider, record.api), (record.provider, record.api, record.content)):
            groups.setdefault(key, []).append(record)
    order = [*PROVIDERS.values(), *sorted({record.provider for record in records} - set(PROVIDERS.values()))]
    for group, members in sorted(groups.items(), key=lambda entry: (order.index(entry[0][0]), entry[0])):
        sides = ([record.percent for record in members if record.held_out == is_out] for is_out in (False, True))
        label = "  " * (len(group) - 1) + group[-1]
        lines.append(f"{label:44}{'  '.join(map(side_cells, sides))}".rstrip())
    return "\n".join(lines)


def side_cells(percents: Sequence[float]) -> str:
    """Return the number of records of one side, the median and the worst of their errors."""
    if not percents:
        return f"{0:>8}{'':18}"
    return f"{len(percents):>8}{statistics.median(percents):>8.1f}%{max(percents):>8.1f}%"


def as_json(records: Sequence[Record], left_out: Counter[str]) -> str:
    """Return the tables and all records as JSON."""
    sides = {"held_out": [record for record in records if record.held_out], "fitted": [record for record in records if not record.held_out]}
    names = ("provider", "grouping", "group", "size")
    tables = {
        side: [{**dict(zip(names, row, strict=False)), **asdict(row[4])} for row in rows(side_records)]
        for side, side_records in sides.items()
    }
    all_records = [{**asdict(record), "held_out": record.held_out} for record in records]
    return json.dumps({"tables": tables, "left_out": dict(left_out), "records": all_records}, indent=1)


def files_of(paths: Sequence[Path]) -> list[Path]:
    """Return the files, and the `.jsonl` files of the folders, in order."""
    return [file for path in paths for file in (sorted(path.glob("*.jsonl")) if path.is_dir() else [path])]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return the exit code."""
    parser = argparse.ArgumentParser(description="Accuracy of the token estimates of whole requests.")
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="recorded requests: files, or folders of them")
    parser.add_argument("--json", action="store_true", help="print JSON with all records")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="write a plot of the errors to a file")
    options = parser.parse_args(arguments)
    files = files_of(options.paths or [TRUTH])
    if not files:
        print("there are no recorded requests here; name a file or a folder of them", file=sys.stderr)
        return 2
    records, left_out = measure(files)
    if options.svg is not None:
        from token_accuracy_plot import plot  # in the script's own folder, from which Python imports

        options.svg.write_text(plot(records), encoding="utf-8")
    print(as_json(records, left_out) if options.json else report(records, left_out))
    return 0


def within(records: Sequence[Record]) -> str:
    """Return the share of the requests whose report is in the interval that was stated, and how wide it is."""
    if not records:
        return "none"
    widths = [100 * (record.most - record.least) / 2 / record.estimated for record in records if record.most is not None]
    share = sum(record.is_within for record in records) / len(records)
    return f"{share:.0%} of {len(records)}, which is +-{statistics.median(widths or [0]):.0f} % of the estimate (median)"


def report(records: Sequence[Record], left_out: Counter[str]) -> str:
    """Return the printed report."""
    held_out = [record for record in records if record.held_out and record.is_direct]
    fitted = [record for record in records if not record.held_out and record.is_direct]
    counters = ", ".join(sorted({record.counter for record in records}))
    reasons = "".join(f"- {number}: {reason}\n" for reason, number in left_out.most_common())
    return "\n".join(
        (
            table(f"Held out: {len(held_out)} requests on which nothing was fitted", held_out),
            "",
            table(f"The other two thirds: {len(fitted)} requests", fitted),
            "",
            classes(records),
            "",
            *(f"In the stated interval, {side}: {within(of_side)}" for side, of_side in (("held out", held_out), ("others", fitted))),
            f"Counted with {counters}.\nErrors are estimate minus report; `under` is the share of requests that were under-counted.",
            f"Left out, {left_out.total()}:\n{reasons}",
            UNKNOWABLE,
        )
    )


if __name__ == "__main__":
    sys.exit(main())
