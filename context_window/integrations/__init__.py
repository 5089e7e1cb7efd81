"""Adapters to agent frameworks, one file each. Nothing is imported here, because each file needs its framework's package.

from context_window.integrations.anthropic import create
from context_window.integrations.langchain import ContextWindowMiddleware
from context_window.integrations.openai_agents import ContextWindowFilter
from context_window.integrations.pydantic_ai import ContextWindowCapability

The last three share `ConversationTracker` (`conversation_tracker.py`): it appends a framework's messages to a session and picks the
messages that show the session's view (`view_messages.py`). A `MessageAdapter` says how a framework's messages are read and copied.
"""
