"""Payloads with values that no JSON holds, at every place: the ways back and the validators refuse them with errors of ours."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from session import FormatError
from tests.fuzz.checks import READERS, VALIDATORS, check_session
from tests.fuzz.mutations import OBJECTS, holders
from tests.fuzz.seeds import Seed, seeds

PAYLOADS = [seed for seed in seeds(recorded=False) if seed.reader in VALIDATORS]
every_payload = pytest.mark.parametrize("seed", PAYLOADS, ids=lambda seed: seed.reader)
every_object = pytest.mark.parametrize("place", range(len(OBJECTS)), ids=lambda place: f"{place}-{type(OBJECTS[place]).__name__}")


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every value inside: what holds it, and its name or position there."""
    return [(holder, key) for holder in holders(value) for key in (list(holder) if isinstance(holder, dict) else range(len(holder)))]


@every_payload
@every_object
def test_a_value_that_no_json_holds_is_refused_wherever_it_stands(seed: Seed, place: int) -> None:
    """whatever the value, a way back returns a session or raises FormatError, and a validator returns violations"""
    value = seed.value()
    for holder, key in places(value):
        before, holder[key] = holder[key], OBJECTS[place]
        try:
            session = READERS[seed.reader](value)
        except FormatError:
            pass
        else:
            check_session(session)
        with suppress(FormatError):
            is_json = isinstance(OBJECTS[place], tuple | dict | list)  # as a list, with the key as a text, and as deep as Python writes
            assert VALIDATORS[seed.reader](value) or is_json
        holder[key] = before


@every_payload
def test_a_key_that_is_no_text_is_an_error_of_ours(seed: Seed) -> None:
    value = seed.value()
    for holder in holders(value):
        if isinstance(holder, dict):
            holder[10**5_000] = 1
            with suppress(FormatError):
                READERS[seed.reader](value)
            del holder[10**5_000]


@every_payload
def test_a_message_of_a_validator_shows_a_long_value_in_part(seed: Seed) -> None:
    value = seed.value()
    for holder, key in places(value):
        before, holder[key] = holder[key], "x" * 100_000
        assert all(len(violation.message) < 1_000 for violation in VALIDATORS[seed.reader](value))
        holder[key] = before
