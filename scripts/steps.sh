#!/usr/bin/env bash
# Run make targets one after another and print the result of each at the end, with its duration and
# the processor time of all its processes.
#
#   scripts/steps.sh NAME TARGET...
#
# The next target runs even if one fails, so one run shows everything that is wrong. The last lines of
# each failed target are printed again at the end, where a long log is read first. A target that could
# not run here leaves a line in build/skipped (scripts/skip.sh) and is listed at the end.
set -euo pipefail
cd "$(dirname "$0")/.."

name=$1
shift
mkdir -p build
rm -rf build/skipped build/steps
mkdir build/steps

passed=() failed=() lines=()
began=$SECONDS
TIMEFORMAT='%0U %0S'
total=0
for target in "$@"; do
  printf '\n=== %s\n' "$target"
  start=$SECONDS
  # `time` writes to the one file, the target to the terminal and the other file.
  if { time "${MAKE:-make}" "$target" 2>&1 | tee "build/steps/$target.log"; } 2>build/processor-time; then
    passed+=("$target")
    verdict=passed
  else
    failed+=("$target")
    verdict=FAILED
  fi
  if [ -e build/skipped ] && grep -q "^$target:" build/skipped; then verdict=skipped; fi
  read -r user system <build/processor-time
  total=$((total + user + system))
  line=$(printf '%-18s %-8s %4d s  %4d s of processor time' \
    "$target" "$verdict" $((SECONDS - start)) $((user + system)))
  # Now and at the end: a run that is ended early shows at least this.
  printf -- '--- %s\n' "$line"
  lines+=("$line")
done

printf '\n'
printf '%s\n' "${lines[@]}"
if [ -e build/skipped ]; then
  printf '\nSKIPPED, because it could not run here:\n'
  sed 's/^/  /' build/skipped
fi
if ((${#failed[@]})); then
  for target in "${failed[@]}"; do
    printf '\nThe last lines of %s (all of them: build/steps/%s.log):\n' "$target" "$target"
    tail -n 40 "build/steps/$target.log" | sed 's/^/  /'
  done
  printf '\nmake %s: FAILED: %s\n' "$name" "${failed[*]}"
  exit 1
fi
printf '\nmake %s: all %d steps passed in %d s (%d s of processor time)\n' \
  "$name" "${#passed[@]}" $((SECONDS - began)) "$total"
