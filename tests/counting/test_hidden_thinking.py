"""What thinking costs that is not shown, and thinking that a request asks to keep."""

from __future__ import annotations

import pytest

from context_window import ContextWindow, ContextWindowManager, Reasoning, Session
from context_window.gateway.anthropic_messages import AnthropicWire
from context_window.gateway.windows import Windows
from context_window.gateway.wire_format import RequestConversation

KEEP = {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}
# Characters of the signatures of answers of Opus 4.7 whose thinking is not shown, and the tokens that these cost: reported, without the
# answer's own texts and calls.
RECORDED = [(8392, 2118), (616, 142), (10984, 3150), (352, 106), (1520, 393), (1284, 261), (2036, 543), (8164, 2608)]


def thinking(*signatures: int) -> Session:
    session = Session()
    session.add_message("user", "Begin.")
    for size in signatures:
        session.append(Reasoning("", signature="s" * size))
        call = session.add_function_call("f", {})
        session.add_function_output("f", "done", call.call_id)
    session.add_message("assistant", "Done.")
    session.add_message("user", "Go on.")
    return session


def tokens(model: str, session: Session, **options: object) -> int:
    manager = ContextWindowManager(model, options=options, context_window=ContextWindow(max_tokens=10**6))
    return manager.analyze_session(session)["total_tokens"]


def test_hidden_thinking_is_counted_by_its_signature() -> None:
    sizes, reported = zip(*RECORDED, strict=True)
    counted = tokens("claude-opus-4-7", thinking(*sizes)) - tokens("claude-opus-4-7", thinking(*([0] * len(sizes))))
    assert counted == pytest.approx(sum(reported), rel=0.05)


def test_thinking_that_the_request_keeps_is_counted_whatever_the_models_default() -> None:
    """`clear_thinking` with `keep: all` is honoured"""
    session = thinking(6_000)
    assert tokens("claude-sonnet-4-5", session, context_management=KEEP) > tokens("claude-sonnet-4-5", session) + 1_500
    other = {"edits": [{"type": "clear_tool_uses_20250919", "keep": {"type": "tool_uses", "value": 3}}]}
    assert tokens("claude-sonnet-4-5", session, context_management=other) == tokens("claude-sonnet-4-5", session)


@pytest.mark.parametrize("model", ["claude-opus-5", "claude-sonnet-4-5"])
def test_the_gateway_trims_hidden_thinking_above_the_budget(model: str) -> None:
    """111,000 tokens of thinking do not pass a budget of 60,000 unchanged"""
    messages: list[dict[str, object]] = [{"role": "user", "content": "Begin."}]
    for number in range(65):
        use = {"type": "tool_use", "id": f"c{number}", "name": "f", "input": {}}
        messages.append({"role": "assistant", "content": [{"type": "thinking", "thinking": "", "signature": "s" * 6_000}, use]})
        messages.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"c{number}", "content": "done"}]})
    body = {"model": model, "max_tokens": 1_000, "messages": messages, "context_management": KEEP}
    conversation = AnthropicWire().conversation("/v1/messages", body)
    assert isinstance(conversation, RequestConversation)
    fitted = Windows(ContextWindow(max_tokens=60_000)).fit(AnthropicWire(), conversation)
    assert fitted is not None
    assert 0 < str(fitted).count("'signature'") * 6_000 * 2 / 7 < 60_000
