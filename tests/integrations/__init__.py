"""Tests of `context_window.integrations`, with the real frameworks."""
