//! Answers that others wait for: within a second, whatever the disk, git or standard input do.

use std::env;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use claimdir::time::parse_duration;
use rustix::process::{Pid, Signal, kill_process};

use super::context::Context;
use super::report::Report;

/// The whole, of a second; the rest is for starting and ending. `CLAIM_PATIENCE` says otherwise.
const LIMIT: Duration = Duration::from_millis(850);

/// The most that `CLAIM_PATIENCE` may say.
const LONGEST: Duration = Duration::from_secs(3600);

/// How long an answer may take to be written once it has begun.
const LAST_WORD: Duration = Duration::from_millis(100);

/// What the work and its limit share: only one of them speaks.
#[derive(Default)]
struct Shared {
    has_spoken: AtomicBool,
    /// Programs that the work has started and not waited for.
    children: Mutex<Vec<Pid>>,
}

/// The work's side.
pub(crate) struct Turn {
    shared: Arc<Shared>,
    exit: mpsc::Sender<u8>,
}

impl Turn {
    /// Gives the answer, unless it is too late for one. Work may go on for as long as there is time.
    pub(crate) fn answer(&self, context: &Context, report: Report) {
        if !self.shared.has_spoken.swap(true, Ordering::SeqCst) {
            let _ = self.exit.send(report.deliver(context));
        }
    }

    /// A program to be stopped if it takes too long. The caller waits for it only after [`Turn::forget`].
    pub(crate) fn started(&self, child: &std::process::Child) {
        self.children().extend(Pid::from_raw(child.id().cast_signed()));
    }

    /// Those programs have nothing left to say.
    pub(crate) fn forget(&self) {
        self.children().clear();
    }

    fn children(&self) -> std::sync::MutexGuard<'_, Vec<Pid>> {
        self.shared.children.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// For tests: on a busy machine a second may be over before a healthy disk has answered.
fn limit() -> Duration {
    env::var("CLAIM_PATIENCE")
        .ok()
        .and_then(|text| parse_duration(&text).ok())
        .map_or(LIMIT, |limit| limit.min(LONGEST))
}

/// Has `work` answer in a thread of its own, with a context of its own. After the limit `late` is the answer, and the
/// process may end whatever the thread does: nothing that it does must be undone.
pub(crate) fn bounded(
    context: &Context,
    late: impl FnOnce() -> Report,
    work: impl FnOnce(&Context, &Turn) + Send + 'static,
) -> Report {
    let end = Instant::now() + limit();
    let shared = Arc::new(Shared::default());
    let (exit, heard) = mpsc::channel();
    let (turn, global) = (Turn { shared: shared.clone(), exit }, context.global.clone());
    let started = thread::Builder::new().name("claim-answer".to_owned()).spawn(move || {
        work(&Context::new(global), &turn);
    });
    let mut exit = None;
    while started.is_ok() {
        match heard.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(code) => exit = Some(code),
            Err(_) => break,
        }
    }
    if exit.is_none() && shared.has_spoken.swap(true, Ordering::SeqCst) {
        exit = Some(heard.recv_timeout(LAST_WORD).unwrap_or(0));
    }
    for child in shared.children.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        let _ = kill_process(child, Signal::KILL);
    }
    match exit {
        Some(exit) => Report::told().exiting(exit),
        None => late().unplaced(),
    }
}
