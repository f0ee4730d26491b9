//! `claim result`.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use claimdir::domain::{Attempt, AttemptEnd, Ending, Node, Outcome, Reason, State, attempt_json, for_show};
use claimdir::time::rfc3339;
use claimdir::{Answer, Directory, Name, NodeId, Refusal, Result};
use serde_json::{Map, Value, json};

use crate::cli::args;
use crate::cli::context::Context;
use crate::cli::progress::Progress;
use crate::cli::report::Report;
use crate::cli::text::harmless;

pub(crate) fn result(args: args::Outcome, context: &Context) -> Result<Report> {
    let id = context.id(&args.id)?;
    let directory = context.directory()?;
    let node = match awaited(&directory, &id, args.wait, context)? {
        Ok(node) => node,
        Err(refusal) => return Ok(Report::refused(&refusal)),
    };
    let Some((ending, outcome)) = node.outcome() else {
        return Ok(Report::refused(&Refusal::not_found(&id)));
    };
    let fields = fields(&node, ending, outcome);
    if ending != Ending::Done {
        let (by, reason) = (outcome.by.clone(), outcome.reason.clone());
        let (id, version, generation) = (node.id.clone(), node.version, node.generation);
        let refusal = Refusal { id, version, generation, reason: Reason::Ended { ending, by, reason } };
        return Ok(Report::refused(&refusal).under(fields));
    }
    if let Some(blob) = &outcome.blob {
        let (by, bytes) = (harmless(&outcome.by), blob.bytes);
        let generation = outcome.generation;
        let line = format!("DONE {} by {by} generation={generation}, {bytes} bytes", harmless(id.as_str()));
        // First all of it, unseen: an answer is one whole object, or a refusal.
        directory.open_blob(&node, blob)?.prove()?;
        let value = directory.open_blob(&node, blob)?;
        return Ok(Report::yes(line, Value::Object(fields)).streaming("result", value));
    }
    let result = if node.tombstoned { "(pruned)".to_owned() } else { outcome.result.to_string() };
    let line = format!(
        "DONE {} by {} generation={} {}",
        harmless(id.as_str()),
        harmless(&outcome.by),
        outcome.generation,
        harmless(&result)
    );
    Ok(Report::yes(line, Value::Object(fields)))
}

/// How often a line that says how much time is left is written anew.
const TICK: Duration = Duration::from_secs(1);

/// The outcome, waited for under a line that says so, if a terminal shows it.
fn awaited(
    directory: &Directory,
    id: &NodeId,
    wait: Option<Duration>,
    context: &Context,
) -> Result<Answer<Node>> {
    let (Some(wait), Some(mut progress)) = (wait, Progress::new(context)) else {
        return directory.result(id, wait);
    };
    let begun = Instant::now();
    loop {
        let left = wait.saturating_sub(begun.elapsed());
        if let Some(node) = directory.node(id)? {
            let state = directory.standing(&node, |standing| standing.name());
            progress.show(&format!("{id}: {state}"), left);
        }
        match directory.result(id, Some(left.min(TICK)))? {
            Err(refusal) if matches!(refusal.reason, Reason::TimedOut(_)) && left > TICK => {}
            answer => return Ok(answer),
        }
    }
}

fn fields(node: &Node, ending: Ending, outcome: &Outcome) -> Map<String, Value> {
    let attempts: Vec<Value> = node.attempts.iter().map(attempt_json).collect();
    let fields = json!({
        "id": node.id.as_str(),
        "version": node.version,
        "generation": node.generation,
        "state": ending.name(),
        "result": outcome.result,
        "reason": outcome.reason,
        "by": outcome.by,
        "at": rfc3339(outcome.at_ms),
        "review": for_show(node).get("review"),
        "attempt": node.attempt,
        "attempts": attempts,
        "tombstoned": node.tombstoned,
    });
    match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// An owner's name, and what drives it if that was said.
pub(crate) fn driven<'a>(owner: &'a str, engine: Option<&Name>) -> Cow<'a, str> {
    match engine {
        Some(engine) => format!("{owner} with {engine}").into(),
        None => owner.into(),
    }
}

/// An ended attempt of `node`, in a line for people.
pub(crate) fn attempt_line(node: &Node, attempt: &Attempt) -> String {
    let failed = matches!(&node.state, State::Failed(outcome) if outcome.generation == attempt.generation);
    let end = match attempt.end {
        // Its worker asked for another one.
        AttemptEnd::Retried if failed => "failed, as it was the last attempt",
        end => end.name(),
    };
    let error = attempt.error.iter().map(|error| format!(": {}", harmless(error))).collect::<String>();
    format!(
        "  attempt {} by {} generation={} {}{error}",
        attempt.number,
        harmless(&driven(&attempt.worker, attempt.engine.as_ref())),
        attempt.generation,
        end
    )
}
