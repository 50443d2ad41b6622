#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# reprise-index, whose first build stops in the middle and leaves half a file, until the worker that runs it dies.
# In the environment: FLEET_INDEX; FLEET_MARKS, a folder: the first build writes its worker's process id to
# FLEET_MARKS/stuck.
set -euo pipefail
echo "$*" >>"$FLEET_MARKS/calls"
if [ "$1" = build ] && mkdir "$FLEET_MARKS/first" 2>/dev/null; then
  head -c 1000 /dev/zero >"$3.$$-0.tmp" # the file after --output
  echo "$PPID" >"$FLEET_MARKS/stuck.tmp"
  mv "$FLEET_MARKS/stuck.tmp" "$FLEET_MARKS/stuck"
  while kill -0 "$PPID" 2>/dev/null; do sleep 0.1; done
  exit 1
fi
exec "$FLEET_INDEX" "$@"
