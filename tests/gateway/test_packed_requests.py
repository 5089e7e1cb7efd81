"""Requests that a client has compressed, as Codex does: they are managed and checked like others, or refused if that was asked for."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import httpx
import pytest

from context_window.gateway.decoding import ZSTD
from tests.gateway.test_gateway_http import MESSAGES, SHORT, long_body, post, says, upstream_that
from tests.gateway.test_secret_warnings import KEYS, warnings
from tests.support.gateways import gateway

Pack = Callable[[bytes], bytes]
PACKED: dict[str, Pack] = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "GZIP": gzip.compress,
    "identity": bytes,
}
if ZSTD is not None:
    PACKED["zstd"] = ZSTD.compress
LARGEST = 200_000
GZIPPED = gzip.compress(SHORT)
UNREADABLE: dict[str, tuple[str, bytes]] = {
    "another encoding": ("br", SHORT),
    "packed twice": ("gzip, gzip", gzip.compress(GZIPPED)),
    "packed in another way than said": ("gzip", SHORT),
    "cut short": ("gzip", GZIPPED[:-9]),
    "followed by more": ("gzip", GZIPPED + SHORT),
    "followed by another": ("gzip", GZIPPED * 2),
    "too large": ("gzip", gzip.compress(bytes(LARGEST + 1))),
    "a bomb": ("deflate", zlib.compress(bytes(100 * LARGEST))),
    "zstd cut short": ("zstd", bytes.fromhex("28b52ffd2014")),
    "zstd with a window of 2 GB": ("zstd", bytes.fromhex("28b52ffd00a8090000 61")),
}
CHECKS: list[dict[str, Any]] = [{"strict": True}, {"warn_secrets": True}, {"max_cost": Decimal(5)}]


@pytest.mark.parametrize("encoding", ["gzip", "x-gzip", "deflate", "GZIP", "identity", "zstd"])
def test_a_packed_request_is_managed_and_checked_like_another(encoding: str, caplog: pytest.LogCaptureFixture) -> None:
    """It goes on unpacked, with no more than its messages changed, and never says that it is packed."""
    pack = PACKED.get(encoding) or pytest.skip("there is no package for zstd")
    long = json.loads(long_body())
    long["messages"][-1]["content"] += f" With {KEYS[2]}"
    bodies = [SHORT, json.dumps(long).encode()]
    with upstream_that(says(200, b"{}")) as upstream, gateway(upstream.url, 2_000, strict=True, warn_secrets=True) as address:
        for body in bodies:
            assert post(address, body=body).status_code == 200
            assert post(address, body=pack(body), headers={"content-encoding": encoding}).status_code == 200
    assert upstream.bodies[0] == upstream.bodies[1] == SHORT
    assert upstream.bodies[2] == upstream.bodies[3]
    assert len(upstream.bodies[3]) < len(bodies[1]) / 2
    assert all("content-encoding" not in dict(headers) for headers in upstream.headers)
    assert len(warnings(caplog)) == 1


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: next(iter(check)))
@pytest.mark.parametrize("name", UNREADABLE)
def test_what_cannot_be_unpacked_is_refused_if_a_check_was_asked_for(name: str, check: dict[str, Any]) -> None:
    encoding, body = UNREADABLE[name]
    with upstream_that(says(200, b"{}")) as upstream, gateway(upstream.url, 2_000, largest_body=LARGEST, **check) as address:
        answer = post(address, body=body, headers={"content-encoding": encoding})
        assert post(address).status_code == 200
    assert answer.status_code == 415
    assert "it reads gzip, deflate and zstd" in answer.json()["error"]["message"]
    assert upstream.bodies == [SHORT]


def test_what_cannot_be_unpacked_passes_as_it_came_otherwise() -> None:
    with upstream_that(says(200, b"{}")) as upstream, gateway(upstream.url, 2_000, largest_body=LARGEST) as address:
        for encoding, body in UNREADABLE.values():
            assert post(address, MESSAGES, body, headers={"content-encoding": encoding}).status_code == 200
    assert upstream.bodies == [body for _, body in UNREADABLE.values()]
    assert [dict(headers)["content-encoding"] for headers in upstream.headers] == [encoding for encoding, _ in UNREADABLE.values()]


def test_two_headers_are_two_encodings() -> None:
    """What one of them hides is not taken for plain."""
    with upstream_that(says(200, b"{}")) as upstream, gateway(upstream.url, 2_000, strict=True) as address:
        for first, second in (("identity", "gzip"), ("gzip", "identity")):
            headers = [("content-encoding", first), ("content-encoding", second)]
            answer = httpx.post(address + MESSAGES, content=GZIPPED, headers=headers, trust_env=False)
            assert answer.status_code == 415
    assert upstream.bodies == []
