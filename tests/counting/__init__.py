"""Tests of `context_window.counting`."""
