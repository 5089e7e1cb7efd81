"""Divides the price of prompts among the items that were in them.

1. A prompt is laid out in order: its overhead, then its items. The tokens read from the cache are its beginning, then come those written
   to the cache, then the rest. Each token costs the price of its region.
2. An item's lifetime cost is the sum over the requests that it stayed in.
3. A region covers a range of items. Its price is added to the range as a whole, so a request costs the logarithm of the log's length. An
   item's cost is worked out only when its tokens change and at the end.
"""

from __future__ import annotations

from collections.abc import Iterable

from .prefix_sums import PrefixSums


class Lifetimes:
    """The costs of a log's items.

    Attributes:
        costs: By position, the lifetime cost in US dollars, as of the last `settle`.
        requests: By position, the number of requests that the item was in.
    """

    def __init__(self, size: int) -> None:
        """
        Args:
            size: Number of the log's items.
        """
        self.costs = [0.0] * size
        self.requests = [0] * size
        self._tokens = PrefixSums(size, 0)
        self._rates = PrefixSums(size, 0.0)  # differences: the sum up to a position is the cost of a token there so far
        self._now = [0] * size
        self._settled_rates = [0.0] * size
        self._entered = [0] * size
        self._count = 0

    def put(self, position: int, tokens: int) -> None:
        """Give an item these tokens from now on; 0 if it is not in the prompt."""
        self.settle(position)
        self._tokens.add(position, tokens - self._now[position])
        self._now[position] = tokens

    def settle(self, position: int) -> None:
        """Bring the cost of an item up to date."""
        rate, tokens = self._rates.first(position + 1), self._now[position]
        self.costs[position] += tokens * (rate - self._settled_rates[position])
        self.requests[position] += self._count - self._entered[position] if tokens else 0
        self._settled_rates[position], self._entered[position] = rate, self._count

    def charge(self, regions: Iterable[tuple[int, float]], overhead: float, factor: float) -> float:
        """Add a request, and return the cost of its overhead in US dollars.

        Args:
            regions: Tokens and price per token of each region of the prompt, in order.
            overhead: Tokens before the items.
            factor: Tokens of the prompt that a token of the items stands for.
        """
        self._count += 1
        start, overhead_cost = 0.0, 0.0
        for tokens, rate in regions:
            end = start + tokens
            outside = max(0.0, min(end, overhead) - start) if factor > 0 else tokens
            overhead_cost += outside * rate
            if factor > 0 and end > overhead:
                self._charge_items((max(start, overhead) - overhead) / factor, (end - overhead) / factor, rate * factor)
            start = end
        return overhead_cost

    def _charge_items(self, start: float, end: float, rate: float) -> None:
        """Add a price per token to a range of the items' tokens."""
        tokens = self._tokens
        first, last = tokens.find(start), tokens.find(end)
        if first == last:
            if first < len(self.costs):
                self.costs[first] += (end - start) * rate
            return
        self.costs[first] += (tokens.first(first + 1) - start) * rate
        self._rates.add(first + 1, rate)
        self._rates.add(last, -rate)
        if last < len(self.costs):
            self.costs[last] += (end - tokens.first(last)) * rate
