//! One node looked into: all that `claim show` has, its values written out, where and since when.

use std::io::Read;

use claimdir::domain::{Attempt, Node};
use claimdir::time::{human, rfc3339_seconds};
use claimdir::{Directory, NodeId, Opened, Result};
use serde_json::Value;

use super::past::Past;
use crate::cli::command::log;
use crate::cli::command::look::{record_lines, says};
use crate::cli::text::harmless;

/// The node that is looked into, and how far down.
pub(crate) struct Inside {
    pub(crate) id: NodeId,
    /// What is known of it; `None`: it has not been read yet.
    pub(crate) detail: Option<Detail>,
    /// The first line in sight, and how many are: drawing says so.
    pub(crate) first: usize,
    pub(crate) page: usize,
}

impl Inside {
    pub(crate) fn new(id: NodeId) -> Inside {
        Inside { id, detail: None, first: 0, page: 1 }
    }
}

/// A node in lines, harmless, as long as they come.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Detail {
    id: NodeId,
    pub(crate) lines: Vec<String>,
}

impl Detail {
    /// Reads the node. What keeps it from being read stands in its lines.
    pub(crate) fn read(directory: &Directory, id: &NodeId, past: &Past<'_>) -> Detail {
        let mut lines = match directory.node(id) {
            Ok(Some(node)) => {
                let mut lines = lines(&node, &says(directory, &node));
                lines.extend(large_values(directory, &node));
                lines
            }
            Ok(None) => vec![format!("{} has no record", harmless(id.as_str()))],
            Err(error) => vec![harmless(&error.to_string()).into_owned()],
        };
        let mut events = past.of_node(id).peekable();
        if events.peek().is_some() {
            lines
                .extend([String::new(), "  what happened in the last 24 hours, the newest first".to_owned()]);
            lines.extend(events.map(|event| format!("  {}", log::line(event))));
        }
        Detail { id: id.clone(), lines }
    }

    pub(crate) fn id(&self) -> &NodeId {
        &self.id
    }
}

fn lines(node: &Node, says: &str) -> Vec<String> {
    let shown = record_lines(node, says, &written_out);
    let mut lines: Vec<String> = shown.iter().flat_map(|line| line.split('\n')).map(str::to_owned).collect();
    lines.extend(where_and_when(node).iter().map(|line| harmless(line).into_owned()));
    lines.extend(node.attempts.iter().rev().map(took));
    lines
}

/// A value over as many lines as it takes, each of them harmless.
fn written_out(value: &Value) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    let lines: Vec<String> = text.lines().map(|line| harmless(line).into_owned()).collect();
    lines.join("\n    ")
}

/// How much is shown of a value that is too large for its record.
const BEGINNING: u64 = 64 << 10;

/// The beginnings of the values that are kept beside the record.
fn large_values(directory: &Directory, node: &Node) -> Vec<String> {
    let mut lines = Vec::new();
    if node.task.as_ref().is_some_and(|task| task.input_blob.is_some()) {
        lines.extend(beginning("input", directory.open_input(node)));
    }
    if node.outcome().is_some_and(|(_, outcome)| outcome.blob.is_some()) {
        // Refused, if the node has been requeued just now.
        let result = directory.open_result(&node.id).map(|answer| answer.ok()).transpose();
        lines.extend(result.map(|result| beginning("result", result)).unwrap_or_default());
    }
    lines
}

fn beginning(what: &str, value: Result<Opened>) -> Vec<String> {
    let mut bytes = Vec::new();
    let read = value.map_err(|error| error.to_string()).and_then(|value| {
        let all = Opened::bytes(&value);
        let read = value.take(BEGINNING).read_to_end(&mut bytes);
        read.map(|_| all).map_err(|error| error.to_string())
    });
    let title = match read {
        Ok(all) if all > BEGINNING => format!("  {what}: the first {BEGINNING} of {all} bytes"),
        Ok(_) => format!("  {what}"),
        Err(why) => return vec![format!("  {what}: {}", harmless(&why))],
    };
    let text = String::from_utf8_lossy(&bytes);
    let lines = text.lines().map(|line| format!("    {}", harmless(line)));
    [String::new(), title].into_iter().chain(lines).collect()
}

/// What the board has of a node and `claim show` leaves to its JSON.
fn where_and_when(node: &Node) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(claim) = node.claim() {
        lines.push(format!(
            "  claimed at {} on {} by process {}, lease {}",
            rfc3339_seconds(claim.acquired_ms),
            claim.host,
            claim.pid,
            human(claim.lease_ms)
        ));
    }
    if let Some(task) = &node.task {
        let project = task.project.as_ref().map(|of| format!(" project={}", of.as_str()));
        lines.push(format!(
            "  queue={} priority={}{} attempts={}/{} requeues={}",
            task.queue.as_str(),
            task.priority,
            project.unwrap_or_default(),
            node.attempt,
            task.max_attempts.saturating_mul(node.requeues.saturating_add(1)),
            node.requeues
        ));
        lines.push(format!("  added at {} by {}", rfc3339_seconds(task.submitted_ms), task.by));
    }
    if let Some((ending, outcome)) = node.outcome() {
        let reason = outcome.reason.iter().map(|reason| format!(": {reason}")).collect::<String>();
        let (how, at) = (ending.name(), rfc3339_seconds(outcome.at_ms));
        lines.push(format!("  {how} at {at} by {}{reason}", outcome.by));
    }
    lines
}

/// When an attempt was, the newest first.
fn took(attempt: &Attempt) -> String {
    format!(
        "  attempt {} began at {} and took {}",
        attempt.number,
        rfc3339_seconds(attempt.started_ms),
        human(attempt.ended_ms.saturating_sub(attempt.started_ms))
    )
}
