//! A claim in a program's hands.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::Directory;
use super::blobs::Opened;
use super::keeper::{self, Shared};
use crate::domain::{
    self, Acquire, Acquired, Answer, Checked, Node, Reason, Refusal, Renewal, Retry, Text, Token, Written,
};
use crate::error::{Code, Error, Result};
use crate::id::NodeId;

/// A node that this program holds, until its lease ends.
///
/// Finish it with [`release`](Lease::release) or [`complete`](Lease::complete). Dropping it gives the node back
/// as well as it can; to keep the claim beyond the program, [`leave`](Lease::leave) it.
#[must_use = "dropping a lease gives the node back at once"]
pub struct Lease {
    directory: Directory,
    token: Token,
    acquired: Acquired,
    shared: Arc<Shared>,
    settled: bool,
}

/// A lease that could not be settled, with the reason: it can be tried again.
#[derive(Debug)]
pub struct Unsettled {
    /// The lease, as it was.
    pub lease: Lease,
    /// Why it was not settled.
    pub error: Error,
}

/// What [`Directory::run`] did.
#[derive(Debug)]
pub struct Ran<T> {
    /// What the function returned.
    pub value: T,
    /// Why the lease was lost meanwhile, if it was: then somebody else may have worked on the node too.
    pub lost: Option<Refusal>,
}

impl Directory {
    /// Takes the node `id` at once, runs `work` with its lease renewed in the background, and gives it back.
    ///
    /// With a receipt ([`Directory::with_receipt`]) `work` is done at most once: where an earlier call of the same
    /// request has taken the node, the answer is [`Reason::AlreadyRun`](crate::domain::Reason::AlreadyRun).
    ///
    /// `work` is not interrupted when the lease is lost; it can ask [`Lease::is_lost`] or be told through
    /// [`Lease::on_lost`]. The lease is never quietly taken again. The owner is the process, named by its
    /// host and id; [`Directory::run_as`] takes another request and waits.
    pub fn run<T>(&self, id: &NodeId, work: impl FnOnce(&Lease) -> T) -> Result<Answer<Ran<T>>> {
        let owner = format!("{}:{}", self.host.name(), std::process::id());
        self.run_as(id, &Acquire::by(owner), Duration::ZERO, work)
    }

    /// The same, as `request` says, waiting for the node for at most `wait`.
    pub fn run_as<T>(
        &self,
        id: &NodeId,
        request: &Acquire,
        wait: Duration,
        work: impl FnOnce(&Lease) -> T,
    ) -> Result<Answer<Ran<T>>> {
        let answer =
            if wait.is_zero() { self.try_acquire(id, request)? } else { self.acquire(id, request, wait)? };
        let lease = match answer {
            Ok(lease) => lease.unless_replayed()?,
            Err(refusal) => Err(refusal),
        };
        let lease = match lease {
            Ok(lease) => lease,
            Err(refusal) => return Ok(Err(refusal)),
        };
        lease.keep()?;
        let value = work(&lease);
        let lost = match lease.lost() {
            Some(refusal) => {
                lease.leave();
                Some(refusal)
            }
            None => lease.release().map_err(|unsettled| unsettled.error)?.err(),
        };
        Ok(Ok(Ran { value, lost }))
    }
}

impl Lease {
    pub(super) fn new(directory: Directory, token: Token, acquired: Acquired) -> Lease {
        let claim = acquired.node.claim();
        let until_exit = claim.and_then(|c| c.bound.as_ref()).is_some_and(|bound| bound.until_exit);
        let ends = claim.filter(|_| !until_exit).map(|claim| claim.ends.mono_ms);
        let lease_ms = claim.map_or(1, |claim| claim.lease_ms);
        let id = acquired.node.id.clone();
        let shared = Arc::new(Shared::new(directory.clone(), id, token.clone(), ends, lease_ms));
        Lease { directory, token, acquired, shared, settled: false }
    }

    /// The node.
    pub fn id(&self) -> &NodeId {
        &self.acquired.node.id
    }

    /// The secret that every later write needs. Opaque; hand it to nobody who should not act for this claim.
    pub fn token(&self) -> &Token {
        &self.token
    }

    /// The fencing number: higher than that of every claim on this node before. Store it with what the work
    /// writes elsewhere, and refuse lower ones there.
    pub fn generation(&self) -> u64 {
        self.acquired.node.generation
    }

    /// Which attempt at the node this is.
    pub fn attempt(&self) -> u64 {
        self.acquired.node.attempt
    }

    /// The claim as it was taken.
    pub fn acquired(&self) -> &Acquired {
        &self.acquired
    }

    /// How long the lease still lasts, as far as this program knows; `None`: as long as its process lives.
    pub fn remaining(&self) -> Option<Duration> {
        self.shared.remaining_ms().map(|ms| Duration::from_millis(ms.unsigned_abs()))
    }

    /// Is the lease over, or known to be somebody else's? Costs one look at the clock.
    pub fn is_lost(&self) -> bool {
        self.lost().is_some()
    }

    /// Why it is lost, if it is.
    pub fn lost(&self) -> Option<Refusal> {
        self.shared.lost()
    }

    /// Has `tell` called once the lease is lost, on a thread of the lease's, or now if it is lost already.
    /// Without [`Lease::keep`] nobody watches, and only [`Lease::is_lost`] tells.
    pub fn on_lost(&self, tell: impl FnOnce(&Refusal) + Send + 'static) {
        self.shared.on_lost(Box::new(tell));
    }

    /// Renews the lease in the background, at a third of its length, until it is settled, lost or dropped.
    pub fn keep(&self) -> Result<()> {
        keeper::start(&self.shared).map_err(|e| {
            Error::new(Code::StoreUnavailable, format!("cannot start the threads that renew a lease: {e}"))
        })
    }

    /// Asks the store whether the claim is live: for the moment before a side effect.
    pub fn check(&self) -> Result<Answer<Checked>> {
        self.shared.check()
    }

    /// Renews now.
    pub fn renew(&self, renewal: &Renewal) -> Result<Answer<Written>> {
        self.shared.renew(renewal)
    }

    /// What its threads know of it.
    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// The lease's end is what `node` says.
    pub(super) fn renewed(&self, node: &Node) {
        self.shared.renewed(node);
    }

    pub(super) fn lose(&self, refusal: Refusal) {
        self.shared.lose(refusal);
    }

    /// Gives the node back. Refused if the claim was lost before.
    pub fn release(self) -> Result<Answer<Written>, Box<Unsettled>> {
        self.settle(|lease| lease.directory.release(lease.id(), &lease.token, None))
    }

    /// Gives the node back, blocked for a reason.
    pub fn release_blocked(self, reason: &str) -> Result<Answer<Written>, Box<Unsettled>> {
        self.settle(|lease| lease.directory.release(lease.id(), &lease.token, Some(reason)))
    }

    /// Ends the node as done, with its one result. Refused if the claim was lost before.
    pub fn complete(self, result: &Value) -> Result<Answer<Written>, Box<Unsettled>> {
        self.settle(|lease| lease.directory.complete(lease.id(), &lease.token, result))
    }

    /// The same with the JSON that `from` gives, as in [`Directory::complete_from`].
    pub fn complete_from(self, from: &mut dyn Read) -> Result<Answer<Written>, Box<Unsettled>> {
        self.settle(|lease| lease.directory.complete_from(lease.id(), &lease.token, from))
    }

    /// The same with a program's output, as in [`Directory::complete_from_output`].
    pub fn complete_from_output(self, from: &mut dyn Read) -> Result<Answer<Written>, Box<Unsettled>> {
        self.settle(|lease| lease.directory.complete_from_output(lease.id(), &lease.token, from))
    }

    /// The task's input, to be read piece by piece, wherever it is kept; `null` if it has none.
    pub fn open_input(&self) -> Result<Opened> {
        self.directory.open_input(&self.acquired.node)
    }

    /// Gives the node back with its attempt counted: to be taken after a backoff, or failed if that was the last.
    pub fn retry(self, how: &Retry) -> Result<Answer<Written>, Box<Unsettled>> {
        self.settle(|lease| lease.directory.retry(lease.id(), &lease.token, how))
    }

    /// Ends the node as failed: no attempt will help. Refused if the claim was lost before.
    pub fn reject(self, reason: Option<&Text>) -> Result<Answer<Written>, Box<Unsettled>> {
        self.settle(|lease| lease.directory.reject(lease.id(), &lease.token, reason))
    }

    /// Keeps the claim as it is, without this program: it lasts until its lease ends or the token settles it.
    pub fn leave(mut self) -> (Token, Acquired) {
        self.settled = true;
        self.shared.stop();
        (self.token.clone(), self.acquired.clone())
    }

    /// The lease, if it was taken by this call. One that an earlier call of the same request took is left to that
    /// call, and what became of it is the answer.
    pub fn unless_replayed(self) -> Result<Answer<Lease>> {
        if !self.acquired.replay {
            return Ok(Ok(self));
        }
        let directory = self.directory.clone();
        let (_, Acquired { node: taken, .. }) = self.leave();
        let now = directory.node(&taken.id)?.unwrap_or_else(|| Node::unowned(taken.id.clone()));
        let became = directory.with_facts(&now, |facts| domain::became(&taken, &now, facts));
        let generation = taken.generation;
        Ok(Err(Refusal::new(&now, Reason::AlreadyRun { generation, became })))
    }

    fn settle<T>(
        mut self,
        settle: impl FnOnce(&Lease) -> Result<Answer<T>>,
    ) -> Result<Answer<T>, Box<Unsettled>> {
        match settle(&self) {
            Ok(answer) => {
                self.settled = true;
                Ok(answer)
            }
            Err(error) => Err(Box::new(Unsettled { lease: self, error })),
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.shared.stop();
        if !self.settled {
            let _ = self.directory.release(self.id(), &self.token, None);
        }
    }
}

impl std::fmt::Debug for Lease {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lease").field("node", &self.acquired.node).finish_non_exhaustive()
    }
}
