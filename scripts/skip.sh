#!/usr/bin/env bash
# Say that a step cannot run on this machine, and why. In CI that is a failure: what CI does not run, nobody
# runs. Elsewhere the step is named again at the end of the run.
#
#   scripts/skip.sh TARGET REASON
set -euo pipefail
cd "$(dirname "$0")/.."

printf '!!! %s CANNOT RUN HERE: %s\n' "$1" "$2" >&2
if [ -n "${CI:-}" ]; then exit 1; fi
mkdir -p build
printf '%s: %s\n' "$1" "$2" >>build/skipped
