"""Renders usage reports and plans as plain or coloured text. The numbers are those of the report or plan; only the layout is made here.

`lines.py` fits text to widths, `charts.py` draws amounts, `usage.py`, `plan.py` and `models.py` arrange the content, `render.py` turns
lines into text. rich is not needed: a console of rich can show them too.
"""
