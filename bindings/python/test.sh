#!/usr/bin/env bash
# Tests of the Python package, against the search and the conformance library.
set -euo pipefail
cd "$(dirname "$0")/../.."

target=${CARGO_TARGET_DIR:-$PWD/target}
export CARGO_TARGET_DIR=$target
bindings/python/build.sh
scripts/build-services.sh
# The tests also use the program, to create packages of other versions.
scripts/generate.sh
scripts/build-guests.sh

# A panic that a test asks for says so in one line.
export RUST_BACKTRACE=0 PYTHONDONTWRITEBYTECODE=1
export THALWEG_TEST_LIBRARIES=$target/debug THALWEG_TEST_GUESTS=$target/guests
bindings/python/tests/install.sh
exec .venv/bin/python -m pytest "$@"
