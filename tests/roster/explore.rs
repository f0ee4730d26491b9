//! Every interleaving of a few actors at the calls of the store, with a clock that may move between any two.
//!
//! An actor's thread stops before each call of the store until it is chosen. A schedule is a list of choices;
//! the explorer runs one after the other, depth first, and turns back where it comes to a state it has seen: the
//! same cells, the same time, and the same calls and answers so far for each actor. An actor that is killed or
//! frozen is one that is not chosen any more, so what holds of each state holds at every stop.

use std::collections::BTreeMap;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use claimdir::domain::{Node, Standing};
use claimdir::host::{Host, Life, Now, Place, Process};
use claimdir::store::{Finding, Key, Memory, Prefix, Replaced, Store, Watch};
use claimdir::{Code, Directory, Error, Name, NodeId, Result};

/// One move of the clock. It is as long as a claim may take to be written once it was announced.
pub const TICK_MS: i64 = 200;

/// The time that all share.
#[derive(Clone, Default)]
pub struct Clock(Arc<AtomicI64>);

impl Clock {
    pub fn advance(&self, ms: i64) {
        self.0.fetch_add(ms, Ordering::SeqCst);
    }
    fn ms(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// A host with that clock and numbers of its own. Who pauses lets a tick go by.
pub struct TestHost {
    clock: Clock,
    place: Place,
    seed: u64,
    drawn: AtomicI64,
}

impl TestHost {
    pub fn new(clock: &Clock, seed: u64) -> TestHost {
        let place = Place { machine: "m".into(), boot: "b".into(), time_namespace: "t".into() };
        TestHost { clock: clock.clone(), place, seed, drawn: AtomicI64::new(0) }
    }
}

impl Host for TestHost {
    fn now(&self) -> Now {
        Now { wall_ms: 1_000_000 + self.clock.ms(), mono_ms: self.clock.ms() }
    }
    fn mono_ns(&self) -> u64 {
        self.clock.ms() as u64 * 1_000_000
    }
    fn place(&self) -> &Place {
        &self.place
    }
    fn name(&self) -> String {
        "host".to_owned()
    }
    fn random(&self) -> Result<u128> {
        let drawn = self.drawn.fetch_add(1, Ordering::SeqCst);
        let half = |part: u8| {
            let mut hasher = DefaultHasher::new();
            (self.seed, drawn, part).hash(&mut hasher);
            hasher.finish()
        };
        Ok(u128::from(half(0)) << 64 | u128::from(half(1)))
    }
    fn pause(&self, _length: Duration) {
        self.clock.advance(TICK_MS);
    }
    fn process(&self, _pid: u32, _group: Option<u32>) -> Result<Process> {
        Err(Error::usage("no processes here"))
    }
    fn life(&self, _process: &Process) -> Life {
        Life::Unknown
    }
}

/// What an actor does; `true`: it was told yes.
pub type Act = Arc<dyn Fn(&Directory) -> bool + Send + Sync>;

/// One schedule on its way. Whoever has just made a call chooses the next, so that who goes on by itself costs
/// no change of threads.
struct Board {
    scene: Limits,
    /// What to choose first; from its end on the explorer looks for new states.
    prefix: Vec<Choice>,
    path: Vec<Choice>,
    labels: Vec<String>,
    ticks: usize,
    preemptions: usize,
    last: Option<usize>,
    /// The call that each actor stands before, while it stands.
    waiting: Vec<Option<String>>,
    done: Vec<Option<bool>>,
    /// The actor that may go on.
    chosen: Option<usize>,
    /// What each actor has seen.
    seen: Vec<u64>,
    cells: BTreeMap<Key, Vec<u8>>,
    /// The schedule is over, or leads where another has been.
    aborted: bool,
    /// What must not be.
    found: Option<String>,
    visited: HashSet<u64>,
    prefixes: Vec<Vec<Choice>>,
}

#[derive(Clone, Copy)]
struct Limits {
    ticks: usize,
    until: i64,
    preemptions: usize,
}

struct Stage {
    memory: Memory,
    clock: Clock,
    board: Mutex<Board>,
    changed: Condvar,
}

/// What a schedule may choose next.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Choice {
    Actor(usize),
    Tick,
}

impl Board {
    /// Chooses who goes on, once everybody stands before a call or is done.
    fn choose(&mut self, clock: &Clock) {
        let count = self.waiting.len();
        while self.chosen.is_none() && !self.aborted {
            if (0..count).any(|a| self.waiting[a].is_none() && self.done[a].is_none()) {
                return;
            }
            let ready: Vec<usize> = (0..count).filter(|a| self.done[*a].is_none()).collect();
            if ready.is_empty() || clock.ms() > self.scene.until * TICK_MS {
                self.aborted = true;
                let all = ready.is_empty() && self.ticks == 0;
                if all && !self.done.contains(&Some(true)) {
                    self.found = Some("nobody was told yes".to_owned());
                }
                return;
            }
            let goes_on = self.last.filter(|last| ready.contains(last));
            let mut choices: Vec<Choice> = goes_on.map(Choice::Actor).into_iter().collect();
            if goes_on.is_none() || self.preemptions < self.scene.preemptions {
                choices.extend(ready.iter().filter(|a| Some(**a) != goes_on).map(|a| Choice::Actor(*a)));
            }
            if self.ticks < self.scene.ticks {
                choices.push(Choice::Tick);
            }
            let Some(choice) = self.next(&choices, clock) else {
                self.aborted = true;
                return;
            };
            self.path.push(choice);
            match choice {
                Choice::Tick => {
                    self.ticks += 1;
                    clock.advance(TICK_MS);
                    self.labels.push("the clock moves".to_owned());
                }
                Choice::Actor(actor) => {
                    self.preemptions += usize::from(goes_on.is_some_and(|last| last != actor));
                    self.last = Some(actor);
                    let call = self.waiting[actor].take().unwrap_or_default();
                    self.labels.push(format!("actor {actor}: {call}"));
                    self.chosen = Some(actor);
                }
            }
        }
    }

    /// The prefix's choice, else the first of `choices`, the others being noted for later. `None`: seen before.
    fn next(&mut self, choices: &[Choice], clock: &Clock) -> Option<Choice> {
        if let Some(choice) = self.prefix.get(self.path.len()) {
            return Some(*choice);
        }
        let mut hasher = DefaultHasher::new();
        (&self.seen, &self.cells, &self.waiting, &self.done).hash(&mut hasher);
        (clock.ms(), self.ticks, self.preemptions, self.last).hash(&mut hasher);
        if !self.visited.insert(hasher.finish()) {
            return None;
        }
        for other in &choices[1..] {
            let mut path = self.path.clone();
            path.push(*other);
            self.prefixes.push(path);
        }
        choices.first().copied()
    }
}

/// The store as one actor reaches it.
struct Gate {
    stage: Arc<Stage>,
    actor: usize,
}

impl Gate {
    fn call<T>(&self, what: &str, key: &Key, act: impl FnOnce(&Memory) -> Result<T>) -> Result<T>
    where
        T: std::fmt::Debug,
    {
        let stage = &self.stage;
        let mut board = stage.board.lock().unwrap();
        board.waiting[self.actor] = Some(format!("{what} {key}"));
        board.choose(&stage.clock);
        if board.chosen != Some(self.actor) {
            stage.changed.notify_all();
        }
        let others = |board: &mut Board| board.chosen != Some(self.actor) && !board.aborted;
        let mut board = stage.changed.wait_while(board, others).unwrap();
        if board.chosen != Some(self.actor) {
            return Err(Error::new(Code::StoreUnavailable, "turned back"));
        }
        board.chosen = None;
        let answer = act(&stage.memory);
        if let Some(bytes) = stage.memory.read(key)? {
            board.cells.insert(key.clone(), bytes);
        }
        let mut hasher = DefaultHasher::new();
        (board.seen[self.actor], what, key, format!("{answer:?}"), stage.clock.ms()).hash(&mut hasher);
        board.seen[self.actor] = hasher.finish();
        if what == "replace" {
            let host = Arc::new(TestHost::new(&stage.clock, 1_000));
            let found = unsound(&Directory::over(Arc::new(Plain(stage.clone())), host));
            if found.is_some() {
                board.found = found;
                board.aborted = true;
                stage.changed.notify_all();
            }
        }
        answer
    }

    fn done(&self, told: bool) {
        // A thread that found a fault has told it by its panic.
        let Ok(mut board) = self.stage.board.lock() else { return };
        board.done[self.actor] = Some(told);
        board.choose(&self.stage.clock);
        self.stage.changed.notify_all();
    }
}

impl Store for Gate {
    fn read(&self, key: &Key) -> Result<Option<Vec<u8>>> {
        self.call("read", key, |memory| memory.read(key))
    }
    fn make(&self, key: &Key) -> Result<bool> {
        self.call("make", key, |memory| memory.make(key))
    }
    fn replace(&self, key: &Key, expected: &[u8], new: &[u8]) -> Result<Replaced> {
        self.call("replace", key, |memory| memory.replace(key, expected, new))
    }
    fn confirm(&self, _key: &Key) -> Result<()> {
        Ok(())
    }
    fn publish(&self, key: &Key, bytes: &[u8]) -> Result<bool> {
        self.call("publish", key, |memory| memory.publish(key, bytes))
    }
    fn remove(&self, key: &Key) -> Result<bool> {
        self.call("remove", key, |memory| memory.remove(key))
    }
    fn list(&self, prefix: &Prefix<'_>, after: Option<&str>, limit: usize) -> Result<Vec<Key>> {
        self.stage.memory.list(prefix, after, limit)
    }
    fn watch(&self, key: &Key) -> Box<dyn Watch + '_> {
        self.stage.memory.watch(key)
    }
    fn prepare(&self) -> Result<bool> {
        Ok(false)
    }
    fn place(&self, key: Option<&Key>) -> String {
        self.stage.memory.place(key)
    }
    fn inspect(&self) -> Result<Vec<Finding>> {
        Ok(Vec::new())
    }
}

/// A scene: what is there first, who acts, how often the clock may move by itself, and how far by that and by
/// pauses, how often the explorer may turn from an actor that could go on.
pub struct Scene {
    pub setup: Act,
    pub actors: Vec<Act>,
    pub ticks: usize,
    pub until: i64,
    pub preemptions: usize,
}

impl Scene {
    /// Explores all of it; the number of states. Panics with the schedule where live claims have what they can't
    /// all have.
    pub fn explore(&self) -> usize {
        let mut visited = HashSet::new();
        let mut prefixes = vec![Vec::new()];
        while let Some(prefix) = prefixes.pop() {
            (visited, prefixes) = self.run(prefix, visited, prefixes);
        }
        visited.len()
    }

    fn run(
        &self,
        prefix: Vec<Choice>,
        visited: HashSet<u64>,
        prefixes: Vec<Vec<Choice>>,
    ) -> (HashSet<u64>, Vec<Vec<Choice>>) {
        let count = self.actors.len();
        let Scene { ticks, until, preemptions, .. } = *self;
        let board = Board {
            scene: Limits { ticks, until, preemptions },
            prefix,
            path: Vec::new(),
            labels: Vec::new(),
            ticks: 0,
            preemptions: 0,
            last: None,
            waiting: vec![None; count],
            done: vec![None; count],
            chosen: None,
            seen: vec![0; count],
            cells: BTreeMap::new(),
            aborted: false,
            found: None,
            visited,
            prefixes,
        };
        let (memory, clock) = (Memory::default(), Clock::default());
        let stage = Arc::new(Stage { memory, clock, board: Mutex::new(board), changed: Condvar::new() });
        let host = Arc::new(TestHost::new(&stage.clock, 1_000));
        (self.setup)(&Directory::over(Arc::new(Plain(stage.clone())), host));
        std::thread::scope(|scope| {
            for (actor, act) in self.actors.iter().enumerate() {
                let stage = stage.clone();
                scope.spawn(move || {
                    let gate = Gate { stage: stage.clone(), actor };
                    let host = Arc::new(TestHost::new(&stage.clock, actor as u64));
                    let store = Arc::new(Gate { stage: stage.clone(), actor });
                    gate.done(act(&Directory::over(store, host)));
                });
            }
        });
        let mut board = stage.board.lock().unwrap();
        if let Some(found) = &board.found {
            panic!("{found}:\n{}", board.labels.join("\n"));
        }
        (std::mem::take(&mut board.visited), std::mem::take(&mut board.prefixes))
    }
}

/// The same store for whoever looks on.
struct Plain(Arc<Stage>);

impl Store for Plain {
    fn read(&self, key: &Key) -> Result<Option<Vec<u8>>> {
        self.0.memory.read(key)
    }
    fn make(&self, key: &Key) -> Result<bool> {
        self.0.memory.make(key)
    }
    fn replace(&self, key: &Key, expected: &[u8], new: &[u8]) -> Result<Replaced> {
        self.0.memory.replace(key, expected, new)
    }
    fn confirm(&self, _key: &Key) -> Result<()> {
        Ok(())
    }
    fn publish(&self, key: &Key, bytes: &[u8]) -> Result<bool> {
        self.0.memory.publish(key, bytes)
    }
    fn remove(&self, key: &Key) -> Result<bool> {
        self.0.memory.remove(key)
    }
    fn list(&self, prefix: &Prefix<'_>, after: Option<&str>, limit: usize) -> Result<Vec<Key>> {
        self.0.memory.list(prefix, after, limit)
    }
    fn watch(&self, key: &Key) -> Box<dyn Watch + '_> {
        self.0.memory.watch(key)
    }
    fn prepare(&self) -> Result<bool> {
        Ok(false)
    }
    fn place(&self, key: Option<&Key>) -> String {
        self.0.memory.place(key)
    }
    fn inspect(&self) -> Result<Vec<Finding>> {
        Ok(Vec::new())
    }
}

/// How many slots the pool of this name has, and how much there is of the quota.
pub fn capacity(name: &Name) -> u64 {
    match name.as_str() {
        "one" => 1,
        "two" => 2,
        other => panic!("{other}?"),
    }
}

/// What live claims have and can't all have: paths that clash, more slots than their pool has, more of a quota than
/// there is. Here no quota's window ends and no claim is settled, so what a claim took of one counts as long as the
/// record says so, live or over.
fn unsound(directory: &Directory) -> Option<String> {
    let nodes = directory.list().unwrap().nodes;
    let live = |node: &&Node| directory.standing(node, |standing| matches!(standing, Standing::Held { .. }));
    let live: Vec<_> = nodes.iter().filter(live).collect();
    let (mut slots, mut spent) = (BTreeMap::<_, u64>::new(), BTreeMap::<_, u64>::new());
    for (at, node) in live.iter().enumerate() {
        for other in &live[at + 1..] {
            let theirs = other.claim().into_iter().flat_map(|claim| &claim.resources.paths);
            let mut mine = node.claim().into_iter().flat_map(|claim| &claim.resources.paths);
            if mine.any(|path| theirs.clone().any(|other| path.clashes(other))) {
                return Some(format!("{} and {} are both live", node.id, other.id));
            }
        }
        node.claim()?.resources.pools.iter().for_each(|pool| *slots.entry(pool).or_default() += 1);
    }
    for claim in nodes.iter().filter_map(Node::claim) {
        let quotas = &claim.resources.quotas;
        quotas.iter().for_each(|(quota, amount)| *spent.entry(quota).or_default() += amount);
    }
    let over = slots.iter().chain(&spent).find(|(name, used)| **used > capacity(name));
    over.map(|(name, used)| format!("{used} of {name} are taken"))
}

/// Live claims have only what they can all have.
#[track_caller]
pub fn sound(directory: &Directory) {
    assert_eq!(unsound(directory), None);
}

pub fn id(text: &str) -> NodeId {
    NodeId::new(text).unwrap()
}
