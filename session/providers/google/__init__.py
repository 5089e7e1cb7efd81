"""Google's Gemini API: a session in its words (`write.py`), its words as a session (`read.py`), its rules (`rules.py`)."""

from .read import from_google
from .rules import validate_google
from .write import GoogleContents, to_google

__all__ = ["GoogleContents", "from_google", "to_google", "validate_google"]
