"""Made-up sessions that look like recorded ones, for benchmarks of speed. The same seed gives the same session from the same checkout.

    messages = conversation(1_000, seed=17)  # in OpenAI's format
    session = Session.from_openai(messages)

The lengths of questions, answers, arguments and results are drawn from log-normal distributions with the medians and spreads of 48 recorded
sessions (1,259 calls of five assistants). So is the number of calls that an answer makes in parallel. The texts are this project's own
source and documents, from a random line on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from math import log
from pathlib import Path
from random import Random
from typing import Any

import context_window
import session

Messages = list[dict[str, Any]]

PROJECT = Path(__file__).parent.parent
SOURCES = {
    "prose": ((PROJECT, "*.md"), (PROJECT, "docs/**/*.md")),
    "code": tuple((Path(package.__file__).parent, "**/*.py") for package in (session, context_window)),
}
"""Folders and patterns of the files whose text is used, by the kind of text. The packages may be installed elsewhere."""
LENGTHS = {"system": (4_000, 0.3), "question": (180, 1.7), "answer": (190, 1.23), "arguments": (175, 1.13), "result": (362, 1.88)}
"""Median in characters, and standard deviation of the logarithm."""
LONGEST = 30_000
"""Characters of the longest text: assistants cut results off at about this length."""
PARALLEL = {1: 937, 2: 74, 3: 35, 4: 8, 6: 2}
"""Calls of one answer, and how often an answer made that many."""
ROUNDS = 8
"""Answers with calls after a question, on average."""
TOOLS = {"Read": "file_path", "Bash": "command", "Grep": "pattern", "Write": "content"}
"""Tools, with the name of the argument that is the text."""


def conversation(count: int, seed: int) -> Messages:
    """Return this many messages in OpenAI's format: a system prompt, turns of calls with their results, and a question at the end.

    Args:
        count: Messages, at least 4. An answer with its calls is one message, and so is each result.
        seed: Chooses the session.
    """
    writer = _Writer(seed)
    messages: Messages = [{"role": "system", "content": writer.text("system")}, {"role": "user", "content": writer.text("question")}]
    while (room := count - 1 - len(messages)) > 0:
        if messages[-1]["role"] == "assistant" and room > 1:
            messages.append({"role": "user", "content": writer.text("question")})
        elif room < 2 or writer.random.random() < 1 / (ROUNDS + 1):
            messages.append({"role": "assistant", "content": writer.text("answer")})
        else:
            messages += writer.round(f"call_{seed}_{len(messages)}", room - 1)
    return [*messages, {"role": "user", "content": writer.text("question")}]


class _Writer:
    """Draws texts, calls and results."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)

    def text(self, kind: str) -> str:
        """Return a text of a random length."""
        median, spread = LENGTHS[kind]
        length = min(LONGEST, max(1, round(self.random.lognormvariate(log(median), spread))))
        source = _source("code" if kind in {"arguments", "result"} else "prose")
        start = source.find("\n", self.random.randrange(len(source) - 2 * LONGEST)) + 1
        return source[start : start + length]

    def round(self, name: str, most: int) -> Iterator[dict[str, Any]]:
        """Yield an answer with at most this many calls, and their results. The name begins the ids of the calls."""
        calls = min(most, *self.random.choices(list(PARALLEL), list(PARALLEL.values())))
        tools = self.random.choices(list(TOOLS), k=calls)
        functions = [{"name": tool, "arguments": json.dumps({TOOLS[tool]: self.text("arguments")})} for tool in tools]
        tool_calls = [{"id": f"{name}_{place}", "type": "function", "function": function} for place, function in enumerate(functions)]
        yield {"role": "assistant", "content": self.text("answer"), "tool_calls": tool_calls}
        for call in tool_calls:
            yield {"role": "tool", "tool_call_id": call["id"], "content": self.text("result")}


@cache
def _source(kind: str) -> str:
    """Return the text of all files of a kind, in the order of their paths."""
    paths = sorted({path for folder, pattern in SOURCES[kind] for path in folder.glob(pattern)})
    return "\n".join(path.read_text("utf-8") for path in paths)
