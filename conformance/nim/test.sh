#!/usr/bin/env bash
# Runs the conformance scenarios in Nim, with calls that block and with asyncdispatch, with each kind of
# memory management. First `conformance_tables` writes the table of the methods.
set -euo pipefail
cd "$(dirname "$0")/../.."

target=${CARGO_TARGET_DIR:-$PWD/target}
build=$target/conformance-nim
service=${CONFORMANCE_SERVICE:-$target/debug/libthalweg_conformance.so}
reports=${CONFORMANCE_REPORTS:-$target/conformance}
mkdir -p "$build" "$reports"
scripts/build-services.sh
scripts/generate.sh
"$target/debug/conformance_tables" nim conformance/wit "$build"

export RUST_BACKTRACE=0
compile() {
  nim c --hints:off --warnings:off "--mm:$1" --threads:on --threadAnalysis:off -d:thalwegMessages \
    --nimcache:"$build/cache-$1" --path:bindings/nim/src --path:conformance/generated/nim --path:"$build" \
    --out:"$build/runner-$1" conformance/nim/runner.nim
}
status=0
run() {
  "$build/runner-$1" "$service" conformance/scenarios.json "$2" "${@:3}" || status=1
}
compile orc
run orc "$reports/nim.json"
run orc "$reports/nim-async.json" async
# A guest does not depend on the memory management of the host.
[ -z "${CONFORMANCE_SERVICE:-}" ] || exit "$status"
for memory in arc refc; do
  compile "$memory"
  run "$memory" "$build/$memory.json"
  run "$memory" "$build/$memory-async.json" async
done
exit "$status"
