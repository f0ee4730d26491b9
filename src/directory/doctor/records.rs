//! Records, and what goes with one: blobs, a receipt.

use super::{Suspect, Visit};
use crate::directory::receipts::receipt_key;
use crate::domain::{Carrier, LastWrite, Node};
use crate::error::Result;
use crate::id::NodeId;
use crate::store::{Finding, Gravity, Key};

impl Visit<'_> {
    /// Every record; how many there are. One after the other: of all of them only the names are kept, and the paths
    /// of live claims.
    pub(super) fn records(&mut self) -> Result<usize> {
        let mut unlisted = Vec::new();
        let ids = self.directory.store.nodes(&mut |id, error| unlisted.push((id, error)))?;
        for (id, error) in unlisted {
            self.hints_whole = false; // of what is in there nothing is known
            self.unreadable(self.directory.place(Some(&id)), &error);
        }
        let mut records = 0;
        for id in ids {
            match self.directory.node(&id) {
                Ok(None) => {}
                Ok(Some(node)) => {
                    records += 1;
                    self.record(&node);
                }
                Err(error) => self.unreadable(self.directory.place(Some(&id)), &error),
            }
        }
        Ok(records)
    }

    fn record(&mut self, node: &Node) {
        self.tasks += usize::from(node.task.is_some());
        for what in self.directory.wrong_blobs(node) {
            let next = "put it back from a copy; the record can't be mended without it";
            self.report(Finding::new(Gravity::Fault, self.directory.place(Some(&node.id)), what, next));
        }
        if let Some(last) = &node.last_write
            && self.is_unsettled::<Node>(last)
        {
            self.suspect(Suspect::Receipt(node.id.clone()));
        }
        for checked in [self.is_led(node), self.has_entries(node), self.keep_claim(node)] {
            if let Err(error) = checked {
                self.unreadable(self.directory.place(Some(&node.id)), &error);
            }
        }
    }

    /// Is the receipt of this write pending? One that can't be read is found elsewhere.
    pub(in crate::directory) fn is_unsettled<R: Carrier>(&self, last: &LastWrite) -> bool {
        let read = || {
            let key = receipt_key(&last.receipt)?;
            let bytes = self.directory.store.read(&key)?.unwrap_or_default();
            self.directory.decode_receipt::<R>(&key, &bytes)
        };
        let receipt = read().ok().flatten();
        receipt.is_some_and(|receipt| receipt.settled.is_none() && receipt.fingerprint == last.fingerprint)
    }

    pub(super) fn receipt_again(&mut self, id: &NodeId) {
        if let Ok(Some(node)) = self.directory.node(id) {
            self.unsettled(&Key::Node(id.clone()), &node);
        }
    }

    /// A receipt that is pending although the record at `key` has its answer: whoever writes it next would settle it.
    pub(in crate::directory) fn unsettled<R: Carrier>(&mut self, key: &Key, record: &R) {
        let Some(last) = record.last_write().filter(|last| self.is_unsettled::<R>(last)) else { return };
        let Ok(receipt) = receipt_key(&last.receipt) else { return };
        let what = format!("it is pending, and its answer is in {}", self.place(key));
        let next = "whoever writes that record next settles it, and `claim doctor --repair`";
        let finding = Finding::new(Gravity::Leftover, self.place(&receipt), what, next);
        self.mend(finding, |directory| directory.settle_last(key, record).map(|()| true));
    }

    /// Every receipt can be read.
    pub(super) fn receipts(&mut self) -> Result<()> {
        for key in self.directory.receipts()? {
            if let Err(error) = self.directory.receipt_at(&key) {
                self.unreadable(self.place(&key), &error);
            }
        }
        Ok(())
    }

    pub(super) fn left_over_blobs(&mut self) -> Result<()> {
        for key in self.directory.left_over_blobs()? {
            self.suspect(Suspect::Blob(key));
        }
        Ok(())
    }

    /// Where no record can come to name a blob any more, none ever will.
    pub(super) fn blob_again(&mut self, key: &Key) {
        if !matches!(self.directory.store.open(key), Ok(Some(_))) {
            return; // whoever wrote it has removed it
        }
        let what = "left over by a process that died; no record names it";
        let next = "`claim prune` removes it, and `claim doctor --repair`";
        let finding = Finding::new(Gravity::Leftover, self.place(key), what, next);
        self.mend(finding, |directory| directory.store.unhint(key).map(|()| true));
    }
}
