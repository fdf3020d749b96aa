#!/usr/bin/env bash
# Each library given: it exports tw_library and nothing else, and it stays loaded, since its threads run in it.
set -euo pipefail

for library; do
  symbols=$(nm --dynamic --defined-only --format=posix "$library" | cut -d ' ' -f 1)
  if [ "$symbols" != tw_library ]; then
    printf '%s exports, instead of tw_library alone:\n%s\n' "$library" "$symbols" >&2
    exit 1
  fi
  if ! readelf --dynamic --wide "$library" | grep -q NODELETE; then
    echo "$library can be unloaded: link it with -z nodelete, as docs/c-abi.md says" >&2
    exit 1
  fi
done
echo "symbols: tw_library alone, never unloaded"
