"""Tokens of the thinking behind a call to Gemini 2.5, from the signature that the call carries."""

from __future__ import annotations

from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window.counting.framing import SealedCalls, signature_tokens


def signature(*chunks: int) -> str:
    """Return a signature with a field for each chunk, of these lengths below 128 bytes."""
    return b64encode(b"".join(bytes((0x0A, length)) + b"x" * length for length in chunks)).decode()


@pytest.mark.parametrize(
    ("rule", "chunks", "tokens"),
    [
        ("gemini 2.5", (113,), 0),  # not streamed: free
        ("gemini 2.5", (33, 113, 73), (80 + 40) // 4),
        ("vertex 2.5", (113,), 20),
        ("vertex 2.5", (10,), 0),
        ("", (113, 113), 0),
    ],
)
def test_streamed_thinking_costs_a_quarter_of_its_bytes(rule: SealedCalls, chunks: tuple[int, ...], tokens: int) -> None:
    assert signature_tokens(signature(*chunks), rule) == tokens


@pytest.mark.parametrize("text", ["", "c2tpcF90aG91", "not base64!", "E", "CgF"])
def test_other_signatures_cost_nothing(text: str) -> None:
    assert signature_tokens(text, "gemini 2.5") == 0


@given(st.one_of(st.text(max_size=200), st.binary(max_size=200).map(lambda data: b64encode(b"\n" + data).decode())))
def test_any_signature_costs_at_most_its_bytes(text: str) -> None:
    for rule in ("gemini 2.5", "vertex 2.5", "gemini 3"):
        assert 0 <= signature_tokens(text, rule) <= max(1, len(text.encode("utf-8", "replace")))
