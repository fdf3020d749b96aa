#!/usr/bin/env bash
# Run make targets one after another and print the result of each at the end.
#
#   scripts/steps.sh NAME TARGET...
#
# The next target runs even if one fails, so one run shows everything that is wrong. A target that
# could not run here leaves a line in build/skipped (scripts/skip.sh) and is listed at the end.
set -euo pipefail
cd "$(dirname "$0")/.."

name=$1
shift
mkdir -p build
rm -f build/skipped

passed=() failed=() lines=()
began=$SECONDS
for target in "$@"; do
  printf '\n=== %s\n' "$target"
  start=$SECONDS
  if "${MAKE:-make}" "$target"; then
    passed+=("$target")
    verdict=passed
  else
    failed+=("$target")
    verdict=FAILED
  fi
  if [ -e build/skipped ] && grep -q "^$target:" build/skipped; then verdict=skipped; fi
  lines+=("$(printf '%-16s %-8s %4d s' "$target" "$verdict" $((SECONDS - start)))")
done

printf '\n'
printf '%s\n' "${lines[@]}"
if [ -e build/skipped ]; then
  printf '\nSKIPPED, because it could not run here:\n'
  sed 's/^/  /' build/skipped
fi
if ((${#failed[@]})); then
  printf '\nmake %s: FAILED: %s\n' "$name" "${failed[*]}"
  exit 1
fi
printf '\nmake %s: all %d steps passed in %d s\n' "$name" "${#passed[@]}" $((SECONDS - began))
