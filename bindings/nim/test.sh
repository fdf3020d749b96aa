#!/usr/bin/env bash
# Tests of the Nim binding, with each kind of memory management.
set -euo pipefail
cd "$(dirname "$0")/../.."

target=${CARGO_TARGET_DIR:-$PWD/target}
build=$target/nim-tests
export LIBRARY=$target/debug/libthalweg_conformance.so
mkdir -p "$build"
scripts/build-services.sh
scripts/generate.sh
scripts/build-guests.sh
export RUST_BACKTRACE=0

# compile OUT SOURCE FLAGS..
compile() {
  local folders=(--path:bindings/nim/src --path:conformance/generated/nim) package
  for package in search echo feed hello; do folders+=("--path:examples/$package/generated/nim"); done
  nim c --hints:off --nimcache:"$build/cache-$(basename "$1")" "${folders[@]}" --out:"$1" "${@:3}" "$2"
}

# 1. The test programs: programs NAME FLAGS..
programs() {
  local name
  for name in calls streams threads; do
    compile "$build/$name-$1" "bindings/nim/tests/$name.nim" "${@:2}"
    "$build/$name-$1"
  done
}

# 2. Wrong use, and libraries that are refused.
misuse() {
  export FAKES=$build/fakes
  fake() {
    "${CC:-cc}" -std=c99 -fPIC -shared -Ibindings/c/include -Iexamples/search/generated/c -Iconformance/generated/c \
      "${@:2}" bindings/c/tests/fake_library.c -o "$FAKES/libfake_$1.so"
  }
  mkdir -p "$FAKES"
  fake other_abi '-DFAKE_ABI=(TW_ABI + 1)'
  fake other_layout -DFAKE_LAYOUT '-DFAKE_PACKAGE="thalweg:conformance"'
  fake other_package '-DFAKE_PACKAGE="thalweg:find"'
  fake no_symbol -DFAKE_NO_SYMBOL
  compile "$build/misuse" bindings/nim/tests/misuse.nim --mm:orc --threads:on
  "$build/misuse"
}

# Services in C and in Nim; and a service in Nim with the tests of C hosts.
guests() {
  local name folder=$build/guests-c
  export THALWEG_LIBRARY=$target/debug/libthalweg.so
  for name in guests nim_guest; do
    compile "$build/$name" "bindings/nim/tests/$name.nim" --mm:orc --threads:on "--path:$target/guests/nim"
  done
  GUEST=thread:$target/guests/libguest_probe.so "$build/guests"
  GUEST=thread:$target/guests/libguest_probe_nim.so "$build/guests"
  GUEST=thread:$target/guests/libguest_probe_nim.so "$build/nim_guest"
  mkdir -p "$folder"
  for name in probe_nim again_nim copy{1..64}; do cp "$target/guests/libguest_probe_nim.so" "$folder/libguest_$name.so"; done
  "${CC:-cc}" -std=c99 -D_XOPEN_SOURCE=700 -g -Ibindings/c/include "-I$target/guests/c" bindings/c/tests/guests.c \
    -o "$build/guests-of-c" -pthread -ldl
  "$build/guests-of-c" "$folder" _nim
  rm -r "$folder"
}

# Streams that a guest reads, and its calls of the host.
inputs() {
  local folder=$build/inputs
  "$target/debug/thalweg" gen --out "$folder" bindings/nim/tests/guests/interface --guest nim --lang nim >/dev/null
  nim c --app:lib --mm:orc --threads:on -d:useMalloc -d:noSignalHandler --hints:off --path:bindings/nim/src \
    "--path:$folder/guest-nim" "--nimcache:$build/cache-inputs" "--out:$build/libinputs.so" bindings/nim/tests/guests/inputs.nim
  compile "$build/guest_inputs" bindings/nim/tests/guest_inputs.nim --mm:orc --threads:on "--path:$folder/nim"
  THALWEG_LIBRARY=$target/debug/libthalweg.so GUEST=thread:$build/libinputs.so "$build/guest_inputs"
}

# The golden file of a guest, whose names are odd: called FUNCTION ARGUMENTS WANTED
called() {
  [ "$(THALWEG_LIBRARY=$target/debug/libthalweg.so "$target/debug/thalweg" call "thread:$build/libodd.so" "$1" "$2" 2>&1 | tr '\n' ' ' || true)" = "$3" ]
}
odd_guest() {
  nim c --app:lib --mm:orc --threads:on -d:useMalloc -d:noSignalHandler --hints:off --path:bindings/nim/src \
    --path:crates/bindgen/tests/nim/golden --nimcache:"$build/cache-odd-guest" --out:"$build/libodd.so" bindings/nim/tests/guests/odd.nim
  local message='{"root":[{"call":3,"type":{"some":"x"}}],"m":[1,"two"],"at":[1,2,3],"letter":"é"}'
  called load "{\"writer\":$message}" '{"root": [{"call": 3, "type": {"some": "x"}}], "m": [1, "two"], "at": [1, 2, 3], "letter": "é"} '
  called sing '{"r":{"ok":4}}' '4 '
  called ticks '{"writer":3}' 'null null null '
  called rows '{}' '[1, "one"] "red" '
  echo "odd guest: calls"
}

# Guests that do not compile: refused MISTAKE TEXT
refused() {
  local options=(--app:lib --mm:orc --threads:on --hints:off --path:bindings/nim/src "--path:$target/guests/guest-nim")
  if [ "$1" != flags ]; then options+=(-d:useMalloc -d:noSignalHandler "-d:$1"); fi
  if nim check "${options[@]}" bindings/nim/tests/guests/wrong.nim >"$build/refused.txt" 2>&1; then return 1; fi
  grep -qF -- "$2" "$build/refused.txt" || { cat "$build/refused.txt" >&2; return 1; }
}
refusals() {
  refused missing 'the guest does not implement echo.version; write: proc version(self: Service): string {.thalweg.}'
  refused unmarked 'the guest does not implement echo.version'
  refused parameter 'has the parameters of echo.[method]timer.echo; write: proc echo(self: Timer, request: Request)'
  refused returned 'a function returns another type, Future[system.string]; write: proc echo(self: Timer'
  refused unknown 'is no function of the package'
  refused flags '--mm:orc --threads:on -d:useMalloc -d:noSignalHandler'
  echo "refusals: clear errors"
}

# A service whose interface is Nim code: code_first SOURCE OUT FLAGS..
code_first() {
  nim c --app:lib --mm:orc --threads:on -d:useMalloc -d:noSignalHandler --hints:off --path:bindings/nim/src \
    "-d:THALWEG_GEN=$target/debug/thalweg" "-d:THALWEG_WIT=$build/code-first/wit" "--nimcache:$build/cache-$(basename "$2")" \
    "--out:$2" "${@:3}" "$1"
}
# Code without an equivalent: no_wit MISTAKE TEXT FLAGS..
no_wit() {
  if code_first bindings/nim/tests/guests/wrong_code.nim "$build/libwrong.so" --compileOnly "-d:$1" "${@:3}" \
    >"$build/refused.txt" 2>&1; then return 1; fi
  grep -qF -- "$2" "$build/refused.txt" || { cat "$build/refused.txt" >&2; return 1; }
}
# The service and the program of the guide for users of nim-ffi.
migrating() {
  local folder=$build/code-first/shelf program
  mkdir -p "$folder"
  # shellcheck disable=SC2016 # the backticks are Markdown
  awk -v folder="$folder" '/^```nim$/ { inside = 1; number++; next } /^```$/ { inside = 0 }
    inside { print > (folder "/block" number ".nim") }' docs/migrating/nim-ffi.md
  mv "$(grep -l '^import thalweg/code_first' "$folder"/block*.nim)" "$folder/shelf_service.nim"
  mv "$(grep -l '^import shelf' "$folder"/block*.nim)" "$folder/use_shelf.nim"
  code_first "$folder/shelf_service.nim" "$build/libshelf.so"
  "$target/debug/thalweg" gen --lang nim "$build/code-first/wit/shelf.wit" >/dev/null
  compile "$build/use_shelf" "$folder/use_shelf.nim" --mm:orc "--path:$build/code-first/generated/nim"
  program=$(THALWEG_LIBRARY=$target/debug/libthalweg.so "$build/use_shelf" "thread:$build/libshelf.so")
  [ "$program" = "$(sed -n 's/^# prints: //p' "$folder/use_shelf.nim")" ]
}

# shellcheck disable=SC2016 # the backticks are Nim's
from_code() {
  local timer=bindings/nim/examples/timer
  rm -rf "$build/code-first"
  code_first "$timer/timer_service.nim" "$build/libtimer.so"
  "$target/debug/thalweg" gen --lang nim "$build/code-first/wit/my-timer.wit" >/dev/null 2>&1
  compile "$build/use_timer" "$timer/use_timer.nim" --mm:orc "--path:$build/code-first/generated/nim"
  THALWEG_LIBRARY=$target/debug/libthalweg.so "$build/use_timer" "thread:$build/libtimer.so" | diff "$timer/expected.txt" - >&2
  migrating
  code_first bindings/nim/tests/guests/boxes.nim "$build/libboxes.so"
  "$target/debug/thalweg" gen --lang nim "$build/code-first/wit/boxes.wit" >/dev/null
  compile "$build/use_boxes" bindings/nim/tests/use_boxes.nim --mm:orc "--path:$build/code-first/generated/nim"
  THALWEG_LIBRARY=$target/debug/libthalweg.so BOXES=thread:$build/libboxes.so "$build/use_boxes"
  no_wit pointerField 'the type `pointer` has no equivalent in WIT'
  no_wit cases 'an object with `case` has no equivalent'
  no_wit numbers 'the labels of an enum have no numbers'
  no_wit bothInts 'use either `int` or `int64`'
  no_wit eventWithResult 'an event has a receiver, one parameter or more, and no result'
  no_wit badPackage 'write the package as "namespace:name@0.1.0"'
  no_wit reservedName 'the name `Message` is reserved'
  no_wit noProgram 'It is searched for in PATH, or is -d:THALWEG_GEN=PATH' -d:THALWEG_GEN=/no/such/thalweg
  echo "from code: expected output, and clear errors"
}

# 3. Malformed messages. A sanitizer finds a read outside of one.
hostile() {
  "${CC:-cc}" -std=c99 -fPIC -shared -Ibindings/c/include bindings/python/tests/hostile.c -o "$build/libhostile.so" -ldl
  compile "$build/hostile" bindings/nim/tests/hostile.nim --mm:orc -d:useMalloc --debugger:native \
    "--passC:-fsanitize=address,undefined" "--passL:-fsanitize=address,undefined"
  HOSTILE=$build/libhostile.so MESSAGES=conformance/hostile.json ASAN_OPTIONS=detect_leaks=0 "$build/hostile"
}

# 4. The examples: search against grep on this repository's sources, the others against their
#    expected output.
examples() {
  local name search=("$build/search_host" "$target/debug/libthalweg_search.so")
  for name in search echo feed hello; do
    compile "$build/${name}_host" "examples/$name/hosts/nim/${name}_host.nim" --mm:orc
  done
  LC_ALL=C grep -raFn -- 'uint32_t' bindings/c | LC_ALL=C sort >"$build/grep.txt"
  "${search[@]}" uint32_t bindings/c --print | LC_ALL=C sort >"$build/found.txt"
  diff "$build/grep.txt" "$build/found.txt" >&2
  [ "$("${search[@]}" uint32_t bindings/c --count)" = "$(wc -l <"$build/grep.txt")" ]
  "${search[@]}" uint32_t bindings/c --json | grep -q "\"matches\":$(wc -l <"$build/grep.txt"),"
  if "${search[@]}" uint32_t no/such/folder 2>"$build/error.txt"; then return 1; fi
  for name in echo feed hello; do
    "$build/${name}_host" "$target/debug/libthalweg_$name.so" | diff "examples/$name/expected.txt" - >&2
    if "$build/${name}_host" no/such/library 2>"$build/error.txt"; then return 1; fi
    grep -q 'no/such/library' "$build/error.txt"
  done
  for name in echo_cpp echo_nim; do
    THALWEG_LIBRARY=$target/debug/libthalweg.so "$build/echo_host" "thread:$target/guests/libguest_$name.so" |
      diff examples/echo/expected.txt - >&2
  done
  echo "examples: expected output"
}

# 5. Every program of the guide prints what the comments at its end say.
guide() {
  local folder=$build/guide program count=0
  rm -rf "$folder"
  mkdir -p "$folder"
  # shellcheck disable=SC2016 # the backticks are Markdown
  awk -v folder="$folder" '/^```nim$/ { inside = 1; number++; next } /^```$/ { inside = 0 }
    inside { print > (folder "/program" number ".nim") }' docs/nim.md
  for program in "$folder"/*.nim; do
    compile "${program%.nim}" "$program" --mm:orc
    LD_LIBRARY_PATH=$target/debug "${program%.nim}" >"${program%.nim}.txt"
    sed -n '/^# prints/,$ { s/^# prints:* *//; s/^# *//; /./p }' "$program" | diff - "${program%.nim}.txt" >&2
    count=$((count + 1))
  done
  [ "$count" -ge 5 ]
  echo "guide: $count programs printed what they say"
}

# 6. A packed service (this builds in release mode), installed with the generic package by nimble, and
#    used in an empty folder.
packed() {
  local folder=$build/packed
  rm -rf "$folder"
  mkdir -p "$folder/empty" "$folder/nimble"
  echo '[]' >"$folder/nimble/packages_official.json" # nimble would download its list of names.
  "$target/debug/thalweg" package --nim --manifest-path examples/echo/service/Cargo.toml --wit examples/echo/wit \
    --out "$folder" -- --locked --quiet
  tar -xzf "$folder"/thalweg_echo-*.tar.gz -C "$folder"
  rm "$folder"/thalweg_echo-*.tar.gz
  bindings/nim/pack.sh "$folder" "$target/debug/libthalweg.so"
  for package in "$folder"/thalweg "$folder"/thalweg_echo-*; do
    (cd "$package" && nimble --silent --accept --nimbleDir:"$folder/nimble" install)
  done
  cat >"$folder/empty/use.nim" <<'NIM'
import std/os
import thalweg_echo
for path in [library, paramStr(1)]:
  let client = EchoClient.open(path)
  let response = client.newTimer("clock").echo(Request(message: "packed", delayMs: 0))
  echo response.name, " said ", response.message
NIM
  (cd "$folder/empty" && nim c --hints:off --clearNimblePath --nimblePath:"$folder/nimble/pkgs" use.nim)
  rm -r "$folder"/thalweg "$folder"/thalweg_echo-*
  # The second one is a guest: libthalweg.so is in the package.
  [ "$(env -u THALWEG_LIBRARY "$folder/empty/use" "thread:$target/guests/libguest_echo.so")" = \
    $'clock said packed\nclock said packed' ]
  echo "packed: installed, and called"
}

# The golden file of the emitter, whose names are odd, compiles.
compile "$build/odd" crates/bindgen/tests/nim/golden/odd_names.nim --mm:orc
programs orc --mm:orc --threads:on
programs arc --mm:arc -d:release --threads:on
programs refc --mm:refc --threads:on
misuse
guests
inputs
odd_guest
refusals
from_code
hostile
for memory in orc arc refc; do
  compile "$build/leaks-$memory" bindings/nim/tests/leaks.nim "--mm:$memory" -d:release
  "$build/leaks-$memory"
done
examples
guide
packed
conformance/nim/test.sh
