//! Looking at boxes, and letting go of what every reader has dealt with.

use super::{Directory, messages_folder, number_of};
use crate::directory::update::ROUNDS;
use crate::domain::{Cursor, Head, MailName, Mailbox};
use crate::error::{Error, Result};
use crate::store::Prefix;

/// What [`Directory::mailboxes`] found.
#[derive(Debug, Default)]
pub struct MailSeen {
    /// The boxes, in order of their names.
    pub boxes: Vec<Mailbox>,
    /// What can't be read; the others go on.
    pub unreadable: Vec<Error>,
}

impl Directory {
    /// All boxes. Writes nothing.
    pub fn mailboxes(&self) -> Result<MailSeen> {
        let mut seen = MailSeen::default();
        for key in self.heads()? {
            let mailbox = self.head_at(key).and_then(|cell| match cell.says {
                Some(head) => self.look_into(&head).map(Some),
                None => Ok(None),
            });
            match mailbox {
                Ok(mailbox) => seen.boxes.extend(mailbox),
                Err(error) => seen.unreadable.push(error),
            }
        }
        seen.boxes.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(seen)
    }

    /// The box `of`; `None` if nobody has sent to it yet. Writes nothing.
    pub fn mailbox(&self, of: &MailName) -> Result<Option<Mailbox>> {
        let head = self.head(of)?;
        match head.bytes {
            Some(bytes) if !bytes.is_empty() => self.look_into(&head.says).map(Some),
            _ => Ok(None),
        }
    }

    fn look_into(&self, head: &Head) -> Result<Mailbox> {
        let mut readers: Vec<Cursor> =
            self.cursors(&head.of)?.into_iter().filter_map(|cell| cell.says).collect();
        readers.sort_by(|a, b| a.reader.cmp(&b.reader));
        let last = self.end(&head.of, head.last.max(head.floor))? - 1;
        Ok(Mailbox { name: head.of.clone(), last, floor: head.floor, readers })
    }

    /// Lets go of messages sent before `before_ms` that every reader of their box has acknowledged; how many. A box
    /// that nobody has read is kept whole.
    pub(in crate::directory) fn prune_mail(&self, before_ms: i64, dry_run: bool) -> Result<usize> {
        let mut pruned = 0;
        for key in self.heads()? {
            // What can't be read is kept, and `doctor` tells of it.
            let Ok(Some(head)) = self.head_at(key).map(|cell| cell.says) else { continue };
            let Some(floor) = self.raise_floor(&head.of, before_ms, dry_run)? else { continue };
            pruned += usize::try_from(floor - head.floor).unwrap_or(usize::MAX);
            if !dry_run {
                self.clear_below(&head.of, floor)?;
            }
        }
        Ok(pruned)
    }

    /// Swaps the floor into the head, as high as it may be. `None`: readers can't be read, so it stays.
    fn raise_floor(&self, of: &MailName, before_ms: i64, dry_run: bool) -> Result<Option<u64>> {
        for round in 0..ROUNDS {
            let cell = self.head(of)?;
            let head = &cell.says;
            let Ok(cursors) = self.cursors(of) else { return Ok(None) };
            let dealt_with =
                cursors.iter().map(|cell| cell.says.as_ref().map_or(0, |says| says.acknowledged));
            let most = dealt_with.min().unwrap_or(0);
            let mut floor = head.floor;
            while floor < most && self.may_go(of, floor + 1, before_ms, dry_run)? {
                floor += 1;
            }
            if floor == head.floor || dry_run {
                return Ok(Some(floor));
            }
            let next = Head { floor, last: head.last.max(floor), ..head.clone() };
            if self.swap_cell(&cell.key, cell.bytes.as_deref(), &next.encode(self.write_id()?), round)? {
                return Ok(Some(floor));
            }
        }
        Err(self.contended(&self.head(of)?.key))
    }

    /// May message `number` go, every reader having dealt with it? If so its key is settled: afterwards its number
    /// no longer tells that it was sent.
    fn may_go(&self, of: &MailName, number: u64, before_ms: i64, dry_run: bool) -> Result<bool> {
        let Ok(Some(message)) = self.message(of, number) else { return Ok(false) };
        if message.sent_ms >= before_ms {
            return Ok(false);
        }
        // Another pruner may have been faster, and then this is a latecomer's, which its sender will send anew.
        if !dry_run && message.request.is_some() {
            if self.head(of)?.says.floor >= number {
                return Ok(false);
            }
            self.settle_key_of(&message)?;
        }
        Ok(true)
    }

    /// Removes what stands below the floor, also what an earlier pruner left there.
    pub(super) fn clear_below(&self, of: &MailName, floor: u64) -> Result<()> {
        for key in self.store.list(&Prefix::Internal(&messages_folder(of)), None, usize::MAX)? {
            if number_of(of, &key).is_some_and(|number| number <= floor) {
                self.store.remove(&key)?;
            }
        }
        Ok(())
    }
}
