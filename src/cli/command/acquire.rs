//! `claim acquire` and `claim next`.

use claimdir::domain::{Acquired, Blob, Bound, Name, Node};
use claimdir::time::{rfc3339, rfc3339_seconds};
use claimdir::{Acquire, Answer, Directory, Error, Force, Lease, Next, NodeId, Result, Token};
use serde_json::json;

use super::settle::again;
use crate::cli::args::{self, Manner, Taking, Terms};
use crate::cli::context::Context;
use crate::cli::report::Report;
use crate::cli::text::{harmless, shell_word};

pub(crate) fn run(args: args::Acquire, context: &Context) -> Result<Report> {
    let args::Acquire { id: text, taking, manner } = args;
    let directory = open(&manner, context)?;
    let id = context.id(&text)?;
    let request = bound(named(&taking, context, &directory)?, &manner, &directory)?;
    if manner.dry_run {
        return Ok(match directory.would_acquire(&id, &request)? {
            Ok(acquired) => would(&acquired),
            Err(refusal) => Report::refused(&refusal),
        });
    }
    Ok(match take(&directory, &id, &request, &taking)? {
        Ok(lease) => claimed(lease, directory, context, manner.export),
        Err(refusal) => Report::refused(&refusal),
    })
}

pub(crate) fn next(args: args::Next, context: &Context) -> Result<Report> {
    let args::Next { lane, terms, manner } = args;
    let directory = open(&manner, context)?;
    let acquire = bound(request(&terms, context, &directory)?, &manner, &directory)?;
    let request = in_lane(Next::of(acquire), lane, context)?;
    if manner.dry_run {
        return Ok(match directory.would_next(&request)? {
            Ok(acquired) => would(&acquired),
            Err(nothing) => Report::nothing(&nothing),
        });
    }
    let answer = match terms.wait {
        Some(wait) => directory.next(&request, wait)?,
        None => directory.try_next(&request)?,
    };
    Ok(match answer {
        Ok(lease) => claimed(lease, directory, context, manner.export),
        Err(nothing) => Report::nothing(&nothing),
    })
}

/// Of this queue, of the scope that is named or of none, and of these projects.
pub(crate) fn in_lane(request: Next, lane: args::Lane, context: &Context) -> Result<Next> {
    let mut request = request.queue(Name::new(lane.queue)?);
    if let Some(scope) = context.scope()? {
        request = request.scope(scope);
    }
    lane.projects.into_iter().try_fold(request, |request, project| Ok(request.project(Name::new(project)?)))
}

fn open(manner: &Manner, context: &Context) -> Result<Directory> {
    if manner.export {
        context.evaluated();
        exportable(context)?;
    }
    if manner.dry_run { context.directory() } else { context.directory_to_write_once(&manner.once) }
}

/// The request for a claim that ends with a process, if one is named.
fn bound(request: Acquire, manner: &Manner, directory: &Directory) -> Result<Acquire> {
    let Some(pid) = manner.while_pid.or(manner.until_exit) else { return Ok(request) };
    let process = directory.host().process(pid, None)?;
    Ok(request.bound(Bound { process, until_exit: manner.until_exit.is_some() }))
}

/// Can `--export` print what it promises? Asked here since an option before the command's name is no conflict
/// to the parser.
fn exportable(context: &Context) -> Result<()> {
    let global = &context.global;
    for (other, given) in [("--json", global.json), ("--quiet", global.quiet)] {
        if given {
            return Err(Error::usage(format!("--export prints lines for a shell, and {other} prints none")));
        }
    }
    match context.located()?.path.to_str() {
        Some(_) => Ok(()),
        None => Err(Error::usage("--export can't name the claim directory: its path is not valid UTF-8")),
    }
}

/// The request for whatever node it may be.
pub(crate) fn request(terms: &Terms, context: &Context, directory: &Directory) -> Result<Acquire> {
    let request = Acquire::by(context.owner(directory)?.name).lease(terms.lease);
    let request = request.with(&context.resources(&terms.with)?);
    Ok(match &terms.engine {
        Some(engine) => request.engine(Name::new(engine.as_str())?),
        None => request,
    })
}

/// The request for a node that is named.
pub(crate) fn named(taking: &Taking, context: &Context, directory: &Directory) -> Result<Acquire> {
    let mut request = request(&taking.terms, context, directory)?;
    if let Some(version) = taking.seen {
        request = request.seen(version);
    }
    if let Some(reason) = &taking.force {
        request = request.force(Force::because(reason)?);
    }
    Ok(request)
}

pub(crate) fn take(
    directory: &Directory,
    id: &NodeId,
    request: &Acquire,
    taking: &Taking,
) -> Result<Answer<Lease>> {
    match taking.terms.wait {
        Some(wait) => directory.acquire(id, request, wait),
        None => directory.try_acquire(id, request),
    }
}

/// What was taken from whom, for standard error.
pub(crate) fn takeover_note(acquired: &Acquired) -> Option<String> {
    let id = harmless(acquired.node.id.as_str());
    match &acquired.reclaimed_from {
        Some(owner) if acquired.forced => Some(format!("taking {id} by force (was {})", harmless(owner))),
        Some(owner) => Some(format!("reclaiming expired lease on {id} (was {})", harmless(owner))),
        None if acquired.forced => Some(format!("taking {id} by force (was blocked)")),
        None => None,
    }
}

fn claimed(lease: Lease, directory: Directory, context: &Context, export: bool) -> Report {
    let lost = lease.lost();
    let remaining_ms = lease.remaining().map(|left| left.as_millis() as u64);
    let (token, acquired) = lease.leave();
    let node = &acquired.node;
    let Some(claim) = node.claim() else { return Report::yes(String::new(), json!({})) };
    let line = format!(
        "CLAIMED {} by {} generation={} attempt={} token={} expires={}{}",
        harmless(node.id.as_str()),
        harmless(&claim.owner),
        node.generation,
        node.attempt,
        token.reveal(),
        rfc3339_seconds(claim.ends.wall_ms),
        again(acquired.replay),
    );
    let mut fields = json!({
        "id": node.id.as_str(),
        "owner": claim.owner,
        "engine": claim.engine.as_ref().map(Name::as_str),
        "generation": node.generation,
        "version": node.version,
        "attempt": node.attempt,
        "token": token.reveal(),
        "expires_at": rfc3339(claim.ends.wall_ms),
        "remaining_ms": remaining_ms,
        "lease_ms": claim.lease_ms,
        "reclaimed_from": acquired.reclaimed_from,
        "forced": acquired.forced,
        "progress": node.progress,
        "replay": acquired.replay,
        "lost": lost.is_some(),
    });
    for (name, value) in claim.resources.fields() {
        fields[name] = value;
    }
    if let Some(task) = &node.task {
        fields["title"] = json!(task.title);
        fields["input"] = task.input.clone();
        if let Some(blob) = &task.input_blob {
            fields["input_blob"] = blob_json(blob_file(context, &directory, node, blob), blob);
        }
    }
    let mut report = Report::yes(line, fields);
    if let Some(note) = takeover_note(&acquired) {
        report = report.note(note);
    }
    if let Some(refusal) = lost {
        let message = refusal.message();
        report = report.note(format!("the claim that this request took is lost: {}", harmless(&message)));
    }
    if export {
        report = report.lines(export_lines(&token, node, context, &directory));
    }
    if acquired.replay {
        return report;
    }
    let id = node.id.clone();
    report.or_else(move || {
        // The token reached nobody, so nobody could give the node back.
        directory.release(&id, &token, None).map(drop)
    })
}

/// Where a worker finds an input that is too large for the answer; `None`: in no file.
fn blob_file(context: &Context, directory: &Directory, node: &Node, blob: &Blob) -> Option<String> {
    context.located().ok().filter(|located| located.is_folder())?;
    directory.blob_place(node, blob).ok()
}

fn blob_json(path: Option<String>, blob: &Blob) -> serde_json::Value {
    json!({"path": path, "bytes": blob.bytes, "hash": blob.hash})
}

fn export_lines(token: &Token, node: &Node, context: &Context, directory: &Directory) -> Vec<String> {
    let dir = context.dir_for_shell();
    let (generation, attempt) = (node.generation.to_string(), node.attempt.to_string());
    let variables = [
        ("CLAIM_ID", node.id.as_str()),
        ("CLAIM_TOKEN", token.reveal()),
        ("CLAIM_GENERATION", &generation),
        ("CLAIM_ATTEMPT", &attempt),
    ];
    let dir = dir.as_deref().map(|dir| ("CLAIMS_DIR", dir));
    let exported = variables
        .iter()
        .copied()
        .chain(dir)
        .map(|(name, value)| format!("export {name}={}", shell_word(value)));
    // For the shell alone: the environment of a program has no room for a large one.
    let input = node.task.as_ref().map(|task| match &task.input_blob {
        None => format!("CLAIM_INPUT={}; unset CLAIM_INPUT_FILE", shell_word(&task.input.to_string())),
        Some(blob) => match blob_file(context, directory, node, blob) {
            Some(path) => format!("unset CLAIM_INPUT; CLAIM_INPUT_FILE={}", shell_word(&path)),
            None => "unset CLAIM_INPUT CLAIM_INPUT_FILE".to_owned(),
        },
    });
    exported.chain(input).collect()
}

fn would(acquired: &Acquired) -> Report {
    let node = &acquired.node;
    let line = format!(
        "WOULD CLAIM {} generation={} attempt={}",
        harmless(node.id.as_str()),
        node.generation,
        node.attempt
    );
    let fields = json!({
        "id": node.id.as_str(),
        "dry_run": true,
        "generation": node.generation,
        "version": node.version,
        "attempt": node.attempt,
        "reclaimed_from": acquired.reclaimed_from,
        "forced": acquired.forced,
    });
    Report::yes(line, fields)
}
