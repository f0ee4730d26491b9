//! How a worker is told to stop. Slots sleep on descriptors, so that is how they are woken.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, eventfd, poll};

use crate::cli::run::capture::raise;
use crate::cli::run::supervise::{Outside, Wish, readable, timespec};

/// What has been said. Nothing is ever taken back, so both descriptors stay readable once they are.
pub(crate) struct Orders {
    /// Readable from the moment on when nothing more is to be taken.
    drain: OwnedFd,
    /// Since when.
    since: OnceLock<Instant>,
    /// Readable from the moment on when nobody waits for running commands.
    hurry: OwnedFd,
    hurried: AtomicBool,
}

impl Orders {
    pub(crate) fn new() -> io::Result<Orders> {
        let event = || eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let (drain, hurry) = (event()?, event()?);
        Ok(Orders { drain, since: OnceLock::new(), hurry, hurried: AtomicBool::new(false) })
    }

    /// Nothing more is to be taken, and running commands get the shutdown timeout; said again, they get none.
    pub(crate) fn stop(&self) {
        if self.since.set(Instant::now()).is_ok() {
            raise(&self.drain);
        } else {
            self.hurried.store(true, Ordering::Release);
            raise(&self.hurry);
        }
    }

    /// The same, unless it has been said.
    pub(crate) fn drain(&self) {
        if self.since.set(Instant::now()).is_ok() {
            raise(&self.drain);
        }
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.since.get().is_some()
    }

    pub(crate) fn is_hurried(&self) -> bool {
        self.hurried.load(Ordering::Acquire)
    }

    /// Sleeps for `length`, or until nothing more is to be taken.
    pub(crate) fn nap(&self, length: Duration) {
        let _ = poll(&mut [readable(self.drain.as_fd())], Some(&timespec(length)));
    }

    /// What the commands of a slot hear of it.
    pub(crate) fn heard(&self, timeout: Duration) -> Heard<'_> {
        Heard { orders: self, timeout, phase: Phase::Working }
    }
}

/// What a running command has heard.
pub(crate) struct Heard<'a> {
    orders: &'a Orders,
    timeout: Duration,
    phase: Phase,
}

#[derive(Clone, Copy)]
enum Phase {
    Working,
    /// Until then; `None`: a moment that no clock shows.
    Draining(Option<Instant>),
    Stopped,
}

impl Outside for Heard<'_> {
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match self.phase {
            Phase::Working => Some(self.orders.drain.as_fd()),
            Phase::Draining(_) => Some(self.orders.hurry.as_fd()),
            Phase::Stopped => None,
        }
    }

    fn due(&self) -> Option<Duration> {
        match self.phase {
            Phase::Draining(Some(end)) => Some(end.saturating_duration_since(Instant::now())),
            _ => None,
        }
    }

    fn next(&mut self) -> Option<Wish> {
        if let (Phase::Working, Some(since)) = (self.phase, self.orders.since.get()) {
            self.phase = Phase::Draining(since.checked_add(self.timeout));
        }
        let Phase::Draining(end) = self.phase else { return None };
        if !self.orders.is_hurried() && end.is_none_or(|end| end > Instant::now()) {
            return None;
        }
        self.phase = Phase::Stopped;
        Some(Wish::Stop)
    }
}
