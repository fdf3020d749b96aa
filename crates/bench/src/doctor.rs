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
const FEW_FILES: f64 = 4096.0;

/// Locked memory, in KiB, below which rings of io_uring and pinned buffers may be refused.
const LITTLE_LOCKED: f64 = 8192.0;

/// Whether a load average means that other programs are active. An unknown load is not busy.
#[must_use]
pub fn busy(load: &str) -> bool {
    load.parse().is_ok_and(|load: f64| load > BUSY)
}

/// The state of a property, and what to do about it or its consequence.
type Judged = (State, &'static str);

const GOOD: Judged = (State::Good, "");

fn mind_if(bad: bool, advice: &'static str) -> Judged {
    if bad { (State::Mind, advice) } else { GOOD }
}

/// All findings about `host`.
#[must_use]
pub fn examine(host: &Host) -> Vec<Finding> {
    let processors = format!("{} ({})", host.processors, host.cpu);
    let stolen = number(&host.stolen).is_some_and(|percent| percent >= STOLEN);
    let few_files = number(&host.open_files).is_some_and(|files| files < FEW_FILES);
    let little = number(&host.locked_memory).is_some_and(|kib| kib < LITTLE_LOCKED);
    let all: [(&str, &str, Judged); 13] = [
        ("processors", &processors, of_processors(host.processors)),
        (
            "affinity",
            &host.affinity,
            mind_if(
                allowed(&host.affinity) < host.processors,
                "This process may not use all processors. If that is not on purpose: start it without taskset, or widen the container's cpuset.",
            ),
        ),
        ("governor", &host.governor, of_governor(&host.governor)),
        ("turbo", &host.turbo, of_turbo(&host.turbo)),
        ("virtual", &host.r#virtual, of_virtual(&host.r#virtual)),
        (
            "stolen",
            &host.stolen,
            mind_if(
                stolen,
                "The hypervisor gave this time to others: measure at another hour, and take more samples.",
            ),
        ),
        (
            "load",
            &host.load,
            mind_if(
                busy(&host.load),
                "Other programs are running: wait until the load is below 0.5, or do not quote the figures.",
            ),
        ),
        (
            "quota",
            &host.quota,
            mind_if(
                host.quota != "none",
                "The control group stops all threads when its share of a period is used up: gaps of tens of ms. Take the quota away and use a cpuset.",
            ),
        ),
        (
            "open files",
            &host.open_files,
            mind_if(
                few_files,
                "Too few for the workloads with a thousand connections: `ulimit -n 65536`.",
            ),
        ),
        (
            "locked memory",
            &host.locked_memory,
            mind_if(
                little,
                "Pinned buffers may be refused: `ulimit -l unlimited`, or LimitMEMLOCK= of the service.",
            ),
        ),
        ("clock", &host.clock, of_clock(&host.clock)),
        ("memory", &host.memory, GOOD),
        ("kernel", &host.uname, GOOD),
    ];
    let finding = |(name, value, (state, advice)): (&'static str, &str, Judged)| Finding {
        name,
        value: value.to_owned(),
        state: match value {
            "unknown" => State::Unknown,
            _ => state,
        },
        advice,
    };
    all.map(finding).into()
}

/// The number at the beginning of `1024 of 4096` or `3.5 %`; `unlimited` is the largest number.
fn number(text: &str) -> Option<f64> {
    match text.split_whitespace().next()? {
        "unlimited" => Some(f64::INFINITY),
        word => word.parse().ok(),
    }
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

fn of_processors(count: u32) -> Judged {
    match count {
        1 => (
            State::Mind,
            "Everything shares one processor: no row with two threads says what two processors would do.",
        ),
        2..4 => (
            State::Mind,
            "Enough for one producer and one consumer. Rows with more threads measure the scheduler, too; scaling is judged from four up.",
        ),
        _ => GOOD,
    }
}

fn of_governor(governor: &str) -> Judged {
    match governor {
        "performance" => GOOD,
        "none" => (
            State::Unknown,
            "No frequency governor is visible: the machine below decides. Quote ratios, not times.",
        ),
        _ => (
            State::Mind,
            "The clock follows the load: `cpupower frequency-set -g performance` before, and back after.",
        ),
    }
}

fn of_turbo(turbo: &str) -> Judged {
    match turbo {
        "off" => GOOD,
        "on" => (
            State::Mind,
            "The clock depends on heat and neighbours: write 1 to intel_pstate/no_turbo, or 0 to cpufreq/boost, below /sys/devices/system/cpu.",
        ),
        _ => (
            State::Unknown,
            "The switch is not visible from here. Quote ratios, not times.",
        ),
    }
}

fn of_virtual(kind: &str) -> Judged {
    match kind {
        "none" => GOOD,
        "docker" | "podman" | "lxc" | "lxc-libvirt" | "systemd-nspawn" | "container-other" => (
            State::Mind,
            "A container, perhaps in a virtual machine: limits below may come from outside, and neighbours are not visible.",
        ),
        _ => (
            State::Mind,
            "A virtual machine: waking an idle processor goes through the hypervisor and takes tens of us. Figures for hardware need hardware.",
        ),
    }
}

fn of_clock(clock: &str) -> Judged {
    let (source, cost) = clock.split_once(", ").unwrap_or((clock, ""));
    match source {
        _ if number(cost).is_some_and(|ns| ns > SLOW_CLOCK) => (
            State::Mind,
            "A reading is a system call, and every latency holds one: boot with clocksource=tsc where the processor's counter is stable.",
        ),
        "tsc" | "kvm-clock" | "arch_sys_counter" | "hyperv_clocksource_tsc_page" => GOOD,
        "unknown" => (State::Unknown, ""),
        _ => (
            State::Mind,
            "Not a counter of the processor: latencies below a us are coarse.",
        ),
    }
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
