"""Tests of `context_window.events`."""
