//! `claim pool set`, `show`, `run`, and `claim quota set`, `show`.

use claimdir::domain::Holder;
use claimdir::time::human;
use claimdir::{Code, Name, NodeId, PoolSeen, QuotaSeen, Rate, Result};
use serde_json::{Value, json};

use super::run as running;
use crate::cli::args::{self, Pool, Quota};
use crate::cli::context::Context;
use crate::cli::report::{Report, holder_json, word};
use crate::cli::text::{harmless, shell_word};

pub(crate) fn run(command: Pool, context: &Context) -> Result<Report> {
    match command {
        Pool::Set(args) => set(args, context),
        Pool::Show(args) => show(args, context),
        Pool::Run(args) => Ok(running::in_pool(args, context)),
    }
}

fn set(args: args::PoolSet, context: &Context) -> Result<Report> {
    let name = Name::new(args.name)?;
    let changed = context.directory_to_write()?.set_pool(&name, args.slots)?;
    let line = format!("SET pool {} slots={}{}", harmless(name.as_str()), args.slots, as_before(changed));
    Ok(Report::yes(line, json!({"pool": name.as_str(), "slots": args.slots, "changed": changed})))
}

fn as_before(changed: bool) -> &'static str {
    if changed { "" } else { " (as before)" }
}

fn show(args: args::ShowOf, context: &Context) -> Result<Report> {
    let directory = context.directory()?;
    let Some(name) = args.name else {
        let pools = directory.pools()?;
        let fields = json!({"pools": pools.iter().map(pool_json).collect::<Vec<_>>()});
        let report = Report::yes(String::new(), fields).lines(pools.iter().map(pool_line).collect());
        return Ok(if pools.is_empty() { report.note("no pools".to_owned()) } else { report });
    };
    let name = Name::new(name)?;
    let Some(pool) = directory.pool(&name)? else { return Ok(unknown("pool", &name, "N")) };
    let slots = pool.used.iter().map(slot_line);
    let lines = std::iter::once(pool_line(&pool)).chain(slots).collect();
    Ok(Report::yes(String::new(), pool_json(&pool)).lines(lines))
}

fn pool_line(pool: &PoolSeen) -> String {
    format!("{} slots={} used={}", harmless(pool.name.as_str()), pool.slots, pool.used.len())
}

fn slot_line((node, holder): &(NodeId, Option<Holder>)) -> String {
    let held = match holder {
        Some(holder) => format!("by {} generation={}, {}", holder.owner, holder.generation, holder.until()),
        None => "by a node whose record can't be read".to_owned(),
    };
    format!("  {} {}", harmless(node.as_str()), harmless(&held))
}

fn pool_json(pool: &PoolSeen) -> Value {
    let holder = |(node, holder): &(NodeId, Option<Holder>)| json!({"node": node.as_str(), "holder": holder.as_ref().map(holder_json)});
    let holders: Vec<Value> = pool.used.iter().map(holder).collect();
    json!({"pool": pool.name.as_str(), "slots": pool.slots, "used": pool.used.len(), "holders": holders})
}

pub(crate) fn quota(command: Quota, context: &Context) -> Result<Report> {
    match command {
        Quota::Set(args) => set_quota(args, context),
        Quota::Show(args) => show_quota(args, context),
    }
}

fn set_quota(args: args::QuotaSet, context: &Context) -> Result<Report> {
    let (name, rate) = (Name::new(args.name)?, Rate::parse(&args.rate)?);
    let changed = context.directory_to_write()?.set_quota(&name, rate)?;
    let line = format!("SET quota {}, {rate}{}", harmless(name.as_str()), as_before(changed));
    let (limit, period_ms) = (rate.limit(), rate.period_ms());
    let fields = json!({"quota": name.as_str(), "limit": limit, "period_ms": period_ms, "changed": changed});
    Ok(Report::yes(line, fields))
}

fn show_quota(args: args::ShowOf, context: &Context) -> Result<Report> {
    let directory = context.directory()?;
    let Some(name) = args.name else {
        let quotas = directory.quotas()?;
        let fields = json!({"quotas": quotas.iter().map(quota_json).collect::<Vec<_>>()});
        let report = Report::yes(String::new(), fields).lines(quotas.iter().map(quota_line).collect());
        return Ok(if quotas.is_empty() { report.note("no quotas".to_owned()) } else { report });
    };
    let name = Name::new(name)?;
    Ok(match directory.quota(&name)? {
        Some(quota) => Report::yes(quota_line(&quota), quota_json(&quota)),
        None => unknown("quota", &name, "100/1h"),
    })
}

fn quota_line(quota: &QuotaSeen) -> String {
    let free = quota.next_free_in_ms.map(|ms| format!(", more is free in {}", human(ms)));
    let name = harmless(quota.name.as_str());
    format!("{name} {}, used={}{}", quota.rate, quota.used, free.unwrap_or_default())
}

fn quota_json(quota: &QuotaSeen) -> Value {
    json!({
        "quota": quota.name.as_str(),
        "limit": quota.rate.limit(),
        "period_ms": quota.rate.period_ms(),
        "used": quota.used,
        "remaining_ms": quota.next_free_in_ms,
    })
}

/// There is none of that name.
fn unknown(what: &str, name: &Name, example: &str) -> Report {
    let message = format!("there is no {what} {name}");
    let line = format!("{} {} — {}", word(Code::NotFound), harmless(name.as_str()), harmless(&message));
    let hint = format!("`claim {what} set {} {example}` makes one", shell_word(name.as_str()));
    Report::yes(line, json!({what: name.as_str()})).but(Code::NotFound, message).hint(hint)
}
