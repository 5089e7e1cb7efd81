"""The chat in the terminal: a small coding assistant, and a replay that steps through a transcript, both with usage figures.

Commands and turns take a `Chat` and return drawings, so they run without a terminal. `chat_loop.py` reads lines and shows the
drawings; `context_window/cli/chat.py` builds everything and starts the loop.
"""
