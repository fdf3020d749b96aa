#!/usr/bin/env bash
# Write the Go code that is not committed: the packages of guests in Go, into the folders `guest-go` of their modules.
set -euo pipefail
cd "$(dirname "$0")/.."

cargo build --locked --quiet --workspace --bin thalweg
target=${CARGO_TARGET_DIR:-$PWD/target}
thalweg=$target/debug/thalweg
"$thalweg" gen --guest go --out bindings/go/tests/service bindings/c/tests/guests/interface >/dev/null
"$thalweg" gen --guest go --out bindings/go/tests/inputs bindings/c/tests/guests/inputs >/dev/null
"$thalweg" gen --guest go --out bindings/go/tests/names bindings/go/tests/names/interface >/dev/null
"$thalweg" gen --guest go --out examples/echo/guests/go examples/echo/wit >/dev/null
python3 conformance/guests/package.py go "$target/conformance-guests/go/interface"
"$thalweg" gen --guest go --out conformance/guests/go "$target/conformance-guests/go/interface" >/dev/null
