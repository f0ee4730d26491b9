//! `claim where`, `init`, `prune`, `reap`: about the directory itself.

use claimdir::time::{human, rfc3339};
use claimdir::{Idle, Over, Result};
use serde_json::{Value, json};

use super::list::{noting_unreadable, unreadable_json};
use super::outcome::driven;
use crate::cli::args;
use crate::cli::context::Context;
use crate::cli::report::{Report, holder_json};
use crate::cli::text::harmless;

pub(crate) fn locate(context: &Context) -> Result<Report> {
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

pub(crate) fn prune(args: args::Prune, context: &Context) -> Result<Report> {
    let pruned = context.directory()?.prune(args.older, args.dry_run)?;
    let word = if args.dry_run { "would forget" } else { "forgot" };
    let more = |count: usize, what: &str| match count {
        0 => String::new(),
        count => format!(", {count} {what}"),
    };
    let (messages, results) = (more(pruned.messages, "messages"), more(pruned.results, "results"));
    let blobs = more(pruned.blobs, "blobs left over");
    let days = more(pruned.days, "days of the journal");
    let line = format!("{word} {} receipts{messages}{results}{blobs}{days}", pruned.receipts);
    let fields = json!({
        "receipts": pruned.receipts,
        "messages": pruned.messages,
        "results": pruned.results,
        "blobs": pruned.blobs,
        "journal_days": pruned.days,
        "dry_run": args.dry_run,
    });
    Ok(Report::yes(line, fields))
}

pub(crate) fn reap(args: args::Reap, context: &Context) -> Result<Report> {
    let found = context.directory()?.reap_and_watch(args.apply, args.idle)?;
    let fields = json!({
        "claims": found.over.iter().map(over_json).collect::<Vec<_>>(),
        "applied": args.apply,
        "idle": found.idle.iter().map(idle_json).collect::<Vec<_>>(),
        "unreadable": unreadable_json(&found.unreadable),
    });
    let lines = found.over.iter().map(over_line).chain(found.idle.iter().map(idle_line)).collect();
    let report = Report::yes(String::new(), fields).lines(lines);
    let report = noting_unreadable(report, &found.unreadable);
    Ok(if found.over.is_empty() { report.note("no claim is over".to_owned()) } else { report })
}

fn over_line(it: &Over) -> String {
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
}

fn over_json(it: &Over) -> Value {
    json!({
        "id": it.id.as_str(),
        "owner": it.owner,
        "generation": it.generation,
        "attempt": it.attempt,
        "ended_ms_ago": it.ended_ms_ago,
        "became": it.became,
    })
}

fn idle_line(it: &Idle) -> String {
    let owner = driven(&it.holder.owner, it.holder.engine.as_deref());
    format!(
        "{} is live and idle: {} has told of no progress for {} (generation {}, attempt {}, {})",
        harmless(it.id.as_str()),
        harmless(&owner),
        human(it.idle_ms),
        it.holder.generation,
        it.attempt,
        it.holder.until()
    )
}

fn idle_json(it: &Idle) -> Value {
    json!({
        "id": it.id.as_str(),
        "holder": holder_json(&it.holder),
        "attempt": it.attempt,
        "since": rfc3339(it.since_ms),
        "idle_ms": it.idle_ms,
    })
}
