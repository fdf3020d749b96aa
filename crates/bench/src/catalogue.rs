//! The catalogue: the groups, the output of `list`, and the selection of workloads by the command
//! line.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::problem::Problem;
use crate::workloads::{self, Knob, WORKLOADS, Workload};

/// A group of related workloads.
#[derive(Debug)]
pub struct Group {
    /// Its name, as in `--group`.
    pub name: &'static str,
    /// What its workloads measure.
    pub what: &'static str,
    /// Whether its workloads run only if they or the group are named, because they take long or use
    /// the whole machine.
    pub on_request: bool,
    /// Workloads of other groups that `--group` selects, too.
    pub also: &'static [&'static str],
}

/// All groups, in the order of the listing.
pub const GROUPS: &[Group] = &[
    Group::new("queue", "hand-off between threads"),
    Group::new("boundary", "calls and views across languages"),
    Group::new("streaming", "events from a producer to a consumer"),
    Group::new("nginx", "calls from Lua in nginx"),
    Group::new("runtime", "actors"),
    Group {
        on_request: true,
        // The four stress tests of nimsync's suite (concurrent access, I/O simulation, contention
        // of 5 producers and 3 consumers, a flood into 16 slots), and its benchmark of that name.
        also: &[
            "stress",
            "mpmc",
            "overflow",
            "concurrent_access",
            "io_simulation",
        ],
        ..Group::new("stress", "contention and full channels")
    },
    Group {
        on_request: true,
        ..Group::new(
            "endurance",
            "hours, for leaks and drift: --duration; only on request",
        )
    },
];

impl Group {
    const fn new(name: &'static str, what: &'static str) -> Self {
        Self {
            name,
            what,
            on_request: false,
            also: &[],
        }
    }

    /// Whether `--group` selects this workload.
    fn selects(&self, workload: &Workload) -> bool {
        self.name == workload.group || self.also.contains(&workload.name)
    }
}

/// The workloads that a command line selects.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// By name.
    pub names: &'a [String],
    /// By group.
    pub groups: &'a [String],
}

/// Returns the selected workloads, in the list's order. If nothing is named: all workloads except
/// those of groups that run only on request.
///
/// # Errors
/// A name or a group does not exist, or nothing is selected; the message lists what exists.
pub fn choose(wanted: Wanted<'_>) -> Result<Vec<&'static Workload>, Problem> {
    for name in wanted.names {
        workloads::find(name)?;
    }
    let groups = wanted.groups.iter().map(|group| known_group(group));
    let groups = groups.collect::<Result<Vec<&Group>, _>>()?;
    let all = wanted.names.is_empty() && wanted.groups.is_empty();
    let on_request = |workload: &Workload| {
        GROUPS
            .iter()
            .any(|group| group.name == workload.group && group.on_request)
    };
    let chosen: Vec<&Workload> = WORKLOADS
        .iter()
        .filter(|workload| {
            wanted.names.iter().any(|name| name == workload.name)
                || groups.iter().any(|group| group.selects(workload))
                || (all && !on_request(workload))
        })
        .collect();
    if chosen.is_empty() {
        return Err(Problem::Usage(format!(
            "no workload is in {}; those that are there: {}",
            wanted.groups.join(", "),
            names(WORKLOADS.iter().map(|workload| workload.name))
        )));
    }
    Ok(chosen)
}

fn known_group(name: &str) -> Result<&'static Group, Problem> {
    let found = GROUPS.iter().find(|group| group.name == name);
    found.ok_or_else(|| {
        Problem::Usage(format!(
            "there is no group `{name}`; there is {}",
            names(GROUPS.iter().map(|group| group.name))
        ))
    })
}

fn names<'a>(all: impl Iterator<Item = &'a str>) -> String {
    all.collect::<Vec<_>>().join(", ")
}

/// Parses `NAME=VALUE` settings against the knobs that the chosen workloads declare.
///
/// # Errors
/// The text has another form, or no chosen workload has that knob; the message lists the knobs that
/// exist.
pub fn settings(
    texts: &[String],
    chosen: &[&Workload],
) -> Result<BTreeMap<String, String>, Problem> {
    let mut set = BTreeMap::new();
    for text in texts {
        let Some((name, value)) = text.split_once('=') else {
            return Err(Problem::Usage(format!(
                "--set takes NAME=VALUE, not `{text}`"
            )));
        };
        let has = |workload: &&Workload| workload.knobs.iter().any(|knob| knob.name == name);
        if !chosen.iter().any(has) {
            return Err(Problem::Usage(unknown_knob(name, chosen)));
        }
        set.insert(name.to_owned(), value.to_owned());
    }
    Ok(set)
}

fn unknown_knob(name: &str, chosen: &[&Workload]) -> String {
    let mut text = format!("there is no knob `{name}`; ");
    let with_knobs: Vec<_> = chosen.iter().filter(|w| !w.knobs.is_empty()).collect();
    if with_knobs.is_empty() {
        text.push_str("these workloads have none");
        return text;
    }
    text.push_str("there is");
    for workload in with_knobs {
        for Knob {
            name,
            default,
            what,
        } in workload.knobs
        {
            let of = workload.name;
            write!(text, "\n  {name}={default}  {what} ({of})").expect("a String takes any text");
        }
    }
    text
}

/// The output of `list`: one paragraph per workload, by group.
///
/// # Errors
/// A group does not exist.
pub fn catalogue(groups: &[String]) -> Result<String, Problem> {
    for group in groups {
        known_group(group)?;
    }
    let mut text = String::new();
    for group in GROUPS {
        let of_group: Vec<_> = WORKLOADS.iter().filter(|w| w.group == group.name).collect();
        let wanted = groups.is_empty() || groups.iter().any(|name| name == group.name);
        if !wanted || (of_group.is_empty() && group.also.is_empty()) {
            continue;
        }
        let gap = if text.is_empty() { "" } else { "\n" };
        writeln!(text, "{gap}{}: {}", group.name, group.what).expect("a String takes any text");
        if !group.also.is_empty() {
            let also = group.also.join(", ");
            writeln!(text, "\n  these workloads of other groups: {also}")
                .expect("a String takes any text");
        }
        for workload in of_group {
            entry(&mut text, workload);
        }
    }
    Ok(text)
}

fn entry(text: &mut String, workload: &Workload) {
    let Workload {
        name,
        what,
        source,
        peers,
        seconds,
        knobs,
        ..
    } = workload;
    let peers = if peers.is_empty() {
        "none".to_owned()
    } else {
        peers.join(", ")
    };
    write!(
        text,
        "\n  {name} (group {}, about {seconds} s)\n      {what}\n      from: {source}\n      peers: {peers}\n",
        workload.group
    )
    .expect("a String takes any text");
    for Knob {
        name,
        default,
        what,
    } in *knobs
    {
        writeln!(text, "      --set {name}={default}: {what}").expect("a String takes any text");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owned(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn chosen(names: &[&str], groups: &[&str]) -> Result<Vec<&'static str>, Problem> {
        let chosen = choose(Wanted {
            names: &owned(names),
            groups: &owned(groups),
        })?;
        Ok(chosen.iter().map(|workload| workload.name).collect())
    }

    #[test]
    fn names_and_groups_add_up_and_the_order_is_the_lists() {
        assert_eq!(
            chosen(&["idle", "first_calls"], &[]).unwrap(),
            ["first_calls", "idle"]
        );
        let boundary = chosen(&[], &["boundary"]).unwrap();
        assert!(boundary.contains(&"view_read"));
        assert_eq!(chosen(&["idle"], &["boundary"]).unwrap(), boundary);
    }

    #[test]
    fn every_group_has_workloads() {
        for group in GROUPS {
            let any = WORKLOADS.iter().any(|workload| group.selects(workload));
            assert!(any, "{} is listed without a workload", group.name);
        }
    }

    #[test]
    fn stress_group_selects_the_four_stress_tests_and_the_benchmark_of_that_name() {
        let stress = chosen(&[], &["stress"]).unwrap();
        for name in [
            "stress",
            "mpmc",
            "overflow",
            "concurrent_access",
            "io_simulation",
        ] {
            assert!(stress.contains(&name), "{name}");
        }
        assert_eq!(stress.len(), 5);
        let listed = catalogue(&owned(&["stress"])).unwrap();
        assert!(listed.contains("concurrent_access"), "{listed}");
    }

    #[test]
    fn nothing_named_means_all_but_what_takes_hours() {
        let all = chosen(&[], &[]).unwrap();
        for workload in WORKLOADS {
            let hours = ["stress", "endurance"].contains(&workload.group);
            assert_eq!(all.contains(&workload.name), !hours, "{}", workload.name);
        }
    }

    #[test]
    fn what_is_not_there_is_answered_with_what_is() {
        for (names, groups, listed) in [
            (vec!["warp"], vec![], "search_overhead"),
            (vec![], vec!["warp"], "endurance"),
        ] {
            let problem = chosen(&names, &groups).unwrap_err();
            assert_eq!(problem.exit_status(), 2);
            let text = problem.to_string();
            assert!(text.contains("`warp`") && text.contains(listed), "{text}");
        }
    }

    const KNOBS: &[Knob] = &[Knob {
        name: "producers",
        default: "4",
        what: "threads that send",
    }];
    const WITH: Workload = Workload {
        name: "w",
        knobs: KNOBS,
        ..Workload::USUAL
    };

    #[test]
    fn a_knob_that_a_workload_declares_can_be_set_and_no_other() {
        let set = settings(&owned(&["producers=a=b"]), &[&WITH]).unwrap();
        assert_eq!(set["producers"], "a=b");
        let problem = settings(&owned(&["warp=1"]), &[&WITH]).unwrap_err();
        assert_eq!(problem.exit_status(), 2);
        assert_eq!(
            problem.to_string(),
            "there is no knob `warp`; there is\n  producers=4  threads that send (w)"
        );
        let problem = settings(&owned(&["warp=1"]), &[&Workload::USUAL]).unwrap_err();
        assert!(problem.to_string().contains("these workloads have none"));
        assert!(settings(&owned(&["producers"]), &[&WITH]).is_err());
    }

    #[test]
    fn the_list_says_everything_about_each() {
        let text = catalogue(&[]).unwrap();
        for workload in WORKLOADS {
            for part in [
                workload.name,
                workload.group,
                workload.what,
                workload.source,
            ] {
                assert!(text.contains(part), "{part}");
            }
        }
        let mut with_knob = String::new();
        entry(&mut with_knob, &WITH);
        assert!(with_knob.contains("--set producers=4: threads that send"));
        assert!(catalogue(&owned(&["warp"])).is_err());
        let boundary = catalogue(&owned(&["boundary"])).unwrap();
        assert!(boundary.contains("idle") && !boundary.contains("queue:"));
    }
}
