#!/usr/bin/env bash
# Tests of the Nim channels, with every memory manager and under sanitizers.
#
#   test.sh [NAME...]    names of the builds below; without one, all
set -euo pipefail
cd "$(dirname "$0")"

out=${CARGO_TARGET_DIR:-$PWD/../../../target}/nim-channels
mkdir -p "$out"

# build NAME SOURCE FLAGS..
build() {
  nim c --hints:off --threads:on --path:src "--nimcache:$out/$1-cache" "--out:$out/$1" "${@:3}" "$2"
}

sanitizer() {
  printf '%s\n' "-d:useMalloc" "--debugger:native" "--passC:-fsanitize=$1 -O1 -fno-omit-frame-pointer" "--passL:-fsanitize=$1"
}

# The complete programs of the documentation, as modules of one program: each runs when it is imported.
programs() {
  rm -rf "$out/programs"
  mkdir -p "$out/programs"
  # shellcheck disable=SC2016 # the backticks are Markdown
  cat README.md ../../../docs/migrating/nimsync.md | awk -v folder="$out/programs" '
    /^```nim$/ { getline; inside = $0 ~ /^import system except Channel/; if (inside) number++ }
    /^```$/ { inside = 0 }
    inside { print > (folder "/program" number ".nim") }
    END {
      print "{.warning[UnusedImport]: off.}" > (folder "/all.nim")
      for (i = 1; i <= number; i++) print "import ./program" i > (folder "/all.nim")
      exit number < 6
    }'
}

run() {
  echo "--- $1"
  case $1 in
  orc) build orc tests/all.nim --mm:orc -d:release && "$out/orc" ;;
  arc) build arc tests/all.nim --mm:arc -d:release && "$out/arc" ;;
  refc) build refc tests/all.nim --mm:refc -d:release && "$out/refc" ;;
  asan) mapfile -t flags < <(sanitizer address,undefined) &&
    build asan tests/all.nim --mm:orc "${flags[@]}" &&
    LSAN_OPTIONS="suppressions=$PWD/tests/lsan.supp" THALWEG_MESSAGES=20000 "$out/asan" ;;
  tsan) mapfile -t flags < <(sanitizer thread) &&
    build tsan tests/all.nim --mm:orc "${flags[@]}" &&
    TSAN_OPTIONS="halt_on_error=1 suppressions=$PWD/tests/tsan.supp" THALWEG_MESSAGES=20000 "$out/tsan" ;;
  docs) programs && build docs "$out/programs/all.nim" --mm:orc && "$out/docs" ;;
  *) echo "no build is named $1" >&2 && exit 2 ;;
  esac
}

if (($# == 0)); then set -- orc arc refc asan tsan docs; fi
for name in "$@"; do run "$name"; done
