"""Tests of `context_window.requests`."""
