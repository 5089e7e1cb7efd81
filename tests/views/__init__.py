"""Tests of views: recalled items, refused parts, views that threads share."""
