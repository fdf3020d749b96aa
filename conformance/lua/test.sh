#!/usr/bin/env bash
# Runs the conformance scenarios and the malformed messages in nginx, in both modes.
set -euo pipefail
cd "$(dirname "$0")/../.."

export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}
reports=${CONFORMANCE_REPORTS:-$CARGO_TARGET_DIR/conformance}
mkdir -p "$reports"
scripts/build-services.sh
scripts/generate.sh
bindings/lua/build.sh
PYTHONPATH=bindings/lua/tests PYTHONDONTWRITEBYTECODE=1 \
  exec .venv/bin/python conformance/lua/run.py "$reports"
