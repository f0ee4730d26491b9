//! Reading and acknowledging.

use std::time::Duration;

use serde_json::{Value, json};

use super::once::Met;
use super::{Directory, FOLDER, message_key};
use crate::directory::update::ROUNDS;
use crate::domain::{Cursor, MailAnswer, MailName, MailReason, MailRefusal, Message, Page, acknowledge};
use crate::error::{Error, Result};
use crate::store::Watch;

impl Directory {
    /// Hands out the messages after what `reader` has acknowledged, at most `limit`. The same again, until it
    /// acknowledges them: reading never does. [`MailReason::Nothing`] if there are none.
    ///
    /// With a receipt ([`Directory::with_receipt`]) a page is handed out once: the same request again gets that page,
    /// acknowledged or not, without the messages that were pruned since.
    pub fn read_mail(&self, of: &MailName, reader: &MailName, limit: usize) -> Result<MailAnswer<Page>> {
        if limit == 0 {
            return Err(Error::usage("a page has at least one message"));
        }
        let request = self.reader_request("mail read", of, reader, limit as u64)?;
        for round in 0..ROUNDS {
            let mut cell = self.cursor(of, reader)?;
            let pending = match self.meet(request.as_ref(), &cell)? {
                Met::Answer(cursor, answer) => return self.page_again(*cursor, &answer).map(Ok),
                Met::Refused(refusal) => return Ok(Err(refusal)),
                Met::Nothing(pending) => pending,
            };
            let cursor = &cell.says;
            let joined = cell.bytes.as_ref().is_some_and(|bytes| !bytes.is_empty());
            let start = cursor.acknowledged.max(self.head(of)?.says.floor) + 1;
            let messages = self.page(of, start, limit)?;
            if self.head(of)?.says.floor >= start {
                continue; // pruned meanwhile
            }
            let Some(last) = messages.last().map(|message| message.number) else {
                let (handed_out, acknowledged) = (cursor.handed_out, cursor.acknowledged);
                let reason = MailReason::Nothing { next: start, handed_out, acknowledged };
                return Ok(Err(MailRefusal { on: of.clone(), reason }));
            };
            let next = Cursor { handed_out: last.max(cursor.handed_out), ..cursor.clone() };
            if !joined || next != *cursor || pending.has_receipt() {
                self.confirm_page(of, &messages)?;
                if !joined {
                    if self.join(of, &cell.key)? >= start {
                        continue; // pruned meanwhile
                    }
                    cell.bytes.get_or_insert_default();
                }
                let numbers = json!({"first": start, "last": last});
                if !self.move_cursor(&cell, &next, request.as_ref(), pending, numbers, round)? {
                    continue;
                }
            }
            let Cursor { handed_out, acknowledged, .. } = next;
            return Ok(Ok(Page { messages, handed_out, acknowledged, replay: false }));
        }
        Err(self.contended(&self.cursor(of, reader)?.key))
    }

    /// The same, waiting for at most `wait` until there is something to read.
    pub fn await_mail(
        &self,
        of: &MailName,
        reader: &MailName,
        limit: usize,
        wait: Duration,
    ) -> Result<MailAnswer<Page>> {
        let end = self.host.mono_ns().saturating_add(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX));
        let mut watched: Option<(u64, Box<dyn Watch + '_>)> = None;
        loop {
            let refusal = match self.read_mail(of, reader, limit)? {
                Err(refusal) => refusal,
                page => return Ok(page),
            };
            let MailReason::Nothing { next, .. } = refusal.reason else { return Ok(Err(refusal)) };
            let left = end.saturating_sub(self.host.mono_ns());
            if left == 0 {
                let reason = MailReason::TimedOut(Box::new(refusal));
                return Ok(Err(MailRefusal { on: of.clone(), reason }));
            }
            match watched.as_mut().filter(|(watched, _)| *watched == next) {
                Some((_, watch)) => watch.wait(Duration::from_nanos(left), &[]),
                // Look out first and read once more: what comes from here on wakes.
                None => watched = Some((next, self.store.watch(&message_key(of, next)?))),
            }
        }
    }

    /// `reader` has dealt with everything up to `number`; its positions then, and whether it had said so before.
    pub fn acknowledge(
        &self,
        of: &MailName,
        reader: &MailName,
        number: u64,
    ) -> Result<MailAnswer<(Cursor, bool)>> {
        let request = self.reader_request("mail ack", of, reader, number)?;
        for round in 0..ROUNDS {
            let cell = self.cursor(of, reader)?;
            let pending = match self.meet(request.as_ref(), &cell)? {
                Met::Answer(cursor, _) => return Ok(Ok((*cursor, true))),
                Met::Refused(refusal) => return Ok(Err(refusal)),
                Met::Nothing(pending) => pending,
            };
            let moved = match acknowledge(&cell.says, number) {
                Err(refusal) => return Ok(Err(refusal)),
                Ok(moved) => moved,
            };
            let said = moved.is_none();
            // Only reading makes a cursor.
            let joined = cell.bytes.as_ref().is_some_and(|bytes| !bytes.is_empty());
            if said && !(joined && pending.has_receipt()) {
                if cell.bytes.is_some() {
                    self.store.confirm(&cell.key)?;
                }
                return Ok(Ok((cell.says, true)));
            }
            let next = moved.unwrap_or_else(|| cell.says.clone());
            if self.move_cursor(&cell, &next, request.as_ref(), pending, Value::Null, round)? {
                return Ok(Ok((next, said)));
            }
        }
        Err(self.contended(&self.cursor(of, reader)?.key))
    }

    fn page(&self, of: &MailName, start: u64, limit: usize) -> Result<Vec<Message>> {
        let mut messages = Vec::new();
        for number in (start..).take(limit) {
            match self.message(of, number)? {
                Some(message) => messages.push(message),
                None => break,
            }
        }
        Ok(messages)
    }

    /// What is left of the page that `answer` names, which was handed out when the cursor was this one.
    fn page_again(&self, cursor: Cursor, answer: &Value) -> Result<Page> {
        let number = |name: &str| answer[name].as_u64().unwrap_or_default();
        let first = number("first").max(self.head(&cursor.of)?.says.floor + 1);
        let limit = usize::try_from((number("last") + 1).saturating_sub(first)).unwrap_or(usize::MAX);
        let messages = self.page(&cursor.of, first, limit)?;
        let Cursor { handed_out, acknowledged, .. } = cursor;
        Ok(Page { messages, handed_out, acknowledged, replay: true })
    }

    /// What a reader was handed must not vanish in a power cut, or another message gets its number and is taken
    /// for read. Their contents were on disk before their names; for the names, one message a folder will do.
    fn confirm_page(&self, of: &MailName, messages: &[Message]) -> Result<()> {
        let last = messages.last().map(|message| message.number);
        for message in messages {
            if Some(message.number) == last || (message.number + 1).is_multiple_of(FOLDER) {
                self.store.confirm(&message_key(of, message.number)?)?;
            }
        }
        Ok(())
    }

    /// Makes the cursor, empty, and swaps the head, so that a pruner that has not seen the cursor looks again. The
    /// floor that holds from then on for this reader.
    fn join(&self, of: &MailName, cursor: &crate::store::Key) -> Result<u64> {
        self.store.make(cursor)?;
        Ok(self.change_head(of, |head| Some(head.clone()))?.floor)
    }
}
