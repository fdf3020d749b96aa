#!/usr/bin/env bash
# Build what the languages' tests load, $CARGO_TARGET_DIR/debug/libthalweg_{search,echo,feed,hello,conformance}.so, and the program that writes the
# tables of the C runner.
#
# cargo joins the features of what it is asked for at once, those of a test among them. Asked for the tests of both services in the
# whole workspace, it builds what `make test-rust` built and no more; it leaves their libraries among the dependencies.
set -euo pipefail
cd "$(dirname "$0")/.."

debug=${CARGO_TARGET_DIR:-$PWD/target}/debug
cargo build --locked --quiet --workspace --test conformance --test service --test echo --test feed --test hello --example conformance_tables
ln -f "$debug/deps/libthalweg_search.so" "$debug/deps/libthalweg_echo.so" "$debug/deps/libthalweg_feed.so" "$debug/deps/libthalweg_hello.so" "$debug/deps/libthalweg_conformance.so" "$debug/"
