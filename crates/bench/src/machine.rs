//! The machine: what a reader must know to judge a figure.

use std::fs;
use std::process::Command;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit};

use crate::placement;
use crate::report::{Host, unknown};

/// Describes the machine that this process runs on. Values that cannot be determined are `unknown`.
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
        turbo: turbo(
            &read("/sys/devices/system/cpu/intel_pstate/no_turbo"),
            &read("/sys/devices/system/cpu/cpufreq/boost"),
        ),
        load: load(),
        stolen: stolen(&read("/proc/stat")),
        quota: quota(),
        open_files: limit(Resource::Nofile, 1, ""),
        locked_memory: limit(Resource::Memlock, 1024, " KiB"),
        clock: clock(),
    }
}

/// Load average over the last minute, as the kernel prints it.
#[must_use]
pub fn load() -> String {
    read("/proc/loadavg")
        .split_whitespace()
        .next()
        .map_or_else(unknown, str::to_owned)
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The processor's name with the numbers of its model. Hypervisors give processors of different
/// generations the same name.
fn processor_name(cpuinfo: &str) -> String {
    let value_of = |key: &str| {
        cpuinfo.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            (name.trim() == key).then(|| value.trim().to_owned())
        })
    };
    // aarch64 has no processor name there, only numbers.
    let numbers = |of: &[(&str, &str)]| {
        let number = |(key, name): &(&str, &str)| Some(format!("{name} {}", value_of(key)?));
        let known: Vec<String> = of.iter().filter_map(number).collect();
        known.join(" ")
    };
    if let Some(name) = value_of("model name") {
        let keys = ["family", "model", "stepping"];
        let model = numbers(&[
            ("cpu family", keys[0]),
            (keys[1], keys[1]),
            (keys[2], keys[2]),
        ]);
        return format!("{name} {model}").trim_end().to_owned();
    }
    match numbers(&[
        ("CPU implementer", "implementer"),
        ("CPU part", "part"),
        ("CPU variant", "variant"),
        ("CPU revision", "revision"),
    ]) {
        none if none.is_empty() => unknown(),
        part => part,
    }
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
    // A virtual machine usually does not control its frequency and has no such file.
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
    kib.map_or_else(unknown, |kib| format!("{} MiB", kib / 1024))
}

fn virtualisation() -> String {
    let detected = Command::new("systemd-detect-virt").output().ok();
    let text = detected.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    match text {
        Some(text) if !text.is_empty() => text,
        _ if read("/proc/cpuinfo").contains("hypervisor") => "virtual machine".to_owned(),
        _ => unknown(),
    }
}

/// Intel's driver has a switch that forbids turbo; all others have one that allows it.
fn turbo(forbidden: &str, allowed: &str) -> String {
    match (forbidden.trim(), allowed.trim()) {
        ("0", _) | ("", "1") => "on".to_owned(),
        ("1", _) | ("", "0") => "off".to_owned(),
        _ => unknown(),
    }
}

/// From the first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal.
fn stolen(stat: &str) -> String {
    let times: Vec<f64> = stat
        .lines()
        .find_map(|line| line.strip_prefix("cpu "))
        .unwrap_or_default()
        .split_whitespace()
        .take(8)
        .filter_map(|time| time.parse().ok())
        .collect();
    let all: f64 = times.iter().sum();
    match times.get(7) {
        Some(steal) if all > 0.0 => format!("{:.1} %", 100.0 * steal / all),
        _ => unknown(),
    }
}

/// The tightest quota of this process's control group and of those above it, in processors.
fn quota() -> String {
    let mut tightest: Option<f64> = None;
    for line in read("/proc/self/cgroup").lines() {
        // `0::/path` in version 2, `1:cpu,cpuacct:/path` in version 1.
        let mut parts = line.splitn(3, ':');
        let (_, controllers, Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let own = std::path::Path::new(path.trim_start_matches('/'));
        for folder in own.ancestors() {
            let folder = folder.display();
            let quota = if controllers == Some("") {
                quota_of(&read(&format!("/sys/fs/cgroup/{folder}/cpu.max")))
            } else if controllers.is_some_and(|all| all.split(',').any(|one| one == "cpu")) {
                let file = |name| read(&format!("/sys/fs/cgroup/cpu/{folder}/cpu.cfs_{name}_us"));
                quota_of(&format!("{} {}", file("quota").trim(), file("period")))
            } else {
                None
            };
            tightest = match (tightest, quota) {
                (Some(known), Some(new)) => Some(known.min(new)),
                (known, new) => known.or(new),
            };
        }
    }
    tightest.map_or_else(|| "none".to_owned(), |cpus| format!("{cpus:.2}"))
}

/// Quota and period, both in us: `200000 100000` is two processors; `max 100000` and `-1 100000`
/// mean no quota.
fn quota_of(text: &str) -> Option<f64> {
    let mut numbers = text.split_whitespace().map(str::parse::<f64>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(quota)), Some(Ok(period))) if quota > 0.0 && period > 0.0 => Some(quota / period),
        _ => None,
    }
}

fn limit(resource: Resource, divisor: u64, unit: &str) -> String {
    let limit = getrlimit(resource);
    let text = |value: Option<u64>| {
        value.map_or_else(
            || "unlimited".to_owned(),
            |value| format!("{}{unit}", value / divisor),
        )
    };
    format!("{} of {}", text(limit.current), text(limit.maximum))
}

fn clock() -> String {
    let folder = "/sys/devices/system/clocksource/clocksource0";
    let name = match read(&format!("{folder}/current_clocksource")).trim() {
        "" => unknown(),
        name => name.to_owned(),
    };
    format!("{name}, {:.0} ns a reading", reading().as_nanos())
}

/// Number of readings for the mean: a few ms in total even if a reading is a system call.
const READINGS: u32 = 10_000;

/// The cost of one reading of the monotonic clock.
fn reading() -> Duration {
    let began = Instant::now();
    for _ in 0..READINGS {
        std::hint::black_box(Instant::now());
    }
    began.elapsed() / READINGS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_files_are_read_as_they_are_written() {
        let cpuinfo = "processor\t: 0\nmodel name\t: Some CPU @ 3 GHz\nprocessor\t: 1\n";
        assert_eq!(processor_name(cpuinfo), "Some CPU @ 3 GHz");
        assert_eq!(processor_name("CPU part\t: 0xd0c\n"), "part 0xd0c");
        assert_eq!(processor_name(""), "unknown");
        assert_eq!(online("0-3,8\n"), 5);
        assert_eq!(online("0"), 1);
        assert_eq!(
            memory("MemFree: 1 kB\nMemTotal:   2048000 kB\n"),
            "2000 MiB"
        );
        assert_eq!(memory(""), "unknown");
    }

    #[test]
    fn processors_of_one_name_and_different_models_have_different_names() {
        let host = |model: u32, stepping: u32| {
            let cpuinfo = format!(
                "cpu family\t: 6\nmodel\t\t: {model}\nmodel name\t: Intel(R) Xeon(R) Processor @ 2.50GHz\nstepping\t: {stepping}\n"
            );
            crate::baseline::name_of(&Host {
                cpu: processor_name(&cpuinfo),
                processors: 2,
                r#virtual: "kvm".to_owned(),
                ..crate::report::tests::sample().host
            })
        };
        let skylake = host(85, 4);
        let expected = "intel-xeon-2-50ghz-family-6-model-85-stepping-4-2cpu-kvm";
        assert_eq!(skylake, expected);
        assert_ne!(host(85, 7), skylake);
        assert_ne!(host(143, 4), skylake);
    }

    #[test]
    fn turbo_is_known_by_either_switch() {
        assert_eq!(turbo("0\n", ""), "on");
        assert_eq!(turbo("1\n", ""), "off");
        assert_eq!(turbo("", "1\n"), "on");
        assert_eq!(turbo("", "0\n"), "off");
        assert_eq!(turbo("", ""), "unknown");
    }

    #[test]
    fn stolen_time_is_the_eighth_of_the_first_line() {
        let stat = "cpu  10 0 10 70 0 0 0 10 5 0\ncpu0 1 0 0 0 0 0 0 99 0 0\n";
        assert_eq!(stolen(stat), "10.0 %");
        assert_eq!(stolen("cpu 1 2 3\n"), "unknown");
        assert_eq!(stolen(""), "unknown");
    }

    #[test]
    fn a_quota_is_a_number_of_processors() {
        assert_eq!(quota_of("150000 100000\n"), Some(1.5));
        assert_eq!(quota_of("max 100000\n"), None);
        assert_eq!(quota_of("-1 100000"), None);
        assert_eq!(quota_of(""), None);
    }

    #[test]
    fn this_machine_has_a_kernel_a_processor_and_a_clock() {
        let host = describe();
        assert!(host.uname.starts_with("Linux "), "{}", host.uname);
        assert!(host.processors >= 1);
        assert!(!host.affinity.is_empty());
        assert!(host.clock.ends_with(" ns a reading"), "{}", host.clock);
        assert!(host.open_files.contains(" of "), "{}", host.open_files);
    }
}
