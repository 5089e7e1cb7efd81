"""A user of Anthropic's client. Type-checked, never run."""

import anthropic
from anthropic.types import Message, ToolParam

from context_window import AnthropicModel, ContextWindowManager, SchemaTool, Session, run_turn
from context_window.integrations.anthropic import create


def read_file(path: str) -> str:
    """Return the text of a file."""
    return path


client, manager, session = anthropic.Anthropic(), ContextWindowManager("claude-sonnet-5-5"), Session()
tools: list[ToolParam] = [{"name": "list_files", "input_schema": {"type": "object", "properties": {}}}]
recall = manager.recall_tool("anthropic")
messages, system = session.to_anthropic_messages(caching=True)

answer: Message = client.messages.create(model="m", max_tokens=9, messages=messages, system=system, tools=[*tools, recall.definition])
session.add_response(answer)
client.messages.count_tokens(model="m", messages=messages, tools=[recall.definition])
client.beta.messages.create(model="m", max_tokens=9, messages=messages)
with client.messages.stream(model="m", max_tokens=9, messages=messages) as stream:
    session.add_response(stream.get_final_message())

request = manager.anthropic_request(session, model="m", max_tokens=9, tools=[read_file, *tools])
answer = client.messages.create(**request)
answer = create(manager, client, session, model="m", max_tokens=9, tools=tools)
with client.messages.stream(**manager.request(session, "anthropic", model="m", tools=tools)) as stream:
    session.add_response(stream.get_final_message())


async def ask() -> str:
    """Return the answer to a question, by the loop and by hand."""
    asynchronous = anthropic.AsyncAnthropic()
    session.add_response(await asynchronous.messages.create(model="m", max_tokens=9, messages=messages))
    session.add_response(await asynchronous.messages.create(**await manager.arequest(session, "anthropic", model="m")))
    model = AnthropicModel(asynchronous, "m")
    listing = SchemaTool(tools[0], lambda: "main.py")
    return (await run_turn(session, "Hello", model=model, tools=[read_file, listing, recall], manager=manager)).text
