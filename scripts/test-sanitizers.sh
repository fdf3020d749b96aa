#!/usr/bin/env bash
# Run the C and the Python tests again, with AddressSanitizer in everything: the nightly compiler
# builds the service libraries and the Python extension with it, and they share gcc's run-time
# library with the C programs.
#
#   scripts/test-sanitizers.sh NIGHTLY
set -euo pipefail
cd "$(dirname "$0")/.."

nightly=$1
target=${CARGO_TARGET_DIR:-$PWD/target}
asan=$target/asan
triple=x86_64-unknown-linux-gnu
libraries=$asan/$triple/debug

# The heap is checked, stacks are not: AddressSanitizer does not know the bounds of actor stacks, so
# memory that a panic leaves poisoned there would be reported later, in unrelated code.
CARGO_TARGET_DIR=$asan RUSTFLAGS="-Zsanitizer=address -Cllvm-args=-asan-stack=0" \
  cargo "+$nightly" build --locked --quiet --target "$triple" -p thalweg-search -p thalweg-echo -p thalweg-feed -p thalweg-hello -p thalweg-recipes -p thalweg-conformance -p thalweg-python -p thalweg-shared

# A library that was built without it would make all of the following checks void.
for library in thalweg_search thalweg_echo thalweg_feed thalweg_hello thalweg_recipes thalweg_conformance thalweg_python thalweg_shared; do
  if [ "$(nm -D "$libraries/lib$library.so" | grep -c __asan_report)" = 0 ]; then
    printf 'test-sanitizers: lib%s.so has no AddressSanitizer in it\n' "$library" >&2
    exit 1
  fi
done
ln -sf libthalweg_shared.so "$libraries/libthalweg.so"
export RUST_BACKTRACE=0 PYTHONDONTWRITEBYTECODE=1

# C: the programs that `make test-c` built with their own sanitizers, against these libraries.
c_tests=$target/c-tests/sanitized
c_conformance=$target/conformance-c/sanitized
c_guests=$target/c-tests/guests-sanitized
if ! [ -x "$c_tests/files" ] || ! [ -x "$c_conformance" ] || ! [ -x "$c_guests/reload" ]; then
  bindings/c/test.sh
fi
for program in calls hosts ports streams direct subscribe codec process; do
  "$c_tests/$program" "$libraries/libthalweg_conformance.so"
done
"$c_tests/hostile" "$libraries/libthalweg_conformance.so" conformance/hostile.json
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
"$c_tests/files" "$libraries/libthalweg_search.so" "$made"
"$c_conformance" "$libraries/libthalweg_conformance.so" conformance/scenarios.json "$made/c.json"

THALWEG_LIBRARY=$libraries/libthalweg.so "$c_guests/guests" "$c_guests"
THALWEG_LIBRARY=$libraries/libthalweg.so "$c_guests/hostile_guests" "$c_guests" "${HOSTILE_MESSAGES:-50000}"
THALWEG_LIBRARY=$libraries/libthalweg.so "$c_guests/reload" "$c_guests"

# The tests also use the program, in its usual build, to create packages of other versions, and
# guests in C.
scripts/generate.sh
scripts/build-guests.sh
export THALWEG_TEST_PROGRAM=$target/debug/thalweg THALWEG_TEST_GUESTS=$target/guests

# Python: the package from the tree, with the new extension; it takes precedence over the installed
# one.
rm -rf "$asan/python"
mkdir -p "$asan/python"
cp -r bindings/python/python/thalweg "$asan/python/"
cp "$libraries/libthalweg_python.so" "$asan/python/thalweg/_native.abi3.so"
# Leaks are not checked: the interpreter keeps its allocations for the life of the process.
export ASAN_OPTIONS=detect_leaks=0 PYTHONPATH=$asan/python THALWEG_TEST_LIBRARIES=$libraries
run_time=$(cc -print-file-name=libasan.so)
LD_PRELOAD=$run_time .venv/bin/python -c "
import sys, thalweg._native as native
sys.exit(None if native.__file__.startswith('$asan/') else f'test-sanitizers: {native.__file__} was loaded')"
# Freed memory is held back for a while, so that its use is detected: tests that watch the process
# grow cannot run.
LD_PRELOAD=$run_time .venv/bin/python -m pytest --ignore=bindings/python/tests/test_leaks.py --ignore=bindings/python/tests/test_soak.py \
  --deselect=bindings/python/tests/test_ending.py::test_ten_thousand_short_threads_leak_nothing
