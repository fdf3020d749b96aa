#!/usr/bin/env bash
# Build the native part of the Node package for this platform into prebuilds/, where the package
# finds it. It needs a C compiler and the headers of Node; programs that use the package need
# neither.
#
#   bindings/node/build.sh [OUTPUT [FLAG..]]
set -euo pipefail
cd "$(dirname "$0")"

node=${NODE:-node}
platform=$("$node" -p 'process.platform + "-" + process.arch')
output=${1:-prebuilds/$platform/thalweg.node}
# The folder of the headers: next to the program, as Node's own archives and packages have it.
headers=$("$node" -p 'require("path").join(require("fs").realpathSync(process.execPath), "../../include/node")')
if ! [ -e "$headers/node_api.h" ]; then
  printf 'the headers of %s are missing: %s\n' "$node" "$headers" >&2
  exit 1
fi
mkdir -p "$(dirname "$output")"
"${CC:-cc}" -std=gnu11 -O2 -g1 -fPIC -shared -fvisibility=hidden \
  -Wall -Wextra -Wshadow -Wcast-align -Werror "${@:2}" \
  -isystem "$headers" -I../c/include src/addon.c -o "$output" -ldl -lm
# Generated packages import `thalweg`, wherever they are in this repository.
mkdir -p ../../node_modules
ln -sfn ../bindings/node ../../node_modules/thalweg
