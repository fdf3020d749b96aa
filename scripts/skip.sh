#!/usr/bin/env bash
# Report that a step cannot run on this machine, and why. In CI this is a failure, because a step
# that CI skips is never run. Elsewhere the step is listed again at the end of the run.
#
#   scripts/skip.sh TARGET REASON
set -euo pipefail
cd "$(dirname "$0")/.."

printf '!!! %s CANNOT RUN HERE: %s\n' "$1" "$2" >&2
if [ -n "${CI:-}" ]; then exit 1; fi
mkdir -p build
printf '%s: %s\n' "$1" "$2" >>build/skipped
