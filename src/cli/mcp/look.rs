//! The tool that only looks. What it shows is bounded: an agent pays for every word.

use claimdir::Result;
use claimdir::time::parse_when;
use serde_json::{Map, Value, json};

use super::call::{needs, only, paths};
use super::session::Session;
use super::tools::{self, What};
use crate::cli::args::{self, Filter};
use crate::cli::command::{check, list, log, look};
use crate::cli::context::Context;
use crate::cli::prime::state::State;
use crate::cli::report::Report;
use crate::cli::text::harmless;

/// How many rows are shown unless the agent says so, and at the most.
const LIMIT: usize = 20;
const MOST: usize = 200;

/// How many bytes of nodes are shown.
const BYTES: usize = 32 << 10;

pub(super) fn run(
    session: &Session,
    context: &Context,
    call: tools::Look,
    token: Option<String>,
) -> Result<Report> {
    let given = [
        ("id", call.id.is_some()),
        ("token", call.token.is_some()),
        ("paths", !call.paths.is_empty()),
        ("states", !call.states.is_empty()),
        ("queues", !call.queues.is_empty()),
        ("projects", !call.projects.is_empty()),
        ("owner", call.owner.is_some()),
        ("since", call.since.is_some()),
        ("limit", call.limit.is_some()),
    ];
    let (name, takes): (_, &[&str]) = match call.what {
        What::State => ("state", &[]),
        What::List => ("list", &["states", "queues", "projects", "owner", "limit"]),
        What::Show => ("show", &["id"]),
        What::Why => ("why", &["id"]),
        What::Check => ("check", &["id", "token", "paths"]),
        What::Log => ("log", &["id", "since", "limit"]),
    };
    only(name, &given, takes)?;
    let limit = call.limit.unwrap_or(LIMIT).min(MOST);
    let node = || call.id.clone().map(|id| args::Node { id }).ok_or_else(|| needs(name, "id"));
    match call.what {
        What::State => state(session, context),
        What::List => {
            let context = session.context_for(call.owner.clone());
            let report = list::list(listed(&call), &context)?;
            Ok(rows(report, limit))
        }
        What::Show => look::show(node()?, context),
        What::Why => look::why(node()?, context),
        What::Check => {
            if call.id.is_none() && call.paths.is_empty() {
                return Err(needs(name, "id"));
            }
            // Paths alone are asked for with the token only if the agent shows it.
            let token = if call.id.is_some() { token } else { call.token };
            check::run(args::Check { id: call.id, token, paths: paths(&call.paths) }, context)
        }
        What::Log => {
            let since = call.since.as_deref().map(parse_when).transpose()?;
            log::run(args::Log { id: call.id, follow: false, since, limit: Some(limit) }, context)
        }
    }
}

fn listed(call: &tools::Look) -> args::List {
    let filter =
        Filter { states: call.states.clone(), queues: call.queues.clone(), projects: call.projects.clone() };
    args::List { filter, sort: None, reverse: false, paths: false }
}

/// As `claim prime` finds it, with what this server holds.
fn state(session: &Session, context: &Context) -> Result<Report> {
    context.located()?;
    session.look_after();
    let fields = State::read(context, None)?.unwrap_or_default().json();
    let report = Report::yes(String::new(), fields).and_fields(json!({"held_here": session.held()}));
    Ok(report.shorten(|fields| {
        let lines = state_lines(fields);
        let mut left_out = 0;
        for name in ["held", "held_here", "mail", "reviews"] {
            if let Some(Value::Array(rows)) = fields.get_mut(name) {
                left_out += rows.len().saturating_sub(LIMIT);
                rows.truncate(LIMIT);
            }
        }
        fields.insert("left_out".to_owned(), json!(left_out));
        lines
    }))
}

fn state_lines(fields: &Map<String, Value>) -> Vec<String> {
    let rows = |name: &str, row: &dyn Fn(&Value) -> String| {
        let rows = fields.get(name).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let told: Vec<String> = rows.iter().take(LIMIT).map(row).collect();
        let more = rows.len().saturating_sub(LIMIT);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (!told.is_empty()).then(|| told.join(", ") + &more)
    };
    let states = fields.get("states").and_then(Value::as_object);
    let states =
        states.map(|states| states.iter().map(|(name, count)| format!("{count} {name}")).collect::<Vec<_>>());
    let lines = [
        ("you are", fields.get("owner").map(text)),
        ("you hold", rows("held", &|row| text(&row["id"])).or(Some("nothing".to_owned()))),
        ("next", fields.get("next").filter(|next| !next.is_null()).map(|next| text(&next["id"]))),
        ("mail", rows("mail", &|row| format!("{} in {}", row["waiting"], text(&row["box"])))),
        ("to review", rows("reviews", &text)),
        ("nodes", states.filter(|states| !states.is_empty()).map(|states| states.join(", "))),
    ];
    lines.into_iter().filter_map(|(name, told)| Some(format!("{name}: {}", told?))).collect()
}

fn text(value: &Value) -> String {
    value.as_str().map(|text| harmless(text).into_owned()).unwrap_or_default()
}

/// The first nodes only, and how many are left out.
fn rows(report: Report, limit: usize) -> Report {
    report.shorten(|fields: &mut Map<String, Value>| {
        let Some(Value::Array(nodes)) = fields.get_mut("nodes") else { return Vec::new() };
        let all = nodes.len();
        let mut bytes = 0;
        nodes.truncate(limit);
        let fit = nodes.iter().take_while(|node| {
            bytes += node.to_string().len();
            bytes <= BYTES
        });
        let fit = fit.count();
        nodes.truncate(fit.max(1));
        let mut lines: Vec<String> = nodes.iter().map(line).collect();
        let left_out = all - nodes.len();
        if left_out > 0 {
            lines.push(format!("and {left_out} more"));
        }
        fields.insert("left_out".to_owned(), json!(left_out));
        lines
    })
}

/// A node in a line, from what is told of it to programs.
fn line(node: &Value) -> String {
    let (id, holder) = (text(&node["id"]), &node["holder"]["owner"]);
    match holder {
        Value::String(_) => format!("{id} claimed by {}", text(holder)),
        _ if node["takeable"] == true => format!("{id} ready"),
        _ if node["state"] == "ready" => format!("{id} waiting"),
        _ => format!("{id} {}", text(&node["state"])),
    }
}
