#!/usr/bin/env bash
# Call a guest that misbehaves at random until it has used the functions of the core MESSAGES times:
# plain, and with AddressSanitizer in the core, the guest and the program if the nightly compiler is
# installed. A failure prints its seed.
#
#   scripts/prove-hostile.sh MESSAGES NIGHTLY
set -euo pipefail
cd "$(dirname "$0")/.."

export HOSTILE_MESSAGES=$1
nightly=$2
target=${CARGO_TARGET_DIR:-$PWD/target}
triple=x86_64-unknown-linux-gnu

bindings/c/test.sh hostile
if ! rustup run "$nightly" rustc --version >/dev/null 2>&1; then
  scripts/skip.sh prove-hostile "rustup has no $nightly, so not with AddressSanitizer"
  exit
fi
# The flags of `test-sanitizers.sh`.
CARGO_TARGET_DIR=$target/asan RUSTFLAGS="-Zsanitizer=address -Cllvm-args=-asan-stack=0" \
  cargo "+$nightly" build --locked --quiet --target "$triple" -p thalweg-shared
guests=$target/c-tests/guests-sanitized
THALWEG_LIBRARY=$target/asan/$triple/debug/libthalweg_shared.so "$guests/hostile_guests" "$guests" "$1"
