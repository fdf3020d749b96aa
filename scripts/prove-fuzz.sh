#!/usr/bin/env bash
# Run each fuzz target for SECONDS, from its corpus: prove-fuzz.sh SECONDS NIGHTLY [TARGET..]
#
# An input that breaks a target is left in build/fuzz, with libFuzzer's report; add its hex to
# fuzz/corpus/TARGET.hex with the fix.
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=$1 nightly=$2
shift 2
targets=("${@:-}")
if [ -z "${targets[0]}" ]; then targets=(message cbor typed description c_abi wit policy); fi
triple=$(rustc -vV | sed -n 's/^host: //p')
work=$PWD/build/fuzz
mkdir -p "$work"

export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$PWD/target}/fuzz
# The flags that cargo-fuzz sets: coverage for libFuzzer, and AddressSanitizer.
export RUSTFLAGS="--cfg fuzzing -Zsanitizer=address -Cpasses=sancov-module -Ccodegen-units=1 \
-Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
-Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares"
# The runtime handles faults itself; each worker has its own signal stack.
export ASAN_OPTIONS=handle_segv=0:handle_sigbus=0:handle_abort=0:allow_user_segv_handler=1:use_sigaltstack=0:quarantine_size_mb=64
cargo "+$nightly" build --quiet --locked --release --target "$triple" --manifest-path fuzz/Cargo.toml

for target in "${targets[@]}"; do
  rm -rf "${work:?}/$target"
  mkdir -p "$work/$target"
  number=0
  while read -r hex; do
    number=$((number + 1))
    python3 -c 'import sys; sys.stdout.buffer.write(bytes.fromhex(sys.argv[1]))' "$hex" >"$work/$target/seed-$number"
  done <"fuzz/corpus/$target.hex"
  leaks=1
  # Its actors continue to run next to the fuzzer, and own memory on stacks that the leak check
  # cannot see; `make prove-soak` checks them for leaks.
  if [ "$target" = c_abi ]; then leaks=0; fi
  echo "$target: $seconds s from $number seeds"
  "$CARGO_TARGET_DIR/$triple/release/$target" "-max_total_time=$seconds" -max_len=4096 -rss_limit_mb=512 -malloc_limit_mb=64 \
    -timeout=10 -detect_leaks="$leaks" -print_final_stats=1 -artifact_prefix="$work/$target-" "$work/$target" 2>"$work/$target.log" || {
    tail -n 40 "$work/$target.log" >&2
    exit 1
  }
  grep -E 'number_of_executed_units|new_units_added' "$work/$target.log"
done
