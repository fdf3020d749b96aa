//! The machine: what a reader must know to judge a figure.

use std::fs;
use std::process::Command;
use std::thread::available_parallelism;

use crate::placement;
use crate::report::Host;

/// Describes the machine that this process runs on. What cannot be found out is `unknown`.
#[must_use]
pub fn describe() -> Host {
    let uname = rustix::system::uname();
    let words = [uname.sysname(), uname.release(), uname.machine()];
    Host {
        uname: words
            .map(|word| word.to_string_lossy().into_owned())
            .join(" "),
        cpu: processor_name(&read("/proc/cpuinfo")),
        processors: online(&read("/sys/devices/system/cpu/online")),
        affinity: placement::ranges(&placement::allowed()),
        governor: governor(),
        memory: memory(&read("/proc/meminfo")),
        r#virtual: virtualisation(),
    }
}

/// Load average over the last minute, as the kernel prints it.
#[must_use]
pub fn load() -> String {
    read("/proc/loadavg")
        .split_whitespace()
        .next()
        .unwrap_or("unknown")
        .to_owned()
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

fn processor_name(cpuinfo: &str) -> String {
    let value_of = |key: &str| {
        cpuinfo.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            (name.trim() == key).then(|| value.trim().to_owned())
        })
    };
    // aarch64 has no name there, only numbers.
    value_of("model name")
        .or_else(|| value_of("CPU part").map(|part| format!("part {part}")))
        .unwrap_or_else(|| "unknown".to_owned())
}

/// Counts the processors of a list like `0-3,8`.
fn online(list: &str) -> u32 {
    let count = list.trim().split(',').filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        Some(last.checked_sub(first)? + 1)
    });
    match count.sum() {
        0 => available_parallelism().map_or(1, |n| u32::try_from(n.get()).unwrap_or(u32::MAX)),
        known => known,
    }
}

fn governor() -> String {
    // A virtual machine mostly has no say in its frequency, and no such file.
    match read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor").trim() {
        "" => "none".to_owned(),
        governor => governor.to_owned(),
    }
}

fn memory(meminfo: &str) -> String {
    let kib = meminfo.lines().find_map(|line| {
        let rest = line.strip_prefix("MemTotal:")?;
        rest.split_whitespace().next()?.parse::<u64>().ok()
    });
    kib.map_or_else(|| "unknown".to_owned(), |kib| format!("{} MiB", kib / 1024))
}

fn virtualisation() -> String {
    let detected = Command::new("systemd-detect-virt").output().ok();
    let text = detected.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    match text {
        Some(text) if !text.is_empty() => text,
        _ if read("/proc/cpuinfo").contains("hypervisor") => "virtual machine".to_owned(),
        _ => "unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_files_are_read_as_they_are_written() {
        let cpuinfo = "processor\t: 0\nmodel name\t: Some CPU @ 3 GHz\nprocessor\t: 1\n";
        assert_eq!(processor_name(cpuinfo), "Some CPU @ 3 GHz");
        assert_eq!(processor_name("CPU part\t: 0xd0c\n"), "part 0xd0c");
        assert_eq!(online("0-3,8\n"), 5);
        assert_eq!(online("0"), 1);
        assert_eq!(
            memory("MemFree: 1 kB\nMemTotal:   2048000 kB\n"),
            "2000 MiB"
        );
        assert_eq!(memory(""), "unknown");
    }

    #[test]
    fn this_machine_has_a_kernel_and_a_processor() {
        let host = describe();
        assert!(host.uname.starts_with("Linux "), "{}", host.uname);
        assert!(host.processors >= 1);
        assert!(!host.affinity.is_empty());
    }
}
