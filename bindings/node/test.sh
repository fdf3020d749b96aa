#!/usr/bin/env bash
# Tests of the Node package, against the conformance, echo and search libraries: plain, packed, and
# under AddressSanitizer. NODES are the programs to test with, by default `node`. The native part is
# built once, with the headers of the first one, and so is the packed package.
set -euo pipefail
cd "$(dirname "$0")/../.."

target=${CARGO_TARGET_DIR:-$PWD/target}
read -ra nodes <<<"${NODES:-${NODE:-node}}"
export NODE=${nodes[0]}
scripts/build-services.sh
scripts/generate.sh
scripts/build-guests.sh

export RUST_BACKTRACE=0
export THALWEG_TEST_LIBRARIES=$target/debug THALWEG_TEST_GUESTS=$target/guests

bindings/node/build.sh
packed=$target/node-tests/packed
rm -rf "$packed"
bindings/node/pack.sh "$packed" "$target/debug/libthalweg.so"
printf '{"type":"module"}' >"$packed/package.json"
(cd "$packed" && CC=false npm install --silent --offline --no-audit --no-fund ./thalweg-*.tgz)
cp examples/echo/generated/node/echo.js "$target/guests/node/probe.js" "$packed"

for node in "${nodes[@]}"; do
  "$node" -p '"Node " + process.version'
  # 1. Plain.
  "$node" --expose-gc --test --test-concurrency=1 "$@" bindings/node/tests/*.test.js
  # 2. The packed package, installed in an empty folder without a compiler.
  [[ $(cd "$packed" && "$node" --input-type=module --eval "
    import { Echo } from './echo.js';
    const echo = Echo.open(process.argv[1]);
    console.log(await echo.version());" "$target/debug/libthalweg_echo.so") =~ ^[0-9.]+$ ]]
  # It also opens guests: libthalweg.so is in the package.
  [ "$(cd "$packed" && env -u THALWEG_LIBRARY -u LD_LIBRARY_PATH "$node" --input-type=module --eval "
    import { readFileSync } from 'node:fs';
    import { Probe } from './probe.js';
    const probe = Probe.open(process.argv[1]);
    console.log(await probe.add(3n));
    const maps = String(readFileSync('/proc/self/maps'));
    console.log(/\S*\/libthalweg.so/.exec(maps)[0]);
    probe.close();" "thread:$target/guests/libguest_probe.so")" = "3n
$packed/node_modules/thalweg/prebuilds/$("$node" -p "process.platform + '-' + process.arch")/libthalweg.so" ]
  echo "packed: runs"
done

# 3. AddressSanitizer, whose runtime must be loaded first. Node itself leaks and is not judged.
asan=$target/node-tests/thalweg.asan.node
bindings/node/build.sh "$asan" -fsanitize=address,undefined -fno-sanitize-recover=undefined
THALWEG_NATIVE=$asan LD_PRELOAD=$("${CC:-cc}" -print-file-name=libasan.so) \
  ASAN_OPTIONS=detect_leaks=0 "$NODE" --expose-gc --test "$@" \
  bindings/node/tests/{values,calls,streams,upstreams,open,lifecycle}.test.js
