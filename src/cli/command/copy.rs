//! `claim copy`.

use std::path::Path;

use claimdir::{Code, Error, NodeId, Result, locate};
use serde_json::json;

use crate::cli::args;
use crate::cli::context::Context;
use crate::cli::report::Report;
use crate::cli::text::harmless;

pub(crate) fn run(args: args::Copy, context: &Context) -> Result<Report> {
    let from = Context::named(&args.from, locate::locate)?;
    let to = Context::named(&args.to, locate::locate_for_init)?;
    if !from.exists {
        let message = format!("there is no claim directory at {}", from.path.display());
        return Err(Error::new(Code::NoStore, message));
    }
    if from.overlaps(&to) {
        let shown = |place: &Path| harmless(&place.to_string_lossy()).into_owned();
        let (from, to) = (shown(&from.path), shown(&to.path));
        let message = format!("{from} can't be copied to {to}: they are one, or one is in the other");
        return Err(Error::usage(message).hint("copy to a place apart from it"));
    }
    let (source, target) = (context.open(&from)?, context.open(&to)?);
    let copied = match source.copy_to(&target, args.live)? {
        Ok(copied) => copied,
        Err(live) => return Ok(still_live(&live)),
    };
    let live = match copied.live.len() {
        0 => String::new(),
        count => format!(", {count} of them held"),
    };
    let place = to.path.to_string_lossy();
    let line =
        format!("copied {} nodes{live} and {} entries to {}", copied.nodes, copied.others, harmless(&place));
    let fields =
        json!({"nodes": copied.nodes, "entries": copied.others, "live": ids(&copied.live), "to": place});
    Ok(Report::yes(line, fields)
        .note("from now on name the copy with CLAIMS_DIR, everywhere at once".to_owned()))
}

/// Refuses to copy what somebody is at.
fn still_live(live: &[NodeId]) -> Report {
    let some: Vec<_> = live.iter().take(5).map(|id| harmless(id.as_str())).collect();
    let more = if live.len() > some.len() { ", …" } else { "" };
    let message = format!("{} claims are live: {}{more}; nothing was copied", live.len(), some.join(", "));
    let line = format!("refused — {message}");
    Report::yes(line, json!({"live": ids(live)})).but(Code::ClaimHeld, message)
}

fn ids(nodes: &[NodeId]) -> Vec<&str> {
    nodes.iter().map(NodeId::as_str).collect()
}
