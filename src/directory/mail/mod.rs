//! Mail: what its parts share. Sending, reading and pruning have a file each.
//!
//! ```text
//! mail/heads/<box>                    a hint where the numbers end, and the floor below which nothing is a message
//! mail/readers/<box>/<reader>         two positions
//! mail/messages/<box>/310/00/42       message 100042: 3 pairs of digits
//! ```
//!
//! - **Numbers have no gap.** A sender publishes under a number only after it has seen the one before taken, and
//!   what is taken stays so until it is not above the floor. So the end is found by listing from the head, and by
//!   galloping where that is far behind. Where a message was deleted from outside its number stays free.
//! - **The floor goes first.** A pruner swaps its floor into the head before it removes anything. Hence a sender that
//!   found a number free since its message had been pruned meets the floor when it looks at the head again.
//! - **A reader joins by swapping the head** while its cursor is empty: a pruner that has not seen the cursor loses
//!   its swap of the head, and looks again.

mod examine;
mod once;
mod prune;
mod read;
mod send;

use super::Directory;
use crate::domain::{Cursor, Head, MailName, Message, WriteId};
use crate::error::Result;
use crate::store::{Key, Prefix, Replaced};

pub use prune::MailSeen;

/// How many numbers share a folder.
const FOLDER: u64 = 100;

/// The head is moved on when it is this far behind.
const STRIDE: u64 = 8;

/// How many messages are listed to find the last one. The head is seldom so far behind.
const LISTED: usize = 4 * STRIDE as usize;

/// A cell as it was read: its bytes, if it is there, and what they say.
struct Cell<T> {
    key: Key,
    bytes: Option<Vec<u8>>,
    says: T,
}

fn key(name: String) -> Result<Key> {
    Key::internal(name)
}

fn messages_folder(of: &MailName) -> String {
    format!("mail/messages/{}", of.part())
}

fn readers_folder(of: &MailName) -> String {
    format!("mail/readers/{}", of.part())
}

/// Message `number`'s key: its digits in pairs, and before them how many pairs, so that keys are ordered as
/// numbers are.
fn message_key(of: &MailName, number: u64) -> Result<Key> {
    let mut pairs = Vec::new();
    let mut rest = number;
    while rest > 0 || pairs.is_empty() {
        pairs.push(format!("{:02}", rest % FOLDER));
        rest /= FOLDER;
    }
    pairs.reverse();
    key(format!("{}/{:x}{}", messages_folder(of), pairs.len(), pairs.join("/")))
}

/// The number in a message's key.
fn number_of(of: &MailName, found: &Key) -> Option<u64> {
    let name = found.name().strip_prefix(&messages_folder(of))?.strip_prefix('/')?;
    let number = name.replace('/', "").get(1..)?.parse().ok()?;
    message_key(of, number).ok().filter(|key| key == found).map(|_| number)
}

impl Directory {
    fn write_id(&self) -> Result<WriteId> {
        Ok(WriteId::of(self.host.random()?))
    }

    /// Swaps a cell, making it if it was not there. `false`: others were faster, so read again.
    fn swap_cell(&self, key: &Key, found: Option<&[u8]>, new: &[u8], round: u32) -> Result<bool> {
        if found.is_none() && !self.store.make(key)? {
            return Ok(false);
        }
        match self.store.replace(key, found.unwrap_or_default(), new)? {
            Replaced::Done => Ok(true),
            Replaced::Changed(_) => Ok(false),
            Replaced::Cancelled => self.pause_after(round).map(|()| false),
            Replaced::Unknown(error) if self.store.read(key)?.as_deref() == Some(new) => {
                self.store.confirm(key).map_err(|_| error)?;
                Ok(true)
            }
            Replaced::Unknown(error) => Err(error),
        }
    }

    fn head(&self, of: &MailName) -> Result<Cell<Head>> {
        let key = key(format!("mail/heads/{}", of.part()))?;
        let cell = self.head_at(key)?;
        match cell.says {
            Some(head) if head.of != *of => Err(self.of_another(&cell.key, &head.of)),
            Some(head) => Ok(Cell { key: cell.key, bytes: cell.bytes, says: head }),
            None => Ok(Cell { key: cell.key, bytes: cell.bytes, says: Head::new(of.clone()) }),
        }
    }

    fn head_at(&self, key: Key) -> Result<Cell<Option<Head>>> {
        let bytes = self.store.read(&key)?;
        let says = Head::decode(bytes.as_deref().unwrap_or_default());
        let says = says.map_err(|why| self.unreadable(&key, &why))?;
        Ok(Cell { key, bytes, says })
    }

    /// Swaps the head of `of` until it stands; what it says then. `None` from `change`: as it is, it will do.
    fn change_head(&self, of: &MailName, change: impl Fn(&Head) -> Option<Head>) -> Result<Head> {
        for round in 0..super::update::ROUNDS {
            let head = self.head(of)?;
            let written = head.bytes.as_ref().is_some_and(|bytes| !bytes.is_empty());
            let next = match change(&head.says) {
                None if written => return Ok(head.says),
                next => next.unwrap_or_else(|| head.says.clone()),
            };
            let bytes = next.encode(self.write_id()?);
            if self.swap_cell(&head.key, head.bytes.as_deref(), &bytes, round)? {
                return Ok(next);
            }
        }
        Err(self.contended(&self.head(of)?.key))
    }

    fn cursor(&self, of: &MailName, reader: &MailName) -> Result<Cell<Cursor>> {
        let key = key(format!("{}/{}", readers_folder(of), reader.part()))?;
        let cell = self.cursor_at(key)?;
        match cell.says {
            Some(cursor) if cursor.of != *of || cursor.reader != *reader => {
                Err(self.of_another(&cell.key, &cursor.reader))
            }
            Some(cursor) => Ok(Cell { key: cell.key, bytes: cell.bytes, says: cursor }),
            None => {
                let says = Cursor::new(of.clone(), reader.clone());
                Ok(Cell { key: cell.key, bytes: cell.bytes, says })
            }
        }
    }

    fn cursor_at(&self, key: Key) -> Result<Cell<Option<Cursor>>> {
        let bytes = self.store.read(&key)?;
        let says = Cursor::decode(bytes.as_deref().unwrap_or_default());
        let says = says.map_err(|why| self.unreadable(&key, &why))?;
        Ok(Cell { key, bytes, says })
    }

    fn of_another(&self, key: &Key, name: &MailName) -> crate::Error {
        self.unreadable(key, &crate::domain::Malformed::OtherNode(name.to_string()))
    }

    /// The readers of `of`; of one that is joining there is only a cursor without positions.
    fn cursors(&self, of: &MailName) -> Result<Vec<Cell<Option<Cursor>>>> {
        let folder = readers_folder(of);
        let keys = self.store.list(&Prefix::Internal(&folder), None, usize::MAX)?;
        keys.into_iter().map(|key| self.cursor_at(key)).collect()
    }

    /// All heads' keys.
    fn heads(&self) -> Result<Vec<Key>> {
        self.store.list(&Prefix::Internal("mail/heads"), None, usize::MAX)
    }

    fn message(&self, of: &MailName, number: u64) -> Result<Option<Message>> {
        let key = message_key(of, number)?;
        let Some(bytes) = self.store.read(&key)? else { return Ok(None) };
        Message::decode(of, number, &bytes).map(Some).map_err(|why| self.unreadable(&key, &why))
    }

    fn is_taken(&self, of: &MailName, number: u64) -> Result<bool> {
        Ok(self.store.read(&message_key(of, number)?)?.is_some())
    }

    /// The first number that was never given out, by what stands there: above `taken`, and above every message that
    /// is there, also where one before it was deleted from outside. Its number is not used again, or readers that
    /// were handed it would pass the next one by.
    fn end(&self, of: &MailName, mut taken: u64) -> Result<u64> {
        let folder = messages_folder(of);
        let mut after = message_key(of, taken)?;
        loop {
            let found = self.store.list(&Prefix::Internal(&folder), Some(after.name()), LISTED)?;
            taken = found.iter().filter_map(|key| number_of(of, key)).fold(taken, u64::max);
            let Some(listed) = found.into_iter().nth(LISTED - 1) else { return Ok(taken + 1) };
            // The head is far behind.
            taken = self.first_free(of, taken)? - 1;
            let there = message_key(of, taken)?;
            after = if listed.name() > there.name() { listed } else { there };
        }
    }

    /// The first free number above `taken`, which is taken or not above the floor: a gallop, then halves.
    fn first_free(&self, of: &MailName, mut taken: u64) -> Result<u64> {
        let mut step = 1;
        let mut free = loop {
            let probed = taken + step;
            if !self.is_taken(of, probed)? {
                break probed;
            }
            taken = probed;
            step *= 2;
        };
        while free - taken > 1 {
            let middle = taken + (free - taken) / 2;
            if self.is_taken(of, middle)? {
                taken = middle;
            } else {
                free = middle;
            }
        }
        Ok(free)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_ordered_as_numbers_are_and_read_back() {
        let of = MailName::new("b").unwrap();
        let numbers = [1, 2, 99, 100, 101, 9_999, 10_000, 100_042, 999_999, 1_000_000, u64::MAX];
        let keys: Vec<Key> = numbers.iter().map(|n| message_key(&of, *n).unwrap()).collect();
        assert!(keys.is_sorted(), "{keys:?}");
        assert_eq!(keys[7].name(), "mail/messages/b/310/00/42");
        assert_eq!(keys.iter().map(|key| number_of(&of, key).unwrap()).collect::<Vec<_>>(), numbers);
        for odd in ["11", "200/01", "10x", "x01", "1+1", "1/01", "ä01", "1"] {
            let odd = key(format!("mail/messages/b/{odd}")).unwrap();
            assert_eq!(number_of(&of, &odd), None, "{odd}");
        }
    }
}
