"""A user who has none of the clients installed. Type-checked, never run."""

from context_window import ContextWindow, ContextWindowManager, Session

manager, session = ContextWindowManager("gpt-5.2", context_window=ContextWindow(max_tokens=8_000)), Session()
session.add_message("user", "Hello")
messages, system = session.to_anthropic_messages()
body = {"model": "m", "input": session.to_openai_responses(), "tools": [manager.recall_tool("openai-responses").definition]}
first: dict[str, object] = messages[0]["content"][0]
calls = {item.call_id: item.arguments for item in session if item.type == "function_call"}
roles: list[str] = [message["role"] for message in manager.request(session, "openai", model="m")["messages"]]
