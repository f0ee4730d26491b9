//! `claim list`. It writes nothing and makes no directory.

use std::cmp::Ordering;

use claimdir::domain::{Node, natural};
use claimdir::{Code, Detail, Directory, NodeId, Reserved, Result, Roots, Unreadable};
use serde_json::{Value, json};

use super::look::{Now, node_json, now};
use crate::cli::args::{self, Order, StateFilter};
use crate::cli::context::Context;
use crate::cli::report::{Report, holder_json};
use crate::cli::table::{self, Cells};
use crate::cli::text::harmless;

pub(crate) fn list(args: args::List, context: &Context) -> Result<Report> {
    args.filter.check()?;
    let directory = context.directory()?;
    let (global, scope) = (&context.global, context.scope()?);
    if args.paths {
        return reserved(&directory, global.owner.as_deref());
    }
    let width = if global.json || global.quiet { None } else { table::width() };
    let form = match width {
        _ if global.json => Form::Json,
        Some(_) => Form::Cells,
        None => Form::Line,
    };
    let (owner, wanted) = (global.owner.as_deref(), &args.filter);
    let detail = if form == Form::Json { Detail::Whole } else { Detail::Brief };
    let roots = Roots::default();
    let seen = directory.survey(scope.as_ref(), detail, |node| {
        let mine = owner.is_none_or(|owner| node.claim().is_some_and(|claim| claim.owner == owner));
        if !mine || !wanted.wants(&node) {
            return None;
        }
        let now = now(&directory, &node, &roots);
        wanted.wants_state(now.state).then(|| Row::of(node, &now, args.sort, form))
    })?;
    let mut rows = seen.found;
    match args.sort {
        Some(_) => rows.sort_by(|one, other| one.place.order(&other.place, args.reverse)),
        None if args.reverse => rows.reverse(),
        None => {}
    }
    let mut report = Report::yes(String::new(), Value::Null).lines(Vec::new());
    if rows.is_empty() {
        report = report.note("no such nodes".to_owned());
    }
    let (mut lines, mut cells, mut nodes) = (Vec::new(), Vec::new(), Vec::new());
    for row in rows {
        match row.told {
            Told::Line(line) => lines.push(line),
            Told::Cells(of_node) => cells.push(*of_node),
            Told::Json(node) => nodes.push(node),
        }
    }
    if let Some(width) = width.filter(|_| !cells.is_empty()) {
        lines = table::lines(cells, width);
    }
    let fields = json!({"nodes": nodes, "unreadable": unreadable_json(&seen.unreadable)});
    Ok(with_unreadable(report.with_fields(fields).lines(lines), &seen.unreadable))
}

/// What is said of a node.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Line,
    Cells,
    Json,
}

enum Told {
    Line(String),
    Cells(Box<Cells>),
    Json(Value),
}

struct Row {
    place: Place,
    told: Told,
}

impl Row {
    fn of(node: Node, now: &Now, order: Option<Order>, form: Form) -> Row {
        let place = Place::of(&node, now, order);
        let told = match form {
            Form::Line => Told::Line(line(&node.id, node.generation, &now.says)),
            Form::Cells => Told::Cells(Box::new(cells(node, now))),
            Form::Json => Told::Json(node_json(&node, now)),
        };
        Row { place, told }
    }
}

fn line(id: &NodeId, generation: u64, says: &str) -> String {
    format!("{} generation={generation} {}", harmless(id.as_str()), harmless(says))
}

fn cells(node: Node, now: &Now) -> Cells {
    let claim = node.claim().filter(|_| now.state == StateFilter::Claimed);
    Cells {
        id: node.id.to_string(),
        state: now.state.name(),
        owner: claim.map(|claim| claim.owner.clone()),
        generation: node.generation,
        left_ms: claim.and(now.remaining_ms),
        of_task: node.task.map(|task| table::OfTask {
            priority: task.priority,
            queue: task.queue,
            project: task.project,
            title: task.title,
        }),
    }
}

/// Where a node stands in an order: by what it has of it, and then by its id. Both are empty where no order was asked for.
#[derive(Default)]
struct Place {
    by: Option<By>,
    id: String,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum By {
    Id,
    Turn(u8, i64),
    Moment(i64),
    State(StateFilter),
    Owner(String),
}

impl Place {
    fn of(node: &Node, now: &Now, order: Option<Order>) -> Place {
        let Some(order) = order else { return Place::default() };
        let claim = node.claim().filter(|_| now.state == StateFilter::Claimed);
        let task = node.task.as_ref();
        let by = match order {
            Order::Id => Some(By::Id),
            Order::Priority => task.map(|task| By::Turn(task.priority, task.submitted_ms)),
            Order::Age => {
                let since_ms = task.map(|task| task.submitted_ms);
                since_ms.or(node.claim().map(|claim| claim.acquired_ms)).map(By::Moment)
            }
            Order::State => Some(By::State(now.state)),
            Order::Owner => claim.map(|claim| By::Owner(claim.owner.clone())),
            Order::Expires => claim.and(now.remaining_ms).map(By::Moment),
        };
        Place { by, id: natural(&node.id) }
    }

    /// What has none of what is ordered by comes last, also in reverse.
    fn order(&self, other: &Place, reverse: bool) -> Ordering {
        let missing = self.by.is_none().cmp(&other.by.is_none());
        let (by, id) = (self.by.cmp(&other.by), self.id.cmp(&other.id));
        let is_of_ids = matches!(self.by, Some(By::Id));
        missing.then(if reverse { by.reverse() } else { by }).then(if reverse && is_of_ids {
            id.reverse()
        } else {
            id
        })
    }
}

pub(super) fn unreadable_json(unreadable: &[Unreadable]) -> Vec<Value> {
    let json = |bad: &Unreadable| json!({"id": bad.id.as_str(), "code": bad.error.code().name(), "message": bad.error.to_string()});
    unreadable.iter().map(json).collect()
}

/// Names what can't be read; the answer is then no, whatever else it tells.
pub(super) fn with_unreadable(report: Report, unreadable: &[Unreadable]) -> Report {
    let report = noting_unreadable(report, unreadable);
    if unreadable.is_empty() {
        return report;
    }
    report.but(Code::RecordUnreadable, format!("records that can't be read: {}", unreadable.len()))
}

/// Names what can't be read, and leaves the answer.
pub(super) fn noting_unreadable(report: Report, unreadable: &[Unreadable]) -> Report {
    let named = |report: Report, bad: &Unreadable| report.note(harmless(&bad.error.to_string()).into_owned());
    unreadable.iter().fold(report, named)
}

/// The paths that are reserved now.
fn reserved(directory: &Directory, owner: Option<&str>) -> Result<Report> {
    let mut reserved = directory.reserved()?;
    reserved.retain(|it| owner.is_none_or(|owner| it.holder.as_ref().is_some_and(|h| h.owner == owner)));
    let line = |it: &Reserved| {
        let held = match &it.holder {
            Some(holder) => {
                format!("by {} generation={}, {}", holder.owner, holder.generation, holder.until())
            }
            None => "by a node whose record can't be read".to_owned(),
        };
        format!("{} {} {}", harmless(it.path.as_str()), harmless(it.node.as_str()), harmless(&held))
    };
    let row = |it: &Reserved| json!({"path": it.path.as_str(), "node": it.node.as_str(), "holder": it.holder.as_ref().map(holder_json)});
    let fields = json!({"paths": reserved.iter().map(row).collect::<Vec<_>>()});
    let report = Report::yes(String::new(), fields).lines(reserved.iter().map(line).collect());
    Ok(if reserved.is_empty() { report.note("no path is reserved".to_owned()) } else { report })
}
