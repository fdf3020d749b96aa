//! `thalweg-bench`: see the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    thalweg_bench::command::main()
}
