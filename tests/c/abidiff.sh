#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compares the types of the C interface with those of a release, by abidiff of libabigail. The test c.abi has names, sizes
# and offsets; this adds the types of parameters, results and members.
set -euo pipefail
cd "$(dirname "$0")/../.."

usage() {
  cat <<'TEXT'
Usage: tests/c/abidiff.sh [REF]
REF: the release to compare with (the highest tag v... before this commit). Within its minor version, functions may be
added, and members at the end of structs; a new minor version may change everything, and the changes are only printed.
The exit status is 1 if the interface has broken, 2 for a wrong REF, and 77 if abidiff is not found.
TEXT
}
case ${1:-} in
  --help) usage; exit ;;
  -*) echo "abidiff.sh: there is no option $1; --help shows the usage" >&2; exit 2 ;;
esac
command -v abidiff >/dev/null || { echo "abidiff is not found: install abigail-tools" >&2; exit 77; }

header=include/reprise_c/reprise.h
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
printf '[suppress_type]\ntype_kind = struct\nhas_data_member_inserted_at = end\n' >"$work/allowed"

# A library whose functions do nothing has the types of the header. The compiler holds the real ones against it.
library() {
  mkdir "$work/$1"
  cat >"$work/$1/reprise.h"
  python3 - "$work/$1" <<'PY'
import pathlib, re, sys

folder = pathlib.Path(sys.argv[1])
text = re.sub(r"/\*.*?\*/", "", (folder / "reprise.h").read_text(encoding="utf-8"), flags=re.S)
functions = re.findall(r"^REPRISE_API\s+([^;{]+);", text, flags=re.M)
if len(functions) < 20:
    sys.exit(f"{len(functions)} functions are too few: abidiff.sh reads declarations that begin with REPRISE_API")
bodies = "".join(f"{function} {{ __builtin_trap(); }}\n" for function in functions)
(folder / "library.c").write_text('#include "reprise.h"\n' + bodies, encoding="utf-8")
PY
  "${CC:-cc}" -std=c99 -g -O0 -fPIC -shared -w "$work/$1/library.c" -o "$work/$1/libreprise-c.so"
}
# Without what may be added. The status of abidiff is 0 for no change, 4 and more for a change, 1 to 3 for a failure.
changes() {
  abidiff --no-added-syms --suppressions "$work/allowed" "$work/$1/libreprise-c.so" "$work/$2/libreprise-c.so"
}

library now <$header
# What the comparison must find and what it must allow, so that its silence means something.
sed 's/reprise_batch_ran(reprise_batch\* batch, size_t rows)/reprise_batch_ran(reprise_batch* batch, int32_t rows)/' $header | library parameter
sed '0,/^} reprise_[a-z_]*;/s//  int64_t one_more;\n&/' $header | library member
for name in parameter member; do
  ! cmp -s "$work/now/reprise.h" "$work/$name/reprise.h" || { echo "abidiff.sh: the change of a $name has found nothing to change" >&2; exit 1; }
done
! changes now parameter >/dev/null || { echo "abidiff.sh: a parameter of another type was not found" >&2; exit 1; }
changes now member >"$work/log" || { cat "$work/log"; echo "abidiff.sh: a member at the end of a struct is refused" >&2; exit 1; }
! changes member now >/dev/null || { echo "abidiff.sh: a member that has gone was not found" >&2; exit 1; }

ref=${1:-$(git tag --list 'v[0-9]*' --merged HEAD --sort=-v:refname | head -n 1)}
if [ -z "$ref" ]; then
  echo "no earlier release to compare with; of three changed interfaces, the two broken ones were found"
  exit
fi
git show "$ref:$header" >"$work/old.h" 2>/dev/null || { echo "abidiff.sh: $ref has no $header" >&2; exit 2; }
library old <"$work/old.h"
minor_of() { sed -n 's/.*version_string = "\([0-9]*\.[0-9]*\)\..*/\1/p'; }
token=include/reprise/core/token.hpp
before=$(git show "$ref:$token" | minor_of)
status=0
changes old now || status=$?
if [ $status -eq 0 ]; then
  echo "the C interface serves programs that were compiled with $ref"
elif [ $status -ge 4 ] && [ "$before" != "$(minor_of <$token)" ]; then
  echo "the C interface has changed since $ref, which a new minor version may do"
else
  echo "abidiff.sh: the C interface has changed since $ref (status $status); keep it, or raise the minor version" >&2
  exit 1
fi
