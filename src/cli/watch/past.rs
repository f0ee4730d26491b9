//! What happened last, as the journal tells it.

use std::collections::VecDeque;

use claimdir::domain::Event;
use claimdir::{Directory, Events, NodeId};

use super::gather::Asked;

/// From how long ago on: milliseconds.
const SINCE_MS: i64 = 24 * 3_600_000;
/// How many events are kept for the nodes that are looked into, and how many are on the board.
const KEPT: usize = 5_000;
const SHOWN: usize = 500;
/// How many are read at a look: more follow with the next ones.
const AT_ONCE: usize = 50_000;

/// The newest events, read as they are written.
pub(crate) struct Past<'a> {
    /// `None`: they can't be read, and the board does without.
    events: Option<Events<'a>>,
    newest: VecDeque<Event>,
}

impl<'a> Past<'a> {
    pub(crate) fn of(directory: &'a Directory) -> Past<'a> {
        let since_ms = directory.host().now().wall_ms.saturating_sub(SINCE_MS);
        Past { events: directory.events(Some(since_ms)).ok(), newest: VecDeque::new() }
    }

    /// The newest that are asked for, the newest first.
    pub(crate) fn newest(&mut self, asked: &Asked) -> Vec<Event> {
        // A day that can't be read is left out: the journal is a help, and `claim log` says what is wrong with it.
        for event in self.events.iter_mut().flatten().take(AT_ONCE).flatten() {
            self.newest.push_back(event);
            if self.newest.len() > KEPT {
                self.newest.pop_front();
            }
        }
        self.newest.iter().rev().filter(|event| asked.has_event(event)).take(SHOWN).cloned().collect()
    }

    /// What is known to have happened to a node, the newest first.
    pub(crate) fn of_node<'b>(&'b self, id: &'b NodeId) -> impl Iterator<Item = &'b Event> {
        self.newest.iter().rev().filter(move |event| event.id == *id)
    }
}
