"""The providers behind the gateway: where requests of each name go, and by which wire format they are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from ..errors import ArgumentError
from .anthropic_messages import AnthropicWire
from .google_contents import GoogleWire
from .openai_chat import ChatWire
from .openai_responses import ChatGPTWire, ResponsesWire
from .wire_format import WireFormat

WIRE_FORMATS: tuple[WireFormat, ...] = (AnthropicWire(), ChatWire(), ResponsesWire(), ChatGPTWire(), GoogleWire())


@dataclass(frozen=True, slots=True)
class Upstream:
    """One provider.

    Attributes:
        name: The first part of its addresses here.
        url: Its own address, without a slash at the end.
        wires: The wire formats of its requests.
    """

    name: str
    url: str
    wires: tuple[WireFormat, ...]


def upstreams(urls: Mapping[str, str]) -> dict[str, Upstream]:
    """Return the upstreams by name.

    Args:
        urls: Other addresses than the providers' own, by name.

    Raises:
        ArgumentError: A name is unknown, or an address is not one of HTTP.
    """
    by_name: dict[str, Upstream] = {}
    for wire in WIRE_FORMATS:
        earlier = by_name.get(wire.name)
        by_name[wire.name] = Upstream(
            wire.name, urls.get(wire.name, wire.upstream).rstrip("/"), (*(earlier.wires if earlier else ()), wire)
        )
    for name, url in urls.items():
        if name not in by_name:
            raise ArgumentError("upstream", name, f"the names are {', '.join(by_name)}")
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment or parts.username:
            raise ArgumentError("upstream", url, "pass an address such as https://api.anthropic.com")
    return by_name
