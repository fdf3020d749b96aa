#!/usr/bin/env bash
# Runs clang-tidy on the C++ headers and tests, if it is installed.
set -euo pipefail
cd "$(dirname "$0")/../.."

if ! command -v clang-tidy >/dev/null; then
  echo "clang-tidy is not installed"
  exit 0
fi
scripts/generate.sh
clang-tidy --quiet --warnings-as-errors='*' --header-filter='bindings/cpp/include' \
  --checks='-*,bugprone-*,clang-analyzer-*,performance-*,-bugprone-easily-swappable-parameters,-bugprone-exception-escape' \
  bindings/cpp/tests/{calls,streams,coroutines}.cpp -- -std=c++20 -Ibindings/cpp/include -Ibindings/c/include \
  -Iconformance/generated/cpp -Iconformance/generated/c
