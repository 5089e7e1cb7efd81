"""Tests of `context_window.repl`."""
