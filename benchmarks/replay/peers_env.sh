#!/usr/bin/env bash
# Makes an environment with the packages that the replay compares: bash benchmarks/replay/peers_env.sh FOLDER
# Then: python -m benchmarks.replay --peers FOLDER/bin/python
set -euo pipefail
folder=${1:?name a folder for the environment}
python3 -m venv "$folder"
"$folder/bin/python" -m pip install --quiet langchain-core summarization-pydantic-ai pydantic-ai-harness
"$folder/bin/python" -m pip list --format freeze | grep -E '^(langchain-core|summarization-pydantic-ai|pydantic-ai-harness|pydantic-ai-slim)='
