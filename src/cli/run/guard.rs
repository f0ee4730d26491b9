//! A process that outlives its worker just long enough to end the commands' groups.
//!
//! The kernel ends a command itself with the `run` or `work` that started it, but not what the command has started. So
//! one process more, in a group of its own that no key and no signal to a group reaches, waits on a socket whose other
//! end only the worker has. It is told which group to watch, and when that is dealt with. If the socket closes, the
//! worker is dead, however it died, and the groups still watched are left over.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use claimdir::host::{Group, Host, Life, Os, Process};
use nix::sys::signal::SigSet;
use rustix::io::{Errno, read, retry_on_intr};
use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType, send, socketpair};
use rustix::process::{Pid, Signal, kill_process_group};
use rustix::stdio::stdin;

/// The first argument that makes a process a guard.
pub(crate) const SUBCOMMAND: &str = "__guard";

/// What the guard is told: one message each, the word, the group's id and its leader's start.
const WATCH: u8 = b'w';
const DONE: u8 = b'd';
const MESSAGE: usize = 13;

/// A guard that waits. Dropped, it ends the groups that it watches.
pub(crate) struct Guard {
    process: Child,
    socket: OwnedFd,
}

impl Guard {
    pub(crate) fn start() -> io::Result<Guard> {
        let flags = SocketFlags::CLOEXEC;
        let (socket, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
        let mut guard = Command::new("/proc/self/exe");
        guard.arg0("claim").arg(SUBCOMMAND).process_group(0);
        guard.stdin(theirs).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Guard { process: guard.spawn()?, socket })
    }

    /// Watches the group that a command leads, too. To be called while that can't have left anything behind: from the
    /// first moment that this process is dead, the guard may find it so.
    pub(crate) fn watch(&mut self, group: Group) -> io::Result<()> {
        match self.tell(WATCH, group) {
            // Somebody has killed it. Whatever else it watched goes unguarded.
            Err(Errno::PIPE | Errno::CONNRESET) => {
                let dead = std::mem::replace(self, Guard::start()?);
                dead.dismiss();
                Ok(self.tell(WATCH, group)?)
            }
            told => Ok(told?),
        }
    }

    /// The group's end is dealt with.
    pub(crate) fn done(&self, group: Group) {
        let _ = self.tell(DONE, group);
    }

    /// All that was watched is dealt with: the guard may go.
    pub(crate) fn dismiss(self) {
        let Guard { mut process, socket } = self;
        // It reads to the end.
        drop(socket);
        let _ = process.wait();
    }

    /// Never waits for it.
    fn tell(&self, word: u8, group: Group) -> rustix::io::Result<()> {
        let mut message = [word; MESSAGE];
        let numbers = group.id.to_ne_bytes().into_iter().chain(group.start.to_ne_bytes());
        message.iter_mut().skip(1).zip(numbers).for_each(|(byte, number)| *byte = number);
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        retry_on_intr(|| send(&self.socket, &message, flags)).map(drop)
    }
}

/// The guard's own work.
pub(crate) fn watch() -> io::Result<()> {
    SigSet::all().thread_block()?;
    let mut watched: Vec<Group> = Vec::new();
    let mut message = [0; MESSAGE];
    while retry_on_intr(|| read(stdin(), &mut message))? == MESSAGE {
        let [word, id @ .., s0, s1, s2, s3, s4, s5, s6, s7] = message;
        let start = u64::from_ne_bytes([s0, s1, s2, s3, s4, s5, s6, s7]);
        let group = Group { id: u32::from_ne_bytes(id), start };
        match word {
            WATCH => watched.push(group),
            _ => watched.retain(|other| *other != group),
        }
    }
    watched.into_iter().for_each(end);
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
