"""A user of Google's client. Type-checked, never run."""

from google import genai
from google.genai import types

from context_window import ContextWindowManager, GoogleModel, Session, run_turn

client, manager, session = genai.Client(), ContextWindowManager("gemini-3-pro"), Session()
tools: list[types.ToolDict] = [{"function_declarations": [{"name": "list_files"}]}]
recall = manager.recall_tool("google")


async def ask() -> str:
    """Return the answer to a question, by the loop and by hand."""
    contents, system = await session.to_google_contents()
    answer: types.GenerateContentResponse = client.models.generate_content(
        model="m", contents=contents, config={"system_instruction": system, "tools": [*tools, recall.definition]}
    )
    session.add_response(answer)
    config = types.GenerateContentConfig(system_instruction=system, tools=[recall.definition])
    session.add_response(await client.aio.models.generate_content(model="m", contents=contents, config=config))
    session.add_response(list(client.models.generate_content_stream(model="m", contents=contents)))
    session.add_response(client.models.generate_content(**manager.request(session, "google", model="m", tools=tools)))
    search = types.Tool(google_search=types.GoogleSearch())
    session.add_response(client.models.generate_content(**manager.request(session, "google", model="m", tools=[search])))
    await run_turn(session, "Hello", model=GoogleModel(client, "m"), tools=[search], manager=ContextWindowManager("m", tools=[search]))
    return (await run_turn(session, "Hello", model=GoogleModel(client, "m"), tools=tools, manager=manager)).text
