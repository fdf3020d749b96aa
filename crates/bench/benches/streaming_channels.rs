//! `cargo bench --bench streaming_channels`: the workload of this name. Arguments after `--` are
//! passed to `thalweg-bench run`: `cargo bench --bench streaming_channels -- --quick`.

mod lab;

fn main() -> std::process::ExitCode {
    lab::run(&["streaming_channels"])
}
