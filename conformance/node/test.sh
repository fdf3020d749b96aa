#!/usr/bin/env bash
# Runs the conformance scenarios and the malformed messages in Node.
set -euo pipefail
cd "$(dirname "$0")/../.."

target=${CARGO_TARGET_DIR:-$PWD/target}
mkdir -p "$target/conformance"
scripts/build-services.sh
scripts/generate.sh
bindings/node/build.sh

export RUST_BACKTRACE=0
"${NODE:-node}" --expose-gc conformance/node/runner.js "$target/debug/libthalweg_conformance.so" \
  conformance/scenarios.json conformance/hostile.json "$target/conformance/node.json"
