//! What the person who looks has chosen: which pane, which row, which filter. Pure: keys go in, acts come out.

use claimdir::NodeId;
use claimdir::domain::{Event, natural};

use super::inside::{Detail, Inside};
use super::keys::Key;
use super::model::Board;
use super::row::Row;

/// A part of the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pane {
    Running,
    Waiting,
    Failed,
    Queues,
    Events,
    /// All nodes; it is not on the board, which has no room for it.
    Nodes,
}

impl Pane {
    pub(crate) const ALL: [Pane; 6] =
        [Pane::Running, Pane::Waiting, Pane::Failed, Pane::Queues, Pane::Events, Pane::Nodes];

    /// Is the row one of its?
    fn has(self, row: &Row) -> bool {
        match self {
            Pane::Running => row.state == crate::cli::args::StateFilter::Claimed,
            Pane::Waiting => row.is_waiting(),
            Pane::Failed => row.is_failure(),
            Pane::Queues | Pane::Events => false,
            Pane::Nodes => true,
        }
    }
}

/// By what rows are ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    /// What ends or passes first comes first, and of what has ended the latest.
    Time,
    Id,
    Owner,
}

impl Sort {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Sort::Time => "time",
            Sort::Id => "node",
            Sort::Owner => "owner",
        }
    }

    fn next(self) -> Sort {
        match self {
            Sort::Time => Sort::Id,
            Sort::Id => Sort::Owner,
            Sort::Owner => Sort::Time,
        }
    }
}

/// The rows of a pane, and the one that is chosen.
#[derive(Debug, Default)]
pub(crate) struct List {
    /// Where they stand in the board.
    pub(crate) items: Vec<usize>,
    pub(crate) chosen: usize,
    /// The chosen row's id, to find it again on the next board.
    id: Option<String>,
    /// The first row in sight, and how many are: drawing says so.
    pub(crate) first: usize,
    pub(crate) page: usize,
}

impl List {
    /// Keeps the chosen row in sight, of `page` rows.
    pub(crate) fn in_sight(&mut self, page: usize) {
        self.page = page;
        self.first = self.first.min(self.chosen).max((self.chosen + 1).saturating_sub(page));
        self.first = self.first.min(self.items.len().saturating_sub(page));
    }
}

/// What a key asks of the program.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Act {
    Nothing,
    Quit,
    /// Stop as a job.
    Suspend,
    ReadNow,
    /// Read this node, too, from now on.
    LookInto(NodeId),
    /// No longer.
    LookAway,
    /// Draw all of it anew.
    Redraw,
}

/// All that is to be drawn.
pub(crate) struct Ui {
    pub(crate) board: Option<Board>,
    /// How long ago it was read, in milliseconds.
    pub(crate) age_ms: i64,
    /// Why it can't be read.
    pub(crate) trouble: Option<String>,
    pub(crate) focus: Pane,
    /// Is the pane alone on the screen?
    pub(crate) alone: bool,
    lists: [List; 6],
    pub(crate) filter: String,
    pub(crate) typing: bool,
    pub(crate) sort: Sort,
    pub(crate) reversed: bool,
    pub(crate) inside: Option<Inside>,
    /// How far the help is scrolled, while it is shown.
    pub(crate) help: Option<usize>,
    pub(crate) colour: bool,
    /// Is it printed, rather than looked at? Then keys mean nothing, and no row is chosen.
    pub(crate) is_still: bool,
}

impl Ui {
    pub(crate) fn new(colour: bool) -> Ui {
        Ui {
            board: None,
            age_ms: 0,
            trouble: None,
            focus: Pane::Running,
            alone: false,
            lists: Default::default(),
            filter: String::new(),
            typing: false,
            sort: Sort::Time,
            reversed: false,
            inside: None,
            help: None,
            colour,
            is_still: false,
        }
    }

    pub(crate) fn list(&self, pane: Pane) -> &List {
        &self.lists[pane as usize]
    }

    pub(crate) fn list_mut(&mut self, pane: Pane) -> &mut List {
        &mut self.lists[pane as usize]
    }

    /// The board as it was read just now.
    pub(crate) fn show(&mut self, board: Board) {
        self.board = Some(board);
        self.trouble = None;
        self.arrange();
    }

    /// The node that is looked into, as it was read just now.
    pub(crate) fn show_inside(&mut self, detail: Detail) {
        if let Some(inside) = self.inside.as_mut().filter(|inside| inside.id == *detail.id()) {
            inside.detail = Some(detail);
        }
    }

    /// Is this filtered?
    pub(crate) fn words(&self) -> Vec<String> {
        self.filter.split_whitespace().map(str::to_lowercase).collect()
    }

    /// Puts each pane's rows in order.
    fn arrange(&mut self) {
        let words = self.words();
        let Some(board) = &self.board else { return };
        for pane in Pane::ALL {
            let list = &mut self.lists[pane as usize];
            list.items = match pane {
                Pane::Queues => board.shared(),
                Pane::Events => {
                    let fits = |event: &Event| words.is_empty() || fits_event(event, &words);
                    let events = board.events.iter().enumerate();
                    events.filter(|(_, event)| fits(event)).map(|(at, _)| at).collect()
                }
                _ => {
                    let fits = |row: &Row| pane.has(row) && (words.is_empty() || row.fits(&words));
                    let rows = board.rows.iter().enumerate();
                    let mut items: Vec<usize> = rows.filter(|(_, row)| fits(row)).map(|(at, _)| at).collect();
                    order(&mut items, &board.rows, self.sort, pane);
                    if self.reversed {
                        items.reverse();
                    }
                    items
                }
            };
            // The newest event stays chosen, whichever it is.
            if (pane != Pane::Events || list.chosen > 0)
                && list.id.is_some()
                && let Some(at) = list.items.iter().position(|item| key(board, pane, *item) == list.id)
            {
                list.chosen = at;
            }
            list.chosen = list.chosen.min(list.items.len().saturating_sub(1));
            list.id = list.items.get(list.chosen).and_then(|item| key(board, pane, *item));
        }
    }

    fn choose(&mut self, at: usize) {
        let pane = self.focus;
        let list = &mut self.lists[pane as usize];
        list.chosen = at.min(list.items.len().saturating_sub(1));
        let item = list.items.get(list.chosen).copied();
        list.id = item.and_then(|item| key(self.board.as_ref()?, pane, item));
    }

    /// What a key does.
    pub(crate) fn press(&mut self, key: Key) -> Act {
        match key {
            Key::Ctrl('c') => Act::Quit,
            Key::Ctrl('z') => Act::Suspend,
            Key::Ctrl('l') => Act::Redraw,
            key if self.typing => self.type_in(key),
            key if self.help.is_some() => self.press_in_help(key),
            key if self.inside.is_some() => self.press_inside(key),
            key => self.press_on_board(key),
        }
    }

    fn type_in(&mut self, key: Key) -> Act {
        match key {
            Key::Enter => self.typing = false,
            Key::Esc => {
                self.typing = false;
                self.filter.clear();
            }
            Key::Backspace => {
                self.filter.pop();
            }
            Key::Ctrl('u') => self.filter.clear(),
            Key::Char(c) if self.filter.len() < 200 => self.filter.push(c),
            _ => {}
        }
        self.arrange();
        Act::Nothing
    }

    fn press_in_help(&mut self, key: Key) -> Act {
        let at = self.help.unwrap_or_default();
        self.help = match key {
            Key::Char('q') => return Act::Quit,
            Key::Esc | Key::Enter | Key::Char('?') => None,
            key => Some(scrolled(at, key, 10)),
        };
        Act::Nothing
    }

    fn press_inside(&mut self, key: Key) -> Act {
        match key {
            Key::Char('q') => return Act::Quit,
            Key::Char('?') => self.help = Some(0),
            Key::Char('r') => return Act::ReadNow,
            Key::Esc | Key::Backspace | Key::Left | Key::Char('h') => {
                self.inside = None;
                return Act::LookAway;
            }
            key => {
                if let Some(inside) = &mut self.inside {
                    inside.first = scrolled(inside.first, key, inside.page);
                }
            }
        }
        Act::Nothing
    }

    fn press_on_board(&mut self, key: Key) -> Act {
        let (at, page) = (self.list(self.focus).chosen, self.list(self.focus).page);
        match key {
            Key::Char('q') => return Act::Quit,
            Key::Char('?') => self.help = Some(0),
            Key::Char('/') => self.typing = true,
            Key::Char('r') => return Act::ReadNow,
            Key::Enter => return self.enter(),
            Key::Esc if self.filter.is_empty() => self.leave(),
            Key::Esc => {
                self.filter.clear();
                self.arrange();
            }
            Key::Tab | Key::Right | Key::Char('l') => self.turn(1),
            Key::BackTab | Key::Left | Key::Char('h') => self.turn(-1),
            Key::Char('z' | 'v') if self.alone => self.leave(),
            Key::Char('z' | 'v') => self.alone = true,
            Key::Char('a') => (self.focus, self.alone) = (Pane::Nodes, true),
            Key::Char('s') => {
                self.sort = self.sort.next();
                self.arrange();
            }
            Key::Char('S') => {
                self.reversed = !self.reversed;
                self.arrange();
            }
            Key::Char(digit @ '1'..='6') => {
                let pane = Pane::ALL[digit as usize - '1' as usize];
                self.alone |= pane == Pane::Nodes;
                self.focus = pane;
            }
            key => self.choose(scrolled(at, key, page)),
        }
        Act::Nothing
    }

    /// The board again, rather than one pane.
    fn leave(&mut self) {
        self.alone = false;
        if self.focus == Pane::Nodes {
            self.focus = Pane::Running;
        }
    }

    fn turn(&mut self, by: isize) {
        // All nodes are shown only alone.
        let panes = Pane::ALL.len() as isize - isize::from(!self.alone);
        let at = (self.focus as isize + by).rem_euclid(panes);
        self.focus = Pane::ALL[at as usize];
    }

    fn enter(&mut self) -> Act {
        let list = self.list(self.focus);
        let Some((board, item)) = self.board.as_ref().zip(list.items.get(list.chosen).copied()) else {
            return Act::Nothing;
        };
        if self.focus == Pane::Queues {
            if let Some(name) = board.queues.get(item).and_then(|queue| queue.name.clone()) {
                self.filter = name;
                (self.focus, self.alone) = (Pane::Nodes, true);
                self.arrange();
            }
            return Act::Nothing;
        }
        let id = match self.focus {
            Pane::Events => board.events.get(item).map(|event| event.id.clone()),
            _ => board.rows.get(item).and_then(|row| NodeId::new(row.id.as_str()).ok()),
        };
        match id {
            Some(id) => {
                self.inside = Some(Inside::new(id.clone()));
                Act::LookInto(id)
            }
            None => Act::Nothing,
        }
    }
}

/// What stays the same of a row when the board is read anew.
fn key(board: &Board, pane: Pane, item: usize) -> Option<String> {
    match pane {
        Pane::Queues => None,
        Pane::Events => board.events.get(item).map(|event| format!("{} {}", event.version, event.id)),
        _ => board.rows.get(item).map(|row| row.id.clone()),
    }
}

/// Does each of these words, in lower case, stand in the event's node, in who did it, its project or its queue?
fn fits_event(event: &Event, words: &[String]) -> bool {
    let texts = [event.by.as_deref(), event.project.as_deref(), event.queue.as_deref()];
    let texts = texts.into_iter().flatten().chain([event.id.as_str()]);
    let texts: Vec<String> = texts.map(str::to_lowercase).collect();
    words.iter().all(|word| texts.iter().any(|text| text.contains(word)))
}

/// Where a key that moves leads from `at`. What lies behind the end is for the caller to know.
fn scrolled(at: usize, key: Key, page: usize) -> usize {
    match key {
        Key::Up | Key::Char('k') => at.saturating_sub(1),
        Key::Down | Key::Char('j') => at.saturating_add(1),
        Key::PageUp | Key::Ctrl('b') => at.saturating_sub(page.max(1)),
        Key::PageDown | Key::Ctrl('f') | Key::Char(' ') => at.saturating_add(page.max(1)),
        Key::Ctrl('u') => at.saturating_sub((page / 2).max(1)),
        Key::Ctrl('d') => at.saturating_add((page / 2).max(1)),
        Key::Home | Key::Char('g') => 0,
        Key::End | Key::Char('G') => usize::MAX,
        _ => at,
    }
}

/// Rows in the order asked for; they come in order of their ids.
fn order(items: &mut [usize], rows: &[Row], sort: Sort, pane: Pane) {
    let row = |item: &usize| rows.get(*item);
    match sort {
        Sort::Id => items.sort_by_cached_key(|item| {
            row(item).and_then(|row| NodeId::new(row.id.as_str()).ok()).map(|id| natural(&id))
        }),
        Sort::Owner => items.sort_by_key(|item| {
            let owner = row(item).and_then(|row| row.owner.as_deref());
            (owner.is_none(), owner)
        }),
        Sort::Time if pane == Pane::Failed => {
            items.sort_by_key(|item| std::cmp::Reverse(row(item).and_then(|row| row.since_ms)));
        }
        Sort::Time if pane == Pane::Nodes => {
            items.sort_by_key(|item| row(item).map(|row| (row.state, row.left_ms.unwrap_or(i64::MAX))));
        }
        Sort::Time => items.sort_by_key(|item| row(item).and_then(|row| row.left_ms).unwrap_or(i64::MAX)),
    }
}
