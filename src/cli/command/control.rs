//! `claim cancel`, `block`, `unblock`, `requeue`, `note`, `join`, `detach`.

use claimdir::domain::{Name, Node, State, Written};
use claimdir::time::{rfc3339, rfc3339_seconds};
use claimdir::{Answer, Blocking, Cancel, Directory, Result, Text};
use serde_json::{Value, json};

use super::settle::{again, because, claim_fields};
use crate::cli::args::{self, Once};
use crate::cli::context::Context;
use crate::cli::report::Report;
use crate::cli::text::harmless;

/// The directory for one request, and in whose name.
fn by(once: &Once, context: &Context) -> Result<(Directory, String)> {
    let directory = context.directory_once(once)?;
    let owner = context.owner(&directory)?.name;
    Ok((directory, owner))
}

/// What was written: `word`, the node, and what `rest` says of it, as words and as fields.
fn report(answer: Answer<Written>, word: &str, rest: impl FnOnce(&Node) -> (String, Value)) -> Report {
    match answer {
        Ok(Written { node, replay }) => {
            let (words, rest) = rest(&node);
            let mut fields = claim_fields(&node);
            if let (Value::Object(fields), Value::Object(rest)) = (&mut fields, rest) {
                fields.extend(rest);
            }
            fields["replay"] = json!(replay);
            Report::yes(format!("{word} {}{words}{}", harmless(node.id.as_str()), again(replay)), fields)
        }
        Err(refusal) => Report::refused(&refusal),
    }
}

pub(crate) fn cancel(args: args::Cancel, context: &Context) -> Result<Report> {
    let node = context.id(&args.id)?;
    let reason = args.reason.map(|reason| Text::new("a reason", reason)).transpose()?;
    let (directory, by) = by(&args.once, context)?;
    let answer = directory.cancel(&node, &Cancel { by, reason: reason.clone() })?;
    Ok(report(answer, "CANCELLED", |node| {
        let words = format!(" generation={}{}", node.generation, because(reason.as_ref()));
        (words, json!({"reason": reason.as_ref().map(Text::as_str)}))
    }))
}

pub(crate) fn block(args: args::Block, context: &Context) -> Result<Report> {
    let node = context.id(&args.id)?;
    let reason = Text::new("a reason", args.reason)?;
    let (directory, by) = by(&args.once, context)?;
    let answer = directory.block(&node, &Blocking { by, reason: reason.clone(), until: args.until })?;
    Ok(report(answer, "BLOCKED", |node| {
        let until = match &node.state {
            State::Blocked(block) => block.until.as_ref().map(|until| until.until.wall_ms),
            _ => None,
        };
        let ends = until.map(|at| format!(" until={}", rfc3339_seconds(at))).unwrap_or_default();
        let words = format!(" generation={}{ends}{}", node.generation, because(Some(&reason)));
        (words, json!({"reason": reason.as_str(), "until": until.map(rfc3339)}))
    }))
}

pub(crate) fn unblock(args: args::Named, context: &Context) -> Result<Report> {
    let node = context.id(&args.id)?;
    let (directory, by) = by(&args.once, context)?;
    let words = |node: &Node| (format!(" generation={}", node.generation), json!({}));
    Ok(report(directory.unblock(&node, &by)?, "UNBLOCKED", words))
}

pub(crate) fn requeue(args: args::Named, context: &Context) -> Result<Report> {
    let node = context.id(&args.id)?;
    let (directory, by) = by(&args.once, context)?;
    Ok(report(directory.requeue(&node, &by)?, "REQUEUED", |node| {
        let words = format!(" attempt={} requeues={}", node.attempt, node.requeues);
        (words, json!({"requeues": node.requeues}))
    }))
}

pub(crate) fn note(args: args::Note, context: &Context) -> Result<Report> {
    let node = context.id(&args.id)?;
    let text = Text::new("a note", args.text)?;
    let (directory, by) = by(&args.once, context)?;
    let words = |node: &Node| (format!(" version={}", node.version), json!({}));
    Ok(report(directory.note(&node, &by, &text)?, "NOTED", words))
}

pub(crate) fn join(args: args::Subscriber, context: &Context) -> Result<Report> {
    let (node, name) = (context.id(&args.id)?, Name::new(args.name)?);
    let answer = context.directory_once(&args.once)?.subscribe(&node, &name)?;
    Ok(report(answer, "JOINED", |node| subscribers(node, &name)))
}

pub(crate) fn detach(args: args::Subscriber, context: &Context) -> Result<Report> {
    let (node, name) = (context.id(&args.id)?, Name::new(args.name)?);
    let answer = context.directory_once(&args.once)?.unsubscribe(&node, &name)?;
    Ok(report(answer, "DETACHED", |node| subscribers(node, &name)))
}

fn subscribers(node: &Node, name: &Name) -> (String, Value) {
    let there = node.task.iter().flat_map(|task| &task.subscribers);
    let there: Vec<&str> = there.map(Name::as_str).collect();
    let words = format!(" {} subscribers={}", harmless(name.as_str()), there.len());
    (words, json!({"subscribers": there}))
}
