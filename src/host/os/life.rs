//! Whether a process of this machine, boot and namespace lives.
//!
//! `Gone` ends a lease at once, so every path to it rests on something the kernel said outright: `ESRCH`, a
//! zombie, or another start time. What can't be read is never taken for gone.

use std::fs;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process, test_kill_process_group};

use super::proc::{self, Stat};
use super::to_pid;
use crate::error::{Error, Result};
use crate::host::{Group, Life, Process};

/// The life of a process and of its group; its ids are known to be ours.
pub(super) fn of(process: &Process) -> Life {
    match (of_one(process.pid, process.start), process.group) {
        (Life::Gone, Some(group)) => of_group(group),
        (life, _) => life,
    }
}

fn of_one(pid: u32, start: u64) -> Life {
    let Some(id) = to_pid(pid) else { return Life::Unknown };
    match Stat::read(pid) {
        Ok(stat) if stat.ended() || stat.start != start => Life::Gone,
        Ok(_) => Life::Alive,
        // Asked after the failed look: a process that ended in between is gone to both.
        Err(_) if is_missing(id) => Life::Gone,
        Err(_) => Life::Unknown,
    }
}

fn of_group(group: Group) -> Life {
    let Some(id) = to_pid(group.id) else { return Life::Unknown };
    if is_group_missing(id) {
        return Life::Gone;
    }
    if let Ok(leader) = Stat::read(group.id) {
        // The kernel gives a number to no new process while it still names a group.
        if leader.start != group.start {
            return Life::Gone;
        }
        if !leader.ended() && leader.is_in(id) {
            return Life::Alive;
        }
    }
    // `kill` counts zombies, and where the first process of a container reaps nothing they stay for good. So
    // look at each member. Twice: should process ids wrap around during a look, a member can fork to a number
    // already passed and end before its own is reached.
    for _ in 0..2 {
        match Members::look(id) {
            Members::Live => return Life::Alive,
            Members::Ended => {}
            Members::Unsure if is_group_missing(id) => return Life::Gone,
            Members::Unsure => return Life::Unknown,
        }
    }
    if proc::shows_all() { Life::Gone } else { Life::Unknown }
}

/// What one look through `/proc` says of the members of a process group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Members {
    /// One of them runs.
    Live,
    /// There are some that can be seen, all of them zombies.
    Ended,
    /// None could be seen, or a process that may be one could not.
    Unsure,
}

impl Members {
    /// Looks at every process.
    fn look(group: Pid) -> Members {
        let Ok(entries) = fs::read_dir("/proc") else { return Members::Unsure };
        let mut said = Vec::new();
        for entry in entries {
            let Ok(entry) = entry else { return Members::Unsure };
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
            match Stat::read(pid) {
                Ok(stat) if !stat.is_in(group) => {}
                Ok(stat) if stat.ended() => said.push(Members::Ended),
                Ok(_) => return Members::Live,
                // Ended and reaped since it was listed.
                Err(_) if to_pid(pid).is_none_or(is_missing) => {}
                Err(_) => said.push(Members::Unsure),
            }
        }
        match said.as_slice() {
            [] => Members::Unsure,
            some if some.contains(&Members::Unsure) => Members::Unsure,
            _ => Members::Ended,
        }
    }
}

/// What `/proc` says of a living process, or why it can't be named.
pub(super) fn named(pid: u32) -> Result<Stat> {
    let id = to_pid(pid).ok_or_else(|| Error::usage(format!("no process can have the id {pid}")))?;
    match Stat::read(pid) {
        Ok(stat) if stat.ended() => Err(Error::usage(format!("process {pid} has ended"))),
        Ok(stat) => Ok(stat),
        Err(_) if is_missing(id) => Err(Error::usage(format!("there is no process {pid}"))),
        Err(why) => Err(Error::usage(format!("process {pid} can't be seen from here: {why}"))),
    }
}

/// The process group that `leader` leads. A process that leads none is refused: its number would name nothing,
/// and the group would count as gone from the start.
pub(super) fn named_group(leader: u32) -> Result<Group> {
    let stat = named(leader)?;
    match to_pid(leader) {
        Some(id) if stat.is_in(id) => Ok(Group { id: leader, start: stat.start }),
        _ => Err(Error::usage(format!("process {leader} leads no process group"))),
    }
}

/// Did the kernel say that there is no such process, not even a zombie?
fn is_missing(pid: Pid) -> bool {
    test_kill_process(pid) == Err(Errno::SRCH)
}

/// The same for a group. Group 1 can't be asked about: `kill(-1, 0)` means every process.
fn is_group_missing(id: Pid) -> bool {
    id != Pid::INIT && test_kill_process_group(id) == Err(Errno::SRCH)
}
