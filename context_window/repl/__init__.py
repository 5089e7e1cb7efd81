"""The chat in the terminal: a small coding assistant, and transcripts stepped through, with the window's figures beside them.

What decides is here and needs no terminal: commands and turns take a session and a manager and give what is to be drawn. Lines
come in and drawings go out through `terminal.py`; `context_window/cli/chat.py` puts it together.
"""
