#!/usr/bin/env bash
# Tests of the Lua package in Debian's nginx, against the conformance and echo libraries, in both modes,
# and of the gateway.
set -euo pipefail
cd "$(dirname "$0")/../.."

export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
scripts/build-services.sh
scripts/generate.sh
scripts/build-guests.sh
bindings/lua/build.sh
bindings/lua/tests/resty_ffi/build.sh
export PYTHONDONTWRITEBYTECODE=1
exec .venv/bin/python -m pytest bindings/lua/tests examples/gateway/tests "$@"
