//! A process that outlives `run` just long enough to end the command's group.
//!
//! The kernel ends the command itself with `run`, but not what the command has started. So one process more, in
//! a group of its own that no key and no signal to a group reaches, waits on a socket whose other end only `run`
//! has. If that closes before the word has come, `run` is dead, however it died.

use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use claimdir::host::{Group, Host, Life, Os, Process};
use nix::sys::signal::SigSet;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::cli::args;

/// The hidden subcommand that is the guard.
pub(crate) const SUBCOMMAND: &str = "__guard";

const DONE: &[u8] = b"done";

/// A guard that waits. Dropped, it ends the group.
pub(crate) struct Guard {
    process: Child,
    socket: UnixStream,
}

impl Guard {
    /// Starts one for the group that `command` leads. To be called while that can't have left anything behind:
    /// from the first moment that `run` is dead, the guard may find it so.
    pub(crate) fn start(command: Group) -> io::Result<Guard> {
        let (socket, theirs) = UnixStream::pair()?;
        let mut guard = Command::new("/proc/self/exe");
        guard.arg0("claim").arg(SUBCOMMAND).args([command.id.to_string(), command.start.to_string()]);
        guard.process_group(0).stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Guard { process: guard.spawn()?, socket })
    }

    /// The command's end is dealt with: the guard may go.
    pub(crate) fn done(self) {
        let Guard { mut process, mut socket } = self;
        let told = socket.write_all(DONE);
        // It reads to the end.
        drop(socket);
        if told.is_ok() {
            let _ = process.wait();
        }
    }
}

/// The guard's own work.
pub(crate) fn watch(args: &args::Guard) -> io::Result<()> {
    SigSet::all().thread_block()?;
    let mut said = Vec::new();
    io::stdin().lock().read_to_end(&mut said)?;
    if said != DONE {
        end(Group { id: args.leader, start: args.start });
    }
    Ok(())
}

/// Ends what is left of the group. One signal is enough: the kernel lets no fork of a member slip by.
///
/// The number still means this group as long as it has a member, leader or not: till then the kernel gives it to
/// no new process. If the group is gone, a new process may have it by now, and shows by its start.
fn end(group: Group) {
    let host = Os::new();
    // Names this machine, boot and namespace, which are the leader's too.
    let Ok(here) = host.process(std::process::id(), None) else { return };
    let leader = Process { pid: group.id, start: group.start, group: Some(group), ..here };
    let id = i32::try_from(group.id).ok().and_then(Pid::from_raw).filter(|id| *id != Pid::INIT);
    if let Some(id) = id.filter(|_| host.life(&leader) != Life::Gone) {
        let _ = kill_process_group(id, Signal::KILL);
    }
}
