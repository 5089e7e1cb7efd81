"""Shared by both accuracy benchmarks: the folder of recordings, the held-out third, and the groups of models.

Nothing is measured here: see `token_accuracy.py` (whole requests) and `session_accuracy.py` (sessions).
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from context_window.models import describe_model
from context_window.models.names import claude_version, gemini_version

TRANSCRIPTS = Path(os.environ.get("CONTEXT_WINDOW_TRANSCRIPTS") or Path(__file__).parents[2] / "shared" / "data" / "transcripts")
HELD_OUT = 3
"""One record in three is held out."""
PROVIDERS = {"claude": "Claude", "openai": "OpenAI", "google": "Gemini"}
OTHER = "other"

Amount = TypeVar("Amount", int, float)


def is_held_out(record_id: str) -> bool:
    """True if the record is in the third that constants are never fitted on. Depends only on the id."""
    return int.from_bytes(hashlib.sha256(record_id.encode("utf-8", "replace")).digest()) % HELD_OUT == 0


def percentile(amounts: Sequence[Amount], percent: int) -> Amount:
    """Return the smallest of the amounts that `percent` of them do not exceed.

    Args:
        amounts: The amounts, at least one.
        percent: From 1 to 100.
    """
    return sorted(amounts)[-(-percent * len(amounts) // 100) - 1]


def provider_of(name: str) -> str:
    """Return the maker of the model, or `other`."""
    return PROVIDERS.get(describe_model(name).family, OTHER)


def family_of(name: str) -> str:
    """Return the group of its maker's models that the model belongs to."""
    match describe_model(name).family:
        case "claude":
            return "4.7 and later" if claude_version(name) >= (4, 7) else "to 4.6"
        case "openai":
            return "to gpt-4.1" if re.search(r"gpt-[34]", name) else "gpt-5, o series"
        case "google":
            return "3 and later" if gemini_version(name) >= (3, 0) else "to 2.5"
        case _:
            return OTHER
