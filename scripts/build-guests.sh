#!/usr/bin/env bash
# Build the services in C, C++, Nim and Go that the languages' tests open by their addresses,
# $CARGO_TARGET_DIR/guests/libguest_{probe,echo,echo_cpp,probe_nim,echo_nim,echo_go}.so, and write the code of the
# first one's package for each language next to them. Those in Nim and Go are left out if it is not installed.
# `build-services.sh` has built libthalweg.so, and `generate.sh` the program that generates code. THALWEG is another
# such program.
set -euo pipefail
cd "$(dirname "$0")/.."

target=${CARGO_TARGET_DIR:-$PWD/target}
thalweg=${THALWEG:-$target/debug/thalweg}
guests=$target/guests
mkdir -p "$guests"
"$thalweg" gen --out "$guests" bindings/c/tests/guests/interface --guest c,cpp,nim \
  --lang c,cpp,lua,nim,node,python >/dev/null
"$thalweg" gen --out "$guests" examples/echo/wit --guest c,cpp,nim >/dev/null

# Another test may have the library open while it is replaced.
guest() {
  "${@:3}" -O2 -Wall -Wextra -Werror -fPIC -shared -fvisibility=hidden -Ibindings/c/include \
    -Ibindings/cpp/include "-I$guests/guest-c" "-I$guests/guest-cpp" "$2" \
    -o "$guests/libguest_$1.so.new" -pthread
  mv "$guests/libguest_$1.so.new" "$guests/libguest_$1.so"
}
c=("${CC:-cc}" -std=c11 -D_XOPEN_SOURCE=700)
guest probe bindings/c/tests/guests/probe.c "${c[@]}"
guest echo examples/echo/guests/c/echo.c "${c[@]}"
guest echo_cpp examples/echo/guests/cpp/echo.cpp "${CXX:-g++}" -std=c++20

nim_guest() {
  nim c --hints:off --app:lib --mm:orc --threads:on -d:useMalloc -d:noSignalHandler --path:bindings/nim/src \
    "--path:$guests/guest-nim" "--nimcache:$guests/nim-cache/$1" "--out:$guests/libguest_$1.so.new" "$2"
  mv "$guests/libguest_$1.so.new" "$guests/libguest_$1.so"
}
if command -v nim >/dev/null; then
  nim_guest probe_nim bindings/nim/tests/guests/probe.nim
  nim_guest echo_nim examples/echo/guests/nim/echo_service.nim
fi

if command -v go >/dev/null; then
  "$thalweg" gen --guest go --out examples/echo/guests/go examples/echo/wit >/dev/null
  (cd examples/echo/guests/go && go build -buildvcs=false -buildmode=c-shared -o "$guests/libguest_echo_go.so.new" .)
  mv "$guests/libguest_echo_go.so.new" "$guests/libguest_echo_go.so"
fi
