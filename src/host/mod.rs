//! What the code is told from outside: clocks, randomness, where it runs, which processes live.
//!
//! Everything above asks a [`Host`]; [`Os`] answers from the operating system, tests answer what they like.

mod os;

use std::time::Duration;

use crate::error::Result;
pub use os::{Os, watch_exit};

/// One reading of both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// The wall clock: milliseconds since 1970, UTC. It may step.
    pub wall_ms: i64,
    /// The monotonic clock (`CLOCK_MONOTONIC`): milliseconds since a moment near the machine's start. It
    /// stands still while the machine sleeps.
    pub mono_ms: i64,
}

/// Within which bounds a monotonic time, and with [`Process::namespace`] a process id, means anything.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct Place {
    /// The machine's id (`/etc/machine-id`), or the host name where there is none.
    pub machine: String,
    /// The boot's id (`/proc/sys/kernel/random/boot_id`); empty where it can't be read, and then it equals
    /// no other.
    pub boot: String,
    /// The time namespace (`/proc/self/ns/time`), empty where the kernel has none.
    pub time_namespace: String,
}

impl Place {
    /// Do monotonic times of both places compare?
    pub fn same_clock(&self, other: &Place) -> bool {
        !self.boot.is_empty() && self == other
    }
}

/// A process, named so that no later process is taken for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its id, in the pid namespace below.
    pub pid: u32,
    /// When it started: clock ticks since boot, field 22 of `/proc/PID/stat`.
    pub start: u64,
    /// A process group that must be gone too, named by its leader's process id.
    pub group: Option<Group>,
    /// The machine it runs on.
    pub machine: String,
    /// That machine's boot.
    pub boot: String,
    /// The namespaces that its id and its start belong to, pid and time: `pid:[4026531836] time:[4026531834]`.
    /// The second because a start time is told in the reader's time namespace: read in another one it differs,
    /// though the process is the same.
    pub namespace: String,
}

/// A process group, named by its leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// The group's id, which is its leader's process id.
    pub id: u32,
    /// When its leader started, in clock ticks since boot.
    pub start: u64,
}

/// What can be said of a [`Process`] from here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It runs, or a process of its group does.
    Alive,
    /// It has ended, and with it its whole group.
    Gone,
    /// It can't be told: another machine, another boot, another namespace, or `/proc` hides it.
    Unknown,
}

/// Clock, randomness and process facts.
pub trait Host: Send + Sync {
    /// Both clocks.
    fn now(&self) -> Now;
    /// The monotonic clock in nanoseconds, for ordering what happens within a millisecond.
    fn mono_ns(&self) -> u64;
    /// Where the monotonic clock counts.
    fn place(&self) -> &Place;
    /// The host's name.
    fn name(&self) -> String;
    /// 128 random bits from a source fit for secrets.
    fn random(&self) -> Result<u128>;
    /// Waits; a courtesy to others, never something to rely on.
    fn pause(&self, length: Duration);
    /// Names the process `pid` of this namespace, with `group` (a process group's leader) if given. Refused
    /// ([`Code::Usage`](crate::Code::Usage)) if there is no such process or it can't be seen.
    fn process(&self, pid: u32, group: Option<u32>) -> Result<Process>;
    /// Does this process live?
    fn life(&self, process: &Process) -> Life;
}
