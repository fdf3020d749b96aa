#!/usr/bin/env bash
# Runs port_submit and ingress under a sanitizer, with short samples and without the scaling gate:
# the run checks behaviour, not speed.
#
#   crates/bench/sanitizer.sh asan|lsan|tsan NIGHTLY
set -euo pipefail
cd "$(dirname "$0")/../.."

kind=$1
nightly=$2
# ThreadSanitizer needs an instrumented standard library: without it, each atomic operation of that
# library would look like a race.
std=()
case $kind in
  # Stacks are not checked: AddressSanitizer does not know the bounds of actor stacks.
  asan) flags="-Zsanitizer=address -Cllvm-args=-asan-stack=0" ;;
  lsan) flags="-Zsanitizer=leak" ;;
  # Two services are linked in as Rust libraries, each with the symbol that it exports as a shared
  # one. Nothing uses that symbol here, so the linker drops both, except in a build that includes
  # the standard library.
  tsan) flags="-Zsanitizer=thread -Clink-arg=-Wl,--allow-multiple-definition" std=(-Zbuild-std) ;;
  *)
    printf 'SAN is asan, lsan or tsan, not %s\n' "$kind" >&2
    exit 2
    ;;
esac
if ! rustup run "$nightly" rustc --version >/dev/null 2>&1; then
  scripts/skip.sh san "rustup has no $nightly"
  exit
fi

triple=x86_64-unknown-linux-gnu
target=${CARGO_TARGET_DIR:-$PWD/target}/$kind
# The lab opens its service as a shared library, which uses the sanitizer's run time in the program.
CARGO_TARGET_DIR=$target RUSTFLAGS="$flags -Clink-arg=-Wl,--export-dynamic" \
  cargo "+$nightly" build --locked "${std[@]}" --target "$triple" -p thalweg-bench

# A program that was built without it would find nothing, always.
program=$target/$triple/debug/thalweg-bench
case $kind in
  asan) symbol=__asan_init ;;
  lsan) symbol=__lsan_init ;;
  tsan) symbol=__tsan_init ;;
esac
# Not grep -q: it stops at the first match, nm then fails with SIGPIPE, and pipefail would report
# the symbol as missing.
if ! nm "$program" | grep "$symbol" >/dev/null; then
  printf 'san: %s has no %s in it\n' "$program" "$kind" >&2
  exit 1
fi
export THALWEG_SCALING_GATE=0 THALWEG_SUBMIT_THREADS=1,2,4,8
"$program" run port_submit ingress --quick --allow-debug
