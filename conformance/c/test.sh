#!/usr/bin/env bash
# Runs the conformance scenarios in C, plain and under sanitizers. C has no reflection, so
# `conformance_tables` first writes tables of the types and methods into the build folder.
set -euo pipefail
cd "$(dirname "$0")/../.."

target=${CARGO_TARGET_DIR:-$PWD/target}
build=$target/conformance-c
service=${CONFORMANCE_SERVICE:-$target/debug/libthalweg_conformance.so}
reports=${CONFORMANCE_REPORTS:-$target/conformance}
mkdir -p "$build" "$reports"
scripts/build-services.sh
scripts/generate.sh
"$target/debug/conformance_tables" c conformance/wit "$build"

export RUST_BACKTRACE=0
runner() {
  "${CC:-cc}" -std=c99 -g -Wall -Wextra -Wpedantic -Wconversion -Werror -Ibindings/c/include \
    -Iconformance/generated/c -Iconformance/c "-I$build" "${@:2}" conformance/c/runner.c -o "$build/$1" -ljansson -ldl
  "$build/$1" "$service" conformance/scenarios.json "$reports/c.json"
}
runner plain -O2
# A guest is not compiled for sanitizers.
[ -n "${CONFORMANCE_SERVICE:-}" ] || runner sanitized -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined
