//! Rows under a rule that is their pane's title and their columns' titles at once.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

use super::text::{fit, width};

/// How something looks. Each says in words or marks, too, what its colour says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    Plain,
    Dim,
    Strong,
    Good,
    Warn,
    Bad,
}

impl Look {
    pub(crate) fn style(self, colour: bool) -> Style {
        let style = match self {
            // Whatever was there before.
            Look::Plain => return Style::reset(),
            Look::Dim => return Style::new().add_modifier(Modifier::DIM),
            Look::Strong => return Style::new().add_modifier(Modifier::BOLD),
            Look::Good => Style::new().fg(Color::Green),
            Look::Warn => Style::new().fg(Color::Yellow),
            Look::Bad => Style::new().fg(Color::Red),
        };
        if colour { style } else { Style::new() }
    }
}

/// A column.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    pub(crate) title: &'static str,
    /// The most columns of the screen that it takes.
    pub(crate) most: usize,
    /// When there is no room the column with the highest goes first; one with 0 stays.
    pub(crate) goes: u8,
    pub(crate) is_number: bool,
    /// Does it take what is left?
    pub(crate) takes_rest: bool,
}

impl Column {
    pub(crate) const fn text(title: &'static str, most: usize, goes: u8) -> Column {
        Column { title, most, goes, is_number: false, takes_rest: false }
    }

    pub(crate) const fn number(title: &'static str, goes: u8) -> Column {
        Column { title, most: 12, goes, is_number: true, takes_rest: false }
    }

    pub(crate) const fn rest(title: &'static str, goes: u8) -> Column {
        Column { title, most: usize::MAX, goes, is_number: false, takes_rest: true }
    }
}

/// What stands in a column of a row.
pub(crate) type Cell = (String, Look);

/// A row: a mark, such as `!`, and a cell a column.
pub(crate) struct Line {
    pub(crate) mark: char,
    pub(crate) cells: Vec<Cell>,
}

/// Before the first column: the choice and the mark.
const GUTTER: usize = 2;
const GAP: usize = 2;
/// What the column that takes the rest has at least if its texts are that long: where there is room, and where it is
/// short.
const REST: [usize; 2] = [40, 14];
/// The same of the first column, where room is short, and where it is very short.
const FIRST: [usize; 2] = [20, 12];
/// From here on a column is only nice to have.
const NICE: u8 = 5;

/// Which columns there is room for, with their widths. Columns with nothing in them are left out.
pub(crate) fn fitted(columns: &[Column], natural: &[usize], room: usize) -> Vec<(usize, usize)> {
    let mut kept: Vec<(usize, usize)> = columns
        .iter()
        .enumerate()
        .zip(natural)
        .filter(|((at, column), natural)| *at == 0 || **natural > 0 || column.takes_rest)
        .map(|((at, column), natural)| {
            let natural = (*natural).max(width(column.title));
            (at, natural.min(if column.takes_rest { REST[0] } else { column.most }))
        })
        .collect();
    let needed = |kept: &[(usize, usize)]| {
        kept.iter().map(|(_, width)| width).sum::<usize>() + GAP * kept.len().saturating_sub(1)
    };
    loop {
        let over = needed(&kept).saturating_sub(room);
        if over == 0 || !give_way(&mut kept, columns, over) {
            break;
        }
    }
    let spare = room.saturating_sub(needed(&kept));
    for (at, width) in &mut kept {
        if columns.get(*at).is_some_and(|column| column.takes_rest) {
            *width += spare;
        }
    }
    kept
}

/// What is over the room gives way: first what is only nice to have, then a long first column, then the rest, then others
/// in turn, and last all that can of the first. `false`: nothing more can.
fn give_way(kept: &mut Vec<(usize, usize)>, columns: &[Column], over: usize) -> bool {
    let goes = |at: usize| columns.get(at).map_or(0, |column| column.goes);
    let last = kept.iter().enumerate().max_by_key(|(_, (at, _))| goes(*at));
    let (place, turn) = last.map_or((0, 0), |(place, (at, _))| (place, goes(*at)));
    if turn >= NICE {
        kept.remove(place);
        return true;
    }
    let takes_rest = |at: usize| columns.get(at).is_some_and(|column| column.takes_rest);
    let mut shorten = |is_it: &dyn Fn(usize) -> bool, least: usize| {
        let found = kept.iter_mut().find(|(at, width)| is_it(*at) && *width > least);
        found.map(|(_, width)| *width = width.saturating_sub(over).max(least)).is_some()
    };
    if shorten(&|at| at == 0, FIRST[0]) || shorten(&takes_rest, REST[1]) {
        return true;
    }
    if turn > 0 {
        kept.remove(place);
        return true;
    }
    shorten(&|at| at == 0, FIRST[1])
}

/// Where and how a table is drawn.
pub(crate) struct Frame<'a> {
    pub(crate) buffer: &'a mut Buffer,
    pub(crate) area: Rect,
    pub(crate) colour: bool,
    pub(crate) focused: bool,
}

/// Draws a title and rows below it; `chosen` is one of them.
pub(crate) fn draw(
    frame: &mut Frame<'_>,
    title: &str,
    columns: &[Column],
    rows: &[Line],
    chosen: Option<usize>,
) {
    let area = frame.area;
    let mut natural: Vec<usize> = (0..columns.len())
        .map(|at| {
            let cells = rows.iter().filter_map(|row| row.cells.get(at));
            let most = columns.get(at).map_or(0, |column| column.most.min(usize::from(area.width)));
            cells.map(|(text, _)| width(&fit(text, most))).max().unwrap_or_default()
        })
        .collect();
    if let Some(first) = natural.first_mut() {
        *first = (*first).max(width(title) + 1);
    }
    let kept = fitted(columns, &natural, usize::from(area.width).saturating_sub(GUTTER));
    rule(frame, title, columns, &kept);
    for (at, row) in rows.iter().enumerate().take(usize::from(area.height).saturating_sub(1)) {
        let y = area.y.saturating_add(1).saturating_add(at as u16);
        let is_chosen = chosen == Some(at) && frame.focused;
        put(frame, 0, y, if is_chosen { ">" } else { " " }, Look::Strong);
        put(frame, 1, y, &row.mark.to_string(), Look::Strong);
        let mut x = GUTTER;
        for (column, room) in &kept {
            let Some((text, look)) = row.cells.get(*column) else { continue };
            let text = fit(text, *room);
            let is_number = columns.get(*column).is_some_and(|column| column.is_number);
            let indent = if is_number { room.saturating_sub(width(&text)) } else { 0 };
            put(frame, x + indent, y, &text, *look);
            x += room + GAP;
        }
        if is_chosen {
            let row = Rect { x: area.x, y, width: area.width, height: 1 };
            frame.buffer.set_style(row.intersection(area), Style::new().add_modifier(Modifier::REVERSED));
        }
    }
}

fn rule(frame: &mut Frame<'_>, title: &str, columns: &[Column], kept: &[(usize, usize)]) {
    let (line, look) = if frame.focused { ("━", Look::Strong) } else { ("─", Look::Dim) };
    let y = frame.area.y;
    put(frame, 0, y, &line.repeat(usize::from(frame.area.width)), look);
    let mut x = GUTTER;
    for (place, (at, room)) in kept.iter().enumerate() {
        let (is_number, name) = columns.get(*at).map_or((false, ""), |it| (it.is_number, it.title));
        let name = fit(if place == 0 { title } else { name }, *room);
        if !name.is_empty() {
            let indent = if is_number { room.saturating_sub(width(&name)) } else { 0 };
            let look = if place == 0 && !frame.focused { Look::Plain } else { look };
            put(frame, (x + indent).saturating_sub(1), y, &format!(" {name} "), look);
        }
        x += room + GAP;
    }
}

/// Puts harmless text into the area, from its column `x` on.
pub(crate) fn put(frame: &mut Frame<'_>, x: usize, y: u16, text: &str, look: Look) {
    let area = frame.area;
    let Some(room) = usize::from(area.width).checked_sub(x).filter(|room| *room > 0) else { return };
    if y < area.y || y >= area.bottom() {
        return;
    }
    let at = area.x.saturating_add(x as u16);
    frame.buffer.set_stringn(at, y, text, room, look.style(frame.colour));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_give_way_in_order_and_the_last_takes_the_rest() {
        let columns = [
            Column::text("node", 30, 0),
            Column::text("owner", 20, 1),
            Column::number("left", 0),
            Column::text("where", 20, 5),
            Column::rest("why", 2),
        ];
        let natural = [30, 8, 5, 12, 60];
        let widths = |room| fitted(&columns, &natural, room);
        assert_eq!(widths(120), [(0, 30), (1, 8), (2, 5), (3, 12), (4, 57)]);
        assert_eq!(widths(92), [(0, 30), (1, 8), (2, 5), (4, 43)], "where it runs is only nice to have");
        assert_eq!(widths(85), [(0, 26), (1, 8), (2, 5), (4, 40)], "then the node's name gets shorter");
        assert_eq!(widths(60), [(0, 20), (1, 8), (2, 5), (4, 21)], "then the reason");
        assert_eq!(widths(50), [(0, 20), (1, 8), (2, 5)], "and the others go");
        assert_eq!(widths(20), [(0, 13), (2, 5)]);
        assert_eq!(widths(0), [(0, 12), (2, 5)], "what stays is cut where it is drawn");
        assert_eq!(fitted(&columns, &[5, 0, 0, 0, 0], 40), [(0, 5), (4, 33)], "empty columns are left out");
    }
}
