//! The rules, as tables, and the check for violations.
//!
//! A name that ends in `/` means all crates in that folder.
//!
//! 1. A crate of the workspace depends only on those workspace crates that are listed in its row of
//!    [`LAYERS`]. Its tests and benchmarks follow the same rule. A crate in a folder of [`FOLDERS`]
//!    follows that row.
//! 2. A crate of the workspace without a row is a violation: adding a crate means adding a row.
//! 3. A package of [`CONFINED`] is a dependency only of the crates in its row, whether direct or
//!    transitive. Only dependencies that a user gets count here; a crate's tests may use any
//!    package.

use std::fmt;

use crate::graph::Graph;

/// The crates and the dependencies of each, bottom first.
const LAYERS: &[(&str, &[&str])] = &[
    ("thalweg-queue", &[]),
    ("thalweg-wire", &[]),
    // Markers without dependencies.
    ("thalweg-macros", &[]),
    ("thalweg-runtime", &["thalweg-queue"]),
    ("thalweg-patterns", &["thalweg-queue", "thalweg-runtime"]),
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
    (
        "thalweg-guest",
        &["thalweg-queue", "thalweg-port", "thalweg-capi"],
    ),
    (
        "thalweg-shared",
        &["thalweg-port", "thalweg-capi", "thalweg-guest"],
    ),
    // All crates below, except capi. bindgen would bring wit-parser to every user, which the table
    // below forbids. With the feature `guest` also the crate that opens guests.
    (
        "thalweg",
        &[
            "thalweg-queue",
            "thalweg-runtime",
            "thalweg-patterns",
            "thalweg-wire",
            "thalweg-port",
            "thalweg-macros",
            "thalweg-guest",
        ],
    ),
    (
        "thalweg-cli",
        &[
            "thalweg-bindgen",
            "thalweg-wire",
            "thalweg",
            // Opens a library at run time and uses its function table.
            "thalweg-capi",
        ],
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
            // nginx loads it in a workload.
            "thalweg-resty-ffi",
            // Host programs open guests through it.
            "thalweg-shared",
            "examples/",
            "crates/bench/",
        ],
    ),
    (
        "thalweg-hot-paths",
        // The functions of ngx.load_ffi are called as a library of it does.
        &[
            "thalweg-queue",
            "thalweg",
            "thalweg-resty-ffi",
            "crates/bench/",
        ],
    ),
    // The lab's peers, wrapped: none of our crates is among them.
    ("thalweg-peers", &[]),
    // This crate is built again for its own profile, so its dependencies are minimal.
    ("thalweg-abort", &["thalweg-runtime"]),
    // Both interfaces: Rust and the C function table.
    ("thalweg-faults", &["thalweg", "thalweg-capi"]),
    ("thalweg-layering", &[]),
    // A service, although it is in the folder of a binding.
    ("thalweg-resty-ffi", &["thalweg", "thalweg-capi"]),
];

/// Folders whose crates form no layer, and their dependencies.
const FOLDERS: &[(&str, &[&str])] = &[
    // Like a user's own code: the facade, and the C function table for crates that become a
    // library.
    ("examples/", &["thalweg", "thalweg-capi", "examples/"]),
    // Their build scripts generate code.
    (
        "conformance/",
        &["thalweg", "thalweg-capi", "thalweg-bindgen", "conformance/"],
    ),
    // The lab's own service. The lab itself has a row above.
    (
        "crates/bench/",
        &["thalweg", "thalweg-capi", "thalweg-bindgen"],
    ),
    // Opens a library at run time and uses only its function table.
    ("bindings/", &["thalweg-capi"]),
    ("tests/", &["thalweg"]),
];

/// The peers of the lab. Users get none of them.
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

/// Packages, the only crates that may depend on them, and the reason.
const CONFINED: &[(&[&str], &[&str], &str)] = &[
    (
        &["wit-parser"],
        // Build scripts of the last two generate code.
        &[
            "thalweg-bindgen",
            "thalweg-cli",
            "conformance/",
            "crates/bench/",
            "thalweg-bench",
        ],
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

/// Folders of crates, and the maximum number of modules in a cycle of imports.
///
/// A cycle is a design error, so a limit is only lowered. The modules of a cycle can be understood
/// only together, and each of them changes with all others.
pub const LARGEST_CYCLES: &[(&str, usize)] = &[
    ("crates/queue", 0),
    ("crates/wire", 3),
    // The kernel; docs/internals/runtime.md lists it.
    ("crates/runtime", 9),
    ("crates/patterns", 0),
    ("crates/port", 5),
    ("crates/capi", 0),
    ("crates/guest", 0),
    ("crates/bindgen", 0),
    ("crates/cli", 0),
    ("crates/bench", 5),
];

/// A forbidden dependency.
#[derive(Debug, PartialEq, Eq)]
pub enum Violation {
    /// The crate of the workspace has no row.
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
        /// The dependency.
        names: String,
    },
    /// A crate depends on a package that is confined to others.
    Confined {
        /// The path from the crate to the package, both included.
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

/// All violations in `graph`, in the order of the crates' names.
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
                // A crate that depends on itself does so to enable a feature for its own tests.
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
            let package = way.last().expect("a path has a last element");
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

/// Whether `list` contains `name`, or its folder.
fn listed(graph: &Graph, list: &[&str], name: &str) -> bool {
    list.iter().any(|entry| {
        *entry == name
            || (entry.ends_with('/')
                && graph
                    .folder(name)
                    .is_some_and(|folder| folder.starts_with(entry)))
    })
}
