"""Which items of a Codex log the model still sees, after compactions and rollbacks. Every question is answered in O(1) or O(log n).

1. A compaction hides all items before it but system messages, and those it keeps: the ids its replacement history repeats,
   or, in logs without one, the latest prompts (`Kept`). Items of its own record stay.
2. Compactions are a stack. Whether an item is shown depends on the last compaction, and for one without a history also on the
   last one with a history (its base): prompts leave in the order of the log, so the oldest that is kept says it all.
3. A rollback takes items off the end. Marks of compactions that it took off are removed from the stack when it is next used:
   nothing has to be restored, since nothing else was changed.
4. What a compaction replaces is settled by one walk over the log when all of it is read (`replacements`): a list made earlier
   would cost the length of the log for every compaction that is rolled back.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Set
from dataclasses import dataclass
from itertools import accumulate, chain
from operator import itemgetter

from session.items import Item, Message, MessageCategory
from session.transcripts.draft import Draft

KEPT_LETTERS = 80_000
"""Characters of users' messages that older versions kept at a compaction: 20,000 tokens at four a token."""


def is_prompt(item: Item) -> bool:
    """True for a user's own message."""
    return isinstance(item, Message) and item.role == "user" and item.category is MessageCategory.DIALOG


def is_repeated(item: Item) -> bool:
    """True for what every request of an older version repeated: AGENTS.md and the environment."""
    return isinstance(item, Message) and item.role == "user" and item.extra.get("source") in ("memory", "environment context")
