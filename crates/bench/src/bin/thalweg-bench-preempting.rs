//! `thalweg-bench` with an allocator in which our runtime may preempt: what has the parameter `allocator=preempting` is measured in this
//! program's processes. A program of its own, so that no other row pays for the counting of allocations.

use std::process::ExitCode;

// SAFETY: the actors of the workloads hold nothing of their thread's over an allocation: no lock, no borrow, no thread-local's first value.
thalweg_runtime::preempting_allocator!(unsafe);

fn main() -> ExitCode {
    thalweg_bench::command::main()
}
