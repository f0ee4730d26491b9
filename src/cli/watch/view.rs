//! Drawing. Only what is in sight is made into text.

use claimdir::time::rfc3339_seconds;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::help;
use super::inside::Inside;
use super::panes::look;
use super::state::{Pane, Ui};
use super::table::{self, Frame, Line, Look, put};
use super::text::{fit, span, width, wrapped};

/// From how many columns on panes stand beside each other.
const WIDE: u16 = 150;

/// Draws all of it, in whatever room there is.
pub(crate) fn draw(ui: &mut Ui, buffer: &mut Buffer, area: Rect) {
    let area = area.intersection(buffer.area);
    if area.is_empty() {
        return;
    }
    let head_rows = if area.height >= 6 { 2 } else { 1 };
    let foot_rows = u16::from(area.height >= 4 && !ui.is_still);
    let head_area = Rect { height: head_rows, ..area };
    let foot_area = Rect { y: area.bottom() - foot_rows, height: foot_rows, ..area };
    let body =
        Rect { y: area.y + head_rows, height: area.height.saturating_sub(head_rows + foot_rows), ..area };
    head(ui, &mut frame(ui, buffer, head_area));
    if foot_rows > 0 {
        foot(ui, &mut frame(ui, buffer, foot_area));
    }
    if body.is_empty() {
        return;
    }
    if ui.help.is_some() {
        draw_help(ui, buffer, body);
    } else if let Some(inside) = ui.inside.take() {
        ui.inside = Some(draw_inside(ui, inside, buffer, body));
    } else if ui.board.is_none() {
        let says =
            if ui.trouble.is_some() { "nothing can be shown until it can be read" } else { "reading …" };
        put(&mut frame(ui, buffer, body), 2, body.y, says, Look::Dim);
    } else if ui.alone {
        pane(ui, ui.focus, buffer, body);
    } else {
        panes(ui, buffer, body);
    }
}

fn frame<'a>(ui: &Ui, buffer: &'a mut Buffer, area: Rect) -> Frame<'a> {
    Frame { buffer, area, colour: ui.colour, focused: true }
}

/// Where it was read and when; then how many nodes are in each state, or what is wrong.
fn head(ui: &Ui, frame: &mut Frame<'_>) {
    let room = usize::from(frame.area.width);
    let y = frame.area.y;
    let when = match &ui.board {
        Some(board) if ui.age_ms >= 5_000 => format!("read {} ago", span(ui.age_ms)),
        Some(board) => format!("read at {}", rfc3339_seconds(board.at.wall_ms)),
        None => String::new(),
    };
    let right = room.saturating_sub(width(&when));
    let place = ui.board.as_ref().map_or("", |board| board.place.as_str());
    let title = format!("claim watch  {place}");
    put(frame, 0, y, &fit(&title, room), Look::Strong);
    if right > width("claim watch") + 2 {
        put(frame, right.saturating_sub(2), y, "  ", Look::Plain);
        put(frame, right, y, &when, Look::Dim);
        put(frame, 0, y, &fit(&title, right - 2), Look::Strong);
    }
    if frame.area.height > 1 {
        status(ui, frame, y + 1);
    } else if let Some(trouble) = &ui.trouble {
        put(frame, 0, y, &fit(&format!("! {trouble}"), room), Look::Bad);
    }
}

fn status(ui: &Ui, frame: &mut Frame<'_>, y: u16) {
    let room = usize::from(frame.area.width);
    if let Some(trouble) = &ui.trouble {
        return put(frame, 0, y, &fit(&format!("! {trouble}"), room), Look::Bad);
    }
    let Some(board) = &ui.board else { return };
    let mut x = 0;
    let mut say = |text: String, look: Look| {
        put(frame, x, y, &fit(&text, room.saturating_sub(x)), look);
        x += width(&text) + 2;
    };
    if !board.unreadable.is_empty() {
        let first = board.unreadable.first().map(String::as_str).unwrap_or_default();
        say(format!("! {} can't be read: {}", board.unreadable.len(), fit(first, room / 2)), Look::Bad);
    }
    if !ui.filter.is_empty() {
        say(format!("only “{}”", fit(&ui.filter, 24)), Look::Strong);
    }
    let nodes = board.rows.len();
    say(format!("{nodes} node{}", if nodes == 1 { "" } else { "s" }), Look::Plain);
    for (state, count) in board.counts().all() {
        say(format!("{count} {}", state.name()), look(state));
    }
    let order = if ui.reversed { ", reversed" } else { "" };
    say(format!("| by {}{order}", ui.sort.name()), Look::Dim);
}

/// The keys that mean something here.
fn foot(ui: &Ui, frame: &mut Frame<'_>) {
    let (room, y) = (usize::from(frame.area.width), frame.area.y);
    if ui.typing {
        let text = format!("filter: {}_   enter keeps it, esc drops it", fit(&ui.filter, room / 2));
        return put(frame, 0, y, &fit(&text, room), Look::Strong);
    }
    let hints: &[&str] = if ui.help.is_some() {
        &["esc back", "j k scroll", "q quit"]
    } else if ui.inside.is_some() {
        &["esc back", "j k space scroll", "g G ends", "r read now", "q quit", "? help"]
    } else if ui.alone {
        &["q quit", "? help", "/ filter", "enter open", "esc board", "tab next", "s sort", "S reverse"]
    } else {
        &[
            "q quit",
            "? help",
            "/ filter",
            "tab pane",
            "j k move",
            "enter open",
            "z zoom",
            "a all nodes",
            "s sort",
        ]
    };
    let mut x = 0;
    for hint in hints {
        if x + width(hint) > room {
            break;
        }
        put(frame, x, y, hint, Look::Dim);
        x += width(hint) + 3;
    }
}

/// All panes that the board has room for.
fn panes(ui: &mut Ui, buffer: &mut Buffer, area: Rect) {
    let columns: &[(Rect, &[Pane])] = if area.width >= WIDE {
        let left = Rect { width: area.width / 2 - 1, ..area };
        let right = Rect { x: area.x + area.width / 2 + 1, width: area.width - area.width / 2 - 1, ..area };
        &[(left, &[Pane::Running, Pane::Waiting]), (right, &[Pane::Failed, Pane::Queues, Pane::Events])]
    } else {
        &[(area, &Pane::ALL[..5])]
    };
    for (area, panes) in columns {
        let needs: Vec<usize> = panes.iter().map(|pane| 1 + ui.list(*pane).items.len().max(1)).collect();
        let focus = panes.iter().position(|pane| *pane == ui.focus);
        let mut y = area.y;
        for (at, height) in shared_out(usize::from(area.height), &needs, focus).into_iter().enumerate() {
            let (Some(it), height) = (panes.get(at), height as u16) else { continue };
            pane(ui, *it, buffer, Rect { y, height, ..*area });
            y += height;
        }
    }
}

/// How many rows each pane gets: what it needs, if there is enough; else each about the same. Panes that not even a
/// title and a row are left for get none, but the focused one.
pub(crate) fn shared_out(room: usize, needs: &[usize], focus: Option<usize>) -> Vec<usize> {
    let mut heights = vec![0; needs.len()];
    let mut left = room;
    let order = || focus.into_iter().chain((0..needs.len()).filter(move |at| Some(*at) != focus));
    for at in order() {
        if left >= 2 || (left == 1 && heights.iter().all(|height| *height == 0)) {
            heights[at] = left.min(2);
            left -= heights[at];
        }
    }
    while left > 0 {
        let before = left;
        for at in order() {
            if left > 0 && heights[at] > 0 && heights[at] < needs[at] {
                heights[at] += 1;
                left -= 1;
            }
        }
        if left == before {
            break;
        }
    }
    heights
}

fn pane(ui: &mut Ui, pane: Pane, buffer: &mut Buffer, area: Rect) {
    if area.is_empty() {
        return;
    }
    let page = usize::from(area.height).saturating_sub(1);
    ui.list_mut(pane).in_sight(page);
    let list = ui.list(pane);
    let Some(board) = &ui.board else { return };
    let focused = ui.focus == pane && !ui.is_still;
    let count = list.items.len();
    let (from, to) = (list.first + 1, (list.first + page).min(count));
    let part = if count > page && page > 0 { format!("{from}-{to} of ") } else { String::new() };
    let title = format!("{} {part}{count}", pane.title());
    let rows: Vec<Line> = list
        .items
        .iter()
        .skip(list.first)
        .take(page)
        .filter_map(|item| pane.line(board, *item, ui.age_ms))
        .collect();
    let mut frame = Frame { buffer, area, colour: ui.colour, focused };
    let chosen = list.chosen.checked_sub(list.first);
    if rows.is_empty() {
        table::draw(&mut frame, &title, &pane.columns()[..1], &rows, None);
        let says = if ui.filter.is_empty() || pane == Pane::Queues {
            pane.when_empty().to_owned()
        } else {
            format!("nothing here fits the filter “{}”; esc drops it", fit(&ui.filter, 30))
        };
        put(&mut frame, 2, area.y + 1, &says, Look::Dim);
    } else {
        table::draw(&mut frame, &title, pane.columns(), &rows, chosen);
    }
}

fn draw_inside(ui: &Ui, mut inside: Inside, buffer: &mut Buffer, area: Rect) -> Inside {
    let room = usize::from(area.width).saturating_sub(3);
    let lines = match &inside.detail {
        Some(detail) => detail.lines.iter().flat_map(|line| wrapped(line, room.max(1))).collect(),
        None => vec!["reading …".to_owned()],
    };
    let title = format!("NODE {}", inside.id);
    scroll(&mut frame(ui, buffer, area), &title, &lines, &mut inside.first);
    inside.page = usize::from(area.height).saturating_sub(1);
    inside
}

fn draw_help(ui: &mut Ui, buffer: &mut Buffer, area: Rect) {
    let room = usize::from(area.width).saturating_sub(3);
    let lines: Vec<String> = help::TEXT.lines().flat_map(|line| wrapped(line, room.max(1))).collect();
    let mut first = ui.help.unwrap_or_default();
    scroll(&mut frame(ui, buffer, area), "HELP", &lines, &mut first);
    ui.help = Some(first);
}

/// Lines below a title, from `first` on, which is brought back to what there is.
fn scroll(frame: &mut Frame<'_>, title: &str, lines: &[String], first: &mut usize) {
    let area = frame.area;
    let page = usize::from(area.height).saturating_sub(1);
    *first = (*first).min(lines.len().saturating_sub(page));
    let (from, to) = (*first + 1, (*first + page).min(lines.len()));
    let part =
        if lines.len() > page { format!(" lines {from} to {to} of {}", lines.len()) } else { String::new() };
    put(frame, 0, area.y, &"━".repeat(usize::from(area.width)), Look::Strong);
    let room = usize::from(area.width).saturating_sub(width(&part) + 4);
    put(frame, 1, area.y, &format!(" {}{part} ", fit(title, room)), Look::Strong);
    for (line, y) in lines.iter().skip(*first).take(page).zip(area.y + 1..) {
        put(frame, 2, y, line, Look::Plain);
    }
}

/// A buffer as lines of plain text, without what is blank at their ends.
pub(crate) fn plain(buffer: &Buffer) -> Vec<String> {
    let area = buffer.area;
    let line = |y: u16| {
        let (mut text, mut x) = (String::new(), area.x);
        while x < area.right() {
            let symbol = buffer.cell((x, y)).map_or(" ", |cell| cell.symbol());
            text.push_str(symbol);
            // What a wide character covers is no character of its own.
            x += (width(symbol) as u16).max(1);
        }
        text.truncate(text.trim_end().len());
        text
    };
    (area.y..area.bottom()).map(line).collect()
}
