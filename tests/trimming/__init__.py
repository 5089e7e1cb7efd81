"""Tests of `context_window.trimming` and the strategies. Its properties are in `tests/properties`."""
