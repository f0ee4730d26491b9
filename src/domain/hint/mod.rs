//! Hints: where `next` looks first, in the order in which tasks come up. The record alone decides.
//!
//! ```text
//! due/queues/<queue>/<scope>/<priority>/<project>/ready/<time>/<leaf>          since when it has been waiting
//! due/queues/<queue>/<scope>/<priority>/<project>/timed/<clock>/<time>/<leaf>  from when on it can be taken
//! due/queues/<queue>/<scope>/<priority>/<project>/parked/<obstacle>/<time>/<leaf>  something is in its way
//! due/queues/<queue>/<scope>/bound/<leaf>                                      ends with its process, too
//! due/built/<clock>                  all that should have a hint has had one since this boot
//! dependents/<task>/<waiting task>   who is told when the task is done
//! ```
//!
//! A hint is put before the write that it is for, under a name of its own that the record then names; the one that the
//! record named before is removed after it. So at every stop each task that can come up has a hint, and what is
//! too much is known by its version: a hint leads nowhere once the record has come to that version and names another.
//!
//! A task that a path, a pool or a quota refuses leaves the head: its hint is put under what is in its way, with a
//! random number of its own, and then removed where it was. Two who do so at once leave one too many, never none. The
//! mark stays the same, so it counts as the one that the record names. Nobody has to be told when the way is free:
//! each walk asks of each obstacle once whether it still is one, and if so passes by all that stand there.

mod name;
mod obstacle;

use super::Scope;
use super::natural::natural;
use super::record::{Claim, Moment, Name, Node, State, Task};
use super::standing::Facts;
use crate::host::Place;
use crate::id::NodeId;
pub(crate) use name::{PARKED, TIMED, UP, is_of, parked, timed_folders};
pub(crate) use obstacle::obstacle;

/// The folder of all that one queue's workers look at.
pub(crate) fn lane(queue: &Name, scope: Option<&Scope>) -> String {
    format!("due/queues/{}/{}", queue.part(), in_scope(scope))
}

/// The same for those who look for this task.
pub(crate) fn lane_of(id: &NodeId, task: &Task) -> String {
    lane(&task.queue, Scope::of(id).as_ref())
}

/// A scope, or none, as a part.
pub(crate) fn in_scope(scope: Option<&Scope>) -> String {
    part(scope.map(Scope::part))
}

/// The entry that says that everything has been hinted since the boot of this clock.
pub(crate) fn built(clock: &str) -> String {
    format!("{BUILT}/{clock}")
}

/// The folder of those entries.
pub(crate) const BUILT: &str = "due/built";

/// The folder of who waits for whom.
pub(crate) const DEPENDENTS: &str = "dependents";

/// The folder of those who wait for `on`.
pub(crate) fn dependents(on: &NodeId) -> String {
    format!("{DEPENDENTS}/{}", natural(on))
}

/// The clock of `place` in names: no other boot's, and no other time namespace's.
pub(crate) fn clock_of(place: &Place) -> String {
    let text = format!("{}\n{}\n{}", place.machine, place.boot, place.time_namespace);
    let mut hex = blake3::hash(text.as_bytes()).to_hex().to_string();
    hex.truncate(16);
    hex
}

/// A name that may be missing, as a part.
pub(crate) fn optional(name: Option<&Name>) -> String {
    part(name.map(Name::part).as_deref())
}

fn part(part: Option<&str>) -> String {
    part.map_or_else(|| "-".to_owned(), |part| format!("={part}"))
}

/// From when on a task can be taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// At once; waiting since this moment on the wall clock.
    Ready {
        /// Milliseconds since 1970.
        since_ms: i64,
    },
    /// From a moment on.
    Timed {
        /// Whose monotonic time it is, see [`clock_of`].
        clock: String,
        mono_ms: i64,
        /// What orders it among others then, on the wall clock: since when it has been waiting, or that same moment.
        wall_ms: i64,
    },
}

impl When {
    fn at(moment: &Moment) -> When {
        When::Timed { clock: clock_of(&moment.place), mono_ms: moment.mono_ms, wall_ms: moment.wall_ms }
    }

    /// What orders tasks of one priority, in milliseconds since 1970.
    pub(crate) fn wall_ms(&self) -> i64 {
        match self {
            When::Ready { since_ms } => *since_ms,
            When::Timed { wall_ms, .. } => *wall_ms,
        }
    }
}

/// What of a hint's name is told by its last part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The task it leads to.
    pub(crate) id: NodeId,
    /// The version that the record gets with the write that it was put for.
    pub(crate) version: u64,
    /// Makes each name the only one of its kind.
    pub(crate) random: u64,
}

/// What is to become of a task's hints with a write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    /// To put before the write: the one that the record names, and the one in the short folder.
    pub(crate) put: Vec<String>,
    /// Does the write make it a dependency that is met? Then those who wait for it are told after the write, and
    /// before anything is removed.
    pub(crate) tell: bool,
    /// To remove in the end.
    pub(crate) remove: Vec<String>,
}

/// Says in `next`, the successor of `node`, which hint leads to it, and what is to be done for that.
pub(crate) fn plan(node: &Node, next: &mut Node, facts: &Facts<'_>, random: u64) -> Plan {
    let Some(task) = &next.task else { return Plan::default() };
    let tell = is_met(next) && !is_met(node);
    // Until all are told, whoever meets the hint of a met dependency tells them. The lease's will do.
    let kept = node.hint.as_ref().filter(|name| tell || will_do(name, node, next, facts));
    if let Some(kept) = kept {
        next.hint = Some(kept.clone());
        return Plan { put: Vec::new(), tell, remove: if tell { names_of(node) } else { Vec::new() } };
    }
    let mark = Mark { id: next.id.clone(), version: next.version, random };
    let when = if tell { Some(When::Ready { since_ms: facts.now.wall_ms }) } else { when(next) };
    let hint = when.map(|when| name::of(task, &when, &mark));
    let mut put: Vec<String> = hint.iter().cloned().collect();
    if next.claim().is_some_and(is_bound) && hint.is_some() {
        put.push(name::bound(task, &mark));
    }
    next.hint = hint;
    let mut remove = names_of(node);
    if tell {
        remove.extend(put.iter().cloned());
    }
    Plan { put, tell, remove }
}

/// The hints of `node`, as far as its record tells.
pub(crate) fn names_of(node: &Node) -> Vec<String> {
    let (Some(task), Some(hint)) = (&node.task, &node.hint) else { return Vec::new() };
    let bound = name::mark_of(hint).filter(|_| node.claim().is_some_and(is_bound));
    [hint.clone()].into_iter().chain(bound.map(|mark| name::bound(task, &mark))).collect()
}

/// Another hint of `node`, which its record doesn't name: for one whose own was lost, or that may have got all it
/// waited for. `None`: it can't come up by itself.
pub(crate) fn anew(node: &Node, random: u64) -> Option<String> {
    let task = node.task.as_ref()?;
    let mark = Mark { id: node.id.clone(), version: node.version, random };
    when(node).map(|when| name::of(task, &when, &mark))
}

/// The task, version and mark in a hint's name.
pub(crate) fn mark_of(name: &str) -> Option<Mark> {
    name::mark_of(name)
}

/// The moment in the name of a hint in `ready`, `timed` or `parked`.
pub(crate) fn when_of(name: &str) -> Option<When> {
    name::when_of(name)
}

/// Does the record of `node` name this hint, or the one beside it in the short folder?
pub(crate) fn is_named(node: &Node, mark: &Mark) -> bool {
    node.hint.as_deref().and_then(name::mark_of).is_some_and(|named| named == *mark)
}

fn is_bound(claim: &Claim) -> bool {
    claim.bound.is_some()
}

/// From when on `node` can be taken, if it ever comes up by itself.
pub(crate) fn when(node: &Node) -> Option<When> {
    let task = node.task.as_ref()?;
    // From that moment on, its turn is that of a task as old as it is.
    let at_its_age = |moment: &Moment| When::at(&Moment { wall_ms: task.submitted_ms, ..moment.clone() });
    match &node.state {
        State::Ready => Some(match &node.not_before {
            // After a retry it is as old as its rest.
            Some(delay) if node.attempt > 0 => When::at(&delay.until),
            Some(delay) => at_its_age(&delay.until),
            None => When::Ready { since_ms: task.submitted_ms },
        }),
        State::Claimed(claim) => Some(at_its_age(&claim.ends)),
        State::Blocked(block) => block.until.as_ref().map(|delay| at_its_age(&delay.until)),
        State::Done(_) | State::Failed(_) | State::Cancelled(_) | State::Expired(_) => None,
    }
}

/// Is the hint `name`, which `node` has, good for its successor too? A renewed claim keeps it until its moment has
/// passed, unless it ends before that: who meets it meanwhile only skips it.
fn will_do(name: &str, node: &Node, next: &Node, facts: &Facts<'_>) -> bool {
    let Some(had) = name::when_of(name) else { return false };
    let token = |node: &Node| node.claim().map(|claim| claim.token_hash);
    match (&node.state, &next.state) {
        (State::Ready, State::Ready) | (State::Blocked(_), State::Blocked(_)) => when(next) == Some(had),
        (State::Claimed(_), State::Claimed(_)) if token(node) == token(next) => match (had, when(next)) {
            (When::Timed { clock, mono_ms, .. }, Some(When::Timed { clock: next, mono_ms: ends, .. })) => {
                let here = clock == clock_of(facts.place) && clock == next;
                here && facts.now.mono_ms < mono_ms && mono_ms <= ends
            }
            _ => false,
        },
        _ => false,
    }
}

/// Does the hint stand aside?
pub(crate) fn is_parked(name: &str) -> bool {
    name.rsplit_once('/').is_some_and(|(folder, _)| name::is_parked(folder))
}

/// Is `node` a dependency that is met?
pub(crate) fn is_met(node: &Node) -> bool {
    matches!(node.state, State::Done(_)) && (!node.asks_for_review() || node.is_accepted())
}
