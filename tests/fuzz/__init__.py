"""Fuzzing of everything that reads foreign data: transcripts, saved sessions, and providers' payloads.

The promise under test: for any bytes, a reader returns sessions with every record accounted for or raises TranscriptError
(for JSON values, FormatError), within bounded time and memory. The result can be saved, loads again as an equal session, and
converts to all four wire formats.

    python -m tests.fuzz --mutants 10000000 --processes 2
    python -m tests.fuzz --reproduce 0.123

1. `seeds.py` holds small valid inputs of every format, and excerpts of recorded transcripts where `CONTEXT_WINDOW_TRANSCRIPTS` is set.
2. `mutations.py` damages a copy of one: first its values, then its bytes. The seed and the mutant's number decide everything.
3. `checks.py` reads the mutant and checks the promise.
4. `running.py` does this in several processes and counts the outcomes; `__main__.py` is the command.
"""
