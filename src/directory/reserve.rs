//! What goes with a claim, taken from several rosters: all of it or nothing.
//!
//! At each roster step 1 is done as [`roster`](super::roster) says, at one after the other in the order of
//! [`Resources::parts`](crate::domain::Resources), and then step 2, which is the same for all of them: the swap of
//! the node from exactly the record that all the entries name. Where a roster refuses, or step 2 is lost, each of the
//! own entries is taken out again. A stop in between leaves entries that are dead, or that others will find overdue;
//! what was taken of a quota lapses with its window.

use super::Directory;
use super::quotas::quota_key;
use super::roster::{Change, Live, Verdict, nodes};
use crate::domain::{
    Acquired, Answer, Entry, Facts, Name, Node, Part, PathClash, PoolFull, Reason, Refusal, Resources,
    Roster, Step, Token, WriteId, write_of,
};
use crate::error::{Code, Error, Result};
use crate::store::Key;

/// The roster of paths.
const PATHS: &str = "rosters/paths.roster";
/// The folder of pools.
pub(super) const POOLS: &str = "rosters/pools";

/// What one request for a node has taken so far.
pub(super) struct Reservation {
    token: Token,
    bookings: Vec<Booking>,
}

/// An entry of one's own.
struct Booking {
    key: Key,
    mark: Mark,
    /// The write of the node that it was made for.
    replaces: Option<WriteId>,
}

/// What is known of an entry of one's own.
pub(super) struct Mark {
    /// Its random id.
    pub(super) attempt: u128,
    /// Until when it counts on the monotonic clock, if the clock says so and not the node.
    pub(super) ends_mono_ms: Option<i64>,
}

/// What came of step 1 at one roster.
pub(super) enum Step1 {
    Done(Mark),
    Refused(Reason),
    /// Something changed on the way.
    Again,
}

impl Reservation {
    pub(super) fn new(token: &Token) -> Reservation {
        Reservation { token: token.clone(), bookings: Vec::new() }
    }

    fn booked(&self, key: &Key) -> Option<&Booking> {
        self.bookings.iter().find(|booking| booking.key == *key)
    }

    /// Is there an entry in the roster `key` for a claim on `node` as it is now?
    fn stands(&self, key: &Key, node: &Node, facts: &Facts<'_>) -> bool {
        self.booked(key).is_some_and(|booking| {
            let counts = booking.mark.ends_mono_ms.is_none_or(|end| end > facts.now.mono_ms);
            counts && booking.replaces == write_of(node)
        })
    }

    fn book(&mut self, key: Key, mark: Mark, node: &Node) {
        self.bookings.retain(|booking| booking.key != key);
        self.bookings.push(Booking { key, mark, replaces: write_of(node) });
    }
}

impl Directory {
    /// Lets `step`, decided by `node`, go on once all that goes with its claim is taken. `None`: read again.
    pub(super) fn reserve_first(
        &self,
        reservation: &mut Reservation,
        node: &Node,
        facts: &Facts<'_>,
        step: Step<Acquired>,
    ) -> Result<Option<Step<Acquired>>> {
        let Some(resources) = taken_along(&step) else { return Ok(Some(step)) };
        let mut all = true;
        for part in resources.parts() {
            #[cfg(feature = "testing")]
            if crate::testing::fault("only the first roster") && resources.parts().next() != Some(part) {
                break;
            }
            let key = part_key(part)?;
            if reservation.stands(&key, node, facts) {
                continue;
            }
            all = false;
            match self.reserve(&key, part, reservation, node) {
                Ok(Step1::Done(mark)) => reservation.book(key, mark, node),
                Ok(Step1::Refused(reason)) => return Ok(Some(Step::refuse(node, reason))),
                Ok(Step1::Again) => return Ok(None),
                Err(error) => {
                    // Step 2 is not to come. Of an error in step 2 itself that can't be known.
                    let _ = self.withdraw(reservation);
                    return Err(error);
                }
            }
        }
        // Read again, if only for the time: the lease counts from there.
        Ok(all.then_some(step))
    }

    /// Step 1 at the roster `key`.
    fn reserve(&self, key: &Key, part: Part<'_>, reservation: &Reservation, node: &Node) -> Result<Step1> {
        let earlier = reservation.booked(key).map(|booking| booking.mark.attempt);
        let paths = match part {
            Part::Amount(quota, amount) => return self.spend(key, quota, amount, earlier),
            Part::Paths(paths) => paths,
            Part::Slot(_) => &[],
        };
        self.change(key, |bytes| {
            let since = self.host.mono_ns();
            let mut roster = self.decode_roster(key, bytes)?;
            if let Some(reason) = self.lacks(key, part, &roster)? {
                return Ok(Change::Keep(Step1::Refused(reason)));
            }
            let (rivals, room) = roster.rivals(part, &node.id);
            let mut dead = match self.judge(key, &rivals, room, since) {
                Verdict::Full(live) => {
                    return Ok(Change::Keep(Step1::Refused(in_the_way(part, &roster, live))));
                }
                Verdict::NotDead(entries) => {
                    entries.into_iter().try_for_each(|entry| self.move_on(entry))?;
                    return Ok(Change::Keep(Step1::Again));
                }
                Verdict::Room(dead) => dead,
            };
            dead.extend(self.swept(&roster, node)?);
            dead.extend(earlier);
            let attempt = self.host.random()?;
            roster.entries.retain(|entry| !dead.contains(&entry.attempt));
            roster.entries.push(Entry::new(attempt, node, reservation.token.hash(), paths));
            self.roster_changed(roster, Step1::Done(Mark { attempt, ends_mono_ms: None }))
        })
    }

    /// Takes the entries out again where the claim did not come of them. Only their author may, who knows that step
    /// 2 did not happen: it can't be known of an error.
    pub(super) fn reserved_in_vain(
        &self,
        reservation: &Reservation,
        answer: &Result<Answer<Acquired>>,
    ) -> Result<()> {
        match answer {
            Err(_) | Ok(Ok(Acquired { replay: false, .. })) => Ok(()),
            Ok(_) => self.withdraw(reservation),
        }
    }

    /// Takes exactly the own entries out.
    fn withdraw(&self, reservation: &Reservation) -> Result<()> {
        let gone = reservation.bookings.iter().map(|Booking { key, mark, .. }| match mark.ends_mono_ms {
            Some(_) => self.unspend(key, mark.attempt),
            None => self.take_out(key, mark.attempt),
        });
        gone.fold(Ok(()), Result::and) // the others, too, if one can't be taken out
    }

    /// What would refuse a claim on `node` that takes `resources` along. Writes nothing.
    pub(super) fn would_refuse(&self, resources: &Resources, node: &Node) -> Result<Option<Reason>> {
        for part in resources.parts() {
            let key = part_key(part)?;
            let reason = match part {
                Part::Amount(quota, amount) => self.would_overspend(&key, quota, amount)?,
                Part::Paths(_) | Part::Slot(_) => {
                    let (roster, since) = self.read_roster(&key)?;
                    match self.lacks(&key, part, &roster)? {
                        Some(reason) => Some(reason),
                        None => {
                            let (rivals, room) = roster.rivals(part, &node.id);
                            let live = self.live(&key, rivals, since);
                            let too_many = nodes(live.iter().map(|live| live.entry)) > room;
                            too_many.then(|| in_the_way(part, &roster, live))
                        }
                    }
                }
            };
            if reason.is_some() {
                return Ok(reason);
            }
        }
        Ok(None)
    }

    /// Why nothing can be had of a roster, whoever has something of it.
    fn lacks(&self, key: &Key, part: Part<'_>, roster: &Roster) -> Result<Option<Reason>> {
        match (part, &roster.pool) {
            (Part::Slot(pool), None) => Ok(Some(Reason::NoPool(pool.clone()))),
            (Part::Slot(pool), Some(recorded)) => self.is_of(key, pool, &recorded.name).map(|()| None),
            _ => Ok(None),
        }
    }

    /// Refuses a record that is of another name, as on a file system that folds case.
    pub(super) fn is_of(&self, key: &Key, name: &Name, recorded: &Name) -> Result<()> {
        if name == recorded {
            return Ok(());
        }
        let place = self.store.place(Some(key));
        Err(Error::new(
            Code::RecordUnreadable,
            format!("{place} is not the record of {name}, but of {recorded}"),
        ))
    }
}

/// What the claim that `step` makes takes along, if it makes one.
fn taken_along(step: &Step<Acquired>) -> Option<&Resources> {
    let taken = step.answer.as_ref().ok().filter(|_| step.write.is_some())?;
    Some(&taken.node.claim()?.resources)
}

/// Why a claim is refused that these are in the way of, more of them than there is room for.
fn in_the_way(part: Part<'_>, roster: &Roster, mut live: Vec<Live<'_>>) -> Reason {
    // Who ends first, and among paths whoever comes first.
    if let Part::Slot(_) = part {
        live.sort_by_key(|live| match &live.holder {
            Some(holder) => (0, holder.remaining_ms.unwrap_or(i64::MAX)),
            None => (1, 0),
        });
    }
    let count = nodes(live.iter().map(|live| live.entry)) as u64;
    let mut nodes: Vec<_> = live.iter().map(|live| live.entry.node.clone()).collect();
    nodes.sort();
    nodes.dedup();
    let Some(Live { entry, holder }) = live.into_iter().next() else { return Reason::NotFound };
    let node = entry.node.clone();
    match (part, &roster.pool) {
        (Part::Paths(paths), _) => {
            let clash = entry.clash(paths).map(|(path, reserved)| PathClash {
                path: path.clone(),
                reserved: reserved.clone(),
                node,
                holder,
            });
            clash.map_or(Reason::NotFound, |clash| Reason::PathClash(Box::new(clash)))
        }
        (Part::Slot(pool), Some(recorded)) => {
            let (pool, slots) = (pool.clone(), recorded.capacity);
            Reason::PoolFull(Box::new(PoolFull { pool, slots, used: count, node, holder, nodes }))
        }
        _ => Reason::NotFound,
    }
}

/// The roster that has `part`.
pub(super) fn part_key(part: Part<'_>) -> Result<Key> {
    match part {
        Part::Paths(_) => paths_key(),
        Part::Slot(pool) => pool_key(pool),
        Part::Amount(quota, _) => quota_key(quota),
    }
}

/// The roster whose change, too, may make a refusal pass.
pub(super) fn shared_key(refusal: &Refusal) -> Result<Option<Key>> {
    match &refusal.reason {
        Reason::PoolFull(full) => pool_key(&full.pool).map(Some),
        Reason::QuotaUsed(used) => quota_key(&used.quota).map(Some),
        _ => Ok(None),
    }
}

pub(super) fn paths_key() -> Result<Key> {
    Key::internal(PATHS)
}

pub(super) fn pool_key(pool: &Name) -> Result<Key> {
    Key::internal(format!("{POOLS}/{}", pool.part()))
}
