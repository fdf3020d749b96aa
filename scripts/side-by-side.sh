#!/usr/bin/env bash
# Run commands side by side, as many at a time as there are processors, begun in the order in which they are given. What each
# wrote is shown in one piece, when it has ended. For commands that take one processor each. One that fails fails this.
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
