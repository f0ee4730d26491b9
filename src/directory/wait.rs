//! Waiting for a node. Woken by the change, by the holder's process ending, and by the clock.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use super::reserve::shared_key;
use super::{Directory, Lease};
use crate::domain::{Acquire, Answer, Reason, Refusal, next_end_ms};
use crate::error::Result;
use crate::host;
use crate::id::NodeId;
use crate::store::{Key, Watch};

/// How often a claim is looked at whose process has ended while others of its group live on.
const ORPHANS: Duration = Duration::from_millis(20);

/// Of how many claims in the way the processes are waited for, besides their records.
const PROCESSES: usize = 64;

impl Directory {
    /// Takes the node `id` as soon as it can be had, waiting for at most `wait`. What no waiting helps is
    /// answered at once; a wait in vain is a [`Reason::TimedOut`] that says what it waited for.
    ///
    /// The wait never outlasts the holder's lease: at its recorded end it tries, woken or not.
    pub fn acquire(&self, id: &NodeId, request: &Acquire, wait: Duration) -> Result<Answer<Lease>> {
        self.wait_for(wait, || self.try_acquire(id, request))
    }

    /// Tries until the answer is not one that passes by itself, for at most `wait`.
    pub(super) fn wait_for(
        &self,
        wait: Duration,
        mut attempt: impl FnMut() -> Result<Answer<Lease>>,
    ) -> Result<Answer<Lease>> {
        let end = self.end_of(wait);
        let mut watched: Option<(Vec<NodeId>, Box<dyn Watch + '_>)> = None;
        let mut exits = Exits::new();
        loop {
            let refusal = match attempt()? {
                Err(refusal) if refusal.passes() => refusal,
                Err(refusal) => {
                    if let Reason::Waits(need) = &refusal.reason {
                        // What this answer rests on is made true first, not only judged by the clock.
                        if !refusal.is_of_the_store() {
                            self.write_down(&need.root().on)?;
                        }
                    }
                    return Ok(Err(refusal));
                }
                taken => return Ok(taken),
            };
            let left = end.saturating_sub(self.host.mono_ns());
            if left == 0 {
                return Ok(Err(timed_out(refusal)));
            }
            let on = refusal.waits_for_any();
            let Some((_, watch)) = watched.as_mut().filter(|(watched, _)| watched == on) else {
                // Look out first and try once more: what changes from here on wakes.
                let mut keys: Vec<Key> = on.iter().cloned().map(Key::Node).collect();
                keys.extend(shared_key(&refusal)?);
                watched = Some((on.to_vec(), self.store.watch_any(&keys)));
                continue;
            };
            let mut nap = Duration::from_nanos(left);
            if let Some(remaining) = refusal.passes_in_ms() {
                nap = nap.min(millis(remaining));
            }
            if !on.contains(&refusal.id)
                && let Some(ms) = self.next_end_ms(&refusal.id)?
            {
                nap = nap.min(millis(ms));
            }
            // Only a claim that is in the way ends with its process.
            self.nap(watch.as_mut(), &mut exits, on, refusal.holder().is_some(), nap)?;
        }
    }

    /// The moment that a wait ends, on the monotonic clock in nanoseconds.
    pub(super) fn end_of(&self, wait: Duration) -> u64 {
        self.host.mono_ns().saturating_add(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX))
    }

    /// Waits for a change of the nodes `on`, for the next end that their records know of and, where claims are waited
    /// for, for the end of their processes; for at most `nap`.
    pub(super) fn nap(
        &self,
        watch: &mut dyn Watch,
        exits: &mut Exits,
        on: &[NodeId],
        claimed: bool,
        mut nap: Duration,
    ) -> Result<()> {
        let holders = if claimed { on } else { &[] };
        exits.retain(|node, _| holders.contains(node));
        for node in on.iter().take(PROCESSES) {
            if let Some(ms) = self.next_end_ms(node)? {
                nap = nap.min(millis(ms));
            }
            if claimed && exits.entry(node.clone()).or_default().look(self, node)? {
                nap = nap.min(ORPHANS);
            }
        }
        let descriptors = exits.values().filter_map(|exit| exit.descriptor.as_ref());
        watch.wait(nap, &descriptors.map(AsFd::as_fd).collect::<Vec<_>>());
        Ok(())
    }

    fn next_end_ms(&self, id: &NodeId) -> Result<Option<i64>> {
        let node = self.node(id)?;
        Ok(node.and_then(|node| self.with_facts_alone(&node, |facts| next_end_ms(&node, facts))))
    }
}

fn millis(ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(0).max(1))
}

pub(super) fn timed_out(refusal: Refusal) -> Refusal {
    let (id, version, generation) = (refusal.id.clone(), refusal.version, refusal.generation);
    Refusal { id, version, generation, reason: Reason::TimedOut(Box::new(refusal)) }
}

/// By node, the ends of the processes that their claims are bound to.
pub(super) type Exits = BTreeMap<NodeId, Exit>;

/// A descriptor that becomes readable when the process ends that the claim is bound to.
#[derive(Default)]
pub(super) struct Exit {
    pid: Option<u32>,
    descriptor: Option<OwnedFd>,
}

impl Exit {
    /// Looks at the process of the claim there now. `true`: it can't be waited for, or has ended already, so
    /// only looking again will tell.
    fn look(&mut self, directory: &Directory, id: &NodeId) -> Result<bool> {
        let node = directory.node(id)?;
        let bound = node.as_ref().and_then(|node| node.claim()).and_then(|claim| claim.bound.as_ref());
        let pid = bound.map(|bound| bound.process.pid);
        if pid != self.pid {
            self.pid = pid;
            self.descriptor = pid.and_then(host::watch_exit);
        }
        let ended = self.descriptor.as_ref().is_some_and(is_readable);
        if ended {
            self.descriptor = None;
        }
        Ok(pid.is_some() && self.descriptor.is_none())
    }
}

fn is_readable(descriptor: &OwnedFd) -> bool {
    let mut fds = [rustix::event::PollFd::new(descriptor, rustix::event::PollFlags::IN)];
    let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
    rustix::event::poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0)
}
