//! `claim add` and `claim review`.

use claimdir::domain::{Name, Submission, Submitted, Verdict};
use claimdir::time::rfc3339;
use claimdir::{Result, WorkKey};
use serde_json::{Value, json};

use super::settle::{again, claim_fields};
use crate::cli::args;
use crate::cli::context::Context;
use crate::cli::json::{Argument, large_argument};
use crate::cli::report::Report;
use crate::cli::text::harmless;

pub(crate) fn add(args: args::Add, context: &Context) -> Result<Report> {
    let task = args.id.as_deref().map(|id| context.id(id)).transpose()?;
    let key = args.work_key.map(WorkKey::new).transpose()?;
    let input = args.input.as_deref().map(|text| large_argument("--input", text)).transpose()?;
    let after = args.after.iter().map(|on| context.id(on)).collect::<Result<Vec<_>>>()?;
    let directory = context.directory_to_write_once(&args.once)?;
    let (value, mut large) = match input {
        Some(Argument::Large(from)) => (Value::Null, Some(from)),
        Some(Argument::Value(value)) => (value, None),
        None => (Value::Null, None),
    };
    let mut request = Submission::by(context.owner(&directory)?.name)
        .input(value)
        .queue(Name::new(args.queue)?)
        .priority(args.priority)?
        .max_attempts(args.max_attempts)?;
    if let Some(scope) = context.scope()? {
        request = request.scope(scope);
    }
    if let Some(project) = args.project {
        request = request.project(Name::new(project)?);
    }
    if let Some(title) = args.title {
        request = request.title(title)?;
    }
    if args.review {
        request = request.review();
    }
    request = request.with(&context.resources(&args.with)?);
    if let Some(deadline) = args.deadline {
        request = request.deadline(deadline);
    }
    if let Some(not_before) = args.not_before {
        request = request.not_before(not_before);
    }
    for name in args.subscribers {
        request = request.subscriber(Name::new(name)?)?;
    }
    request = after.into_iter().fold(request, Submission::after);
    let answer = match (task, &mut large) {
        (Some(task), None) => directory.submit(&task, &request),
        (Some(task), Some(from)) => directory.submit_from(&task, &request, from),
        (None, None) => directory.post(&request, key.as_ref()),
        (None, Some(from)) => directory.post_from(&request, key.as_ref(), from),
    };
    Ok(match answer? {
        Ok(submitted) => added(&submitted),
        Err(refusal) => Report::refused(&refusal),
    })
}

fn added(submitted: &Submitted) -> Report {
    let node = &submitted.node;
    let id = harmless(node.id.as_str());
    let what = match submitted.existing {
        false => format!("ADDED {id}"),
        true => format!("EXISTS {id} {}", node.state.name()),
    };
    let line = format!("{what} version={}{}", node.version, again(submitted.replay));
    let mut fields = claim_fields(node);
    let task = node.task.as_ref();
    let deadline = task.and_then(|task| task.deadline.as_ref());
    fields["deadline"] = json!(deadline.map(|deadline| rfc3339(deadline.wall_ms)));
    fields["not_before"] = json!(node.not_before.as_ref().map(|delay| rfc3339(delay.until.wall_ms)));
    fields["existing"] = json!(submitted.existing);
    fields["replay"] = json!(submitted.replay);
    fields["differing"] = json!(submitted.differing);
    let report = Report::yes(line, fields);
    if submitted.differing.is_empty() {
        return report;
    }
    report.note(format!(
        "the task was there already; these differ and changed nothing: {}",
        submitted.differing.join(", ")
    ))
}

pub(crate) fn review(args: args::Review, context: &Context) -> Result<Report> {
    let task = context.id(&args.id)?;
    let directory = context.directory_once(&args.once)?;
    let by = match args.by {
        Some(by) => by,
        None => context.owner(&directory)?.name,
    };
    let verdict =
        Verdict { accept: args.accept, by, note: args.note, allow_self: args.allow_self, seen: args.seen };
    Ok(match directory.review(&task, &verdict)? {
        Ok(written) => {
            let word = if verdict.accept { "ACCEPTED" } else { "REJECTED" };
            let (id, state) = (harmless(task.as_str()), written.node.state.name());
            let line =
                format!("{word} {id} by {}, now {state}{}", harmless(&verdict.by), again(written.replay));
            let mut fields = claim_fields(&written.node);
            fields["replay"] = json!(written.replay);
            Report::yes(line, fields)
        }
        Err(refusal) => Report::refused(&refusal),
    })
}
