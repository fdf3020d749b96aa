#!/usr/bin/env bash
# The conformance scenarios in C, plain and under sanitizers. The tables that the runner needs for want of reflection
# are written anew each time, into the build's folder.
set -euo pipefail
cd "$(dirname "$0")/../.."

target=${CARGO_TARGET_DIR:-$PWD/target}
build=$target/conformance-c
mkdir -p "$build" "$target/conformance"
scripts/build-services.sh
scripts/generate.sh
"$target/debug/examples/conformance_tables" conformance/wit "$build"

export RUST_BACKTRACE=0
runner() {
  "${CC:-cc}" -std=c99 -g -Wall -Wextra -Wpedantic -Wconversion -Werror -Ibindings/c/include \
    -Iconformance/generated/c -Iconformance/c "-I$build" "${@:2}" conformance/c/runner.c -o "$build/$1" -ljansson -ldl
  "$build/$1" "$target/debug/libthalweg_conformance.so" conformance/scenarios.json "$target/conformance/c.json"
}
runner plain -O2
runner sanitized -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined
