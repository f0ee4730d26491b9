//! Signals as events, and which of them are the command's too.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigSet, Signal as Number};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::process::{Pid, Signal, kill_process_group};

/// Passed on to the command's group.
const FORWARDED: [Signal; 9] = [
    Signal::TERM,
    Signal::INT,
    Signal::HUP,
    Signal::QUIT,
    Signal::USR1,
    Signal::USR2,
    Signal::WINCH,
    Signal::CONT,
    Signal::TSTP,
];

/// The signals of this process, from now on read here. Threads started later leave them alone too.
pub(crate) struct Signals(SignalFd);

impl Signals {
    /// All that a command may get, and that it has ended.
    pub(super) fn block() -> io::Result<Signals> {
        Signals::block_these(FORWARDED.into_iter().chain([Signal::CHILD]))
    }

    /// These, but for those that whoever started this process has it ignore, as `nohup` and a shell's `&` do.
    pub(crate) fn block_these(these: impl IntoIterator<Item = Signal>) -> io::Result<Signals> {
        let ignored = ignored();
        let mut set = SigSet::empty();
        for signal in these {
            if signal != Signal::CHILD && ignored & (1 << (signal.as_raw() - 1)) != 0 {
                continue;
            }
            set.add(Number::try_from(signal.as_raw())?);
        }
        let signals = SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        // Blocked and never read: a background process may then take the terminal back.
        set.add(Number::SIGTTOU);
        set.thread_block()?;
        Ok(Signals(signals))
    }

    /// The next one that has come.
    pub(crate) fn next(&self) -> Option<Signal> {
        let signal = self.0.read_signal().ok().flatten()?;
        Signal::from_named_raw(i32::try_from(signal.ssi_signo).ok()?)
    }
}

/// The signals that this process ignores, a bit each; none where that can't be told.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Is it one for the command?
pub(super) fn is_forwarded(signal: Signal) -> bool {
    FORWARDED.contains(&signal)
}

/// Sends it to everybody in the group who is left.
pub(super) fn send(group: Pid, signal: Signal) {
    let _ = kill_process_group(group, signal);
}

/// Stops this process as a Ctrl-Z would, until somebody continues it. Where nobody could, as in an orphaned
/// process group, the kernel does nothing.
pub(crate) fn stop_self() {
    let stop = SigSet::from(Number::SIGTSTP);
    let _ = stop.thread_unblock();
    let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::TSTP);
    let _ = stop.thread_block();
}
