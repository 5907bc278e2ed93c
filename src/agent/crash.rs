//! Places where a test may kill the agent: between two steps that must both happen in the end.
//!
//! Only in builds with debug assertions, and only when the environment names the place; a release has
//! none of this.

/// A step after which a crash must lose nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Point {
    /// The object is durable, the kernel knows nothing.
    StoreCommitted,
    /// The cgroups exist, no process does.
    CgroupsCreated,
    /// The process runs, the agent has not noted it.
    ProcessStarted,
    /// The end of a process is known, the record does not say so.
    EndSeen,
    /// The cgroups of a deleted pod are gone, the store still has it.
    CgroupsRemoved,
}

/// Ends the process on the spot, as `kill -9` would, if `ALLOTD_CRASH_AT` names this point.
pub(super) fn point(point: Point) {
    #[cfg(debug_assertions)]
    if std::env::var("ALLOTD_CRASH_AT").is_ok_and(|name| name == format!("{point:?}")) {
        let _ = nix::sys::signal::kill(nix::unistd::getpid(), nix::sys::signal::Signal::SIGKILL);
    }
    #[cfg(not(debug_assertions))]
    let _ = point;
}
