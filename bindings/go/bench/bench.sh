#!/usr/bin/env bash
# Measure a call of a guest in Go from C, and what it is made of. `make build` has built the libraries.
set -euo pipefail
cd "$(dirname "$0")/../../.."

release=${CARGO_TARGET_DIR:-$PWD/target}/release
build=$release/go-bench
mkdir -p "$build"
"$release/thalweg" gen --out "$build" --lang c bindings/c/tests/guests/interface >/dev/null
"$release/thalweg" gen --guest go --out bindings/go/tests/service bindings/c/tests/guests/interface >/dev/null
(cd bindings/go && go build -o "$build/references" ./bench/references)
(cd bindings/go/tests && go build -buildmode=c-shared -o "$build/libguest_probe_go.so" ./probe)
"${CC:-cc}" -std=c99 -O2 -D_XOPEN_SOURCE=700 -Ibindings/c/include "-I$build/c" bindings/go/bench/calls.c \
  -o "$build/calls" -pthread -ldl
"$build/references"
THALWEG_LIBRARY=$release/libthalweg.so "$build/calls" "thread:$build/libguest_probe_go.so"
