#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The Python package in llama-cpp-python with SmolLM2-135M-Instruct: 24 bundled prompts, greedy, plain, with the engine's
# own lookup, and with reprise. Fails if a text differs from that of plain decoding without a near tie of the logits.
# Then the same with the quantized file, whose rounding depends on the rows of a pass, so ties are wider there, and a
# sampled text can differ.
# Then the engine as people use it (streaming, stop strings, threads, penalties, grammars), and the documented snippets.
# The server is asked too, if "llama-cpp-python[server]" is installed.
# Uses the environment that tests/llama/with_real_engine.sh has made.
# At last, the documented snippets in each engine of the folder REPRISE_ENGINES.
#   --if-present   only if it is there
set -euo pipefail
cd "$(dirname "$0")/../.."

python=$PWD/build/llama-venv/bin/python
models=$PWD/build/llama-models
build=build/llama
quantized=$models/SmolLM2-135M-Instruct.Q4_1.gguf
compare=examples/python/engines/compare.py

if ! [ -e "$quantized" ] || ! "$python" -c 'import gguf, llama_cpp, numpy' 2>/dev/null; then
  if [ "${1:-}" = --if-present ]; then
    echo "skipped: llama-cpp-python and its model are not here (tests/llama/with_real_engine.sh installs them)"
    exit 0
  fi
  bash tests/llama/with_real_engine.sh
fi

cmake --preset release -B "$build" -DREPRISE_BUILD_C=ON
cmake --build "$build" --target reprise-c-shared -j "$(nproc)"
REPRISE_LIBRARY=$(find "$PWD/$build" -name 'libreprise-c.so' -o -name 'libreprise-c.dylib' | head -n 1)
export REPRISE_LIBRARY PYTHONPATH=$PWD/examples/python PYTHONDONTWRITEBYTECODE=1

# In float32 the sums of a row still depend on the rows of its pass, in the last bits.
[ -e "$models/f32.gguf" ] || "$python" examples/python/engines/make_gguf.py "$quantized" "$models/f32.gguf"
"$python" "$compare" llama-cpp-python "$models/f32.gguf" --tokens 48 --json "$build/python-f32.json"
"$python" "$compare" llama-cpp-python "$quantized" --tokens 48 --tie 1 --no-checks --json "$build/python-q4_1.json"

"$python" tests/python/llama_cpp_as_used.py "$models/f32.gguf"
"$python" tests/python/snippets.py llama-cpp-python "$models/f32.gguf"
if "$python" -c 'import fastapi, uvicorn, sse_starlette, starlette_context, pydantic_settings' 2>/dev/null; then
  "$python" tests/python/llama_cpp_server.py "$models/f32.gguf"
else
  echo "skipped: the server of llama-cpp-python is not installed"
fi

# The other engines need up to 6 GB each: examples/python/engines/setup.sh installs them into a folder.
others=${REPRISE_ENGINES:-}
for engine in transformers onnxruntime-genai mlx-lm vllm sglang; do
  if [ -z "$others" ] || ! [ -x "$others/$engine/bin/python" ]; then
    echo "skipped: $engine is not in the folder REPRISE_ENGINES=$others"
    continue
  fi
  model=$others/model/hf
  [ $engine != onnxruntime-genai ] || model=$others/model/onnx
  # The snippet of SGLang starts a server on a GPU.
  [ $engine = sglang ] || "$others/$engine/bin/python" tests/python/snippets.py $engine "$model"
  case $engine in
    transformers) "$others/$engine/bin/python" tests/python/transformers_as_used.py "$model" ;;
    vllm)
      "$others/$engine/bin/python" tests/python/vllm_second_runner.py
      "$others/$engine/bin/python" bench/gpu/measure.py --shape tiny --slots 1,4 --limit 1 --json "$build/gpu-$engine.json"
      ;;
    sglang)
      "$others/$engine/bin/python" tests/python/sglang_on_cpu.py tiny
      "$others/$engine/bin/python" bench/gpu/measure.py --engine sglang --shape tiny --slots 1,4 --limit 1 --json "$build/gpu-$engine.json"
      ;;
  esac
done
