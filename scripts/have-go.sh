#!/usr/bin/env bash
# Succeed if the Go on the PATH is as new as bindings/go needs.
set -euo pipefail
cd "$(dirname "$0")/.."

needed=$(sed -n 's/^go //p' bindings/go/go.mod)
found=$(GOTOOLCHAIN=local go env GOVERSION 2>/dev/null)
[ "$(printf '%s\n%s\n' "$needed" "${found#go}" | sort -V | head -n 1)" = "$needed" ]
