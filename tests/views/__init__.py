"""Tests of `context_window.views`, and of what views show: recalled items, refused parts."""
