"""Tests of `context_window.display`."""
