//! Taking a node.

use std::time::Duration;

use serde_json::{Value, json};

use super::Step;
use super::over::{lapsed, rebased, refuse_ended};
use super::record::{
    AttemptEnd, Bound, Claim, Forced, Moment, Name, Node, RepoPath, Resources, State, Token, WriteId,
};
use super::refusal::{Holder, Reason};
use super::standing::{Facts, Standing, standing};
use crate::error::{Error, Result};
use crate::time::When;

/// The longest owner name or reason, in bytes.
const MAX_TEXT: usize = 4096;

/// A request to take a node.
#[derive(Clone, Debug)]
pub struct Acquire {
    pub(crate) owner: String,
    pub(crate) engine: Option<Name>,
    pub(crate) lease: Duration,
    pub(crate) seen: Option<u64>,
    pub(crate) force: Option<Force>,
    pub(crate) bound: Option<Bound>,
    pub(crate) resources: Resources,
    pub(crate) purpose: Option<Value>,
}

/// A reason to take a node that somebody holds or that is blocked. Not empty.
#[derive(Clone, Debug)]
pub struct Force(String);

impl Force {
    /// Takes the reason, refused if it is blank ([`Code::Usage`](crate::Code::Usage)).
    pub fn because(reason: impl Into<String>) -> Result<Force> {
        let reason = reason.into();
        if reason.trim().is_empty() {
            return Err(Error::usage("taking a node by force needs a reason"));
        }
        if reason.len() > MAX_TEXT {
            return Err(Error::usage(format!("a reason has at most {MAX_TEXT} bytes")));
        }
        Ok(Force(reason))
    }
}

impl Acquire {
    /// Without anything said: 30 seconds.
    pub const DEFAULT_LEASE: Duration = Duration::from_secs(30);

    /// A request by `owner`, a name for people: it grants nothing.
    pub fn by(owner: impl Into<String>) -> Acquire {
        Acquire {
            owner: owner.into(),
            engine: None,
            lease: Acquire::DEFAULT_LEASE,
            seen: None,
            force: None,
            bound: None,
            resources: Resources::default(),
            purpose: None,
        }
    }

    /// What drives the owner, such as `codex`; a name for people, kept with the claim and with a task's attempt.
    pub fn engine(mut self, engine: Name) -> Acquire {
        self.engine = Some(engine);
        self
    }

    /// How long the claim lasts without a renewal: 50 ms to 30 days, clamped to that.
    pub fn lease(mut self, lease: Duration) -> Acquire {
        self.lease = lease.clamp(crate::time::MIN_LEASE, crate::time::MAX_LEASE);
        self
    }

    /// Only if the record is at this version; 0 for a node that nobody has owned.
    pub fn seen(mut self, version: u64) -> Acquire {
        self.seen = Some(version);
        self
    }

    /// Also if somebody holds it or it is blocked.
    pub fn force(mut self, reason: Force) -> Acquire {
        self.force = Some(reason);
        self
    }

    /// Ends the claim early when this process ends; with `until_exit`, not before it.
    pub fn bound(mut self, bound: Bound) -> Acquire {
        self.bound = Some(bound);
        self
    }

    /// Only together with this path and everything below it, as long as the claim lasts.
    pub fn path(mut self, path: RepoPath) -> Acquire {
        self.resources.add_path(path);
        self
    }

    /// Only together with all of this.
    pub fn with(mut self, resources: &Resources) -> Acquire {
        self.resources = self.resources.union(resources);
        self
    }

    /// Only together with a slot of this pool, as long as the claim lasts.
    pub fn pool(mut self, pool: Name) -> Acquire {
        self.resources.add_pool(pool);
        self
    }

    /// Only together with so much of this quota, at least 1, which counts as used up to the end of its window.
    pub fn quota(mut self, quota: Name, amount: u64) -> Acquire {
        self.resources.add_quota(quota, amount);
        self
    }

    /// What it is taken for. With a receipt, another purpose makes another request; the process that the claim is
    /// bound to then doesn't count, since it is the one that does the work, and another at each try.
    pub fn purpose(mut self, purpose: Value) -> Acquire {
        self.purpose = Some(purpose);
        self
    }
}

impl Acquire {
    /// What makes a request the same as another, its owner apart. How long it waits doesn't count.
    pub(crate) fn arguments(&self) -> Value {
        match &self.engine {
            Some(engine) => json!({"engine": engine.as_str(), "with": self.other_arguments()}),
            None => self.other_arguments(),
        }
    }

    fn other_arguments(&self) -> Value {
        let force = self.force.as_ref().map(|Force(reason)| reason);
        let with = self.resources.fields();
        let lease_ms = self.lease.as_millis() as u64;
        if let Some(purpose) = &self.purpose {
            return json!([lease_ms, self.seen, force, null, with, purpose]);
        }
        let bound = self
            .bound
            .as_ref()
            .map(|bound| json!([bound.process.pid, bound.process.start, bound.until_exit]));
        json!([lease_ms, self.seen, force, bound, with])
    }
}

/// What only the taker knows, and the marks of this write.
#[derive(Clone, Debug)]
pub(crate) struct Mint {
    pub(crate) token: Token,
    pub(crate) nonce: Option<String>,
    pub(crate) write: WriteId,
    pub(crate) host: String,
    pub(crate) pid: u32,
}

/// A claim just taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Acquired {
    /// The record as written.
    pub node: Node,
    /// From whom it was taken over, if the claim before had not ended by itself.
    pub reclaimed_from: Option<String>,
    /// Was a live claim or a block overridden?
    pub forced: bool,
    /// Did it stand already, by an earlier call of the same request? Then it may be over by now.
    pub replay: bool,
    /// What the token of a request with a receipt is derived from.
    pub(crate) nonce: Option<String>,
}

/// May `request` take `node`, and what does the record say then?
pub(crate) fn acquire(node: &Node, facts: &Facts<'_>, request: &Acquire, mint: &Mint) -> Step<Acquired> {
    if let Some(seen) = request.seen.filter(|seen| *seen != node.version) {
        return Step::refuse(node, Reason::StaleVersion { seen });
    }
    match standing(node, facts) {
        Standing::Free => take(node, facts, request, mint, None, node.attempt + 1),
        Standing::Lapsed { claim, .. } => {
            take(node, facts, request, mint, Some(&claim.owner), node.attempt + 1)
        }
        // A takeover by force doesn't use up an attempt: the one that was started goes on in other hands.
        Standing::Held { claim, .. } | Standing::Adrift { claim } if request.force.is_some() => {
            take(node, facts, request, mint, Some(&claim.owner), node.attempt)
        }
        Standing::Blocked(_) if request.force.is_some() => {
            take(node, facts, request, mint, None, node.attempt + 1)
        }
        Standing::Held { claim, remaining_ms } => {
            Step::refuse(node, Reason::Held(Holder::of(node, claim, remaining_ms)))
        }
        Standing::Adrift { claim } => rebase(node, claim, facts, mint.write),
        Standing::Waiting(need) => Step::refuse(node, Reason::Waits(need.clone())),
        Standing::NotYet { remaining_ms } => Step::refuse(node, Reason::NotYet(remaining_ms)),
        Standing::Spent { .. } => {
            let Step { write, answer } = refuse_ended(node, facts, mint.write);
            Step { write, answer: answer.map_err(|refusal| refusal.because(Reason::Spent(node.attempt))) }
        }
        Standing::Overdue { .. } | Standing::CalledOff { .. } | Standing::Ended(..) => {
            refuse_ended(node, facts, mint.write)
        }
        Standing::Blocked(block) => Step::refuse(node, Reason::blocked(block)),
    }
}

fn take(
    node: &Node,
    facts: &Facts<'_>,
    request: &Acquire,
    mint: &Mint,
    from: Option<&String>,
    attempt: u64,
) -> Step<Acquired> {
    let lease_ms = i64::try_from(request.lease.as_millis()).unwrap_or(i64::MAX);
    let claim = Claim {
        owner: request.owner.clone(),
        engine: request.engine.clone(),
        token_hash: mint.token.hash(),
        acquired_ms: facts.now.wall_ms,
        ends: Moment::after(lease_ms, facts),
        lease_ms,
        progressed: None,
        host: mint.host.clone(),
        pid: request.bound.as_ref().map_or(mint.pid, |bound| bound.process.pid),
        bound: request.bound.clone(),
        resources: Box::new(match &node.task {
            Some(task) => task.resources.union(&request.resources),
            None => request.resources.clone(),
        }),
        extra: Default::default(),
    };
    let (now, state) = (standing(node, facts), State::Claimed(claim));
    let overridden = !now.takeable();
    let mut next = match now {
        Standing::Lapsed { claim, why } => lapsed(node, claim, why, facts, mint.write, state),
        Standing::Held { claim, .. } | Standing::Adrift { claim } => {
            let by = request.force.as_ref().map(|Force(reason)| format!("by {}: {reason}", request.owner));
            let end = (AttemptEnd::Forced, by.as_deref(), facts.now.wall_ms);
            node.after_attempt(mint.write, state, claim, end)
        }
        _ => node.next(mint.write, state),
    };
    next.generation += 1;
    #[cfg(feature = "testing")]
    if crate::testing::fault("generation not raised") {
        next.generation = node.generation;
    }
    next.attempt = attempt.max(1);
    next.not_before = None;
    if let Some(Force(reason)) = request.force.as_ref().filter(|_| overridden) {
        next.forced = Some(Forced {
            reason: reason.clone(),
            by: request.owner.clone(),
            from: from.cloned(),
            at_ms: facts.now.wall_ms,
            extra: Default::default(),
        });
    }
    let acquired = Acquired {
        node: next.clone(),
        reclaimed_from: from.cloned(),
        forced: overridden,
        replay: false,
        nonce: mint.nonce.clone(),
    };
    Step::write(next, acquired)
}

/// Writes down an end that this machine's clock can reach, and refuses: the holder keeps its full lease once.
fn rebase(node: &Node, claim: &Claim, facts: &Facts<'_>, write: WriteId) -> Step<Acquired> {
    let next = rebased(node, claim, facts, write);
    let reason = match &next.state {
        State::Claimed(claim) => Reason::Held(Holder::of(&next, claim, Some(claim.lease_ms))),
        _ => Reason::NotFound,
    };
    let answer = Err(super::Refusal::new(&next, reason));
    Step { write: Some(next), answer }
}

impl Moment {
    /// `lease_ms` from now, on both clocks.
    pub(crate) fn after(lease_ms: i64, facts: &Facts<'_>) -> Moment {
        Moment {
            wall_ms: facts.now.wall_ms.saturating_add(lease_ms),
            mono_ms: facts.now.mono_ms.saturating_add(lease_ms),
            place: facts.place.clone(),
        }
    }

    /// What somebody named, on both clocks.
    pub(crate) fn at(when: When, facts: &Facts<'_>) -> Moment {
        Moment::after(when.away_ms(facts.now.wall_ms), facts)
    }
}
