#!/usr/bin/env bash
# Runs the conformance scenarios and the malformed messages in Node.
set -euo pipefail
cd "$(dirname "$0")/../.."

target=${CARGO_TARGET_DIR:-$PWD/target}
service=${CONFORMANCE_SERVICE:-$target/debug/libthalweg_conformance.so}
reports=${CONFORMANCE_REPORTS:-$target/conformance}
mkdir -p "$reports"
scripts/build-services.sh
scripts/generate.sh
bindings/node/build.sh

export RUST_BACKTRACE=0
"${NODE:-node}" --expose-gc conformance/node/runner.js "$service" \
  conformance/scenarios.json conformance/hostile.json "$reports/node.json"
