#!/usr/bin/env bash
# Tests of guests in Go: the codec, and a guest that hosts in C and Python call. `test.sh race` runs only the
# test under the race detector.
set -euo pipefail
cd "$(dirname "$0")/../.."

target=${CARGO_TARGET_DIR:-$PWD/target}
build=$target/go-tests
cc=${CC:-cc}
tests=bindings/go/tests
warnings=(-Wall -Wextra -Wpedantic -Wshadow -Werror)
export CARGO_TARGET_DIR=$target THALWEG_LIBRARY=$target/debug/libthalweg.so RUST_BACKTRACE=0
mkdir -p "$build"
scripts/build-services.sh
scripts/generate.sh
scripts/build-guests.sh
scripts/generate-go.sh

# library FOLDER OUT: builds a guest.
library() {
  (cd "$1" && go build -buildmode=c-shared -o "$build/$2" .)
}

# 1. The codec, and generated code with names that Go uses itself.
(cd bindings/go && go test ./... && go test -race ./...)

# 2. A program that is its own guest, because the race detector works only in programs.
race() {
  "$cc" -shared -fPIC "${warnings[@]}" -Ibindings/c/include $tests/race/shim/shim.c -o "$build/libshim.so"
  (cd $tests && CGO_CFLAGS=-I$target/guests/c go build -race -o "$build/race" ./race)
  GORACE=halt_on_error=1 "$build/race" "$build/libshim.so"
}
race
if [ "${1:-}" = race ]; then exit; fi

# 3. Hosts in C: the tests of all guests, and those of guests in Go.
library $tests/probe libguest_probe_go.so
bindings/c/test.sh guests-go "$build/libguest_probe_go.so"
for name in calls signals; do
  "$cc" -std=c99 -D_XOPEN_SOURCE=700 -g "${warnings[@]}" -Ibindings/c/include -Ibindings/c/tests "-I$target/guests/c" \
    "$tests/$name.c" -o "$build/$name" -pthread -ldl
  "$build/$name" "thread:$build/libguest_probe_go.so"
done

"$target/debug/thalweg" gen --lang c --out "$build/inputs" bindings/c/tests/guests/inputs >/dev/null
library $tests/inputs libguest_inputs_go.so
for source in bindings/c/tests/guest_inputs.c $tests/waiting.c; do
  name=$(basename "$source" .c)
  "$cc" -std=c99 -D_XOPEN_SOURCE=700 -g "${warnings[@]}" -Ibindings/c/include -Ibindings/c/tests "-I$build/inputs/c" \
    "$source" -o "$build/$name" -pthread -ldl
  "$build/$name" "$build/libguest_inputs_go.so"
done

# 4. A host in Python.
THALWEG_TEST_GUEST=$build/libguest_probe_go.so bindings/python/test.sh bindings/python/tests/test_guests.py

# 5. The example.
library examples/echo/guests/go libguest_echo_go.so
"$cc" -std=c99 -g "${warnings[@]}" -Ibindings/c/include -Iexamples/echo/generated/c examples/echo/hosts/c/echo.c \
  -o "$build/echo" -ldl
"$build/echo" "thread:$build/libguest_echo_go.so" | diff examples/echo/expected.txt - >&2
echo "example: expected output"
