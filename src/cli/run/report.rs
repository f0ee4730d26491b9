//! What came of a `run`, as one report.

use claimdir::domain::{Acquired, Node};
use claimdir::{Error, Name, Refusal};
use rustix::io::Errno;
use serde_json::{Map, Value, json};

use super::supervise::Exit;
use crate::cli::report::{FAILED, Report};
use crate::cli::text::harmless;

/// Nothing was claimed, and the command did not run.
const NOT_CLAIMED: u8 = 75;
/// The lease was lost.
const LOST: u8 = 76;
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// How the claim ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    Released,
    Completed,
    /// The task was given back for another attempt.
    Retried,
    /// That was its last attempt.
    Failed,
    /// No attempt will help.
    Rejected,
    /// The command had settled it.
    Left,
    /// It was lost, or there was none.
    None,
}

/// The exit code to pass on, and what happened in words.
pub(crate) fn ending(exit: Exit) -> (i32, String) {
    match exit {
        Exit::Code(code) => (code, format!("the command exited with {code}")),
        Exit::Signal(signal) => (128 + signal, format!("the command died of signal {signal}")),
        Exit::Unknown => (
            i32::from(FAILED),
            "SIGCHLD is ignored here, so the command's exit code can't be known".to_owned(),
        ),
    }
}

impl Settled {
    /// The first word of the line that tells it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Settled::Released => "RELEASED",
            Settled::Completed => "DONE",
            Settled::Retried => "RETRY",
            Settled::Failed | Settled::Rejected => "FAILED",
            Settled::Left | Settled::None => "LEFT",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Settled::Released => "released",
            Settled::Completed => "completed",
            Settled::Retried => "retried",
            Settled::Failed => "failed",
            Settled::Rejected => "rejected",
            Settled::Left => "left",
            Settled::None => "none",
        }
    }
}

/// What is known of a run so far. The report has all of it, however the run ended.
pub(crate) struct Facts {
    pub(crate) id: String,
    pub(crate) owner: Option<String>,
    pub(crate) acquired: Option<Acquired>,
    pub(crate) exit: Option<Exit>,
    pub(crate) lost: bool,
    pub(crate) settled: Settled,
}

impl Facts {
    pub(crate) fn new(id: &str) -> Facts {
        let id = id.to_owned();
        Facts { id, owner: None, acquired: None, exit: None, lost: false, settled: Settled::None }
    }

    /// The fields that every report of `run` has.
    pub(crate) fn fields(&self) -> Map<String, Value> {
        let node = self.acquired.as_ref().map(|acquired| &acquired.node);
        let (exit_code, signal) = match self.exit {
            Some(Exit::Code(code)) => (Some(code), None),
            Some(Exit::Signal(signal)) => (None, Some(signal)),
            Some(Exit::Unknown) | None => (None, None),
        };
        let fields = json!({
            "id": self.id,
            "owner": self.owner,
            "engine": node.and_then(Node::claim).and_then(|claim| claim.engine.as_ref()).map(Name::as_str),
            "generation": node.map(|node| node.generation),
            "attempt": node.map(|node| node.attempt),
            "reclaimed_from": self.acquired.as_ref().and_then(|acquired| acquired.reclaimed_from.as_ref()),
            "ran": self.exit.is_some(),
            "exit_code": exit_code,
            "signal": signal,
            "lost": self.lost,
            "settled": self.settled.name(),
        });
        match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }

    /// The command ran to its end, and the claim was settled.
    pub(crate) fn ended(&self, exit: Exit) -> Report {
        let word = self.settled.word();
        let id = harmless(&self.id);
        let generation = self.acquired.as_ref().map_or(0, |acquired| acquired.node.generation);
        let line = format!("{word} {id} generation={generation}");
        let (code, message) = ending(exit);
        match exit {
            Exit::Code(0) => return Report::yes(line, Value::Null),
            Exit::Unknown => return self.failed(&message),
            Exit::Code(_) | Exit::Signal(_) => {}
        }
        let fields = json!({"code": "COMMAND_FAILED", "message": message});
        Report::yes(format!("{line} ({message})"), fields).exiting(u8::try_from(code).unwrap_or(FAILED))
    }

    /// The command ran, and then `run` could not do its part.
    pub(crate) fn failed(&self, message: &str) -> Report {
        let line = format!("claim: {}: {}", harmless(&self.id), harmless(message));
        let fields = json!({"code": "RUN_FAILED", "message": message});
        Report::yes(line, fields).aside().exiting(FAILED)
    }
}

/// Nothing was claimed.
pub(crate) fn not_claimed(refusal: &Refusal) -> Report {
    let exit = if refusal.is_of_the_store() { FAILED } else { NOT_CLAIMED };
    Report::refused(refusal).exiting(exit)
}

/// `run` itself failed.
pub(crate) fn error(error: Error) -> Report {
    Report::error(error).exiting(FAILED)
}

/// The lease was lost while the command ran, or its result was refused.
pub(crate) fn lost(refusal: &Refusal) -> Report {
    let line = format!("lost {} — {}", harmless(refusal.id.as_str()), harmless(&refusal.message()));
    Report::refused(refusal).lines(vec![line]).aside().exiting(LOST)
}

/// The command could not be started.
pub(crate) fn not_started(program: &str, why: &std::io::Error) -> Report {
    let missing = [Errno::NOENT, Errno::NOTDIR].iter().any(|e| why.raw_os_error() == Some(e.raw_os_error()));
    let (code, exit) =
        if missing { ("COMMAND_NOT_FOUND", NOT_FOUND) } else { ("COMMAND_NOT_EXECUTABLE", NOT_EXECUTABLE) };
    let message = format!("cannot start {program}: {why}");
    let line = format!("claim: {}", harmless(&message));
    Report::yes(line, json!({"code": code, "message": message})).aside().exiting(exit)
}
