//! An engine that tells much at once changes nothing about whose turn it is.

#![allow(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod support;

use std::sync::Arc;
use std::time::Duration;

use claimdir::domain::{Retry, Submission};
use claimdir::store::{Finding, Glimpse, Key, Memory, Prefix, Replaced, Store, Stretch, Watch};
use claimdir::time::When;
use claimdir::{Directory, Lease, Name, Next, NodeId, Resources, Result};
use support::fake::{Fake, by, id};

/// Memory that tells of each list so many names at once.
struct Seeing(Arc<Memory>, usize);

impl Store for Seeing {
    fn glimpse(&self, cells: &[Key], lists: &[Stretch]) -> Result<Option<Glimpse>> {
        let mut glimpse = Glimpse::default();
        for key in cells {
            glimpse.add_cell(key.clone(), self.0.read(key)?);
        }
        for list in lists {
            let limit = list.limit.min(self.1);
            let prefix = Prefix::Internal(&list.folder);
            let mut found = self.0.list(&prefix, list.after.as_deref(), limit + 1)?;
            let whole = found.len() <= limit;
            found.truncate(limit);
            glimpse.add_names(list, found.iter().map(|key| key.name().to_owned()).collect(), whole);
        }
        Ok(Some(glimpse))
    }

    fn read(&self, key: &Key) -> Result<Option<Vec<u8>>> {
        self.0.read(key)
    }

    fn make(&self, key: &Key) -> Result<bool> {
        self.0.make(key)
    }

    fn replace(&self, key: &Key, expected: &[u8], new: &[u8]) -> Result<Replaced> {
        self.0.replace(key, expected, new)
    }

    fn confirm(&self, key: &Key) -> Result<()> {
        self.0.confirm(key)
    }

    fn publish(&self, key: &Key, bytes: &[u8]) -> Result<bool> {
        self.0.publish(key, bytes)
    }

    fn remove(&self, key: &Key) -> Result<bool> {
        self.0.remove(key)
    }

    fn list(&self, prefix: &Prefix<'_>, after: Option<&str>, limit: usize) -> Result<Vec<Key>> {
        self.0.list(prefix, after, limit)
    }

    fn watch(&self, key: &Key) -> Box<dyn Watch + '_> {
        self.0.watch(key)
    }

    fn prepare(&self) -> Result<bool> {
        self.0.prepare()
    }

    fn place(&self, key: Option<&Key>) -> String {
        self.0.place(key)
    }

    fn inspect(&self) -> Result<Vec<Finding>> {
        self.0.inspect()
    }
}

/// Numbers that look like chance, and are the same each time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn add(directory: &Directory, n: u64, chance: &mut Chance) {
    let mut task = Submission::by("x").priority([0, 5, 5, 9][chance.below(4) as usize]).unwrap();
    match chance.below(3) {
        0 => task = task.project(name("a")),
        1 => task = task.project(name("b")),
        _ => {}
    }
    match chance.below(6) {
        0 => task = task.not_before(When::In(Duration::from_secs(chance.below(20)))),
        1 => task = task.with(&Resources { pools: vec![name("p")], ..Resources::default() }),
        2 if n > 0 => task = task.after(id(&format!("t{}", chance.below(n)))),
        _ => {}
    }
    let _ = directory.submit(&id(&format!("t{n}")), &task).unwrap().unwrap();
}

/// What two worlds have in common: all that is done in one is done in the other at the same moment.
struct Worlds {
    hosts: Vec<Arc<Fake>>,
    /// As two machines see them. The second world's engine tells much at once.
    directories: [[Directory; 2]; 2],
}

impl Worlds {
    fn new(most: usize) -> Worlds {
        let stores: [Arc<dyn Store>; 2] =
            [Arc::new(Memory::default()), Arc::new(Seeing(Arc::default(), most))];
        let mut hosts = Vec::new();
        let directories = stores.map(|store| {
            ["boot", "another machine's"].map(|boot| {
                hosts.push(Fake::new(boot));
                Directory::over(store.clone(), hosts[hosts.len() - 1].clone())
            })
        });
        Worlds { hosts, directories }
    }

    /// What comes of it in both.
    #[track_caller]
    fn both<T: PartialEq + std::fmt::Debug>(
        &self,
        chance: &mut Chance,
        act: impl Fn(&Directory, &mut Chance) -> T,
    ) -> T {
        let machine = chance.below(2) as usize;
        let [plain, seeing] = self.directories.each_ref().map(|machines| &machines[machine]);
        let before = chance.0;
        let expected = act(plain, chance);
        assert_eq!(act(seeing, &mut Chance(before)), expected);
        expected
    }

    fn pass(&self, ms: i64) {
        self.hosts.iter().for_each(|host| host.pass(ms));
    }
}

fn settle(lease: Lease, chance: &mut Chance) {
    match chance.below(4) {
        0 => drop(lease.leave()),
        1 => drop(lease.release().unwrap()),
        // Longer than a rest that is left to chance.
        2 => drop(lease.retry(&Retry { reason: None, after: Duration::from_secs(60) }).unwrap()),
        _ => drop(lease.complete(&serde_json::json!(1)).unwrap()),
    }
}

#[test]
fn whose_turn_it_is_stays_the_same() {
    let mut taken = 0;
    for seed in 0..120 {
        let mut chance = Chance(seed);
        let worlds = Worlds::new([1, 2, 3, 9, 64][seed as usize % 5]);
        worlds.both(&mut chance, |directory, _| directory.set_pool(&name("p"), 1).unwrap());
        (0..25).for_each(|n| worlds.both(&mut chance, |directory, chance| add(directory, n, chance)));
        let next = Next::of(by("x"));
        let requests = [next.clone(), next.clone().project(name("a")), next.project(name("b"))];
        for _ in 0..40 {
            let request = &requests[chance.below(3) as usize];
            let _ = worlds.both(&mut chance, |directory, _| {
                directory
                    .would_next(request)
                    .unwrap()
                    .map(|would| would.node.id)
                    .map_err(|nothing| format!("{nothing:?}"))
            });
            let turn = worlds.both(&mut chance, |directory, chance| {
                let lease = directory.try_next(request).unwrap().ok()?;
                let id: NodeId = lease.id().clone();
                settle(lease, chance);
                Some(id)
            });
            taken += usize::from(turn.is_some());
            worlds.pass(chance.below(4_000) as i64);
        }
    }
    assert!(taken > 1_000, "{taken}");
}
