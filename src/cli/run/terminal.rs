//! Whose the terminal is, and `run`'s caller at it.
//!
//! The command runs in a group of its own, so to the terminal it is a background job. It is given the terminal
//! when it first asks for it: a read, or a change of settings, stops a background job with SIGTTIN or SIGTTOU.
//! Not before, or `claim run … | less` would take it away from `less`. Until then what is typed comes as
//! signals to `run`, which passes them on.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, Signal, getpgrp};
use rustix::termios::{tcgetpgrp, tcsetpgrp};

use super::signals::{self, Signals};
use super::supervise::{Outside, Wish};

/// Who called `run`: signals to it are the command's, and so may the terminal be.
pub(crate) struct Caller {
    signals: Signals,
    terminal: Terminal,
}

impl Caller {
    /// Has signals read here from now on, for the command that leads this group.
    pub(crate) fn of(command: Pid) -> io::Result<Caller> {
        Ok(Caller { signals: Signals::block()?, terminal: Terminal::of(command) })
    }
}

impl Outside for Caller {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.signals.as_fd())
    }

    fn next(&mut self) -> Option<Wish> {
        self.signals.next().map(Wish::Signal)
    }

    fn stopped(&mut self, signal: i32) -> bool {
        self.terminal.stopped(signal)
    }

    fn ended(&mut self) {
        self.terminal.take_back();
    }
}

/// The controlling terminal, if there is one.
struct Terminal {
    tty: Option<OwnedFd>,
    command: Pid,
    lent: bool,
}

impl Terminal {
    fn of(command: Pid) -> Terminal {
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let tty = rustix::fs::open("/dev/tty", flags, Mode::empty()).ok();
        Terminal { tty, command, lent: false }
    }

    /// The command has been stopped by `signal`. Either it asks for the terminal and gets it, or the whole job
    /// stops: `run` too, and with it the renewals, as when it is frozen. `true`: the command is to go on.
    ///
    /// Without a terminal, or by a plain SIGSTOP, only the command stops; a SIGCONT to `run` continues it.
    fn stopped(&mut self, signal: i32) -> bool {
        let asks = [Signal::TTIN, Signal::TTOU].iter().any(|s| s.as_raw() == signal);
        if self.tty.is_none() || !(asks || signal == Signal::TSTP.as_raw()) {
            return false;
        }
        if asks && self.is_ours() {
            self.lend();
            return true;
        }
        let lent = self.lent;
        self.take_back();
        signals::stop_self();
        if self.is_ours() && (lent || asks) {
            self.lend();
        }
        // It would only ask again.
        !asks || self.lent
    }

    /// Is this process in the foreground?
    fn is_ours(&self) -> bool {
        self.tty.as_ref().is_some_and(|tty| tcgetpgrp(tty) == Ok(getpgrp()))
    }

    fn lend(&mut self) {
        self.lent = self.tty.as_ref().is_some_and(|tty| tcsetpgrp(tty, self.command).is_ok());
    }

    /// Takes the terminal back, if the command still has it.
    fn take_back(&mut self) {
        if let Some(tty) = self.tty.as_ref().filter(|_| self.lent)
            && tcgetpgrp(tty) == Ok(self.command)
        {
            let _ = tcsetpgrp(tty, getpgrp());
        }
        self.lent = false;
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.take_back();
    }
}
