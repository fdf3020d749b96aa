#!/usr/bin/env bash
# Build the addon that Node loads as a peer, into target/bench-peers/node. Called by `make
# bench-peers`. The lab itself compiles by_hand.c.
set -euo pipefail
cd "$(dirname "$0")"

peers=${CARGO_TARGET_DIR:-$PWD/../../../../target}/bench-peers
cargo build --locked --release --target-dir "$peers"
mkdir -p "$peers/node"
cp "$peers/release/libpeer_napi.so" "$peers/node/peer_napi.node"
