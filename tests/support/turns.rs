//! Several operations on one store, one call at a time, in every order that a few changes of turn allow.
//!
//! Whoever loses its turn stands still between two calls, as a frozen process does, until it gets it back.

use std::os::fd::BorrowedFd;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use claimdir::Result;
use claimdir::store::{Finding, Key, Memory, Prefix, Replaced, Store, Watch};

use super::stops::Stops;

/// What one of them does, on a store that waits for its turn before each call.
pub type Actor = Box<dyn FnOnce(Arc<dyn Store>) + Send>;

/// One world, to be run through once.
pub struct Scenario {
    pub memory: Arc<Memory>,
    pub actors: Vec<Actor>,
    /// What must hold in the end.
    pub check: Box<dyn FnOnce()>,
}

/// Runs `scenario` in every order with at most `changes` of turn before one has come to its end; how many.
pub fn explore(changes: usize, scenario: impl Fn() -> Scenario) -> usize {
    let mut prefix = Vec::new();
    for runs in 1.. {
        let Scenario { memory, actors, check } = scenario();
        let trace = run(&memory, actors, &prefix);
        let order: Vec<usize> = trace.iter().map(|choice| choice.chosen).collect();
        let told = Told(order.clone());
        check();
        std::mem::forget(told);
        match next(&trace, changes) {
            Some(following) => prefix = following,
            None => {
                println!("{runs} orders");
                return runs;
            }
        }
    }
    unreachable!()
}

/// The same; then, one after the other, forwards and backwards, with one of them stopped before each of its first 60
/// calls. `scenario` is told whether one is to be stopped.
pub fn explore_and_stop(changes: usize, scenario: impl Fn(bool) -> Scenario) {
    explore(changes, || scenario(false));
    for stopped in 0..scenario(true).actors.len() {
        for (calls, backwards) in (0..60).flat_map(|calls| [(calls, false), (calls, true)]) {
            let Scenario { memory, actors, check } = scenario(true);
            let mut actors: Vec<_> = actors.into_iter().enumerate().collect();
            if backwards {
                actors.reverse();
            }
            for (me, actor) in actors {
                let all: Arc<dyn Store> = memory.clone();
                actor(if me == stopped { Arc::new(Stops::after(calls, all)) } else { all });
            }
            check();
        }
    }
}

/// Tells of the order that broke something.
struct Told(Vec<usize>);

impl Drop for Told {
    fn drop(&mut self) {
        eprintln!("broken by the order {:?}", self.0);
    }
}

struct Choice {
    /// Who could go on, the one whose turn it was first.
    open: Vec<usize>,
    chosen: usize,
    /// Could the one whose turn it was go on?
    held: bool,
}

fn run(memory: &Arc<Memory>, actors: Vec<Actor>, prefix: &[usize]) -> Vec<Choice> {
    let gate = Arc::new(Gate::new(actors.len(), prefix));
    thread::scope(|scope| {
        for (me, actor) in actors.into_iter().enumerate() {
            let store = Turn { memory: memory.clone(), gate: gate.clone(), me };
            scope.spawn(move || {
                let _end = End(store.gate.clone(), me);
                actor(Arc::new(store));
            });
        }
    });
    std::mem::take(&mut gate.turns.lock().unwrap().trace)
}

/// The next order: the last choice that could have been another one, made so.
fn next(trace: &[Choice], changes: usize) -> Option<Vec<usize>> {
    let changed = |choice: &Choice| usize::from(choice.held && choice.chosen != choice.open[0]);
    (0..trace.len()).rev().find_map(|at| {
        let before: usize = trace[..at].iter().map(changed).sum();
        let Choice { open, chosen, held } = &trace[at];
        let position = open.iter().position(|actor| actor == chosen).unwrap();
        let other = *open.get(position + 1)?;
        let allowed = before + usize::from(*held) <= changes;
        let prefix = trace[..at].iter().map(|choice| choice.chosen).chain([other]);
        allowed.then(|| prefix.collect())
    })
}

struct Gate {
    turns: Mutex<Turns>,
    granted: Vec<Condvar>,
}

struct Turns {
    prefix: Vec<usize>,
    trace: Vec<Choice>,
    waiting: Vec<bool>,
    ended: Vec<bool>,
    granted: Option<usize>,
}

impl Gate {
    fn new(actors: usize, prefix: &[usize]) -> Gate {
        let turns = Turns {
            prefix: prefix.to_vec(),
            trace: Vec::new(),
            waiting: vec![false; actors],
            ended: vec![false; actors],
            granted: None,
        };
        Gate { turns: Mutex::new(turns), granted: (0..actors).map(|_| Condvar::new()).collect() }
    }

    /// Returns when it is `me`'s turn. Whoever comes last to the gate says whose turn it is.
    fn pass(&self, me: usize) {
        let mut turns = self.turns.lock().unwrap();
        turns.waiting[me] = true;
        self.choose(&mut turns);
        turns = self.granted[me].wait_while(turns, |turns| turns.granted != Some(me)).unwrap();
        turns.granted = None;
        turns.waiting[me] = false;
    }

    fn choose(&self, turns: &mut Turns) {
        let all_wait = turns.waiting.iter().zip(&turns.ended).all(|(waits, ended)| *waits || *ended);
        let mut open: Vec<usize> = (0..turns.waiting.len()).filter(|actor| turns.waiting[*actor]).collect();
        if !all_wait || open.is_empty() {
            return;
        }
        let current = turns.trace.last().map(|choice| choice.chosen);
        let held = current.is_some_and(|current| open.contains(&current));
        open.sort_by_key(|actor| Some(*actor) != current);
        let chosen = turns.prefix.get(turns.trace.len()).copied().filter(|actor| open.contains(actor));
        let chosen = chosen.unwrap_or(open[0]);
        turns.trace.push(Choice { open, chosen, held });
        turns.granted = Some(chosen);
        self.granted[chosen].notify_one();
    }
}

struct End(Arc<Gate>, usize);

impl Drop for End {
    fn drop(&mut self) {
        let mut turns = self.0.turns.lock().unwrap();
        turns.ended[self.1] = true;
        self.0.choose(&mut turns);
    }
}

/// The store of one actor.
struct Turn {
    memory: Arc<Memory>,
    gate: Arc<Gate>,
    me: usize,
}

impl Turn {
    fn memory(&self) -> &Memory {
        self.gate.pass(self.me);
        &self.memory
    }
}

impl Store for Turn {
    fn read(&self, key: &Key) -> Result<Option<Vec<u8>>> {
        self.memory().read(key)
    }

    fn make(&self, key: &Key) -> Result<bool> {
        self.memory().make(key)
    }

    fn replace(&self, key: &Key, expected: &[u8], new: &[u8]) -> Result<Replaced> {
        self.memory().replace(key, expected, new)
    }

    fn confirm(&self, key: &Key) -> Result<()> {
        self.memory.confirm(key)
    }

    fn publish(&self, key: &Key, bytes: &[u8]) -> Result<bool> {
        self.memory().publish(key, bytes)
    }

    fn remove(&self, key: &Key) -> Result<bool> {
        self.memory().remove(key)
    }

    fn list(&self, prefix: &Prefix<'_>, after: Option<&str>, limit: usize) -> Result<Vec<Key>> {
        self.memory().list(prefix, after, limit)
    }

    fn watch(&self, _key: &Key) -> Box<dyn Watch + '_> {
        Box::new(Never)
    }

    fn prepare(&self) -> Result<bool> {
        self.memory.prepare()
    }

    fn place(&self, key: Option<&Key>) -> String {
        self.memory.place(key)
    }

    fn inspect(&self) -> Result<Vec<Finding>> {
        self.memory.inspect()
    }
}

/// A watch that wakes nobody: each call has its turn anyway.
struct Never;

impl Watch for Never {
    fn wait(&mut self, _timeout: Duration, _others: &[BorrowedFd<'_>]) {}
}
