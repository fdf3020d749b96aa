//! The version of each peer, read from the manifest that pins it.

const MANIFEST: &str = include_str!("../Cargo.toml");

/// The version of the peer with this public name; for a peer written here, a description.
#[must_use]
pub fn of(peer: &str) -> String {
    let package = match peer {
        "std" => return "std::sync::mpsc of the compiler in `tools`".to_owned(),
        "c11_ring" => return "crates/bench/peers/c/ring.c, one call per operation".to_owned(),
        "c11_ring_inlined" => return "crates/bench/peers/c/ring.c, the loop in C".to_owned(),
        "c_struct" => return "crates/bench/peers/c/codec.c".to_owned(),
        "vyukov" => return "crates/bench/peers/src/vyukov.rs".to_owned(),
        "direct_callback" => {
            return "crates/bench/src/workloads/streaming/subjects.rs".to_owned();
        }
        "std_mpsc_unbounded" => return of("std"),
        name if name.starts_with("crossbeam") => "crossbeam-channel",
        "tokio_current_thread" | "tokio_multi_thread" => "tokio",
        other => other,
    };
    pinned(package).unwrap_or_else(|| "unknown".to_owned())
}

/// The version in a line `package = "=1.2.3"` or `package = { .. version = "=1.2.3" .. }`.
fn pinned(package: &str) -> Option<String> {
    let line = MANIFEST.lines().find(|line| {
        line.split_once('=')
            .is_some_and(|(key, _)| key.trim() == package)
    })?;
    let (_, version) = line.split_once("\"=")?;
    let (version, _) = version.split_once('"')?;
    Some(version.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_peer_has_the_version_that_the_manifest_pins() {
        assert_eq!(of("rtrb"), "0.4.1");
        assert_eq!(of("rtrb_0_3"), "0.3.6");
        assert_eq!(of("crossbeam"), "0.5.17");
        assert_eq!(of("crossbeam_bounded_256"), "0.5.17");
        assert_eq!(of("async-channel"), "2.5.0");
        assert!(of("tokio").starts_with("1."));
        assert_eq!(of("tokio_multi_thread"), of("tokio"));
        assert!(of("std").contains("std::sync::mpsc"));
        assert_eq!(of("no-such-peer"), "unknown");
    }
}
