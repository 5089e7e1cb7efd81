"""Tests of `context_window/spend/`."""
