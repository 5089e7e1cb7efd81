"""Payloads with a value that is not JSON at any place: readers and validators refuse them with a `FormatError` or a violation."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from session import FormatError
from tests.fuzz.checks import READERS, VALIDATORS, check_session
from tests.fuzz.mutations import containers, objects
from tests.fuzz.seeds import Seed, seeds

PAYLOADS = [seed for seed in seeds(recorded=False) if seed.reader in VALIDATORS]
every_payload = pytest.mark.parametrize("seed", PAYLOADS, ids=lambda seed: seed.reader)
every_object = pytest.mark.parametrize("index", range(len(objects())), ids=lambda index: f"{index}-{type(objects()[index]).__name__}")


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return the container and the key of every value inside."""
    return [(holder, key) for holder in containers(value) for key in (list(holder) if isinstance(holder, dict) else range(len(holder)))]


@every_payload
@every_object
def test_a_value_that_is_not_json_is_refused_at_every_place(seed: Seed, index: int) -> None:
    """For any value, a reader returns a session or raises FormatError, and a validator returns violations."""
    value, replacement = seed.value(), objects()[index]
    for holder, key in places(value):
        before, holder[key] = holder[key], replacement
        try:
            session = READERS[seed.reader](value)
        except FormatError:
            pass
        else:
            check_session(session)
        with suppress(FormatError):
            is_json = isinstance(replacement, tuple | dict | list)  # as a list, with the key as a text, and as deep as Python writes
            assert VALIDATORS[seed.reader](value) or is_json
        holder[key] = before


@every_payload
def test_a_key_that_is_not_a_text_is_a_format_error(seed: Seed) -> None:
    value = seed.value()
    for holder in containers(value):
        if isinstance(holder, dict):
            holder[10**5_000] = 1
            with suppress(FormatError):
                READERS[seed.reader](value)
            del holder[10**5_000]


@every_payload
def test_a_violation_shows_only_part_of_a_long_value(seed: Seed) -> None:
    value = seed.value()
    for holder, key in places(value):
        before, holder[key] = holder[key], "x" * 100_000
        assert all(len(violation.message) < 1_000 for violation in VALIDATORS[seed.reader](value))
        holder[key] = before
