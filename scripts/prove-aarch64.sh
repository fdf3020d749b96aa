#!/usr/bin/env bash
# Run the tests of the queue and the runtime on another processor: compiled for 64-bit Arm, and run
# by qemu's user mode.
#
#   scripts/prove-aarch64.sh
set -euo pipefail
cd "$(dirname "$0")/.."

triple=aarch64-unknown-linux-gnu
emulator=$(command -v qemu-aarch64 || command -v qemu-aarch64-static || true)
linker=$(command -v aarch64-linux-gnu-gcc || true)
missing=
[ -n "$emulator" ] || missing+=" qemu-user"
[ -n "$linker" ] || missing+=" gcc-aarch64-linux-gnu"
[ -d "$(rustc --print sysroot)/lib/rustlib/$triple" ] || missing+=" Rust's-target-$triple"
if [ -n "$missing" ]; then
  scripts/skip.sh prove-aarch64 "not installed:$missing"
  exit 0
fi

export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=$linker
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="$emulator -L /usr/aarch64-linux-gnu"
export RUST_BACKTRACE=0
run() { cargo test --locked --target "$triple" "$@"; }

# The queue's test `stopped` is left out: it asserts how long a thread ran, and here that includes a
# translator.
run -p thalweg-queue --lib --test channels --test memory

# Left out: tests that start their own program again to observe how it ends, because the kernel
# starts no program for another processor ..
children=(
  stack::tests::overflowing:: stack::tests::guarding::heavy_guard_faults
  stack::tests::guarding::out_of_memory_is_an_error_and_existing_stacks_still_work
  stack::tests::trimming::guard_faults_after_a_trim
  an_actor_that_overflows_its_stack_is_named_and_ends_the_process
  an_actor_whose_handler_overflows_its_stack_is_named
  without_a_hook_it_goes_to_standard_error
  worker_that_waits_in_a_destructor_is_reported
)
# .. and tests that look up a flag of a mapping, which the emulator's /proc does not have.
books=(stack::tests::guarding::stack_never_gets_a_huge_page)

skips=()
for name in "${children[@]}" "${books[@]}"; do skips+=(--skip "$name"); done
run -p thalweg-runtime --lib --tests --no-fail-fast -- "${skips[@]}"
run -p thalweg-patterns --lib --tests
