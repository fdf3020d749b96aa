#!/usr/bin/env bash
# Runs the conformance scenarios in C++, with blocking calls and with coroutines, under sanitizers.
# C++ has no reflection, so `conformance_tables` first writes tables of the types and methods.
set -euo pipefail
cd "$(dirname "$0")/../.."

target=${CARGO_TARGET_DIR:-$PWD/target}
build=$target/conformance-cpp
service=${CONFORMANCE_SERVICE:-$target/debug/libthalweg_conformance.so}
reports=${CONFORMANCE_REPORTS:-$target/conformance}
mkdir -p "$build" "$reports"
scripts/build-services.sh
scripts/generate.sh
"$target/debug/conformance_tables" cpp conformance/wit "$build"

export RUST_BACKTRACE=0
"${CXX:-g++}" -std=c++20 -g1 -O0 -Wall -Wextra -Wpedantic -Werror -fsanitize=address,undefined \
  -fno-sanitize-recover=undefined -Ibindings/cpp/include -Ibindings/c/include -Iconformance/generated/cpp \
  -Iconformance/generated/c -Iconformance/cpp "-I$build" conformance/cpp/runner.cpp -o "$build/runner" \
  -ljansson -pthread -ldl
run() {
  "$build/runner" "$service" conformance/scenarios.json "$reports/$1" "${@:2}"
}
status=0
run c++.json || status=1
run c++-coroutines.json coroutines || status=1
exit "$status"
