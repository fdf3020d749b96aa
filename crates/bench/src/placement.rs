//! The placement of a host program: on one processor, on two, on two apart, or unrestricted.

use std::env;
use std::fs;
use std::process::{Child, Command};

use rustix::io::Errno;
use rustix::thread::{CpuSet, Pid, sched_getaffinity, sched_setaffinity};

use crate::problem::Problem;

/// The processors that a program may use. It is pinned before its first instruction, so the library
/// it opens sees no other processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// One processor for all of its threads.
    OneCpu,
    /// Two processors.
    TwoCpus,
    /// Two processors: one for the thread that calls ([`move_caller`]), one for all others. No
    /// thread finds another processor to wait for, so each sleeps instead of spinning.
    Split,
    /// All processors that this process may use.
    Free,
}

impl Placement {
    /// The spelling in `params`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OneCpu => "one_cpu",
            Self::TwoCpus => "two_cpus",
            Self::Split => "split",
            Self::Free => "free",
        }
    }

    /// Whether there are enough processors for it.
    #[must_use]
    pub fn possible(self) -> bool {
        let needed = match self {
            Self::TwoCpus | Self::Split => 2,
            Self::OneCpu | Self::Free => 1,
        };
        allowed().len() >= needed
    }

    fn wanted(self) -> Option<usize> {
        match self {
            Self::OneCpu | Self::Split => Some(1),
            Self::TwoCpus => Some(2),
            Self::Free => None,
        }
    }

    /// Starts `command` at this placement: this thread moves there first, and the child inherits
    /// its processors.
    ///
    /// # Errors
    /// The kernel refuses the placement, or the program cannot be started.
    pub fn spawn(self, command: &mut Command) -> Result<Child, Problem> {
        let program = command.get_program().to_string_lossy().into_owned();
        let spawn = |command: &mut Command| {
            command
                .spawn()
                .map_err(Problem::io(format!("cannot start {program}")))
        };
        let Some(wanted) = self.wanted() else {
            return spawn(command);
        };
        let here = sched_getaffinity(None).map_err(|errno| affinity_problem(errno.into()))?;
        let mut there = CpuSet::new();
        // Use the last processors: the first ones handle most of the machine's interrupts.
        let mut last = allowed().into_iter().rev();
        for cpu in last.by_ref().take(wanted) {
            there.set(cpu);
        }
        if self == Self::Split
            && let Some(cpu) = last.next()
        {
            command.env(CALLER, cpu.to_string());
        }
        sched_setaffinity(None, &there).map_err(|errno| affinity_problem(errno.into()))?;
        let child = spawn(command);
        sched_setaffinity(None, &here).map_err(|errno| affinity_problem(errno.into()))?;
        child
    }
}

/// The processor of the thread that calls, at [`Placement::Split`].
const CALLER: &str = "LAB_CALLER_CPU";

/// Moves this thread to its own processor if the lab asks for it. Called by a host program after it
/// has started all other threads.
///
/// # Errors
/// The kernel refuses it.
pub fn move_caller() -> Result<(), Problem> {
    let cpu = env::var(CALLER).ok().and_then(|cpu| cpu.parse().ok());
    let Some(cpu) = cpu else { return Ok(()) };
    move_this_thread(cpu)
}

/// Moves this thread to one processor.
///
/// # Errors
/// The kernel refuses it.
pub fn move_this_thread(cpu: usize) -> Result<(), Problem> {
    let mut there = CpuSet::new();
    there.set(cpu);
    sched_setaffinity(None, &there).map_err(|errno| affinity_problem(errno.into()))
}

/// Moves the first thread of another process to one processor, and all of its other threads to another, as
/// [`Placement::Split`] does.
///
/// # Errors
/// There are fewer than two processors, the process has ended, or the kernel refuses it.
pub fn split_threads(pid: u32) -> Result<(), Problem> {
    let mut last = allowed().into_iter().rev();
    let (Some(others), Some(first)) = (last.next(), last.next()) else {
        return Err(Problem::NotReady("one processor".to_owned()));
    };
    for thread in threads(pid)? {
        let mut there = CpuSet::new();
        there.set(if thread == pid { first } else { others });
        let id = i32::try_from(thread).ok().and_then(Pid::from_raw);
        match sched_setaffinity(id, &there) {
            // The thread has ended meanwhile.
            Ok(()) | Err(Errno::SRCH) => {}
            Err(errno) => return Err(affinity_problem(errno.into())),
        }
    }
    Ok(())
}

/// The threads of a process.
///
/// # Errors
/// The process has ended.
pub fn threads(pid: u32) -> Result<Vec<u32>, Problem> {
    let folder = format!("/proc/{pid}/task");
    let entries = fs::read_dir(&folder).map_err(Problem::io(folder))?;
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    Ok(entries.flatten().filter_map(number).collect())
}

fn affinity_problem(error: std::io::Error) -> Problem {
    Problem::Io("cannot choose processors".to_owned(), error)
}

/// The processors that this thread may use, ascending.
#[must_use]
pub fn allowed() -> Vec<usize> {
    let set = sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new());
    (0..CpuSet::MAX_CPU)
        .filter(|cpu| set.is_set(*cpu))
        .collect()
}

/// Writes an ascending list as the kernel does: `0-3,8`.
#[must_use]
pub fn ranges(cpus: &[usize]) -> String {
    let mut text: Vec<String> = Vec::new();
    let mut rest = cpus;
    while let Some(&first) = rest.first() {
        let run = rest
            .iter()
            .zip(first..)
            .take_while(|(cpu, wanted)| *cpu == wanted)
            .count();
        let last = rest[run - 1];
        text.push(if run == 1 {
            format!("{first}")
        } else {
            format!("{first}-{last}")
        });
        rest = &rest[run..];
    }
    text.join(",")
}

#[cfg(test)]
mod tests {
    use std::process::Stdio;

    use super::*;

    #[test]
    fn lists_are_written_as_the_kernel_writes_them() {
        assert_eq!(ranges(&[0, 1, 2, 3, 8]), "0-3,8");
        assert_eq!(ranges(&[5]), "5");
        assert_eq!(ranges(&[]), "");
    }

    #[test]
    fn threads_of_a_process_are_split_over_two_processors() {
        if !Placement::Split.possible() {
            return;
        }
        let mut command = Command::new("sleep");
        let mut child = command.arg("60").spawn().unwrap();
        split_threads(child.id()).unwrap();
        let there = sched_getaffinity(Pid::from_raw(child.id().cast_signed())).unwrap();
        let first = allowed()[allowed().len() - 2];
        assert_eq!((there.count(), there.is_set(first)), (1, true));
        assert_eq!(threads(child.id()).unwrap(), [child.id()]);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(split_threads(child.id()).is_err());
    }

    #[test]
    fn a_pinned_program_sees_one_processor_and_this_thread_keeps_its_own() {
        let before = allowed();
        let mut command = Command::new("cat");
        command.arg("/proc/self/status").stdout(Stdio::piped());
        let output = Placement::OneCpu
            .spawn(&mut command)
            .unwrap()
            .wait_with_output()
            .unwrap();
        let status = String::from_utf8(output.stdout).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("Cpus_allowed_list:"))
            .unwrap();
        let list = line.split_whitespace().nth(1).unwrap();
        assert_eq!(list, before.last().unwrap().to_string());
        assert_eq!(allowed(), before);
    }
}
