#!/usr/bin/env bash
# Runs clang-tidy on the C++ headers and tests, if it is installed: one process for each file.
set -euo pipefail
cd "$(dirname "$0")/../.."

if ! command -v clang-tidy >/dev/null; then
  echo "clang-tidy is not installed"
  exit 0
fi
scripts/generate.sh
scripts/build-guests.sh
target=${CARGO_TARGET_DIR:-$PWD/target}
guests=$target/guests
generated=$target/cpp-tests/generated
"$target/debug/thalweg" gen --out "$generated" --guest c,cpp --lang c,cpp bindings/c/tests/guests/inputs \
  bindings/cpp/tests/guests/boxes >/dev/null
checks='-*,bugprone-*,performance-*'
# Parameters of one type are normal where the C headers have them.
checks+=,-bugprone-easily-swappable-parameters
# An exception in a function that is `noexcept`, and a lack of memory there, end the program as intended.
checks+=,-bugprone-exception-escape,-bugprone-unhandled-exception-at-new
# clang-tidy 14 does not see that a coroutine changes a variable while a loop dispatches its client.
checks+=,-bugprone-infinite-loop
# clang-tidy 14 does not read the `requires` that keeps a constructor from copying and moving.
checks+=,-bugprone-forwarding-reference-overload
# The checks clang-analyzer-* are missing: they follow neither reference counts nor coroutines, so
# that they report memory as freed that is not. test.sh runs the same code under AddressSanitizer.
printf '%s\n' bindings/cpp/tests/{calls,streams,coroutines,guests,guest_boxes,guests/probe,guests/inputs,guests/boxes}.cpp |
  xargs -P "$(nproc)" -I '{}' clang-tidy --quiet --warnings-as-errors='*' --header-filter='bindings/cpp/include' \
    --checks="$checks" '{}' -- -std=c++20 -Ibindings/cpp/include -Ibindings/c/include \
    -Iconformance/generated/cpp -Iconformance/generated/c "-I$guests/guest-cpp" "-I$guests/guest-c" \
    "-I$guests/cpp" "-I$guests/c" "-I$generated/guest-cpp" "-I$generated/guest-c" "-I$generated/cpp" "-I$generated/c"
