"""Strict stand-ins for the providers on 127.0.0.1: they refuse with the documented errors, and else answer as the script says.

They are a second opinion on validity, and so share no code with `session.providers`, nor with each other's rules.
"""

from .answers import Block, Call, Raw, Say, Script, Think, in_order
from .anthropic import AnthropicStub
from .gemini import GeminiStub
from .openai_chat import OpenAIChatStub
from .openai_responses import OpenAIResponsesStub
from .server import Stub

__all__ = [
    "AnthropicStub",
    "Block",
    "Call",
    "GeminiStub",
    "OpenAIChatStub",
    "OpenAIResponsesStub",
    "Raw",
    "Say",
    "Script",
    "Stub",
    "Think",
    "in_order",
]
