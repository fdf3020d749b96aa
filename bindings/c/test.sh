#!/usr/bin/env bash
# Tests of the C binding: compiles the headers with every available compiler, then runs the test
# programs, plain and under AddressSanitizer and UndefinedBehaviorSanitizer.
set -euo pipefail
cd "$(dirname "$0")/../.."

target=${CARGO_TARGET_DIR:-$PWD/target}
build=$target/c-tests
cc=${CC:-cc}
include=(-Ibindings/c/include -Iexamples/search/generated/c -Iexamples/echo/generated/c -Iexamples/feed/generated/c -Iexamples/hello/generated/c -Iexamples/recipes/generated/c -Iconformance/generated/c)
warnings=(-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wcast-align -Werror)
mkdir -p "$build"
scripts/generate.sh

# 1. Each header by itself, as C99, C11 and C++17.
headers() {
  local compiler header
  for header in thalweg.h thalweg_error.h thalweg_message.h thalweg_open.h thalweg_client.h thalweg_stream.h thalweg_guest.h thalweg_serve.h search.h echo.h feed.h hello.h recipes.h conformance.h; do
    printf '#include "%s"\n#include "%s"\nint main(void) { return 0; }\n' "$header" "$header" >"$build/header.c"
    cp "$build/header.c" "$build/header.cpp"
    for compiler in "$cc -std=c99" "$cc -std=c11 -O2" 'clang -std=c99' 'c++ -std=c++17' 'clang++ -std=c++17'; do
      local language=c
      [[ $compiler == *++* ]] && language=cpp
      if command -v "${compiler%% *}" >/dev/null; then
        # shellcheck disable=SC2086 # the compiler comes with its options
        $compiler "${warnings[@]}" "${include[@]}" -c "$build/header.$language" -o /dev/null
      fi
    done
  done
}

# 2. Incompatible libraries, and two that are compatible.
fake() {
  "$cc" -std=c99 -g -fPIC -shared "${warnings[@]}" "${include[@]}" "${@:2}" \
    bindings/c/tests/fake_library.c -o "$build/libfake_$1.so"
}
fakes() {
  fake compatible
  fake larger_table '-DFAKE_SIZE=(sizeof(tw_table) + 8)'
  fake other_abi '-DFAKE_ABI=(TW_ABI + 1)'
  fake smaller_table -DFAKE_SIZE=64
  fake other_package '-DFAKE_PACKAGE="thalweg:find"'
  fake other_version '-DFAKE_VERSION="0.2.0"'
  fake later_version '-DFAKE_VERSION="0.1.27"' -DFAKE_MORE
  fake later_line '-DFAKE_VERSION="1.1.0"' -DFAKE_MORE
  fake no_version '-DFAKE_VERSION="0.1.0-rc"'
  fake fewer_functions -DFAKE_FEWER
  fake other_host -DFAKE_HOST
  fake same_functions -DFAKE_SAME
  fake other_layout -DFAKE_LAYOUT
  fake no_table -DFAKE_NO_TABLE
  fake no_symbol -DFAKE_NO_SYMBOL
}

# Programs of other versions of the package than the library: sed changes the WIT.
version() {
  local folder=$build/version-$1
  rm -rf "$folder"
  mkdir -p "$folder/wit"
  cp conformance/wit/conformance.thalweg.toml "$folder/wit"
  sed -E "$2" conformance/wit/conformance.wit >"$folder/wit/conformance.wit"
  "$target/debug/thalweg" gen --lang c --out "$folder" "$folder/wit" >/dev/null
  "$cc" -std=c99 -D_XOPEN_SOURCE=700 -g "${warnings[@]}" -Ibindings/c/include -I"$folder/c" "-D$3" \
    -fsanitize=address,undefined bindings/c/tests/versions.c -o "$folder/versions" -pthread -ldl
  "$folder/versions" "$target/debug/libthalweg_conformance.so"
}
versions() {
  version older '/^    echo-bool: func/d; /^        errno: s32,$/d; /^        blob: option<list<u8>>,$/d; s/, %bool: option<point>\) -> tuple<u8/) -> tuple<u8/; /^    flags rights/,/\}/{/%record/d}' OLDER
  version newer '/^    echo-bool: func/{h;d}; /^    echo-u8: func/G; s/^        errno: s32,$/&more: u32,/; s/^        blob: option<list<u8>>,$/&size: u64, more: string,/; s/%bool: option<point>\) -> tuple<u8/%bool: option<point>, more: string) -> tuple<u8/; /^    flags rights/,/\}/s/%record,/&mine,/; /^    variant failure/,/\}/s/^    \}/later(u8), }/' NEWER
  version other 's/^        errno: s32,$//; s/^        await: s32,$/errno: s32,&/' OTHER
}

# Programs that were built when the table ended with `client_set_format`.
shorter_table() {
  local folder=$build/shorter-table name
  rm -rf "$folder"
  mkdir -p "$folder"
  sed '/Releases .count. completions/,/^} tw_table;/{/^} tw_table;/!d}' bindings/c/include/thalweg.h \
    >"$folder/thalweg.h"
  if grep -q 'release_all)' "$folder/thalweg.h"; then
    echo "shorter_table: the header was not cut" >&2
    return 1
  fi
  for name in calls streams; do
    "$cc" -std=c99 -D_XOPEN_SOURCE=700 -g "${warnings[@]}" -include "$folder/thalweg.h" "${include[@]}" \
      "bindings/c/tests/$name.c" -o "$folder/$name" -pthread -ldl
    "$folder/$name" "$target/debug/libthalweg_conformance.so"
  done
}

# 3. The test programs. A panic that a test causes prints one line.
export RUST_BACKTRACE=0
programs() {
  local folder=$build/$1 name
  rm -rf "$folder"
  mkdir -p "$folder/made"
  for name in message open calls futures handles hosts ports waits wake spin borrowed reports streams direct subscribe codec process aborts files; do
    "$cc" -std=c99 -D_XOPEN_SOURCE=700 -g "${warnings[@]}" "${include[@]}" "${@:2}" \
      "bindings/c/tests/$name.c" -o "$folder/$name" -pthread -ldl
  done
  "$cc" -std=c99 -D_XOPEN_SOURCE=700 -g "${warnings[@]}" "${include[@]}" "${@:2}" \
    bindings/c/tests/hostile.c -o "$folder/hostile" -pthread -ldl -ljansson
  "$folder/message"
  "$folder/open" "$build"
  "$folder/hostile" "$target/debug/libthalweg_conformance.so" conformance/hostile.json
  for name in calls futures handles hosts ports waits wake spin borrowed reports streams direct subscribe codec process aborts; do
    "$folder/$name" "$target/debug/libthalweg_conformance.so"
  done
  "$folder/files" "$target/debug/libthalweg_search.so" "$folder/made"
}

# Services in C that are opened by address. The first argument names the folder, and the others are options.
guest() {
  "$cc" -std=c11 -D_XOPEN_SOURCE=700 -g -fPIC -shared -fvisibility=hidden "${warnings[@]}" "${guest_include[@]}" "${@:2}" \
    "bindings/c/tests/guests/${source:-probe}.c" -o "$guests/libguest_$1.so" -pthread
}
# A guest that misbehaves at random, for this many messages.
hostile_guests() {
  local source=hostile status=0
  "$target/debug/thalweg" gen --lang c --guest c --out "$build/probe" bindings/c/tests/guests/hostile >/dev/null
  guest hostile "${@:2}"
  "$cc" -std=c11 -D_XOPEN_SOURCE=700 -g "${warnings[@]}" -Ibindings/c/include "-I$build/probe/c" "${@:2}" \
    bindings/c/tests/hostile_guests.c -o "$guests/hostile_guests" -pthread -ldl
  # A panic of the core is caught, but says so.
  THALWEG_LIBRARY=$target/debug/libthalweg.so "$guests/hostile_guests" "$guests" "$1" 2>"$guests/hostile.log" || status=$?
  if [ "$status" != 0 ] || [ -s "$guests/hostile.log" ]; then
    cat "$guests/hostile.log" >&2
    return 1
  fi
}
build_guests() {
  local count guest_include=(-Ibindings/c/include "-I$build/probe/guest-c")
  rm -rf "$guests"
  mkdir -p "$guests"
  "$target/debug/thalweg" gen --lang c --guest c --out "$build/probe" bindings/c/tests/guests/interface >/dev/null
  guest probe "$@"
  guest again "$@"
  guest probe_port -DPROBE_PORT "$@"
  guest again_port -DPROBE_PORT "$@"
  guest probe_blocks -DPROBE_BLOCKS "$@"
  guest again_blocks -DPROBE_BLOCKS "$@"
  guest version1 -DPROBE_BALLAST=2097152 "$@"
  guest version2 -DPROBE_VERSION=2 -DPROBE_BALLAST=2097152 "$@"
  guest stays -DPROBE_STAYS "$@"
  guest forks -DPROBE_FORKS "$@"
  for count in {1..64}; do cp "$guests/libguest_probe.so" "$guests/libguest_copy$count.so"; done
  guest refuses -DPROBE_REFUSES
  guest silent -DPROBE_SILENT
  guest abi -DPROBE_ABI
  guest twice -DPROBE_TWICE
  mkdir -p "$build/probe/other"
  sed 's/"thalweg:probe"/"thalweg:other"/' "$build/probe/guest-c/probe_guest.h" >"$build/probe/other/probe_guest.h"
  guest_include=(-Ibindings/c/include "-I$build/probe/other")
  guest other
  # Another type of a parameter, in the description of the package.
  mkdir -p "$build/probe/later"
  sed 's/record{number:u64}/record{number:u32}/' "$build/probe/guest-c/probe_guest.h" >"$build/probe/later/probe_guest.h"
  guest_include=(-Ibindings/c/include "-I$build/probe/later")
  guest later
  echo 'int none;' | "$cc" -shared -fPIC -x c - -o "$guests/libguest_none.so"
  "$cc" -std=c99 -D_XOPEN_SOURCE=700 -g "${warnings[@]}" -Ibindings/c/include "-I$build/probe/c" "$@" \
    bindings/c/tests/guests.c -o "$guests/guests" -pthread -ldl
}
# A guest that receives streams, and calls its host.
guest_inputs() {
  "$target/debug/thalweg" gen --lang c --guest c --out "$build/inputs" bindings/c/tests/guests/inputs >/dev/null
  local source=inputs guest_include=(-Ibindings/c/include "-I$build/inputs/guest-c")
  guest inputs "$@"
  guest inputs_blocks -DBLOCKS "$@"
  "$cc" -std=c99 -D_XOPEN_SOURCE=700 -g "${warnings[@]}" -Ibindings/c/include "-I$build/inputs/c" "$@" \
    bindings/c/tests/guest_inputs.c -o "$guests/guest_inputs" -pthread -ldl
  THALWEG_LIBRARY=$target/debug/libthalweg.so "$guests/guest_inputs" "$guests/libguest_inputs.so"
  THALWEG_LIBRARY=$target/debug/libthalweg.so "$guests/guest_inputs" "$guests/libguest_inputs_blocks.so"
}
# A guest that writes records with text.
guest_records() {
  "$target/debug/thalweg" gen --lang c --guest c --out "$build/records" bindings/c/tests/guests/records >/dev/null
  local source=records guest_include=(-Ibindings/c/include "-I$build/records/guest-c")
  guest records "$@"
  guest records_trusted -DTRUSTED "$@"
  "$cc" -std=c99 -D_XOPEN_SOURCE=700 -g "${warnings[@]}" -Ibindings/c/include "-I$build/records/c" "$@" \
    bindings/c/tests/guest_records.c -o "$guests/guest_records" -ldl
  THALWEG_LIBRARY=$target/debug/libthalweg.so "$guests/guest_records" "$guests/libguest_records.so" \
    "$guests/libguest_records_trusted.so"
}
# Guests whose library is replaced.
reload_guests() {
  "$cc" -std=c11 -D_XOPEN_SOURCE=700 -g "${warnings[@]}" -Ibindings/c/include "-I$build/probe/c" "$@" \
    bindings/c/tests/reload.c -o "$guests/reload" -pthread -ldl
  THALWEG_LIBRARY=$target/debug/libthalweg.so "$guests/reload" "$guests"
}
run_guests() {
  THALWEG_LIBRARY=$target/debug/libthalweg.so "$guests/guests" "$guests" "$@"
}
guests() {
  local guests=$build/guests-$1 guest_include=(-Ibindings/c/include "-I$build/probe/guest-c")
  build_guests "${@:2}"
  hostile_guests "${HOSTILE_MESSAGES:-50000}" "${@:2}"
  guest_inputs "${@:2}"
  guest_records "${@:2}"
  run_guests
  run_guests _port
  run_guests _blocks
  reload_guests "${@:2}"
}

# The hostile guest alone, plain and sanitized.
hostile() {
  local guests guest_include=(-Ibindings/c/include "-I$build/probe/guest-c")
  "$target/debug/thalweg" gen --lang c --guest c --out "$build/probe" bindings/c/tests/guests/interface >/dev/null
  for guests in "$build/guests-plain" "$build/guests-sanitized"; do
    local options=(-O2)
    if [[ $guests = *sanitized ]]; then
      options=(-O1 '-fsanitize=address,undefined' -fno-sanitize-recover=undefined)
    fi
    mkdir -p "$guests"
    guest probe "${options[@]}"
    hostile_guests "${HOSTILE_MESSAGES:-50000}" "${options[@]}"
  done
}

# Opens and closes everything repeatedly. Without sanitizers, which retain freed memory.
soak() {
  "$cc" -std=c99 -D_XOPEN_SOURCE=700 -g -O2 "${warnings[@]}" "${include[@]}" \
    bindings/c/tests/soak.c -o "$build/soak" -pthread -ldl
  "$build/soak" "$target/debug/libthalweg_conformance.so" "$1"
}
# The same with a guest in C and one in C++, whose libraries are unloaded each time.
guest_soak() {
  "$cc" -std=c99 -D_XOPEN_SOURCE=700 -g -O2 "${warnings[@]}" "${include[@]}" "-I$target/guests/c" \
    bindings/c/tests/guest_soak.c -o "$build/guest_soak" -pthread -ldl
  THALWEG_LIBRARY=$target/debug/libthalweg.so "$build/guest_soak" "$1" \
    "thread:$target/guests/libguest_probe.so" "thread:$target/guests/libguest_echo_cpp.so"
}
case ${1:-} in
guests-go) # with the path of the guest in Go; bindings/go/test.sh has built the services
  guests=$build/guests-go
  build_guests -O2
  cp "$2" "$guests/libguest_probe_go.so"
  cp "$2" "$guests/libguest_again_go.so"
  run_guests _go
  exit
  ;;
soak)
  scripts/build-services.sh
  soak "$2"
  exit
  ;;
guest-soak)
  scripts/build-services.sh
  scripts/generate.sh
  scripts/build-guests.sh
  guest_soak "$2"
  exit
  ;;
hostile)
  scripts/build-services.sh
  scripts/generate.sh
  hostile
  exit
  ;;
reload)
  scripts/build-services.sh
  scripts/generate.sh
  guests plain -O2
  THALWEG_LIBRARY=$target/debug/libthalweg.so "$build/guests-plain/reload" "$build/guests-plain" "$2" 1000
  exit
  ;;
guests)
  scripts/build-services.sh
  scripts/generate.sh
  guests plain -O2
  guests sanitized -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined
  exit
  ;;
esac

headers
fakes
scripts/build-services.sh
scripts/build-guests.sh
bindings/c/tests/symbols.sh "$target/debug/libthalweg_"{search,echo,conformance}.so
programs plain -O2
guests plain -O2
versions
shorter_table
soak 10000
guest_soak 500
programs sanitized -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined
guests sanitized -O1 -fsanitize=address,undefined -fno-sanitize-recover=undefined

# 4. The examples: search against grep on this repository's sources, the others against their expected output.
example() {
  local search=$build/search-c library=$target/debug/libthalweg_search.so
  "$cc" -std=c99 -g -O1 -fsanitize=address,undefined "${warnings[@]}" "${include[@]}" \
    examples/search/hosts/c/search.c -o "$search" -ldl
  LC_ALL=C grep -raFn -- 'uint32_t' bindings/c | LC_ALL=C sort >"$build/grep.txt"
  "$search" "$library" uint32_t bindings/c --print | LC_ALL=C sort >"$build/found.txt"
  diff "$build/grep.txt" "$build/found.txt" >&2
  [ "$("$search" "$library" uint32_t bindings/c --count)" = "$(wc -l <"$build/grep.txt")" ]
  "$search" "$library" uint32_t bindings/c --json | grep -q "\"matches\":$(wc -l <"$build/grep.txt"),"
  if "$search" "$library" uint32_t no/such/folder 2>"$build/error.txt"; then return 1; fi
  grep -q 'No such file' "$build/error.txt"
  echo "search example: agrees with grep"
  "$cc" -std=c99 -g -O1 -fsanitize=address,undefined "${warnings[@]}" "${include[@]}" \
    examples/echo/hosts/c/echo.c -o "$build/echo-c" -ldl
  "$build/echo-c" "$target/debug/libthalweg_echo.so" | diff examples/echo/expected.txt - >&2
  for guest in echo echo_cpp; do
    THALWEG_LIBRARY=$target/debug/libthalweg.so "$build/echo-c" "thread:$target/guests/libguest_$guest.so" |
      diff examples/echo/expected.txt - >&2
  done
  if "$build/echo-c" no/such/library 2>"$build/error.txt"; then return 1; fi
  grep -q 'no/such/library' "$build/error.txt"
  "$cc" -std=c99 -g -O1 -fsanitize=address,undefined "${warnings[@]}" "${include[@]}" \
    examples/feed/hosts/c/feed.c -o "$build/feed-c" -ldl
  "$build/feed-c" "$target/debug/libthalweg_feed.so" | diff examples/feed/expected.txt - >&2
  echo "examples: expected output"
}
example

# A program that was compiled with an installed package finds the installed libthalweg.so: opens_guest PROGRAM.
opens_guest() {
  env -u THALWEG_LIBRARY -u LD_LIBRARY_PATH "$1" "thread:$target/guests/libguest_echo.so" |
    diff examples/echo/expected.txt - >&2
}

# 5. The first program in the README, with an installed package if pkg-config is available.
installed() {
  local prefix=$build/installed flags=(-Ibindings/c/include -ldl)
  # shellcheck disable=SC2016 # the backticks are Markdown
  sed -n '/^```c$/,/^```$/{/^```$/q;/^```c$/d;p}' bindings/c/README.md >"$build/readme.c"
  if command -v pkg-config >/dev/null; then
    install -Dm644 -t "$prefix/include" bindings/c/include/*.h
    install -D "$target/debug/libthalweg.so" -t "$prefix/lib"
    sed "s|@PREFIX@|$prefix|; s|@VERSION@|0.1.0|" bindings/c/thalweg.pc.in |
      install -Dm644 /dev/stdin "$prefix/lib/pkgconfig/thalweg.pc"
    read -r -a flags <<<"$(PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --cflags --libs thalweg)"
    "$cc" -std=c99 "${warnings[@]}" -Iexamples/echo/generated/c examples/echo/hosts/c/echo.c -o "$build/echo-installed" \
      "${flags[@]}"
    opens_guest "$build/echo-installed"
  fi
  "$cc" -std=c99 "${warnings[@]}" -Iexamples/search/generated/c "$build/readme.c" -o "$build/readme" "${flags[@]}"
  [[ $(cd bindings/c && LD_LIBRARY_PATH=$target/debug "$build/readme") =~ ^[0-9]+\ lines$ ]]
  echo "readme: runs"
}
installed

# 6. The same program with CMake, if available: with an installed package, and with add_subdirectory.
by_cmake() {
  local root=$PWD folder=$build/cmake name version
  command -v cmake >/dev/null || return 0
  rm -rf "$folder"
  cmake -S bindings/c -B "$folder/package" -DCMAKE_INSTALL_PREFIX="$folder/installed" \
    "-DTHALWEG_CORE=$target/debug/libthalweg.so" >/dev/null
  cmake --install "$folder/package" >/dev/null
  diff -r bindings/c/include "$folder/installed/include"
  version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
  grep -q "^Version: $version$" "$folder/package/thalweg.pc"
  consumer() {
    cmake -S bindings/c/tests/cmake -B "$folder/$1" -DSOURCE="$2" \
      -DGENERATED="$root/examples/$3/generated/c" "${@:4}" >/dev/null
    cmake --build "$folder/$1" >/dev/null
  }
  consumer found "$build/readme.c" search "-DCMAKE_PREFIX_PATH=$folder/installed"
  consumer subdirectory "$build/readme.c" search "-DHEADERS=$root/bindings/c"
  for name in found subdirectory; do
    [[ $(cd bindings/c && LD_LIBRARY_PATH=$target/debug "$folder/$name/consumer") =~ ^[0-9]+\ lines$ ]]
  done
  consumer echo "$root/examples/echo/hosts/c/echo.c" echo "-DCMAKE_PREFIX_PATH=$folder/installed"
  opens_guest "$folder/echo/consumer"
  echo "cmake: installed package and add_subdirectory"
}
by_cmake

# 7. The conformance scenarios.
conformance/c/test.sh
