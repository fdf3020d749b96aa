#!/usr/bin/env bash
# Builds the conformance service in Go: build.sh INTERFACE LIBRARY.
set -euo pipefail
cd "$(dirname "$0")/../../.."

"${CARGO_TARGET_DIR:-$PWD/target}/debug/thalweg" gen --guest go --out conformance/guests/go "$1" >/dev/null
cd conformance/guests/go
go build -buildmode=c-shared -o "$2" .
