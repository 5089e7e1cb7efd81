"""Which addresses only this machine reaches."""

from __future__ import annotations

from ipaddress import ip_address


def is_loopback(host: str) -> bool:
    """True if only this machine reaches this name or address."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
