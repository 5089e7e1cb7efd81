"""Guarantees of views with refused parts: what holds of any view holds of them."""

from __future__ import annotations

import base64
from typing import Any

from hypothesis import assume, event, given
from hypothesis import strategies as st

from context_window import Action, Decision, Reason
from context_window.recall import recall
from session.items import Item, parts_of_item
from session.parts import Document, Image, Part, Text
from session.providers import validate_anthropic
from session.providers.anthropic import to_anthropic
from session.providers.anthropic.write import media_places
from session.providers.openai_chat import to_openai_chat
from session.providers.openai_chat import write as openai_chat
from session.providers.openai_responses import to_openai_responses
from session.providers.openai_responses import write as openai_responses
from session.session import Session
from session.units import request_points
from tests.support.carried_out import carried_out
from tests.support.checks import check_pairs, check_subsequence
from tests.support.engine import Engine, RefusedParts, Source, original_place, refused_placeholder, source_of_part
from tests.support.harness import copy_of, process, trim
from tests.support.strategies import limits, sessions
from tests.support.twin import cost, responses


def sources(log: Session) -> list[Source]:
    """The images and documents of a log, each once."""
    result = (source_of_part(part) for item in log.items for part in parts_of_item(item))
    return list(dict.fromkeys(source for source in result if source is not None))


@st.composite
def refusals(draw: st.DrawFn, log: Session) -> RefusedParts:
    """Some of a log's images and documents, each with the length of the log at its refusal."""
    candidates = sources(log)
    assume(candidates)
    chosen = draw(st.lists(st.sampled_from(candidates), min_size=1, unique=True))
    return RefusedParts({source: draw(st.integers(0, len(log.items))) for source in chosen})


def is_refused(part: Part, refused: RefusedParts) -> bool:
    return source_of_part(part) in refused.since


@given(st.data())
def test_no_view_holds_a_refused_part_and_the_log_holds_them_all(data: st.DataObject) -> None:
    """the part is shown to the model as a note, from the next view on; the log is not changed; `recall` gives the original"""
    log = data.draw(sessions())
    refused = data.draw(refusals(log))
    bounds = data.draw(limits(sum(map(cost, log.items))))
    before = list(log.items)
    for outcome in (process(log, bounds, refused), trim(log, bounds, refused)):
        assert list(log.items) == before
        assert all(now is then for now, then in zip(log.items, before, strict=True))
        assert not any(is_refused(part, refused) for item in outcome.view.items for part in parts_of_item(item))
        check_subsequence(log, outcome.view)
        check_pairs(log, outcome.view)
        for decision, item in zip(outcome.plan, log.items, strict=True):
            for position in decision.refused:
                event(f"noted in an item that is: {decision.action.name}")
                part = parts_of_item(item)[position]
                assert isinstance(part, Image | Document)
                assert is_refused(part, refused)
                assert recall(outcome.view, f"{item.id}#{original_place(item, position)}") is part
                visible = outcome.view.get_by_id(item.id)
                assert visible is not None
                assert Text(refused_placeholder(item, position, part)) in parts_of_item(visible)


@given(st.data())
def test_a_view_with_notes_is_accounted_for(data: st.DataObject) -> None:
    """a plan has one decision per item, in order; its rows sum exactly to its totals; carried out, it is the view"""
    log = data.draw(sessions())
    refused = data.draw(refusals(log))
    bounds = data.draw(limits(sum(map(cost, log.items))))
    for outcome in (process(log, bounds, refused), trim(log, bounds, refused)):
        plan, view = outcome.plan, outcome.view
        assert [decision.item_id for decision in plan] == [item.id for item in log.items]
        assert [decision.before for decision in plan] == list(map(cost, log.items))
        costs = {decision.item_id: decision.after for decision in plan if decision.action is not Action.DROP}
        assert costs == {item.id: cost(item) for item in view.items}
        assert plan.after == outcome.total
        assert carried_out(plan, log).items == view.items
        assert carried_out(plan, log).response_breaks == view.response_breaks
        for decision in plan:
            noted = decision.action is Action.REPLACE_REFUSED
            assert noted == (decision.reason is Reason.PROVIDER_REFUSED)
            assert noted <= bool(decision.refused)
        assert (view.items == log.items) == (not plan.changes)


@given(st.data())
def test_a_view_with_notes_is_the_same_however_often_and_when_it_is_asked_for(data: st.DataObject) -> None:
    """pure and idempotent: the same log gives the same view, and the same objects, item by item or at once"""
    full_log = data.draw(sessions())
    refused = data.draw(refusals(full_log))
    refused = RefusedParts(dict.fromkeys(refused.since, 0))  # a part that was refused later changes views from then on
    bounds = data.draw(limits(sum(map(cost, full_log.items))))
    log = copy_of(full_log)
    engine = Engine(log, bounds, refused=refused)
    for item in full_log.items:
        log.append(item)
        if data.draw(st.booleans()):
            view = engine.process(log).view
            assert all(now is then for now, then in zip(engine.process(log).view.items, view.items, strict=True))
    assert engine.process(log).view.items == process(log, bounds, refused).view.items


@given(st.data())
def test_a_view_with_notes_fits_where_the_log_with_notes_can(data: st.DataObject) -> None:
    """fits: of a view that is over its budget, no more could be taken if the notes had stood in the log itself"""
    log = data.draw(sessions())
    refused = data.draw(refusals(log))
    refused = RefusedParts(dict.fromkeys(refused.since, 0))
    bounds = data.draw(limits(sum(map(cost, log.items))))
    noted = {item.id: item for item in process(log, bounds.boundless(), refused).view.items}
    twin = copy_of(log)
    for item in log.items:
        twin.append(noted.get(item.id, item))
    there = process(twin, bounds, refused)
    outcome = process(log, bounds, refused)
    assert outcome.total == there.total
    assert outcome.view.items == there.view.items
    assert [decision.after for decision in outcome.plan] == [decision.after for decision in there.plan]


@given(st.data())
def test_notes_stay_and_views_grow_between_trims(data: st.DataObject) -> None:
    """sticky: a note stays a note, and an item with an unchanged decision is shown unchanged"""
    full_log = data.draw(sessions())
    refused = data.draw(refusals(full_log))
    bounds = data.draw(limits(sum(map(cost, full_log.items))))
    points = [response[0] for response in responses(list(full_log.items), full_log.response_breaks)]
    log = copy_of(full_log)
    engine = Engine(log, bounds, refused=refused)
    before: dict[str, tuple[Decision, Item]] = {}
    for start, point in zip([0, *points], points, strict=False):
        for item in full_log.items[start:point]:
            log.append(item)
        outcome = engine.process(log)
        visible = {item.id: item for item in outcome.view.items}
        for entry in outcome.plan:
            if entry.action is Action.DROP:
                continue
            decision, item = before.get(entry.item_id, (entry, visible[entry.item_id]))
            if entry.action is not Action.CLEAR:
                assert entry.refused == decision.refused
            if (entry.action, entry.images, entry.cut) == (decision.action, decision.images, decision.cut):
                assert visible[entry.item_id] == item
            before[entry.item_id] = entry, visible[entry.item_id]


@given(st.data())
def test_a_view_with_notes_is_valid(data: st.DataObject) -> None:
    """every view of a log cut at a request point passes the strict rules of the Messages API"""
    full_log = data.draw(sessions())
    refused = data.draw(refusals(full_log))
    log = copy_of(full_log)
    for item in full_log.items[: data.draw(st.sampled_from(request_points(full_log) or [0]))]:
        log.append(item)
    if not log.items:
        return
    bounds = data.draw(limits(sum(map(cost, log.items))))
    for outcome in (process(log, bounds, refused), trim(log, bounds, refused)):
        request = to_anthropic(outcome.view, caching=True)
        if request.messages:
            assert validate_anthropic(request) == []


@given(st.data())
def test_openai_media_places_are_those_of_the_request(data: st.DataObject) -> None:
    """the same for OpenAI's two APIs: every image and file of the request has its part, at the place that an error would name"""
    log = data.draw(sessions())
    view = process(log, data.draw(limits(sum(map(cost, log.items))))).view
    chat = [message.get("content") for message in to_openai_chat(view, reasoning_model=data.draw(st.booleans()))]
    responses_items = [item.get("content", item.get("output")) for item in to_openai_responses(view)]
    for contents, places in ((chat, openai_chat.media_places(view)), (responses_items, openai_responses.media_places(view))):
        blocks: dict[tuple[int, ...], Any] = {
            (number, position): block
            for number, content in enumerate(contents)
            for position, block in enumerate(content if isinstance(content, list) else [])
        }
        assert set(places) == {where for where, block in blocks.items() if "text" not in block and block["type"] != "refusal"}
        for where, part in places.items():
            event(type(part).__name__)
            content = part.url if part.data is None else base64.b64encode(part.data).decode()
            assert content is not None
            assert content in str(blocks[where])


@given(st.data())
def test_media_places_are_those_of_the_request(data: st.DataObject) -> None:
    """exactly the part that is named: merged messages, preamble, tool results, notes and cache marks included"""
    log = data.draw(sessions())
    view = process(log, data.draw(limits(sum(map(cost, log.items))))).view
    messages, _ = to_anthropic(view, caching=data.draw(st.booleans()))
    places = media_places(view)
    on_the_wire: dict[tuple[int, ...], dict[str, Any]] = {}
    for number, message in enumerate(messages):
        for position, block in enumerate(message["content"]):
            on_the_wire[number, position] = block
            inner = block.get("content", []) if block["type"] == "tool_result" else []
            on_the_wire.update({(number, position, within): entry for within, entry in enumerate(inner)})
    assert set(places) == {position for position, block in on_the_wire.items() if block["type"] in ("image", "document")}
    for where, part in places.items():
        event(f"{type(part).__name__} at {len(where)} numbers")
        source = on_the_wire[where]["source"]
        content = part.url if source["type"] == "url" else part.data
        if isinstance(part, Document):
            assert source["data"] == part.text
        elif source["type"] == "base64" and part.url is not None:
            assert part.url.endswith(source["data"])
        else:
            assert content == (source["url"] if source["type"] == "url" else base64.b64decode(source["data"]))
