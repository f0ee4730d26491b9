//! One loop over everything that may happen while the command runs: it ends or stops, a signal comes, the
//! lease is lost, its output has been passed on.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use claimdir::domain::{Fate, Node, fate};
use claimdir::host::{self, Group, Life, Process};
use claimdir::{Directory, Lease, Refusal};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, test_kill_process_group, waitid};

use super::capture::{Capture, raise};
use super::signals::{self, Signals};
use super::stub;
use super::terminal::Terminal;
use crate::cli::args::OnLost;

/// How long after SIGTERM comes SIGKILL. A frozen `run` that thaws after a takeover has 100 ms in all.
const GRACE: Duration = Duration::from_millis(30);
/// How long SIGKILL may take: a process that got it runs no more code, though it may be long in the kernel.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often to look whether the group is gone.
const GLANCE: Duration = Duration::from_millis(2);

/// How a command ended.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Exit {
    Code(i32),
    Signal(i32),
    /// SIGCHLD is ignored here, so the kernel keeps no exit codes.
    Unknown,
}

/// What is known of the claim.
#[derive(Clone, Debug)]
pub(crate) enum Hold {
    Held,
    /// The command has settled it itself.
    Settled,
    Lost(Refusal),
}

/// What came of it.
pub(crate) struct Ended {
    pub(crate) exit: Exit,
    /// Why the command could not be started.
    pub(crate) failed: Option<io::Error>,
    pub(crate) hold: Hold,
    pub(crate) capture: Option<Capture>,
}

/// A command under a claim.
pub(crate) struct Supervisor<'a> {
    directory: &'a Directory,
    lease: &'a Lease,
    on_lost: OnLost,
    signals: Signals,
    /// Readable once the lease is lost.
    lost: Arc<OwnedFd>,
    /// The command, which leads its group.
    group: Pid,
    /// The same for [`Directory::host`], if that can see it.
    process: Option<Process>,
    /// Readable once the command has ended, if the kernel has such a thing; else SIGCHLD tells.
    ended: Option<OwnedFd>,
    /// Readable once the command has started, or could not.
    started: Option<OwnedFd>,
    terminal: Terminal,
    capture: Option<Capture>,
    failed: Option<io::Error>,
    hold: Hold,
    exit: Option<Exit>,
    kill_at: Option<Instant>,
    /// Since when the command is gone and the rest of its group is being stopped.
    sweeping: Option<Instant>,
    /// The output is known to be passed on. Once said it is so also when the loop goes to sleep: nothing wakes it
    /// for a second answer.
    told: bool,
    /// A signal came for a command that had ended.
    hurried: bool,
}

impl<'a> Supervisor<'a> {
    /// Has the lease renewed, and signals read here, from now on.
    pub(crate) fn new(
        directory: &'a Directory,
        lease: &'a Lease,
        group: Pid,
        on_lost: OnLost,
    ) -> claimdir::Result<Supervisor<'a>> {
        let failed = |e: io::Error| {
            let message = format!("cannot watch over the command: {e}");
            claimdir::Error::new(claimdir::Code::StoreUnavailable, message)
        };
        let signals = Signals::block().map_err(failed)?;
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let lost = Arc::new(eventfd(0, flags).map_err(|e| failed(e.into()))?);
        lease.keep()?;
        let tell = lost.clone();
        lease.on_lost(move |_| raise(&tell));
        let pid = group.as_raw_nonzero().get().unsigned_abs();
        Ok(Supervisor {
            directory,
            lease,
            on_lost,
            signals,
            lost,
            group,
            process: directory.host().process(pid, Some(pid)).ok(),
            ended: host::watch_exit(pid),
            started: None,
            terminal: Terminal::of(group),
            capture: None,
            failed: None,
            hold: Hold::Held,
            exit: None,
            kill_at: None,
            sweeping: None,
            told: false,
            hurried: false,
        })
    }

    /// The command's group, if it can be named.
    pub(crate) fn group(&self) -> Option<Group> {
        self.process.as_ref().and_then(|process| process.group)
    }

    /// Watches until the command has ended, the rest of its group is gone, and its output is passed on.
    pub(crate) fn watch(mut self, started: OwnedFd, capture: Option<Capture>) -> Ended {
        self.started = Some(started);
        self.capture = capture;
        let exit = loop {
            self.look_at_command();
            if let Some(exit) = self.exit
                && self.is_swept()
                && self.is_told()
            {
                break exit;
            }
            self.wait();
            while let Some(signal) = self.signals.next() {
                self.pass_on(signal);
            }
            self.look_at_lease();
            if self.kill_at.is_some_and(|at| at <= Instant::now()) {
                self.kill_at = None;
                signals::send(self.group, Signal::KILL);
            }
        };
        self.look_at_start();
        // What was lost while the command ended is lost as well.
        self.look_at_lease();
        Ended { exit, failed: self.failed, hold: self.hold, capture: self.capture }
    }

    /// Sleeps until something happens or is due.
    fn wait(&mut self) {
        let lease = self.lease.remaining().filter(|_| matches!(self.hold, Hold::Held));
        let kill = self.kill_at.map(|at| at.saturating_duration_since(Instant::now()));
        let glance = self.sweeping.map(|_| GLANCE);
        let nap = [lease, kill, glance].into_iter().flatten().min();
        let nap = nap.map(|nap| Timespec {
            tv_sec: i64::try_from(nap.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: nap.subsec_nanos().into(),
        });
        let ended = self.ended.as_ref().filter(|_| self.exit.is_none()).map(AsFd::as_fd);
        let lost = Some(self.lost.as_fd()).filter(|_| matches!(self.hold, Hold::Held));
        let told = self.capture.as_ref().filter(|_| !self.told).map(Capture::done);
        let started = self.started.as_ref().map(AsFd::as_fd);
        let all = [Some(self.signals.as_fd()), started, ended, lost, told];
        let mut fds: Vec<PollFd<'_>> = all.into_iter().flatten().map(readable).collect();
        let _ = poll(&mut fds, nap.as_ref());
        let answered = started.is_some() && fds.get(1).is_some_and(|fd| !fd.revents().is_empty());
        if answered {
            self.look_at_start();
        }
    }

    /// The stub has become the command, or could not, or has ended.
    fn look_at_start(&mut self) {
        if let Some(socket) = self.started.take() {
            self.failed = stub::failure(&socket);
        }
    }

    fn pass_on(&mut self, signal: Signal) {
        if signal == Signal::CONT {
            self.ask_record();
        }
        if !signals::is_forwarded(signal) {
            return;
        }
        if self.exit.is_none() {
            signals::send(self.group, signal);
            // As a terminal that hangs up does: who is stopped could not heed it.
            if matches!(signal, Signal::TERM | Signal::HUP) {
                signals::send(self.group, Signal::CONT);
            }
        } else if matches!(signal, Signal::TERM | Signal::INT | Signal::HUP | Signal::QUIT) {
            self.hurried = true;
        }
    }

    fn look_at_command(&mut self) {
        if self.exit.is_some() {
            return;
        }
        let options = WaitIdOptions::EXITED | WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
        match waitid(WaitId::Pid(self.group), options) {
            Ok(Some(status)) => {
                if let Some(code) = status.exit_status() {
                    self.exit = Some(Exit::Code(code));
                } else if let Some(signal) = status.terminating_signal() {
                    self.exit = Some(Exit::Signal(signal));
                } else if let Some(signal) = status.stopping_signal() {
                    self.stopped(signal);
                }
            }
            Ok(None) | Err(Errno::INTR) => {}
            Err(_) => self.exit = Some(Exit::Unknown),
        }
        if self.exit.is_some() {
            self.terminal.take_back();
        }
    }

    fn stopped(&mut self, signal: i32) {
        if self.terminal.stopped(signal) {
            self.ask_record();
            if !matches!(self.hold, Hold::Lost(_)) {
                signals::send(self.group, Signal::CONT);
            }
        }
    }

    /// Thawed: looks at the record before the command goes on. What can't be read now, the keeper reads again.
    fn ask_record(&mut self) {
        if matches!(self.hold, Hold::Held) {
            let _ = self.lease.check();
            self.look_at_lease();
        }
    }

    /// Is the lease lost? By the record: a claim that the command has settled itself is not.
    fn look_at_lease(&mut self) {
        if !matches!(self.hold, Hold::Held) {
            return;
        }
        let Some(refusal) = self.lease.lost() else { return };
        self.hold = match became(self.directory, &self.lease.acquired().node) {
            Fate::Settled => return self.hold = Hold::Settled,
            Fate::Named | Fate::Lost => Hold::Lost(refusal),
        };
        match self.on_lost {
            _ if self.exit.is_some() => {}
            OnLost::Kill => self.stop_group(),
            OnLost::Term => self.ask_group(),
            OnLost::Keep => {}
        }
    }

    /// SIGTERM, also to those who are stopped.
    fn ask_group(&self) {
        signals::send(self.group, Signal::TERM);
        signals::send(self.group, Signal::CONT);
    }

    /// SIGTERM, then SIGKILL.
    fn stop_group(&mut self) {
        self.ask_group();
        self.kill_at = Some(Instant::now() + GRACE);
    }

    /// The command has ended. Is the rest of its group gone? It is stopped first, or it would work on without a
    /// claim.
    fn is_swept(&mut self) -> bool {
        let left_alone = matches!(self.hold, Hold::Lost(_)) && self.on_lost != OnLost::Kill;
        // The number names nobody else while the group has a member.
        if left_alone || test_kill_process_group(self.group) == Err(Errno::SRCH) {
            return true;
        }
        let Some(since) = self.sweeping else {
            self.sweeping = Some(Instant::now());
            self.stop_group();
            return false;
        };
        // In a container whose first process reaps nothing, zombies stay in the group for good.
        let gone = |process| self.directory.host().life(process) == Life::Gone;
        self.process.as_ref().is_some_and(gone) || since.elapsed() > PATIENCE
    }

    /// Has the output been passed on, or is nobody waiting for that?
    fn is_told(&mut self) -> bool {
        let Some(capture) = &self.capture else { return true };
        capture.ends();
        self.told = capture.is_done();
        self.told || self.hurried
    }
}

/// What the record says became of the claim that made `taken`; what can't be read is lost.
pub(crate) fn became(directory: &Directory, taken: &Node) -> Fate {
    match directory.node(&taken.id) {
        Ok(Some(now)) => fate(taken, &now),
        _ => Fate::Lost,
    }
}

fn readable(fd: BorrowedFd<'_>) -> PollFd<'_> {
    PollFd::from_borrowed_fd(fd, PollFlags::IN)
}
