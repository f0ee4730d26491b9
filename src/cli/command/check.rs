//! `claim check`: a claim, paths, or both.

use claimdir::domain::Checked;
use claimdir::time::human;
use claimdir::{Available, Error, Result};
use serde_json::{Value, json};

use super::settle::{claim_fields, shown};
use crate::cli::args;
use crate::cli::context::Context;
use crate::cli::report::Report;
use crate::cli::text::harmless;

pub(crate) fn run(args: args::Check, context: &Context) -> Result<Report> {
    let named = match args.id {
        None if args.paths.is_empty() => Some(std::env::var("CLAIM_ID").map_err(|_| unnamed())?),
        named => named,
    };
    let node = named.as_deref().map(|id| context.id(id)).transpose()?;
    let token = args.token.as_deref().map(shown).transpose()?;
    let paths = context.paths(&args.paths)?;
    let directory = context.directory()?;
    let (mut lines, mut fields) = (Vec::new(), json!({}));
    match (&node, &token) {
        (Some(node), Some(token)) => match directory.check(node, token)? {
            Ok(checked) => {
                lines.push(held(&checked));
                fields = claim_fields(&checked.node);
                fields["remaining_ms"] = json!(checked.remaining_ms);
            }
            Err(refusal) => return Ok(Report::refused(&refusal)),
        },
        (Some(_), None) => {
            return Err(
                Error::usage("a node is checked by its token").hint("set CLAIM_TOKEN, or leave the node out")
            );
        }
        (None, _) => {}
    }
    if !paths.is_empty() {
        let available = match directory.check_paths(&paths, token.as_ref())? {
            Ok(available) => available,
            Err(refusal) => return Ok(Report::refused(&refusal)),
        };
        lines.extend(available.iter().map(path_line));
        fields["paths"] = available.iter().map(path_json).collect();
    }
    Ok(Report::yes(String::new(), fields).lines(lines))
}

fn unnamed() -> Error {
    Error::usage("which node? Name it, set CLAIM_ID, or ask for a path with --path")
}

fn held(checked: &Checked) -> String {
    let node = &checked.node;
    let left = checked
        .remaining_ms
        .map_or("ends with its process".to_owned(), |ms| format!("ends in {}", human(ms)));
    let owner = node.claim().map_or("", |claim| claim.owner.as_str());
    format!(
        "HELD {} by {} generation={} {left}",
        harmless(node.id.as_str()),
        harmless(owner),
        node.generation
    )
}

fn path_line(available: &Available) -> String {
    let path = harmless(available.path.as_str());
    match &available.by {
        Some(node) => format!("MINE {path} with {}", harmless(node.as_str())),
        None => format!("FREE {path}"),
    }
}

fn path_json(available: &Available) -> Value {
    let state = if available.by.is_some() { "mine" } else { "free" };
    let node = available.by.as_ref().map(|node| node.as_str());
    json!({"path": available.path.as_str(), "state": state, "node": node})
}
