#!/usr/bin/env bash
# Run commands in parallel, as many at a time as there are processors, started in the order given.
# The output of each command is shown as a whole when it has ended. Use it for commands that take
# one processor each. A failing command fails the script.
#
#   scripts/side-by-side.sh COMMAND...
set -euo pipefail

if [ "${1:-}" = --alone ]; then
  status=0
  said=$(bash -euo pipefail -c "$2" 2>&1) || status=$?
  printf '%s\n%s\n\n' "$2" "$said"
  exit "$status"
fi
printf '%s\0' "$@" | xargs -0 -n 1 -P "$(nproc)" "$0" --alone
