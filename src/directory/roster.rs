//! One roster: who has what of something shared, and who may have it now.
//!
//! Two records change, the roster and the node, in an order in which a stop at any point leaves nothing to mend:
//!
//! 1. Swap the roster: add an entry that names the node's record as it was read. Live entries of other nodes that
//!    leave no room refuse the whole claim.
//! 2. Swap the node, from exactly that record. Where that is lost, the entry goes and all starts over.
//!
//! At no moment more live claims have the shared thing than there is room for: of paths that clash one, of a pool as
//! many as it has slots. Whichever of their entries came last was added by a roster swap that found enough of the
//! others dead, and the dead stay dead: the claim of an entry can be written only over the record that it names, and
//! the node had moved on from that without the claim's token. Nobody concludes from a clock that an entry is dead. A
//! claim whose lease is over, or one announced and not written for [`OVERDUE`], is first made to be dead, by a swap
//! of its node: a late renewal or a late step 2 then finds another record than it read.
//!
//! An entry whose node can't be read counts as live.

use std::collections::BTreeSet;
use std::time::Duration;

use super::Directory;
use super::update::ROUNDS;
use crate::domain::{Entry, EntryState, Holder, Node, Roster, Step, WriteId, decode_roster, encode_roster};
use crate::error::Result;
use crate::id::NodeId;
use crate::store::{Key, Replaced};

/// How long a claim that was announced may take to be written.
const OVERDUE: Duration = Duration::from_millis(200);

/// How many other entries each swap of a roster looks at, to remove the dead. Each swap adds one entry, so with
/// `n` live entries some `n / (SWEPT - 1)` dead ones are left.
const SWEPT: usize = 4;

/// What an entry's node says.
pub(super) enum Seen {
    State(EntryState),
    Unreadable,
}

/// An entry whose claim is live, and who holds it; `None`: its node can't be read.
pub(super) struct Live<'a> {
    pub(super) entry: &'a Entry,
    pub(super) holder: Option<Holder>,
}

/// What becomes of a claim that these entries are in the way of.
pub(super) enum Verdict<'a> {
    /// Too many are live: these.
    Full(Vec<Live<'a>>),
    /// Too many are not dead yet, and these can be made so.
    NotDead(Vec<&'a Entry>),
    /// There is room, and these are dead.
    Room(Vec<u128>),
}

/// A change of one cell, or none, and what to answer once it stands.
pub(super) enum Change<T> {
    Keep(T),
    Write(Vec<u8>, T),
}

impl Seen {
    /// Who holds the claim, as far as it counts as live for somebody who only looks.
    pub(super) fn holder(&self) -> Option<Option<Holder>> {
        match self {
            Seen::State(EntryState::Held(holder) | EntryState::Adrift(holder)) => Some(Some(holder.clone())),
            Seen::Unreadable => Some(None),
            Seen::State(_) => None,
        }
    }

    /// The same for somebody who may write, and who has an end that can't be believed set right first.
    fn live(&self) -> Option<Option<Holder>> {
        self.holder().filter(|_| !matches!(self, Seen::State(EntryState::Adrift(_))))
    }

    fn is_dead(&self) -> bool {
        #[cfg(feature = "testing")]
        match self {
            Seen::State(EntryState::Pending) if crate::testing::fault("a pending entry makes room") => {
                return true;
            }
            Seen::State(EntryState::Over) if crate::testing::fault("a claim that is over makes room") => {
                return true;
            }
            _ => {}
        }
        matches!(self, Seen::State(EntryState::Dead))
    }
}

impl Directory {
    /// Changes the cell `key` as `decide` says, by the bytes that are there, none if it is empty or not there. The
    /// decision is taken anew each time that others got in between.
    pub(super) fn change<T>(
        &self,
        key: &Key,
        mut decide: impl FnMut(&[u8]) -> Result<Change<T>>,
    ) -> Result<T> {
        for round in 0..ROUNDS {
            let found = self.store.read(key)?;
            let (new, answer) = match decide(found.as_deref().unwrap_or_default())? {
                Change::Keep(answer) => return Ok(answer),
                Change::Write(new, answer) => (new, answer),
            };
            let replaced = match found {
                Some(expected) => self.store.replace(key, &expected, &new)?,
                None if self.store.make(key)? => self.store.replace(key, b"", &new)?,
                None => continue,
            };
            match replaced {
                Replaced::Done => return Ok(answer),
                #[cfg(feature = "testing")]
                Replaced::Changed(Some(now)) if crate::testing::fault("a roster decided once") => {
                    self.store.replace(key, &now, &new)?;
                    return Ok(answer);
                }
                Replaced::Changed(_) => {}
                Replaced::Cancelled => self.pause_after(round)?,
                Replaced::Unknown(error) => return Err(error),
            }
        }
        Err(self.contended(key))
    }

    /// A roster's next version.
    pub(super) fn roster_changed<T>(&self, mut roster: Roster, answer: T) -> Result<Change<T>> {
        roster.version += 1;
        Ok(Change::Write(encode_roster(&roster, WriteId::of(self.host.random()?))?, answer))
    }

    /// Takes one's own entry out.
    pub(super) fn take_out(&self, key: &Key, attempt: u128) -> Result<()> {
        self.change(key, |bytes| {
            let mut roster = self.decode_roster(key, bytes)?;
            let before = roster.entries.len();
            #[cfg(feature = "testing")]
            if crate::testing::fault("entries taken out by node") {
                let own = roster.entries.iter().find(|entry| entry.attempt == attempt);
                let node = own.map(|entry| entry.node.clone());
                roster.entries.retain(|entry| Some(&entry.node) != node.as_ref());
            }
            roster.entries.retain(|entry| entry.attempt != attempt);
            if roster.entries.len() == before {
                Ok(Change::Keep(()))
            } else {
                self.roster_changed(roster, ())
            }
        })
    }

    /// May one more node have what the nodes of `rivals` have, of whom at most `room` others may? The entries were
    /// read from the roster `key` at `since`.
    pub(super) fn judge<'a>(&self, key: &Key, rivals: &[&'a Entry], room: usize, since: u64) -> Verdict<'a> {
        let mut seen: Vec<(&Entry, Seen)> = Vec::new();
        if nodes(rivals.iter().copied()) > room {
            seen.extend(rivals.iter().map(|entry| (*entry, self.fate(entry))));
        }
        let full = |seen: &[(&'a Entry, Seen)]| {
            let live = seen.iter().filter_map(|(entry, seen)| Some(Live { entry, holder: seen.live()? }));
            let live: Vec<Live<'a>> = live.collect();
            (nodes(live.iter().map(|live| live.entry)) > room).then_some(live)
        };
        let mut verdict = full(&seen);
        let pending = |seen: &Seen| matches!(seen, Seen::State(EntryState::Pending));
        for at in (0..seen.len()).filter(|at| pending(&seen[*at].1)).collect::<Vec<_>>() {
            if verdict.is_none() {
                seen[at].1 = self.outcome(key, seen[at].0, since);
                verdict = full(&seen);
            }
        }
        if let Some(live) = verdict {
            return Verdict::Full(live);
        }
        let alive = seen.iter().filter(|(_, seen)| !seen.is_dead());
        match nodes(alive.map(|(entry, _)| *entry)).checked_sub(room) {
            None | Some(0) => {
                let dead = seen.iter().filter(|(_, seen)| seen.is_dead());
                Verdict::Room(dead.map(|(entry, _)| entry.attempt).collect())
            }
            Some(too_many) => Verdict::NotDead(to_move_on(&seen, too_many)),
        }
    }

    /// Those of `entries`, read from the roster `key` at `since`, whose claims are live. Writes nothing.
    pub(super) fn live<'a>(
        &self,
        key: &Key,
        entries: impl IntoIterator<Item = &'a Entry>,
        since: u64,
    ) -> Vec<Live<'a>> {
        let live = |entry| Some(Live { entry, holder: self.outcome(key, entry, since).holder()? });
        entries.into_iter().filter_map(live).collect()
    }

    /// Dead entries among those of `node` and a few others.
    pub(super) fn swept(&self, roster: &Roster, node: &Node) -> Result<Vec<u128>> {
        let count = roster.entries.len();
        let start = (self.host.random()? % (count.max(1) as u128)) as usize;
        let some = roster.entries.iter().cycle().skip(start).take(SWEPT.min(count));
        let own = roster.entries.iter().filter(|entry| entry.node == node.id);
        let dead = own.chain(some).filter(|entry| self.fate(entry).is_dead());
        Ok(dead.map(|entry| entry.attempt).collect())
    }

    /// What `entry`, read before, stands for now.
    fn fate(&self, entry: &Entry) -> Seen {
        match self.node(&entry.node) {
            Ok(found) => {
                let node = found.unwrap_or_else(|| Node::unowned(entry.node.clone()));
                Seen::State(self.with_facts(&node, |facts| entry.fate(&node, facts)))
            }
            Err(_) => Seen::Unreadable,
        }
    }

    /// The same, once it is no longer pending or overdue, having been seen in the roster `key` since `since`. One that
    /// its author has taken out is dead.
    pub(super) fn outcome(&self, key: &Key, entry: &Entry, since: u64) -> Seen {
        let end = since.saturating_add(OVERDUE.as_nanos() as u64);
        let mut pause = Duration::from_micros(100);
        loop {
            let seen = self.fate(entry);
            if !matches!(seen, Seen::State(EntryState::Pending)) || self.host.mono_ns() >= end {
                return seen;
            }
            if self.is_gone(key, entry) {
                return Seen::State(EntryState::Dead);
            }
            self.host.pause(pause);
            pause = (pause * 2).min(Duration::from_millis(5));
        }
    }

    fn is_gone(&self, key: &Key, entry: &Entry) -> bool {
        let now = self.read_roster(key);
        now.is_ok_and(|(now, _)| now.entries.iter().all(|other| other.attempt != entry.attempt))
    }

    /// Has the node of an entry that is not dead say that the claim is over, or that it is not to come.
    pub(super) fn move_on(&self, entry: &Entry) -> Result<()> {
        let answer = self.update(&entry.node, |node, facts, write| Step {
            write: entry.moved_on(node, facts, write),
            answer: Ok(()),
        });
        answer.map(drop)
    }

    /// A roster, and when it was read.
    pub(super) fn read_roster(&self, key: &Key) -> Result<(Roster, u64)> {
        let bytes = self.store.read(key)?.unwrap_or_default();
        let since = self.host.mono_ns();
        Ok((self.decode_roster(key, &bytes)?, since))
    }

    pub(super) fn decode_roster(&self, key: &Key, bytes: &[u8]) -> Result<Roster> {
        decode_roster(bytes).map_err(|why| self.unreadable(key, &why))
    }
}

/// Of entries that are not dead, `too_many` of them, those whose nodes are to say that they are. No more than needed:
/// each costs a write. One whose end can't be believed does not die of it, so they come in only with all the others.
fn to_move_on<'a>(seen: &[(&'a Entry, Seen)], too_many: usize) -> Vec<&'a Entry> {
    let over = |seen: &Seen| matches!(seen, Seen::State(EntryState::Over | EntryState::Pending));
    let mortal: Vec<&Entry> = seen.iter().filter(|(_, seen)| over(seen)).map(|(entry, _)| *entry).collect();
    if mortal.len() < too_many {
        let open = seen.iter().filter(|(_, seen)| !seen.is_dead() && seen.live().is_none());
        return open.map(|(entry, _)| *entry).collect();
    }
    mortal.into_iter().take(too_many).collect()
}

/// How many nodes these entries are of.
pub(super) fn nodes<'a>(entries: impl Iterator<Item = &'a Entry>) -> usize {
    entries.map(|entry| &entry.node).collect::<BTreeSet<&NodeId>>().len()
}
