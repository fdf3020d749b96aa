//! `cargo bench --bench general`: the runtime's workloads, with the knobs of the environment.
//! Arguments after `--` are passed to `thalweg-bench run`: `cargo bench --bench general -- --quick
//! --json FILE`.

mod lab;

fn main() -> std::process::ExitCode {
    lab::run(&["--group", "runtime"])
}
