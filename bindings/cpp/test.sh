#!/usr/bin/env bash
# Tests of the C++ binding: compiles each header by itself, then runs the test programs with every
# available compiler, as C++20 and C++23, plain, without exceptions and under sanitizers. Programs are
# compiled as many at a time as there are processors.
set -euo pipefail
cd "$(dirname "$0")/../.."

target=${CARGO_TARGET_DIR:-$PWD/target}
build=$target/cpp-tests
include=(-Ibindings/cpp/include -Ibindings/c/include)
for package in search echo feed hello recipes; do
  include+=("-Iexamples/$package/generated/cpp" "-Iexamples/$package/generated/c")
done
include+=(-Iconformance/generated/cpp -Iconformance/generated/c)
include+=("-I$target/guests/guest-cpp" "-I$target/guests/guest-c" "-I$target/guests/cpp" "-I$target/guests/c")
# g++ 12 warns about std::stop_source itself where it optimises. clang++ has no such warning, and
# refuses the flag without -Wno-unknown-warning-option, which g++ ignores.
warnings=(-Wall -Wextra -Wpedantic -Werror -Wno-unknown-warning-option -Wno-maybe-uninitialized)
# Without optimisation, which takes two thirds of the time of compiling and finds nothing more. The
# optimised programs are those without sanitizers.
sanitizers=(-g1 -O0 "-fsanitize=address,undefined" -fno-sanitize-recover=undefined)
library=$target/debug/libthalweg_conformance.so
compilers=()
for compiler in "${CXX:-g++}" clang++; do
  if command -v "$compiler" >/dev/null; then compilers+=("$compiler"); fi
done
has_asio=false
if echo '#include <asio.hpp>' | "${compilers[0]}" -std=c++20 -DASIO_STANDALONE -E -x c++ - >/dev/null 2>&1; then has_asio=true; fi
mkdir -p "$build"
scripts/generate.sh
scripts/build-services.sh
scripts/build-guests.sh
export RUST_BACKTRACE=0

# Runs a command in the background, as soon as a processor is free.
running=0
run() {
  if [ "$running" -ge "$(nproc)" ]; then
    wait -n
    running=$((running - 1))
  fi
  "$@" &
  running=$((running + 1))
}
# Waits until all have ended.
built() {
  for (( ; running > 0; running--)); do wait -n; done
}

# compile COMPILER OUT SOURCE FLAGS..: in the background.
compile() {
  run "$1" "${warnings[@]}" "${include[@]}" "${@:4}" "$3" -o "$2" -pthread -ldl
}

# 1. Each header by itself. Only expected.hpp depends on the standard.
headers() {
  local compiler header source standard=c++20
  for compiler in "${compilers[@]}"; do
    for header in thalweg.hpp thalweg/{expected,view,error,codec,session,client,stream,task,host,guest,guest_input,guest_message,guest_writer,poll_loop}.hpp \
      search.hpp echo.hpp feed.hpp hello.hpp recipes.hpp conformance.hpp {echo,probe}_guest.hpp; do
      source=$build/header-${header//\//-}.cpp
      printf '#include "%s"\n#include "%s"\nint main() {}\n' "$header" "$header" >"$source"
      run "$compiler" "-std=$standard" "${warnings[@]}" "${include[@]}" -fsyntax-only "$source"
    done
    standard=c++2b
  done
  built
}

# 2. The test programs: programs COMPILER compiles them, and run_programs COMPILER runs them.
programs() {
  local folder name sanitized=(-std=c++20 "${sanitizers[@]}")
  folder=$build/$(basename "$1")
  rm -rf "$folder"
  mkdir -p "$folder"
  # clang++ 14 cannot compile coroutines with this check.
  if [ "$(basename "$1")" = clang++ ]; then sanitized+=(-fno-sanitize=function); fi
  for name in calls streams coroutines; do
    compile "$1" "$folder/$name-sanitized" "bindings/cpp/tests/$name.cpp" "${sanitized[@]}"
    compile "$1" "$folder/$name-release" "bindings/cpp/tests/$name.cpp" -std=c++2b -O2 -DNDEBUG
  done
  compile "$1" "$folder/misuse" bindings/cpp/tests/misuse.cpp -std=c++20 -g
  compile "$1" "$folder/calls-without-exceptions" bindings/cpp/tests/calls.cpp -std=c++20 -fno-exceptions
  if $has_asio; then
    compile "$1" "$folder/asio" bindings/cpp/tests/asio.cpp -DASIO_STANDALONE "${sanitized[@]}"
  fi
}
run_programs() {
  local program
  for program in "$build/$(basename "$1")"/*; do "$program" "$library"; done
}

# 3. Services in C++, plain and under sanitizers: guests COMPILER. g++ marks symbols so that a library is never
#    unloaded, unless told otherwise, and the test waits until it is.
guests() {
  local kind folder name flags plain=(-O2 -fno-gnu-unique) sanitized=("${sanitizers[@]}" -fno-gnu-unique)
  folder=$build/guests-$(basename "$1")
  rm -rf "$folder"
  mkdir -p "$folder"
  if [ "$(basename "$1")" = clang++ ]; then
    plain=(-O2)
    sanitized=("${sanitizers[@]}" -fno-sanitize=function) # see `programs`
  fi
  local generated=$build/generated
  "$target/debug/thalweg" gen --out "$generated" --guest c,cpp --lang c,cpp bindings/c/tests/guests/inputs \
    bindings/cpp/tests/guests/boxes >/dev/null
  for kind in plain sanitized; do
    flags=("-I$generated/guest-cpp" "-I$generated/guest-c" "-I$generated/cpp" "-I$generated/c" "${plain[@]}")
    if [ "$kind" = sanitized ]; then flags+=("${sanitized[@]}"); fi
    for name in probe inputs boxes; do
      compile "$1" "$folder/libguest_${name}_$kind.so" "bindings/cpp/tests/guests/$name.cpp" -std=c++20 \
        -fPIC -shared -fvisibility=hidden "${flags[@]}"
    done
    compile "$1" "$folder/guests-$kind" bindings/cpp/tests/guests.cpp -std=c++20 "${flags[@]}"
    compile "$1" "$folder/guest_boxes-$kind" bindings/cpp/tests/guest_boxes.cpp -std=c++20 "${flags[@]}"
    compile "$1" "$folder/guest_inputs-$kind" bindings/c/tests/guest_inputs.c -x c -std=c99 -D_XOPEN_SOURCE=700 \
      "${flags[@]}"
  done
  built
  export THALWEG_LIBRARY=$target/debug/libthalweg.so
  for kind in plain sanitized; do
    "$folder/guests-$kind" "thread:$folder/libguest_probe_$kind.so"
    "$folder/guest_boxes-$kind" "thread:$folder/libguest_boxes_$kind.so"
    "$folder/guest_inputs-$kind" "$folder/libguest_inputs_$kind.so"
  done
  unset THALWEG_LIBRARY
}

# Reloads under load: reload COMPILER RELOADS MS, one in each MS milliseconds. The program is in C. Without the
# version script, libstdc++ would use symbols of the first guest, which then stays loaded.
reload() {
  local folder version
  folder=$build/reload-$(basename "$1")
  rm -rf "$folder"
  mkdir -p "$folder"
  echo '{ global: tw_guest; local: *; };' >"$folder/guest.map"
  for version in 1 2; do
    compile "$1" "$folder/libguest_version$version.so" bindings/cpp/tests/guests/probe.cpp -std=c++20 \
      -fPIC -shared -fvisibility=hidden -O2 "-Wl,--version-script=$folder/guest.map" \
      "-DPROBE_VERSION=$version" -DPROBE_BALLAST=2097152
  done
  run "${CC:-cc}" -std=c11 -D_XOPEN_SOURCE=700 "${warnings[@]}" "${include[@]}" -O2 bindings/c/tests/reload.c \
    -o "$folder/reload" -pthread -ldl
  built
  THALWEG_LIBRARY=$target/debug/libthalweg.so "$folder/reload" "$folder" "$2" "$3"
}

# 4. Libraries that are refused.
opening() {
  local folder=$build/fakes
  fake() {
    "${CC:-cc}" -std=c99 -fPIC -shared "${include[@]}" "${@:2}" bindings/c/tests/fake_library.c -o "$folder/libfake_$1.so"
  }
  mkdir -p "$folder"
  fake other_abi '-DFAKE_ABI=(TW_ABI + 1)'
  fake other_layout -DFAKE_LAYOUT
  fake other_package '-DFAKE_PACKAGE="thalweg:find"'
  fake no_symbol -DFAKE_NO_SYMBOL
  compile "${compilers[0]}" "$folder/opening" bindings/cpp/tests/opening.cpp -std=c++20
  built
  "$folder/opening" "$folder"
}

# 5. The examples: search against grep on this repository's sources, the others against their
#    expected output.
examples() {
  local name search=$build/search-cpp of=$target/debug/libthalweg_search.so
  for name in search echo feed hello; do
    compile "${compilers[0]}" "$build/$name-cpp" "examples/$name/hosts/cpp/$name.cpp" -std=c++20 "${sanitizers[@]}"
  done
  built
  LC_ALL=C grep -raFn -- 'uint32_t' bindings/c | LC_ALL=C sort >"$build/grep.txt"
  "$search" "$of" uint32_t bindings/c --print | LC_ALL=C sort >"$build/found.txt"
  diff "$build/grep.txt" "$build/found.txt" >&2
  [ "$("$search" "$of" uint32_t bindings/c --count)" = "$(wc -l <"$build/grep.txt")" ]
  "$search" "$of" uint32_t bindings/c --json | grep -q "\"matches\":$(wc -l <"$build/grep.txt"),"
  "$search" "$of" uint32_t bindings/c --async | grep -q "\"matches\":$(wc -l <"$build/grep.txt"),"
  if "$search" "$of" uint32_t no/such/folder 2>"$build/error.txt"; then return 1; fi
  grep -q 'No such file' "$build/error.txt"
  for name in echo feed hello; do
    "$build/$name-cpp" "$target/debug/libthalweg_$name.so" | diff "examples/$name/expected.txt" - >&2
    if "$build/$name-cpp" no/such/library 2>"$build/error.txt"; then return 1; fi
    grep -q 'no/such/library' "$build/error.txt"
  done
  # The same service in C and in C++.
  for name in echo echo_cpp; do
    THALWEG_LIBRARY=$target/debug/libthalweg.so "$build/echo-cpp" "thread:$target/guests/libguest_$name.so" |
      diff examples/echo/expected.txt - >&2
  done
  echo "examples: expected output"
}

# 6. Every program of the guide.
guide() {
  local folder=$build/guide program programs=()
  rm -rf "$folder"
  mkdir -p "$folder"
  # shellcheck disable=SC2016 # the backticks are Markdown
  awk -v folder="$folder" '/^```cpp$/ { inside = 1; number++; next } /^```$/ { inside = 0 }
    inside { print > (folder "/" number ".cpp") }' docs/cpp.md
  for program in "$folder"/*.cpp; do
    if grep -q asio "$program" && [ $has_asio = false ]; then continue; fi
    compile "${compilers[0]}" "${program%.cpp}" "$program" -std=c++20 -DASIO_STANDALONE "${sanitizers[@]}"
    programs+=("${program%.cpp}")
  done
  built
  for program in "${programs[@]}"; do
    LD_LIBRARY_PATH=$target/debug "$program" >"$program.txt"
    grep -q . "$program.txt"
  done
  [ "${#programs[@]}" -gt 0 ]
  echo "guide: ${#programs[@]} programs ran"
}

# 7. The package with CMake, if available: installed, and in the source tree.
by_cmake() {
  local name root=$PWD folder=$build/cmake
  command -v cmake >/dev/null || return 0
  rm -rf "$folder"
  cmake -S bindings/cpp -B "$folder/package" -DCMAKE_INSTALL_PREFIX="$folder/installed" \
    "-DTHALWEG_CORE=$target/debug/libthalweg.so" >/dev/null
  cmake --install "$folder/package" >/dev/null
  diff -r bindings/cpp/include/thalweg "$folder/installed/include/thalweg"
  consumer() {
    cmake -S bindings/cpp/tests/cmake -B "$folder/$1" -DSOURCE="$root/examples/$2/hosts/cpp/$2.cpp" \
      "-DGENERATED=$root/examples/$2/generated" "${@:3}" >/dev/null
    cmake --build "$folder/$1" >/dev/null
  }
  consumer found search "-DCMAKE_PREFIX_PATH=$folder/installed"
  consumer subdirectory search "-DHEADERS=$root/bindings/cpp"
  for name in found subdirectory; do
    [[ $("$folder/$name/consumer" "$target/debug/libthalweg_search.so" uint32_t bindings/c --count) =~ ^[0-9]+$ ]]
  done
  # The installed package has libthalweg.so, which opens guests.
  consumer guest echo "-DCMAKE_PREFIX_PATH=$folder/installed"
  env -u THALWEG_LIBRARY -u LD_LIBRARY_PATH "$folder/guest/consumer" "thread:$target/guests/libguest_echo_cpp.so" |
    diff examples/echo/expected.txt - >&2
  echo "cmake: installed package and add_subdirectory"
}

if [ "${1:-}" = reload ]; then
  reload "${compilers[0]}" "$2" 1000
  exit
fi
headers
opening
for compiler in "${compilers[@]}"; do programs "$compiler"; done
built
for compiler in "${compilers[@]}"; do run_programs "$compiler"; done
for compiler in "${compilers[@]}"; do guests "$compiler"; done
for compiler in "${compilers[@]}"; do reload "$compiler" 30 50; done
conformance/cpp/test.sh
compile "${compilers[0]}" "$build/leaks" bindings/cpp/tests/leaks.cpp -std=c++20 -O2 -g
built
"$build/leaks" "$library" 1000 1000000
examples
guide
by_cmake
if ! $has_asio; then scripts/skip.sh test-cpp "Asio is not installed, so that its test did not run"; fi
