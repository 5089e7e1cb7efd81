"""OpenAI's Responses API: a session in its words (`write.py`), its words as a session (`read.py`), its rules (`rules.py`).

Which kinds of items there are beside messages, functions and reasoning is said in `kinds.py`.
"""

from .read import from_openai_responses
from .rules import validate_openai_responses
from .write import to_openai_responses

__all__ = ["from_openai_responses", "to_openai_responses", "validate_openai_responses"]
