"""Tests of `context_window.compaction`."""
