"""The examples of `docs/guides/frameworks.md`, with the real frameworks against the strict stubs. CONTRIBUTING.md says how to run them.

Each framework runs a long conversation. The stub refuses what a provider would: broken pairs, wrong roles, blank texts.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.support.shared import ROOT
from tests.support.stubs import AnthropicStub, Call, GeminiStub, OpenAIChatStub, OpenAIResponsesStub, Say, Script, Stub, Think, in_order

Json = dict[str, Any]
GUIDE = ROOT / "docs/guides/frameworks.md"
TURNS = 24
TASK = "Read all of the files."

pytestmark = pytest.mark.filterwarnings("ignore")  # of packages that are not ours


def code_of(title: str, language: str) -> str:
    """Return the guide's example of this title."""
    (code,) = re.findall(rf'^```{language} title="{title}"\n(.*?)^```$', GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert "80_000" in code or "80000" in code
    return str(code)


def example(title: str, **names: Any) -> dict[str, Any]:
    """Run the guide's example of this title, with a small window, and return its names."""
    code = code_of(title, "python")
    exec(compile(code.replace("80_000", "6_000").replace('"gpt-5"', '"gpt-4.1"'), title, "exec"), names)
    return names


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No framework may call home. Connections that one leaves open are closed while its warnings are still ignored."""
    for name in ("LITELLM_LOCAL_MODEL_COST_MAP", "OTEL_SDK_DISABLED", "CREWAI_DISABLE_TELEMETRY", "CREWAI_DISABLE_TRACKING"):
        monkeypatch.setenv(name, "true")
    yield
    gc.collect()


def framework(name: str, package: str) -> Any:
    """Return a framework's module, or skip the test."""
    return pytest.importorskip(name, reason=f"pip install {package}")


def read(path: str) -> str:
    """Read a file.

    Args:
        path: The file's name.

    Returns:
        What was written in it.
    """
    return "".join(f"{path}, line {number}: something that was written\n" for number in range(40))


READ_TOOL = {
    "type": "function",
    "function": {"name": "read", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}},
}


def reader(finish: tuple[Any, ...] = (Say("All are read."),)) -> Script:
    """A model that reads one file after the other and then finishes."""
    return in_order(*((Call("read", {"path": f"{number}.py"}),) for number in range(TURNS)), finish)


def check(stub: Stub, *, field: str = "messages", least: int = TURNS + 1) -> None:
    """Long conversations are trimmed and accepted, the task and the newest output are there, and views extend those before them."""
    assert len(stub.requests) == len(stub.answers) >= least, "none was refused"
    views = [request[field] for request in stub.requests]
    sizes = [len(json.dumps(view)) for view in views]
    assert max(sizes) < 30_000 < TURNS * len(read("1.py"))
    extended = [later[: len(earlier)] == earlier for earlier, later in pairwise(views)]
    assert 1 <= extended.count(False) <= len(extended) / 4
    assert all(TASK in json.dumps(view) for view in views)
    assert all(f"{number}.py, line 39" in json.dumps(view[-2:]) for number, view in enumerate(views[1 : TURNS + 1]))


def test_litellm() -> None:
    framework("litellm", "litellm")
    with OpenAIChatStub(reader()) as stub:
        ask = example("LiteLLM")["ask"]
        messages: list[Any] = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": TASK}]
        for _ in range(TURNS + 1):
            answer = ask(messages, tools=[READ_TOOL], api_base=f"{stub.url}/v1", api_key="k")
            message = answer.choices[0].message
            messages.append(message)  # an object of LiteLLM's
            calls = message.tool_calls or ()
            messages += [
                {"role": "tool", "tool_call_id": call.id, "content": read(**json.loads(call.function.arguments))} for call in calls
            ]
        assert messages[-1].content == "All are read."
        check(stub)


@pytest.mark.parametrize("is_streamed", [False, True])
def test_smolagents(*, is_streamed: bool) -> None:
    smolagents = framework("smolagents", "smolagents openai")
    with OpenAIChatStub(reader((Call("final_answer", {"answer": "All are read."}),))) as stub:
        model = example("smolagents")["ManagedModel"](model_id="gpt-4.1", api_base=f"{stub.url}/v1", api_key="k")
        agent = smolagents.ToolCallingAgent(
            tools=[smolagents.tool(read)], model=model, max_steps=TURNS + 2, stream_outputs=is_streamed, verbosity_level=0
        )
        assert agent.run(TASK) == "All are read."
        assert len(agent.memory.steps) == TURNS + 2, "the memory is whole"
        check(stub)


def test_strands() -> None:
    package = "'strands-agents[openai]'"
    strands, models = framework("strands", package), framework("strands.models.openai", package)
    with OpenAIChatStub(reader()) as stub:
        model = models.OpenAIModel(client_args={"base_url": f"{stub.url}/v1", "api_key": "k"}, model_id="gpt-4.1")
        whole = strands.agent.NullConversationManager()
        agent = strands.Agent(model, tools=[strands.tool(read)], callback_handler=None, conversation_manager=whole)
        example("Strands")["add_window"](agent, "gpt-4.1")
        assert str(agent(TASK)).strip() == "All are read."
        assert len(agent.messages) == 2 * TURNS + 2, "the history is whole"
        check(stub)


def test_google_adk() -> None:
    agents, models, runners = (framework(f"google.adk.{name}", "google-adk") for name in ("agents", "models.google_llm", "runners"))
    with GeminiStub(reader()) as stub:
        model = models.Gemini(model="gemini-3-pro-preview", base_url=stub.url, client_kwargs={"api_key": "k"})
        callback = example("ADK")["before_model"]
        agent = agents.LlmAgent(name="reader", model=model, instruction="Be brief.", tools=[read], before_model_callback=callback)
        runner = runners.InMemoryRunner(agent=agent, app_name="app")
        events = asyncio.run(runner.run_debug(TASK, quiet=True))
        assert events[-1].content.parts[0].text == "All are read."
        assert len(events) == 2 * TURNS + 1, "the session is whole"
        check(stub, field="contents")


def test_dspy() -> None:
    dspy = framework("dspy", "dspy")
    with OpenAIChatStub(lambda request: [Say("[[ ## answer ## ]]\nYes.\n\n[[ ## completed ## ]]")]) as stub:
        lm = example("DSPy")["ManagedLM"]("openai/gpt-4.1", api_base=f"{stub.url}/v1", api_key="k", cache=False)

        fields = {"question": (str, dspy.InputField()), "history": (dspy.History, dspy.InputField()), "answer": (str, dspy.OutputField())}
        predict = dspy.Predict(dspy.Signature(fields))
        history = dspy.History(messages=[])
        with dspy.context(lm=lm):
            for number in range(TURNS):
                question = f"{TASK} {read(f'{number}.py')}"
                answer = predict(question=question, history=history).answer
                history.messages.append({"question": question, "answer": answer})
        assert len(stub.answers) == len(stub.requests) == TURNS
        sizes = [len(json.dumps(request["messages"])) for request in stub.requests]
        assert max(sizes) < 30_000 < len(json.dumps(history.messages))


class NamedResultsStub(OpenAIChatStub):
    """Takes the tool's name in a result, which OpenAI's examples once had and CrewAI still sends."""

    def serve(self, path: str, headers: Mapping[str, str], body: Json) -> Json:
        for message in body["messages"]:
            if message["role"] == "tool":
                del message["name"]
        return super().serve(path, headers, body)


def test_crewai() -> None:
    crewai, tools = framework("crewai", "crewai"), framework("crewai.tools", "crewai")
    with NamedResultsStub(reader()) as stub:
        llm = example("CrewAI")["ManagedLLM"](model="gpt-4.1", base_url=f"{stub.url}/v1", api_key="k")
        agent = crewai.Agent(role="Reader", goal="Read", backstory="", llm=llm, tools=[tools.tool("read")(read)], max_iter=2 * TURNS)
        task = crewai.Task(description=TASK, expected_output="A word.", agent=agent)
        assert crewai.Crew(agents=[agent], tasks=[task]).kickoff().raw == "All are read."
        check(stub)


@pytest.mark.parametrize("is_streamed", [False, True])
def test_llamaindex(*, is_streamed: bool) -> None:
    package = "llama-index-core llama-index-llms-openai"
    framework("llama_index.llms.openai", package)
    agents, core = framework("llama_index.core.agent.workflow", package), framework("llama_index.core.memory", package)

    async def run(agent: Any, memory: Any) -> str:
        return str(await agent.run(TASK, memory=memory, max_iterations=2 * TURNS))

    with OpenAIChatStub(reader()) as stub:
        llm = example("LlamaIndex")["ManagedOpenAI"](model="gpt-4.1", api_base=f"{stub.url}/v1", api_key="k")
        agent = agents.FunctionAgent(tools=[read], llm=llm, system_prompt="Be brief.", streaming=is_streamed)
        memory = core.ChatMemoryBuffer.from_defaults(token_limit=1_000_000)
        assert asyncio.run(run(agent, memory)) == "All are read."
        assert len(memory.get_all()) == 2 * TURNS + 2, "the memory is whole"
        check(stub)


def test_autogen() -> None:
    package = "autogen-agentchat 'autogen-ext[openai]'"
    agents, clients = framework("autogen_agentchat.agents", package), framework("autogen_ext.models.openai", package)

    async def run(agent: Any) -> str:
        return str((await agent.run(task=TASK)).messages[-1].content)

    with OpenAIChatStub(reader()) as stub:
        client = clients.OpenAIChatCompletionClient(model="gpt-4.1", base_url=f"{stub.url}/v1", api_key="k")
        context = example("AutoGen")["ManagedContext"]()
        agent = agents.AssistantAgent(
            "reader", client, tools=[read], model_context=context, max_tool_iterations=2 * TURNS, reflect_on_tool_use=False
        )
        assert asyncio.run(run(agent)) == "All are read."
        assert len(context._messages) == 2 * TURNS + 2, "the context is whole"
        check(stub)


@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize("is_async", [False, True])
def test_agno(*, is_async: bool, is_streamed: bool) -> None:
    agents = framework("agno.agent", "agno openai")

    async def events_of(agent: Any) -> list[Any]:
        options: Json = {"stream": True, "stream_events": True} if is_streamed else {}
        if not is_async:
            return list(agent.run(TASK, **options)) if is_streamed else [agent.run(TASK)]
        return [event async for event in agent.arun(TASK, **options)] if is_streamed else [await agent.arun(TASK)]

    with OpenAIChatStub(reader()) as stub:
        model = example("Agno")["ManagedChat"](id="gpt-4.1", base_url=f"{stub.url}/v1", api_key="k")
        agent = agents.Agent(model=model, instructions="Be brief.", tools=[read], telemetry=False)
        assert asyncio.run(events_of(agent))[-1].content == "All are read."
        check(stub)


@pytest.mark.parametrize("is_async", [False, True])
def test_haystack(*, is_async: bool) -> None:
    agents, tools, utils = (framework(f"haystack.{name}", "haystack-ai") for name in ("components.agents", "tools", "utils"))
    dataclasses = framework("haystack.dataclasses", "haystack-ai")
    with OpenAIChatStub(reader()) as stub:
        key = utils.Secret.from_token("k")
        generator = example("Haystack")["ManagedGenerator"](model="gpt-4.1", api_base_url=f"{stub.url}/v1", api_key=key)
        agent = agents.Agent(chat_generator=generator, tools=[tools.create_tool_from_function(read)])
        question = [dataclasses.ChatMessage.from_user(TASK)]
        result = asyncio.run(agent.run_async(question)) if is_async else agent.run(question)
        assert result["last_message"].text == "All are read."
        assert len(result["messages"]) == 2 * TURNS + 2, "the history is whole"
        check(stub)


@pytest.mark.parametrize("is_streamed", [False, True])
def test_agent_framework(*, is_streamed: bool) -> None:
    package = "agent-framework-core agent-framework-openai"
    agents, clients = framework("agent_framework", package), framework("agent_framework.openai", package)

    async def run(agent: Any, session: Any) -> str:
        if is_streamed:
            return "".join([update.text async for update in agent.run(TASK, session=session, stream=True)])
        return str((await agent.run(TASK, session=session)).text)

    with OpenAIChatStub(reader()) as stub:
        client = clients.OpenAIChatCompletionClient(model="gpt-4.1", base_url=f"{stub.url}/v1", api_key="k")
        agent = agents.Agent(client, "Be brief.", tools=[read], middleware=[example("Agent Framework")["add_window"]])
        assert asyncio.run(run(agent, agent.create_session())) == "All are read."
        check(stub)


def test_claude_agent_sdk(tmp_path: Path) -> None:
    sdk = framework("claude_agent_sdk", "claude-agent-sdk")
    from tests.support.gateways import bare, breaks, gateway

    steps = ((Think(f"Step {number}."), Call("Bash", {"command": f"seq {number} {number + 1_500}"})) for number in range(TURNS))
    script = in_order(*steps, (Say("Done."),))

    async def run(options: Any) -> Any:
        return [message async for message in sdk.query(prompt=TASK, options=options)][-1]

    with AnthropicStub(lambda request: script(request) if len(request.get("tools", [])) > 5 else [Say("A title")]) as stub:
        with gateway(stub.url, 60_000) as url:
            options = example("Claude Agent SDK")["options"]
            address = options.env["ANTHROPIC_BASE_URL"].replace("http://127.0.0.1:8383", url)
            options.env |= {"ANTHROPIC_BASE_URL": address, "ANTHROPIC_API_KEY": "made up", "HOME": str(tmp_path), "IS_SANDBOX": "1"}
            options.env["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] = "1"
            options.cwd, options.allowed_tools, options.model = tmp_path, ["Bash(seq:*)"], "claude-sonnet-4-5"
            assert asyncio.run(run(options)).result == "Done."
        assert len(stub.answers) == len(stub.requests)
    views = [[bare(each) for each in request["messages"]] for request in stub.requests if len(request.get("tools", [])) > 5]
    assert len(views) == TURNS + 1
    assert 1 <= breaks(views) <= TURNS / 3
    assert max(len(json.dumps(view)) for view in views) < 200_000


TYPESCRIPT = """
import { generateText, stepCountIs, tool } from "ai";
import { z } from "zod";

const lines = (path) => Array.from({ length: 40 }, (_, number) => `${path}, line ${number}: something that was written`);
const execute = async ({ path }) => lines(path).join("\\n");
const tools = { read: tool({ description: "Read a file.", inputSchema: z.object({ path: z.string() }), execute }) };
const stopWhen = stepCountIs(100);
console.log((await generateText({ model: openai.API("gpt-4.1"), prompt: "TASK", tools, stopWhen })).text);
"""


@pytest.mark.parametrize("api", ["chat", "responses"])
def test_the_ai_sdk_in_typescript(api: str, tmp_path: Path) -> None:
    folder = Path(os.environ.get("CONTEXT_WINDOW_CLIENTS", ""), "node_modules")
    if not (folder / "@ai-sdk/openai").exists():
        pytest.skip("npm install --prefix FOLDER ai @ai-sdk/openai zod, and CONTEXT_WINDOW_CLIENTS=FOLDER")
    from tests.support.gateways import gateway

    (tmp_path / "node_modules").symlink_to(folder.absolute())
    with {"chat": OpenAIChatStub, "responses": OpenAIResponsesStub}[api](reader()) as stub:
        with gateway(stub.url, 6_000) as url:
            program = code_of("AI SDK", "ts").replace("http://127.0.0.1:8383", url) + TYPESCRIPT.replace("API", api).replace("TASK", TASK)
            (tmp_path / "main.mjs").write_text(program, encoding="utf-8")
            environment = {**os.environ, "OPENAI_API_KEY": "k"}
            done = subprocess.run(
                ["node", "main.mjs"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120, check=False
            )
        assert (done.stdout, done.returncode) == ("All are read.\n", 0), done.stderr
        check(stub, field={"chat": "messages", "responses": "input"}[api])
