//! `claim renew`, `release`, `complete`, `reject`, `retry`.

use claimdir::domain::{Node, Retry};
use claimdir::time::{rfc3339, rfc3339_seconds};
use claimdir::{Error, NodeId, Renewal, Result, Text, Token};
use serde_json::{Value, json};

use crate::cli::args;
use crate::cli::context::Context;
use crate::cli::json::{Argument, argument, large_argument};
use crate::cli::report::Report;
use crate::cli::text::harmless;

fn held(args: &args::Held, context: &Context) -> Result<(NodeId, Token)> {
    Ok((context.id(&args.id)?, shown(&args.token)?))
}

pub(crate) fn shown(token: &str) -> Result<Token> {
    if token.is_empty() {
        return Err(
            Error::usage("the token is empty").hint("set CLAIM_TOKEN to what `claim acquire` printed")
        );
    }
    Ok(Token::shown(token))
}

/// How a line ends that tells an old answer again.
pub(crate) fn again(replay: bool) -> &'static str {
    if replay { " (replay)" } else { "" }
}

/// What every answer about a held node has.
pub(crate) fn claim_fields(node: &Node) -> Value {
    let claim = node.claim();
    json!({
        "id": node.id.as_str(),
        "owner": claim.map(|claim| &claim.owner),
        "generation": node.generation,
        "version": node.version,
        "attempt": node.attempt,
        "state": node.state.name(),
        "expires_at": claim.map(|claim| rfc3339(claim.ends.wall_ms)),
        "lease_ms": claim.map(|claim| claim.lease_ms),
    })
}

pub(crate) fn renew(args: args::Renew, context: &Context) -> Result<Report> {
    let (id, token) = held(&args.held, context)?;
    let progress = args.progress.as_deref().map(|text| argument("--progress", text)).transpose()?;
    let renewal = Renewal { lease: args.lease, progress };
    Ok(match context.directory_once(&args.once)?.renew(&id, &token, &renewal)? {
        Ok(renewed) => {
            let claim = renewed.node.claim();
            let expires = claim.map(|claim| rfc3339_seconds(claim.ends.wall_ms)).unwrap_or_default();
            let (id, generation) = (harmless(id.as_str()), renewed.node.generation);
            let mut fields = claim_fields(&renewed.node);
            fields["remaining_ms"] = json!(claim.map(|claim| claim.lease_ms));
            fields["replay"] = json!(renewed.replay);
            let again = again(renewed.replay);
            Report::yes(format!("RENEWED {id} generation={generation} expires={expires}{again}"), fields)
        }
        Err(refusal) => Report::refused(&refusal),
    })
}

pub(crate) fn release(args: args::Release, context: &Context) -> Result<Report> {
    let (id, token) = held(&args.held, context)?;
    let block = args.block.as_deref();
    if block.is_some_and(|reason| reason.trim().is_empty()) {
        return Err(Error::usage("--block needs a reason"));
    }
    Ok(match context.directory_once(&args.once)?.release(&id, &token, block)? {
        Ok(released) => {
            let word = if block.is_some() { "BLOCKED" } else { "RELEASED" };
            let (generation, again) = (released.node.generation, again(released.replay));
            let line = format!("{word} {} generation={generation}{again}", harmless(id.as_str()));
            let mut fields = claim_fields(&released.node);
            fields["replay"] = json!(released.replay);
            Report::yes(line, fields)
        }
        Err(refusal) => Report::refused(&refusal),
    })
}

pub(crate) fn complete(args: args::Complete, context: &Context) -> Result<Report> {
    let (id, token) = held(&args.held, context)?;
    let result = args.result.as_deref().map(|text| large_argument("--result", text)).transpose()?;
    let directory = context.directory_once(&args.once)?;
    let answer = match result.unwrap_or(Argument::Value(Value::Null)) {
        Argument::Value(value) => directory.complete(&id, &token, &value),
        Argument::Large(mut from) => directory.complete_from(&id, &token, &mut from),
    };
    Ok(match answer? {
        Ok(completed) => {
            let again = again(completed.replay);
            let line =
                format!("DONE {} generation={}{again}", harmless(id.as_str()), completed.node.generation);
            let mut fields = claim_fields(&completed.node);
            fields["replay"] = json!(completed.replay);
            Report::yes(line, fields)
        }
        Err(refusal) => Report::refused(&refusal),
    })
}

pub(crate) fn reject(args: args::Reject, context: &Context) -> Result<Report> {
    let (id, token) = held(&args.held, context)?;
    let reason = args.reason.map(|reason| Text::new("a reason", reason)).transpose()?;
    Ok(match context.directory_once(&args.once)?.reject(&id, &token, reason.as_ref())? {
        Ok(rejected) => {
            let (id, generation) = (harmless(id.as_str()), rejected.node.generation);
            let (why, again) = (because(reason.as_ref()), again(rejected.replay));
            let mut fields = claim_fields(&rejected.node);
            fields["reason"] = json!(reason.as_ref().map(Text::as_str));
            fields["replay"] = json!(rejected.replay);
            Report::yes(format!("FAILED {id} generation={generation}{why}{again}"), fields)
        }
        Err(refusal) => Report::refused(&refusal),
    })
}

/// How a line goes on that gives a reason.
pub(crate) fn because(reason: Option<&Text>) -> String {
    reason.map(|reason| format!(": {}", harmless(reason.as_str()))).unwrap_or_default()
}

pub(crate) fn retry(args: args::Retry, context: &Context) -> Result<Report> {
    let (id, token) = held(&args.held, context)?;
    let how = Retry { reason: args.reason, after: args.after.unwrap_or_default() };
    Ok(match context.directory_once(&args.once)?.retry(&id, &token, &how)? {
        Ok(given_back) => {
            let node = &given_back.node;
            let (id, again) = (harmless(id.as_str()), again(given_back.replay));
            let mut fields = claim_fields(node);
            fields["replay"] = json!(given_back.replay);
            let line = match &node.not_before {
                Some(delay) => {
                    fields["not_before"] = json!(rfc3339(delay.until.wall_ms));
                    let at = rfc3339_seconds(delay.until.wall_ms);
                    format!("RETRY {id} attempt={} not-before={at}{again}", node.attempt)
                }
                None => format!("FAILED {id} attempt={}: its attempts are used up{again}", node.attempt),
            };
            Report::yes(line, fields)
        }
        Err(refusal) => Report::refused(&refusal),
    })
}
