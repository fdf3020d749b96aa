//! `thalweg-bench` with an allocator that lets our runtime preempt actors. Rows with the parameter
//! `allocator=preempting` are measured in processes of this program. It is a separate program, so
//! that no other row pays for the counting of allocations.

use std::process::ExitCode;

// SAFETY: the actors of the workloads keep no thread-bound state across an allocation: no lock, no
// borrow, and no first access to a thread-local.
thalweg_runtime::preempting_allocator!(unsafe);

fn main() -> ExitCode {
    thalweg_bench::command::main()
}
