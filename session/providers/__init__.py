"""Convert sessions to the payloads of each provider and back, and check payloads against each provider's rules.

Each wire format has a package: `write.py` makes a payload of a session, `read.py` makes a session of a payload, `rules.py` and `schema.py`
are the validator, which shares no code with them. Code that several formats need is in the files next to the packages.
"""

from typing import TYPE_CHECKING

from ..lazy import lazy_names

if TYPE_CHECKING:
    from .anthropic import validate_anthropic
    from .google import validate_google
    from .openai_chat import validate_openai_chat
    from .openai_responses import validate_openai_responses
    from .violations import Violation
else:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            ".anthropic": "validate_anthropic",
            ".google": "validate_google",
            ".openai_chat": "validate_openai_chat",
            ".openai_responses": "validate_openai_responses",
            ".violations": "Violation",
        },
    )

__all__ = ["Violation", "validate_anthropic", "validate_google", "validate_openai_chat", "validate_openai_responses"]
