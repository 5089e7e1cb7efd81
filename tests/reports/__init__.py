"""Tests of reports as pages."""
