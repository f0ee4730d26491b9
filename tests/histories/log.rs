//! What was called, what was answered, and when: one append-only file a worker's life.
//!
//! The call is written before it is made and the answer after, each in one `write`, so a killed worker leaves at
//! most one call without an answer: an unknown outcome. Times are nanoseconds on `CLOCK_MONOTONIC`, which all
//! processes of a machine share; a call's time is read before it, an answer's after it.

use std::fmt;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use claimdir::host::Host;
use serde::{Deserialize, Serialize};

/// A call, and the claim that an acquire took: the worker's place, its how-manieth life there, its how-manieth
/// call. It is the owner's name too, so whoever sees a claim sees which call took it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub(crate) struct Id {
    pub(crate) worker: u32,
    pub(crate) life: u32,
    pub(crate) call: u32,
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.worker, self.life, self.call)
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl From<Id> for String {
    fn from(id: Id) -> String {
        id.to_string()
    }
}

impl TryFrom<String> for Id {
    type Error = String;

    fn try_from(text: String) -> Result<Id, String> {
        let mut parts = text.split('.').map(str::parse);
        match (parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(Ok(worker)), Some(Ok(life)), Some(Ok(call)), None) => Ok(Id { worker, life, call }),
            _ => Err(format!("{text:?} is no call of a worker's")),
        }
    }
}

/// What a worker asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Call {
    Look,
    Acquire { seen: Option<u64>, force: bool, wait_ms: u64, lease_ms: i64 },
    Check { claim: Id },
    Renew { claim: Id, lease_ms: i64 },
    Release { claim: Id },
    Complete { claim: Id, result: u64 },
}

/// What it is told.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Answer {
    /// The record as it is.
    Seen {
        version: u64,
        generation: u64,
        state: String,
        owner: Option<Id>,
        ends: Option<i64>,
    },
    Taken {
        version: u64,
        generation: u64,
        ends: i64,
        from: Option<Id>,
        forced: bool,
    },
    Live {
        version: u64,
        generation: u64,
        remaining: i64,
    },
    Renewed {
        version: u64,
        generation: u64,
        ends: i64,
    },
    Released {
        version: u64,
        generation: u64,
    },
    Completed {
        version: u64,
        generation: u64,
        replay: bool,
    },
    Refused {
        version: u64,
        generation: u64,
        why: Why,
    },
    /// An error; its code says whether something may have changed.
    Failed {
        code: String,
        message: String,
    },
}

/// Why it was refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Why {
    Held {
        owner: Id,
        generation: u64,
        remaining: i64,
    },
    Done {
        owner: Id,
    },
    StaleVersion,
    NoRecord,
    Replaced {
        owner: Id,
        generation: u64,
        remaining: i64,
    },
    Over,
    NotHeld {
        state: String,
    },
    TooLate,
    OtherResult,
    /// Nothing that these calls can lead to.
    Other {
        message: String,
    },
}

#[derive(Serialize, Deserialize)]
enum Line {
    Called { id: Id, at: u64, node: String, call: Call },
    Answered { id: Id, at: u64, answer: Answer },
}

/// A worker's file.
pub(crate) struct Log {
    file: File,
    host: Arc<dyn Host>,
    next: Id,
}

impl Log {
    pub(crate) fn create(folder: &Path, worker: u32, life: u32, host: Arc<dyn Host>) -> Log {
        let path = folder.join(format!("{worker:03}.{life:04}.log"));
        let file = File::options().append(true).create_new(true).open(path).unwrap();
        Log { file, host, next: Id { worker, life, call: 0 } }
    }

    pub(crate) fn now(&self) -> u64 {
        self.host.mono_ns()
    }

    /// Makes a call and logs it; the id that it gets is given to `make`.
    pub(crate) fn record(&mut self, node: &str, call: Call, make: impl FnOnce(Id) -> Answer) -> (Id, Answer) {
        self.next.call += 1;
        let id = self.next;
        self.write(&Line::Called { id, at: self.now(), node: node.to_owned(), call });
        let answer = make(id);
        let at = self.now();
        self.write(&Line::Answered { id, at, answer: answer.clone() });
        (id, answer)
    }

    fn write(&mut self, line: &Line) {
        let mut bytes = serde_json::to_vec(line).unwrap();
        bytes.push(b'\n');
        self.file.write_all(&bytes).unwrap();
    }
}

/// One call with what became of it.
#[derive(Clone, Debug)]
pub(crate) struct Op {
    pub(crate) id: Id,
    pub(crate) node: String,
    pub(crate) call: Call,
    /// `None`: it is not known whether anything happened.
    pub(crate) answer: Option<Answer>,
    /// Nanoseconds; nothing of it happened before.
    pub(crate) called: u64,
    /// Nothing of it happened after.
    pub(crate) ended: u64,
}

/// Reads all logs in `folder`. `gone` says when a worker's life was known to be over.
pub(crate) fn read(folder: &Path, gone: impl Fn(u32, u32) -> Option<u64>) -> Vec<Op> {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "log"));
    paths.sort();
    let mut ops = Vec::new();
    for path in paths {
        let text = fs::read_to_string(&path).unwrap();
        let mut open: Option<Op> = None;
        // A last line without its end was being written at the kill: its call was not made, or not answered.
        for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
            match serde_json::from_str(line).unwrap_or_else(|e| panic!("{}: {e}: {line}", path.display())) {
                Line::Called { id, at, node, call } => {
                    let ended = gone(id.worker, id.life).unwrap_or(u64::MAX);
                    let op = Op { id, node, call, answer: None, called: at, ended };
                    assert!(open.replace(op).is_none(), "{}: a call within a call", path.display());
                }
                Line::Answered { id, at, answer } => {
                    let op = open.take().filter(|op| op.id == id).unwrap();
                    ops.push(Op { ended: at, answer: Some(answer), ..op });
                }
            }
        }
        ops.extend(open);
    }
    ops
}
