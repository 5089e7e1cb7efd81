"""The one place that unpacks requests and answers: the same content whatever pieces it comes in, and never more than the limit."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from context_window.gateway.decoding import ZSTD, Decoder

LIMIT = 1_000
PACKED: dict[bytes, Callable[[bytes], bytes]] = {
    b"identity": bytes,
    b"gzip": gzip.compress,
    b"GZIP": gzip.compress,
    b"deflate": zlib.compress,
    **({} if ZSTD is None else {b"zstd": ZSTD.compress}),
}


@given(
    content=st.binary(max_size=2 * LIMIT) | st.integers(1, 10**7).map(lambda size: b"a" * size),
    encoding=st.sampled_from(sorted(PACKED)),
    size=st.integers(1, 5_000),
)
def test_pieces_make_no_difference_and_the_limit_holds(content: bytes, encoding: bytes, size: int) -> None:
    """An answer of up to the limit is unpacked whole. Of a longer one nothing is kept."""
    packed = PACKED[encoding](content)
    decoder = Decoder(encoding, LIMIT)
    for start in range(0, min(len(packed), 20 * LIMIT), size):
        decoder.add(packed[start : start + size])
        assert len(decoder.content) <= LIMIT
    assert bytes(decoder.content) == (content if len(content) <= LIMIT else b"")
    assert decoder.is_readable == decoder.is_whole == (len(content) <= LIMIT)


@given(st.sampled_from([b"br", b"gzip, gzip", b"\xff", b""]) | st.binary(max_size=9), st.binary(min_size=1, max_size=100))
def test_what_is_packed_otherwise_or_damaged_is_not_readable(encoding: bytes, content: bytes) -> None:
    for decoder in (Decoder(b"gzip", LIMIT), Decoder(b"no" + encoding, LIMIT)):
        decoder.add(b"\0" + content)
        decoder.add(content)
        assert not decoder.is_readable
        assert not decoder.content
