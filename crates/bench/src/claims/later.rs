//! Claims that nothing here tests yet.

/// A claim whose workload is not there.
#[derive(Debug)]
pub struct Later {
    /// The project.
    pub whose: &'static str,
    /// What it says, in our words.
    pub says: &'static str,
    /// What will test it.
    pub tested_by: &'static str,
}

/// All of them.
pub const LATER: &[Later] = &[Later {
    whose: "lua-resty-ffi",
    says: "faster than a Unix socket at every length, and more so the longer; responses fold into one event; almost no futex calls when busy",
    tested_by: "the nginx workloads (`echo_nginx`)",
}];
