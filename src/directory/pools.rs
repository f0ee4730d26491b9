//! Pools: so many slots, each for one claim.

use std::time::Duration;

use super::reserve::{POOLS, pool_key};
use super::roster::Change;
use super::{Directory, Lease};
use crate::domain::{Acquire, Answer, Holder, Name, Node, Pool, Reason, Refusal, Resources, Roster};
use crate::error::{Error, Result};
use crate::id::NodeId;
use crate::store::{Key, Prefix};

/// A pool, and who has its slots.
#[derive(Clone, Debug, PartialEq)]
pub struct PoolSeen {
    /// Its name.
    pub name: Name,
    /// How many slots it has.
    pub slots: u64,
    /// Which nodes have one, and who holds them; `None`: the node's record can't be read. More than there are slots,
    /// where there were more of those before.
    pub used: Vec<(NodeId, Option<Holder>)>,
}

impl Directory {
    /// The most slots that a pool can have.
    pub const MAX_SLOTS: u64 = 10_000;

    /// Gives the pool `slots` slots, 1 to 10,000, making it if there is none. Fewer than are in use take nothing away:
    /// they only refuse new ones. `false`: it has as many already.
    pub fn set_pool(&self, name: &Name, slots: u64) -> Result<bool> {
        if !(1..=Directory::MAX_SLOTS).contains(&slots) {
            return Err(Error::usage(format!("a pool has 1 to {} slots, not {slots}", Directory::MAX_SLOTS)));
        }
        let key = pool_key(name)?;
        let changed = self.change(&key, |bytes| {
            let mut roster = self.decode_roster(&key, bytes)?;
            if let Some(recorded) = &roster.pool {
                self.is_of(&key, name, &recorded.name)?;
                if recorded.capacity == slots {
                    return Ok(Change::Keep(false));
                }
            }
            roster.pool = Some(Pool { name: name.clone(), capacity: slots });
            self.roster_changed(roster, true)
        })?;
        if !changed {
            self.store.confirm(&key)?;
        }
        Ok(changed)
    }

    /// The pool and who has its slots; `None`: nobody has set it. Writes nothing.
    pub fn pool(&self, name: &Name) -> Result<Option<PoolSeen>> {
        let key = pool_key(name)?;
        let (roster, since) = self.read_roster(&key)?;
        if let Some(recorded) = &roster.pool {
            self.is_of(&key, name, &recorded.name)?;
        }
        Ok(self.pool_seen(&key, &roster, since))
    }

    /// All pools, in order. Writes nothing.
    pub fn pools(&self) -> Result<Vec<PoolSeen>> {
        let mut pools = Vec::new();
        for key in self.pool_keys()? {
            let (roster, since) = self.read_roster(&key)?;
            pools.extend(self.pool_seen(&key, &roster, since));
        }
        pools.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(pools)
    }

    /// Takes a slot of the pool with no node of one's own: the first free one of the bare keys `pool:NAME/slot-1`,
    /// `slot-2` and so on, together with a slot of that pool. Waits for one for at most `wait`, as
    /// [`Directory::acquire`] does, or not at all.
    pub fn acquire_slot(&self, pool: &Name, request: &Acquire, wait: Duration) -> Result<Answer<Lease>> {
        let request = request.clone().pool(pool.clone());
        if wait.is_zero() {
            return self.try_slots(pool, &request);
        }
        self.wait_for(wait, || self.try_slots(pool, &request))
    }

    fn try_slots(&self, pool: &Name, request: &Acquire) -> Result<Answer<Lease>> {
        let slots = self.read_roster(&pool_key(pool)?)?.0.pool.map_or(1, |pool| pool.capacity);
        let mut taken = None;
        for number in 1..=slots {
            match self.try_acquire(&slot(pool, number)?, request)? {
                Err(refusal) if matches!(refusal.reason, Reason::Held(_)) => taken = Some(refusal),
                answer => return Ok(answer),
            }
        }
        // All these keys are held. Who waits should wait for any of the pool's slots, also of other nodes.
        let node = Node::unowned(slot(pool, slots.saturating_add(1))?);
        let mut wanted = Resources::default();
        wanted.add_pool(pool.clone());
        Ok(Err(match (self.would_refuse(&wanted, &node)?, taken) {
            (None, Some(held)) => held,
            (reason, _) => Refusal::new(&node, reason.unwrap_or_else(|| Reason::NoPool(pool.clone()))),
        }))
    }

    fn pool_seen(&self, key: &Key, roster: &Roster, since: u64) -> Option<PoolSeen> {
        let Pool { name, capacity } = roster.pool.clone()?;
        let live = self.live(key, &roster.entries, since).into_iter();
        let mut used: Vec<_> = live.map(|live| (live.entry.node.clone(), live.holder)).collect();
        used.sort_by(|(a, _), (b, _)| a.cmp(b));
        used.dedup_by(|(a, _), (b, _)| a == b);
        Some(PoolSeen { name, slots: capacity, used })
    }

    pub(super) fn pool_keys(&self) -> Result<Vec<Key>> {
        self.store.list(&Prefix::Internal(POOLS), None, usize::MAX)
    }
}

/// The bare key that stands for a slot.
fn slot(pool: &Name, number: u64) -> Result<NodeId> {
    NodeId::new(format!("pool:{}/slot-{number}", pool.part()))
}
