//! `claim show` and `why`. They write nothing and make no directory.

use claimdir::domain::{Blob, Ending, Holder, Node, Standing, for_show};
use claimdir::time::{human, rfc3339_seconds};
use claimdir::{Acquire, Directory, Name, Refusal, Result, Roots, Scope};
use serde_json::{Value, json};

use super::outcome::{attempt_line, driven};
use crate::cli::args::{self, StateFilter};
use crate::cli::context::Context;
use crate::cli::report::{Report, halt_json, holder_json};
use crate::cli::text::harmless;

/// What a node is now, for people and for filters.
pub(crate) struct Now {
    pub(crate) state: StateFilter,
    takeable: bool,
    /// In words, with names as recorded: who prints them makes them harmless.
    pub(super) says: String,
    pub(crate) remaining_ms: Option<i64>,
}

/// `roots`: what is known of what is waited for, shared by those who look at many nodes.
pub(crate) fn now(directory: &Directory, node: &Node, roots: &Roots) -> Now {
    let now = standing_now(directory, node, roots);
    // Whether it can be taken is for what it needs to say, too.
    let needs = node.task.as_ref().is_some_and(|task| task.resources != claimdir::Resources::default());
    if !(now.takeable && needs) {
        return now;
    }
    match directory.would_take(node, &Acquire::by("")) {
        Ok(Err(refusal)) => {
            let says = format!("waiting: {}", refusal.message());
            Now { state: StateFilter::Waiting, takeable: false, says, ..now }
        }
        Ok(Ok(_)) => now,
        Err(error) => {
            let says = format!("waiting: what it needs can't be read: {error}");
            Now { state: StateFilter::Waiting, takeable: false, says, ..now }
        }
    }
}

fn standing_now(directory: &Directory, node: &Node, roots: &Roots) -> Now {
    directory.standing(node, |standing| {
        let (state, says, remaining_ms) = match standing {
            Standing::Free => (StateFilter::Ready, "ready".to_owned(), None),
            Standing::Waiting(need) => {
                let says = format!("waiting: {}", directory.to_the_root(need, roots).message());
                (StateFilter::Waiting, says, None)
            }
            Standing::NotYet { remaining_ms } => {
                let says = format!("waiting: not to be taken for another {}", human(*remaining_ms));
                (StateFilter::Waiting, says, None)
            }
            Standing::Overdue { .. } => {
                (StateFilter::Expired, "expired: its deadline has passed".to_owned(), None)
            }
            Standing::CalledOff { scope, .. } => {
                let says = format!("cancelled with its scope {} {}", scope.name, scope.by_and_why());
                (StateFilter::Cancelled, says, None)
            }
            Standing::Spent { claim, .. } => {
                let says = format!("failed: the last attempt, of {}, is over", claim.owner);
                (StateFilter::Failed, says, None)
            }
            Standing::Held { claim, remaining_ms } => {
                let until =
                    remaining_ms.map_or("with its process".to_owned(), |ms| format!("in {}", human(ms)));
                let says =
                    format!("claimed by {}, ends {until}", driven(&claim.owner, claim.engine.as_ref()));
                (StateFilter::Claimed, says, *remaining_ms)
            }
            Standing::Adrift { claim } => {
                let says = format!(
                    "claimed by {}, and its end can't be believed",
                    driven(&claim.owner, claim.engine.as_ref())
                );
                (StateFilter::Claimed, says, Some(claim.lease_ms))
            }
            Standing::Lapsed { claim, .. } => {
                let says = format!("ready: the claim of {} is over", claim.owner);
                (StateFilter::Ready, says, None)
            }
            Standing::Blocked(block) => {
                let until = block.until.as_ref().map(|until| rfc3339_seconds(until.until.wall_ms));
                let until = until.map(|at| format!(" until {at}")).unwrap_or_default();
                let says = format!("blocked by {}{until}: {}", block.by, block.reason);
                (StateFilter::Blocked, says, None)
            }
            Standing::Ended(ending, outcome) => (ended(*ending), ending.by(&outcome.by), None),
        };
        Now { state, takeable: standing.takeable(), says, remaining_ms }
    })
}

pub(crate) fn ended(ending: Ending) -> StateFilter {
    match ending {
        Ending::Done => StateFilter::Done,
        Ending::Failed => StateFilter::Failed,
        Ending::Cancelled => StateFilter::Cancelled,
        Ending::Expired => StateFilter::Expired,
    }
}

pub(super) fn node_json(node: &Node, now: &Now) -> Value {
    let mut fields = for_show(node);
    fields.insert("takeable".to_owned(), json!(now.takeable));
    if let Some(claim) = node.claim().filter(|_| now.state == StateFilter::Claimed) {
        let holder = Holder::of(node, claim, now.remaining_ms);
        fields.insert("holder".to_owned(), holder_json(&holder));
    }
    Value::Object(fields)
}

pub(crate) fn show(args: args::Node, context: &Context) -> Result<Report> {
    let id = context.id(&args.id)?;
    let directory = context.directory()?;
    let Some(node) = directory.node(&id)? else {
        return Ok(Report::refused(&Refusal::not_found(&id)));
    };
    let now = now(&directory, &node, &Roots::default());
    let lines = record_lines(&node, &now.says, &|value| harmless(&value.to_string()).into_owned());
    Ok(Report::yes(String::new(), node_json(&node, &now)).lines(lines))
}

/// What a node is now, in words, with names as recorded.
pub(crate) fn says(directory: &Directory, node: &Node) -> String {
    now(directory, node, &Roots::default()).says
}

/// All of a record that a person reads, harmless; `write` writes its values.
pub(crate) fn record_lines(node: &Node, says: &str, write: &dyn Fn(&Value) -> String) -> Vec<String> {
    let mut lines = vec![
        format!("{} {}", harmless(node.id.as_str()), harmless(says)),
        format!("  generation={} attempt={} version={}", node.generation, node.attempt, node.version),
    ];
    if let Some(task) = &node.task {
        lines.extend(task.title.as_ref().map(|title| format!("  title {}", harmless(title))));
        if !node.tombstoned {
            lines.push(format!("  input {}", value_or_size(&task.input, task.input_blob.as_ref(), write)));
        }
        if let Some(deadline) = &task.deadline {
            lines.push(format!("  deadline {}", rfc3339_seconds(deadline.wall_ms)));
        }
        lines.extend(task.subscribers.iter().map(|name| format!("  subscriber {}", harmless(name.as_str()))));
        lines.extend(task.after.iter().map(|on| format!("  after {}", harmless(on.as_str()))));
    }
    lines.extend(resource_lines(node));
    if let Some(review) = &node.review {
        let word = if review.accepted { "accepted" } else { "rejected" };
        let note = review.note.iter().map(|note| format!(": {}", harmless(note))).collect::<String>();
        lines.push(format!("  {word} by {}{note}", harmless(&review.by)));
    }
    if let Some(progress) = &node.progress {
        lines.push(format!("  progress {}", write(progress)));
    }
    lines.extend(node.attempts.iter().map(|attempt| attempt_line(node, attempt)));
    lines.extend(
        node.outcome()
            .and_then(|(_, outcome)| outcome.reason.as_ref())
            .map(|why| format!("  reason {}", harmless(why))),
    );
    if let claimdir::domain::State::Done(outcome) = &node.state
        && !node.tombstoned
    {
        lines.push(format!("  result {}", value_or_size(&outcome.result, outcome.blob.as_ref(), write)));
    }
    if node.tombstoned {
        lines.push("  tombstoned: its input and result were pruned".to_owned());
    }
    lines.extend(
        node.notes.iter().map(|note| format!("  note by {}: {}", harmless(&note.by), harmless(&note.text))),
    );
    if let Some(forced) = &node.forced {
        lines.push(format!("  forced by {}: {}", harmless(&forced.by), harmless(&forced.reason)));
    }
    lines
}

/// A value, or what is to be said of one that is too large to be shown.
fn value_or_size(value: &Value, blob: Option<&Blob>, write: &dyn Fn(&Value) -> String) -> String {
    match blob {
        Some(blob) => format!("of {} bytes, blake3 {}", blob.bytes, harmless(&blob.hash)),
        None => write(value),
    }
}

/// What the claim has beside the node, or would bring along.
fn resource_lines(node: &Node) -> Vec<String> {
    let of_task = node.task.as_ref().map(|task| &task.resources);
    let Some(resources) = node.claim().map(|claim| claim.resources.as_ref()).or(of_task) else {
        return Vec::new();
    };
    let paths = resources.paths.iter().map(|path| format!("  path {}", harmless(path.as_str())));
    let pools = resources.pools.iter().map(|pool| format!("  pool {}", harmless(pool.as_str())));
    let quota = |(quota, amount): (&Name, &u64)| format!("  quota {}={amount}", harmless(quota.as_str()));
    paths.chain(pools).chain(resources.quotas.iter().map(quota)).collect()
}

pub(crate) fn why(args: args::Node, context: &Context) -> Result<Report> {
    let id = context.id(&args.id)?;
    let directory = context.directory()?;
    let answer = directory.would_acquire(&id, &Acquire::by(""))?;
    let node = directory.node(&id)?;
    let task = node.as_ref().and_then(|node| node.task.as_ref());
    let paused = match task {
        Some(task) => directory.paused(&task.queue, Scope::of(&id).as_ref())?,
        None => None,
    };
    let mut says = match (&node, &answer) {
        (_, Err(refusal)) => format!("can't be taken: {}", refusal.message()),
        (Some(node), Ok(_)) => format!("can be taken: {}", says(&directory, node)),
        (None, Ok(_)) => "can be taken: nobody has owned it".to_owned(),
    };
    if let Some(halt) = &paused {
        says = format!("{says}; its queue {} is paused {}", halt.name, halt.by_and_why());
    }
    let line = format!("{} {}", harmless(id.as_str()), harmless(&says));
    let paused = paused.as_ref().map(halt_json);
    let mut fields = json!({"id": id.as_str(), "takeable": answer.is_ok(), "why": says, "paused": paused});
    let Err(refusal) = &answer else { return Ok(Report::yes(line, fields)) };
    fields["reason"] = json!(refusal.code().name());
    fields["holder"] = json!(refusal.holder().map(holder_json));
    let report = Report::yes(line, fields);
    // What passes by itself needs no more words: they would send back here.
    Ok(if refusal.passes() { report } else { report.hint(refusal.next_step()) })
}
