//! Ordered lists of hints.

use std::collections::VecDeque;

use super::walk::Walk;
use crate::domain::hint::{self, Mark, When};
use crate::domain::natural;
use crate::error::Result;
use crate::store::Key;

/// How many hints are listed at once: by the first walk of a process, which may be its last, and by later ones, which
/// leave to one another what they have listed.
pub(super) const FIRST_PAGE: usize = 8;
pub(super) const PAGE: usize = 32;

/// Of so many tasks that are due after a rest or their workers' deaths the order is exact.
const MOST_DUE: usize = 256;

/// A hint met.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) name: String,
    pub(super) mark: Mark,
    pub(super) place: Place,
    /// Under what it stands, if something was in its way.
    pub(super) obstacle: Option<String>,
}

/// What orders turns of one priority: a moment in milliseconds since 1970, and in one moment the ids in natural order.
pub(super) type Place = (i64, String);

impl Turn {
    pub(super) fn new(name: &str, mark: Mark, wall_ms: i64) -> Turn {
        Turn { name: name.to_owned(), place: (wall_ms, natural(&mark.id)), mark, obstacle: None }
    }
}

/// One ordered list of hints, read page by page.
pub(super) struct Run {
    folder: String,
    pub(super) page: VecDeque<Turn>,
    after: Option<String>,
    pub(super) ended: bool,
    /// On the monotonic clock: later ones are not due.
    until: Option<i64>,
    /// What its tasks stand under.
    obstacle: Option<String>,
}

impl Run {
    pub(super) fn listed(folder: String, until: Option<i64>) -> Run {
        Run { folder, page: VecDeque::new(), after: None, ended: false, until, obstacle: None }
    }

    /// One that stands under `obstacle`.
    pub(super) fn aside(folder: String, obstacle: String) -> Run {
        Run { obstacle: Some(obstacle), ..Run::listed(folder, None) }
    }

    pub(super) fn given(page: VecDeque<Turn>) -> Run {
        Run { folder: String::new(), page, after: None, ended: true, until: None, obstacle: None }
    }

    /// The place of its first one.
    pub(super) fn peek(&mut self, walk: &mut Walk<'_>) -> Result<Option<&Place>> {
        if walk.is_known_closed(self.obstacle.as_deref()) {
            self.page.clear();
            self.ended = true;
        }
        // What is due is listed by the moment from which it is, and its turn may be another's: all of it first.
        let most = if self.until.is_some() { MOST_DUE } else { 1 };
        let empty = self.page.is_empty();
        while empty && self.page.len() < most && !self.ended {
            let (keys, ended) = walk.list_page(&self.folder, self.after.as_deref(), walk.page)?;
            self.ended = ended;
            self.after = keys.last().map(|key| key.name().to_owned());
            for key in &keys {
                self.take_in(key, walk);
            }
        }
        if empty && self.until.is_some() {
            self.page.make_contiguous().sort_by(|one, other| one.place.cmp(&other.place));
        }
        Ok(self.page.front().map(|turn| &turn.place))
    }

    fn take_in(&mut self, key: &Key, walk: &mut Walk<'_>) {
        let (Some(mark), Some(when)) = (hint::mark_of(key.name()), hint::when_of(key.name())) else { return };
        if let (When::Timed { mono_ms, .. }, Some(until)) = (&when, self.until)
            && *mono_ms > until
        {
            walk.nothing.due_in(mono_ms - until);
            self.ended = true;
            return;
        }
        let turn = Turn::new(key.name(), mark, when.wall_ms());
        self.page.push_back(Turn { obstacle: self.obstacle.clone(), ..turn });
    }
}
