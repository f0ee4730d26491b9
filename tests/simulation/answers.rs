//! What must hold of what a process is told.

use claimdir::domain::{Reason, Stale};
use claimdir::{Code, Error, Refusal};

use super::clock::Reading;
use super::judge::Task;
use super::oracle::{Job, Oracle};

impl Oracle {
    /// The write is there, for ever, and `claimed`: was in time.
    pub fn stands(&mut self, job: &Job, write: &str, claimed: bool) -> Result<(), String> {
        let story = self.nodes.entry(job.node.clone()).or_default();
        let Some((index, found)) = story.write(write) else {
            return if self.removals {
                Ok(())
            } else {
                Err("was told yes, and its write never stood".to_owned())
            };
        };
        if claimed && found.late {
            return Err("was told yes, and its lease was over before it was published".to_owned());
        }
        story.promise(index);
        Ok(())
    }

    /// The request with the receipt, of which a node has one, is answered alike each time, also after a power cut.
    pub fn answered(&mut self, node: &str, answer: &str) -> Result<(), String> {
        let story = self.nodes.entry(node.to_owned()).or_default();
        match &story.answered {
            Some(before) if before != answer => {
                Err(format!("one request with a receipt was answered {before} and {answer}"))
            }
            _ => {
                story.answered = Some(answer.to_owned());
                Ok(())
            }
        }
    }

    pub fn holds(&mut self, node: &str, token: &str, now: Reading) -> Result<(), String> {
        let story = self.nodes.entry(node.to_owned()).or_default();
        match story.writes.last().map(|write| write.record.clone()) {
            Some(last) if last.token() == Some(token) => story.hold(&last, now, &self.lives),
            _ => Ok(()),
        }
    }

    pub fn is_done(&mut self, node: &str, token: &str) -> Result<(), String> {
        let story = self.nodes.entry(node.to_owned()).or_default();
        match story.writes.last().map(|write| &write.record) {
            Some(last) if last.ended_by.as_deref() == Some(token) => {
                story.promise(story.writes.len() - 1);
                Ok(())
            }
            _ => Err("was told that it had ended the node, which it has not".to_owned()),
        }
    }

    pub fn refused(&mut self, job: &Job, refusal: &Refusal, now: Reading) -> Result<(), String> {
        // It stood, and was over before its author could be told.
        let over = match &refusal.reason {
            Reason::Stale(Stale::Over | Stale::TooLate) => true,
            Reason::Stale(_) => job.task == Task::Renew,
            _ => false,
        };
        if !job.written.is_empty() && !over {
            return Err(format!("was refused ({}), and its write stands", refusal.message()));
        }
        let last = self.nodes.get(&job.node).and_then(|story| story.writes.last());
        let mine = last.filter(|last| job.tokens.iter().any(|token| last.record.token() == Some(token)));
        if matches!(refusal.reason, Reason::Stale(_))
            && !job.was_lost
            && mine.is_some_and(|last| last.record.is_live(now, &self.lives))
        {
            return Err(format!("holds the node, and is told {}", refusal.message()));
        }
        Ok(())
    }

    pub fn failed(job: &Job, error: &Error) -> Result<(), String> {
        if matches!(error.code(), Code::RecordUnreadable | Code::FormatTooNew) {
            return Err(format!("can't read a record: {error}"));
        }
        let text = format!("{error} {}", error.next_step().unwrap_or_default());
        if text.contains("nothing was changed") && !job.written.is_empty() {
            return Err(format!("is told that nothing was changed, and its write stands: {text}"));
        }
        Ok(())
    }
}
