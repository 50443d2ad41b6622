#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The public headers and the unit tests on other machines: Debian's cross compilers with qemu, and the clang of Zig.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
cd "$root"

# target: compiler, triple, emulator or system.
table='
s390x    debian  s390x-linux-gnu      qemu-s390x
armhf    debian  arm-linux-gnueabihf  qemu-arm
aarch64  debian  aarch64-linux-gnu    qemu-aarch64
riscv64  debian  riscv64-linux-gnu    qemu-riscv64
windows  zig     x86_64-windows-gnu   Windows
macos    zig     aarch64-macos        Darwin
wasm32   zig     wasm32-wasi          WASI
'
targets=$(awk 'NF { print $1 }' <<<"$table" | xargs)

usage() {
  cat <<TEXT
Usage: tests/targets/targets.sh [--jobs N] [TARGET]...
Compiles each public header on its own, and the unit tests, for other machines.
TARGET (all of them):
  s390x aarch64 riscv64 armhf  Debian's g++ for Linux. qemu runs the unit tests, and the program that folds drafts into
                               a number. Files are exchanged with this machine: snapshots, corpora and a cost curve
  windows macos wasm32         the clang of Zig, for x86_64, arm64 and wasm32-wasi. Programs are linked, but not run
  --jobs N                     compilations and programs at the same time ($(nproc))
GoogleTest comes from Debian's package googletest, Zig from PyPI into build/zig-venv. Results are in build/targets/.
The exit status is 1 if a check fails, 2 for a wrong option, and 77 if a target has no compiler here.
TEXT
}

jobs=$(nproc)
chosen=()
while [ $# -gt 0 ]; do
  case $1 in
    --help) usage; exit ;;
    --jobs)
      [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || { echo "targets.sh: --jobs takes a number from 1" >&2; exit 2; }
      jobs=$2
      shift
      ;;
    *)
      [[ " $targets " == *" $1 "* ]] || { echo "targets.sh: there is no target $1; choose from: $targets" >&2; exit 2; }
      chosen+=("$1")
      ;;
  esac
  shift
done
[ ${#chosen[@]} -gt 0 ] || read -ra chosen <<<"$targets"

googletest=${REPRISE_GOOGLETEST:-/usr/src/googletest}
[ -e "$googletest/CMakeLists.txt" ] ||
  { echo "targets.sh: $googletest has no GoogleTest: install googletest, or name its sources in REPRISE_GOOGLETEST" >&2; exit 1; }

work=$root/build/targets
mkdir -p "$work"
started=$SECONDS
say() { printf '%s: %s (after %d s)\n' "$target" "$1" $((SECONDS - started)); }
# Runs a command whose output matters only if it fails.
quietly() {
  "$@" >"$work/$target.log" 2>&1 || { tail -n 60 "$work/$target.log"; echo "$target: failed: $*" >&2; exit 1; }
}
configure() {
  quietly cmake --preset test -B "$work/$target" --fresh -DREPRISE_BUILD_BENCH=ON -DREPRISE_BUILD_EXAMPLES=OFF \
    -DREPRISE_BUILD_C=OFF -DCMAKE_CXX_FLAGS_RELEASE="-O1 -DNDEBUG" -DFETCHCONTENT_TRY_FIND_PACKAGE_MODE=NEVER \
    -DFETCHCONTENT_SOURCE_DIR_GOOGLETEST="$googletest" "$@"
}
build() { quietly cmake --build "$work/$1" -j "$jobs" --target "${@:2}"; }
warnings="-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror"
skipped=0

# The tests of the library, except those of the project itself, of random worlds, and of failing allocations.
programs=(reprise-{core,engine,stats,index,evidence,history,corpus,draft,control,loop,batch,methods,testing,speculator}-tests)

# --- This machine: the other side of the exchange ---

has_native=false
native() {
  if $has_native; then return; fi
  local target=native
  configure
  build native reprise-exchange reprise-replay
  mkdir -p "$work/native/exchange"
  "$work/native/tests/reprise-exchange" write "$work/native/exchange"
  has_native=true
}

# --- Debian's compilers and qemu ---

# Prints the number of tests that passed. $1: the command that runs a program of the target.
unit_tests() {
  local run=$1 program pids=() shard pid status=0 slow
  rm -f "$work/$target"-tests.*.log
  # Under qemu these would take many minutes. Those of files are run, because the order of bytes matters to them.
  slow=$(grep -vE '^#|Corpus|Snapshot' tests/support/slow_tests.txt | paste -sd :)
  for program in "${programs[@]}"; do
    for ((shard = 0; shard < jobs; shard++)); do
      # shellcheck disable=SC2086
      GTEST_TOTAL_SHARDS=$jobs GTEST_SHARD_INDEX=$shard $run "$work/$target/tests/$program" --gtest_brief=1 \
        --gtest_filter="-$slow" >"$work/$target-tests.$program.$shard.log" 2>&1 &
      pids+=($!)
    done
    for pid in "${pids[@]}"; do wait "$pid" || status=1; done
    pids=()
  done
  [ $status -eq 0 ] || { grep -hE 'Failure|FAILED|error' -A 5 "$work/$target"-tests.*.log | head -n 80 >&2; echo "$target: unit tests failed" >&2; exit 1; }
  sed -n 's/^\[  PASSED  \] \([0-9]*\) tests\.$/\1/p' "$work/$target"-tests.*.log | awk '{ sum += $1 } END { print sum + 0 }'
}

# Times and sizes of objects differ between machines.
same_figures() {
  python3 - "$@" <<'PY'
import json, sys

def figures(name):
    with open(name, encoding="utf-8") as file:
        results = json.load(file)["results"]
    return [{key: value for key, value in row.items() if "ns_" not in key and "_ns" not in key and key != "peak_bytes"} for row in results]

ours, theirs = map(figures, sys.argv[1:])
if not ours or ours != theirs:
    sys.exit(f"{sys.argv[2]}: the figures differ from those of {sys.argv[1]}")
PY
}

# Each side reads the files of the other, and both have written the same bytes.
exchange() {
  local run=$1 ours=$work/native theirs=$work/$target name ours_read theirs_read
  mkdir -p "$theirs/exchange"
  $run "$theirs/tests/reprise-exchange" write "$theirs/exchange"
  for name in all.snapshot documents.corpus; do cmp "$ours/exchange/$name" "$theirs/exchange/$name"; done
  ours_read=$("$ours/tests/reprise-exchange" read "$theirs/exchange")
  theirs_read=$($run "$theirs/tests/reprise-exchange" read "$ours/exchange")
  [ "$ours_read" = "$theirs_read" ] || { echo "$target: the machines find different matches: $ours_read here, $theirs_read there" >&2; exit 1; }
  # Each reader has written again what it read.
  for name in "$ours" "$theirs"; do cmp "$name/exchange/all.snapshot" "$name/exchange/again.snapshot"; done
  # A cost curve and a trace are texts; a replay of both gives the same figures.
  local arguments=(--cost bench/profiles/smollm2-135m-q4_1-cpu-1-thread.json --strategy ngram --format json --threads 1 bench/traces/json.jsonl)
  quietly "$ours/bench/replay/reprise-replay" "${arguments[@]}" --output "$work/native-replay.json"
  # shellcheck disable=SC2086
  quietly $run "$theirs/bench/replay/reprise-replay" "${arguments[@]}" --output "$work/$target-replay.json"
  same_figures "$work/native-replay.json" "$work/$target-replay.json"
}

debian() {
  local triple=$1 emulator=$2 run="$2 -L /usr/$1" tool flags=""
  for tool in "$triple-g++" "$emulator"; do
    command -v "$tool" >/dev/null || { echo "$target: not run, because $tool is not found"; skipped=77; return; }
  done
  # On 32 bits, helpers of tests narrow 64-bit places of small files. The headers are compiled with all warnings.
  [ "$target" != armhf ] || flags="-Wno-conversion;-Wno-narrowing"
  native
  configure --toolchain cmake/toolchains/debian.cmake -DREPRISE_TRIPLE="$triple" -DREPRISE_QEMU="$emulator" \
    -DREPRISE_TEST_FLAGS="$flags" -DCMAKE_CXX_FLAGS="$warnings -Wno-restrict -Wno-psabi --param=ggc-min-heapsize=524288"
  # Debian's compiler is the same for each machine, so only the one with 32 bits has something to say of each header.
  if [ "$target" = armhf ]; then
    build "$target" all_verify_interface_header_sets
    say "each public header compiles on its own"
  fi
  build "$target" "${programs[@]}" reprise-exchange reprise-replay
  say "unit tests compile"
  local passed
  passed=$(unit_tests "$run")
  say "$passed unit tests passed under $emulator"
  [ "$passed" -ge 1000 ] || { echo "$target: fewer unit tests than expected" >&2; exit 1; }
  exchange "$run"
  say "files and drafts are the same there and here"
}

# --- Zig ---

zig() {
  local triple=$1 system=$2 venv=$root/build/zig-venv tested=0.17.1 program tool folder
  if ! "$venv/bin/python" -c 'import ziglang' 2>/dev/null; then
    if ! { python3 -m venv "$venv" && "$venv/bin/pip" install --quiet "ziglang==$tested"; }; then
      echo "$target: not run, because pip cannot install ziglang==$tested"
      skipped=77
      return
    fi
  fi
  program=$("$venv/bin/python" -c 'import os, ziglang; print(os.path.join(os.path.dirname(ziglang.__file__), "zig"))')
  folder=$work/zig/$target
  mkdir -p "$folder"
  for tool in cc c++; do printf '#!/bin/sh\nexec "%s" %s -target %s "$@"\n' "$program" $tool "$triple" >"$folder/$tool"; done
  for tool in ar ranlib; do printf '#!/bin/sh\nexec "%s" %s "$@"\n' "$program" $tool >"$folder/$tool"; done
  chmod +x "$folder"/*
  # Zig adds checks of undefined behaviour unless told not to.
  local flags="$warnings -fno-sanitize=undefined" test_flags="-O0" link="" no_threads=OFF left_out=""
  # The <math.h> of macOS includes only a part of <float.h>, and hides the rest. GoogleTest needs two names from the rest.
  [ "$target" != macos ] || flags+=" -DFLT_MAX=__FLT_MAX__ -DDBL_MAX=__DBL_MAX__"
  if [ "$target" = wasm32 ]; then
    # WASI has neither threads nor dup(), and emulates mmap() and getpid(). Zig's C++ library for it has neither exceptions
    # nor files, so tests with threads or files are left out.
    left_out="^house/|/(loss_budget|corpus_damage|mapped_corpus|token_table|history_snapshot|history_store|snapshot|snapshot_file|tenants|next_tokens)\\.test"
    test_flags+=";-Wno-conversion;-Wno-c++11-narrowing"
    flags+=" -DGTEST_HAS_STREAM_REDIRECTION=0 -D_WASI_EMULATED_MMAN -D_WASI_EMULATED_GETPID"
    no_threads=ON
    link="$folder/no_throw.o -lwasi-emulated-mman -lwasi-emulated-getpid"
    quietly "$folder/c++" -std=c++20 -fno-sanitize=undefined -c tests/targets/no_throw.cpp -o "$folder/no_throw.o"
  fi
  configure --toolchain cmake/toolchains/zig.cmake -DREPRISE_ZIG="$folder" -DREPRISE_ZIG_SYSTEM="$system" \
    -DCMAKE_CXX_FLAGS="$flags" -DCMAKE_EXE_LINKER_FLAGS="$link" -Dgtest_disable_pthreads=$no_threads -DREPRISE_BUILD_BENCH=OFF \
    -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON -DREPRISE_TEST_FLAGS="$test_flags" -DREPRISE_TEST_LEFT_OUT="$left_out"
  build "$target" all_verify_interface_header_sets
  say "each public header compiles on its own"
  build "$target" "${programs[@]}"
  say "unit tests compile and link; they were not run"
}

for target in "${chosen[@]}"; do
  read -r _ kind triple last < <(awk -v name="$target" '$1 == name' <<<"$table")
  $kind "$triple" "$last"
done
exit $skipped
