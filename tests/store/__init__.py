"""Tests of `session.store`."""
