#!/usr/bin/env bash
# `unsafe` without SAFETY must fail `make lint`. This script plants some in a scratch crate that has
# this workspace's lints, and expects clippy to refuse it and to accept a documented twin.
set -euo pipefail
cd "$(dirname "$0")/.."

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/src"
cp rust-toolchain.toml "$scratch/"
{
  printf '[package]\nname = "planted"\nversion = "0.0.0"\nedition = "2024"\n[lints]\nworkspace = true\n[workspace]\n'
  awk '/^\[/ { on = /^\[workspace\.lints/ } on' Cargo.toml
} >"$scratch/Cargo.toml"

# lint SOURCE: returns clippy's exit status, and writes its output to $scratch/log.
lint() {
  printf '//! Planted.\n%s\n' "$1" >"$scratch/src/lib.rs"
  CARGO_TARGET_DIR="$scratch/target" cargo clippy --quiet --offline --manifest-path "$scratch/Cargo.toml" \
    -- -D warnings >"$scratch/log" 2>&1
}

refused() {
  if lint "$2" || ! grep -q 'missing a safety comment' "$scratch/log"; then
    printf 'test-unsafe-lint: %s was not refused:\n' "$1" >&2
    cat "$scratch/log" >&2
    exit 1
  fi
}

# The sources are Rust, where $ and ` have no meaning for the shell.
# shellcheck disable=SC2016
{
  block='pub fn f(p: &u8) -> u8 { %s unsafe { *std::ptr::from_ref(p) } }'
  in_macro='macro_rules! read { ($p:expr) => { %s unsafe { *std::ptr::from_ref($p) } }; }
/// Reads.
pub fn f(p: &u8) -> u8 { read!(p) }'
  an_impl='/// A.
pub struct A(pub *mut u8);
%s
unsafe impl Send for A {}'
  comment='
// SAFETY: a reference is readable.
'
}

for source in "/// Reads.
$block" "$in_macro" "$an_impl"; do
  # shellcheck disable=SC2059
  refused "unsafe without SAFETY" "$(printf "$source" '')"
  # shellcheck disable=SC2059
  if ! lint "$(printf "$source" "$comment")"; then
    printf 'test-unsafe-lint: the documented twin was refused:\n' >&2
    cat "$scratch/log" >&2
    exit 1
  fi
done

# Clippy does not check a macro that is exported and expanded only by others; check-text.sh does.
# shellcheck disable=SC2016
exported='//! Planted.
/// Reads.
#[macro_export]
macro_rules! read {
    ($p:expr) => {%s unsafe { *std::ptr::from_ref($p) } };
}'
mkdir "$scratch/scripts"
cp scripts/check-text.sh "$scratch/scripts/"
git -C "$scratch" init --quiet
# shellcheck disable=SC2059
printf "$exported" "$comment" >"$scratch/src/lib.rs"
git -C "$scratch" add src
if ! "$scratch/scripts/check-text.sh" >"$scratch/log" 2>&1; then
  printf 'test-unsafe-lint: the documented macro was refused:\n' >&2
  cat "$scratch/log" >&2
  exit 1
fi
# shellcheck disable=SC2059
printf "$exported" '' >"$scratch/src/lib.rs"
if "$scratch/scripts/check-text.sh" >"$scratch/log" 2>&1 || ! grep -q 'unsafe in a macro' "$scratch/log"; then
  printf 'test-unsafe-lint: unsafe without SAFETY in an exported macro was not refused\n' >&2
  exit 1
fi
printf 'test-unsafe-lint: unsafe without SAFETY is refused in a function, on an impl, in a macro and in an exported one\n'
