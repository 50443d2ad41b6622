#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the commands of the Markdown files: every block ```sh that calls only reprise-replay, reprise-server, reprise-groups and reprise-index. Any other block
# needs a comment on the line before it, which says why it is not run:
#   <!-- not run: it needs a model file -->
# Usage: commands.sh SOURCE_FOLDER BENCH_BUILD_FOLDER WORK_FOLDER
set -euo pipefail
[ $# -eq 3 ] || { echo "usage: commands.sh SOURCE_FOLDER BENCH_BUILD_FOLDER WORK_FOLDER" >&2; exit 2; }
source=$(cd "$1" && pwd)
bench=$(cd "$2" && pwd)
rm -rf "$3"
mkdir -p "$3/blocks" "$3/run/build/replay"
work=$(cd "$3" && pwd)

# Commands find the bundled files and the tools where the pages say; what they write stays here.
ln -s "$source/bench" "$source/docs" "$work/run/"
ln -s "$bench" "$work/run/build/replay/bench"
PATH="$bench/replay:$bench/server:$bench/groups:$bench/index:$PATH"

# Each block that is to be run becomes a file; the others are passed over, or told.
cd "$source"
find . \( -path './build*' -o -path './.*' \) -prune -o -name '*.md' -print | sort | while read -r page; do
  awk -v page="${page#./}" -v folder="$work/blocks" '
    /^ *```sh *$/ { inside = 1; line = NR; text = ""; marked = before ~ /^ *<!-- not run: .+ -->$/; next }
    inside && /^ *```/ {
      inside = 0
      if (!marked) {
        name = page; gsub("/", "+", name)
        printf "%s", text > (folder "/" name ":" line)
        close(folder "/" name ":" line)
      }
    }
    inside { text = text $0 "\n" }
    { before = $0 }' "$page"
done

failed=0
count=0
for block in "$work"/blocks/*; do
  [ -e "$block" ] || break
  name=$(basename "$block" | tr + /)
  # The first words of its commands, with continued lines joined.
  others=$(sed -e ':a' -e '/\\$/N; s/\\\n//; ta' "$block" | sed -e 's/^ *//' -e '/^#/d' -e '/^$/d' |
    awk '$1 !~ /^(build\/replay\/bench\/replay\/)?reprise-(replay|server|groups|index)$/ || /[|;&`$]/')
  if [ -n "$others" ]; then
    printf '%s: write <!-- not run: reason --> on the line before this block, because the test cannot run:\n%s\n' \
      "$name" "$others"
    failed=$((failed + 1))
  elif ! (cd "$work/run" && timeout 300 bash -euo pipefail "$block") >"$work/out" 2>&1; then
    printf '%s: the command fails:\n' "$name"
    tail -n 5 "$work/out"
    failed=$((failed + 1))
  else
    count=$((count + 1))
  fi
done
echo "$count blocks were run, $failed are wrong"
[ "$failed" -eq 0 ] && [ "$count" -gt 0 ]
