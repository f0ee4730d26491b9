//! The panes: which columns each has, and what stands in them.

use claimdir::domain::{Event, What};
use claimdir::{PoolSeen, QuotaSeen};

use super::model::{Board, Queue};
use super::row::Row;
use super::state::Pane;
use super::table::{Cell, Column, Line, Look};
use super::text::{brief, span};
use crate::cli::args::StateFilter;

impl Pane {
    pub(crate) fn title(self) -> &'static str {
        match self {
            Pane::Running => "RUNNING",
            Pane::Waiting => "WAITING",
            Pane::Failed => "FAILED",
            Pane::Queues => "QUEUES",
            Pane::Events => "EVENTS",
            Pane::Nodes => "ALL NODES",
        }
    }

    /// What stands in it when nothing else does.
    pub(crate) fn when_empty(self) -> &'static str {
        match self {
            Pane::Running => "nobody holds a node now",
            Pane::Waiting => "nothing waits and nothing is blocked",
            Pane::Failed => "nothing has failed",
            Pane::Queues => "there are no tasks, no pools and no quotas",
            Pane::Events => "nothing has happened in the last 24 hours",
            Pane::Nodes => "there are no nodes yet: `claim add` and `claim acquire` make them",
        }
    }

    pub(crate) fn columns(self) -> &'static [Column] {
        const RUNNING: [Column; 10] = [
            Column::text("", 48, 0),
            Column::text("OWNER", 24, 1),
            Column::text("ENGINE", 16, 3),
            Column::number("LEFT", 0),
            Column::number("GEN", 4),
            Column::number("TRY", 3),
            Column::text("WHERE", 28, 5),
            Column::text("QUEUE", 16, 7),
            Column::rest("PROGRESS", 2),
            Column::text("TITLE", 32, 8),
        ];
        const WAITING: [Column; 6] = [
            Column::text("", 48, 0),
            Column::rest("FOR", 0),
            Column::number("AT MOST", 1),
            Column::number("TRY", 5),
            Column::text("QUEUE", 16, 6),
            Column::text("TITLE", 32, 7),
        ];
        const FAILED: [Column; 7] = [
            Column::text("", 48, 0),
            Column::rest("WHY", 0),
            Column::number("TRY", 1),
            Column::text("BY", 24, 5),
            Column::number("AGO", 2),
            Column::text("QUEUE", 16, 6),
            Column::text("TITLE", 32, 7),
        ];
        const QUEUES: [Column; 7] = [
            Column::text("", 32, 0),
            Column::number("READY", 1),
            Column::number("WAITS", 2),
            Column::number("CLAIMED", 2),
            Column::number("FAILED", 2),
            Column::number("DONE", 5),
            Column::rest("", 0),
        ];
        const EVENTS: [Column; 5] = [
            Column::text("", 48, 0),
            Column::text("WHAT", 16, 0),
            Column::text("BY", 24, 1),
            Column::number("AGO", 0),
            Column::rest("WHY", 2),
        ];
        const NODES: [Column; 8] = [
            Column::text("", 48, 0),
            Column::text("STATE", 9, 0),
            Column::text("OWNER", 24, 2),
            Column::number("LEFT", 1),
            Column::number("GEN", 5),
            Column::number("TRY", 4),
            Column::text("QUEUE", 16, 6),
            Column::rest("TITLE, OR WHY", 3),
        ];
        match self {
            Pane::Running => &RUNNING,
            Pane::Waiting => &WAITING,
            Pane::Failed => &FAILED,
            Pane::Queues => &QUEUES,
            Pane::Events => &EVENTS,
            Pane::Nodes => &NODES,
        }
    }

    /// A row of it, `age_ms` after it was read.
    pub(crate) fn line(self, board: &Board, item: usize, age_ms: i64) -> Option<Line> {
        if self == Pane::Queues {
            return shared_line(board, item, age_ms);
        }
        if self == Pane::Events {
            return board
                .events
                .get(item)
                .map(|event| event_line(event, board.at.wall_ms.saturating_add(age_ms)));
        }
        let row = board.rows.get(item)?;
        let now_ms = board.at.wall_ms.saturating_add(age_ms);
        let left = |look| (left(row, age_ms), look);
        Some(match self {
            Pane::Running => {
                let ends = ends_soon(row, age_ms);
                let look = if ends { Look::Bad } else { Look::Good };
                let cells = vec![
                    plain(&row.id),
                    plain(row.owner.as_deref().unwrap_or_default()),
                    plain(row.engine.as_deref().unwrap_or_default()),
                    left(look),
                    plain(&row.generation.to_string()),
                    plain(&row.attempts()),
                    plain(row.place.as_deref().unwrap_or_default()),
                    plain(row.queue.as_deref().unwrap_or_default()),
                    plain(&row.progress.as_ref().map(brief).unwrap_or_default()),
                    plain(row.title.as_deref().unwrap_or_default()),
                ];
                Line { mark: if ends { '!' } else { ' ' }, cells }
            }
            Pane::Waiting => {
                let look = if row.state == StateFilter::Blocked { Look::Bad } else { Look::Warn };
                let cells = vec![
                    plain(&row.id),
                    (row.why.clone().unwrap_or_default(), look),
                    left(Look::Plain),
                    plain(&row.attempts()),
                    plain(row.queue.as_deref().unwrap_or_default()),
                    plain(row.title.as_deref().unwrap_or_default()),
                ];
                Line { mark: ' ', cells }
            }
            Pane::Failed => {
                let why = row.why.as_deref().unwrap_or("no reason was given");
                let cells = vec![
                    plain(&row.id),
                    (format!("{}: {why}", row.state.name()), Look::Bad),
                    plain(&row.attempts()),
                    plain(row.owner.as_deref().unwrap_or_default()),
                    plain(&row.since_ms.map(|at| span(now_ms.saturating_sub(at))).unwrap_or_default()),
                    plain(row.queue.as_deref().unwrap_or_default()),
                    plain(row.title.as_deref().unwrap_or_default()),
                ];
                Line { mark: ' ', cells }
            }
            Pane::Queues | Pane::Events => return None,
            Pane::Nodes => {
                let says = row.title.as_ref().or(row.why.as_ref()).cloned();
                let cells = vec![
                    plain(&row.id),
                    (row.state.name().to_owned(), look(row.state)),
                    plain(row.owner.as_deref().unwrap_or_default()),
                    left(Look::Plain),
                    plain(&row.generation.to_string()),
                    plain(&row.attempts()),
                    plain(row.queue.as_deref().unwrap_or_default()),
                    plain(&says.or_else(|| row.progress.as_ref().map(brief)).unwrap_or_default()),
                ];
                Line { mark: ' ', cells }
            }
        })
    }
}

fn plain(text: &str) -> Cell {
    (text.to_owned(), Look::Plain)
}

/// The colour that goes with a state's name.
pub(crate) fn look(state: StateFilter) -> Look {
    match state {
        StateFilter::Claimed => Look::Good,
        StateFilter::Waiting => Look::Warn,
        StateFilter::Blocked | StateFilter::Failed | StateFilter::Expired => Look::Bad,
        StateFilter::Cancelled | StateFilter::Done => Look::Dim,
        StateFilter::Ready => Look::Plain,
    }
}

/// How much is left of what passes by itself.
fn left(row: &Row, age_ms: i64) -> String {
    match row.left_ms.map(|left| left.saturating_sub(age_ms)) {
        Some(left) if left <= 0 => "over".to_owned(),
        Some(left) => span(left),
        // As long as its process lives.
        None if row.state == StateFilter::Claimed => "process".to_owned(),
        None => String::new(),
    }
}

/// Less than a fifth of the lease is left: it should have been renewed at a third.
fn ends_soon(row: &Row, age_ms: i64) -> bool {
    row.left_ms.zip(row.lease_ms).is_some_and(|(left, lease)| left.saturating_sub(age_ms) < lease / 5)
}

impl Board {
    /// The queues, pools and quotas, those that hold something up first.
    pub(crate) fn shared(&self) -> Vec<usize> {
        let mut all: Vec<usize> = (0..self.queues.len() + self.pools.len() + self.quotas.len()).collect();
        all.sort_by_key(|item| shared_line(self, *item, 0).is_some_and(|line| line.mark != '!'));
        all
    }
}

fn shared_line(board: &Board, item: usize, age_ms: i64) -> Option<Line> {
    if let Some(queue) = board.queues.get(item) {
        return Some(queue_line(queue, board.at.wall_ms.saturating_add(age_ms)));
    }
    let item = item - board.queues.len();
    if let Some(pool) = board.pools.get(item) {
        return Some(pool_line(pool));
    }
    board.quotas.get(item - board.pools.len()).map(|quota| quota_line(quota, age_ms))
}

fn queue_line(queue: &Queue, now_ms: i64) -> Line {
    let count = |states: &[StateFilter], look| {
        let count: u64 = states.iter().map(|state| queue.counts.of(*state)).sum();
        (count.to_string(), if count == 0 { Look::Dim } else { look })
    };
    let paused = queue.paused.as_ref().map(|halt| {
        let ago = span(now_ms.saturating_sub(halt.at.wall_ms));
        (format!("PAUSED {ago} ago {}", halt.by_and_why()), Look::Warn)
    });
    let cells = vec![
        plain(&queue.title()),
        count(&[StateFilter::Ready], Look::Plain),
        count(&[StateFilter::Waiting, StateFilter::Blocked], Look::Warn),
        count(&[StateFilter::Claimed], Look::Good),
        count(&[StateFilter::Failed, StateFilter::Expired], Look::Bad),
        count(&[StateFilter::Done], Look::Plain),
        paused.unwrap_or_else(|| plain("")),
    ];
    Line { mark: if queue.paused.is_some() { '!' } else { ' ' }, cells }
}

/// A line without counts.
fn noted(title: String, note: String, mark: char, look: Look) -> Line {
    let mut cells = vec![plain(&title)];
    cells.extend((0..5).map(|_| plain("")));
    cells.push((note, look));
    Line { mark, cells }
}

fn pool_line(pool: &PoolSeen) -> Line {
    let used = pool.used.len() as u64;
    let is_full = used >= pool.slots;
    let users: Vec<String> = pool
        .used
        .iter()
        .map(|(node, holder)| match holder {
            Some(holder) => format!("{node} by {}", holder.owner),
            None => node.to_string(),
        })
        .collect();
    let (word, look) = if is_full { ("FULL ", Look::Warn) } else { ("", Look::Plain) };
    let users = if users.is_empty() { String::new() } else { format!(": {}", users.join(", ")) };
    let note = format!("{word}{used} of {}{users}", pool.slots);
    noted(format!("pool {}", pool.name), note, if is_full { '!' } else { ' ' }, look)
}

fn quota_line(quota: &QuotaSeen, age_ms: i64) -> Line {
    let is_used_up = quota.used >= quota.rate.limit();
    let more =
        quota.next_free_in_ms.map(|ms| format!(", more in {}", span(ms.saturating_sub(age_ms).max(0))));
    let (word, look) = if is_used_up { ("USED UP ", Look::Warn) } else { ("", Look::Plain) };
    let note = format!("{word}{} used of {}{}", quota.used, quota.rate, more.unwrap_or_default());
    noted(format!("quota {}", quota.name), note, if is_used_up { '!' } else { ' ' }, look)
}

fn event_line(event: &Event, now_ms: i64) -> Line {
    let look = match event.what {
        What::Failed | What::Rejected | What::Expired | What::Blocked | What::GivenBack => Look::Bad,
        What::Retried | What::Reclaimed | What::Forced | What::Cancelled => Look::Warn,
        What::Claimed | What::Completed => Look::Good,
        _ => Look::Plain,
    };
    let from = event.from.as_ref().map(|from| format!("from {from}"));
    let accepted = event.accepted.map(|accepted| if accepted { "accepted" } else { "rejected" }.to_owned());
    let why: Vec<String> = [accepted, from, event.reason.clone()].into_iter().flatten().collect();
    let cells = vec![
        plain(event.id.as_str()),
        (event.what.name().to_owned(), look),
        plain(event.by.as_deref().unwrap_or_default()),
        plain(&span(now_ms.saturating_sub(event.at_ms).max(0))),
        plain(&why.join(", ")),
    ];
    Line { mark: ' ', cells }
}
