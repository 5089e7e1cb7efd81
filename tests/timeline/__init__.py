"""Tests of `context_window/timeline/`."""
