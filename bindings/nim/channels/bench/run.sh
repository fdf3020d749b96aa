#!/usr/bin/env bash
# Build and run the benchmarks: `bench/run.sh [--quick]`. Without cargo, the comparison with Rust is
# left out.
set -euo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-$PWD/../../../target}
out=$target/nim-channels/bench
mkdir -p "$out"
for name in suite cell gc_pause run; do
  nim c --hints:off --threads:on --mm:orc -d:danger --path:src "--nimcache:$out/$name-cache" "--out:$out/$name" "bench/$name.nim"
done
if command -v cargo >/dev/null; then
  cargo build --quiet --locked --release -p thalweg-queue --example spsc_rate --manifest-path ../../../Cargo.toml --target-dir "$target"
  cp "$target/release/examples/spsc_rate" "$out/spsc_rate"
fi
"$out/run" "$out" "$@"
