#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Measures each model file of a folder that setups.py filled: the cost of passes, and whether the logits of a token
# depend on the number of rows of its pass. Prints the tables of setups.md. The machine must be quiet.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bench=$here/..

usage() {
  cat <<'END'
usage: measure_setups.sh FOLDER [NAME]...

Of each FOLDER/NAME.gguf (default: all files there) it writes
  FOLDER/results/NAME-cpu-1-thread.json        cost of passes of 1 to 33 rows, for reprise-replay --cost
  FOLDER/results/NAME-cpu-1-thread.flips.json  dependence of logits on the rows of a pass
and then prints the tables of all results in Markdown. A result that is there is kept: remove it to measure again.

environment:
  REPRISE_LLAMA  the program (default build/llama/bench/llama/reprise-llama)
  THREADS        threads of llama.cpp (default 1)
  CONTEXTS       tokens in the cache (default 128,1024)
  MAX_TOKENS     tokens of each answer that is recorded for --flips, of models without a bundled trace (default 64)
END
}
fail() {
  echo "measure_setups.sh: $1" >&2
  exit 2
}

case "${1:-}" in
  -h | --help) usage && exit 0 ;;
  "") usage >&2 && exit 2 ;;
esac
folder=$1
shift
program=${REPRISE_LLAMA:-$bench/../build/llama/bench/llama/reprise-llama}
threads=${THREADS:-1}
contexts=${CONTEXTS:-128,1024}
max_tokens=${MAX_TOKENS:-64}
[ -d "$folder" ] || fail "$folder: there is no such folder; make it with bench/llama/setups.py"
[ -x "$program" ] || fail "$program: there is no such program; build reprise-llama, or name it in REPRISE_LLAMA"
if [ $# -eq 0 ]; then
  for model in "$folder"/*.gguf; do
    [ -e "$model" ] || fail "$folder: has no model files; make them with bench/llama/setups.py"
    set -- "$@" "$(basename "$model" .gguf)"
  done
fi
results=$folder/results
mkdir -p "$results"

# The first session of five categories, recorded from SmolLM2; for other models their questions as plain dialogues.
categories=(prose reasoning retrieval summary translation)
dialogues() {
  python3 - "${categories[@]/#/$bench/prompts/}" <<'END'
import json, sys
for path in sys.argv[1:]:
    session = json.loads(open(path + ".jsonl").readline())
    system = session.pop("system", "")
    session["turns"] = [f"{'' if t else system}\n\nUser: {text}\nAssistant:" for t, text in enumerate(session["turns"])]
    print(json.dumps(session))
END
}

flips() { # MODEL FILE
  local traces=("${categories[@]/#/$bench/traces/}") model
  model=$(basename "$1" .gguf)
  traces=("${traces[@]/%/.jsonl}")
  local limit=(--limit 1)
  case "$model" in
    smollm2-*) ;;
    *)
      dialogues >"$results/$model.prompts.part"
      rm -f "$results/$model.trace.part"
      "$program" --model "$1" --threads "$threads" --raw --max-tokens "$max_tokens" \
        --prompts "$results/$model.prompts.part" --record "$results/$model.trace.part"
      traces=("$results/$model.trace.part")
      limit=()
      ;;
  esac
  "$program" --model "$1" --threads "$threads" --trace "${traces[@]}" "${limit[@]}" --flips \
    --format json --output "$2.part"
  mv "$2.part" "$2"
  rm -f "$results/$model".*.part
}

for name in "$@"; do
  model=$folder/$name.gguf
  [ -e "$model" ] || fail "$model: there is no such file; make it with bench/llama/setups.py --only $name"
  result=$results/$name-cpu-$threads-thread$([ "$threads" = 1 ] || echo s)
  [ -e "$result.json" ] ||
    "$program" --model "$model" --threads "$threads" --contexts "$contexts" --sequences 1 --profile "$result.json" >&2
  [ -e "$result.flips.json" ] || flips "$model" "$result.flips.json"
done
shopt -s nullglob
python3 "$here/setups_table.py" "$results"/*-cpu-*-thread.json "$results"/*-cpu-*-threads.json
