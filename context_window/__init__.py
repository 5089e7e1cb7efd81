"""What fits: decides what a model sees when a conversation has outgrown its context window."""

__version__ = "0.1.0"
