//! Paths that go with a claim: all of them or none.
//!
//! Two records change, the roster and the node, in an order in which a stop at any point leaves nothing to mend:
//!
//! 1. Swap the roster: add an entry that names the node's record as it was read. A live entry of another node that
//!    clashes refuses the whole claim.
//! 2. Swap the node, from exactly that record. Where that is lost, the entry goes and all starts over.
//!
//! At no moment two live claims have paths that clash. Whichever entry came second was added by a roster swap that
//! found the first dead, and the dead stay dead: the claim of an entry can be written only over the record that it
//! names, and the node had moved on from that without the claim's token. Nobody concludes from a clock that an
//! entry is dead. A claim whose lease is over, or one announced and not written for [`OVERDUE`], is first made to
//! be dead, by a swap of its node: a late renewal or a late step 2 then finds another record than it read.
//!
//! An entry whose node can't be read counts as live.

use std::time::Duration;

use super::Directory;
use super::update::ROUNDS;
use crate::domain::{
    Acquired, Answer, Clashing, Entry, EntryState, Holder, Node, PathClash, Reason, Refusal, RepoPath,
    Roster, Step, Token, WriteId, decode_roster, encode_roster,
};
use crate::error::Result;
use crate::id::NodeId;
use crate::store::{Key, Replaced};

/// The roster's name.
const ROSTER: &str = "rosters/paths.roster";

/// How long a claim that was announced may take to be written.
const OVERDUE: Duration = Duration::from_millis(200);

/// How many other entries each swap of the roster looks at, to remove the dead. Each swap adds one entry, so with
/// `n` live entries some `n / (SWEPT - 1)` dead ones are left.
const SWEPT: usize = 4;

/// The paths of one request for a node.
pub(super) struct Reservation<'a> {
    paths: &'a [RepoPath],
    token: Token,
    /// The entry in the roster, from step 1 on.
    entry: Option<Entry>,
}

/// A path that a claim has.
#[derive(Clone, Debug, PartialEq)]
pub struct Reserved {
    /// The path.
    pub path: RepoPath,
    /// The node whose claim has it.
    pub node: NodeId,
    /// Who holds the node; `None`: its record can't be read.
    pub holder: Option<Holder>,
}

/// A path that no other claim has.
#[derive(Clone, Debug, PartialEq)]
pub struct Available {
    /// The path.
    pub path: RepoPath,
    /// The node whose claim, shown by its token, has it; `None`: it is free.
    pub by: Option<NodeId>,
}

/// What an entry's node says.
enum Seen {
    State(EntryState),
    Unreadable,
}

impl<'a> Reservation<'a> {
    pub(super) fn new(paths: &'a [RepoPath], token: &Token) -> Reservation<'a> {
        Reservation { paths, token: token.clone(), entry: None }
    }
}

impl Directory {
    /// Lets `step`, decided by `node`, go on once its claim's paths are reserved. `None`: read again.
    pub(super) fn reserve_first(
        &self,
        reservation: &mut Reservation<'_>,
        node: &Node,
        step: Step<Acquired>,
    ) -> Result<Option<Step<Acquired>>> {
        let takes = step.write.is_some() && step.answer.is_ok();
        let stands = reservation.entry.as_ref().is_some_and(|entry| entry.is_for(node));
        if reservation.paths.is_empty() || !takes || stands {
            return Ok(Some(step));
        }
        // Read again in either case, if only for the time: the lease counts from there.
        let refused = self.reserve(reservation, node)?;
        Ok(refused.map(|reason| Step::refuse(node, reason)))
    }

    /// Step 1. The reason why not; `None`: done, or something changed on the way.
    fn reserve(&self, reservation: &mut Reservation<'_>, node: &Node) -> Result<Option<Reason>> {
        let key = roster_key()?;
        for round in 0..ROUNDS {
            let bytes = self.store.read(&key)?;
            let since = self.host.mono_ns();
            let mut roster = self.decode_roster(&key, bytes.as_deref().unwrap_or_default())?;
            let rivals: Vec<_> = roster.clashing(reservation.paths, Some(&node.id)).collect();
            let mut dead = match self.judge(&rivals, since) {
                Verdict::Refused(clash) => return Ok(Some(Reason::PathClash(Box::new(clash)))),
                Verdict::NotDead(entries) => {
                    entries.into_iter().try_for_each(|entry| self.move_on(entry))?;
                    return Ok(None);
                }
                Verdict::Dead(attempts) => attempts,
            };
            dead.extend(self.swept(&roster, node)?);
            dead.extend(reservation.entry.as_ref().map(|earlier| earlier.attempt));
            let entry = Entry::new(self.host.random()?, node, reservation.token.hash(), reservation.paths);
            roster.entries.retain(|entry| !dead.contains(&entry.attempt));
            roster.entries.push(entry.clone());
            match self.replace_roster(&key, bytes, roster)? {
                Replaced::Done => {
                    reservation.entry = Some(entry);
                    return Ok(None);
                }
                Replaced::Changed(_) => {}
                Replaced::Cancelled => self.pause_after(round)?,
                Replaced::Unknown(error) => return Err(error),
            }
        }
        Err(self.contended(&key))
    }

    /// Takes the entry out again where the claim did not come of it. Only its author may, who knows that step 2
    /// did not happen: it can't be known of an error.
    pub(super) fn reserved_in_vain(
        &self,
        reservation: &Reservation<'_>,
        answer: &Result<Answer<Acquired>>,
    ) -> Result<()> {
        let Some(entry) = &reservation.entry else { return Ok(()) };
        if matches!(answer, Err(_) | Ok(Ok(Acquired { replay: false, .. }))) {
            return Ok(());
        }
        let key = roster_key()?;
        for round in 0..ROUNDS {
            let bytes = self.store.read(&key)?;
            let mut roster = self.decode_roster(&key, bytes.as_deref().unwrap_or_default())?;
            let before = roster.entries.len();
            roster.entries.retain(|other| other.attempt != entry.attempt);
            if roster.entries.len() == before {
                return Ok(());
            }
            match self.replace_roster(&key, bytes, roster)? {
                Replaced::Done => return Ok(()),
                Replaced::Changed(_) => {}
                Replaced::Cancelled => self.pause_after(round)?,
                Replaced::Unknown(error) => return Err(error),
            }
        }
        Err(self.contended(&key))
    }

    fn replace_roster(&self, key: &Key, expected: Option<Vec<u8>>, mut roster: Roster) -> Result<Replaced> {
        roster.version += 1;
        let new = encode_roster(&roster, WriteId::of(self.host.random()?))?;
        match expected {
            Some(expected) => self.store.replace(key, &expected, &new),
            None if self.store.make(key)? => self.store.replace(key, b"", &new),
            None => Ok(Replaced::Changed(None)),
        }
    }

    /// What stands in the way of a claim whose paths clash with `rivals`, which were read at `since`.
    fn judge<'a>(&self, rivals: &[Clashing<'a>], since: u64) -> Verdict<'a> {
        let mut fates: Vec<Seen> = rivals.iter().map(|rival| self.fate(rival.entry)).collect();
        let live = |(rival, seen): (&Clashing<'a>, &Seen)| match seen {
            Seen::State(EntryState::Adrift(_)) => None,
            seen => rival.blocked_by(seen),
        };
        if let Some(clash) = rivals.iter().zip(&fates).find_map(live) {
            return Verdict::Refused(clash);
        }
        for (rival, seen) in rivals.iter().zip(&mut fates) {
            *seen = self.outcome(rival.entry, since);
            if let Some(clash) = live((rival, seen)) {
                return Verdict::Refused(clash);
            }
        }
        let entries = || rivals.iter().map(|rival| rival.entry).zip(&fates);
        let alive = entries().filter(|(_, seen)| !matches!(seen, Seen::State(EntryState::Dead)));
        let alive: Vec<&Entry> = alive.map(|(entry, _)| entry).collect();
        if alive.is_empty() {
            Verdict::Dead(entries().map(|(entry, _)| entry.attempt).collect())
        } else {
            Verdict::NotDead(alive)
        }
    }

    /// Dead entries among those of `node` and a few others.
    fn swept(&self, roster: &Roster, node: &Node) -> Result<Vec<u128>> {
        let count = roster.entries.len();
        let start = (self.host.random()? % (count.max(1) as u128)) as usize;
        let some = roster.entries.iter().cycle().skip(start).take(SWEPT.min(count));
        let own = roster.entries.iter().filter(|entry| entry.node == node.id);
        let dead = own.chain(some).filter(|entry| matches!(self.fate(entry), Seen::State(EntryState::Dead)));
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

    /// The same, once it is no longer pending or overdue, having been seen since `since`.
    fn outcome(&self, entry: &Entry, since: u64) -> Seen {
        let end = since.saturating_add(OVERDUE.as_nanos() as u64);
        let mut pause = Duration::from_micros(100);
        loop {
            let seen = self.fate(entry);
            if !matches!(seen, Seen::State(EntryState::Pending)) || self.host.mono_ns() >= end {
                return seen;
            }
            self.host.pause(pause);
            pause = (pause * 2).min(Duration::from_millis(5));
        }
    }

    /// Has the node of an entry that is not dead say that the claim is over, or that it is not to come.
    fn move_on(&self, entry: &Entry) -> Result<()> {
        let answer = self.update(&entry.node, |node, facts, write| Step {
            write: entry.moved_on(node, facts, write),
            answer: Ok(()),
        });
        answer.map(drop)
    }

    /// Would `paths` be refused now, for a claim on `node`?
    pub(super) fn path_clash(&self, paths: &[RepoPath], node: &NodeId) -> Result<Option<PathClash>> {
        if paths.is_empty() {
            return Ok(None);
        }
        let (roster, since) = self.roster()?;
        let mut rivals = roster.clashing(paths, Some(node));
        Ok(rivals.find_map(|rival| rival.blocked_by(&self.outcome(rival.entry, since))))
    }

    /// Are these paths free, or reserved by the claim that `token` holds? The first that another claim is in the
    /// way of refuses all. Writes nothing.
    pub fn check_paths(&self, paths: &[RepoPath], token: Option<&Token>) -> Result<Answer<Vec<Available>>> {
        let (roster, since) = self.roster()?;
        let hash = token.map(Token::hash);
        let mut mine = Vec::new();
        for rival in roster.clashing(paths, None) {
            let seen = self.outcome(rival.entry, since);
            let Some(clash) = rival.blocked_by(&seen) else { continue };
            if clash.holder.is_none() || hash != Some(rival.entry.token_hash) {
                let (id, generation) =
                    (clash.node.clone(), clash.holder.as_ref().map_or(0, |h| h.generation));
                return Ok(Err(Refusal {
                    id,
                    version: 0,
                    generation,
                    reason: Reason::PathClash(Box::new(clash)),
                }));
            }
            mine.push(rival.entry);
        }
        let held_by = |path: &RepoPath| {
            let entry = mine.iter().find(|entry| entry.paths.iter().any(|reserved| reserved.covers(path)))?;
            Some(entry.node.clone())
        };
        Ok(Ok(paths.iter().map(|path| Available { path: path.clone(), by: held_by(path) }).collect()))
    }

    /// All paths that are reserved now, in order. Writes nothing.
    pub fn reserved(&self) -> Result<Vec<Reserved>> {
        let (roster, since) = self.roster()?;
        let mut reserved = Vec::new();
        for entry in &roster.entries {
            let holder = match self.outcome(entry, since) {
                Seen::State(EntryState::Held(holder) | EntryState::Adrift(holder)) => Some(holder),
                Seen::Unreadable => None,
                Seen::State(_) => continue,
            };
            let row = |path: &RepoPath| Reserved {
                path: path.clone(),
                node: entry.node.clone(),
                holder: holder.clone(),
            };
            reserved.extend(entry.paths.iter().map(row));
        }
        reserved.sort_by(|a, b| (&a.path, &a.node).cmp(&(&b.path, &b.node)));
        reserved.dedup();
        Ok(reserved)
    }

    /// The roster, and when it was read.
    pub(super) fn roster(&self) -> Result<(Roster, u64)> {
        let key = roster_key()?;
        let bytes = self.store.read(&key)?.unwrap_or_default();
        let since = self.host.mono_ns();
        Ok((self.decode_roster(&key, &bytes)?, since))
    }

    fn decode_roster(&self, key: &Key, bytes: &[u8]) -> Result<Roster> {
        decode_roster(bytes).map_err(|why| self.unreadable(key, &why))
    }
}

/// What becomes of a claim whose paths clash with entries by name.
enum Verdict<'a> {
    Refused(PathClash),
    /// None is live, and these are not dead yet.
    NotDead(Vec<&'a Entry>),
    Dead(Vec<u128>),
}

impl Clashing<'_> {
    /// The clash, if what was seen of the entry is a live claim.
    fn blocked_by(&self, seen: &Seen) -> Option<PathClash> {
        let holder = match seen {
            Seen::State(EntryState::Held(holder) | EntryState::Adrift(holder)) => Some(holder.clone()),
            Seen::Unreadable => None,
            Seen::State(_) => return None,
        };
        let (path, reserved) = (self.path.clone(), self.reserved.clone());
        Some(PathClash { path, reserved, node: self.entry.node.clone(), holder })
    }
}

pub(super) fn roster_key() -> Result<Key> {
    Key::internal(ROSTER)
}
