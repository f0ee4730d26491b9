//! Workers as threads, for an engine that lives in one process. They are killed and frozen at the store's calls,
//! before or after what the call does: a killed thread unwinds, a frozen one sleeps.

use std::os::fd::BorrowedFd;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use claimdir::host::{Host, Os};
use claimdir::store::{Finding, Key, Prefix, Replaced, Store, Watch};
use claimdir::{Directory, Result};

use super::log::Log;
use super::plan::{BEAT, Fate, Fates, Plan, fate};
use super::worker::Worker;

/// What a killed thread unwinds with.
struct Killed;

/// One worker's fate, which its store looks at.
#[derive(Default)]
struct Thread {
    kill: AtomicBool,
    freeze_ns: AtomicU64,
    freezes: Mutex<Vec<(u64, u64)>>,
}

/// Runs the workers over `store` and lets their fates befall them.
pub(crate) fn run(store: &Arc<dyn Store>, plan: &Plan) -> Fates {
    let host = Os::new();
    let until = host.mono_ns() + plan.length.as_nanos() as u64;
    let threads: Vec<Arc<Thread>> = (0..plan.workers).map(|_| Arc::default()).collect();
    let fates = Mutex::new(Fates::default());
    thread::scope(|scope| {
        for (worker, thread) in (0..).zip(&threads) {
            let fates = &fates;
            scope.spawn(move || live(store, thread, plan, worker, until, fates));
        }
        let mut random = plan.random(u32::MAX, 0);
        while host.mono_ns() < until {
            thread::sleep(BEAT);
            let victim = &threads[random.within(0..u64::from(plan.workers)) as usize];
            match fate(&mut random) {
                Some(Fate::Kill) => victim.kill.store(true, SeqCst),
                Some(Fate::Freeze(length)) => victim.freeze_ns.store(length.as_nanos() as u64, SeqCst),
                None => {}
            }
        }
    });
    fates.into_inner().unwrap()
}

/// All lives of one worker.
fn live(
    store: &Arc<dyn Store>,
    thread: &Arc<Thread>,
    plan: &Plan,
    worker: u32,
    until: u64,
    fates: &Mutex<Fates>,
) {
    let host: Arc<dyn Host> = Arc::new(Os::new());
    for life in 0.. {
        let faulty = Faulty { store: store.clone(), thread: thread.clone(), host: host.clone() };
        let directory = Directory::over(Arc::new(faulty), host.clone());
        let log = Log::create(&plan.folder, worker, life, host.clone());
        let work = Worker::new(directory, log, plan.random(worker, life));
        let ended = catch_unwind(AssertUnwindSafe(|| work.work(until)));
        let now = host.mono_ns();
        let mut fates = fates.lock().unwrap();
        fates.freezes.extend(thread.freezes.lock().unwrap().drain(..).map(|(from, to)| (worker, from, to)));
        match ended {
            Ok(()) => return,
            Err(payload) if payload.is::<Killed>() => fates.kills.push((worker, life, now)),
            Err(payload) => {
                drop(fates);
                resume_unwind(payload);
            }
        }
    }
}

/// A store at whose calls a thread is killed or frozen.
struct Faulty {
    store: Arc<dyn Store>,
    thread: Arc<Thread>,
    host: Arc<dyn Host>,
}

impl Faulty {
    fn point(&self) {
        let length = self.thread.freeze_ns.swap(0, SeqCst);
        if length > 0 {
            let from = self.host.mono_ns();
            thread::sleep(Duration::from_nanos(length));
            self.thread.freezes.lock().unwrap().push((from, self.host.mono_ns()));
        }
        if self.thread.kill.swap(false, SeqCst) {
            resume_unwind(Box::new(Killed));
        }
    }

    fn call<T>(&self, call: impl FnOnce(&dyn Store) -> T) -> T {
        self.point();
        let done = call(self.store.as_ref());
        self.point();
        done
    }
}

impl Store for Faulty {
    fn read(&self, key: &Key) -> Result<Option<Vec<u8>>> {
        self.call(|store| store.read(key))
    }

    fn make(&self, key: &Key) -> Result<bool> {
        self.call(|store| store.make(key))
    }

    fn replace(&self, key: &Key, expected: &[u8], new: &[u8]) -> Result<Replaced> {
        self.call(|store| store.replace(key, expected, new))
    }

    fn confirm(&self, key: &Key) -> Result<()> {
        self.call(|store| store.confirm(key))
    }

    fn publish(&self, key: &Key, bytes: &[u8]) -> Result<bool> {
        self.call(|store| store.publish(key, bytes))
    }

    fn remove(&self, key: &Key) -> Result<bool> {
        self.call(|store| store.remove(key))
    }

    fn list(&self, prefix: &Prefix<'_>, after: Option<&str>, limit: usize) -> Result<Vec<Key>> {
        self.call(|store| store.list(prefix, after, limit))
    }

    fn watch(&self, key: &Key) -> Box<dyn Watch + '_> {
        Box::new(FaultyWatch { watch: self.store.watch(key), store: self })
    }

    fn prepare(&self) -> Result<bool> {
        self.call(|store| store.prepare())
    }

    fn place(&self, key: Option<&Key>) -> String {
        self.store.place(key)
    }

    fn inspect(&self) -> Result<Vec<Finding>> {
        self.call(|store| store.inspect())
    }
}

struct FaultyWatch<'a> {
    watch: Box<dyn Watch + 'a>,
    store: &'a Faulty,
}

impl Watch for FaultyWatch<'_> {
    fn wait(&mut self, timeout: Duration, others: &[BorrowedFd<'_>]) {
        self.watch.wait(timeout, others);
        self.store.point();
    }
}
