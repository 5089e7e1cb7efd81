"""The strategies are checked themselves: what the properties are tried on must trim, and must reach the hard corners.

The examples are the same on every run of the profile `ci`. In others they depend on the modules that are loaded, and the counts of some
corners vary by a factor of three. So the bounds are far below the usual counts, which `--hypothesis-show-statistics` tells.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st

from context_window import Action, Reason
from session.items import FunctionCall, FunctionCallOutput, Item, Message, MessageCategory, Reasoning
from session.parts import Document, Image
from session.session import Session
from session.units import request_points
from tests.support.checks import parts_of
from tests.support.engine import Limits, Outcome
from tests.support.harness import process, trim
from tests.support.strategies import limits, sessions
from tests.support.twin import answers, cost, responses

EXAMPLES = 500

MANNERS = ("process", "trim")

TRIMMED = {Reason.OVER_SHARE, Reason.OVER_BUDGET, Reason.TOO_MANY_ITEMS, Reason.TOO_MANY_IMAGES, Reason.LAST_RESORT}
"""Why a trim takes something. Compactions, outputs without calls and bound reasoning go without one, and do not count here."""

LEAST_OFTEN: dict[str, float] = {
    **{f"{manner}: trims": 1 / 5 for manner in MANNERS},
    **{f"{manner}: {action.name}": 1 / 20 for manner in MANNERS for action in (Action.CLEAR, Action.DROP, Action.TRUNCATE)},
    **{f"{manner}: {Action.REPLACE_IMAGES.name}": 1 / 50 for manner in MANNERS},
    **{f"{manner}: over budget all the same": 1 / 20 for manner in MANNERS},
    **{f"{manner}: cleared call": 1 / 100 for manner in MANNERS},
    "trims before the last response": 1 / 5,
    # The frontier
    "drops unread CONTEXT": 1 / 50,
    "replaces some unread images": 1 / 100,
    "truncates a function_call": 1 / 20,
    "truncates a message": 1 / 50,
    "process: fits": 1 / 20,
    "trim: fits": 1 / 20,
    # Logs
    "empty session": 1 / 500,  # the first of all, always
    "session of one item": 1 / 500,
    "more than 30 items": 1 / 10,
    "parallel calls": 1 / 5,
    "outputs in another order than their calls": 1 / 20,
    "output after something else was said": 1 / 20,
    "output after its response is no longer the last": 1 / 50,
    "call in flight": 1 / 20,
    "call interrupted in the middle": 1 / 20,
    "output without a call": 1 / 250,
    "second output of a call": 1 / 250,
    "call id used again": 1 / 50,
    "failed call": 1 / 20,
    "signed reasoning": 1 / 5,
    "sealed reasoning": 1 / 5,
    "two agents": 1 / 20,
    "responses that stand apart": 1 / 20,
    "several images in one message": 1 / 20,
    "image in an output": 1 / 20,
    "image by its bytes": 1 / 50,
    "image in its address": 1 / 50,
    "document in a message": 1 / 50,
    "document in an output": 1 / 50,
    "summary": 1 / 20,
    "compaction": 1 / 20,
    "system message in the middle": 1 / 20,
    **{f"pinned {category.name}": 1 / 250 for category in MessageCategory},
    "pinned output": 1 / 50,
    # Limits
    "SYSTEM larger than the budget": 1 / 50,
    "an item larger than the budget": 1 / 20,
    "budget of a few tokens": 1 / 50,
    "budget of more than twice the log": 1 / 50,
    "shares all of 0": 1 / 500,
    "a share of all": 1 / 500,
    "no images kept": 1 / 50,
    "items limited": 1 / 20,
    "trims to less than what calls for one": 1 / 5,
    "thinking bound": 1 / 20,
}
"""What must be reached, and in what part of the examples at least. Trims and actions are promised so; the others keep corners
from getting lost."""


def reached() -> Counter[str]:
    """How many examples reached what."""
    counts: Counter[str] = Counter()

    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def look(data: st.DataObject) -> None:
        log = data.draw(sessions())
        bounds = data.draw(limits(sum(map(cost, log.items))))
        result = {*of_log(log), *of_limits(log, bounds)}
        for manner, outcome in zip(MANNERS, (process(log, bounds), trim(log, bounds)), strict=True):
            result.update(of_outcome(manner, outcome))
            result.update(of_frontier(outcome))
        if starts := request_points(log)[:-1]:
            earlier = Session.showing(log, list(log.items[: starts[-1]]), breaks=log.response_breaks, settled=0)
            if any(entry.reason in TRIMMED for entry in process(earlier, bounds).plan):
                result.add("trims before the last response")
        for name in result:
            event(name)
        counts.update(result)
        counts["examples"] += 1

    look()
    return counts


def of_outcome(manner: str, outcome: Outcome) -> Iterator[str]:
    """What a call came to, by its final decisions: an output that was cleared and then dropped is dropped."""
    trimming = [one for one in outcome.plan if one.reason in TRIMMED]
    yield from (f"{manner}: {one.action.name}" for one in trimming)
    if trimming:
        yield f"{manner}: trims"
    if any(one.action is Action.CLEAR and isinstance(outcome.log.get_by_id(one.item_id), FunctionCall) for one in trimming):
        yield f"{manner}: cleared call"
    if outcome.view.items == outcome.log.items:
        yield f"{manner}: fits"
    if outcome.plan.over_budget:
        yield f"{manner}: over budget all the same"


def of_frontier(outcome: Outcome) -> Iterator[str]:
    """The corners of a frontier that shrinks."""
    if any(entry.reason is Reason.UNREAD_CONTEXT for entry in outcome.plan):
        yield "drops unread CONTEXT"
    for item, entry in zip(outcome.log.items, outcome.plan, strict=True):
        if entry.reason is not Reason.LAST_RESORT:
            continue
        images = sum(isinstance(part, Image) for part in parts_of(item))
        if 0 < len(entry.images) < images:
            yield "replaces some unread images"
        if entry.cut:
            yield f"truncates a {item.type}"


def of_log(log: Session) -> Iterator[str]:
    """The corners of a log, found by plain search."""
    items = list(log.items)
    if len(items) < 2:
        yield "session of one item" if items else "empty session"
    if len(items) > 30:
        yield "more than 30 items"
    yield from of_calls(items, log.response_breaks)
    for position, item in enumerate(items):
        if item.pinned:
            yield f"pinned {item.category.name}"
            if isinstance(item, FunctionCallOutput):
                yield "pinned output"
        if isinstance(item, Reasoning):
            yield "signed reasoning" if item.text else "sealed reasoning"
        elif isinstance(item, FunctionCallOutput):
            if any(isinstance(part, Image) for part in item.output):
                yield "image in an output"
            if any(isinstance(part, Document) for part in item.output):
                yield "document in an output"
            if item.is_error:
                yield "failed call"
        elif isinstance(item, Message):
            if sum(isinstance(part, Image) for part in item.content) > 1:
                yield "several images in one message"
            if any(isinstance(part, Document) for part in item.content):
                yield "document in a message"
            if item.is_summary:
                yield "summary"
            if item.role == "system" and position:
                yield "system message in the middle"
        images = [part for part in getattr(item, "content", getattr(item, "output", ())) if isinstance(part, Image)]
        if any(image.data for image in images):
            yield "image by its bytes"
        if any((image.url or "").startswith("data:") for image in images):
            yield "image in its address"
        if item.type == "compaction":
            yield "compaction"
    if len({item.agent_id for item in items}) > 1:
        yield "two agents"
    if log.response_breaks:
        yield "responses that stand apart"


def of_calls(items: list[Item], breaks: frozenset[str]) -> Iterator[str]:
    answered = answers(items)
    content = responses(items, breaks)
    calls = [position for position, item in enumerate(items) if isinstance(item, FunctionCall)]
    ids = [item.call_id for item in items if isinstance(item, FunctionCall)]
    if len(set(ids)) < len(ids):
        yield "call id used again"
    for response in content:
        if len([position for position in response if position in calls]) > 1:
            yield "parallel calls"
    for position in calls:
        if position not in answered.values():
            yield "call in flight" if position in content[-1] else "call interrupted in the middle"
    pairs = [(call, position) for position, call in answered.items() if call is not None]
    for call, position in pairs:
        response = next(entry for entry in content if call in entry)
        between = items[response[-1] + 1 : position]
        if not all(isinstance(item, FunctionCallOutput) for item in between):
            yield "output after something else was said"
        if any(response[-1] < later[0] < position for later in content):
            yield "output after its response is no longer the last"
        if any(other > call and answer < position and other in response for other, answer in pairs):
            yield "outputs in another order than their calls"
    for position, item in enumerate(items):
        if isinstance(item, FunctionCallOutput) and answered[position] is None:
            yield "second output of a call" if item.call_id in ids else "output without a call"


def of_limits(log: Session, bounds: Limits) -> Iterator[str]:
    """The corners of limits, given their log."""
    costs = [(item.category, cost(item)) for item in log.items]
    if sum(tokens for category, tokens in costs if category is MessageCategory.SYSTEM) > bounds.budget:
        yield "SYSTEM larger than the budget"
    if any(tokens > bounds.budget for _, tokens in costs):
        yield "an item larger than the budget"
    if bounds.budget < 10:
        yield "budget of a few tokens"
    if bounds.budget > 2 * sum(tokens for _, tokens in costs) > 0:
        yield "budget of more than twice the log"
    if not any(bounds.shares):
        yield "shares all of 0"
    if 1 in bounds.shares:
        yield "a share of all"
    if not bounds.images_kept:
        yield "no images kept"
    if bounds.items_max is not None:
        yield "items limited"
    if bounds.target < bounds.trigger:
        yield "trims to less than what calls for one"
    if bounds.binds_thinking:
        yield "thinking bound"


@pytest.mark.long
@pytest.mark.no_cover  # its examples are drawn
def test_the_strategies_reach_every_corner_often_enough() -> None:
    """All corners in one test: the examples are the same for each, and two workers would both make them."""
    counts = reached()
    assert counts["examples"] == EXAMPLES
    rare = {name: f"{counts[name]} of {EXAMPLES} examples" for name, part in LEAST_OFTEN.items() if counts[name] < part * EXAMPLES}
    assert rare == {}
