"""What providers take: a session in their words, and whether a payload keeps their rules. One file a wire format."""

from .anthropic_rules import validate_anthropic
from .violations import Violation

__all__ = ["Violation", "validate_anthropic"]
