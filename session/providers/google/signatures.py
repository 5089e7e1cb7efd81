"""Thought signatures: where a session keeps them, which ones can be sent, and what stands for one that was never made."""

from __future__ import annotations

import base64
import binascii
import re

DUMMY = "skip_thought_signature_validator"
"""The signature of a call that Gemini did not make itself, or whose signature is lost.

Gemini 3 and later refuse a call of the current turn without one (G4). For histories that come from elsewhere Google documents
this value. It is base64 as it stands, so SDKs that decode and encode signatures leave it as it is.
"""
KEY = "thought_signature"
"""Where a session keeps one: in `FunctionCall.metadata`, in `Message.extra`; as base64. Of reasoning it is `signature`."""
_BASE64 = re.compile(r"[A-Za-z0-9+/]*={0,2}|[A-Za-z0-9_-]*={0,2}")


def sendable(signature: object) -> str | None:
    """The signature as text, where it is base64 that every decoder takes; else None: what is damaged would be refused.

    None of the dummy, too: the converter says where that is needed.
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
    """Whether it is `DUMMY`: as the wire has it, as an SDK decoded it, or as bytes that were encoded once more."""
    if isinstance(signature, bytes):
        return signature in (DUMMY.encode(), base64.urlsafe_b64decode(DUMMY))
    return signature in (DUMMY, base64.b64encode(DUMMY.encode()).decode("ascii"))
