//! Taking the next task: whoever's turn it is.
//!
//! A walk follows the hints in order, reads each task, and decides by its record alone. It never waits for anybody:
//! what another is just taking is passed by, and looked at again in the next walk.

mod ahead;
mod listed;
mod once;
mod parked;
mod run;
mod timed;
mod walk;

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::update::ROUNDS;
use super::{Directory, Lease};
use serde_json::json;

use crate::directory::gates::Gateway;
use crate::directory::known::Read;
use crate::domain::{
    Acquire, Acquired, Answer, Fingerprint, Halt, Name, Refusal, Scope, Task, hint, natural,
};
use crate::error::{Code, Error, Result};
use crate::id::NodeId;
use crate::store::Glimpse;
use listed::Listed;
use walk::Walk;

/// How soon an idle waiter sees that a worker has died.
pub(super) const GLANCE: Duration = Duration::from_millis(20);

/// A request for the task whose turn it is.
#[derive(Clone, Debug)]
pub struct Next {
    pub(super) acquire: Acquire,
    pub(super) queue: Name,
    pub(super) scope: Option<Scope>,
    pub(super) projects: Vec<Name>,
}

impl Next {
    /// Takes the task as `acquire` says, from the queue `default`, in no scope, of any project.
    pub fn of(acquire: Acquire) -> Next {
        Next { acquire, queue: Task::default_queue(), scope: None, projects: Vec::new() }
    }

    /// The same task, taken as `acquire` says.
    pub fn taken_as(self, acquire: Acquire) -> Next {
        Next { acquire, ..self }
    }

    /// From this queue.
    pub fn queue(mut self, queue: Name) -> Next {
        self.queue = queue;
        self
    }

    /// Of this scope, and of no other.
    pub fn scope(mut self, scope: Scope) -> Next {
        self.scope = Some(scope);
        self
    }

    /// Only of this project, or of another that is named so too.
    pub fn project(mut self, project: Name) -> Next {
        if !self.projects.contains(&project) {
            self.projects.push(project);
        }
        self
    }
}

impl Next {
    /// What makes a request the same as another.
    fn fingerprint(&self) -> Fingerprint {
        let lane = hint::lane(&self.queue, self.scope.as_ref());
        let projects: Vec<&str> = self.projects.iter().map(Name::as_str).collect();
        let arguments = json!([self.acquire.arguments(), projects]);
        Fingerprint::of("next", Some(&self.acquire.owner), &lane, arguments)
    }

    fn wants(&self, id: &NodeId, task: &Task) -> bool {
        let of_project = |project: &Name| self.projects.contains(project);
        task.queue == self.queue
            && Scope::of(id) == self.scope
            && (self.projects.is_empty() || task.project.as_ref().is_some_and(of_project))
    }
}

/// There is nothing to take. A value, not an error.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Nothing {
    /// In how many milliseconds something may come up, where that is known.
    pub due_in_ms: Option<i64>,
    /// Why a task whose turn it was could not be taken: the first one.
    pub refused: Option<Box<Refusal>>,
    /// Who paused the queue, if somebody has.
    pub paused: Option<Box<Halt>>,
    /// Who cancelled the scope, if somebody has: then no waiting helps.
    pub cancelled: Option<Box<Halt>>,
    /// Why nothing may be taken at all, whatever there is.
    pub barred: Option<Box<Refusal>>,
    /// Tasks that may be next and whose records can't be read, or those of what they wait for, with the error that names
    /// the file.
    pub unreadable: BTreeMap<NodeId, String>,
    /// Was it waited for in vain?
    pub waited: bool,
}

impl Nothing {
    /// The code that decides the exit code.
    pub fn code(&self) -> Code {
        match self {
            Nothing { barred: Some(refusal), .. } => refusal.code(),
            Nothing { cancelled: Some(_), .. } => Code::Cancelled,
            Nothing { waited: true, .. } => Code::WaitTimeout,
            _ => Code::NothingEligible,
        }
    }

    fn barred(refusal: Refusal) -> Nothing {
        Nothing { barred: Some(Box::new(refusal)), ..Nothing::default() }
    }

    fn due_in(&mut self, ms: i64) {
        let ms = ms.max(0);
        self.due_in_ms = Some(self.due_in_ms.map_or(ms, |earlier| earlier.min(ms)));
    }
}

/// What the threads of one process tell each other of their walks.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// The tasks that one of them is just taking.
    taking: Mutex<HashSet<NodeId>>,
    /// What the last walk of one of them has still listed: the next ones' turns.
    listed: Mutex<Listed>,
    /// Has one of them walked before?
    walked: AtomicBool,
    /// When the short folder was last looked at, in nanoseconds on the monotonic clock.
    glanced_ns: AtomicU64,
}

impl Shared {
    /// Something else may come first now.
    pub(super) fn forget_listed(&self) {
        *self.listed.lock().unwrap_or_else(PoisonError::into_inner) = Listed::default();
    }
}

impl Directory {
    /// Takes the first task that can be taken: by priority, then the oldest. Says at once if there is none.
    ///
    /// Of all who ask at the same moment no two get the same one. A task whose worker has died is among them from its
    /// lease's end on, or sooner where the claim was bound to a process, and nobody else has to do anything for that.
    pub fn try_next(&self, request: &Next) -> Result<Result<Lease, Nothing>> {
        match &self.receipt {
            Some(key) => self.next_once(request, key),
            None => self.walks(request, &mut |read: Read| {
                let id = read.0.id.clone();
                self.knowing(Some(read)).take(&id, &request.acquire, None, None)
            }),
        }
    }

    /// Walks until something is taken, or until there is nothing for certain.
    fn walks<T>(
        &self,
        request: &Next,
        take: &mut dyn FnMut(Read) -> Result<Answer<T>>,
    ) -> Result<Result<T, Nothing>> {
        let mut passed_by = HashSet::new();
        for round in 0..ROUNDS {
            let mut walk = Walk::new(self, request);
            if !walk.has_listed() {
                walk.look()?;
            }
            if let Some(nothing) = self.stopped(request, walk.glimpse.as_mut())? {
                return Ok(Err(nothing));
            }
            if let Some(taken) = walk.take_listed(take)? {
                return Ok(Ok(taken));
            }
            if let Some(taken) = walk.take_first(take)? {
                return Ok(Ok(taken));
            }
            let again = walk.lost || !walk.passed_by.is_subset(&passed_by);
            if !again {
                // What was there before may have been lost in a power cut, which only a look at every record can tell.
                if self.is_hinted()? || self.hint_all()? == 0 {
                    return Ok(Err(walk.nothing));
                }
                // Dead workers' tasks are among what was put.
                self.queues.glanced_ns.store(0, Ordering::Relaxed);
                continue;
            }
            passed_by = walk.passed_by;
            self.pause_after(round)?;
        }
        let place = self.place(None);
        Err(Error::new(
            Code::Contended,
            format!("too many are after the same tasks of {place}; nothing was taken"),
        )
        .hint("try again"))
    }

    /// Why nothing is to be taken, whatever there is.
    fn stopped(&self, request: &Next, mut seen: Option<&mut Glimpse>) -> Result<Option<Nothing>> {
        let scope = request.scope.as_ref();
        if let Some(scope) = scope
            && let Some(halt) = self.halt_in(Gateway::Scope(scope), seen.as_deref_mut())?
        {
            return Ok(Some(Nothing { cancelled: Some(Box::new(halt)), ..Nothing::default() }));
        }
        let paused = self.halt_in(Gateway::Queue(&request.queue, scope), seen)?;
        Ok(paused.map(|halt| Nothing { paused: Some(Box::new(halt)), ..Nothing::default() }))
    }

    /// The same, waiting for at most `wait` until there is something, also until the queue is resumed.
    pub fn next(&self, request: &Next, wait: Duration) -> Result<Result<Lease, Nothing>> {
        let end = self.host.mono_ns().saturating_add(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX));
        loop {
            let nothing = match self.try_next(request)? {
                Err(nothing) if nothing.barred.is_none() && nothing.cancelled.is_none() => nothing,
                answer => return Ok(answer),
            };
            let left = Duration::from_nanos(end.saturating_sub(self.host.mono_ns()));
            if left.is_zero() {
                return Ok(Err(Nothing { waited: true, ..nothing }));
            }
            self.host.pause(left.min(self.glance(&nothing)));
        }
    }

    /// How long to leave the directory alone after there was nothing to take.
    pub fn glance(&self, nothing: &Nothing) -> Duration {
        let due = nothing.due_in_ms.map(|ms| Duration::from_millis(ms.max(1).unsigned_abs()));
        let most = self.store.glance();
        due.map_or(most, |due| due.min(most))
    }

    /// What [`Directory::try_next`] would take now. Writes nothing.
    pub fn would_next(&self, request: &Next) -> Result<Result<Acquired, Nothing>> {
        if let Some(nothing) = self.stopped(request, None)? {
            return Ok(Err(nothing));
        }
        let would = |id: &NodeId| self.would_acquire(id, &request.acquire);
        if self.is_hinted()? {
            let mut walk = Walk::looking(self, request);
            let found = walk.take_first(&mut |(node, _)| would(&node.id))?;
            return Ok(found.ok_or(walk.nothing));
        }
        let mut nothing = Nothing::default();
        for id in self.takeable(request)? {
            match would(&id)? {
                Ok(acquired) => return Ok(Ok(acquired)),
                Err(refusal) => nothing.refused = nothing.refused.or(Some(Box::new(refusal))),
            }
        }
        Ok(Err(nothing))
    }

    /// By the records alone, in order: the tasks that can be taken now.
    fn takeable(&self, request: &Next) -> Result<Vec<NodeId>> {
        let mut found = Vec::new();
        self.each_task(|node| {
            let Some(task) = node.task.as_ref().filter(|task| request.wants(&node.id, task)) else {
                return Ok(());
            };
            if let Some(when) = hint::when(node).filter(|_| self.standing(node, |now| now.takeable())) {
                found.push((task.priority, when.wall_ms(), natural(&node.id), node.id.clone()));
            }
            Ok(())
        })?;
        found.sort_unstable();
        Ok(found.into_iter().map(|(.., id)| id).collect())
    }
}
