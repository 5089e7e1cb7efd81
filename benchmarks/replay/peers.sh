#!/usr/bin/env bash
# Makes an environment with the packages whose views are replayed beside ours: bash benchmarks/replay/peers.sh FOLDER
# Then: python -m benchmarks.replay --peers FOLDER/bin/python
set -euo pipefail
folder=${1:?name a folder for the environment}
python3 -m venv "$folder"
packages=(langchain-core tiktoken summarization-pydantic-ai pydantic-ai-harness)
"$folder/bin/python" -m pip install --quiet "${packages[@]}"
"$folder/bin/python" -m pip list --format freeze | grep -E "^($(IFS='|'; echo "${packages[*]}")|pydantic-ai-slim)="
