//! The journal: what happened, a log a day and a line an event. For people; nothing rests on it.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use super::Directory;
use crate::domain::{self, Event, Node, What};
use crate::error::{Error, Result};
use crate::store::{Finding, Gravity, Key, Watch};
use crate::time::rfc3339;

/// The folder of the journal's days.
const FOLDER: &str = "journal";
/// How a day's log ends, after its date.
const SUFFIX: &str = ".jsonl";

/// How much of a log is read at a time.
const PIECE: usize = 64 << 10;
/// A line that is longer than this is none of the journal's.
const MAX_LINE: usize = 64 << 10;
/// How many days are read to the end of what is written: the newest, and the one before it, to which somebody may still
/// write what happened just before midnight.
const OPEN_DAYS: usize = 2;

const DAY_MS: i64 = 24 * 3_600_000;

impl Directory {
    /// What is written down of a change, and where. That is no part of the change: it goes on without.
    pub(super) fn lines(&self, before: &Node, after: &Node, at_ms: i64) -> Vec<(Key, Vec<u8>)> {
        let Ok(key) = key_of(&day_of(at_ms)) else { return Vec::new() };
        let events = domain::told(before, after, at_ms).into_iter().map(|mut event| {
            if matches!(event.what, What::Unblocked | What::Requeued) {
                event.by = self.actor.as_deref().map(str::to_owned);
            }
            (key.clone(), event.line().into_bytes())
        });
        events.collect()
    }

    /// The same directory for what `by` does, where the journal can have that from nowhere else.
    pub(super) fn in_the_name_of(&self, by: &str) -> Directory {
        Directory { actor: Some(by.into()), ..self.clone() }
    }

    /// What happened to the nodes, in the order in which it was written down; with `since_ms`, only what was decided
    /// at that time or later, in milliseconds since 1970.
    ///
    /// The journal is for people: an event is missing where its writer was killed just after its change, or found the
    /// disk full, and days that were pruned are gone. Records say what is so.
    ///
    /// # Errors
    ///
    /// The journal's folder can't be listed.
    pub fn events(&self, since_ms: Option<i64>) -> Result<Events<'_>> {
        let (days, ready) = (VecDeque::new(), VecDeque::new());
        let mut events = Events { directory: self, since_ms, days, ready, unlisted: false, watch: None };
        events.look_for_days()?;
        Ok(events)
    }

    /// The journal's days, in order.
    fn days(&self) -> Result<Vec<String>> {
        let parts = self.store.parts(FOLDER)?;
        let day = |part: String| part.strip_suffix(SUFFIX).filter(|day| is_day(day)).map(str::to_owned);
        Ok(parts.into_iter().filter_map(day).collect())
    }

    /// Removes the days that were over before `before_ms`; how many. One that can't be removed stays.
    pub(super) fn prune_journal(&self, before_ms: i64, dry_run: bool) -> Result<usize> {
        let first = day_of(before_ms);
        let mut pruned = 0;
        for day in self.days().unwrap_or_default().into_iter().filter(|day| *day < first) {
            let key = key_of(&day)?;
            // What is no file was not written here: `doctor` tells of it, and nothing is removed.
            let is_log = self.store.logged(&key, 0, 1).is_ok();
            pruned += usize::from(is_log && (dry_run || matches!(self.store.remove(&key), Ok(true))));
        }
        Ok(pruned)
    }

    /// What keeps the journal from being written or read. What it says is nobody's concern.
    pub(super) fn examine_journal(&self) -> Vec<Finding> {
        let fault = |place: String, error: Error| {
            let what = format!("what happens is not written down there: {error}");
            let next = "look at it, and move it elsewhere yourself; all else goes on without";
            Finding::new(Gravity::Fault, place, what, next)
        };
        let days = match self.days() {
            Ok(days) => days,
            Err(error) => return vec![fault(self.place(None), error)],
        };
        let keys = days.iter().filter_map(|day| key_of(day).ok());
        let unreadable = |key: Key| {
            let error = self.store.logged(&key, 0, 0).err()?;
            Some(fault(self.store.place(Some(&key)), error))
        };
        keys.filter_map(unreadable).collect()
    }
}

/// The journal as it is read, event by event and holding no more than a piece of it: see [`Directory::events`].
///
/// As an iterator it ends where nothing more is written by now; asked again later, it goes on with what has been added.
/// An error is a day that can't be read; the others go on.
pub struct Events<'a> {
    directory: &'a Directory,
    since_ms: Option<i64>,
    /// In order, from the oldest that may have more.
    days: VecDeque<Day>,
    ready: VecDeque<Result<Event>>,
    /// Was it told just now that the days can't be listed?
    unlisted: bool,
    /// With the newest day that was known when it began.
    watch: Option<(String, Box<dyn Watch + 'a>)>,
}

/// A day's log, and how far it was read.
struct Day {
    day: String,
    next: u64,
    /// A line of which the end has not been read yet.
    begun: Vec<u8>,
    unreadable: bool,
}

impl Iterator for Events<'_> {
    type Item = Result<Event>;

    fn next(&mut self) -> Option<Result<Event>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            match self.read() {
                Ok(true) => {}
                Err(error) if !self.unlisted => {
                    self.unlisted = true;
                    return Some(Err(error));
                }
                Ok(false) | Err(_) => {
                    self.unlisted = false;
                    return None;
                }
            }
        }
    }
}

impl<'a> Events<'a> {
    /// Waits until more may have been written, one of `others` becomes readable, or `timeout` is over.
    pub fn wait(&mut self, timeout: Duration, others: &[BorrowedFd<'_>]) {
        let newest = self.days.back().map(|day| day.day.clone()).unwrap_or_default();
        let now_ms = self.directory.host.now().wall_ms;
        let (today, tomorrow) = (day_of(now_ms), day_of(now_ms.saturating_add(DAY_MS)));
        let name = format!("{newest} {today}");
        if let Some((_, watch)) = self.watch.as_mut().filter(|(since, _)| *since == name) {
            return watch.wait(timeout, others);
        }
        // Who looks out anew has missed what came before: the caller reads once more first.
        let keys: Vec<Key> = [today, tomorrow].iter().filter_map(|day| key_of(day).ok()).collect();
        self.watch = Some((name, self.directory.store.watch_any(&keys)));
    }

    /// Reads the next piece. `false`: there is none.
    fn read(&mut self) -> Result<bool> {
        loop {
            let mut at = 0;
            while at < self.days.len() {
                if self.read_day(at) {
                    return Ok(true);
                }
                if self.days.len() > OPEN_DAYS {
                    self.days.pop_front();
                } else {
                    at += 1;
                }
            }
            if !self.look_for_days()? {
                return Ok(false);
            }
        }
    }

    /// Begins with the days that have come. `false`: none has.
    fn look_for_days(&mut self) -> Result<bool> {
        let first = self.since_ms.map(day_of).unwrap_or_default();
        let last = self.days.back().map(|day| day.day.clone()).unwrap_or_default();
        let days = self.directory.days()?;
        let new = days.into_iter().filter(|day| *day > last && *day >= first);
        let before = self.days.len();
        self.days.extend(new.map(|day| Day { day, next: 0, begun: Vec::new(), unreadable: false }));
        Ok(self.days.len() > before)
    }

    /// Reads the next piece of one day. `false`: it has no more by now.
    fn read_day(&mut self, at: usize) -> bool {
        let Some(day) = self.days.get_mut(at).filter(|day| !day.unreadable) else { return false };
        let logged = key_of(&day.day).and_then(|key| self.directory.store.logged(&key, day.next, PIECE));
        match logged {
            Ok(logged) => {
                day.next = logged.next;
                let since = self.since_ms.unwrap_or(i64::MIN);
                let events = day.take(&logged.bytes).into_iter().filter(|event| event.at_ms >= since);
                self.ready.extend(events.map(Ok));
                !logged.bytes.is_empty()
            }
            Err(error) => {
                day.unreadable = true;
                self.ready.push_back(Err(error));
                true
            }
        }
    }
}

impl Day {
    /// The events that `bytes` end.
    fn take(&mut self, bytes: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            // Of what is no line, its length is all that is kept.
            if self.begun.len() <= MAX_LINE {
                self.begun.extend_from_slice(piece);
            }
            if piece.ends_with(b"\n") {
                events.extend(Event::of_line(self.begun.trim_ascii_end()));
                self.begun.clear();
            }
        }
        events
    }
}

/// The date of a moment, in UTC.
fn day_of(wall_ms: i64) -> String {
    let mut time = rfc3339(wall_ms);
    time.truncate(10);
    time
}

fn is_day(text: &str) -> bool {
    let fits =
        |(at, byte): (usize, u8)| if at == 4 || at == 7 { byte == b'-' } else { byte.is_ascii_digit() };
    text.len() == 10 && text.bytes().enumerate().all(fits)
}

fn key_of(day: &str) -> Result<Key> {
    Key::internal(format!("{FOLDER}/{day}{SUFFIX}"))
}
