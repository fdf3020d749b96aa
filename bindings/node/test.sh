#!/usr/bin/env bash
# Tests of the Node package, against the conformance, echo and search libraries: plain, packed, and
# under AddressSanitizer.
set -euo pipefail
cd "$(dirname "$0")/../.."

target=${CARGO_TARGET_DIR:-$PWD/target}
node=${NODE:-node}
scripts/build-services.sh
scripts/generate.sh

export RUST_BACKTRACE=0
export THALWEG_TEST_LIBRARIES=$target/debug

# 1. Plain.
bindings/node/build.sh
"$node" --expose-gc --test --test-concurrency=1 "$@" bindings/node/tests/*.test.js

# 2. The packed package, installed in an empty folder without a compiler.
packed=$target/node-tests/packed
rm -rf "$packed"
bindings/node/pack.sh "$packed"
printf '{"type":"module"}' >"$packed/package.json"
(cd "$packed" && CC=false npm install --silent --offline --no-audit --no-fund ./thalweg-*.tgz)
sed "s|'../../lib/generated.js'|'thalweg/generated'|" bindings/node/tests/services/echo.js >"$packed/echo.js"
[[ $(cd "$packed" && "$node" --input-type=module --eval "
  import { Echo } from './echo.js';
  const echo = Echo.open(process.argv[1]);
  console.log(await echo.version());" "$target/debug/libthalweg_echo.so") =~ ^[0-9.]+$ ]]
echo "packed: runs"

# 3. AddressSanitizer, whose runtime must be loaded first. Node itself leaks and is not judged.
asan=$target/node-tests/thalweg.asan.node
bindings/node/build.sh "$asan" -fsanitize=address,undefined -fno-sanitize-recover=undefined
THALWEG_NATIVE=$asan LD_PRELOAD=$("${CC:-cc}" -print-file-name=libasan.so) \
  ASAN_OPTIONS=detect_leaks=0 "$node" --expose-gc --test "$@" \
  bindings/node/tests/{values,calls,streams,upstreams,open}.test.js
