"""What the gateway costs: time, memory and the provider's cache, each as a ratio to the same without it.

    python -m benchmarks.gateway

How it works:

1. `servers.py` starts three servers on the loopback, each in a process of its own: a stub of a provider, the gateway, and as a reference a
   proxy of Starlette and httpx alone. Both send to the stub.
2. `conversations.py` makes a conversation that grows, and the body of each of its requests in every wire format.
3. `latency.py` sends each body through both, one after the other, so that a busy machine slows both alike.
4. `crowd.py` sends many conversations at once, and measures the memory that the gateway keeps for each.
5. `cost.py` replays recorded sessions through a gateway whose upstream bills cached prefixes as the providers do (`billing.py`), and sends
   the same bodies to another one without a gateway.
6. `check.py` has what must hold on any machine: counts and ratios, no times.
"""
