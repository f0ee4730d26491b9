//! Nodes as a table on a terminal, no wider than that.

use std::io::{self, IsTerminal};

use claimdir::Name;
use claimdir::time::human;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Row, Table, Width, presets};

use super::text::harmless;

/// What a node has to say in its row. Texts are as recorded.
pub(crate) struct Cells {
    pub(crate) id: String,
    pub(crate) state: &'static str,
    pub(crate) owner: Option<String>,
    pub(crate) generation: u64,
    pub(crate) left_ms: Option<i64>,
    pub(crate) of_task: Option<OfTask>,
}

/// What only a task has.
pub(crate) struct OfTask {
    pub(crate) priority: u8,
    pub(crate) queue: Name,
    pub(crate) project: Option<Name>,
    pub(crate) title: Option<String>,
}

/// The width of the terminal that standard output is; `None`: it is none.
pub(crate) fn width() -> Option<u16> {
    let out = io::stdout();
    if !out.is_terminal() {
        return None;
    }
    let width = rustix::termios::tcgetwinsize(&out).map_or(0, |size| size.ws_col);
    Some(if width > 0 { width } else { 80 })
}

/// A column: its name, how its cells are aligned, the largest share of the width that it gets in percent if that is
/// limited, and a node's cell.
type Column = (&'static str, CellAlignment, Option<u16>, fn(&Cells) -> String);

const NONE: &str = "-";

/// The lines of a table, its head first. Queues and projects are left out where all nodes' are the same.
pub(crate) fn lines(rows: Vec<Cells>, width: u16) -> Vec<String> {
    let mut columns: Vec<Column> = vec![
        ("ID", CellAlignment::Left, Some(40), |it| it.id.clone()),
        ("STATE", CellAlignment::Left, None, |it| it.state.to_owned()),
        ("OWNER", CellAlignment::Left, Some(25), |it| it.owner.clone().unwrap_or(NONE.to_owned())),
        ("GEN", CellAlignment::Right, None, |it| it.generation.to_string()),
        ("LEFT", CellAlignment::Right, None, |it| it.left_ms.map_or(NONE.to_owned(), human)),
        ("PRIO", CellAlignment::Right, None, |it| of_task(it, |task| task.priority.to_string())),
    ];
    let several = |cell: fn(&Cells) -> String| {
        let mut cells = rows.iter().map(cell);
        let first = cells.next();
        cells.any(|cell| Some(&cell) != first.as_ref())
    };
    for column in [
        ("QUEUE", CellAlignment::Left, Some(20), queue as fn(&Cells) -> String),
        ("PROJECT", CellAlignment::Left, Some(20), project),
    ] {
        if several(column.3) {
            columns.push(column);
        }
    }
    columns.push(("TITLE", CellAlignment::Left, None, |it| {
        of_task(it, |task| task.title.clone().unwrap_or_default())
    }));
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width).set_truncation_indicator("…");
    let row = |cells: Vec<String>| {
        let mut row = Row::from(cells);
        row.max_height(1);
        row
    };
    table.set_header(row(columns.iter().map(|(name, ..)| (*name).to_owned()).collect()));
    for it in &rows {
        table.add_row(row(columns.iter().map(|(.., cell)| harmless(&cell(it)).into_owned()).collect()));
    }
    for (column, (_, alignment, most, _)) in table.column_iter_mut().zip(&columns) {
        column.set_cell_alignment(*alignment);
        column.set_padding((0, 2));
        // Words don't matter where a text is cut anyway.
        column.set_delimiter('\n');
        if let Some(most) = most {
            column.set_constraint(ColumnConstraint::UpperBoundary(Width::Percentage(*most)));
        }
    }
    table.lines().map(|line| line.trim_end().to_owned()).collect()
}

fn of_task(it: &Cells, cell: impl FnOnce(&OfTask) -> String) -> String {
    it.of_task.as_ref().map_or(NONE.to_owned(), cell)
}

fn queue(it: &Cells) -> String {
    of_task(it, |task| task.queue.to_string())
}

fn project(it: &Cells) -> String {
    of_task(it, |task| task.project.as_ref().map_or(NONE.to_owned(), Name::to_string))
}
