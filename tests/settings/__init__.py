"""Tests of `context_window.settings`."""
