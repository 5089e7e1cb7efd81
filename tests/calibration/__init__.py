"""Tests of `context_window.calibration`. Its properties are in `tests/properties`."""
