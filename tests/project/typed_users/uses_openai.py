"""A user of OpenAI's client. Type-checked, never run."""

import openai
from openai.types.chat import ChatCompletion, ChatCompletionToolParam
from openai.types.responses import Response

from context_window import ContextWindowManager, OpenAIModel, Session, run_turn

client, manager, session = openai.OpenAI(), ContextWindowManager("gpt-5.2"), Session()
tools: list[ChatCompletionToolParam] = [{"type": "function", "function": {"name": "list_files"}}]

completion: ChatCompletion = client.chat.completions.create(
    model="m", messages=session.to_openai_messages(reasoning_model=True), tools=[*tools, manager.recall_tool("openai").definition]
)
session.add_response(completion)
session.add_response(list(client.chat.completions.create(model="m", messages=session.to_openai_messages(), stream=True)))
completion = client.chat.completions.create(**manager.request(session, "openai", model="m", tools=tools))

response: Response = client.responses.create(
    model="m", input=session.to_openai_responses(), tools=[manager.recall_tool("openai-responses").definition]
)
session.add_response(response)
response = client.responses.create(**manager.request(session, "openai-responses", model="m", tools=tools))
with client.responses.stream(model="m", input=session.to_openai_responses()) as stream:
    session.add_response(stream.get_final_response())


async def ask() -> str:
    """Return the answer to a question, by the loop and by hand."""
    asynchronous = openai.AsyncOpenAI()
    session.add_response(await asynchronous.responses.create(**await manager.arequest(session, "openai-responses", model="m")))
    return (await run_turn(session, "Hello", model=OpenAIModel(asynchronous, "m"), tools=tools, manager=manager)).text
