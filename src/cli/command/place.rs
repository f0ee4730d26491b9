//! `claim where`, `init`, `doctor`, `prune`, `reap`: about the directory itself.

use claimdir::store::Gravity;
use claimdir::time::human;
use claimdir::{Code, Error, NodeId, Over, Result, locate};
use serde_json::{Value, json};

use crate::cli::args;
use crate::cli::context::Context;
use crate::cli::report::Report;
use crate::cli::text::harmless;

pub(crate) fn located(context: &Context) -> Result<Report> {
    let located = context.located()?;
    let directory = context.directory()?;
    let owner = context.owner(&directory)?;
    let why = located.why.to_string();
    let there = if located.exists { "" } else { ", not made yet" };
    let lines = vec![
        format!("{} ({}{there})", harmless(&located.path.to_string_lossy()), harmless(&why)),
        format!("owner {} ({})", harmless(&owner.name), owner.source),
    ];
    let fields = json!({
        "why": why,
        "exists": located.exists,
        "owner": owner.name,
        "owner_source": owner.source.to_string(),
    });
    Ok(Report::yes(String::new(), fields).lines(lines))
}

pub(crate) fn init(context: &Context) -> Result<Report> {
    let located = context.located_for_init()?;
    if let Some(above) = located.path.parent().filter(|_| located.is_folder()) {
        std::fs::create_dir_all(above).map_err(|e| claimdir::Error::io("make", above, e))?;
    }
    let made = context.open(located)?.create()?;
    let word = if made { "made" } else { "already there:" };
    let line = format!("{word} {}", harmless(&located.path.to_string_lossy()));
    Ok(Report::yes(line, json!({"created": made, "why": located.why.to_string()})))
}

pub(crate) fn copy(args: args::Copy, context: &Context) -> Result<Report> {
    let from = Context::named(&args.from, locate::locate)?;
    let to = Context::named(&args.to, locate::locate_for_init)?;
    if !from.exists {
        let message = format!("there is no claim directory at {}", from.path.display());
        return Err(Error::new(Code::NoStore, message));
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

pub(crate) fn doctor(context: &Context) -> Result<Report> {
    let checkup = context.directory()?.doctor()?;
    let faults = checkup.findings.iter().filter(|finding| finding.gravity == Gravity::Fault).count();
    let mut lines = vec![format!("{} records read, {faults} faults", checkup.records)];
    let mut findings = Vec::new();
    for finding in &checkup.findings {
        let gravity = match finding.gravity {
            Gravity::Fault => "fault",
            Gravity::Leftover => "leftover",
        };
        lines.push(format!("{gravity}: {}: {}", harmless(&finding.place), harmless(&finding.what)));
        findings.push(json!({"gravity": gravity, "place": finding.place, "what": finding.what}));
    }
    let fields = json!({"records": checkup.records, "faults": faults, "findings": Value::Array(findings)});
    let report = Report::yes(String::new(), fields).lines(lines);
    Ok(if faults == 0 {
        report
    } else {
        report.but(Code::RecordUnreadable, format!("faults found: {faults}"))
    })
}

pub(crate) fn prune(args: args::Prune, context: &Context) -> Result<Report> {
    let pruned = context.directory()?.prune(args.older, args.dry_run)?;
    let word = if args.dry_run { "would forget" } else { "forgot" };
    let more = |count: usize, what: &str| match count {
        0 => String::new(),
        count => format!(", {count} {what}"),
    };
    let (messages, results) = (more(pruned.messages, "messages"), more(pruned.results, "results"));
    let blobs = more(pruned.blobs, "blobs left over");
    let line = format!("{word} {} receipts{messages}{results}{blobs}", pruned.receipts);
    let fields = json!({
        "receipts": pruned.receipts,
        "messages": pruned.messages,
        "results": pruned.results,
        "blobs": pruned.blobs,
        "dry_run": args.dry_run,
    });
    Ok(Report::yes(line, fields))
}

pub(crate) fn reap(args: args::Reap, context: &Context) -> Result<Report> {
    let over = context.directory()?.reap(args.apply)?;
    let line = |it: &Over| {
        let ended = match it.ended_ms_ago {
            Some(ms) => format!("ended {} ago", human(ms)),
            None => "ended with its process".to_owned(),
        };
        let became = it.became.map(|state| format!(", now {state}")).unwrap_or_default();
        let (id, owner) = (harmless(it.id.as_str()), harmless(&it.owner));
        format!(
            "{id} the claim of {owner} {ended} (generation {}, attempt {}){became}",
            it.generation, it.attempt
        )
    };
    let row = |it: &Over| {
        json!({
            "id": it.id.as_str(),
            "owner": it.owner,
            "generation": it.generation,
            "attempt": it.attempt,
            "ended_ms_ago": it.ended_ms_ago,
            "became": it.became,
        })
    };
    let fields = json!({"claims": over.iter().map(row).collect::<Vec<_>>(), "applied": args.apply});
    let report = Report::yes(String::new(), fields).lines(over.iter().map(line).collect());
    Ok(if over.is_empty() { report.note("no claim is over".to_owned()) } else { report })
}
