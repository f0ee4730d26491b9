//! The one loop that changes a node: read, take the time, decide, swap; bounded.

use std::time::Duration;

use super::Directory;
use crate::domain::hint::{self, Plan};
use crate::domain::{
    Answer, Facts, Halt, Lack, Malformed, Need, Node, Reason, Refusal, Stale, State, Step, WriteId, decode,
    encode_within_limit,
};
use crate::error::{Code, Error, Result};
use crate::host::{Life, Now};
use crate::id::NodeId;
use crate::store::{Key, Replaced};

/// How often a change is decided anew before it gives up, with nothing changed.
pub(super) const ROUNDS: u32 = 100;

/// How long a cell that is made and empty is left to its maker.
const MAKERS_MOMENT: Duration = Duration::from_millis(50);

impl Directory {
    /// Changes the node `id` as `decide` says. The decision is taken anew, with a fresh record, a fresh time and
    /// a fresh write id, each time that others got in between.
    pub(super) fn update<T>(
        &self,
        id: &NodeId,
        mut decide: impl FnMut(&Node, &Facts<'_>, WriteId) -> Step<T>,
    ) -> Result<Answer<T>> {
        self.rounds(id, |node, facts, write| Ok(Some(decide(node, facts, write))))
    }

    /// The loop itself. A round that answers `None` reads again.
    pub(super) fn rounds<T>(
        &self,
        id: &NodeId,
        mut decide: impl FnMut(&Node, &Facts<'_>, WriteId) -> Result<Option<Step<T>>>,
    ) -> Result<Answer<T>> {
        let key = Key::Node(id.clone());
        let (mut known, mut found) = match self.recall(id) {
            Some((node, bytes)) => (Some(node), Some(bytes)),
            None => (None, self.store.read(&key)?),
        };
        let mut made = false;
        for round in 0..ROUNDS {
            if !made && found.as_deref() == Some(b"") {
                found = self.leave_to_maker(&key)?;
            }
            let is_recalled = known.is_some();
            let node = match known.take() {
                Some(node) => node,
                None => self.decode(&key, id, found.as_deref().unwrap_or_default())?,
            };
            let write = WriteId::of(self.host.random()?);
            let (needs, scope) = (self.needs(&node), self.scope_halt(id)?);
            let step = self.with_facts_and(&node, &needs, scope.as_ref(), |facts| {
                #[cfg(feature = "testing")]
                let facts = &Facts { now: crate::testing::time_of_round(round, facts.now), ..*facts };
                let step = decide(&node, facts, write)?;
                Ok(step.map(|step| (with_plan(&node, step, facts, write), facts.now.wall_ms)))
            })?;
            let Some(((step, plan), at_ms)) = step else {
                found = self.store.read(&key)?;
                continue;
            };
            let Some(next) = step.write else {
                // Another call with the same token may have renewed between the record and the clock.
                #[cfg(feature = "testing")]
                let is_recalled = is_recalled && !crate::testing::fault("answered by a record from before");
                if is_recalled || is_over(&step.answer) {
                    let again = self.store.read(&key)?;
                    if again != found {
                        found = again;
                        continue;
                    }
                }
                return Ok(step.answer);
            };
            let bytes = encode_within_limit(&next)?;
            self.settle_last(&key, &node)?;
            let expected = match found {
                Some(bytes) => Some(bytes),
                None if self.store.makes_whole() => None,
                None if self.store.make(&key)? => {
                    made = true;
                    Some(Vec::new())
                }
                None => {
                    found = self.store.read(&key)?;
                    continue;
                }
            };
            let along = self.along(&plan, &node, &next, at_ms)?;
            let replaced = self.store.replace_along(&key, expected.as_deref(), &bytes, &along)?;
            #[cfg(feature = "testing")]
            let replaced =
                self.repeated(&key, expected.as_deref().unwrap_or_default(), &bytes, &along, replaced)?;
            match replaced {
                Replaced::Done => {
                    self.clear_hints(&plan, &next);
                    self.forget_blobs(&node, &next);
                    if let Some(last) = &next.last_write {
                        // The effect stands; a receipt left pending is settled by whoever writes next.
                        let _ = self.settle_receipt(last, &next, None);
                    }
                    self.remember((next, bytes));
                    return Ok(step.answer);
                }
                Replaced::Changed(now) => {
                    made = false;
                    found = now;
                }
                Replaced::Cancelled => {
                    self.pause_after(round)?;
                    found = self.store.read(&key)?;
                }
                Replaced::Unknown(error) => match self.read_back(&key, &node, &next, error)? {
                    None => {
                        if !self.store.swaps_along() {
                            along.log.iter().for_each(|(log, line)| drop(self.store.log(log, line)));
                        }
                        return Ok(step.answer);
                    }
                    lost => {
                        self.withdraw_hints(&plan);
                        made = false;
                        found = lost;
                    }
                },
            }
        }
        Err(self.contended(&key))
    }

    /// The bounded tries are used up.
    pub(super) fn contended(&self, key: &Key) -> Error {
        let place = self.store.place(Some(key));
        Error::new(Code::Contended, format!("too many writers at {place} at once; nothing was changed"))
            .hint("try again; a token you hold is still valid")
    }

    /// After an error that leaves it open whether the write stands: it does if the record there now descends
    /// from it, and then it must also be on disk before anybody is told so. It was lost if another stands at its version:
    /// then what the cell holds now. Else that is the error.
    fn read_back(&self, key: &Key, before: &Node, mine: &Node, error: Error) -> Result<Option<Vec<u8>>> {
        let bytes = self.store.read(key)?.unwrap_or_default();
        let now = self.decode(key, &mine.id, &bytes)?;
        #[cfg(feature = "testing")]
        if crate::testing::fault("an unknown write taken for won") {
            return Ok(None);
        }
        if now.write == before.write {
            return Err(error);
        }
        if now.version == mine.version && now.write != mine.write {
            return Ok(Some(bytes));
        }
        let in_doubt = "it may stand all the same; look with `claim show`, then decide";
        if !descends(&now, mine, before) || self.store.confirm(key).is_err() {
            return Err(error.hint(in_doubt));
        }
        Ok(None)
    }

    /// A fault: what was cancelled is tried again as it was decided before.
    #[cfg(feature = "testing")]
    fn repeated(
        &self,
        key: &Key,
        expected: &[u8],
        next: &[u8],
        along: &crate::store::Along,
        first: Replaced,
    ) -> Result<Replaced> {
        use crate::testing::fault;
        let mut replaced = first;
        let anew = fault("decision repeated over what is there now");
        while matches!(replaced, Replaced::Cancelled) && (anew || fault("decision repeated")) {
            let now = if anew { self.store.read(key)?.unwrap_or_default() } else { expected.to_vec() };
            replaced = self.store.replace_along(key, Some(&now), next, along)?;
        }
        Ok(replaced)
    }

    /// Waits for a moment for whoever made a cell to write to it. Nothing depends on that: a maker that died
    /// is not waited for any longer.
    fn leave_to_maker(&self, key: &Key) -> Result<Option<Vec<u8>>> {
        let half = MAKERS_MOMENT / 2;
        let end = self.host.mono_ns() + nanos(half + self.jitter(half)?);
        let mut pause = Duration::from_micros(50);
        loop {
            let found = self.store.read(key)?;
            if found.as_deref() != Some(b"") || self.host.mono_ns() >= end {
                return Ok(found);
            }
            self.host.pause(pause);
            pause = (pause * 2).min(Duration::from_millis(2));
        }
    }

    /// Random pauses that grow, so that those who cancelled each other don't meet again.
    pub(super) fn pause_after(&self, round: u32) -> Result<()> {
        let most = Duration::from_micros(50).saturating_mul(1 << round.min(9));
        self.host.pause(self.jitter(most)?);
        Ok(())
    }

    fn jitter(&self, most: Duration) -> Result<Duration> {
        let share = (self.host.random()? as u32) as f64 / f64::from(u32::MAX);
        Ok(most.mul_f64(share))
    }

    /// The node that `bytes` say; what is no record of it is an error that names the file.
    pub(super) fn decode(&self, key: &Key, id: &NodeId, bytes: &[u8]) -> Result<Node> {
        decode(id, bytes).map_err(|why| self.unreadable(key, &why))
    }

    /// What is no record is an error that names the file.
    pub(super) fn unreadable(&self, key: &Key, why: &Malformed) -> Error {
        let message = format!("cannot read {}: {why}", self.store.place(Some(key)));
        match why {
            Malformed::TooNew(_) => {
                Error::new(Code::FormatTooNew, message).hint("use a newer claim; it was left as it is")
            }
            _ => Error::new(Code::RecordUnreadable, message)
                .hint("it was left as it is; look at it, and `claim doctor` lists all such files"),
        }
    }

    /// Tells `use_facts` the time, what is known of the process that `node`'s claim is bound to, what the node waits
    /// for, and who cancelled its scope. A scope whose record can't be read counts as open for those who only look.
    pub(super) fn with_facts<T>(&self, node: &Node, use_facts: impl FnOnce(&Facts<'_>) -> T) -> T {
        self.with_facts_and(node, &self.needs(node), self.halt_of(node).as_ref(), use_facts)
    }

    /// The same, leaving out what it waits for.
    pub(super) fn with_facts_alone<T>(&self, node: &Node, use_facts: impl FnOnce(&Facts<'_>) -> T) -> T {
        self.with_facts_and(node, &[], self.halt_of(node).as_ref(), use_facts)
    }

    fn halt_of(&self, node: &Node) -> Option<Halt> {
        if node.outcome().is_some() {
            return None; // it has ended by itself
        }
        self.scope_halt(&node.id).ok().flatten()
    }

    fn with_facts_and<T>(
        &self,
        node: &Node,
        needs: &[Need],
        scope: Option<&Halt>,
        use_facts: impl FnOnce(&Facts<'_>) -> T,
    ) -> T {
        let bound = node.claim().and_then(|claim| claim.bound.as_ref());
        let life = bound.map_or(Life::Unknown, |bound| self.host.life(&bound.process));
        let now: Now = self.host.now(); // after the records, and last of all
        use_facts(&Facts { now, place: self.host.place(), life, needs, scope, skew_ms: self.skew_ms() })
    }

    /// How far apart the wall clocks may be, in milliseconds.
    pub(super) fn skew_ms(&self) -> i64 {
        i64::try_from(self.store.skew().as_millis()).unwrap_or(i64::MAX)
    }

    /// What `node`, if nobody has it, waits for. A dependency that is met stays so, hence reading one after the
    /// other is as good as reading all at once.
    pub(super) fn needs(&self, node: &Node) -> Vec<Need> {
        let idle = match &node.state {
            State::Ready => true,
            State::Blocked(block) => block.until.is_some(), // it may be over
            _ => false,
        };
        let task = node.task.as_ref().filter(|_| idle);
        let unmet = |on: &NodeId| match self.node(on) {
            Ok(found) => Need::of(on, found.map(|found| self.as_of_now(found)).as_ref()),
            Err(error) => {
                let lacks = Lack::Unreadable { code: error.code(), why: error.to_string() };
                Some(Need { on: on.clone(), lacks })
            }
        };
        let mut needs: Vec<Need> =
            task.map(|task| task.after.iter().filter_map(unmet).collect()).unwrap_or_default();
        // What no waiting helps is told first, and of that what is certain.
        needs.sort_by_key(|need| (need.passes(), matches!(need.lacks, Lack::Unreadable { .. })));
        needs
    }
}

/// The step with what is to become of the task's hints, which its record is to name.
fn with_plan<T>(node: &Node, mut step: Step<T>, facts: &Facts<'_>, write: WriteId) -> (Step<T>, Plan) {
    let plan = step.write.as_mut().map(|next| hint::plan(node, next, facts, write.half()));
    (step, plan.unwrap_or_default())
}

/// Is `now` what `mine`, written over `before`, became? It is the same write, or a later version of the claim that
/// this write made. A claim made before proves nothing: another call with its token may have written that version.
fn descends(now: &Node, mine: &Node, before: &Node) -> bool {
    let token = |node: &Node| node.claim().map(|claim| claim.token_hash);
    let made_it = token(mine).is_some() && token(mine) != token(before);
    now.write == mine.write || (made_it && token(now) == token(mine))
}

fn nanos(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX)
}

fn is_over<T>(answer: &Answer<T>) -> bool {
    matches!(answer, Err(Refusal { reason: Reason::Stale(Stale::Over), .. }))
}
