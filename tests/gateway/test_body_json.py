"""JSON of bodies: a body written again has the same values, and a message has the same bytes in every body."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from context_window.gateway.body_json import VALUES_MAX, body_bytes, json_bytes, object_of, request_object
from tests.gateway.test_gateway_http import post, says, upstream_that
from tests.support.gateways import gateway

Json = dict[str, Any]

texts = st.text(st.sampled_from('aé“🙂"\\]}[{,: \n\x00\x7f\u2028') | st.characters(categories=["Cs"]), max_size=6)
numbers = st.integers() | st.integers(-(2**65), 2**65) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
)


@given(st.dictionaries(texts, values, max_size=4), st.booleans(), st.sampled_from([None, 1]))
@example({"a": 2**64}, False, None)
@example({"a": -(2**63) - 1}, False, None)
@example({"a": "\ud83d"}, True, None)
def test_a_body_is_read_and_written_with_the_same_values(body: Json, is_ascii: bool, indent: int | None) -> None:
    """Also texts that are cut in the middle of a character, and numbers of any size. The order of the fields stays."""
    content = json.dumps(body, ensure_ascii=is_ascii, indent=indent).encode(errors="backslashreplace")
    expected = json.loads(content)
    assert repr(object_of(content)) == repr(expected)
    assert repr(json.loads(json_bytes(expected))) == repr(expected)


@given(st.lists(values, max_size=4), st.lists(values, max_size=4), st.dictionaries(texts, values, max_size=2))
def test_a_body_begins_with_the_bytes_of_the_one_before(messages: list[Any], new: list[Any], others: Json) -> None:
    """Whatever comes later, such as a number that orjson cannot write, the messages before it have the same bytes."""
    earlier, later = ({**others, "messages": each} for each in (messages, [*messages, *new]))
    before = body_bytes(earlier, "messages")
    assert body_bytes(later, "messages").startswith(before[: before.rindex(b"]")])
    assert json.loads(before) == json.loads(json.dumps(earlier))


@pytest.mark.parametrize(
    "body",
    [
        b'{"messages": [{"a": 1}], "messages": [{"b": 2}]}',
        b'{"a": "\\ud83d", "b": 1e5, "c": -0.0, "d": 12345678901234567890123}',
        '{"messages": [{"a": "\u00e9"}]}'.encode("utf-16"),
        '\ufeff{"a": 1}'.encode(),
    ],
)
def test_what_json_reads_is_read(body: bytes) -> None:
    assert repr(object_of(body)) == repr(json.loads(body))


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b'[{"messages": [{"a": 1}]}]',
        b'{"messages": [{"a": 1}] "model": "m"}',
        b'{"messages": [{"a": 1},], "model": "m"}',
        b'{"messages": [{"a": 1}]} more',
        b'{"messages": [{"a": 1}]',
        b'{"messages": [{"a": "\xff"}]}',
        b'{"messages": [' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"]}",
        b'{"number": 1234567890123456789012, "messages": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
        b'{"temperature": NaN}',
        b'{"temperature": -Infinity}',
        b'{"temperature": 1e400}',
        b'{"number": ' + b"1" * 5_000 + b"}",
    ],
)
def test_what_is_no_json_object_is_none(body: bytes) -> None:
    """The upstream gets it as it came, and names the fault. Written again, such a number would be another."""
    assert object_of(body) is None


@pytest.mark.no_cover
@pytest.mark.parametrize("value", [b"[]", b"1.5", b'{"a":1}', b"[" * 900 + b"]" * 900, b"1.2345678901234567890123", b'"\\ud800",[]'])
def test_no_body_that_is_read_keeps_others_waiting(value: bytes) -> None:
    """Nothing else is done meanwhile. One with more values is not read, whatever stands before it."""
    count = VALUES_MAX // (1 + sum(map(value.count, b",[{"))) - 10
    most = b'{"a":[' + (value + b",") * count + b"1]}"
    begun = time.process_time()
    assert request_object(most) is not None
    assert time.process_time() - begun < 3
    for more in (most * 2, b"\xef\xbb\xbf " + most * 2, (most * 2).decode().encode("utf-16")):
        with pytest.raises(OverflowError, match="more than 2,000,000 values"):
            request_object(more)
    assert request_object(b"--a form\r\n" + most * 2) is None


@pytest.mark.parametrize(("strict", "status"), [(False, 200), (True, 400)])
def test_a_body_with_more_values_passes_unread(strict: bool, status: int) -> None:
    """A gateway that must have seen each request refuses it."""
    body = b'{"a":[' + b"1," * VALUES_MAX + b"1]}"
    with upstream_that(says(200, b"{}")) as upstream, gateway(upstream.url, None, strict=strict) as address:
        assert post(address, body=body).status_code == status
    assert [sent == body for sent in upstream.bodies] == [True] * (status == 200)
