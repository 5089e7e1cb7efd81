"""Tests of `context_window.models`."""
