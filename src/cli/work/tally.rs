//! What became of the tasks: a line each, and the sums.

use std::io::IsTerminal;
use std::sync::{Mutex, MutexGuard, PoisonError};

use claimdir::domain::Node;
use claimdir::{Lease, Refusal};
use serde_json::{Value, json};

use crate::cli::args::Global;
use crate::cli::command::acquire::takeover_note;
use crate::cli::report::{say, tell};
use crate::cli::run::report::Settled;
use crate::cli::text::harmless;

/// The sums, and how loud to be about what they sum up.
pub(crate) struct Tally {
    sums: Mutex<Sums>,
    /// A line on standard output for each task.
    lines: bool,
    /// Standard error is a terminal, and somebody there wants to know what is being done.
    watched: bool,
}

#[derive(Clone, Copy, Default)]
struct Sums {
    done: u64,
    retried: u64,
    rejected: u64,
    failed: u64,
    lost: u64,
    left: u64,
    released: u64,
}

impl Tally {
    pub(crate) fn new(global: &Global) -> Tally {
        let lines = !(global.quiet || global.json);
        let watched = lines && std::io::stderr().is_terminal();
        Tally { sums: Mutex::default(), lines, watched }
    }

    /// A task was taken.
    pub(crate) fn taken(&self, lease: &Lease) {
        let mut notes = Vec::new();
        if self.lines {
            notes.extend(takeover_note(lease.acquired()));
        }
        if self.watched {
            let id = harmless(lease.id().as_str());
            notes.push(format!("working on {id} (attempt {})", lease.attempt()));
        }
        say(&notes);
    }

    /// Its claim was settled; why like that, if there is something to say.
    pub(crate) fn settled(&self, task: &Node, how: Settled, why: Option<&str>) {
        let mut sums = self.sums();
        let sum = match how {
            Settled::Completed => &mut sums.done,
            Settled::Retried => &mut sums.retried,
            Settled::Rejected => &mut sums.rejected,
            Settled::Failed => &mut sums.failed,
            Settled::Released => &mut sums.released,
            Settled::Left | Settled::None => &mut sums.left,
        };
        *sum += 1;
        drop(sums);
        // How the command ended decided nothing where it had settled the task before.
        self.line(how.word(), task, why.filter(|_| how != Settled::Left));
    }

    /// The lease was lost before: whatever the command did counts for nothing here.
    pub(crate) fn lost(&self, task: &Node, refusal: &Refusal) {
        self.sums().lost += 1;
        let message = refusal.message();
        say(&[format!("lost {} — {}", harmless(task.id.as_str()), harmless(&message))]);
        self.line("LOST", task, None);
    }

    /// Nobody may be reading any more, which is no reason to stop working.
    fn line(&self, word: &str, task: &Node, why: Option<&str>) {
        if !self.lines {
            return;
        }
        let (id, generation, attempt) = (harmless(task.id.as_str()), task.generation, task.attempt);
        let why = why.map(|why| format!(" ({})", harmless(why))).unwrap_or_default();
        let _ = tell(format!("{word} {id} generation={generation} attempt={attempt}{why}\n").as_bytes());
    }

    /// The sums, as they are told in the end.
    pub(crate) fn fields(&self) -> Value {
        let sums = *self.sums();
        json!({
            "done": sums.done,
            "retried": sums.retried,
            "rejected": sums.rejected,
            "failed": sums.failed,
            "lost": sums.lost,
            "left": sums.left,
            "released": sums.released,
        })
    }

    fn sums(&self) -> MutexGuard<'_, Sums> {
        // Each change is one addition.
        self.sums.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
