#!/usr/bin/env bash
# Makes an environment with the packages that the benchmarks compare: bash benchmarks/peers/env.sh FOLDER
# Then: python -m benchmarks.peers --peers FOLDER/bin/python, or python -m benchmarks.replay --peers FOLDER/bin/python
set -euo pipefail
folder=${1:?name a folder for the environment}
python3 -m venv "$folder"
packages=(langchain-core tiktoken litellm llama-index-core penguin-ai agent-framework-core summarization-pydantic-ai pydantic-ai-harness)
"$folder/bin/python" -m pip install --quiet "${packages[@]}"
"$folder/bin/python" -m pip list --format freeze | grep -E "^($(IFS='|'; echo "${packages[*]}")|pydantic-ai-slim)="
