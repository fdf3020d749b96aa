//! The rules, as tables, and what breaks them.
//!
//! A name that ends in `/` stands for the crates in that folder.
//!
//! 1. A crate of the workspace names only those of its own that stand in its row of [`LAYERS`]; tests and
//!    benchmarks of a crate count like the crate. What lies in a folder of [`FOLDERS`] goes by that row.
//! 2. A crate of the workspace that no row knows is a violation: whoever adds one says where it stands.
//! 3. A package of [`CONFINED`] comes with no crate but those of its row, on whatever way: neither named nor
//!    brought along. Only what a user gets counts here; a crate's tests may use what they like.

use std::fmt;

use crate::graph::Graph;

/// The crates and what each may name, bottom first.
const LAYERS: &[(&str, &[&str])] = &[
    ("thalweg-queue", &[]),
    ("thalweg-wire", &[]),
    // Marks without anything below them.
    ("thalweg-macros", &[]),
    ("thalweg-runtime", &["thalweg-queue"]),
    ("thalweg-bindgen", &["thalweg-wire"]),
    (
        "thalweg-port",
        &["thalweg-queue", "thalweg-runtime", "thalweg-wire"],
    ),
    (
        "thalweg-capi",
        &[
            "thalweg-queue",
            "thalweg-runtime",
            "thalweg-wire",
            "thalweg-port",
        ],
    ),
    // All below but capi. bindgen would bring wit-parser to every user, which the table below forbids.
    (
        "thalweg",
        &[
            "thalweg-queue",
            "thalweg-runtime",
            "thalweg-wire",
            "thalweg-port",
            "thalweg-macros",
        ],
    ),
    (
        "thalweg-cli",
        &["thalweg-bindgen", "thalweg-wire", "thalweg"],
    ),
    (
        "thalweg-bench",
        &[
            "thalweg-queue",
            "thalweg-runtime",
            "thalweg-wire",
            "thalweg-port",
            "thalweg-capi",
            "thalweg",
            "examples/",
            "crates/bench/",
        ],
    ),
    (
        "thalweg-hot-paths",
        &["thalweg-queue", "thalweg", "crates/bench/"],
    ),
    // The lab's peers, wrapped: nothing of ours is among them.
    ("thalweg-peers", &[]),
    // It is built once more for its own profile, so it has no more below it than it needs.
    ("thalweg-abort", &["thalweg-runtime"]),
    // Both surfaces: Rust and the C table.
    ("thalweg-faults", &["thalweg", "thalweg-capi"]),
    ("thalweg-layering", &[]),
];

/// Folders whose crates are no layer, and what these may name.
const FOLDERS: &[(&str, &[&str])] = &[
    // Like a user's own code: the facade, and the C table for what becomes a library.
    ("examples/", &["thalweg", "thalweg-capi", "examples/"]),
    ("conformance/", &["thalweg", "thalweg-capi", "conformance/"]),
    // The lab's own service. The lab itself has a row above.
    ("crates/bench/", &["thalweg", "thalweg-capi"]),
    // Opens a library at run time and knows its table alone.
    ("bindings/", &["thalweg-capi"]),
    ("tests/", &["thalweg"]),
];

/// What the lab measures against. None of it reaches a user.
pub const PEERS: &[&str] = &[
    "async-channel",
    "ciborium",
    "crossbeam",
    "crossbeam-channel",
    "crossbeam-queue",
    "disruptor",
    "flume",
    "kameo",
    "kanal",
    "minicbor",
    "ractor",
    "rkyv",
    "rtrb",
    "tokio",
];

/// Packages, the crates that alone may have them, and why.
const CONFINED: &[(&[&str], &[&str], &str)] = &[
    (
        &["wit-parser"],
        &["thalweg-bindgen", "thalweg-cli"],
        "WIT is read when code is generated, not where it runs",
    ),
    (
        PEERS,
        &["thalweg-bench", "thalweg-hot-paths", "thalweg-peers"],
        "a peer of the lab reaches no user",
    ),
    (
        &["thalweg-peers"],
        &["thalweg-bench"],
        "only the lab has the peers",
    ),
    (
        &["thalweg-bench"],
        &["thalweg-bench"],
        "nothing depends on the lab",
    ),
    (
        &["pyo3"],
        &["bindings/"],
        "only its own binding knows a foreign language",
    ),
];

/// One dependency that should not be there.
#[derive(Debug, PartialEq, Eq)]
pub enum Violation {
    /// No row says where this crate of the workspace stands.
    Unknown {
        /// The crate.
        member: String,
        /// Its folder below the workspace's root.
        folder: String,
    },
    /// A crate names one that its row does not allow.
    Layer {
        /// The crate.
        member: String,
        /// What it names.
        names: String,
    },
    /// A crate has a package that is confined to others.
    Confined {
        /// From the crate to the package, both included.
        way: Vec<String>,
        /// The rule's reason.
        why: &'static str,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { member, folder } => {
                write!(
                    f,
                    "{member} ({folder}) stands in no layer: add it to tests/layering/src/rules.rs"
                )
            }
            Self::Layer { member, names } => write!(f, "{member} may not depend on {names}"),
            Self::Confined { way, why } => write!(f, "{}: {why}", way.join(" -> ")),
        }
    }
}

/// Everything in `graph` that breaks a rule, in the order of the crates' names.
#[must_use]
pub fn violations(graph: &Graph) -> Vec<Violation> {
    let mut found = Vec::new();
    for (member, folder) in graph.members() {
        match row(member, folder) {
            None => found.push(Violation::Unknown {
                member: member.to_owned(),
                folder: folder.to_owned(),
            }),
            Some(allowed) => {
                let mut named: Vec<&str> = graph.direct(member).map(|(_, to)| to).collect();
                named.sort_unstable();
                named.dedup();
                // A crate that names itself does so for its own tests: a feature switched on there.
                named.retain(|to| {
                    *to != member && graph.folder(to).is_some() && !listed(graph, allowed, to)
                });
                found.extend(named.into_iter().map(|to| Violation::Layer {
                    member: member.to_owned(),
                    names: to.to_owned(),
                }));
            }
        }
        for way in graph.reached(member) {
            let package = way.last().expect("a way has an end");
            for (packages, owners, why) in CONFINED {
                if packages.contains(&package.as_str()) && !listed(graph, owners, member) {
                    found.push(Violation::Confined {
                        way: way.clone(),
                        why,
                    });
                }
            }
        }
    }
    found
}

fn row(member: &str, folder: &str) -> Option<&'static [&'static str]> {
    let layer = LAYERS.iter().find(|(name, _)| *name == member);
    let by_folder = || {
        FOLDERS
            .iter()
            .find(|(prefix, _)| folder.starts_with(prefix))
    };
    layer.or_else(by_folder).map(|(_, allowed)| *allowed)
}

/// Whether `list` holds `name`, or its folder.
fn listed(graph: &Graph, list: &[&str], name: &str) -> bool {
    list.iter().any(|entry| {
        *entry == name
            || (entry.ends_with('/')
                && graph
                    .folder(name)
                    .is_some_and(|folder| folder.starts_with(entry)))
    })
}
