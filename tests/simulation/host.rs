//! What a simulated process is told of its surroundings, and its store's way of waiting.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use claimdir::host::{Host, Life, Now, Place, Process};
use claimdir::store::files::FileStore;
use claimdir::store::{Finding, Key, Prefix, Replaced, Store, Watch};
use claimdir::{Error, Result};

use super::choice::Dice;
use super::clock::boot_name;
use super::disk::hash_of;
use super::files::SimFiles;
use super::rules::{Call, Kind, STEP_MS};
use super::state::Status;
use super::world::World;

/// The host as process `me` sees it.
pub struct SimHost {
    world: Arc<World>,
    me: usize,
    place: Place,
    dice: std::sync::Mutex<Dice>,
}

impl SimHost {
    pub fn new(world: &Arc<World>, me: usize) -> SimHost {
        let mut state = world.lock();
        let seed = hash_of(&(me, state.rules.salt, state.choices.pick_salt()));
        let place = Place {
            machine: "simulated".to_owned(),
            boot: boot_name(state.time.boot),
            time_namespace: String::new(),
        };
        drop(state);
        SimHost { world: world.clone(), me, place, dice: std::sync::Mutex::new(Dice::new(seed)) }
    }
}

impl Host for SimHost {
    fn now(&self) -> Now {
        let Some(mut state) = self.world.point(self.me, &Call::on(Kind::Clock, "")) else {
            return Now { wall_ms: 0, mono_ms: 0 };
        };
        let reading = state.time.reading();
        state.oracle.clock_read(self.me, reading);
        state.note(|| format!("{}: the time is {} ms", self.me, reading.mono_ms));
        state.observe(self.me, hash_of(&(reading.mono_ms, reading.wall_ms)));
        Now { wall_ms: reading.wall_ms, mono_ms: reading.mono_ms }
    }

    fn mono_ns(&self) -> u64 {
        let Some(mut state) = self.world.point(self.me, &Call::on(Kind::Tick, "")) else { return u64::MAX };
        let ns = state.time.mono_ns();
        state.observe(self.me, ns);
        ns
    }

    fn place(&self) -> &Place {
        &self.place
    }

    fn name(&self) -> String {
        "simulated".to_owned()
    }

    fn random(&self) -> Result<u128> {
        let mut dice = self.dice.lock().unwrap();
        Ok(u128::from(dice.roll()) << 64 | u128::from(dice.roll()))
    }

    fn pause(&self, length: Duration) {
        let Some(mut state) = self.world.point(self.me, &Call::on(Kind::Pause, "")) else { return };
        if state.choices.is_search() {
            state.time.pass_ms(STEP_MS);
        } else {
            let until = state.time.ns + nanos(length);
            drop(state);
            self.world.sleep(self.me, until);
        }
    }

    fn process(&self, _pid: u32, _group: Option<u32>) -> Result<Process> {
        Err(Error::usage("simulated processes have no names"))
    }

    fn life(&self, process: &Process) -> Life {
        let state = self.world.lock();
        if process.boot == boot_name(state.time.boot) {
            state.oracle.life(process.pid)
        } else {
            Life::Unknown
        }
    }
}

fn nanos(length: Duration) -> u64 {
    u64::try_from(length.as_nanos()).unwrap_or(u64::MAX / 4)
}

/// The directory engine, but that its waiting is simulated too.
pub struct SimStore {
    pub engine: FileStore<SimFiles>,
    pub world: Arc<World>,
    pub me: usize,
}

impl SimStore {
    /// One step, though it makes many calls: a hint's folders would double those of each operation, and a hint that
    /// was put or removed halfway is like one that was not.
    fn in_one<T>(&self, kind: Kind, key: &Key, act: impl FnOnce() -> Result<T>) -> Result<T> {
        let name = key.to_string();
        if let Some(mut state) = self.world.point(self.me, &Call::on(kind, &name)) {
            state.processes[self.me].in_one = true;
        }
        let done = act();
        self.world.lock().processes[self.me].in_one = false;
        done
    }
}

impl Store for SimStore {
    fn read(&self, key: &Key) -> Result<Option<Vec<u8>>> {
        self.engine.read(key)
    }
    fn make(&self, key: &Key) -> Result<bool> {
        self.engine.make(key)
    }
    fn replace(&self, key: &Key, expected: &[u8], new: &[u8]) -> Result<Replaced> {
        self.engine.replace(key, expected, new)
    }
    fn is_in_hand(&self, key: &Key) -> Result<bool> {
        self.engine.is_in_hand(key)
    }
    fn confirm(&self, key: &Key) -> Result<()> {
        self.engine.confirm(key)
    }
    fn publish(&self, key: &Key, bytes: &[u8]) -> Result<bool> {
        self.engine.publish(key, bytes)
    }
    fn remove(&self, key: &Key) -> Result<bool> {
        self.engine.remove(key)
    }
    fn hint(&self, key: &Key) -> Result<()> {
        self.in_one(Kind::Create, key, || self.engine.hint(key))
    }
    fn unhint(&self, key: &Key) -> Result<()> {
        self.in_one(Kind::Unlink, key, || self.engine.unhint(key))
    }
    fn list(&self, prefix: &Prefix<'_>, after: Option<&str>, limit: usize) -> Result<Vec<Key>> {
        self.engine.list(prefix, after, limit)
    }
    fn watch(&self, _key: &Key) -> Box<dyn Watch + '_> {
        Box::new(SimWatch { world: self.world.clone(), me: self.me })
    }
    fn prepare(&self) -> Result<bool> {
        self.engine.prepare()
    }
    fn place(&self, key: Option<&Key>) -> String {
        self.engine.place(key)
    }
    fn inspect(&self) -> Result<Vec<Finding>> {
        self.engine.inspect()
    }
}

/// Wakes at the end of its time, and by chance before: as a watch that sees some changes and misses others.
struct SimWatch {
    world: Arc<World>,
    me: usize,
}

impl Watch for SimWatch {
    fn wait(&mut self, timeout: Duration, _others: &[BorrowedFd<'_>]) {
        let Some(mut state) = self.world.point(self.me, &Call::on(Kind::Pause, "watch")) else { return };
        let most = nanos(timeout);
        let early = state.choices.happens(1000);
        let length = if early { state.choices.pick(most as usize) as u64 } else { most };
        let until = state.time.ns + length;
        drop(state);
        self.world.sleep(self.me, until);
    }
}

impl World {
    /// Process `me` does nothing until this moment.
    pub fn sleep(&self, me: usize, until: u64) {
        let mut state = self.lock();
        if state.is_alive(me) {
            state.processes[me].status = Status::Asleep(until);
            self.give_way(state, me);
        }
    }
}
