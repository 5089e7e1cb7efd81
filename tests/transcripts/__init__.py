"""Tests of `session.transcripts`: one file per log format, and recorded logs."""
