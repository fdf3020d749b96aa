#!/usr/bin/env bash
# Explore every model with up to 3 preemptions, each for at most SECONDS, and list at the end which
# were explored completely and which were cut off. A failing model fails the script.
#
#   scripts/prove-loom.sh SECONDS COMMAND...
#
# COMMAND is cargo's command line, up to the packages.
set -euo pipefail
cd "$(dirname "$0")/.."

export LOOM_MAX_DURATION=$1 LOOM_MAX_PREEMPTIONS=3
shift
mkdir -p build
log=build/prove-loom.log
: >"$log"

# Two at a time, each on its own processor, and named after its thread.
status=0
{
  "$@" -p thalweg-queue --lib --test loom -- --test-threads=2 &&
    "$@" -p thalweg-runtime -p thalweg-port --lib models:: -- --test-threads=2
} 2>&1 | tee "$log" || status=$?

complete=$(grep -c '^model .*: complete at ' "$log" || true)
printf '\nprove-loom: %s explorations were complete\n' "$complete"
if grep -q '^model .*: CUT OFF at ' "$log"; then
  printf 'prove-loom: CUT OFF after %s s each, so their last interleavings were not seen:\n' "$LOOM_MAX_DURATION"
  sed -n 's/^model \(.*: CUT OFF at .*\)/  \1/p' "$log" | sort
fi
if ((complete == 0)); then
  echo "prove-loom: no exploration said how it ended" >&2
  exit 1
fi
exit "$status"
