#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The job of examples/fleet on a Ray cluster of two workers on this machine, one of which is killed, and the tests of
# its steps. Installs Ray from PyPI into build/fleet-venv, where it is found again. The exit status is 77 if it cannot be
# installed.
set -euo pipefail
cd "$(dirname "$0")/../.."

venv=$PWD/build/fleet-venv
build=build/fleet
tested=2.60.0

[ -x "$venv/bin/python" ] || python3 -m venv "$venv"
if ! "$venv/bin/python" -c 'import ray' 2>/dev/null && ! "$venv/bin/pip" install "ray==$tested"; then
  echo "not run: pip cannot install ray==$tested" >&2
  exit 77
fi

cmake --preset release -B "$build" -DREPRISE_BUILD_MICRO=OFF -DREPRISE_TEST_PACKAGING=OFF
cmake --build "$build" --target reprise-index reprise-example-fleet-server -j "$(nproc)"

# Ray keeps a token and its logs in the home and in the temporary folder.
home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
FLEET_INDEX=$PWD/$build/bench/index/reprise-index FLEET_SERVER=$PWD/$build/examples/fleet/fleet-server
export FLEET_INDEX FLEET_SERVER HOME=$home RAY_TMPDIR=$home RAY_USAGE_STATS_ENABLED=0 PYTHONDONTWRITEBYTECODE=1
"$venv/bin/python" -m unittest discover -s tests/fleet -p 'test_*.py'
