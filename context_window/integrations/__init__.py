"""Thin adapters to agent frameworks, one file each. Nothing is imported here: a file needs its framework's package, and no other.

from context_window.integrations.anthropic import create
from context_window.integrations.langchain import ContextWindowMiddleware
from context_window.integrations.openai_agents import ContextWindowFilter
from context_window.integrations.pydantic_ai import ContextWindowProcessor
"""
