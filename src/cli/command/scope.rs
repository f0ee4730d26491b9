//! `claim scope cancel`, `wait`, `show`, and `claim pause`, `resume`.

use claimdir::{Cancel, Code, Error, Name, Result, ScopeCancelled, ScopeSeen, Text, Unreadable};
use serde_json::{Map, Value, json};

use super::settle::again;
use crate::cli::args::{self, Scope};
use crate::cli::context::Context;
use crate::cli::progress::Progress;
use crate::cli::report::{Report, halt_json};
use crate::cli::text::harmless;

pub(crate) fn run(command: Scope, context: &Context) -> Result<Report> {
    match command {
        Scope::Cancel(args) => cancel(args, context),
        Scope::Wait(args) => wait(args, context),
        Scope::Show(args) => show(args, context),
    }
}

/// The scope that is meant.
fn named(name: Option<String>, context: &Context) -> Result<Name> {
    match name {
        Some(name) => Name::new(name),
        None => context.scope_name()?.ok_or_else(|| Error::usage("which scope? Name it, or set CLAIM_SCOPE")),
    }
}

fn text(reason: Option<String>) -> Result<Option<Text>> {
    reason.map(|reason| Text::new("a reason", reason)).transpose()
}

fn cancel(args: args::ScopeCancel, context: &Context) -> Result<Report> {
    let (name, reason) = (named(args.name, context)?, text(args.reason)?);
    let directory = context.directory_to_write()?;
    let by = context.owner(&directory)?.name;
    let ScopeCancelled { halt, replay, nodes, left } =
        directory.cancel_scope(&name, &Cancel { by, reason })?;
    let (shown, why) = (harmless(name.as_str()), halt.by_and_why());
    let line = format!("CANCELLED scope {shown} nodes={nodes} {}{}", harmless(&why), again(replay));
    let mut fields = json!({"scope": name.as_str(), "state": "cancelled", "nodes": nodes, "replay": replay});
    extend(&mut fields, halt_json(&halt));
    fields["left"] = left.iter().map(|left| left.id.as_str()).collect();
    Ok(left.iter().fold(Report::yes(line, fields), |report, left| report.note(unwritten(left))))
}

fn unwritten(left: &Unreadable) -> String {
    format!("cancelled, and that could not be written down: {}", harmless(&left.error.to_string()))
}

fn extend(fields: &mut Value, more: Value) {
    if let (Value::Object(fields), Value::Object(more)) = (fields, more) {
        fields.extend(more);
    }
}

fn show(args: args::ScopeShow, context: &Context) -> Result<Report> {
    let name = named(args.name, context)?;
    let seen = context.directory()?.scope(&name)?;
    let state = match &seen.cancelled {
        Some(halt) => format!("cancelled {}", halt.by_and_why()),
        None => "open".to_owned(),
    };
    let line = format!("{} {}; {}", harmless(name.as_str()), harmless(&state), counts(&seen));
    Ok(Report::yes(line, fields(&name, &seen)))
}

/// In each state so many.
fn counts(seen: &ScopeSeen) -> String {
    let states: String = seen.states.iter().map(|(state, count)| format!(" {state}={count}")).collect();
    let unreadable = match seen.unreadable {
        0 => String::new(),
        count => format!(" unreadable={count}"),
    };
    format!("nodes={}{states}{unreadable} succeeded={}", seen.nodes(), seen.succeeded)
}

fn fields(name: &Name, seen: &ScopeSeen) -> Value {
    let mut fields = json!({
        "scope": name.as_str(),
        "state": if seen.cancelled.is_some() { "cancelled" } else { "open" },
        "nodes": seen.nodes(),
        "states": seen.states,
        "succeeded": seen.succeeded,
        "unreadable": seen.unreadable,
    });
    extend(&mut fields, seen.cancelled.as_ref().map_or(json!({}), halt_json));
    fields
}

fn wait(args: args::ScopeWait, context: &Context) -> Result<Report> {
    let name = named(args.name, context)?;
    let directory = if args.cancel_rest { context.directory_to_write()? } else { context.directory()? };
    let (mut progress, wanted) = (Progress::new(context), args.succeeded);
    let seen = directory.wait_scope(&name, wanted, args.wait, &mut |seen, left| {
        if let Some(progress) = &mut progress {
            progress.show(&format!("{name}: {} of {wanted}; {}", seen.succeeded, counts(seen)), left);
        }
    })?;
    drop(progress);
    if seen.succeeded < wanted {
        let report = match &seen.cancelled {
            Some(halt) => Report::cancelled(halt),
            None => in_vain(&name, &seen, wanted),
        };
        return Ok(report.under(object(fields(&name, &seen))));
    }
    let mut fields = fields(&name, &seen);
    fields["wanted"] = json!(wanted);
    let line = format!("SUCCEEDED scope {} {} of {wanted}", harmless(name.as_str()), seen.succeeded);
    if !args.cancel_rest {
        return Ok(Report::yes(line, fields));
    }
    let by = context.owner(&directory)?.name;
    let reason = Text::new("a reason", format!("{wanted} of its tasks have succeeded"))?;
    let rest = directory.cancel_scope(&name, &Cancel { by, reason: Some(reason) })?;
    fields["state"] = json!("cancelled");
    fields["cancelled"] = json!(rest.nodes);
    let report = Report::yes(format!("{line}, cancelled the rest: {}", rest.nodes), fields);
    Ok(rest.left.iter().fold(report, |report, left| report.note(unwritten(left))))
}

fn in_vain(name: &Name, seen: &ScopeSeen, wanted: u64) -> Report {
    let message = format!("waited in vain: {} of {wanted} have succeeded", seen.succeeded);
    let line = format!("waited {} — {message}; {}", harmless(name.as_str()), counts(seen));
    let report = Report::yes(line, json!({})).but(Code::WaitTimeout, message);
    report.hint("the scope goes on; wait again, or for fewer")
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

pub(crate) fn pause(args: args::Pause, context: &Context) -> Result<Report> {
    let (queue, reason) = (Name::new(args.queue)?, text(args.reason)?);
    let directory = context.directory_to_write()?;
    let by = context.owner(&directory)?.name;
    let (halt, replay) = directory.pause_queue(&queue, context.scope()?.as_ref(), &by, reason.as_ref())?;
    let why = halt.by_and_why();
    let line = format!("PAUSED queue {} {}{}", harmless(queue.as_str()), harmless(&why), again(replay));
    let mut fields = of_queue(&queue, context, "paused", replay)?;
    extend(&mut fields, halt_json(&halt));
    Ok(Report::yes(line, fields))
}

pub(crate) fn resume(args: args::Resume, context: &Context) -> Result<Report> {
    let queue = Name::new(args.queue)?;
    let directory = context.directory()?;
    let by = context.owner(&directory)?.name;
    let replay = !directory.resume_queue(&queue, context.scope()?.as_ref(), &by)?;
    let line = format!("RESUMED queue {}{}", harmless(queue.as_str()), again(replay));
    Ok(Report::yes(line, of_queue(&queue, context, "open", replay)?))
}

fn of_queue(queue: &Name, context: &Context, state: &str, replay: bool) -> Result<Value> {
    let scope = context.scope_name()?;
    let scope = scope.as_ref().map(Name::as_str);
    Ok(json!({"queue": queue.as_str(), "scope": scope, "state": state, "replay": replay}))
}
