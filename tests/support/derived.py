"""What must hold of any session made of others: told from the items alone, with the slow twin's idea of responses and answers."""

from __future__ import annotations

import json
from itertools import pairwise

from session import Session
from session.items import Item
from tests.support.twin import answers, responses


def ids(session: Session) -> list[str]:
    """The ids, in order."""
    return [item.id for item in session.items]


def pairs(session: Session) -> dict[str, str]:
    """By id of a call, that of its output; orphans left out."""
    items = list(session.items)
    return {items[call].id: items[output].id for output, call in answers(items).items() if call is not None}


def response_of(session: Session) -> dict[str, str]:
    """By id of an item that is part of a response, the id of that response's first item."""
    items: list[Item] = list(session.items)
    return {items[index].id: items[run[0]].id for run in responses(items, session.response_breaks) for index in run}


def check_derived(made: Session, *origins: Session) -> None:
    """What stood apart stands apart, no call is without the output it had, no output without its call, and it can be saved."""
    here = {item.id for item in made.items}
    assert len(here) == len(made.items)
    now = response_of(made)
    paired = pairs(made)
    for origin in origins:
        then = response_of(origin)
        candidates = [item_id for item_id in now if item_id in then]
        for item_id, other in pairwise(candidates):
            assert now[item_id] != now[other] or then[item_id] == then[other], f"{other} has become one answer with {item_id}"
        for call, output in pairs(origin).items():
            assert (call in here) == (output in here), f"{call} and {output} are parted"
            assert call not in here or paired.get(call) == output, f"{call} is answered by {paired.get(call)}, not {output}"
    again = Session.from_dict(json.loads(json.dumps(made.to_dict())))
    assert list(again.items) == list(made.items)
    assert (again.id, again.metadata, again.response_breaks) == (made.id, made.metadata, made.response_breaks)
    assert made.response_breaks <= here
    for index, item in enumerate(made.items):
        assert made.position(item.id) == index
