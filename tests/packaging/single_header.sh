#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes the single header, compiles it alone with each compiler, runs the quickstart and unit tests with it, and times a
# compilation with it against one with the source tree.
set -euo pipefail
case ${1:-} in
  --help) echo "Usage: tests/packaging/single_header.sh [WORK_FOLDER] (build/single-header, emptied first)"; exit ;;
  -*) echo "single_header.sh: there is no option $1; --help shows the usage" >&2; exit 2 ;;
esac
root=$(cd "$(dirname "$0")/../.." && pwd)
work=${1:-$root/build/single-header}
if [ -d "$work" ] && [ -n "$(ls -A "$work")" ] && [ ! -e "$work/single_include" ]; then
  echo "single_header.sh: $work has files of others; name an empty folder" >&2
  exit 2
fi
rm -rf "$work"
mkdir -p "$work"
work=$(cd "$work" && pwd)
cd "$root"

make_header() { python3 cmake/packaging/single_header.py "$@"; }
header=$work/single_include/reprise/reprise.hpp
jobs=$(nproc)
off=(-DREPRISE_BUILD_BENCH=OFF -DREPRISE_BUILD_EXAMPLES=OFF -DREPRISE_BUILD_C=OFF -DREPRISE_TEST_PACKAGING=OFF)

make_header --output "$header"
make_header --output "$header" --check
make_header --output - | cmp - "$header"
printf '// a change\n' >>"$header"
! make_header --output "$header" --check 2>/dev/null || { echo "--check accepts a file that was changed" >&2; exit 1; }
make_header --output "$header" >/dev/null
! make_header --output - --also reprise/nothing.hpp >/dev/null 2>&1 || { echo "--also accepts no file" >&2; exit 1; }

# One file for Compiler Explorer, which takes at most 16 MB (maxUploadSize of its configuration).
make_header --program examples/quickstart.cpp --output "$work/explorer.cpp"
[ "$(wc -c <"$work/explorer.cpp")" -le 16000000 ]
! make_header --program examples/nowhere.cpp --output - >/dev/null 2>&1 || { echo "--program accepts no file" >&2; exit 1; }

# A folder of its own, without the source tree.
cp examples/quickstart.cpp "$work"
printf '#include <reprise/reprise.hpp>\n' >"$work/alone.cpp"
warnings=(-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror)
compilers=()
for compiler in g++ clang++; do ! command -v $compiler >/dev/null || compilers+=("$compiler"); done
for compiler in "${compilers[@]}"; do
  for kind in "" "-fno-exceptions -fno-rtti"; do
    # shellcheck disable=SC2086
    $compiler -std=c++20 "${warnings[@]}" $kind -I"$work/single_include" -c "$work/alone.cpp" -o "$work/alone.o"
    echo "$compiler $kind: the header compiles alone without warnings"
  done
  $compiler -std=c++20 -O1 "${warnings[@]}" -I"$work/single_include" "$work/quickstart.cpp" -o "$work/quickstart"
  "$work/quickstart" | tail -n 1
  $compiler -std=c++20 -O1 "${warnings[@]}" "$work/explorer.cpp" -o "$work/explorer"
  cmp <("$work/explorer") <("$work/quickstart")
  echo "$compiler: the program for Compiler Explorer compiles alone and prints the same"
done

# The unit tests. They include headers by their own names, so they get a copy of the tree in which each header of the
# single header only includes the single header. The other headers, such as those of the testing kit, stay.
if [ -e /usr/include/gmock/gmock.h ]; then
  tree=$work/tree
  mkdir "$tree"
  git ls-files -z --cached --others --exclude-standard | tar --null -T - -c | tar -C "$tree" -x
  make_header --list | while read -r name; do printf '#pragma once\n#include "%s"\n' "$header" >"$tree/include/$name"; done
  # CMake reads the version from this header.
  sed -n 's,^.*version_string = ,// &,p' include/reprise/core/token.hpp >>"$tree/include/reprise/core/token.hpp"
  # A program for each layer, except those of the project itself and of random worlds.
  programs=(reprise-{core,engine,stats,index,evidence,history,corpus,draft,control,loop,batch,methods,testing,speculator}-tests)
  begun=$SECONDS
  (cd "$tree" && cmake --preset test "${off[@]}" && cmake --build --preset test -j "$jobs" --target "${programs[@]}") >"$work/tree.log" 2>&1 ||
    { tail -n 40 "$work/tree.log"; exit 1; }
  echo "unit tests: compiled in $((SECONDS - begun)) s"
  sum=0
  for program in "${programs[@]}"; do
    "$tree/build/test/tests/$program" >"$work/$program.log" || { tail -n 40 "$work/$program.log"; exit 1; }
    # A program without tests would be a fault of this script.
    passed=$(sed -n 's/^\[  PASSED  \] \([1-9][0-9]*\) tests\.$/\1/p' "$work/$program.log")
    [ -n "$passed" ] || { echo "$program reports no test that passed" >&2; exit 1; }
    sum=$((sum + passed))
  done
  echo "unit tests: $sum passed with the single header"
else
  echo "not run: there is no gmock/gmock.h, so no unit test" >&2
  exit 77
fi

# Alternating, so that a busy machine slows both down.
python3 - "$work" "${compilers[@]}" <<'EOF'
import statistics, subprocess, sys, time

work, compilers = sys.argv[1], sys.argv[2:]
for compiler in compilers:
    times = {"single": [], "tree": []}
    for _ in range(3):
        for name, folder in (("single", f"{work}/single_include"), ("tree", "include")):
            begun = time.monotonic()
            subprocess.run([compiler, "-std=c++20", "-O1", f"-I{folder}", "-c", f"{work}/quickstart.cpp", "-o", f"{work}/q.o"], check=True)
            times[name].append(time.monotonic() - begun)
    single, tree = (statistics.median(times[name]) for name in ("single", "tree"))
    print(f"{compiler} -O1 quickstart.cpp: single header {single:.2f} s, source tree {tree:.2f} s, ratio {single / tree:.2f}")
EOF
