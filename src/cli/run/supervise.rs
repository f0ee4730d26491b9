//! One loop over everything that may happen while the command runs: it ends or stops, the outside wants something of
//! it, the lease is lost, its output has been dealt with.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use claimdir::domain::{Fate, Node, fate};
use claimdir::host::{self, Group, Life, Process};
use claimdir::{Code, Directory, Error, Lease, Refusal};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, test_kill_process_group, waitid};

use super::capture::{Capture, raise};
use super::signals;
use super::stub;
use crate::cli::args::OnLost;

/// How long after SIGTERM comes SIGKILL. A frozen `run` that thaws after a takeover has 100 ms in all.
const GRACE: Duration = Duration::from_millis(30);
/// How long SIGKILL may take: a process that got it runs no more code, though it may be long in the kernel.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long a lease is left alone at first, if that is less than a sixth of it: most commands of a worker end sooner, and
/// keeping a lease takes two threads.
const UNKEPT: Duration = Duration::from_millis(100);
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

/// What the outside wants of a command.
pub(crate) enum Wish {
    /// It gets this signal, if it is one for commands.
    Signal(Signal),
    /// It stops, and its claim is not to be settled as if it had ended by itself.
    Stop,
}

/// What comes from outside while the command runs.
pub(crate) trait Outside {
    /// Readable when something is wanted; `None`: nothing will come this way.
    fn descriptor(&self) -> Option<BorrowedFd<'_>>;

    /// In how long something is wanted without that.
    fn due(&self) -> Option<Duration> {
        None
    }

    /// What is wanted now. Asked until there is nothing.
    fn next(&mut self) -> Option<Wish>;

    /// The command has been stopped by `signal`. `true`: it is to go on.
    fn stopped(&mut self, _signal: i32) -> bool {
        false
    }

    /// The command has ended.
    fn ended(&mut self) {}
}

/// What came of it.
pub(crate) struct Ended {
    pub(crate) exit: Exit,
    /// It was stopped because the outside wanted that.
    pub(crate) stopped: bool,
    /// Why the command could not be started.
    pub(crate) failed: Option<io::Error>,
    pub(crate) hold: Hold,
    pub(crate) capture: Option<Capture>,
}

/// A command under a claim.
pub(crate) struct Supervisor<'a, O> {
    directory: &'a Directory,
    lease: &'a Lease,
    on_lost: OnLost,
    outside: O,
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
    capture: Option<Capture>,
    failed: Option<io::Error>,
    hold: Hold,
    exit: Option<Exit>,
    kill_at: Option<Instant>,
    /// When the lease is to be kept, unless it is already.
    keep_at: Option<Instant>,
    /// Since when the command is gone and the rest of its group is being stopped.
    sweeping: Option<Instant>,
    /// The output is known to be passed on. Once said it is so also when the loop goes to sleep: nothing wakes it
    /// for a second answer.
    told: bool,
    /// A signal came for a command that had ended.
    hurried: bool,
    stopped: bool,
}

impl<'a, O: Outside> Supervisor<'a, O> {
    /// Has the lease renewed, and heeds what comes from outside, from now on.
    pub(crate) fn new(
        directory: &'a Directory,
        lease: &'a Lease,
        group: Pid,
        on_lost: OnLost,
        outside: O,
    ) -> claimdir::Result<Supervisor<'a, O>> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let lost = Arc::new(eventfd(0, flags).map_err(|why| unwatched(&why.into()))?);
        let tell = lost.clone();
        lease.on_lost(move |_| raise(&tell));
        let pid = group.as_raw_nonzero().get().unsigned_abs();
        Ok(Supervisor {
            directory,
            lease,
            on_lost,
            outside,
            lost,
            group,
            process: directory.host().process(pid, Some(pid)).ok(),
            ended: host::watch_exit(pid),
            started: None,
            capture: None,
            failed: None,
            hold: Hold::Held,
            exit: None,
            kill_at: None,
            keep_at: Some(Instant::now() + lease.remaining().map_or(UNKEPT, |left| UNKEPT.min(left / 6))),
            sweeping: None,
            told: false,
            hurried: false,
            stopped: false,
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
            while let Some(wish) = self.outside.next() {
                match wish {
                    Wish::Signal(signal) => self.pass_on(signal),
                    Wish::Stop => self.stop(),
                }
            }
            self.keep_lease();
            self.look_at_lease();
            if self.kill_at.is_some_and(|at| at <= Instant::now()) {
                self.kill_at = None;
                signals::send(self.group, Signal::KILL);
            }
        };
        self.look_at_start();
        // What was lost while the command ended is lost as well.
        self.look_at_lease();
        Ended { exit, stopped: self.stopped, failed: self.failed, hold: self.hold, capture: self.capture }
    }

    /// Sleeps until something happens or is due.
    fn wait(&mut self) {
        let lease = self.lease.remaining().filter(|_| matches!(self.hold, Hold::Held));
        let kill = self.kill_at.map(|at| at.saturating_duration_since(Instant::now()));
        let glance = self.sweeping.map(|_| GLANCE);
        let keep = self.keep_at.map(|at| at.saturating_duration_since(Instant::now()));
        // Without a descriptor, a thread that reads no SIGCHLD would sleep through the end.
        let end = self.ended.is_none().then_some(GLANCE).filter(|_| self.exit.is_none());
        let naps = [lease, kill, glance, keep, end, self.outside.due()];
        let nap = naps.into_iter().flatten().min().map(timespec);
        let ended = self.ended.as_ref().filter(|_| self.exit.is_none()).map(AsFd::as_fd);
        let lost = Some(self.lost.as_fd()).filter(|_| matches!(self.hold, Hold::Held));
        let told = self.capture.as_ref().filter(|_| !self.told).and_then(Capture::descriptor);
        let started = self.started.as_ref().map(AsFd::as_fd);
        let all = [started, self.outside.descriptor(), ended, lost, told];
        let mut fds: Vec<PollFd<'_>> = all.into_iter().flatten().map(readable).collect();
        let _ = poll(&mut fds, nap.as_ref());
        let answered = started.is_some() && fds.first().is_some_and(|fd| !fd.revents().is_empty());
        if answered {
            self.look_at_start();
        }
        if let Some(capture) = &mut self.capture {
            capture.read();
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

    /// Ends the command, unless it has ended.
    fn stop(&mut self) {
        self.hurried = true;
        if self.exit.is_none() && !self.stopped {
            self.stopped = true;
            self.stop_group();
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
                    self.is_stopped_by(signal);
                }
            }
            Ok(None) | Err(Errno::INTR) => {}
            Err(_) => self.exit = Some(Exit::Unknown),
        }
        if self.exit.is_some() {
            self.outside.ended();
        }
    }

    fn is_stopped_by(&mut self, signal: i32) {
        if self.outside.stopped(signal) {
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

    /// Has the lease renewed from the time on when that is worth it.
    fn keep_lease(&mut self) {
        let now = Instant::now();
        if self.keep_at.is_some_and(|at| at <= now) {
            // Without threads it ends by the clock, and so does the command; but there may be some again before.
            self.keep_at = self.lease.keep().err().map(|_| now + UNKEPT);
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
        let Some(capture) = &mut self.capture else { return true };
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

/// What a command needs that is to be watched over can't be had.
pub(crate) fn unwatched(why: &io::Error) -> Error {
    Error::new(Code::StoreUnavailable, format!("cannot watch over the command: {why}"))
}

pub(crate) fn timespec(length: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(length.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: length.subsec_nanos().into(),
    }
}

pub(crate) fn readable(fd: BorrowedFd<'_>) -> PollFd<'_> {
    PollFd::from_borrowed_fd(fd, PollFlags::IN)
}
