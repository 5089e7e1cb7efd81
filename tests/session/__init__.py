"""Tests of `session`: items, logs, forks and merges, files and images."""
