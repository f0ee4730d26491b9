//! One node on the board: of its record and what that stands at, what a person looks for.

use claimdir::domain::{Claim, Lack, Lapse, Need, Node, Outcome, Reason, Standing, State};
use claimdir::time::human;
use claimdir::{NodeId, Refusal, Scope};
use serde_json::{Value, json};

use crate::cli::args::StateFilter;
use crate::cli::command::look::ended;

/// A node. Texts are as recorded: who draws them makes them harmless.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) id: String,
    pub(crate) state: StateFilter,
    /// Who holds it, or who ended or blocked it.
    pub(crate) owner: Option<String>,
    /// What drives the holder, if that was said.
    pub(crate) engine: Option<String>,
    /// The host and the process that took it.
    pub(crate) place: Option<String>,
    pub(crate) generation: u64,
    pub(crate) attempt: u64,
    /// How many attempts it gets, if it is a task.
    pub(crate) most: Option<u64>,
    /// When its state passes by itself, in milliseconds from when it was read.
    pub(crate) left_ms: Option<i64>,
    pub(crate) lease_ms: Option<i64>,
    /// Since when it is so, on the wall clock: taken, ended, blocked, or submitted.
    pub(crate) since_ms: Option<i64>,
    /// What it waits for, what is in its way, why it ended.
    pub(crate) why: Option<String>,
    /// How far its holder is: who reads the node says so, since a brief look leaves it out.
    pub(crate) progress: Option<Value>,
    pub(crate) title: Option<String>,
    pub(crate) queue: Option<String>,
    pub(crate) project: Option<String>,
    /// The scope that it is in, as ids have it, such as `@nightly`.
    pub(crate) scope: Option<(String, Scope)>,
}

impl Row {
    /// The node at `now_ms` on the wall clock, where `held_up` is what refuses a claim on it although it could be taken.
    pub(crate) fn of(node: &Node, standing: &Standing<'_>, now_ms: i64, held_up: Option<&Refusal>) -> Row {
        let row = Row::bare(node);
        match standing {
            Standing::Free => row.held_up(held_up),
            Standing::Lapsed { claim, why } => {
                let what = match why {
                    Lapse::LeaseOver(ago) => format!("ended {} ago", human(*ago)),
                    Lapse::ProcessGone => "ended with its process".to_owned(),
                };
                Row { why: Some(format!("the claim of {} {what}", claim.owner)), ..row }.held_up(held_up)
            }
            Standing::Waiting(need) => Row { state: StateFilter::Waiting, why: Some(waits_for(need)), ..row },
            Standing::NotYet { remaining_ms } => {
                let reason = node.not_before.as_ref().and_then(|delay| delay.reason.as_deref());
                let why = reason.map_or("delayed".to_owned(), |reason| format!("delayed: {reason}"));
                Row { state: StateFilter::Waiting, left_ms: Some(*remaining_ms), why: Some(why), ..row }
            }
            Standing::Blocked(block) => {
                let until = block.until.as_ref().map(|until| until.until.wall_ms);
                Row {
                    state: StateFilter::Blocked,
                    owner: Some(block.by.clone()),
                    since_ms: Some(block.at_ms),
                    why: Some(format!("blocked by {}: {}", block.by, block.reason)),
                    left_ms: until.map(|until| until.saturating_sub(now_ms)),
                    ..row
                }
            }
            Standing::Held { claim, remaining_ms } => {
                let why = remaining_ms.is_none().then(|| "ends with its process".to_owned());
                Row { why, left_ms: *remaining_ms, ..row.claimed(claim) }
            }
            Standing::Adrift { claim } => {
                let why = Some("its end can't be believed".to_owned());
                Row { why, left_ms: Some(claim.lease_ms), ..row.claimed(claim) }
            }
            Standing::Spent { claim, .. } => Row {
                state: StateFilter::Failed,
                owner: Some(claim.owner.clone()),
                since_ms: Some(claim.ends.wall_ms),
                why: Some("the claim of its last attempt is over".to_owned()),
                ..row
            },
            Standing::Overdue { task, deadline, .. } => Row {
                state: StateFilter::Expired,
                owner: Some(task.by.clone()),
                since_ms: Some(deadline.wall_ms),
                why: Some("its deadline has passed".to_owned()),
                ..row
            },
            Standing::CalledOff { scope, .. } => Row {
                state: StateFilter::Cancelled,
                owner: Some(scope.by.clone()),
                since_ms: Some(scope.at.wall_ms),
                why: Some(format!("its scope was cancelled {}", scope.by_and_why())),
                ..row
            },
            Standing::Ended(ending, outcome) => Row { state: ended(*ending), ..row.ended(node, outcome) },
        }
    }

    fn bare(node: &Node) -> Row {
        let task = node.task.as_ref();
        Row {
            id: node.id.as_str().to_owned(),
            state: StateFilter::Ready,
            owner: None,
            engine: None,
            place: None,
            generation: node.generation,
            attempt: node.attempt,
            most: task.map(|task| task.max_attempts.saturating_mul(node.requeues.saturating_add(1))),
            left_ms: None,
            lease_ms: None,
            since_ms: task.map(|task| task.submitted_ms),
            why: None,
            progress: None,
            title: task.and_then(|task| task.title.clone()),
            queue: task.map(|task| task.queue.as_str().to_owned()),
            project: task.and_then(|task| task.project.as_ref()).map(|of| of.as_str().to_owned()),
            scope: Scope::of(&node.id).map(|scope| (first_part(&node.id), scope)),
        }
    }

    fn claimed(self, claim: &Claim) -> Row {
        Row {
            state: StateFilter::Claimed,
            owner: Some(claim.owner.clone()),
            engine: claim.engine.as_ref().map(|engine| engine.as_str().to_owned()),
            place: Some(format!("{}:{}", claim.host, claim.pid)),
            lease_ms: Some(claim.lease_ms),
            since_ms: Some(claim.acquired_ms),
            ..self
        }
    }

    fn ended(self, node: &Node, outcome: &Outcome) -> Row {
        let due = node.asks_for_review() && node.review.is_none() && ended_well(node);
        let review = due.then(|| "to be reviewed".to_owned());
        Row {
            owner: Some(outcome.by.clone()),
            since_ms: Some(outcome.at_ms),
            why: outcome.reason.clone().or(review),
            ..self
        }
    }

    fn held_up(self, by: Option<&Refusal>) -> Row {
        let Some(refusal) = by else { return self };
        let why = Some(in_the_way(refusal));
        Row { state: StateFilter::Waiting, left_ms: refusal.passes_in_ms(), why, ..self }
    }

    /// Has it failed, or not been done in time?
    pub(crate) fn is_failure(&self) -> bool {
        matches!(self.state, StateFilter::Failed | StateFilter::Expired)
    }

    /// Can nobody take it yet?
    pub(crate) fn is_waiting(&self) -> bool {
        matches!(self.state, StateFilter::Waiting | StateFilter::Blocked)
    }

    /// The attempts that were started, of those it gets.
    pub(crate) fn attempts(&self) -> String {
        self.most.map_or(self.attempt.to_string(), |most| format!("{}/{most}", self.attempt))
    }

    /// Does each of these words, in lower case, stand in its id, its owner, its title, its project or its queue?
    pub(crate) fn fits(&self, words: &[String]) -> bool {
        let texts = [Some(&self.id), self.owner.as_ref(), self.title.as_ref(), self.project.as_ref()];
        let texts = texts.into_iter().chain([self.queue.as_ref()]).flatten();
        let texts: Vec<String> = texts.map(|text| text.to_lowercase()).collect();
        words.iter().all(|word| texts.iter().any(|text| text.contains(word)))
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "id": self.id,
            "state": self.state.name(),
            "owner": self.owner,
            "engine": self.engine,
            "place": self.place,
            "generation": self.generation,
            "attempt": self.attempt,
            "max_attempts": self.most,
            "remaining_ms": self.left_ms,
            "lease_ms": self.lease_ms,
            "why": self.why,
            "progress": self.progress,
            "title": self.title,
            "queue": self.queue,
            "project": self.project,
        })
    }
}

fn first_part(id: &NodeId) -> String {
    id.as_str().split('/').next().unwrap_or_default().to_owned()
}

fn ended_well(node: &Node) -> bool {
    matches!(node.state, State::Done(_))
}

/// A dependency that is not met, in a few words.
fn waits_for(need: &Need) -> String {
    let lacks = match &need.lacks {
        Lack::Unfinished(state) => format!("which is {state}"),
        Lack::Unreviewed => "which is to be reviewed".to_owned(),
        Lack::Ended(ending) => format!("which is {}: in vain", ending.name()),
        Lack::Gone => "which is gone: in vain".to_owned(),
        Lack::Stuck(root) => format!("which waits for {}: in vain", root.on),
        Lack::Unreadable { .. } => "which can't be read".to_owned(),
    };
    format!("after {}, {lacks}", need.on)
}

/// What a claim on it would be refused for, in a few words.
fn in_the_way(refusal: &Refusal) -> String {
    let with = |node: &NodeId| match refusal.holder() {
        Some(holder) => format!("{node} by {}", holder.owner),
        None => node.to_string(),
    };
    match &refusal.reason {
        Reason::PathClash(clash) => format!("path {}: {}", clash.reserved, with(&clash.node)),
        Reason::PoolFull(full) => {
            format!("pool {} {}/{}: {}", full.pool, full.used, full.slots, with(&full.node))
        }
        Reason::QuotaUsed(used) => {
            format!("quota {}: {} of {} used, asks for {}", used.quota, used.used, used.rate, used.asked)
        }
        _ => refusal.message(),
    }
}
