//! A process's operations, and the judging of what it is told.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use claimdir::domain::{Bound, Reason, Stale, Submission, Submitted, Written};
use claimdir::host::Process;
use claimdir::store::files::FileStore;
use claimdir::{
    Acquire, Answer, Directory, Error, Force, Lease, Next, NodeId, ReceiptKey, Refusal, Renewal, Token,
};
use serde_json::json;

use super::clock::{Reading, boot_name};
use super::files::SimFiles;
use super::host::{SimHost, SimStore};
use super::judge::{Task, must};
use super::oracle::{Job, Oracle};
use super::rules::{Call, Kind};
use super::world::World;

/// A process with the claim directory open.
pub struct Worker {
    pub world: Arc<World>,
    pub me: usize,
    directory: Directory,
}

/// A request to take a node.
#[derive(Clone)]
pub struct Wish {
    pub node: &'static str,
    pub request: Acquire,
    pub force: bool,
    pub wait: Duration,
}

impl Wish {
    pub fn of(node: &'static str, lease_ms: u64) -> Wish {
        let request = Acquire::by("somebody").lease(Duration::from_millis(lease_ms));
        Wish { node, request, force: false, wait: Duration::ZERO }
    }

    /// Bound to a process of this number: how it lives is for the oracle to say.
    pub fn bound(self, world: &World, pid: u32, until_exit: bool) -> Wish {
        let process = Process {
            pid,
            start: 1,
            group: None,
            machine: "simulated".to_owned(),
            boot: boot_name(world.lock().time.boot),
            namespace: String::new(),
        };
        Wish { request: self.request.bound(Bound { process, until_exit }), ..self }
    }

    pub fn by_force(self) -> Wish {
        let force = Force::because("it must be").unwrap();
        Wish { request: self.request.force(force), force: true, ..self }
    }

    pub fn waiting(self, wait: Duration) -> Wish {
        Wish { wait, ..self }
    }
}

/// A claim that a process was told it has.
#[derive(Clone)]
pub struct Held {
    pub node: &'static str,
    pub token: Token,
}

/// What an operation came to.
#[derive(Debug)]
pub enum Told<T> {
    Yes(T),
    No(Refusal),
    Failed(Error),
}

impl<T> Told<T> {
    pub fn yes(self) -> Option<T> {
        match self {
            Told::Yes(value) => Some(value),
            _ => None,
        }
    }
}

fn path_of(node: &str) -> String {
    format!("{node}.claim")
}

impl Worker {
    /// Opens the directory as process `me`. `None`: it could not be read just now.
    pub fn open(world: &Arc<World>, me: usize) -> Option<Worker> {
        let host = Arc::new(SimHost::new(world, me));
        let files = SimFiles { world: world.clone(), me };
        let sync = true;
        let engine = FileStore::over(files, Path::new("/simulated"), sync, host.clone()).ok()?;
        let store = SimStore { engine, world: world.clone(), me };
        Some(Worker { world: world.clone(), me, directory: Directory::over(Arc::new(store), host) })
    }

    /// Makes the directory.
    pub fn create(&self) {
        self.directory.create().unwrap();
    }

    pub fn acquire(&self, wish: &Wish) -> Told<Held> {
        self.begin(Task::Acquire { force: wish.force }, wish.node, None);
        let id = NodeId::new(wish.node).unwrap();
        let answer = if wish.wait.is_zero() {
            self.directory.try_acquire(&id, &wish.request)
        } else {
            self.directory.acquire(&id, &wish.request, wish.wait)
        };
        self.took(wish, answer)
    }

    /// The end of an operation that takes the node.
    fn took(&self, wish: &Wish, answer: Result<Answer<Lease>, Error>) -> Told<Held> {
        let answer = answer.map(|answer| answer.map(|lease| lease.leave()));
        let told = self.told(answer, |oracle, job, now, (token, acquired)| {
            oracle.stands(&job, &acquired.node.write.to_string(), true)?;
            oracle.holds(&job.node, &token.hash().hex(), now)
        });
        match told {
            Told::Yes((token, _)) => Told::Yes(Held { node: wish.node, token }),
            Told::No(refusal) => Told::No(refusal),
            Told::Failed(error) => Told::Failed(error),
        }
    }

    /// Takes the node as the task whose turn it is. That there is nothing to take is told as a refusal of the node.
    pub fn next(&self, wish: &Wish) -> Told<Held> {
        self.begin(Task::Acquire { force: false }, wish.node, None);
        let nothing = |_| {
            let reason = Reason::Stale(Stale::TooLate); // what was published too late is given back
            Refusal { id: NodeId::new(wish.node).unwrap(), version: 0, generation: 0, reason }
        };
        let answer = self.directory.try_next(&Next::of(wish.request.clone()));
        self.took(wish, answer.map(|answer| answer.map_err(nothing)))
    }

    pub fn renew(&self, held: &Held, lease_ms: Option<u64>) -> Told<Written> {
        self.begin(Task::Renew, held.node, Some(&held.token));
        let id = NodeId::new(held.node).unwrap();
        let renewal = Renewal { lease: lease_ms.map(Duration::from_millis), ..Renewal::default() };
        let answer = self.directory.renew(&id, &held.token, &renewal);
        self.told(answer, |oracle, job, _, renewed| {
            oracle.stands(&job, &renewed.node.write.to_string(), true)
        })
    }

    pub fn release(&self, held: &Held, block: Option<&str>) -> Told<Written> {
        self.begin(Task::Release, held.node, Some(&held.token));
        let id = NodeId::new(held.node).unwrap();
        let answer = self.directory.release(&id, &held.token, block);
        self.told(answer, |oracle, job, _, released| {
            oracle.stands(&job, &released.node.write.to_string(), false)
        })
    }

    pub fn complete(&self, held: &Held) -> Told<Written> {
        self.begin(Task::Complete, held.node, Some(&held.token));
        let id = NodeId::new(held.node).unwrap();
        let answer = self.directory.complete(&id, &held.token, &json!({"result": 1}));
        self.completed(held, answer)
    }

    fn completed(&self, held: &Held, answer: Result<Answer<Written>, Error>) -> Told<Written> {
        self.told(answer, |oracle, job, _, completed| {
            if completed.replay {
                oracle.is_done(&job.node, &held.token.hash().hex())
            } else {
                oracle.stands(&job, &completed.node.write.to_string(), false)
            }
        })
    }

    /// Takes the node and ends it by the lease, which goes by the record that it wrote itself. `longer_ms`: renewed in
    /// between, and not by the lease.
    pub fn acquire_and_complete(&self, wish: &Wish, longer_ms: Option<u64>) {
        self.begin(Task::Acquire { force: false }, wish.node, None);
        let id = NodeId::new(wish.node).unwrap();
        let answer = self.directory.try_acquire(&id, &wish.request);
        let Told::Yes(lease) = self.told(answer, |oracle, job, now, lease| {
            oracle.stands(&job, &lease.acquired().node.write.to_string(), true)?;
            oracle.holds(&job.node, &lease.token().hash().hex(), now)
        }) else {
            return;
        };
        let held = Held { node: wish.node, token: lease.token().clone() };
        if longer_ms.is_some() {
            self.renew(&held, longer_ms);
        }
        self.rest(Duration::from_millis(1)); // what is known makes no call at which others could get their turn
        self.begin(Task::Look, held.node, Some(&held.token));
        let holds = {
            let state = self.world.lock();
            let last = state.oracle.nodes.get(&path_of(held.node)).and_then(|story| story.writes.last());
            last.is_some_and(|last| last.record.token() == Some(&held.token.hash().hex()))
        };
        self.told(lease.check(), |_, _, _, _| {
            must(holds, || "is told that it holds what it had lost before it asked".to_owned())
        });
        self.begin(Task::Complete, held.node, Some(&held.token));
        let answer = lease.complete(&json!({"result": 1})).map_err(|unsettled| {
            unsettled.lease.leave();
            unsettled.error
        });
        self.completed(&held, answer);
    }

    /// The same process with a receipt: one request of all that it makes, however often it is made.
    pub fn once(&self, key: &str) -> Worker {
        let directory = self.directory.with_receipt(ReceiptKey::new(key).unwrap());
        Worker { world: self.world.clone(), me: self.me, directory }
    }

    /// Takes the node with the receipt. The answer may be an old one, of a claim that has ended since.
    pub fn acquire_once(&self, wish: &Wish) -> Told<Held> {
        self.begin(Task::Acquire { force: wish.force }, wish.node, None);
        let id = NodeId::new(wish.node).unwrap();
        let answer = self.directory.try_acquire(&id, &wish.request);
        let answer = answer.map(|answer| answer.map(|lease| lease.leave()));
        let told = self.told(answer, |oracle, job, now, (token, acquired)| {
            let write = acquired.node.write.to_string();
            oracle.answered(&job.node, &format!("{write} {}", token.reveal()))?;
            if acquired.replay {
                return oracle.stands(&job, &write, false);
            }
            oracle.stands(&job, &write, true)?;
            oracle.holds(&job.node, &token.hash().hex(), now)
        });
        match told {
            Told::Yes((token, _)) => Told::Yes(Held { node: wish.node, token }),
            Told::No(refusal) => Told::No(refusal),
            Told::Failed(error) => Told::Failed(error),
        }
    }

    /// A holder's write with the receipt.
    pub fn write_once(&self, task: Task, held: &Held) -> Told<Written> {
        self.begin(task, held.node, Some(&held.token));
        let id = NodeId::new(held.node).unwrap();
        let answer = match task {
            Task::Complete => self.directory.complete(&id, &held.token, &json!({"result": 1})),
            Task::Release => self.directory.release(&id, &held.token, None),
            _ => self.directory.renew(&id, &held.token, &Renewal::default()),
        };
        self.told(answer, |oracle, job, _, written| {
            let write = written.node.write.to_string();
            oracle.answered(&job.node, &write)?;
            oracle.stands(&job, &write, task == Task::Renew && !written.replay)
        })
    }

    /// Submits the node as a task, which leaves a claim on it alone.
    pub fn add(&self, node: &'static str) -> Told<Submitted> {
        self.begin(Task::Add, node, None);
        let answer = self.directory.submit(&NodeId::new(node).unwrap(), &Submission::by("somebody"));
        self.told(answer, |oracle, job, _, submitted| {
            oracle.stands(&job, &submitted.node.write.to_string(), false)
        })
    }

    /// The same with the receipt.
    pub fn add_once(&self, node: &'static str) -> Told<Submitted> {
        self.begin(Task::Add, node, None);
        let answer = self.directory.submit(&NodeId::new(node).unwrap(), &Submission::by("somebody"));
        self.told(answer, |oracle, job, _, submitted| {
            let write = submitted.node.write.to_string();
            oracle.answered(&job.node, &write)?;
            oracle.stands(&job, &write, false)
        })
    }

    /// Looks at everything; that must not change anything, and only an injected fault may fail it.
    pub fn look(&self, held: Option<&Held>, node: &'static str) {
        self.begin(Task::Look, node, None);
        let _ = self.directory.list();
        if let Some(held) = held {
            let id = NodeId::new(held.node).unwrap();
            let answer = self.directory.check(&id, &held.token);
            self.told(answer, |_, _, _, _| Ok(()));
        }
    }

    /// Somebody who is no worker takes the record away, as `git clean` does.
    pub fn remove(&self, node: &str) {
        let path = path_of(node);
        if let Some(mut state) = self.world.point(self.me, &Call::on(Kind::Unlink, &path)) {
            state.note(|| format!("{}: {path} is removed from outside", self.me));
            let _ = state.disk.unlink(&path);
            state.oracle.removed(&path);
        }
    }

    /// Somebody sets the wall clock.
    pub fn set_clock(&self, ahead_ms: i64) {
        if let Some(mut state) = self.world.point(self.me, &Call::on(Kind::Walk, "")) {
            state.note(|| format!("{}: the wall clock is set, {ahead_ms} ms ahead", self.me));
            state.time.wall_off_ms += ahead_ms;
        }
    }

    /// Does nothing for a while.
    pub fn rest(&self, length: Duration) {
        self.directory.host().pause(length);
    }

    fn begin(&self, task: Task, node: &str, token: Option<&Token>) {
        let token = token.map(|token| token.hash().hex());
        let mut state = self.world.lock();
        state.note(|| format!("{}: begins to {task:?} {node}", self.me));
        if matches!(task, Task::Release | Task::Complete)
            && let (Some(token), Some(story)) = (&token, state.oracle.nodes.get_mut(&path_of(node)))
        {
            story.let_go(token);
        }
        state.processes[self.me].steps = 0;
        state.oracle.begin(self.me, task, &path_of(node), token);
    }

    /// The end of an operation: is what its process is told true?
    fn told<T>(
        &self,
        answer: Result<Answer<T>, Error>,
        yes: impl FnOnce(&mut Oracle, Job, Reading, &T) -> Result<(), String>,
    ) -> Told<T> {
        let mut state = self.world.lock();
        state.note(|| match &answer {
            Ok(Ok(_)) => format!("{}: is told yes", self.me),
            Ok(Err(refusal)) => format!("{}: is told no: {}", self.me, refusal.message()),
            Err(error) => format!("{}: is told: {error}", self.me),
        });
        let now = state.time.reading();
        // Without its job it died, or there was a power cut, and nobody is told anything.
        let judged = match state.oracle.end(self.me) {
            None => Ok(()),
            Some(job) => match &answer {
                Ok(Ok(value)) => yes(&mut state.oracle, job, now, value),
                Ok(Err(refusal)) => state.oracle.refused(&job, refusal, now),
                Err(error) => Oracle::failed(&job, error),
            },
        };
        if let Err(what) = judged {
            self.world.stop(state, format!("process {}: {what}", self.me));
        }
        match answer {
            Ok(Ok(value)) => Told::Yes(value),
            Ok(Err(refusal)) => Told::No(refusal),
            Err(error) => Told::Failed(error),
        }
    }
}
