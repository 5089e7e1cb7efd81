"""A travel planner: three tools, where each needs the result of the one before, in a context window far smaller than the conversation.

    python examples/travel_planner.py            # a scripted model plans eight trips; no key, no network
    python examples/travel_planner.py --live     # Claude plans one; needs ANTHROPIC_API_KEY

The manager makes a view of the session before every request. The log keeps everything.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from context_window import (
    Answer,
    AnthropicModel,
    ContextWindow,
    ContextWindowManager,
    FunctionCall,
    FunctionCallOutput,
    Message,
    Model,
    ModelError,
    Session,
    Usage,
    run_turn,
)
from context_window.loop.model import OnText

CITIES = ("Bergen", "Lisbon", "Kyoto", "Quito", "Tallinn", "Porto", "Oslo", "Hanoi")
WINDOW = 2_400
"""Tokens of the context window: room for two or three trips."""


# The tools


def find_flights(city: str, day: date) -> list[dict[str, Any]]:
    """Flights to a city on a day, the cheapest first."""
    base = sum(map(ord, city))
    return [
        {"flight": f"{city[:2].upper()}{base + number}", "arrives": f"{day}T{8 + number:02}:30", "price": 90 + base % 70 + 15 * number}
        for number in range(6)
    ]


def find_hotels(city: str, flight: str, arrives: str, nights: int = 2) -> list[dict[str, Any]]:
    """Hotels with a free room from a flight's arrival on, the best first."""
    until = date.fromisoformat(arrives[:10]) + timedelta(days=nights)
    rooms = ("Harbour House", "Old Town Inn", "Garden Hotel", "Station Lodge", "The Lighthouse")
    return [
        {"flight": flight, "hotel": f"{name}, {city}", "until": f"{until}", "price": nights * (120 - 10 * place)}
        for place, name in enumerate(rooms)
    ]


async def book(flight: str, hotel: str) -> str:
    """Books a flight and a hotel together."""
    await asyncio.sleep(0)  # a real tool would call an API here
    return f"booked {flight} and {hotel}, reference {sum(map(ord, flight + hotel)):05}"


TOOLS: list[Callable[..., Any]] = [find_flights, find_hotels, book]


class ScriptedPlanner:
    """A rule-based model: it makes the next tool call from the last tool's output, as a real model would."""

    async def answer(
        self, view: Session, tools: Sequence[Mapping[str, Any]], *, allow_tools: bool, on_text: OnText | None = None
    ) -> Answer:
        """Return the next tool call, or the finished plan."""
        last = view.items[-1]
        item: Message | FunctionCall
        if isinstance(last, FunctionCallOutput) and allow_tools and tools and last.name != "book":
            option = json.loads(last.text)[0]
            if last.name == "find_flights":
                item = self._call(view, "find_hotels", city=self._city(view), flight=option["flight"], arrives=option["arrives"])
            else:
                item = self._call(view, "book", flight=option["flight"], hotel=option["hotel"])
        elif isinstance(last, FunctionCallOutput):
            item = Message("assistant", f"Your trip to {self._city(view)}: {last.text}.")
        else:
            item = self._call(view, "find_flights", city=self._city(view), day="2027-05-01")
        if isinstance(item, Message) and on_text is not None:
            on_text(item.text)
        return Answer((item,), "tool_use" if isinstance(item, FunctionCall) else "end_turn", Usage(), "scripted")

    def _city(self, view: Session) -> str:
        question = next(item for item in reversed(view.items) if isinstance(item, Message) and item.role == "user")
        return question.text.rpartition(" ")[2].rstrip(".")

    def _call(self, view: Session, name: str, **arguments: str) -> FunctionCall:
        return FunctionCall(name, json.dumps(arguments), f"call_{view.items[-1].id}")


async def plan(model: Model, cities: Sequence[str]) -> None:
    """Plan the trips, one per turn, and print the state of the context window."""
    limits = ContextWindow(max_tokens=WINDOW, max_tool_calls_per_turn=6)
    manager = ContextWindowManager(context_window=limits, tools=TOOLS, on_event=lambda event: print(f"  · {event}"))
    session = Session()
    session.add_message("system", "You plan trips: find a flight, then a hotel for its arrival, then book both.")
    session.add_message("user", "I never fly before eight in the morning.", pinned=True)
    for city in cities:
        print(f"> Plan two nights in {city}.")
        result = await run_turn(session, f"Plan two nights in {city}.", model=model, tools=TOOLS, manager=manager)
        used = manager.get_token_usage()
        print(f"{result.text}\n  {result.calls} calls, {result.requests} requests, {used['total']:,} of {used['budget']:,} tokens")
    view = manager.process_session(session)
    first = next((item for item in session.items if isinstance(item, FunctionCallOutput)), None)
    print(f"\nThe log has {len(session.items)} items, the model sees {len(view.items)} of them.")
    if first is not None:
        print(f"The first tool output can be recalled: {manager.recall(view, first.id) is first}.")
    print(manager.format_token_usage())


def main() -> int:
    """Run the example and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--live", metavar="MODEL", nargs="?", const="claude-haiku-4-5", help="ask Claude instead of the script")
    name = parser.parse_args().live
    try:
        if name is None:
            asyncio.run(plan(ScriptedPlanner(), CITIES))
        else:
            import anthropic

            asyncio.run(plan(AnthropicModel(anthropic.AsyncAnthropic(), name, max_tokens=2_000), CITIES[:1]))
    except ModelError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
