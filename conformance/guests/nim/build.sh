#!/usr/bin/env bash
# Builds the conformance service in Nim: build.sh INTERFACE LIBRARY.
set -euo pipefail
cd "$(dirname "$0")/../../.."

generated=$(dirname "$1")
"${CARGO_TARGET_DIR:-$PWD/target}/debug/thalweg" gen --guest nim --out "$generated" "$1" >/dev/null
nim c --app:lib --mm:orc --threads:on -d:useMalloc -d:noSignalHandler --hints:off --path:bindings/nim/src \
  "--path:$generated/guest-nim" "--nimcache:$generated/nim-cache" "--out:$2" conformance/guests/nim/conformance.nim
