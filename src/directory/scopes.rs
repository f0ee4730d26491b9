//! Scopes: called off as a whole, counted, waited for. And queues: paused, resumed.
//!
//! One swap of the scope's cell cancels it. From then on every node of it that has not ended *is* cancelled: each
//! decision reads the cell after the node, and what writes or waits writes that down first. Whoever cancels then walks
//! over the nodes and writes it down for each; a stop on the way leaves the rest to whoever meets them.
//!
//! A holder who read the cell before may still complete: its swap comes either before that walk, which then leaves
//! the node as it is done, or finds the node cancelled. Who takes or adds a node that the walk can't have seen, since it
//! was not there yet, looks at the cell once more before saying so.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use super::gates::Gateway;
use super::look::Unreadable;
use super::{Directory, outcome::is_final};
use crate::domain::{Cancel, Halt, Name, Node, Scope, Text, hint};
use crate::error::Result;
use crate::id::NodeId;
use crate::store::{Key, Prefix};

/// How many names are listed at once.
const PAGE: usize = 1024;

/// The first and the longest pause between two looks at a scope.
const PAUSES: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(250));

/// What [`Directory::cancel_scope`] did.
#[derive(Debug)]
pub struct ScopeCancelled {
    /// Who cancelled it, the first time.
    pub halt: Halt,
    /// Was it cancelled already?
    pub replay: bool,
    /// Of how many nodes it was written down now that they are cancelled.
    pub nodes: u64,
    /// Those of which it could not be. They are cancelled all the same.
    pub left: Vec<Unreadable>,
}

/// A scope and what is in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScopeSeen {
    /// Who cancelled it, if somebody has.
    pub cancelled: Option<Halt>,
    /// How many nodes are in each state now, by the state's name; states that none is in are left out.
    pub states: BTreeMap<&'static str, u64>,
    /// How many tasks are done and, where they ask for review, accepted.
    pub succeeded: u64,
    /// How many nodes' records can't be read.
    pub unreadable: u64,
}

impl ScopeSeen {
    /// How many nodes there are whose records can be read.
    pub fn nodes(&self) -> u64 {
        self.states.values().sum()
    }

    fn count(&mut self, counted: Counted) {
        *self.states.entry(counted.state).or_default() += 1;
        self.succeeded += u64::from(counted.succeeded);
    }
}

#[derive(Clone, Copy)]
struct Counted {
    state: &'static str,
    succeeded: bool,
}

impl Directory {
    /// Cancels a scope for good: nothing new starts there, and what has not ended is cancelled, whoever holds it. Once
    /// cancelled it stays so; again is a replay that writes down what is left.
    pub fn cancel_scope(&self, name: &Name, request: &Cancel) -> Result<ScopeCancelled> {
        let scope = Scope::named(name);
        let reason = request.reason.as_ref().map(Text::as_str);
        let (halt, replay) = self.set_gate(Gateway::Scope(&scope), name, false, &request.by, reason)?;
        let mut cancelled = ScopeCancelled { halt, replay, nodes: 0, left: Vec::new() };
        self.each_in(&scope, &mut |id| {
            match self.node(id).and_then(|node| node.map(|node| self.end_of_one(node)).transpose()) {
                Ok(written) => cancelled.nodes += u64::from(written == Some(true)),
                Err(error) => cancelled.left.push(Unreadable { id: id.clone(), error }),
            }
            Ok(())
        })?;
        Ok(cancelled)
    }

    /// Writes down that a node has ended. `false`: that was so already.
    fn end_of_one(&self, node: Node) -> Result<bool> {
        let had = node.outcome().is_some();
        self.written_down(node).map(|node| !had && node.outcome().is_some())
    }

    /// What is in a scope. Writes nothing.
    pub fn scope(&self, name: &Name) -> Result<ScopeSeen> {
        self.count(&Scope::named(name), &mut HashMap::new(), false)
    }

    /// The scope once so many of its tasks are done (and accepted, where they ask for that), once it is cancelled, or
    /// after `wait`, whichever comes first; what there is then says which. `tell` is told of each look, with the time left.
    pub fn wait_scope(
        &self,
        name: &Name,
        succeeded: u64,
        wait: Duration,
        tell: &mut dyn FnMut(&ScopeSeen, Duration),
    ) -> Result<ScopeSeen> {
        let (scope, end) = (Scope::named(name), self.end_of(wait));
        let (mut known, mut before) = (HashMap::new(), ScopeSeen::default());
        let mut pause = PAUSES.0;
        loop {
            let seen = self.count(&scope, &mut known, true)?;
            let left = Duration::from_nanos(end.saturating_sub(self.host.mono_ns()));
            if seen.succeeded >= succeeded || seen.cancelled.is_some() || left.is_zero() {
                return Ok(seen);
            }
            tell(&seen, left);
            pause = if seen == before { (pause * 2).min(PAUSES.1) } else { PAUSES.0 };
            before = seen;
            self.host.pause(pause.min(left));
        }
    }

    /// Counts the nodes of a scope; those `known` to have ended for good are not read again. `waits`: what is judged by
    /// the end of the scope is written down first, so that the count is the last one.
    fn count(&self, scope: &Scope, known: &mut HashMap<NodeId, Counted>, waits: bool) -> Result<ScopeSeen> {
        let cancelled = self.halt(Gateway::Scope(scope))?;
        let writes = waits && cancelled.is_some();
        let mut seen = ScopeSeen { cancelled, ..ScopeSeen::default() };
        self.each_in(scope, &mut |id| {
            if let Some(counted) = known.get(id) {
                seen.count(*counted);
                return Ok(());
            }
            let node = match self.node(id) {
                Ok(Some(node)) if writes => self.written_down(node)?,
                Ok(Some(node)) => node,
                Ok(None) => return Ok(()),
                Err(_) => {
                    seen.unreadable += 1;
                    return Ok(());
                }
            };
            let state = self.standing(&node, |standing| standing.name());
            let counted = Counted { state, succeeded: node.task.is_some() && hint::is_met(&node) };
            if is_final(&node) {
                known.insert(id.clone(), counted);
            }
            seen.count(counted);
            Ok(())
        })?;
        Ok(seen)
    }

    pub(super) fn ids_in(&self, scope: &Scope) -> Result<Vec<NodeId>> {
        let mut ids = Vec::new();
        self.each_in(scope, &mut |id| {
            ids.push(id.clone());
            Ok(())
        })?;
        Ok(ids)
    }

    fn each_in(&self, scope: &Scope, each: &mut dyn FnMut(&NodeId) -> Result<()>) -> Result<()> {
        let (folder, mut after) = (scope.folder(), None::<Key>);
        loop {
            let page = self.store.list(&Prefix::Below(&folder), after.as_ref().map(Key::name), PAGE)?;
            for key in &page {
                if let Key::Node(id) = key {
                    each(id)?;
                }
            }
            match page.into_iter().next_back() {
                Some(last) => after = Some(last),
                None => return Ok(()),
            }
        }
    }

    /// Lets [`Directory::next`] and [`Directory::consume`] take nothing from a queue, of the tasks in `scope` or in none,
    /// until it is resumed. What is held goes on, and by its id every task can be taken. Who paused it, and whether
    /// it was paused already.
    pub fn pause_queue(
        &self,
        queue: &Name,
        scope: Option<&Scope>,
        by: &str,
        reason: Option<&Text>,
    ) -> Result<(Halt, bool)> {
        self.set_gate(Gateway::Queue(queue, scope), queue, false, by, reason.map(Text::as_str))
    }

    /// Ends a queue's pause. `false`: it was not paused.
    pub fn resume_queue(&self, queue: &Name, scope: Option<&Scope>, by: &str) -> Result<bool> {
        self.set_gate(Gateway::Queue(queue, scope), queue, true, by, None).map(|(_, replay)| !replay)
    }

    /// Who paused a queue, if it is paused.
    pub fn paused(&self, queue: &Name, scope: Option<&Scope>) -> Result<Option<Halt>> {
        self.halt(Gateway::Queue(queue, scope))
    }
}
