"""Tests of `context_window.loop`."""
