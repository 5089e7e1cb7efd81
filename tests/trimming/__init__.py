"""Tests of `context_window.decision` and the strategies. Its properties are in `tests/properties`."""
