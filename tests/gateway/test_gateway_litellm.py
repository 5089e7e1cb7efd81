"""The gateway's decision as a hook of the real LiteLLM, whose dependencies exclude those of our other tests.

python -m venv FOLDER && FOLDER/bin/pip install -e '.[gateway]' 'litellm[proxy]'
CONTEXT_WINDOW_LITELLM=FOLDER/bin/python pytest tests/gateway/test_gateway_litellm.py
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.support.shared import ROOT
from tests.support.stubs import Call, OpenAIChatStub

PYTHON = os.environ.get("CONTEXT_WINDOW_LITELLM", "")
BUDGET = 4_000

pytestmark = pytest.mark.skipif(not PYTHON, reason="CONTEXT_WINDOW_LITELLM names no Python that has LiteLLM")


def test_twenty_turns_through_the_hook_are_trimmed_and_accepted() -> None:
    """No request is refused, no pair is broken, other fields stay, and each request begins like the one before it between trims."""
    script = Path(__file__).parent / "litellm_turns.py"
    with OpenAIChatStub(lambda _: [Call("read", {"path": "a"})]) as stub:
        done = subprocess.run(
            [PYTHON, str(script), stub.url, str(BUDGET)],
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
            env={**os.environ, "PYTHONPATH": str(ROOT), "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        )
    assert done.returncode == 0, done.stderr[-2_000:]
    turns = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert len(turns) == len(stub.answers) == len(stub.requests) == 20
    assert turns[0][0] == turns[0][1]
    assert sum(len(json.dumps(sent)) < len(json.dumps(whole)) for whole, sent, _ in turns) >= 10
    breaks = sum(later[1][: len(earlier[1])] != earlier[1] for earlier, later in itertools.pairwise(turns))
    assert 1 <= breaks <= 10
    assert all(other == turns[0][2] for _, _, other in turns)
