//! The operating system as a host.

/// The operating system.
pub struct Os;
