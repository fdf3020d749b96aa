#!/usr/bin/env bash
# Compile the module of mode B for the nginx whose headers are installed (nginx-dev), into the folder
# OUT [target/lua].
#
#   bindings/lua/build.sh [OUT]
set -euo pipefail
cd "$(dirname "$0")/../.."

root=$PWD
sources=/usr/share/nginx/src
out=${1:-${CARGO_TARGET_DIR:-$PWD/target}/lua}
mkdir -p "$out"
out=$(realpath "$out")
key=$({ cat bindings/lua/module/* bindings/lua/build.sh bindings/c/include/thalweg.h && cat "$sources/src/core/nginx.h"; } | sha256sum)
if [ "$(cat "$out/key" 2>/dev/null)" = "$key" ]; then exit 0; fi

# The sources have no C files, so only modules can be built.
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
cp -r "$sources/." "$build"
cd "$build"
# shellcheck source=/dev/null
. ./conf_flags
if ! { bash ./configure "${NGX_CONF_FLAGS[@]}" --with-cc-opt="-I$root/bindings/c/include" --add-dynamic-module="$root/bindings/lua/module" &&
  make -f objs/Makefile modules; } >"$out/build.log" 2>&1; then
  tail -n 20 "$out/build.log" >&2
  exit 1
fi
# Not written in place: an nginx that has loaded the previous file would crash.
cp objs/ngx_http_thalweg_module.so "$out/module.$$"
mv -f "$out/module.$$" "$out/ngx_http_thalweg_module.so"
echo "$key" >"$out/key"
