"""Tests of `a session's views: recall, refusals, threads`, and of what views show: recalled items, refused parts."""
