#!/usr/bin/env bash
# Builds the lab's service and runs a benchmark with it: run.sh (ffi_submit | codec) [ARGUMENT..]
#
# NIM_FFI_MM is the memory management (orc, arc or refc), and NIM_FFI_SAN a sanitizer of the C compiler.
set -euo pipefail
cd "$(dirname "$0")/../../.."

name=$1
target=${CARGO_TARGET_DIR:-$PWD/target}
build=$target/nim-bench
mkdir -p "$build"
cargo build --locked --quiet --release -p thalweg-lab
scripts/generate.sh
"$target/debug/thalweg" gen --lang nim bindings/nim/bench/wit >/dev/null
mm=${NIM_FFI_MM:-orc}
flags=("--mm:$mm" -d:danger --threads:on)
if [ -n "${NIM_FFI_SAN:-}" ]; then
  flags+=(-d:useMalloc --debugger:native "--passC:-fsanitize=$NIM_FFI_SAN" "--passL:-fsanitize=$NIM_FFI_SAN")
fi
nim c --hints:off "${flags[@]}" --nimcache:"$build/cache-$name-$mm" --path:bindings/nim/src \
  --path:crates/bench/generated/nim --path:bindings/nim/bench/generated/nim --out:"$build/$name" "bindings/nim/bench/$name.nim"
library=$target/release/libthalweg_lab.so
"$build/$name" "$library" "${@:2}"
