//! Requests with a receipt: the same effect once, however often they are sent.

use std::time::Duration;

use serde_json::Value;

use super::Directory;
use super::update::ROUNDS;
use crate::domain::{
    Answer, Carrier, Facts, Fingerprint, Found, LastWrite, Node, Reason, Receipt, ReceiptKey, Recorded, Step,
    Target, WriteId, decode_receipt, encode_receipt, find,
};
use crate::error::Result;
use crate::id::NodeId;
use crate::store::{Key, Prefix, Replaced};

/// The folder of receipts.
const FOLDER: &str = "receipts";

/// How long the keys of messages are kept at the least, in milliseconds.
const MAIL_KEYS_MS: i64 = 7 * 24 * 3_600_000;

/// What [`Directory::prune`] removed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pruned {
    /// How many receipts, and work keys.
    pub receipts: usize,
    /// How many messages.
    pub messages: usize,
    /// How many nodes' inputs and results.
    pub results: usize,
    /// How many blobs that no record names, left over by writers that died.
    pub blobs: usize,
    /// How many days of the journal.
    pub days: usize,
}

/// A request that shows a receipt.
pub(super) struct Request {
    /// The receipt's name.
    pub(super) name: String,
    pub(super) key: Key,
    pub(super) fingerprint: Fingerprint,
}

impl Request {
    pub(super) fn new(key: &ReceiptKey, fingerprint: Fingerprint) -> Result<Request> {
        let name = key.hash();
        Ok(Request { key: receipt_key(&name)?, name, fingerprint })
    }

    /// What the record carries that this request makes, with this answer.
    pub(super) fn write(&self, answer: Value) -> LastWrite {
        LastWrite { receipt: self.name.clone(), fingerprint: self.fingerprint.clone(), answer }
    }
}

impl Directory {
    /// The same directory for one request: its next write happens once, however often it is sent with this key.
    ///
    /// The same key and request again is answered as before, as a replay, and writes nothing; another request
    /// under the same key is refused ([`Reason::OtherRequest`]). Keys are remembered until they are pruned.
    pub fn with_receipt(&self, key: ReceiptKey) -> Directory {
        Directory { receipt: Some(key), ..self.clone() }
    }

    /// The same directory for other requests.
    pub(super) fn without_receipt(&self) -> Directory {
        Directory { receipt: None, ..self.clone() }
    }

    /// Changes the node `id` as `decide` says, once if this directory has a receipt. What makes a request the
    /// same is its operation, its owner, its node and its arguments.
    pub(super) fn update_once<T: Recorded>(
        &self,
        id: &NodeId,
        operation: &str,
        owner: Option<&str>,
        arguments: impl FnOnce() -> Value,
        mut decide: impl FnMut(&Node, &Facts<'_>, WriteId) -> Step<T>,
    ) -> Result<Answer<T>> {
        let decide = |node: &Node, facts: &Facts<'_>, write| Ok(Some(decide(node, facts, write)));
        self.rounds_once(id, operation, owner, arguments, decide)
    }

    /// The same for a decision that may need something done first, and then answers `None`.
    pub(super) fn rounds_once<T: Recorded>(
        &self,
        id: &NodeId,
        operation: &str,
        owner: Option<&str>,
        arguments: impl FnOnce() -> Value,
        decide: impl FnMut(&Node, &Facts<'_>, WriteId) -> Result<Option<Step<T>>>,
    ) -> Result<Answer<T>> {
        let request =
            |receipt| Request::new(receipt, Fingerprint::of(operation, owner, id.as_str(), arguments()));
        let once = self.receipt.as_ref().map(request).transpose()?;
        self.rounds_as(once.as_ref(), id, decide)
    }

    /// The same for a request that is known, if there is one.
    pub(super) fn rounds_as<T: Recorded>(
        &self,
        once: Option<&Request>,
        id: &NodeId,
        mut decide: impl FnMut(&Node, &Facts<'_>, WriteId) -> Result<Option<Step<T>>>,
    ) -> Result<Answer<T>> {
        match once {
            None => self.rounds(id, decide),
            Some(once) => {
                self.rounds(id, |node, facts, write| self.round(once, node, facts, write, &mut decide))
            }
        }
    }

    /// One round: the node was read; now the receipt, then the decision.
    fn round<T: Recorded>(
        &self,
        request: &Request,
        node: &Node,
        facts: &Facts<'_>,
        write: WriteId,
        decide: &mut impl FnMut(&Node, &Facts<'_>, WriteId) -> Result<Option<Step<T>>>,
    ) -> Result<Option<Step<T>>> {
        let (found, bytes) = self.found(request, &Key::Node(node.id.clone()), node)?;
        let begun = match found {
            Found::Conflict(recorded) => {
                let shown = request.fingerprint.clone();
                return Ok(Some(Step::refuse(node, Reason::OtherRequest { recorded, shown })));
            }
            Found::Answer { record, answer, .. } => {
                return Ok(Some(Step::answer(T::restore(*record, &answer))));
            }
            Found::NoEffect { begun } => begun,
        };
        let Some(mut step) = decide(node, facts, write)? else { return Ok(None) };
        if let (Some(next), Ok(answer)) = (&mut step.write, &step.answer) {
            // From here on the key is pinned to this request, also if it is refused later.
            if !begun && !self.begin::<Node>(request, None, bytes)? {
                return Ok(None);
            }
            next.last_write = Some(request.write(answer.rest()));
        }
        Ok(Some(step))
    }

    /// What became of the request so far, with the receipt's bytes. `record` was read before, from `key`. An answer
    /// that is found will be found again, also after a power cut.
    pub(super) fn found<R: Carrier>(
        &self,
        request: &Request,
        key: &Key,
        record: &R,
    ) -> Result<(Found<R>, Option<Vec<u8>>)> {
        let bytes = self.store.read(&request.key)?;
        let receipt = self.decode_receipt(&request.key, bytes.as_deref().unwrap_or_default())?;
        let found = find(record, receipt.as_ref(), &request.name, &request.fingerprint);
        match &found {
            Found::Answer { settled: false, .. } => self.settle_last(key, record)?,
            Found::Answer { settled: true, .. } => self.store.confirm(&request.key)?,
            _ => {}
        }
        Ok((found, bytes))
    }

    /// Settles the receipt of the write that made `record`, which another may have published.
    pub(super) fn settle_last<R: Carrier>(&self, key: &Key, record: &R) -> Result<()> {
        let Some(last) = record.last_write() else { return Ok(()) };
        #[cfg(feature = "testing")]
        if crate::testing::fault("replaced before its receipt is settled") {
            return Ok(());
        }
        self.settle_receipt(last, record, Some(key))
    }

    /// Makes the receipt pending, with what it aims at. `false`: somebody else did something to it.
    pub(super) fn begin<R: Carrier>(
        &self,
        request: &Request,
        target: Option<Target>,
        bytes: Option<Vec<u8>>,
    ) -> Result<bool> {
        #[cfg(feature = "testing")]
        if crate::testing::fault("no receipt before the effect") {
            return Ok(true);
        }
        let pending = Receipt::<R> {
            fingerprint: request.fingerprint.clone(),
            at_ms: self.host.now().wall_ms,
            target,
            settled: None,
        };
        let pending = self.encode_receipt(&pending)?;
        match bytes {
            // A name that nobody has takes its first contents whole; from then on it changes by the swap.
            None => self.store.publish(&request.key, &pending),
            Some(made) => Ok(matches!(self.store.replace(&request.key, &made, &pending)?, Replaced::Done)),
        }
    }

    /// Writes the answer of the request that made `record` what it is into its receipt, or makes sure that it is
    /// there to stay. A receipt that was pruned is not made again. `of`: the record's key, if another published it:
    /// then it may not be on disk yet, and an answer must not outlive its effect in a power cut.
    pub(super) fn settle_receipt<R: Carrier>(
        &self,
        last: &LastWrite,
        record: &R,
        of: Option<&Key>,
    ) -> Result<()> {
        let key = receipt_key(&last.receipt)?;
        for round in 0..ROUNDS {
            let Some(bytes) = self.store.read(&key)? else { return Ok(()) };
            match self.decode_receipt::<R>(&key, &bytes)? {
                Some(receipt) if receipt.settled.is_some() => return self.store.confirm(&key),
                Some(receipt) if receipt.fingerprint != last.fingerprint => return Ok(()),
                _ => {}
            }
            #[cfg(feature = "testing")]
            let of = of.filter(|_| !crate::testing::fault("a receipt settled before its change is on disk"));
            if let Some(of) = of {
                self.store.confirm(of)?;
            }
            let settled = Receipt {
                fingerprint: last.fingerprint.clone(),
                at_ms: self.host.now().wall_ms,
                target: None,
                settled: Some((Box::new(record.clone().without_last_write()), last.answer.clone())),
            };
            match self.store.replace(&key, &bytes, &self.encode_receipt(&settled)?)? {
                Replaced::Done => return Ok(()),
                Replaced::Changed(_) => {}
                Replaced::Cancelled => self.pause_after(round)?,
                Replaced::Unknown(error) => return Err(error),
            }
        }
        Err(self.contended(&key))
    }

    /// All receipts.
    pub(super) fn receipts(&self) -> Result<Vec<Key>> {
        self.store.list(&Prefix::Internal(FOLDER), None, usize::MAX)
    }

    /// The receipt at `key`; `None` if it was made and not written, or is gone.
    pub(super) fn receipt_at(&self, key: &Key) -> Result<Option<Receipt<Node>>> {
        let bytes = self.store.read(key)?.unwrap_or_default();
        self.decode_receipt(key, &bytes)
    }

    /// Forgets receipts that were last written more than `older` ago, and messages that were sent before that and
    /// that every reader has acknowledged, and the inputs and results of nodes that ended and were last written before
    /// that, and the journal's days that were over by then; with `dry_run` only counts them. What is left of such a node says how it ended, and still tells a
    /// repeated call from one that contradicts. The keys of messages are kept for at
    /// least 7 days: they must outlive their messages, or a late retry sends one anew.
    ///
    /// A pruner that is frozen between looking at a receipt and removing it may forget a key that was used again
    /// meanwhile: keys should not be used again after their time.
    pub fn prune(&self, older: Duration, dry_run: bool) -> Result<Pruned> {
        let older = i64::try_from(older.as_millis()).unwrap_or(i64::MAX);
        let now = self.host.now().wall_ms;
        let (before, week_ago) = (now.saturating_sub(older), now.saturating_sub(MAIL_KEYS_MS));
        let mut pruned = Pruned {
            messages: self.prune_mail(before, dry_run)?,
            results: self.prune_results(before, dry_run)?,
            blobs: self.prune_blobs(dry_run)?,
            days: self.prune_journal(before, dry_run)?,
            ..Pruned::default()
        };
        for key in self.receipts()? {
            let Ok(Some(receipt)) = self.receipt_at(&key) else { continue };
            let before = if self.is_of_mail(&key)? { before.min(week_ago) } else { before };
            if receipt.at_ms < before && (dry_run || self.store.remove(&key)?) {
                pruned.receipts += 1;
            }
        }
        Ok(pruned)
    }

    fn encode_receipt<R: Carrier>(&self, receipt: &Receipt<R>) -> Result<Vec<u8>> {
        Ok(encode_receipt(receipt, WriteId::of(self.host.random()?)))
    }

    pub(super) fn decode_receipt<R: Carrier>(&self, key: &Key, bytes: &[u8]) -> Result<Option<Receipt<R>>> {
        decode_receipt(bytes).map_err(|why| self.unreadable(key, &why))
    }
}

pub(super) fn receipt_key(name: &str) -> Result<Key> {
    let folder = name.get(..2).unwrap_or_default();
    Key::internal(format!("{FOLDER}/{folder}/{name}.receipt"))
}
