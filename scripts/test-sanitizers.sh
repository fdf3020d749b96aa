#!/usr/bin/env bash
# The C and the Python tests once more, with AddressSanitizer in everything: the service libraries and the Python
# extension are built with it by the nightly compiler, and share gcc's run-time with the C programs.
#
#   scripts/test-sanitizers.sh NIGHTLY
set -euo pipefail
cd "$(dirname "$0")/.."

nightly=$1
target=${CARGO_TARGET_DIR:-$PWD/target}
asan=$target/asan
triple=x86_64-unknown-linux-gnu
libraries=$asan/$triple/debug

# The heap is watched, stacks are not: AddressSanitizer does not know where the stacks of actors begin and end, so
# what a panic leaves poisoned there would be reported later, against somebody else.
CARGO_TARGET_DIR=$asan RUSTFLAGS="-Zsanitizer=address -Cllvm-args=-asan-stack=0" \
  cargo "+$nightly" build --locked --quiet --target "$triple" -p thalweg-search -p thalweg-echo -p thalweg-feed -p thalweg-hello -p thalweg-conformance -p thalweg-python

# A library that was built without it would make all that follows an empty show.
for library in thalweg_search thalweg_echo thalweg_feed thalweg_hello thalweg_conformance thalweg_python; do
  if [ "$(nm -D "$libraries/lib$library.so" | grep -c __asan_report)" = 0 ]; then
    printf 'test-sanitizers: lib%s.so has no AddressSanitizer in it\n' "$library" >&2
    exit 1
  fi
done
export RUST_BACKTRACE=0 PYTHONDONTWRITEBYTECODE=1

# C: the programs that `make test-c` built with sanitizers of their own, against these libraries.
c_tests=$target/c-tests/sanitized
c_conformance=$target/conformance-c/sanitized
if ! [ -x "$c_tests/files" ] || ! [ -x "$c_conformance" ]; then
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

# Packages of other versions are made in the tests, by a program as it always is.
cargo build --locked --quiet --workspace --bin thalweg
export THALWEG_TEST_PROGRAM=$target/debug/thalweg

# Python: the package from the tree, with the extension that was just built; it goes before the installed one.
rm -rf "$asan/python"
mkdir -p "$asan/python"
cp -r bindings/python/python/thalweg "$asan/python/"
cp "$libraries/libthalweg_python.so" "$asan/python/thalweg/_native.abi3.so"
# Leaks are not looked for: the interpreter keeps what it allocates for the process's life.
export ASAN_OPTIONS=detect_leaks=0 PYTHONPATH=$asan/python THALWEG_TEST_LIBRARIES=$libraries
run_time=$(cc -print-file-name=libasan.so)
LD_PRELOAD=$run_time .venv/bin/python -c "
import sys, thalweg._native as native
sys.exit(None if native.__file__.startswith('$asan/') else f'test-sanitizers: {native.__file__} was loaded')"
# What is freed is held back for a while, so that its use is seen: tests that watch the process grow cannot run.
LD_PRELOAD=$run_time .venv/bin/python -m pytest --ignore=bindings/python/tests/test_leaks.py --ignore=bindings/python/tests/test_soak.py \
  --deselect=bindings/python/tests/test_ending.py::test_ten_thousand_short_threads_leave_nothing
