"""Older turns replaced by a summary that a model writes: what is due, how it is written, and the part of a manager that appends it."""

from .managing import Compacting

__all__ = ["Compacting"]
