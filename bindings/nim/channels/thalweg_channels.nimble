version = "0.1.0"
author = "The Thalweg developers"
description = "Channels between threads and tasks, with the names of nimsync"
license = "MIT OR Apache-2.0"
srcDir = "src"

requires "nim >= 1.6.0"

task test, "Run the tests with every memory manager and sanitizer":
  exec "./test.sh"

task bench, "Run nimsync's benchmarks and the comparisons":
  exec "./bench/run.sh"
