#!/usr/bin/env bash
# Compares the Nim files with the output of nimpretty.
set -euo pipefail
cd "$(dirname "$0")/.."

build=${CARGO_TARGET_DIR:-$PWD/target}/lint-nim
mkdir -p "$build"
status=0
while IFS= read -r -d '' file; do
  formatted=$build/$(basename "$file")
  cp "$file" "$formatted"
  nimpretty --maxLineLen:100 "$formatted"
  diff -u "$file" "$formatted" || status=1
done < <(git ls-files -z '*.nim' ':!*/generated/*' ':!*/golden/*')
exit "$status"
