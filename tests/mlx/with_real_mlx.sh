#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The adapter for MLX on the real library: the conformance kit on small random models, and the example. Installs MLX
# from PyPI into build/mlx-venv, where it is found again.
# In the environment:
#   MLX_ROOT            another MLX, instead of the one from PyPI
#   REPRISE_MLX_MODEL   the folder of a Llama model with the vocabulary of the bundled traces (SmolLM2-135M-Instruct in
#                       Hugging Face's format); the example then compares its texts with and without drafting
# The exit status is 77 if MLX cannot be installed.
set -euo pipefail
cd "$(dirname "$0")/../.."

venv=$PWD/build/mlx-venv
build=build/mlx
tested=0.32.4

if [ -z "${MLX_ROOT:-}" ]; then
  [ -x "$venv/bin/python" ] || python3 -m venv "$venv"
  packages=(mlx=="$tested")
  [ "$(uname)" = Darwin ] || packages+=(mlx-cpu=="$tested")
  "$venv/bin/python" -c 'import mlx.core' 2>/dev/null || "$venv/bin/pip" install "${packages[@]}" ||
    { echo "not run: pip cannot install ${packages[0]}" >&2; exit 77; }
  MLX_ROOT=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')/mlx
fi

cmake --preset release -B "$build" -DMLX_ROOT="$MLX_ROOT" -DREPRISE_BUILD_MICRO=OFF -DREPRISE_TEST_PACKAGING=OFF
cmake --build "$build" --target reprise-mlx-tests reprise-mlx-tiny-folder reprise-example-mlx -j "$(nproc)"
ctest --test-dir "$build" --output-on-failure --no-tests=error -R '^(reprise-mlx-tests|mlx\.example)$'

if [ -z "${REPRISE_MLX_MODEL:-}" ]; then
  echo "skipped: REPRISE_MLX_MODEL names no model, so no text of a real model was compared"
  exit 0
fi
# The same text, or a near tie where they part (exit status 3). 4 is wrong.
for trace in json translation; do
  status=0
  "$build/examples/mlx/mlx" "$REPRISE_MLX_MODEL" "bench/traces/$trace.jsonl" --sessions 2 --longest 300 \
    --max-tokens 32 --cost 0.02 || status=$?
  [ "$status" -eq 0 ] || [ "$status" -eq 3 ] || exit "$status"
done
