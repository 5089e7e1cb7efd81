"""Tests of `session.providers`: converters and validators."""
