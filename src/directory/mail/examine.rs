//! Checking boxes, and mending their heads.

use std::collections::BTreeSet;

use super::{Directory, STRIDE, message_key, messages_folder, number_of, readers_folder};
use crate::directory::doctor::{Suspect, Visit};
use crate::domain::{Cursor, Head, MailName, Message};
use crate::error::Result;
use crate::store::{Finding, Gravity, Key, Prefix};

/// How far a head may be behind without anybody having died.
const BEHIND: u64 = 4 * STRIDE;

const BY_HAND: &str = "nothing was changed: numbers are not used again; put what is missing back from a copy";

impl Visit<'_> {
    /// Checks every head, cursor and message.
    pub(in crate::directory) fn mail(&mut self) -> Result<()> {
        for part in self.directory.store.parts("mail/messages")? {
            self.has_head(&part)?;
        }
        for key in self.directory.heads()? {
            match self.directory.head_at(key.clone()) {
                Ok(cell) => {
                    if let Some(head) = cell.says {
                        self.mailbox(&head, &cell.key)?;
                    }
                }
                Err(error) => self.unreadable(self.place(&key), &error),
            }
        }
        Ok(())
    }

    /// A box's head is there before its first message, and stays.
    fn has_head(&mut self, part: &str) -> Result<()> {
        let key = Key::internal(format!("mail/heads/{part}"))?;
        if self.directory.store.read(&key)?.is_some_and(|bytes| !bytes.is_empty()) {
            return Ok(());
        }
        let folder = format!("mail/messages/{part}");
        let keys = self.directory.store.list(&Prefix::Internal(&folder), None, usize::MAX)?;
        let said = keys.iter().find_map(|key| self.directory.store.read(key).ok().flatten());
        let Some(of) = said.and_then(|bytes| Message::box_of(&bytes)).filter(|of| of.part() == part) else {
            return Ok(());
        };
        let numbers: Vec<u64> = keys.iter().filter_map(|key| number_of(&of, key)).collect();
        if let Some((first, last)) = numbers.iter().min().zip(numbers.iter().max()) {
            let what = format!("the head of the box is gone, and messages {first} to {last} are there");
            let next = "`claim doctor --repair` makes it again; senders would begin at 1";
            let finding = Finding::new(Gravity::Fault, self.place(&key), what, next);
            self.mend(finding, |directory| directory.head_again(&of, *first, *last));
        }
        Ok(())
    }

    fn mailbox(&mut self, head: &Head, key: &Key) -> Result<()> {
        let mut numbers = BTreeSet::new();
        let mut below = Vec::new();
        for key in
            self.directory.store.list(&Prefix::Internal(&messages_folder(&head.of)), None, usize::MAX)?
        {
            match number_of(&head.of, &key) {
                None => {
                    let next = "look at what it is, and move it elsewhere yourself";
                    self.report(Finding::new(Gravity::Fault, self.place(&key), "not a message's file", next));
                }
                Some(number) if number <= head.floor => below.push(key),
                Some(number) => {
                    numbers.insert(number);
                    if let Err(error) = self.directory.message(&head.of, number) {
                        self.unreadable(self.place(&key), &error);
                    }
                }
            }
        }
        if let Some(first) = below.first() {
            let what = format!("below the box's floor, with {} others", below.len() - 1);
            let next = "the next `claim prune` removes it, and `claim doctor --repair`";
            let finding = Finding::new(Gravity::Leftover, self.place(first), what, next);
            self.mend(finding, |directory| directory.clear_below(&head.of, head.floor).map(|()| true));
        }
        let last = numbers.last().copied().unwrap_or(head.floor);
        let missing = (head.floor + 1..=last).find(|number| !numbers.contains(number));
        if let Some(missing) = missing
            && self.is_missing(&head.of, missing)?
        {
            let what = format!("message {missing} is missing, and {last} is there");
            self.report(Finding::new(Gravity::Fault, self.place(key), what, BY_HAND));
        }
        if head.last > last && self.is_missing(&head.of, head.last)? {
            let what = format!("it counts {} messages, and {last} is the last", head.last);
            self.report(Finding::new(Gravity::Fault, self.place(key), what, BY_HAND));
        }
        if head.last.max(head.floor) + BEHIND < last && missing.is_none() {
            let what =
                format!("it counts {} messages, and {last} is the last: senders look for it", head.last);
            let next = "a later sender moves it on, and `claim doctor --repair`";
            let finding = Finding::new(Gravity::Leftover, self.place(key), what, next);
            self.mend(finding, |directory| directory.head_again(&head.of, head.floor + 1, last));
        }
        self.cursors_of(&head.of, last)
    }

    fn cursors_of(&mut self, of: &MailName, last: u64) -> Result<()> {
        for key in self.directory.store.list(&Prefix::Internal(&readers_folder(of)), None, usize::MAX)? {
            match self.directory.cursor_at(key.clone()).map(|cell| cell.says) {
                Err(error) => self.unreadable(self.place(&key), &error),
                Ok(Some(cursor)) => {
                    // It may have been moved since the messages were listed.
                    if cursor.handed_out > last && self.is_missing(of, cursor.handed_out)? {
                        let what = format!("{} was handed out, and {last} is the last", cursor.handed_out);
                        self.report(Finding::new(Gravity::Fault, self.place(&key), what, BY_HAND));
                    }
                    let last_write = cursor.last_write.as_ref();
                    if last_write.is_some_and(|last| self.is_unsettled::<Cursor>(last)) {
                        self.suspect(Suspect::Cursor(key));
                    }
                }
                Ok(None) => {}
            }
        }
        Ok(())
    }

    /// By what is there now: has the number no message, though it is above the floor?
    fn is_missing(&self, of: &MailName, number: u64) -> Result<bool> {
        Ok(!self.directory.is_taken(of, number)? && self.directory.head(of)?.says.floor < number)
    }

    pub(in crate::directory) fn cursor_again(&mut self, key: &Key) {
        if let Ok(Some(cursor)) = self.directory.cursor_at(key.clone()).map(|cell| cell.says) {
            self.unsettled(key, &cursor);
        }
    }
}

impl Directory {
    /// Has the head say that messages `first` to `last` are there. A floor that it says stays.
    fn head_again(&self, of: &MailName, first: u64, last: u64) -> Result<bool> {
        // The head must not outlive it in a power cut.
        self.store.confirm(&message_key(of, last)?)?;
        self.change_head(of, |head| {
            let is_new = head.last == 0 && head.floor == 0;
            let floor = if is_new { first.saturating_sub(1) } else { head.floor };
            let next = Head { last: head.last.max(last).max(floor), floor, ..head.clone() };
            (next != *head).then_some(next)
        })?;
        Ok(true)
    }
}
