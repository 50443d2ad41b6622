#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The lines and branches of the headers that the tests run. `tests/coverage/coverage.sh --help` explains it.
set -euo pipefail
cd "$(dirname "$0")/../.."

usage() {
  cat <<'EOF'
Usage: tests/coverage/coverage.sh [--list] [--no-build]
Builds the preset coverage, runs the tests of the library, and prints a table of lines and branches by layer.
  --list      also print each line of core/, engine/ and loop/ with a branch that no test takes
  --no-build  count again from the last run; build and run nothing
  --help      this text
Writes build/coverage/html/index.html and build/coverage/coverage.json with gcovr, which is installed from PyPI into
build/coverage-venv. Without gcovr, these two are not written, and the exit status is 77.
Environment:
  REPRISE_PROPERTY_CASES  random cases for each property (500)
  GCOV                    the gcov of the compiler (gcov)
The exit status is 1 if a branch of these layers is neither taken nor in tests/coverage/explained.txt, or if an entry of
that list is out of date. See tests/coverage/README.md.
EOF
}

list=()
build=true
while [ $# -gt 0 ]; do
  case $1 in
    --list) list=(--list) ;;
    --no-build) build=false ;;
    --help) usage; exit ;;
    *) echo "there is no option $1; tests/coverage/coverage.sh --help lists them" >&2; exit 2 ;;
  esac
  shift
done

folder=build/coverage
venv=$PWD/build/coverage-venv
tested=8.8
export REPRISE_PROPERTY_CASES=${REPRISE_PROPERTY_CASES:-500}

run_tests() {
  find "$folder" -name '*.gcda' -delete
  local pattern pids=() pid
  pattern=$(sed '/^#/d' tests/support/slow_tests.txt | paste -sd :)
  # Two processes for two cores; gcov locks its files.
  for shard in 0 1; do
    (
      export GTEST_TOTAL_SHARDS=2 GTEST_SHARD_INDEX=$shard
      for program in "$folder"/tests/reprise-*-tests; do
        # Tests of the project's text.
        [[ $program != *-house-tests ]] || continue
        "$program" --gtest_brief=1 --gtest_filter="-$pattern"
      done
    ) &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid"; done
}

if $build; then
  cmake --preset coverage
  cmake --build --preset coverage
  run_tests
fi
status=0
python3 tests/coverage/coverage.py "$folder" --gcov "${GCOV:-gcov}" "${list[@]}" || status=$?
[ "$status" -le 1 ] || exit "$status"

[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
if "$venv/bin/python" -c 'import gcovr' 2>/dev/null || "$venv/bin/pip" install "gcovr==$tested"; then
  mkdir -p "$folder/html"
  "$venv/bin/gcovr" --root . --add-tracefile "$folder/tracefile.json" --json-summary-pretty \
    --json-summary "$folder/coverage.json" --html-nested "$folder/html/index.html"
  echo "$folder/html/index.html shows each line."
else
  echo "no pages: pip cannot install gcovr==$tested"
  [ "$status" -ne 0 ] || status=77
fi
exit "$status"
