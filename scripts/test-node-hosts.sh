#!/usr/bin/env bash
# Tests of programs that use the Node package: the hosts of the examples against the output that is
# expected of every language, the programs of docs/node.md, compiled by tsc, and a service that
# `thalweg package --node` has packed (this builds in release mode).
#
#   scripts/test-node-hosts.sh [programs]   programs: without the packed service
set -euo pipefail
cd "$(dirname "$0")/.."

root=$PWD
target=${CARGO_TARGET_DIR:-$PWD/target}
node=${NODE:-node}
build=$target/node-hosts
tsc=$root/bindings/node/node_modules/.bin/tsc
mkdir -p "$build"
scripts/build-services.sh
scripts/generate.sh
bindings/node/build.sh
export RUST_BACKTRACE=0

# Lets tsc compile the programs in a folder.
config() {
  printf '{"extends":"%s","compilerOptions":{"noEmit":false,"checkJs":false},"include":["*.ts"]}' \
    "$root/examples/tsconfig.json" >"$1/tsconfig.json"
}

# Runs a program that must fail with this text in its message: fails TEXT PROGRAM..
fails() {
  if "${@:2}" >"$build/output.txt" 2>"$build/error.txt"; then return 1; fi
  grep -q -- "$1" "$build/error.txt"
}

# 1. The examples: their types, then search against grep on this repository's sources, and the others
#    against their expected output.
examples() {
  local name search=("$node" examples/search/hosts/node/search.js "$target/debug/libthalweg_search.so")
  "$tsc" -p examples/tsconfig.json
  LC_ALL=C grep -raFn -- 'uint32_t' bindings/c | LC_ALL=C sort >"$build/grep.txt"
  "${search[@]}" uint32_t bindings/c --print | LC_ALL=C sort >"$build/found.txt"
  diff "$build/grep.txt" "$build/found.txt" >&2
  [ "$("${search[@]}" uint32_t bindings/c --count)" = "$(wc -l <"$build/grep.txt")" ]
  "${search[@]}" uint32_t bindings/c --json | grep -q "\"matches\":$(wc -l <"$build/grep.txt"),"
  fails 'No such file' "${search[@]}" uint32_t no/such/folder
  for name in echo feed hello; do
    local program=examples/$name/hosts/node/$name.js
    "$node" "$program" "$target/debug/libthalweg_$name.so" | diff "examples/$name/expected.txt" - >&2
    fails 'no/such/library' "$node" "$program" no/such/library
    fails usage "$node" "$program"
  done
  echo "examples: expected output"
}

# 2. Every program of the guide. A comment at its end has the expected output.
guide() {
  local folder=$build/guide program count=0
  rm -rf "$folder"
  mkdir -p "$folder/generated/node"
  ln -s "$root"/examples/*/generated/node/* "$root"/conformance/generated/node/* "$folder/generated/node"
  ln -s "$root/node_modules" "$folder/node_modules"
  printf '{"type":"module"}' >"$folder/package.json"
  # shellcheck disable=SC2016 # the backticks are Markdown
  awk -v folder="$folder" '/^```ts$/ { inside = 1; number++; next } /^```$/ { inside = 0 }
    inside { print > (folder "/" number ".ts") }' docs/node.md
  config "$folder"
  "$tsc" -p "$folder"
  for program in "$folder"/[0-9]*.ts; do
    if ! grep -q '^// prints' "$program"; then continue; fi
    (cd "$folder" && LD_LIBRARY_PATH=$target/debug "$node" "${program%.ts}.js") >"${program%.ts}.txt"
    sed -n '/^\/\/ prints/,$ { s/^\/\/ prints:* *//; s/^\/\/ *//; /./p }' "$program" | diff - "${program%.ts}.txt" >&2
    count=$((count + 1))
  done
  [ "$count" -ge 8 ]
  echo "guide: $count programs printed what they say"
}

# 3. A packed service, installed with the generic package in an empty folder without a compiler.
packed() {
  local folder=$build/packed
  rm -rf "$folder"
  bindings/node/pack.sh "$folder" "$target/debug/libthalweg.so"
  "$target/debug/thalweg" package --node --manifest-path examples/echo/service/Cargo.toml --wit examples/echo/wit \
    --out "$folder" -- --locked --quiet
  fails 'crate-type' "$target/debug/thalweg" package --node --manifest-path crates/queue/Cargo.toml --out "$folder"
  printf '{"type":"module"}' >"$folder/package.json"
  (cd "$folder" && CC=false npm install --silent --offline --no-audit --no-fund ./thalweg-*.tgz)
  cat >"$folder/use.ts" <<'TS'
import { Echo, library, type Response } from 'thalweg-echo';
const client = Echo.open(library);
const timer = await client.timer('clock');
const response: Response = await timer.echo({ message: 'packed', delayMs: 0 });
console.log(`${response.name} said ${response.message}`);
TS
  config "$folder"
  "$tsc" -p "$folder"
  [ "$(cd "$folder" && "$node" use.js)" = 'clock said packed' ]
  echo "packed: installed, and called"
}

examples
guide
if [ "${1:-}" != programs ]; then packed; fi
