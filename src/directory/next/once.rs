//! `next` with a receipt: whichever task it takes, a retry gets that one.
//!
//! The receipt names the task aimed at and the write that the claim will replace, before anything is claimed. It moves
//! to another only by a swap, once the task has passed that write without the claim: then no earlier call, wherever
//! it was stopped, can still publish it. So all calls with one key together take one task.

use super::{Next, Nothing};
use crate::directory::receipts::Request;
use crate::directory::update::ROUNDS;
use crate::directory::{Directory, Lease};
use crate::domain::{Answer, Fingerprint, Node, Reason, Receipt, ReceiptKey, Refusal, Step, Target};
use crate::error::Result;
use crate::id::NodeId;

impl Directory {
    pub(super) fn next_once(&self, request: &Next, key: &ReceiptKey) -> Result<Result<Lease, Nothing>> {
        let once = Request::new(key, request.fingerprint())?;
        for round in 0..ROUNDS {
            let bytes = self.store.read(&once.key)?;
            let receipt: Option<Receipt<Node>> =
                self.decode_receipt(&once.key, bytes.as_deref().unwrap_or_default())?;
            if let Some(begun) = receipt {
                if begun.fingerprint != once.fingerprint {
                    return Ok(Err(conflict(begun.fingerprint, once.fingerprint)?));
                }
                // One that is settled has its answer, whichever node it is asked of.
                let settled = begun.settled.map(|(node, _)| Target { id: node.id, write: node.write });
                if let Some(target) = settled.or(begun.target) {
                    match self.take(&target.id, &request.acquire, Some(&once), Some(target.write))? {
                        Ok(lease) => return Ok(Ok(lease)),
                        // It was taken, and was over before anybody could be told: this request is answered.
                        Err(refusal) if matches!(refusal.reason, Reason::Stale(_)) => {
                            return Ok(Err(Nothing::barred(refusal)));
                        }
                        Err(_) => self.pass(&target)?,
                    }
                }
            }
            let target = match self.aim(request)? {
                Ok(target) => target,
                // Another call with this key may have taken the last one meanwhile.
                Err(_) if self.store.read(&once.key)? != bytes => continue,
                Err(nothing) => return Ok(Err(nothing)),
            };
            if !self.begin::<Node>(&once, Some(target), bytes)? {
                self.pause_after(round)?;
            }
        }
        Err(self.contended(&once.key))
    }

    /// Has the target pass the write aimed at, if it has not.
    fn pass(&self, target: &Target) -> Result<()> {
        let answer = self.without_receipt().update(&target.id, |node, _, write| {
            let stays = node.write == target.write;
            Step { write: stays.then(|| node.next(write, node.state.clone())), answer: Ok(()) }
        })?;
        let _: Answer<()> = answer;
        Ok(())
    }

    /// The task whose turn it is, at the write that it is at.
    fn aim(&self, request: &Next) -> Result<Result<Target, Nothing>> {
        self.walks(request, &mut |(node, _)| {
            // The record that was met: a claim is tried only from this write.
            let would = self.would_acquire(&node.id, &request.acquire)?;
            Ok(would.map(|_| Target { id: node.id, write: node.write }))
        })
    }
}

/// The key stands for another request.
fn conflict(recorded: Fingerprint, shown: Fingerprint) -> Result<Nothing> {
    let refusal = Refusal::not_found(&NodeId::new("next")?).because(Reason::OtherRequest { recorded, shown });
    Ok(Nothing::barred(refusal))
}
