"""The screen of `context-window top`: all sessions, from projects down to the items in a window, live.

`entries.py` groups the requests of all logs into sessions, `titles.py` names them, `conversations.py` reads one of them. `library.py` keeps
what was read and tells what has changed. `pages.py` makes rows of all that, `layout.py` lines of the rows; both are pure. `app.py` shows
them with Textual, the only module that imports it, by the widgets of `widgets.py`; `readers.py` has its threads.
"""
