#!/usr/bin/env bash
# Tests of the Node package, against the conformance, echo and search libraries: plain, and under
# AddressSanitizer.
set -euo pipefail
cd "$(dirname "$0")/../.."

target=${CARGO_TARGET_DIR:-$PWD/target}
node=${NODE:-node}
bindings/node/build.sh
scripts/build-services.sh
scripts/generate.sh

export RUST_BACKTRACE=0
export THALWEG_TEST_LIBRARIES=$target/debug
tests=(bindings/node/tests/*.test.js)
"$node" --expose-gc --test "$@" "${tests[@]}"

# The sanitizer's own runtime must be loaded first. Node itself leaks and is not judged.
asan=$target/node-tests/thalweg.asan.node
bindings/node/build.sh "$asan" -fsanitize=address,undefined -fno-sanitize-recover=undefined
runtime=$("${CC:-cc}" -print-file-name=libasan.so)
tests=(bindings/node/tests/{values,calls,streams,upstreams,open}.test.js)
THALWEG_NATIVE=$asan LD_PRELOAD=$runtime ASAN_OPTIONS=detect_leaks=0 \
  "$node" --expose-gc --test "$@" "${tests[@]}"
