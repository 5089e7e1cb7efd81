"""What the commands can read, in words for their help. Which format a file has, its content tells: `session/transcripts/detect.py`."""

from __future__ import annotations

READABLE = """\
Readable are the logs of Claude Code, Codex, Copilot CLI, opencode, Gemini CLI, pi, mini-swe-agent, SWE-agent, OpenHands, Cline and
aider; lists of messages as OpenAI, Anthropic and Google have them, wherever they lie in a document or a line; and saved sessions.
A file's content tells which it is, not its name.

"""
"""A paragraph for the end of a command's help, before its examples."""
