"""Reads the output of Claude Code's `/context`: its own account of the window. It is Markdown, or a picture in colours."""

from __future__ import annotations

import re

_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_AMOUNT = r"(\d[\d.,]*)([kKmM]?)"
_TOTAL = re.compile(rf"{_AMOUNT}\s*/\s*{_AMOUNT}(?: tokens)?\s*\(\d")
_ROW = re.compile(rf"\b(System prompt|System tools|MCP tools|Custom agents|Memory files|Skills|Messages)[\s:|]+{_AMOUNT}(?![\w.])")
_TOOL = re.compile(rf"\b(mcp__[\w.-]+)(?: \([^)\n]*\)| *\|[^|\n]*\|)?[ :]+{_AMOUNT}(?![\w.])")
_FACTORS = {"": 1, "k": 1_000, "m": 1_000_000}


def context_usage(text: str) -> dict[str, int] | None:
    """Return what an output of `/context` states, in tokens; None if the text is not one.

    `window` is the whole window, `system_prompt`, `messages` and others are the tool's rows, and `tokens` is their sum. The tool's own
    total has the buffer that it keeps for a compaction, in older versions.
    """
    if "Context Usage" not in text:
        return None
    text = _COLOURS.sub("", text)
    total = _TOTAL.search(text)
    rows: dict[str, int] = {}
    for name, amount, unit in _ROW.findall(text):
        rows.setdefault(name.lower().replace(" ", "_"), _tokens(amount, unit))
    if total is None or not rows.keys() >= {"system_prompt", "messages"}:
        return None
    return {"window": _tokens(total[3], total[4]), "tokens": sum(rows.values()), **rows}


def stated_tools(text: str) -> dict[str, int]:
    """Return the tokens of each MCP tool's definition that an output of `/context` states, by name; empty if requests do not carry them.

    Those of tools that wait for a search are listed too, but not in the row of MCP tools, which the others add up to.
    """
    row = (context_usage(text) or {}).get("mcp_tools", 0)
    tools = {name: _tokens(amount, unit) for name, amount, unit in _TOOL.findall(_COLOURS.sub("", text))} if row else {}
    return tools if abs(sum(tools.values()) - row) <= row / 10 else {}


def _tokens(amount: str, unit: str) -> int:
    """Return the tokens of an amount like 17.9 with the unit k, or 1,234."""
    whole, _, part = amount.rstrip(".,").replace(",", "").partition(".")
    factor = _FACTORS[unit.lower()]
    return int(whole[:12]) * factor + int(part[:6].replace(".", "").ljust(6, "0")) * factor // 1_000_000
