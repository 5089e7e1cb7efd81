"""Tests of `context_window.cli`."""
