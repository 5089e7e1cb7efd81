"""What providers take: a session in their words, their words as a session, and whether a payload keeps their rules.

One package a wire format: `write.py` is the way there, `read.py` the way back, `rules.py` and `shape.py` the validator, which
shares no code with them. What all ways there share stands beside the packages.
"""

from .anthropic import validate_anthropic
from .google import validate_google
from .openai_chat import validate_openai_chat
from .openai_responses import validate_openai_responses
from .violations import Violation

__all__ = ["Violation", "validate_anthropic", "validate_google", "validate_openai_chat", "validate_openai_responses"]
