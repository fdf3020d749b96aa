//! The packages that cargo resolved, and their dependencies.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

/// The kind of a dependency. A crate's users get its normal and its build dependencies; only its
/// own tests get the rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// `[dependencies]`.
    Normal,
    /// `[build-dependencies]`.
    Build,
    /// `[dev-dependencies]`.
    Dev,
}

/// Packages by name. Two versions of one package are one node, because the rules are about names.
#[derive(Debug, Default)]
pub struct Graph {
    members: BTreeMap<String, String>,
    edges: BTreeMap<String, BTreeSet<(Kind, String)>>,
}

impl Graph {
    /// Parses the output of `cargo metadata --format-version 1`.
    ///
    /// # Errors
    /// serde's error, if the text is not cargo's.
    pub fn from_metadata(json: &str) -> Result<Self, serde_json::Error> {
        let metadata: Metadata = serde_json::from_str(json)?;
        let names: BTreeMap<&str, &str> = metadata
            .packages
            .iter()
            .map(|p| (p.id.as_str(), p.name.as_str()))
            .collect();
        let mut graph = Self::default();
        for package in &metadata.packages {
            if metadata.workspace_members.contains(&package.id) {
                let folder = package
                    .manifest_path
                    .trim_start_matches(&metadata.workspace_root)
                    .trim_start_matches('/')
                    .trim_end_matches("Cargo.toml")
                    .trim_end_matches('/');
                graph.member(&package.name, folder);
            }
        }
        for node in &metadata.resolve.nodes {
            for dep in &node.deps {
                for kind in &dep.dep_kinds {
                    let kind = match kind.kind.as_deref() {
                        Some("dev") => Kind::Dev,
                        Some("build") => Kind::Build,
                        _ => Kind::Normal,
                    };
                    graph.edge(names[node.id.as_str()], kind, names[dep.pkg.as_str()]);
                }
            }
        }
        Ok(graph)
    }

    /// Adds a package of the workspace in `folder`, relative to the workspace's root.
    pub fn member(&mut self, name: &str, folder: &str) {
        self.members.insert(name.to_owned(), folder.to_owned());
    }

    /// Adds a dependency.
    pub fn edge(&mut self, from: &str, kind: Kind, to: &str) {
        self.edges
            .entry(from.to_owned())
            .or_default()
            .insert((kind, to.to_owned()));
    }

    /// The workspace's packages: name and folder.
    pub fn members(&self) -> impl Iterator<Item = (&str, &str)> {
        self.members
            .iter()
            .map(|(name, folder)| (name.as_str(), folder.as_str()))
    }

    /// The folder of a package of the workspace, relative to its root; `None` for any other
    /// package.
    #[must_use]
    pub fn folder(&self, name: &str) -> Option<&str> {
        self.members.get(name).map(String::as_str)
    }

    /// The dependencies of every kind in the manifest of `name`.
    pub fn direct(&self, name: &str) -> impl Iterator<Item = (Kind, &str)> {
        self.edges
            .get(name)
            .into_iter()
            .flatten()
            .map(|(kind, to)| (*kind, to.as_str()))
    }

    /// A shortest path from `name` to each package that its users get with it: the packages on the
    /// path, both ends included.
    #[must_use]
    pub fn reached(&self, name: &str) -> Vec<Vec<String>> {
        let mut seen = BTreeSet::from([name.to_owned()]);
        let mut ways = vec![vec![name.to_owned()]];
        let mut next = 0;
        while next < ways.len() {
            let way = ways[next].clone();
            next += 1;
            let at = way.last().expect("a path has a first element");
            for (kind, to) in self.direct(at) {
                if kind != Kind::Dev && seen.insert(to.to_owned()) {
                    ways.push(way.iter().cloned().chain([to.to_owned()]).collect());
                }
            }
        }
        ways.remove(0);
        ways
    }
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_members: Vec<String>,
    workspace_root: String,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    manifest_path: String,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dep>,
}

#[derive(Deserialize)]
struct Dep {
    pkg: String,
    dep_kinds: Vec<DepKind>,
}

#[derive(Deserialize)]
struct DepKind {
    kind: Option<String>,
}
