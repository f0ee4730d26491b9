//! Rosters: entries of claims that are gone, claims that have none; and all else that says what others may have.

use std::collections::HashSet;

use super::Visit;
use crate::directory::Directory;
use crate::directory::quotas::quota_key;
use crate::directory::reserve::{part_key, paths_key, pool_key};
use crate::directory::roster::{Change, Seen};
use crate::domain::{Entry, EntryState, Node, Part, Roster, TokenHash};
use crate::error::Result;
use crate::store::{Finding, Gravity, Key};

const BY_HAND: &str = "it was left as it is, for nothing else says all that it said: once nobody takes anything of it, \
                       move it elsewhere yourself; then `claim doctor --repair` lists again what the claims have that there are";

impl Visit<'_> {
    pub(super) fn rosters(&mut self) -> Result<()> {
        for key in std::iter::once(paths_key()?).chain(self.directory.pool_keys()?) {
            match self.directory.read_roster(&key) {
                Err(error) => {
                    self.report(Finding::new(Gravity::Fault, self.place(&key), error.to_string(), BY_HAND))
                }
                Ok((roster, since)) => {
                    self.of_its_name(&key, roster.pool.as_ref().map(|pool| pool_key(&pool.name)));
                    self.entries_of(&key, &roster, since);
                }
            }
        }
        for key in self.directory.quota_keys()? {
            match self.directory.read_quota(&key) {
                Err(error) => {
                    let next = "it was left as it is; move it elsewhere yourself and set it anew with `claim quota set`, \
                                which knows nothing of what was used";
                    self.report(Finding::new(Gravity::Fault, self.place(&key), error.to_string(), next));
                }
                Ok(quota) => self.of_its_name(&key, quota.map(|quota| quota_key(&quota.name))),
            }
        }
        for (key, error) in self.directory.unreadable_gates()? {
            self.unreadable(self.place(&key), &error);
        }
        Ok(())
    }

    /// As on a file system that folds case, or after a copy.
    fn of_its_name(&mut self, key: &Key, of: Option<Result<Key>>) {
        if let Some(Ok(of)) = of.filter(|of| of.as_ref().is_ok_and(|of| of != key)) {
            let what = format!("it is the record of another name, whose place is {}", self.place(&of));
            let next = "it was left as it is; move it elsewhere yourself";
            self.report(Finding::new(Gravity::Fault, self.place(key), what, next));
        }
    }

    fn entries_of(&mut self, key: &Key, roster: &Roster, since: u64) {
        let is_over = |entry: &&Entry| is_void(&self.directory.outcome(key, entry, since));
        let count = roster.entries.iter().filter(is_over).count();
        if count > 0 {
            let what = format!("entries of claims that are gone: {count}");
            let next = "later claims remove them, and `claim doctor --repair`";
            let finding = Finding::new(Gravity::Leftover, self.place(key), what, next);
            self.mend(finding, |directory| directory.sweep(key));
        }
    }

    /// Has the claim of `node` an entry in each roster that it has something of? It is there before the claim, and goes
    /// after it.
    pub(super) fn has_entries(&mut self, node: &Node) -> Result<()> {
        let Some(claim) = node.claim() else { return Ok(()) };
        for part in claim.resources.parts() {
            if matches!(part, Part::Amount(..)) {
                continue; // an amount counts without its claim, and lapses with its time
            }
            let key = part_key(part)?;
            if !self.is_entered(&key, claim.token_hash) && self.directory.holds(node, claim.token_hash)? {
                let what = format!("its claim is not entered in {}", self.place(&key));
                let next = "others may take the same; `claim doctor --repair` enters it again";
                let finding = Finding::new(Gravity::Fault, self.directory.place(Some(&node.id)), what, next);
                self.mend(finding, |directory| directory.enter(&key, part, node, claim.token_hash));
            }
        }
        Ok(())
    }

    /// Of a roster that can't be read nothing is known. Read again only where what was read before does not tell.
    fn is_entered(&mut self, key: &Key, token: TokenHash) -> bool {
        let of = |known: &HashSet<TokenHash>| known.contains(&token);
        if self.entries.get(key).is_some_and(of) {
            return true;
        }
        let Ok((roster, _)) = self.directory.read_roster(key) else { return true };
        let known: HashSet<TokenHash> = roster.entries.iter().map(|entry| entry.token_hash).collect();
        let found = of(&known);
        self.entries.insert(key.clone(), known);
        found
    }
}

/// Nothing, or a claim that was announced and has not come for long.
fn is_void(seen: &Seen) -> bool {
    matches!(seen, Seen::State(EntryState::Dead | EntryState::Pending))
}

impl Directory {
    /// Takes the entries out that are dead, once those that wait for claims that don't come are.
    fn sweep(&self, key: &Key) -> Result<bool> {
        let (roster, since) = self.read_roster(key)?;
        for entry in &roster.entries {
            if matches!(self.outcome(key, entry, since), Seen::State(EntryState::Pending)) {
                self.move_on(entry)?;
            }
        }
        self.change(key, |bytes| {
            let mut roster = self.decode_roster(key, bytes)?;
            let before = roster.entries.len();
            // At once: one that is pending may still be waited for.
            let dead = |entry: &Entry| matches!(self.outcome(key, entry, 0), Seen::State(EntryState::Dead));
            roster.entries.retain(|entry| !dead(entry));
            match roster.entries.len() < before {
                true => self.roster_changed(roster, true),
                false => Ok(Change::Keep(false)),
            }
        })
    }

    /// Enters the claim of `node` again.
    fn enter(&self, key: &Key, part: Part<'_>, node: &Node, token: TokenHash) -> Result<bool> {
        self.change(key, |bytes| {
            let mut roster = self.decode_roster(key, bytes)?;
            if roster.entries.iter().any(|entry| entry.token_hash == token) || !self.holds(node, token)? {
                return Ok(Change::Keep(false));
            }
            let paths = match part {
                Part::Paths(paths) => paths,
                Part::Slot(_) | Part::Amount(..) => &[],
            };
            // The write that it names has the token, so it is live with the token and dead without.
            roster.entries.push(Entry::new(self.host.random()?, node, token, paths));
            self.roster_changed(roster, true)
        })
    }

    /// Does the record of `node` have this claim now?
    fn holds(&self, node: &Node, token: TokenHash) -> Result<bool> {
        let now = self.node(&node.id)?;
        Ok(now.is_some_and(|now| now.claim().is_some_and(|claim| claim.token_hash == token)))
    }
}
