#!/usr/bin/env bash
# Builds the conformance service in C++: build.sh INTERFACE LIBRARY.
set -euo pipefail
cd "$(dirname "$0")/../../.."

generated=$(dirname "$1")
"${CARGO_TARGET_DIR:-$PWD/target}/debug/thalweg" gen --guest c,cpp --out "$generated" "$1" >/dev/null
"${CXX:-g++}" -std=c++20 -O0 -g1 -Wall -Wextra -Werror -shared -fPIC -fvisibility=hidden -fno-gnu-unique \
  -Ibindings/c/include -Ibindings/cpp/include "-I$generated/guest-c" "-I$generated/guest-cpp" \
  conformance/guests/cpp/conformance.cpp -o "$2" -pthread
