"""What a view is worth: real sessions replayed request by request under a window, with each way to trim them.

    python -m benchmarks.replay

How it works:

1. `sessions.py` finds recorded sessions that are long enough, and cuts each at its first compaction.
2. `terms.py` finds the terms of each item: paths, identifiers, numbers and whole lines. `metric.py` looks up which of them the model used
   later, and where it had seen them.
3. `limit.py` computes the most that any choice of whole items could have kept, with the future known.
4. `policies.py` has the ways to trim, `peers.py` those of other packages. `replay.py` asks each for its view before every request of the
   session, and `metric.py` looks what the view shows of the terms that the model then used, and what the request costs.
5. `outcomes.py` looks what decides if the agent can go on: the last error, the plan, the files under edit, the user's rules, and the bill
   with pauses and with the requests that bring back what was lost.
6. `table.py` sums up, with bootstrap intervals by session, and `plot.py` draws. `check.py` has the ratios that must hold.
7. `losses.py` is a study of `Extract()`: what it loses, and what it could keep with the future known.

No model is asked. Nothing here is shared with the strategies under test but the counting of tokens.
"""
