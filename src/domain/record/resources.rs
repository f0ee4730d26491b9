//! What a claim takes along beside its node.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::name::Name;
use super::path::RepoPath;

/// What a claim takes along beside its node, all of it or nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resources {
    /// Paths that nobody else may have as long as the claim lasts; in order, each once.
    pub paths: Vec<RepoPath>,
    /// Pools, of each of which it has one slot as long as it lasts; in order, each once.
    pub pools: Vec<Name>,
    /// Quotas, and how much of each it uses up; at least 1.
    pub quotas: BTreeMap<Name, u64>,
}

/// What is asked of one roster.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Part<'a> {
    /// These paths, at least one.
    Paths(&'a [RepoPath]),
    /// A slot of this pool.
    Slot(&'a Name),
    /// So much of this quota.
    Amount(&'a Name, u64),
}

impl Resources {
    /// Adds a path and everything below it.
    pub fn add_path(&mut self, path: RepoPath) {
        insert(&mut self.paths, path);
    }

    /// Adds a slot of this pool.
    pub fn add_pool(&mut self, pool: Name) {
        insert(&mut self.pools, pool);
    }

    /// Adds so much of this quota, at least 1. Of two amounts of one quota the larger counts.
    pub fn add_quota(&mut self, quota: Name, amount: u64) {
        let most = self.quotas.entry(quota).or_insert(1);
        *most = amount.max(*most);
    }

    /// What either asks for.
    pub(crate) fn union(&self, other: &Resources) -> Resources {
        let mut all = self.clone();
        other.paths.iter().for_each(|path| all.add_path(path.clone()));
        other.pools.iter().for_each(|pool| all.add_pool(pool.clone()));
        other.quotas.iter().for_each(|(quota, amount)| all.add_quota(quota.clone(), *amount));
        all
    }

    /// One roster after the other, in the one order in which all claims take them. Quotas are last: what is taken
    /// of them counts, so all else must have been had.
    pub(crate) fn parts(&self) -> impl Iterator<Item = Part<'_>> {
        let paths = Some(Part::Paths(&self.paths)).filter(|_| !self.paths.is_empty());
        let pools = self.pools.iter().map(Part::Slot);
        paths.into_iter().chain(pools).chain(self.quotas.iter().map(|(name, n)| Part::Amount(name, *n)))
    }

    /// As the fields `paths`, `pools` and `quotas`.
    pub fn fields(&self) -> Map<String, Value> {
        let paths: Vec<&str> = self.paths.iter().map(RepoPath::as_str).collect();
        let pools: Vec<&str> = self.pools.iter().map(Name::as_str).collect();
        let quotas: Map<String, Value> =
            self.quotas.iter().map(|(name, amount)| (name.as_str().to_owned(), json!(amount))).collect();
        let fields = [("paths", json!(paths)), ("pools", json!(pools)), ("quotas", Value::Object(quotas))];
        fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

fn insert<T: Ord>(sorted: &mut Vec<T>, new: T) {
    if let Err(at) = sorted.binary_search(&new) {
        sorted.insert(at, new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_union_has_each_once_and_the_larger_amount_in_one_order() {
        let name = |text: &str| Name::new(text).unwrap();
        let (mut one, mut other) = (Resources::default(), Resources::default());
        assert_eq!(one.parts().count(), 0);
        one.add_path(RepoPath::new("b").unwrap());
        one.add_pool(name("z"));
        one.add_quota(name("q"), 3);
        other.add_path(RepoPath::new("a").unwrap());
        ["a", "z"].into_iter().for_each(|pool| other.add_pool(name(pool)));
        [("q", 2), ("c", 1)].into_iter().for_each(|(quota, n)| other.add_quota(name(quota), n));
        let all = one.union(&other);
        assert_eq!(all, other.union(&one));
        let (a, z, c, q) = (name("a"), name("z"), name("c"), name("q"));
        let paths = ["a", "b"].map(|path| RepoPath::new(path).unwrap());
        let parts: Vec<Part<'_>> = all.parts().collect();
        let order =
            [Part::Paths(&paths), Part::Slot(&a), Part::Slot(&z), Part::Amount(&c, 1), Part::Amount(&q, 3)];
        assert_eq!(parts, order);
    }
}
