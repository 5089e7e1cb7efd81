"""Cases about logs as sessions, views, limits, images, summaries and the status line."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from context_window import ContextWindow, ContextWindowManager, Image, Session, Usage
from context_window.statusline import status_line
from session import Compaction, FunctionCall, FunctionCallOutput, Message
from session.plan_limits import limits_of
from session.providers import validate_anthropic, validate_google, validate_openai_chat, validate_openai_responses
from session.transcripts import read_account
from tests.support.claude_lines import Log, text
from tests.support.counting import Letters
from tests.support.pictures import png
from tests.support.stubs.pictures import look
from tests.support.tool_logs import pi, pi_call, pi_text

from .bills import Codex, answer, usage, written
from .case import Case

Json = dict[str, Any]
WORDS = "The quick brown fox jumps over the lazy dog. "


def problems_of(session: Session) -> list[str]:
    """Return what four providers would refuse."""
    return [
        *map(str, validate_anthropic(session.to_anthropic_messages())),
        *map(str, validate_openai_chat(session.to_openai_messages())),
        *map(str, validate_openai_responses(session.to_openai_responses())),
        *map(str, validate_google(asyncio.run(session.to_google_contents()))),
    ]


def broken(kind: str, _: Path) -> list[str]:
    """Return what is refused of a session that a crash or a tool has left broken."""
    session = Session()
    if kind == "assistant first":
        session.add_message("assistant", "Hello.")
    session.add_message("user", "Look.")
    if kind == "call without result":
        session.append(FunctionCall("f", "{}", "c1"))
    if kind == "blank answer":
        session.append(Message("assistant", " "))
    if kind == "one id twice":
        for _time in range(2):
            session.append(FunctionCall("f", "{}", "c1"))
            session.append(FunctionCallOutput("f", "done", "c1"))
    session.add_message("user", "Go on.")
    return problems_of(session)


# Logs


def answers_in(log: Log, folder: Path) -> tuple[int, int]:
    """Return how many answers and summaries the first session of a log of Claude Code has."""
    items = read_account(log.write(folder)).sessions[0].items
    said = [item for item in items if isinstance(item, Message) and item.role == "assistant"]
    return len(said), sum(isinstance(item, Compaction) for item in items)


def compacted_log(*, metadata: bool) -> Log:
    log = Log()
    for turn in range(3):
        log.user(f"Question {turn}?")
        log.answer(f"m{turn}", text(f"Answer {turn}."))
    kept = {"compactMetadata": {"trigger": "auto", "preTokens": 160_000}} if metadata else {}
    log.system("compact_boundary", content="Conversation compacted", parentUuid=None, **kept)
    log.user("This session is being continued. So far: three answers.", isCompactSummary=True)
    log.user("And now?")
    log.answer("m9", text("The newest."))
    return log


def torn_log() -> Log:
    """Ten of forty answers follow a line that is not in the log."""
    log = Log()
    for turn in range(40):
        log.user(f"Question {turn}?", **({"parentUuid": f"gone-{turn}"} if turn % 4 == 3 else {}))
        log.answer(f"m{turn}", text(f"Answer {turn}."))
    return log


def new_kinds(folder: Path) -> tuple[int, bool]:
    """Return the items of a log with events and blocks of kinds that nobody knows, and whether the unknown ones are named."""
    log = Log()
    log.user("Look.")
    log.add("telemetry-2027", payload={"x": 1})
    log.answer("m", text("Done."), {"type": "hologram", "data": "x"})
    account = read_account(log.write(folder))
    told = json.dumps([line.reason for line in account.lines]) + json.dumps([str(item.extra) for s in account.sessions for item in s.items])
    return len(account.sessions[0].items), "telemetry-2027" in told and "hologram" in told


def kept_call(folder: Path) -> tuple[list[str], bool]:
    """A compaction of pi keeps a call whose result comes after it: what is refused, and whether the view has the real result."""
    head = {"type": "session", "id": "p-1", "timestamp": "2026-03-01T00:00:00.000Z", "cwd": "/p"}
    entries = [
        head,
        pi("user", [pi_text("look")], 1, id="u1"),
        pi(
            "assistant",
            [pi_call("c1", path="x"), pi_call("c2", path="y")],
            2,
            id="a1",
            parentId="u1",
            model="claude-x",
            stopReason="toolUse",
        ),
        pi("toolResult", [pi_text("real one")], 3, id="r1", parentId="a1", toolCallId="c1", toolName="read"),
        {
            "type": "compaction",
            "id": "k",
            "parentId": "r1",
            "timestamp": "2026-03-01T00:04:00.000Z",
            "summary": "So far.",
            "firstKeptEntryId": "a1",
            "tokensBefore": 9,
        },
        pi("toolResult", [pi_text("second")], 5, id="r2", parentId="k", toolCallId="c2", toolName="read"),
        pi("assistant", [pi_text("done")], 6, id="a2", parentId="r2", stopReason="stop"),
    ]
    session = read_account(written(folder / "log.jsonl", *entries)).sessions[0]
    view = ContextWindowManager(context_window=ContextWindow(max_tokens=100_000)).process_session(session)
    return problems_of(view), "real one" in json.dumps(view.to_anthropic_messages())


# Totals


def meter(folder: Path, status: Json, *records: Json) -> str:
    """Return the status line for what Claude Code passes, beside a transcript."""
    path = written(folder / "log.jsonl", *records)
    return status_line({"transcript_path": str(path)} | status)


FILLED = [answer(f"m{n}", usage(10, 1_000, 126_000 + 2_000 * n, 800)) for n in range(6)]
ADVISED = usage(
    2, 7_853, 226_584, 491,
    iterations=[
        usage(1, 7_000, 109_000, 45, type="message"),
        usage(159_419, 0, 0, 7_805, type="advisor_message", model="claude-opus-4-8"),
        usage(1, 853, 116_696, 446, type="message"),
    ],
)  # fmt: skip


def shown_after(compaction: Json, folder: Path) -> bool:
    """True if the line after `/compact` still has the figure from before."""
    window = {"context_window_size": 200_000, "current_usage": None}
    boundary = {"type": "system", "subtype": "compact_boundary", "compactMetadata": compaction}
    return "13" in meter(folder, {"model": {"id": "x"}, "context_window": window}, *FILLED, boundary)


def percent(size: int, filled: Json, folder: Path) -> str:
    return meter(folder, {"model": {"id": "x"}, "context_window": {"context_window_size": size, "current_usage": filled}})


def total_after_advisor(folder: Path) -> bool:
    """True if the total of a session is near what the window holds after an advisor's pass, not the sum of its passes."""
    log = Log()
    log.user("Look.")
    log.answer("m", text("Done."), usage=ADVISED, model="claude-sonnet-4-6")
    session = read_account(log.write(folder)).sessions[0]
    return 110_000 < ContextWindowManager("claude-sonnet-4-6").get_token_usage(session)["total"] < 125_000


def advised_view(folder: Path) -> bool:
    """True if the whole session is in the view after an advisor's pass."""
    log = Log()
    for turn in range(29):
        log.user(f"Question {turn}?")
        log.answer(f"m{turn}", text(WORDS * 5), usage=usage(10, 4_000, 4_000 * turn, 200), model="claude-sonnet-4-6")
    log.user("Ask the advisor.")
    log.answer("m99", text("Done."), usage=ADVISED, model="claude-sonnet-4-6")
    session = read_account(log.write(folder)).sessions[0]
    view = ContextWindowManager("claude-sonnet-4-6", context_window=ContextWindow(max_tokens=180_000)).process_session(session)
    return len(view) == len(session)


def after_codex_compaction(folder: Path) -> bool:
    """True if a session of Codex that was compacted counts neither what it had before, nor nothing."""
    log = Codex("c")
    for turn in range(10):
        log.asks(turn, 20_000 * (turn + 1), 100)
    summary = [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "So far."}]}]
    log.records.append((20, {"type": "compacted", "payload": {"message": "So far.", "replacement_history": summary}}))
    said = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "And now?"}]}
    log.records.append((21, {"type": "response_item", "payload": said}))
    session = read_account(log.write(folder)).sessions[0]
    return 0 < ContextWindowManager("gpt-5").get_token_usage(session)["total"] < 60_000


def due(total: int, budget: int, _: Path) -> bool:
    """True if a summary is due in a session with a reported prompt of this size."""
    asked: list[str] = []
    session = Session()
    for turn in range(6):
        session.add_message("user", f"Question {turn}?")
        session.append(Message("assistant", WORDS * 20, usage=Usage(total // 6 * (turn + 1), output_tokens=200)))
    session.add_message("user", "And now?")
    asyncio.run(ContextWindowManager(context_window=ContextWindow(max_tokens=budget)).manage(session, writer(asked)))
    return bool(asked)


# Summaries and what they lose


def writer(asked: list[str], words: str = "So far: all is well.") -> Callable[[str], Any]:
    async def write(prompt: str) -> str:
        asked.append(prompt)
        return words

    return write


def long_talk(**window: Any) -> tuple[ContextWindowManager, Session]:
    return ContextWindowManager(None, Letters(), context_window=ContextWindow(max_tokens=3_000, keep_recent_turns=1, **window)), Session()


def kept_rules(what: str, _: Path, *, is_pinned: bool = False, **window: Any) -> bool:
    """True if rules, or the first task, are word for word in the view after each of many summaries."""
    manager, session = long_talk(**window)
    session.add_message("system", "Be brief, always.")
    session.add_context("CLAUDE.md: never touch the tests.", pinned=is_pinned)
    session.add_message("user", "Mend the report of sales.")
    asked: list[str] = []

    async def turns() -> bool:
        for turn in range(60):
            session.add_message("assistant", f"Step {turn}. " + WORDS * 8)
            session.add_message("user", f"Go on {turn}.")
            view = await manager.manage(session, writer(asked))
            if what not in json.dumps([view.to_openai_messages()]):
                return False
        return len(asked) >= 3

    return asyncio.run(turns())


def large_summary(_: Path) -> bool:
    """True if a summary that is larger than what it replaces is kept."""
    manager, session = long_talk()
    for turn in range(9):
        session.add_message("user", f"Question {turn}. " + WORDS * 8)
        session.add_message("assistant", WORDS * 25)
    session.add_message("user", "And now?")
    asyncio.run(manager.manage(session, writer([], WORDS * 2_000)))
    return any(isinstance(item, Compaction) for item in session.items)


def summaries_in_turns(turns: int, _: Path) -> bool:
    """True if at most five summaries are asked for in some turns whose system prompt fills most of the window."""
    asked: list[str] = []
    manager, session = long_talk()
    session.add_message("system", WORDS * 200)

    async def go() -> None:
        for turn in range(turns):
            session.add_message("user", f"Question {turn}?")
            session.add_message("assistant", WORDS * 2)
            await manager.manage(session, writer(asked))

    asyncio.run(go())
    return len(asked) <= 5


def late_answer(_: Path) -> tuple[list[str], bool]:
    """A call waits for its result through many turns: what is refused, and whether the late answer is in the view."""
    manager, session = long_talk()
    session.add_message("user", "Ask the boss.")
    session.append(FunctionCall("ask", "{}", "c1"))
    for turn in range(30):
        session.add_message("user", f"Anything else {turn}? " + WORDS * 5)
        session.add_message("assistant", WORDS * 5)
    session.append(FunctionCallOutput("ask", "The boss says yes.", "c1"))
    view = manager.process_session(session)
    return problems_of(view), "The boss says yes." in json.dumps(view.to_openai_messages())


def large_result(_: Path) -> list[int]:
    """Return which results are whole in a view: one is large, four are small."""
    session = Session()
    session.add_message("user", "Look.")
    for index in range(5):
        session.append(FunctionCall("f", "{}", f"c{index}"))
        session.append(FunctionCallOutput("f", f"result {index}. " + (WORDS * 4_000 if index == 2 else WORDS * 3), f"c{index}"))
        session.append(Message("assistant", f"Done {index}."))
    session.add_message("user", "And now?")
    view = ContextWindowManager(context_window=ContextWindow(max_tokens=20_000)).process_session(session)
    outputs = [item for item in view.items if isinstance(item, FunctionCallOutput)]
    return [index for index in range(5) if any(f"result {index}. {WORDS * 3}".strip() in str(item.text) for item in outputs)]


# Images


def screenshots(number: int, width: int = 1_000, height: int = 800) -> tuple[int, int]:
    """Return how many images stay of as many, one a turn, and how many requests do not begin with the one before."""
    manager, session = ContextWindowManager(context_window=ContextWindow(max_tokens=190_000)), Session()
    before: list[str] = []
    breaks = kept = 0
    for index in range(number):
        session.add_message("user", [f"Shot {index}.", Image(png(width, height, padding=index))])
        session.add_message("assistant", "Seen.")
        view = manager.process_session(session)
        now = [json.dumps(message) for message in view.to_openai_messages()]
        breaks += now[: len(before)] != before
        before, kept = now, sum(isinstance(part, Image) for item in view.items for part in getattr(item, "content", ()))
    return kept, breaks


def many_images(count: int, width: int, height: int, _: Path) -> tuple[list[str], bool]:
    """Return what is refused of a request with as many images, and whether one is larger than 2,000 pixels where there are more than 20."""
    session = Session()
    for index in range(count):
        session.add_message("user", ["Look.", Image(png(width, height, padding=index))])
        session.add_message("assistant", "Seen.")
    session.add_message("user", "And now?")
    view = ContextWindowManager("claude-sonnet-4-5").process_session(session)
    payload = view.to_anthropic_messages()
    blocks = [block for message in payload[0] for block in message["content"] if block["type"] == "image"]
    pictures = [look(base64.b64decode(block["source"]["data"])) for block in blocks]
    largest = max(max(picture.width, picture.height) for picture in pictures if picture is not None)
    return [str(problem) for problem in validate_anthropic(payload)], len(pictures) > 20 and largest > 2_000


def plan_in_the_line(_: Path) -> tuple[bool, bool]:
    """Return whether the line shows the parts of both limits of a plan."""
    limits = {"five_hour": {"used_percentage": 42, "resets_at": 1_900_000_000}, "seven_day": {"used_percentage": 86}}
    line = status_line({"model": {"id": "Opus"}}, limits_of("claude_code", limits, 1_899_990_000.0))
    return "5h 42%" in line, "7d 86%" in line


def beside_sub_agents(folder: Path) -> str:
    """Return the line of a conversation whose sub-agent has used more."""
    lines = [answer("m", usage(10, 990, 53_000, 1_000)), answer("k", usage(10, 0, 120_000, 9), isSidechain=True)]
    line = meter(folder, {"model": {"id": "x"}, "context_window": {"context_window_size": 200_000}}, *lines)
    return line.partition(" · cache")[0]


CASES: dict[str, Case] = {
    "B050": Case(partial(answers_in, compacted_log(metadata=True)), (4, 1)),
    "B052": Case(partial(answers_in, compacted_log(metadata=False)), (4, 1)),
    "B053": Case(partial(answers_in, torn_log()), (40, 0)),
    "B055": Case(new_kinds, (2, True)),
    "B057": Case(kept_call, ([], True)),
    "B080": Case(partial(broken, "call without result"), []),
    "B081": Case(partial(broken, "blank answer"), []),
    "B083": Case(partial(broken, "one id twice"), []),
    "B084": Case(partial(broken, "assistant first"), []),
    "B087": Case(large_result, [0, 1, 3, 4]),
    "B088": Case(late_answer, ([], True)),
    "B091": Case(partial(due, 32_000, 100_000), False),
    "B092": Case(large_summary, False),
    "B093": Case(partial(summaries_in_turns, 30), True),
    "B095": Case(partial(many_images, 25, 1_170, 2_532), ([], False)),
    "B096": Case(partial(many_images, 130, 200, 200), ([], False)),
    "B097": Case(lambda _: screenshots(2), (2, 0)),
    "B079e": Case(lambda _: screenshots(20), (20, 0)),
    "B100b": Case(partial(kept_rules, "CLAUDE.md: never touch the tests.", is_pinned=True), True),
    "B100": Case(partial(kept_rules, "CLAUDE.md: never touch the tests."), True),
    "B100+": Case(partial(kept_rules, "Be brief, always."), True),
    "B101": Case(partial(kept_rules, "Mend the report of sales."), True),
    "B102": Case(partial(kept_rules, "Mend the report of sales.", keep_first_message=True), True),
    "B105": Case(after_codex_compaction, True),
    "B107": Case(advised_view, True),
    "B111": Case(partial(shown_after, {"preTokens": 138_000, "postTokens": 9_000}), False),
    "B111+": Case(partial(shown_after, {"preTokens": 138_000}), False),
    "B112": Case(partial(percent, 200_000, usage(0, 1_000, 259_000, 900)), "x · 261k · cache 99%"),
    "B114": Case(partial(percent, 200_000, ADVISED), "x · 118k of 200k (59%) · cache 99%"),
    "B115": Case(total_after_advisor, True),
    "B116": Case(partial(meter, status={"model": {"id": "Opus"}, "context_window": {"current_usage": None}}), "Opus"),
    "B118": Case(partial(meter, status={"context_window": None, "model": None}), "no request yet"),
    "B170": Case(plan_in_the_line, (True, True)),
    "B176": Case(beside_sub_agents, "x · 55k of 200k (28%)"),
}
WINDOW = re.compile(r"(\S+): window ([\d,]+), less output$")
"""How a list of cases states a model's window."""


def windowed(expected: str) -> Case | None:
    """Return the case of a model's name and its window; None if the text states none."""
    stated = WINDOW.match(expected)
    if stated is None:
        return None
    size = int(stated[2].replace(",", ""))
    return Case(lambda _: size * 3 // 4 < ContextWindowManager(stated[1]).total_budget <= size, True)
