"""The chat in the terminal, with a model of any provider or with a log that is replayed turn by turn.

`talk.py` reads lines. A line that begins with a slash is a command (`commands.py`), any other one starts a turn (`turns.py`): of a model
that `connection.py` reaches and that calls the tools of `tools.py`, or of a log. `chat.py` has the state, `screen.py` what the user sees.
"""
