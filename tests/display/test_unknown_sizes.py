"""Files behind a URL or a file id: their counts, and that a report says so until the provider has reported them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from context_window import ContextWindow, ContextWindowManager, Session
from session.items import FunctionCall, FunctionCallOutput, Message
from session.parts import Document, Image, Part, Text
from session.usage import Usage

KNOWN: list[Part] = [Text("words"), Image(url="u", width=64, height=64), Document(text="words"), Document(data=b"%PDF-1.4 /Type /Page ")]
UNKNOWN: list[Part] = [Image(url="u"), Image(file_id="f"), Document(url="u"), Document(file_id="f", media_type="application/pdf")]


def manager() -> ContextWindowManager:
    return ContextWindowManager("claude-sonnet-4-5", context_window=ContextWindow(max_tokens=100_000))


@given(st.lists(st.sampled_from([*KNOWN, *UNKNOWN]), min_size=1, max_size=6))
def test_a_report_counts_the_files_whose_size_only_the_provider_knows(parts: list[Part]) -> None:
    """Those behind a URL or a file id. The total is then rough, and shown as such."""
    report = manager().usage(Session(items=(Message("user", parts), FunctionCall("a", "{}", "c"), FunctionCallOutput("a", parts, "c"))))
    expected = 2 * sum(part in UNKNOWN for part in parts)
    assert report.unknown == report.to_dict()["unknown"] == expected
    assert ("about " in str(report)) == ("behind a URL or file id" in " ".join(str(report).split())) == bool(expected)


@pytest.mark.parametrize("part", UNKNOWN)
def test_a_file_that_the_provider_has_reported_is_no_longer_unknown(part: Part) -> None:
    question = Message("user", [part])
    answer = Message("assistant", "It is a cat.", usage=Usage(input_tokens=900, output_tokens=9))
    assert manager().usage(Session(items=(question, answer))).unknown == 0
    assert manager().usage(Session(items=(question, answer, Message("user", [part])))).unknown == 1


def test_what_fits_by_our_count_fits_with_images_of_unknown_size() -> None:
    """An image counts as the largest that the provider charges for, so that what fits by our count fits."""
    unknown, large = (
        manager().analyze_session(Session(items=(Message("user", [image]),)))["total_tokens"]
        for image in (Image(url="u"), Image(url="u", width=8_000, height=8_000))
    )
    assert unknown >= large
