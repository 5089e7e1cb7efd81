"""Thought signatures: their place in a session, the signatures that can be sent, and the dummy for a missing one."""

from __future__ import annotations

import base64
import binascii
import re

DUMMY = "skip_thought_signature_validator"
"""The signature of a call that Gemini did not make itself, or whose signature is lost.

Gemini 3 and later refuse a call of the current turn without a signature (G4). Google documents this value for histories from other
sources. It is valid base64, so SDKs that decode and encode signatures do not change it.
"""
KEY = "thought_signature"
"""The key of a base64 signature in `FunctionCall.metadata` and `Message.extra`. Reasoning keeps it in `signature`."""
_BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}|[A-Za-z0-9_-]*={0,2}")


def sendable(signature: object) -> str | None:
    """Return the signature as a text, or None if it is damaged base64, which Gemini would refuse.

    Return None for the dummy too: the converter adds it where it is needed.
    """
    if isinstance(signature, str | bytes) and is_dummy(signature):
        return None
    if isinstance(signature, bytes):
        return base64.b64encode(signature).decode("ascii") or None
    if not isinstance(signature, str) or not signature or not _BASE64.fullmatch(signature):
        return None
    bare = signature.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        data = base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)
    except (binascii.Error, ValueError):
        return None
    return signature if base64.b64encode(data).decode("ascii").rstrip("=") == bare and data else None


def is_dummy(signature: str | bytes) -> bool:
    """True if the signature is `DUMMY`: as sent, as decoded by an SDK, or as encoded once more."""
    if isinstance(signature, bytes):
        return signature in (DUMMY.encode(), base64.urlsafe_b64decode(DUMMY))
    return signature in (DUMMY, base64.b64encode(DUMMY.encode()).decode("ascii"))
