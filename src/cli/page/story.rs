//! What happened, as rows and bars: from the journal, and from what the records keep of it.

use std::collections::BTreeMap;

use claimdir::NodeId;
use claimdir::domain::{Attempt, AttemptEnd, Event, Node, State, What};

use crate::cli::text::harmless;

/// Who had a node, from when to when.
pub(super) struct Bar {
    pub(super) owner: String,
    /// Milliseconds since 1970, as all times here.
    pub(super) start_ms: i64,
    /// `None`: somebody has it still.
    pub(super) end_ms: Option<i64>,
    pub(super) generation: u64,
    pub(super) attempt: u64,
    pub(super) how: How,
    /// Why it ended, or was taken by force.
    pub(super) reason: Option<String>,
    /// From whom it was taken over.
    pub(super) from: Option<String>,
    pub(super) forced: bool,
}

/// How somebody's having a node ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    Held,
    Released,
    Completed,
    Retried,
    Rejected,
    Failed,
    /// The lease, or the process.
    Over,
    Forced,
    Cancelled,
    Expired,
}

impl How {
    pub(super) fn words(self) -> &'static str {
        match self {
            How::Held => "held",
            How::Released => "released",
            How::Completed => "completed",
            How::Retried => "gave back for another attempt",
            How::Rejected => "rejected",
            How::Failed => "failed",
            How::Over => "claim over",
            How::Forced => "taken away by force",
            How::Cancelled => "cancelled",
            How::Expired => "expired",
        }
    }

    /// Did something go wrong?
    pub(super) fn is_failure(self) -> bool {
        matches!(self, How::Retried | How::Rejected | How::Failed | How::Over | How::Forced | How::Expired)
    }
}

/// One node.
pub(super) struct Row {
    pub(super) id: String,
    pub(super) title: Option<String>,
    /// The state now; `gone`: there is no record any more.
    pub(super) state: &'static str,
    pub(super) after: Vec<String>,
    /// When it was submitted, if it was.
    pub(super) added_ms: Option<i64>,
    /// When it ended, and why, if it has.
    pub(super) ended_ms: Option<i64>,
    pub(super) reason: Option<String>,
    /// In order, one a generation.
    pub(super) bars: Vec<Bar>,
    /// What reviewers said, and when.
    pub(super) reviews: Vec<Review>,
    pub(super) attempts: u64,
}

pub(super) struct Review {
    pub(super) at_ms: i64,
    pub(super) by: String,
    pub(super) accepted: bool,
    pub(super) note: Option<String>,
}

impl Row {
    /// When something first happened.
    pub(super) fn first_ms(&self) -> i64 {
        let bars = self.bars.first().map(|bar| bar.start_ms);
        self.added_ms.into_iter().chain(bars).chain(self.ended_ms).min().unwrap_or(i64::MAX)
    }

    /// When something last happened; now, where somebody has it.
    pub(super) fn last_ms(&self, now_ms: i64) -> i64 {
        let bars = self.bars.iter().map(|bar| bar.end_ms.unwrap_or(now_ms));
        let reviews = self.reviews.iter().map(|review| review.at_ms);
        bars.chain(reviews).chain(self.added_ms).chain(self.ended_ms).max().unwrap_or(i64::MIN)
    }

    /// From its submission, or a bare key's first claim, until it was done.
    pub(super) fn took_ms(&self) -> Option<i64> {
        let end = self.ended_ms.filter(|_| self.state == "done")?;
        Some(end.saturating_sub(self.first_ms()).max(0))
    }
}

/// What there is to tell. All its text is harmless already.
pub(crate) struct Story {
    pub(super) now_ms: i64,
    pub(super) since_ms: Option<i64>,
    pub(super) place: String,
    /// In order of what happened first.
    pub(super) rows: Vec<Row>,
}

impl Story {
    /// How many nodes it tells of.
    pub(crate) fn nodes(&self) -> usize {
        self.rows.len()
    }
}

/// Takes down what is known, and makes a story of it.
pub(crate) struct Author {
    now_ms: i64,
    since_ms: Option<i64>,
    drafts: BTreeMap<NodeId, Draft>,
}

#[derive(Default)]
struct Draft {
    events: Vec<Event>,
    record: Option<(Node, &'static str)>,
}

impl Author {
    pub(crate) fn new(now_ms: i64, since_ms: Option<i64>) -> Author {
        Author { now_ms, since_ms, drafts: BTreeMap::new() }
    }

    pub(crate) fn event(&mut self, event: Event) {
        self.drafts.entry(event.id.clone()).or_default().events.push(event);
    }

    /// A record, and the name of its state now.
    pub(crate) fn record(&mut self, node: Node, state: &'static str) {
        let draft = self.drafts.entry(node.id.clone()).or_default();
        draft.record = Some((node, state));
    }

    pub(crate) fn story(self, place: &str) -> Story {
        let (now_ms, since_ms) = (self.now_ms, self.since_ms);
        let since = since_ms.unwrap_or(i64::MIN);
        let is_told = |row: &Row| row.last_ms(now_ms) >= since;
        let mut rows: Vec<Row> =
            self.drafts.into_iter().map(|(id, draft)| draft.row(&id, now_ms)).filter(is_told).collect();
        for row in &mut rows {
            row.bars.retain(|bar| bar.end_ms.is_none_or(|end| end >= since));
        }
        rows.sort_by_key(Row::first_ms);
        Story { now_ms, since_ms, place: shown(place), rows }
    }
}

impl Draft {
    fn row(mut self, id: &NodeId, now_ms: i64) -> Row {
        // Who writes down what happened may be overtaken by who did the next thing.
        self.events.sort_by_key(|event| (event.at_ms, event.version));
        let mut row = Row {
            id: shown(id.as_str()),
            title: None,
            state: "gone",
            after: Vec::new(),
            added_ms: None,
            ended_ms: None,
            reason: None,
            bars: Vec::new(),
            reviews: Vec::new(),
            attempts: 0,
        };
        self.events.iter().for_each(|event| row.tell(event));
        if let Some((node, state)) = &self.record {
            row.complete(node, state, now_ms);
        }
        row
    }
}

impl Row {
    fn tell(&mut self, event: &Event) {
        let (at_ms, reason) = (event.at_ms, event.reason.as_deref().map(lines));
        let by = event.by.as_deref().map(shown);
        self.attempts = self.attempts.max(event.attempt);
        match event.what {
            What::Added => self.added_ms = Some(at_ms),
            What::Claimed | What::Reclaimed | What::Forced => {
                let forced = event.what == What::Forced;
                let end = if forced { How::Forced } else { How::Over };
                self.end(at_ms, end, reason.clone().filter(|_| forced));
                self.bars.push(Bar {
                    owner: by.unwrap_or_default(),
                    start_ms: at_ms,
                    end_ms: None,
                    generation: event.generation,
                    attempt: event.attempt,
                    how: How::Held,
                    reason,
                    from: event.from.as_deref().map(shown),
                    forced,
                });
            }
            What::Released => self.end(at_ms, How::Released, None),
            What::Blocked => self.end(at_ms, How::Released, reason),
            What::Retried => self.end(at_ms, How::Retried, reason),
            What::GivenBack => self.end(at_ms, How::Over, reason),
            What::Completed | What::Rejected | What::Failed | What::Cancelled | What::Expired => {
                let how = match event.what {
                    What::Completed => How::Completed,
                    What::Rejected => How::Rejected,
                    What::Failed => How::Failed,
                    What::Cancelled => How::Cancelled,
                    _ => How::Expired,
                };
                self.end(at_ms, how, reason.clone());
                (self.ended_ms, self.reason) = (Some(at_ms), reason);
            }
            What::Requeued => (self.ended_ms, self.reason) = (None, None),
            What::Reviewed => {
                let accepted = event.accepted.unwrap_or_default();
                self.reviews.push(Review { at_ms, by: by.unwrap_or_default(), accepted, note: reason });
                if !accepted {
                    (self.ended_ms, self.reason) = (None, None);
                }
            }
            _ => {}
        }
    }

    /// Ends the last bar, if that is open.
    fn end(&mut self, at_ms: i64, how: How, reason: Option<String>) {
        if let Some(bar) = self.bars.last_mut().filter(|bar| bar.end_ms.is_none()) {
            (bar.end_ms, bar.how) = (Some(at_ms), how);
            bar.reason = reason;
        }
    }

    /// Adds what the record says: how it is now, and what the journal has not got.
    fn complete(&mut self, node: &Node, state: &'static str, now_ms: i64) {
        self.state = state;
        self.attempts = self.attempts.max(node.attempt);
        if let Some(task) = &node.task {
            self.title = task.title.as_deref().map(shown);
            self.after = task.after.iter().map(|on| shown(on.as_str())).collect();
            self.added_ms = self.added_ms.or(Some(task.submitted_ms));
        }
        node.attempts.iter().for_each(|attempt| self.attempted(attempt));
        if let State::Claimed(claim) = &node.state {
            let over = (state != "claimed").then(|| claim.ends.wall_ms.min(now_ms));
            self.held(node, &claim.owner, claim.acquired_ms, over);
        } else if let Some(bar) = self.bars.last_mut().filter(|bar| bar.end_ms.is_none()) {
            // Its end is told nowhere.
            (bar.end_ms, bar.how) = (Some(bar.start_ms), How::Over);
        }
        if let Some((_, outcome)) = node.outcome() {
            self.ended_ms = Some(outcome.at_ms);
            self.reason = outcome.reason.as_deref().map(lines);
            self.bars.iter_mut().filter(|bar| bar.end_ms > Some(outcome.at_ms)).for_each(|bar| {
                bar.end_ms = Some(outcome.at_ms);
            });
        }
        if let Some(review) = node.review.as_ref().filter(|_| self.reviews.is_empty()) {
            self.reviews.push(Review {
                at_ms: review.at_ms,
                by: shown(&review.by),
                accepted: review.accepted,
                note: review.note.as_deref().map(lines),
            });
        }
        self.bars.sort_by_key(|bar| bar.start_ms);
    }

    /// An attempt that has ended. The record knows when its lease was over; the journal, when somebody saw that.
    fn attempted(&mut self, attempt: &Attempt) {
        let how = match attempt.end {
            AttemptEnd::Completed => How::Completed,
            AttemptEnd::Retried => How::Retried,
            AttemptEnd::Rejected => How::Rejected,
            AttemptEnd::LeaseOver | AttemptEnd::ProcessGone => How::Over,
            AttemptEnd::Forced => How::Forced,
            AttemptEnd::Cancelled => How::Cancelled,
            AttemptEnd::Expired => How::Expired,
        };
        let reason = match attempt.end {
            AttemptEnd::ProcessGone => Some("its process ended".to_owned()),
            AttemptEnd::LeaseOver => Some("its lease ended".to_owned()),
            _ => attempt.error.as_deref().map(lines),
        };
        let known = self.bars.iter_mut().rev().find(|bar| bar.generation == attempt.generation);
        match known {
            Some(bar) => {
                bar.end_ms = Some(attempt.ended_ms.max(bar.start_ms));
                bar.how = how;
                bar.reason = reason.or(bar.reason.take());
            }
            None => self.bars.push(Bar {
                owner: shown(&attempt.worker),
                start_ms: attempt.started_ms,
                end_ms: Some(attempt.ended_ms.max(attempt.started_ms)),
                generation: attempt.generation,
                attempt: attempt.number,
                how,
                reason,
                from: None,
                forced: false,
            }),
        }
    }

    /// Somebody has it, or had it until its claim was over, which nobody has written down.
    fn held(&mut self, node: &Node, owner: &str, start_ms: i64, over: Option<i64>) {
        let end_ms = over.map(|end| end.max(start_ms));
        let how = if over.is_some() { How::Over } else { How::Held };
        let known = self.bars.iter_mut().rev().find(|bar| bar.generation == node.generation);
        match known {
            Some(bar) => (bar.end_ms, bar.how) = (end_ms, how),
            None => self.bars.push(Bar {
                owner: shown(owner),
                start_ms,
                end_ms,
                generation: node.generation,
                attempt: node.attempt,
                how,
                reason: None,
                from: None,
                forced: false,
            }),
        }
    }
}

/// The same for what may have several lines.
fn lines(text: &str) -> String {
    text.lines().map(harmless).collect::<Vec<_>>().join("\n")
}

/// Text from records and events, as a page may have it.
fn shown(text: &str) -> String {
    harmless(text).into_owned()
}
