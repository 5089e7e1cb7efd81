"""Token counts: counters behind one protocol, images by their size, and what an item costs in each form."""

from .counter import CallableCounter, CharacterCounter, TokenCounter
from .ctok_counter import CtokCounter
from .tiktoken_counter import TiktokenCounter, default_counter

__all__ = ["CallableCounter", "CharacterCounter", "CtokCounter", "TiktokenCounter", "TokenCounter", "default_counter"]
