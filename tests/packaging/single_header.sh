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

make_header --output "$header"
make_header --output "$header" --check
make_header --output - | cmp - "$header"
printf '// a change\n' >>"$header"
! make_header --output "$header" --check 2>/dev/null || { echo "--check accepts a file that was changed" >&2; exit 1; }
make_header --output "$header" >/dev/null
! make_header --output - --also reprise/nothing.hpp >/dev/null 2>&1 || { echo "--also accepts no file" >&2; exit 1; }

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
done

# Tests include headers by their own names. A folder of stand-ins makes each name in the single header mean the single
# header; the testing kit, which is not in it, is copied.
mkdir -p "$work/names/reprise"
cp -r include/reprise/. "$work/names/reprise/"
make_header --list | while read -r name; do printf '#include "../single_include/reprise/reprise.hpp"\n' >"$work/names/$name"; done
tests=(core/draft.test.cpp batch/packing.test.cpp loop/generate.test.cpp)
if [ -e /usr/include/gmock/gmock.h ]; then
  printf '%s\n' "${tests[@]}" | xargs -P 2 -I '{}' bash -c '
    g++ -std=c++20 -O0 -I"$1/single_include" -I"$1/names" -I"$1" -Itests -DREPRISE_SOURCE_DIR="\"$PWD\"" \
      -c "tests/$2" -o "$1/$(tr / _ <<<"$2").o"' _ "$work" '{}'
  g++ "$work"/*.test.cpp.o -lgmock -lgtest -lgtest_main -lpthread -o "$work/unit-tests"
  "$work/unit-tests" --gtest_brief=1
else
  echo "unit tests skipped: there is no gmock/gmock.h"
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
