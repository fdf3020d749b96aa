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
}

/// All groups, in the order of the listing.
pub const GROUPS: &[Group] = &[
    Group {
        name: "queue",
        what: "hand-off between threads",
        on_request: false,
    },
    Group {
        name: "boundary",
        what: "calls and views across languages",
        on_request: false,
    },
    Group {
        name: "streaming",
        what: "events from a producer to a consumer",
        on_request: false,
    },
    Group {
        name: "runtime",
        what: "actors",
        on_request: false,
    },
    Group {
        name: "nginx",
        what: "guests of a web server",
        on_request: false,
    },
    Group {
        name: "stress",
        what: "everything at once, for as long as it takes; only on request",
        on_request: true,
    },
    Group {
        name: "endurance",
        what: "hours, for leaks and drift: --duration; only on request",
        on_request: true,
    },
];

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
    for group in wanted.groups {
        known_group(group)?;
    }
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
                || wanted.groups.iter().any(|group| group == workload.group)
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

fn known_group(name: &str) -> Result<(), Problem> {
    if GROUPS.iter().any(|group| group.name == name) {
        Ok(())
    } else {
        Err(Problem::Usage(format!(
            "there is no group `{name}`; there is {}",
            names(GROUPS.iter().map(|group| group.name))
        )))
    }
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
        let mut of_group = WORKLOADS
            .iter()
            .filter(|w| w.group == group.name)
            .peekable();
        let wanted = groups.is_empty() || groups.iter().any(|name| name == group.name);
        if !wanted || of_group.peek().is_none() {
            continue;
        }
        let gap = if text.is_empty() { "" } else { "\n" };
        writeln!(text, "{gap}{}: {}", group.name, group.what).expect("a String takes any text");
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
