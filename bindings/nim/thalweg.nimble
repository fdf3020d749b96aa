version = "0.1.0"
author = "The authors of Thalweg"
description = "Calls services in Thalweg libraries"
license = "MIT OR Apache-2.0"
srcDir = "src"

requires "nim >= 1.6.0"

task test, "Run the tests with each memory management":
  exec "./test.sh"

task bench_ffi_submit, "Run nim-ffi's benchmark of submissions; its knobs are in bench/ffi_submit.nim":
  exec "bench/run.sh ffi_submit"

task bench_codec, "Run nim-ffi's benchmark of codecs":
  exec "bench/run.sh codec"
