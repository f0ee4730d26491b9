//! Live claims against each other, whatever the rosters say: paths that two of them have at once, and pools and
//! quotas that one has something of and that are not there.
//!
//! Of two claims that clash neither is ended: only their holders know whose work can wait. That more claims have slots
//! of a pool than it has is no fault, since a pool may be given fewer slots than are in use.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::Visit;
use crate::directory::Directory;
use crate::directory::reserve::part_key;
use crate::domain::{Node, Part, RepoPath, Standing, TokenHash, standing};
use crate::error::Result;
use crate::id::NodeId;
use crate::store::{Finding, Gravity};

/// What was seen of live claims.
#[derive(Default)]
pub(super) struct Live {
    /// Those that have paths.
    with_paths: Vec<(NodeId, TokenHash, Vec<RepoPath>)>,
    /// Pools and quotas by what they are called, and if one is not there, who has something of it.
    shared: BTreeMap<String, Option<Orphan>>,
}

/// Something shared whose record is not there.
struct Orphan {
    /// The record's place.
    place: String,
    /// A node whose claim has something of it.
    of: NodeId,
    /// The command that makes it.
    set: String,
}

impl Visit<'_> {
    /// Keeps in mind what the live claim of `node` has.
    pub(super) fn keep_claim(&mut self, node: &Node) -> Result<()> {
        let Some(claim) = node.claim().filter(|_| self.directory.is_live(node)) else { return Ok(()) };
        for part in claim.resources.parts() {
            let (what, set) = match part {
                Part::Paths(paths) => {
                    self.live.with_paths.push((node.id.clone(), claim.token_hash, paths.to_vec()));
                    continue;
                }
                Part::Slot(pool) => (format!("pool {pool}"), format!("claim pool set {pool} N")),
                Part::Amount(quota, _) => (format!("quota {quota}"), format!("claim quota set {quota} N/1h")),
            };
            if self.live.shared.contains_key(&what) {
                continue;
            }
            let lacks = match part {
                Part::Slot(pool) => self.directory.pool(pool).is_ok_and(|pool| pool.is_none()),
                Part::Amount(quota, _) => self.directory.quota(quota).is_ok_and(|quota| quota.is_none()),
                Part::Paths(_) => false,
            };
            let place = self.place(&part_key(part)?);
            let orphan = lacks.then(|| Orphan { place, of: node.id.clone(), set });
            self.live.shared.insert(what, orphan);
        }
        Ok(())
    }

    /// Tells of what was kept in mind, once everybody met has been read.
    pub(super) fn claims(&mut self) -> Result<()> {
        let live = std::mem::take(&mut self.live);
        for (what, orphan) in live.shared {
            let Some(Orphan { place, of, set }) = orphan else { continue };
            let what =
                format!("the claim of {:?} has something of the {what}, which is not there", of.as_str());
            let next = format!("how much there is of it stands nowhere else: say it again with `{set}`");
            self.report(Finding::new(Gravity::Fault, place, what, next));
        }
        for (one, other) in clashes(&live.with_paths) {
            let ((one, token, path), (other, other_token, reserved)) = (one, other);
            // Of both at one time: the one before and after the other.
            if self.directory.has_live(one, token)?
                && self.directory.has_live(other, other_token)?
                && self.directory.has_live(one, token)?
            {
                let what = format!(
                    "its live claim has the path {path}, and that of {:?} has {reserved} at the same time",
                    other.as_str()
                );
                let next = "both were left as they are: have one of them stop and release its claim";
                self.report(Finding::new(Gravity::Fault, self.directory.place(Some(one)), what, next));
            }
        }
        Ok(())
    }
}

impl Directory {
    fn is_live(&self, node: &Node) -> bool {
        self.with_facts(node, |facts| {
            matches!(standing(node, facts), Standing::Held { .. } | Standing::Adrift { .. })
        })
    }

    /// Is this claim of the node `id` live now?
    fn has_live(&self, id: &NodeId, token: TokenHash) -> Result<bool> {
        let now = self.node(id)?;
        let has = |node: &Node| node.claim().is_some_and(|claim| claim.token_hash == token);
        Ok(now.is_some_and(|node| has(&node) && self.is_live(&node)))
    }
}

/// A claim's node, its token, and a path that it has.
type Has<'a> = (&'a NodeId, TokenHash, &'a RepoPath);

/// Pairs of claims that have paths that clash: every claim that clashes with another is in one of them, and each pair
/// comes once.
fn clashes(claims: &[(NodeId, TokenHash, Vec<RepoPath>)]) -> Vec<(Has<'_>, Has<'_>)> {
    let all =
        || claims.iter().flat_map(|(id, token, paths)| paths.iter().map(move |path| (id, *token, path)));
    let mut first: HashMap<&str, Has<'_>> = HashMap::new();
    for has in all() {
        first.entry(has.2.as_str()).or_insert(has);
    }
    let mut pairs = Vec::new();
    let mut known = BTreeSet::new();
    for has in all() {
        for above in has.2.with_those_above() {
            let Some(other) = first.get(above).filter(|other| other.0 != has.0) else { continue };
            if known.insert((has.0.min(other.0), has.0.max(other.0))) {
                pairs.push((has, *other));
            }
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::Token;

    #[test]
    fn whoever_clashes_is_in_a_pair_and_nobody_else() {
        let paths = ["src", "src/a", "src/a/b", "src/ab", "src/a", "docs", "docs2", "x/y"];
        let claims = paths.iter().enumerate().map(|(at, path)| {
            let id = NodeId::new(format!("n{at}")).unwrap();
            (id, Token::of(at as u128).hash(), vec![RepoPath::new(path).unwrap()])
        });
        let claims: Vec<_> = claims.collect();
        let pairs = clashes(&claims);
        assert!(pairs.iter().all(|(one, other)| one.0 != other.0 && one.2.clashes(other.2)));
        for (id, _, paths) in &claims {
            let clashing = claims.iter().any(|other| other.0 != *id && other.2[0].clashes(&paths[0]));
            let named = pairs.iter().any(|(one, other)| one.0 == id || other.0 == id);
            assert_eq!(clashing, named, "{id}");
        }
        let root = [vec![RepoPath::new(".").unwrap()], vec![RepoPath::new("a/b").unwrap()]];
        let root: Vec<_> =
            root.into_iter().zip(claims).map(|(paths, (id, token, _))| (id, token, paths)).collect();
        assert_eq!(clashes(&root).len(), 1);
        let twice = vec![(root[0].0.clone(), root[0].1, vec![root[0].2[0].clone(), root[1].2[0].clone()])];
        assert!(clashes(&twice).is_empty(), "a node never clashes with itself");
    }
}
