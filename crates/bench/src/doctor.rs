//! Checks whether a machine is suitable for measuring, and suggests improvements.

use std::fmt::Write;

use crate::report::Host;

/// The state of one property of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// As it should be.
    Good,
    /// Figures suffer, or mean less than they seem to.
    Mind,
    /// The value is not visible from this process.
    Unknown,
}

/// One property of the machine.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub value: String,
    /// Whether the value is good.
    pub state: State,
    /// What to do, or the consequence; empty if nothing needs to be done.
    pub advice: &'static str,
}

/// Load average from which other programs are considered active. A hot call then finds both
/// processors busy, and sleeps instead of spinning.
const BUSY: f64 = 0.5;

/// Share of stolen time, in percent, from which a neighbour is visible in the figures.
const STOLEN: f64 = 1.0;

/// Cost of reading the clock, in ns, from which the reading is a system call: a reading through the
/// vDSO takes 20 to 50.
const SLOW_CLOCK: f64 = 150.0;

/// Limit of open files below which the workloads with a thousand connections cannot run: each
/// connection needs two descriptors, and the process needs some more.
const FEW_FILES: u64 = 4096;

/// Locked memory, in KiB, below which rings of io_uring and pinned buffers may be refused.
const LITTLE_LOCKED: u64 = 8192;

/// Whether a load average means that other programs are active. An unknown load is not busy.
#[must_use]
pub fn busy(load: &str) -> bool {
    load.parse().is_ok_and(|load: f64| load > BUSY)
}

/// All findings about `host`.
#[must_use]
pub fn examine(host: &Host) -> Vec<Finding> {
    vec![
        processors(host),
        affinity(host),
        governor(host),
        turbo(host),
        r#virtual(host),
        stolen(host),
        load(host),
        quota(host),
        open_files(host),
        locked_memory(host),
        clock(host),
        finding("memory", &host.memory, State::Good, ""),
        finding("kernel", &host.uname, State::Good, ""),
    ]
}

fn finding(name: &'static str, value: &str, state: State, advice: &'static str) -> Finding {
    let state = if value == "unknown" {
        State::Unknown
    } else {
        state
    };
    Finding {
        name,
        value: value.to_owned(),
        state,
        advice,
    }
}

fn processors(host: &Host) -> Finding {
    let value = format!("{} ({})", host.processors, host.cpu);
    let (state, advice) = match host.processors {
        1 => (
            State::Mind,
            "Everything shares one processor: no row with two threads says what two processors would do.",
        ),
        2..4 => (
            State::Mind,
            "Enough for one producer and one consumer. Rows with more threads measure the scheduler, too; scaling is judged from four up.",
        ),
        _ => (State::Good, ""),
    };
    finding("processors", &value, state, advice)
}

fn affinity(host: &Host) -> Finding {
    let (state, advice) = if allowed(&host.affinity) < host.processors {
        (
            State::Mind,
            "This process may not use all processors. If that is not on purpose: start it without taskset, or widen the container's cpuset.",
        )
    } else {
        (State::Good, "")
    };
    finding("affinity", &host.affinity, state, advice)
}

/// The number of processors in a list like `0-3,8`.
fn allowed(list: &str) -> u32 {
    let count = |range: &str| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        Some(last.saturating_sub(first) + 1)
    };
    list.split(',').filter_map(count).sum()
}

fn governor(host: &Host) -> Finding {
    let (state, advice) = match host.governor.as_str() {
        "performance" => (State::Good, ""),
        "none" => (
            State::Unknown,
            "No frequency governor is visible: the machine below decides. Quote ratios, not times.",
        ),
        _ => (
            State::Mind,
            "The clock follows the load: `cpupower frequency-set -g performance` before, and back after.",
        ),
    };
    finding("governor", &host.governor, state, advice)
}

fn turbo(host: &Host) -> Finding {
    let (state, advice) = match host.turbo.as_str() {
        "off" => (State::Good, ""),
        "on" => (
            State::Mind,
            "The clock depends on heat and neighbours: write 1 to intel_pstate/no_turbo, or 0 to cpufreq/boost, below /sys/devices/system/cpu.",
        ),
        _ => (
            State::Unknown,
            "The switch is not visible from here. Quote ratios, not times.",
        ),
    };
    finding("turbo", &host.turbo, state, advice)
}

fn r#virtual(host: &Host) -> Finding {
    let (state, advice) = match host.r#virtual.as_str() {
        "none" => (State::Good, ""),
        "docker" | "podman" | "lxc" | "lxc-libvirt" | "systemd-nspawn" | "container-other" => (
            State::Mind,
            "A container, perhaps in a virtual machine: limits below may come from outside, and neighbours are not visible.",
        ),
        _ => (
            State::Mind,
            "A virtual machine: waking an idle processor goes through the hypervisor and takes tens of us. Figures for hardware need hardware.",
        ),
    };
    finding("virtual", &host.r#virtual, state, advice)
}

fn stolen(host: &Host) -> Finding {
    let percent: Option<f64> = host
        .stolen
        .strip_suffix(" %")
        .and_then(|percent| percent.parse().ok());
    let (state, advice) = if percent.is_some_and(|percent| percent >= STOLEN) {
        (
            State::Mind,
            "The hypervisor gave this time to others: measure at another hour, and take more samples.",
        )
    } else {
        (State::Good, "")
    };
    finding("stolen", &host.stolen, state, advice)
}

fn load(host: &Host) -> Finding {
    let (state, advice) = if busy(&host.load) {
        (
            State::Mind,
            "Other programs are running: wait until the load is below 0.5, or do not quote the figures.",
        )
    } else {
        (State::Good, "")
    };
    finding("load", &host.load, state, advice)
}

fn quota(host: &Host) -> Finding {
    let (state, advice) = match host.quota.as_str() {
        "none" => (State::Good, ""),
        _ => (
            State::Mind,
            "The control group stops all threads when its share of a period is used up: gaps of tens of ms. Take the quota away and use a cpuset.",
        ),
    };
    finding("quota", &host.quota, state, advice)
}

/// The number at the beginning of `1024 of 4096`; `unlimited` is the largest number.
fn soft(limit: &str) -> Option<u64> {
    let word = limit.split_whitespace().next()?;
    if word == "unlimited" {
        Some(u64::MAX)
    } else {
        word.parse().ok()
    }
}

fn open_files(host: &Host) -> Finding {
    let (state, advice) = if soft(&host.open_files).is_some_and(|files| files < FEW_FILES) {
        (
            State::Mind,
            "Too few for the workloads with a thousand connections: `ulimit -n 65536`.",
        )
    } else {
        (State::Good, "")
    };
    finding("open files", &host.open_files, state, advice)
}

fn locked_memory(host: &Host) -> Finding {
    let (state, advice) = if soft(&host.locked_memory).is_some_and(|kib| kib < LITTLE_LOCKED) {
        (
            State::Mind,
            "Pinned buffers may be refused: `ulimit -l unlimited`, or LimitMEMLOCK= of the service.",
        )
    } else {
        (State::Good, "")
    };
    finding("locked memory", &host.locked_memory, state, advice)
}

fn clock(host: &Host) -> Finding {
    let (source, cost) = host.clock.split_once(", ").unwrap_or((&host.clock, ""));
    let slow = cost
        .split_whitespace()
        .next()
        .and_then(|ns| ns.parse::<f64>().ok())
        .is_some_and(|ns| ns > SLOW_CLOCK);
    let (state, advice) = match source {
        _ if slow => (
            State::Mind,
            "A reading is a system call, and every latency holds one: boot with clocksource=tsc where the processor's counter is stable.",
        ),
        "tsc" | "kvm-clock" | "arch_sys_counter" | "hyperv_clocksource_tsc_page" => {
            (State::Good, "")
        }
        "unknown" => (State::Unknown, ""),
        _ => (
            State::Mind,
            "Not a counter of the processor: latencies below a us are coarse.",
        ),
    };
    finding("clock", &host.clock, state, advice)
}

/// The output of `doctor`.
#[must_use]
pub fn text(findings: &[Finding]) -> String {
    let width = findings.iter().map(|f| f.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for Finding {
        name,
        value,
        state,
        advice,
    } in findings
    {
        let mark = match state {
            State::Good => "good",
            State::Mind => "MIND",
            State::Unknown => "   ?",
        };
        writeln!(text, "{mark}  {name:<width$}  {value}").expect("a String takes any text");
        if !advice.is_empty() {
            let indent = 4 + 2 + width + 2;
            for line in wrapped(advice, 100 - indent) {
                writeln!(text, "{:indent$}{line}", "").expect("a String takes any text");
            }
        }
    }
    let mind = findings.iter().filter(|f| f.state == State::Mind).count();
    let end = match mind {
        0 => "Nothing here speaks against measuring on this machine.\n".to_owned(),
        1 => "1 thing to mind. All of this goes into every result.\n".to_owned(),
        _ => format!("{mind} things to mind. All of this goes into every result.\n"),
    };
    text + "\n" + &end
}

/// Splits `text` into lines of at most `width` characters, broken at blanks.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is always a line");
        if line.is_empty() {
            line.push_str(word);
        } else if line.len() + 1 + word.len() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::sample;

    /// A machine without any finding.
    fn good() -> Host {
        Host {
            processors: 8,
            affinity: "0-7".to_owned(),
            governor: "performance".to_owned(),
            r#virtual: "none".to_owned(),
            turbo: "off".to_owned(),
            open_files: "65536 of 65536".to_owned(),
            locked_memory: "unlimited of unlimited".to_owned(),
            ..sample().host
        }
    }

    fn state_of(host: &Host, name: &str) -> State {
        let findings = examine(host);
        let finding = findings.iter().find(|finding| finding.name == name);
        finding.unwrap().state
    }

    #[test]
    fn a_good_machine_has_nothing_to_mind_and_no_advice() {
        let findings = examine(&good());
        for finding in &findings {
            assert_eq!(finding.state, State::Good, "{finding:?}");
            assert_eq!(finding.advice, "", "{finding:?}");
        }
        assert!(text(&findings).contains("Nothing here speaks against"));
    }

    #[test]
    fn everything_that_hurts_is_found_with_advice() {
        type Change = fn(&mut Host);
        let hurts: [(&str, Change); 11] = [
            ("processors", |host| host.processors = 2),
            ("affinity", |host| host.affinity = "0-2,5".to_owned()),
            ("governor", |host| host.governor = "powersave".to_owned()),
            ("turbo", |host| host.turbo = "on".to_owned()),
            ("virtual", |host| host.r#virtual = "kvm".to_owned()),
            ("stolen", |host| host.stolen = "3.5 %".to_owned()),
            ("load", |host| host.load = "0.61".to_owned()),
            ("quota", |host| host.quota = "1.50".to_owned()),
            ("open files", |host| {
                host.open_files = "1024 of 65536".to_owned();
            }),
            ("locked memory", |host| {
                host.locked_memory = "64 KiB of 64 KiB".to_owned();
            }),
            ("clock", |host| {
                host.clock = "tsc, 400 ns a reading".to_owned();
            }),
        ];
        for (name, change) in hurts {
            let mut host = good();
            change(&mut host);
            let findings = examine(&host);
            let minded: Vec<&Finding> = findings
                .iter()
                .filter(|finding| finding.state == State::Mind)
                .collect();
            assert_eq!(minded.len(), 1, "{name}: {minded:?}");
            assert_eq!(minded[0].name, name);
            assert!(!minded[0].advice.is_empty(), "{name}");
        }
    }

    #[test]
    fn a_clock_that_is_no_counter_of_the_processor_is_minded_however_fast() {
        let mut host = good();
        host.clock = "hpet, 40 ns a reading".to_owned();
        assert_eq!(state_of(&host, "clock"), State::Mind);
    }

    #[test]
    fn what_cannot_be_seen_is_neither_good_nor_bad() {
        let mut host = good();
        host.turbo = "unknown".to_owned();
        host.load = "unknown".to_owned();
        host.governor = "none".to_owned();
        for name in ["turbo", "load", "governor"] {
            assert_eq!(state_of(&host, name), State::Unknown, "{name}");
        }
        assert!(!busy("unknown"));
    }

    #[test]
    fn advice_is_broken_into_lines() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        let findings = examine(&sample().host);
        assert!(text(&findings).lines().all(|line| line.len() <= 110));
    }
}
