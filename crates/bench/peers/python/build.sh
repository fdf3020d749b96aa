#!/usr/bin/env bash
# Build the modules that Python loads as peers, into target/bench-peers/python. Called by `make
# bench-peers`.
set -euo pipefail
cd "$(dirname "$0")"

peers=${CARGO_TARGET_DIR:-$PWD/../../../../target}/bench-peers
cargo build --locked --release --target-dir "$peers"
mkdir -p "$peers/python"
cp "$peers/release/libpeer_pyo3.so" "$peers/python/peer_pyo3.abi3.so"
cp "$peers/release/libpeer_uniffi.so" "$peers/python/"
"$peers/release/peer-uniffi-bindgen" generate --language python --no-format \
  --out-dir "$peers/python" "$peers/release/libpeer_uniffi.so"
