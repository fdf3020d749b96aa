//! Claims that no workload tests yet.

/// A claim whose workload does not exist yet.
#[derive(Debug)]
pub struct Later {
    /// The project.
    pub whose: &'static str,
    /// The claim, in our words.
    pub says: &'static str,
    /// The workload that will test it.
    pub tested_by: &'static str,
}

/// All claims of this module.
pub const LATER: &[Later] = &[Later {
    whose: "lua-resty-ffi",
    says: "faster than a Unix socket at every length, and more so the longer; responses fold into one event; almost no futex calls when busy",
    tested_by: "the nginx workloads (`echo_nginx`)",
}];
