"""Token counts of texts, images, documents, items and requests.

The tokens of an item come about in these steps:

1. `select.py` chooses the counter: the caller's own, else `ctok` for Claude (`ctok_counter.py`), else tiktoken
   (`tiktoken_counter.py`, with the vocabularies of `vocabulary.py`), else four characters per token (`counter.py`).
2. The counter counts the item's texts. `gigatoken_counter.py` counts what tiktoken counts, faster, for callers who pass it.
3. Images cost what the provider's rule charges for their dimensions: `images.py` for Claude and unknown providers,
   `images_openai.py`, `images_gemini.py`.
4. Documents cost their text, Office files too (`office.py`). A PDF costs a price per page and the amount of its text
   (`documents.py`; `pdf.py` finds the number of pages, `pdf_text.py` the amount of text), and a recording costs a price per second
   (`recordings.py` finds its length).
5. `framing.py` has the tokens that the provider writes around each message, call and output.
6. `item_tokens.py` adds these up, and does the same for the shorter forms that a trim can give an item: cleared, truncated
   (`text_truncation.py` finds the longest text that fits), or with image placeholders. Each item remembers its counts.
7. `overhead.py` counts what a request costs besides its items: the tool definitions (`typescript_tools.py`, `gemini_tools.py`,
   `anthropic_options.py`), the answer's schema (also `openai_options.py`), and the provider's fixed frame.

`provider_count.py` asks the provider for its own count of a whole request. That count is reported and never affects trimming.

To add a counter, implement `TokenCounter` (`counter.py`), put it into the order of `select.py`, and add it to
`tests/contracts/test_counters.py`. To add a model's rule, add a row to the tables in `context_window/models/facts.py`; a new image
rule is a class here, and `framing.py` chooses the framing by it.
"""

from .counter import CallableCounter, CharacterCounter, TokenCounter
from .ctok_counter import CtokCounter
from .gigatoken_counter import GigatokenCounter
from .tiktoken_counter import TiktokenCounter, default_counter

__all__ = ["CallableCounter", "CharacterCounter", "CtokCounter", "GigatokenCounter", "TiktokenCounter", "TokenCounter", "default_counter"]
