"""The decision what a model sees: measured units and limits in, a plan out. No tokenizer, no I/O, no clock."""
