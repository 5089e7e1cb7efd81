"""Runs what other projects' users reported about counts, bills, trims and refusals, each case against our code.

    python -m benchmarks.public_cases                     # all cases
    python -m benchmarks.public_cases CSV                 # those of a list: columns id, kind, expected, and source
    python -m benchmarks.public_cases CSV --only spend    # those whose kind has this word
    python -m benchmarks.public_cases --write FOLDER      # keep their logs: spend_check FOLDER/B009 --ccusage PATH reads one

A recipe makes the log, the request or the session that the report tells of, and returns what our code makes of it. A case is a recipe with
its figures and what is right. `bills.py` has the cases about money and tokens, `windows.py` those about views and the status line,
`wires.py` those about requests of clients and frameworks.
"""
