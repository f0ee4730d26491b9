//! Which record may follow which, by whose hand and when.

use std::collections::BTreeSet;

use super::clock::Reading;
use super::record::Record;

/// What a process is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    Acquire { force: bool },
    Renew,
    Release,
    Complete,
    Add,
    Look,
}

pub fn must(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

/// One record following another.
pub struct Move<'a> {
    pub old: &'a Record,
    pub new: &'a Record,
    pub task: Task,
    /// Does the author have the token of the old claim?
    pub owned: bool,
    /// Is the old claim live?
    pub live: bool,
    /// Was the token's claim over when the author read it?
    pub late: bool,
    pub now: Reading,
}

impl Move<'_> {
    pub fn is_takeover(&self) -> bool {
        self.new.claim.is_some() && self.new.token() != self.old.token()
    }

    pub fn judge(&self, issued: &BTreeSet<u64>) -> Result<(), String> {
        let (old, new) = (self.old, self.new);
        must(new.version == old.version + 1, || "a version was left out or made twice".to_owned())?;
        if self.is_takeover() {
            must(!issued.contains(&new.generation), || format!("generation {} again", new.generation))?;
            must(new.generation > old.generation, || "the generation was not raised".to_owned())?;
            let Task::Acquire { force } = self.task else {
                return Err("only an acquire takes a node".to_owned());
            };
            return match old.state.as_str() {
                "ready" => Ok(()),
                "claimed" => must(!self.live || force, || "the claim was still live".to_owned()),
                "blocked" => must(force, || "it was blocked".to_owned()),
                _ => Err("it had ended".to_owned()),
            };
        }
        must(new.generation == old.generation, || "the generation changed without an owner".to_owned())?;
        let acquire = matches!(self.task, Task::Acquire { .. });
        if acquire && new.claim.is_some() {
            let adrift = old.claim.as_ref().is_some_and(|claim| claim.is_adrift(self.now));
            return must(adrift, || "it set an end that could be believed".to_owned());
        }
        if self.task == Task::Add {
            let same = new.state == old.state && new.token() == old.token();
            return must(same, || "submitting changed the claim".to_owned());
        }
        must(self.owned, || "its author was not the holder".to_owned())?;
        must(acquire || !self.late, || "the claim was over before its author looked".to_owned())?;
        let fits = match self.task {
            // Given back before anybody was told of it.
            Task::Acquire { .. } => new.state == "ready" && !self.live,
            Task::Renew => new.claim.is_some(),
            Task::Release => new.state == "ready" || new.state == "blocked",
            Task::Complete => new.state == "done",
            Task::Look | Task::Add => false,
        };
        must(fits, || "that is not what it was asked for".to_owned())
    }
}
