//! What happened to a node, for people: never the truth, which the records are.

mod told;

use serde_json::{Map, Value, json};

use super::record::{Node, beginning};
use crate::id::NodeId;
use crate::time::{parse_rfc3339, rfc3339};
pub(crate) use told::told;

/// The longest line of the journal that a long text is left in, in bytes. A long id alone may take more.
const MAX_LINE: usize = 4096;
/// How many bytes a name keeps in the journal.
const MAX_NAME: usize = 512;

/// What a change of a node's record was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum What {
    /// It was submitted as a task.
    Added,
    /// Somebody took it, and nobody had it.
    Claimed,
    /// Somebody took it after the claim of another was over.
    Reclaimed,
    /// Somebody took it by force.
    Forced,
    /// Its holder left word of how far it is.
    Progress,
    /// Its holder gave it back, and the attempt with it.
    Released,
    /// Its holder gave it back for another attempt.
    Retried,
    /// Its claim was over, and somebody wrote that down.
    GivenBack,
    /// It is not to be taken.
    Blocked,
    /// It may be taken again.
    Unblocked,
    /// It is done.
    Completed,
    /// Its holder says that no attempt will help.
    Rejected,
    /// Its attempts are used up.
    Failed,
    /// It was called off.
    Cancelled,
    /// It was not done in time.
    Expired,
    /// It had failed, and may be tried again.
    Requeued,
    /// A reviewer accepted or rejected its outcome.
    Reviewed,
    /// Somebody noted something.
    Noted,
    /// Somebody is interested in it.
    Joined,
    /// Somebody is not interested any more.
    Detached,
    /// It ended long ago, and what it kept was let go.
    Pruned,
}

impl What {
    const ALL: [(What, &'static str); 21] = [
        (What::Added, "added"),
        (What::Claimed, "claimed"),
        (What::Reclaimed, "reclaimed"),
        (What::Forced, "forced"),
        (What::Progress, "progress"),
        (What::Released, "released"),
        (What::Retried, "retried"),
        (What::GivenBack, "given_back"),
        (What::Blocked, "blocked"),
        (What::Unblocked, "unblocked"),
        (What::Completed, "completed"),
        (What::Rejected, "rejected"),
        (What::Failed, "failed"),
        (What::Cancelled, "cancelled"),
        (What::Expired, "expired"),
        (What::Requeued, "requeued"),
        (What::Reviewed, "reviewed"),
        (What::Noted, "noted"),
        (What::Joined, "joined"),
        (What::Detached, "detached"),
        (What::Pruned, "pruned"),
    ];

    /// The name in the journal and in answers.
    pub fn name(self) -> &'static str {
        What::ALL.iter().find(|(what, _)| *what == self).map_or("", |(_, name)| name)
    }

    fn named(text: &str) -> Option<What> {
        What::ALL.iter().find(|(_, name)| *name == text).map(|(what, _)| *what)
    }
}

/// One thing that happened to a node. It names no secret, and long texts are cut.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Event {
    /// When it was decided, by the wall clock of who did it: milliseconds since 1970.
    pub at_ms: i64,
    /// What it was.
    pub what: What,
    /// The node.
    pub id: NodeId,
    /// The state in which its record was left.
    pub state: String,
    /// The generation then.
    pub generation: u64,
    /// The attempt then.
    pub attempt: u64,
    /// The version that the change made.
    pub version: u64,
    /// Who did it: the owner, the submitter, the reviewer, the subscriber. Nobody, where time did.
    pub by: Option<String>,
    /// Whose claim ended with it, where that was not its holder's doing.
    pub from: Option<String>,
    /// The reason, or the note.
    pub reason: Option<String>,
    /// Of a review: did it accept?
    pub accepted: Option<bool>,
    /// Where a claim begins: its lease's length in milliseconds.
    pub lease_ms: Option<i64>,
    /// From when on it can be taken: milliseconds since 1970.
    pub not_before_ms: Option<i64>,
    /// When a block ends by itself: milliseconds since 1970.
    pub until_ms: Option<i64>,
    /// The task's queue.
    pub queue: Option<String>,
    /// The task's project.
    pub project: Option<String>,
}

impl Event {
    fn of(what: What, node: &Node, at_ms: i64) -> Event {
        let task = node.task.as_ref();
        Event {
            at_ms,
            what,
            id: node.id.clone(),
            state: node.state.name().to_owned(),
            generation: node.generation,
            attempt: node.attempt,
            version: node.version,
            by: None,
            from: None,
            reason: None,
            accepted: None,
            lease_ms: None,
            not_before_ms: None,
            until_ms: None,
            queue: task.map(|task| task.queue.as_str().to_owned()),
            project: task.and_then(|task| task.project.as_ref()).map(|project| project.as_str().to_owned()),
        }
    }

    /// Its fields by their names in the journal and in answers; what it has not got is left out.
    pub fn to_json(&self) -> Map<String, Value> {
        let fields = [
            ("at", json!(rfc3339(self.at_ms))),
            ("event", json!(self.what.name())),
            ("id", json!(self.id.as_str())),
            ("state", json!(self.state)),
            ("generation", json!(self.generation)),
            ("attempt", json!(self.attempt)),
            ("version", json!(self.version)),
            ("by", json!(self.by)),
            ("from", json!(self.from)),
            ("reason", json!(self.reason)),
            ("accepted", json!(self.accepted)),
            ("lease_ms", json!(self.lease_ms)),
            ("not_before", json!(self.not_before_ms.map(rfc3339))),
            ("until", json!(self.until_ms.map(rfc3339))),
            ("queue", json!(self.queue)),
            ("project", json!(self.project)),
        ];
        let there = fields.into_iter().filter(|(_, value)| !value.is_null());
        there.map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// The journal's line, without its end.
    pub(crate) fn line(mut self) -> String {
        for name in [&mut self.by, &mut self.from] {
            cut(name, MAX_NAME);
        }
        let mut line = Value::Object(self.to_json()).to_string();
        let over = line.len().saturating_sub(MAX_LINE);
        if over > 0 && self.reason.is_some() {
            // A byte less of the text is a byte or more less of the line.
            let most = self.reason.as_ref().map_or(0, String::len).saturating_sub(over + CUT.len());
            cut(&mut self.reason, most);
            line = Value::Object(self.to_json()).to_string();
        }
        line
    }

    /// The event that a line of the journal tells; `None`: it is none, or of a kind that this program doesn't know.
    pub(crate) fn of_line(line: &[u8]) -> Option<Event> {
        let value: Value = serde_json::from_slice(line).ok()?;
        let text = |name: &str| value[name].as_str().map(str::to_owned);
        let number = |name: &str| value[name].as_u64();
        let time = |name: &str| value[name].as_str().and_then(parse_rfc3339);
        Some(Event {
            at_ms: time("at")?,
            what: What::named(value["event"].as_str()?)?,
            id: NodeId::new(text("id")?).ok()?,
            state: text("state")?,
            generation: number("generation")?,
            attempt: number("attempt")?,
            version: number("version")?,
            by: text("by"),
            from: text("from"),
            reason: text("reason"),
            accepted: value["accepted"].as_bool(),
            lease_ms: value["lease_ms"].as_i64(),
            not_before_ms: time("not_before"),
            until_ms: time("until"),
            queue: text("queue"),
            project: text("project"),
        })
    }
}

/// What stands where a text was cut.
const CUT: &str = "…";

fn cut(text: &mut Option<String>, most: usize) {
    if let Some(text) = text.as_mut().filter(|text| text.len() > most) {
        *text = format!("{}{CUT}", beginning(text, most));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event() -> Event {
        let mut node = Node::unowned(NodeId::new("a\u{1b}\n").unwrap());
        node.version = u64::MAX;
        let mut event = Event::of(What::GivenBack, &node, -1);
        event.by = Some("\"alice\" \u{9b}".to_owned());
        event.accepted = Some(false);
        event.until_ms = Some(0);
        event
    }

    #[test]
    fn a_line_reads_back() {
        let line = event().line();
        assert!(!line.contains('\n'), "{line}");
        assert_eq!(Event::of_line(line.as_bytes()), Some(event()));
        for end in 0..line.len() {
            assert_eq!(Event::of_line(&line.as_bytes()[..end]), None, "cut at {end}");
        }
        for (what, name) in What::ALL {
            assert_eq!((what.name(), What::named(name)), (name, Some(what)));
        }
    }

    #[test]
    fn what_is_no_event_is_told_as_none() {
        let of = |line: &str| Event::of_line(line.as_bytes());
        let line = event().line();
        for bad in ["", "{}", "[]", "null", "7", "{\"at\":7}", "\u{0}", "x"] {
            assert_eq!(of(bad), None, "{bad}");
        }
        for (there, instead) in [("given_back", "abducted"), ("\"version\":", "\"version\":-"), ("Z\"", "\"")]
        {
            assert!(of(&line.replace(there, instead)).is_none(), "{instead}");
        }
    }

    #[test]
    fn long_texts_are_cut() {
        for character in ["x", "\u{1}", "ä", "\""] {
            let mut long = event();
            long.reason = Some(character.repeat(4096 / character.len()));
            long.by = long.reason.clone();
            let line = long.line();
            assert!(line.len() <= MAX_LINE, "{character:?}: {}", line.len());
            let read = Event::of_line(line.as_bytes()).unwrap();
            let (by, reason) = (read.by.unwrap(), read.reason.unwrap());
            assert!(
                by.len() > MAX_NAME - 2
                    && by.len() <= MAX_NAME + 3
                    && by.ends_with("x…") == (character == "x")
            );
            assert!(reason.ends_with('…'), "{reason}");
        }
    }
}
