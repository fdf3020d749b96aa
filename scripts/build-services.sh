#!/usr/bin/env bash
# Build the libraries that the languages' tests load,
# $CARGO_TARGET_DIR/debug/libthalweg_{search,echo,feed,hello,recipes,conformance,resty_ffi}.so and libthalweg.so, and the program
# that writes the tables of the C runner.
#
# cargo unifies the features of everything that one command builds, including tests. This command
# builds the tests of both services in the whole workspace, so it reuses the output of `make
# test-rust` and builds nothing else. It leaves the libraries in the folder of the dependencies.
set -euo pipefail
cd "$(dirname "$0")/.."

debug=${CARGO_TARGET_DIR:-$PWD/target}/debug
cargo build --locked --quiet --workspace --test conformance --test service --test echo --test feed --test hello --test recipes --test resty_ffi --test address --bin conformance_tables
ln -f "$debug/deps/libthalweg_search.so" "$debug/deps/libthalweg_echo.so" "$debug/deps/libthalweg_feed.so" "$debug/deps/libthalweg_hello.so" "$debug/deps/libthalweg_recipes.so" "$debug/deps/libthalweg_conformance.so" "$debug/deps/libthalweg_resty_ffi.so" "$debug/"
ln -f "$debug/deps/libthalweg_shared.so" "$debug/libthalweg.so"
