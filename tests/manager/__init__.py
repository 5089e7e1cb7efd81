"""Tests of `ContextWindowManager`."""
