//! The tools of a run: compilers, interpreters, the commit.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use crate::hosts;

/// Names and versions: the `rustc` that built this program, and the `cc`, `python`, `node`
/// and `nim`
/// that are found now.
#[must_use]
pub fn versions() -> BTreeMap<String, String> {
    let mut tools = BTreeMap::from([("rustc".to_owned(), env!("THALWEG_BENCH_RUSTC").to_owned())]);
    tools.extend(first_line(hosts::c_compiler(), ["--version"]).map(|v| ("cc".to_owned(), v)));
    tools.extend(first_line(hosts::python(), ["--version"]).map(|v| ("python".to_owned(), v)));
    tools.extend(first_line(hosts::node(), ["--version"]).map(|v| ("node".to_owned(), v)));
    tools.extend(first_line("nim", ["--version"]).map(|v| ("nim".to_owned(), v)));
    tools
}

/// The build profile of this program: `release` or `debug`.
#[must_use]
pub fn profile() -> &'static str {
    env!("THALWEG_BENCH_PROFILE")
}

/// The commit of the checkout at `root`; `-dirty` if tracked files have changes, `unknown` outside
/// of a checkout.
#[must_use]
pub fn commit(root: &Path) -> String {
    let git = |args: &[&str]| {
        let mut command = Command::new("git");
        command.arg("-C").arg(root).args(args);
        command
            .output()
            .ok()
            .filter(|output| output.status.success())
    };
    let Some(head) = git(&["rev-parse", "HEAD"]) else {
        return "unknown".to_owned();
    };
    let changed = git(&["status", "--porcelain", "--untracked-files=no"])
        .is_none_or(|output| !output.stdout.is_empty());
    let head = String::from_utf8_lossy(&head.stdout).trim().to_owned();
    if changed {
        format!("{head}-dirty")
    } else {
        head
    }
}

fn first_line<const N: usize>(program: impl AsRef<OsStr>, args: [&str; N]) -> Option<String> {
    let output = Command::new(program).args(args).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().next().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compiler_that_built_this_is_known() {
        assert!(versions()["rustc"].starts_with("rustc 1."));
        assert!(["debug", "release"].contains(&profile()));
    }

    #[test]
    fn outside_of_a_checkout_the_commit_is_unknown() {
        assert_eq!(commit(Path::new("/")), "unknown");
    }
}
