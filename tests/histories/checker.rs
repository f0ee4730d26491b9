//! Is there an order of the calls, each somewhere between its beginning and its end, in which the model gives
//! every answer?
//!
//! Wing and Gong's search, just in time (Lowe): the calls' beginnings and ends are walked through in time,
//! together with every state that the node can be in by then and the calls under way that have not happened
//! yet. A call need only have happened by its end; a call of unknown outcome may also not have happened. When no
//! state is left, there is no such order. (`porcupine-rs` wants one successor a step and each outcome known, and
//! brings a benchmark framework with it.)

use std::collections::{BTreeSet, HashSet};

use super::log::Op;
use super::model::{State, Step, steps};

/// More states at once than that: the history does not say enough.
const MOST: usize = 200_000;

/// A state that the node can be in, and which calls under way have not happened yet.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    state: State,
    open: BTreeSet<usize>,
}

/// Why there is no order.
#[derive(Debug)]
pub(crate) struct Violation {
    /// The call by whose end no state was left.
    pub(crate) at: Op,
    /// The states before that.
    pub(crate) states: Vec<State>,
}

/// Looks for an order of one node's calls. `Err`: there is none.
pub(crate) fn check(ops: &[Op]) -> Result<(), Box<Violation>> {
    let steps: Vec<Step> = ops.iter().flat_map(steps).collect();
    let mut events: Vec<(u64, bool, usize)> = Vec::with_capacity(steps.len() * 2);
    for (at, step) in steps.iter().enumerate() {
        events.push((step.op().called, false, at));
        events.push((step.op().ended, true, at));
    }
    events.sort_unstable(); // beginnings first: what touches may overlap
    let mut worlds = HashSet::from([World { state: State::NEW, open: BTreeSet::new() }]);
    for (_, ends, at) in events {
        let before = std::mem::take(&mut worlds);
        if ends {
            worlds = end(&steps, at, &before);
            if worlds.is_empty() {
                let states = before.into_iter().map(|world| world.state).collect::<HashSet<_>>();
                let violation =
                    Violation { at: steps[at].op().clone(), states: states.into_iter().collect() };
                return Err(Box::new(violation));
            }
        } else {
            let begin = |mut world: World| {
                world.open.insert(at);
                settle(&steps, world)
            };
            worlds = before.into_iter().map(begin).collect();
        }
        assert!(worlds.len() < MOST, "the history at {:?} says too little", steps[at].op());
    }
    Ok(())
}

/// The worlds in which step `at` has happened, or, if that is not certain, will not any more.
fn end(steps: &[Step], at: usize, before: &HashSet<World>) -> HashSet<World> {
    let mut after = HashSet::new();
    let mut met: HashSet<World> = before.clone();
    let mut rest: Vec<World> = before.iter().cloned().collect();
    while let Some(world) = rest.pop() {
        if !world.open.contains(&at) {
            after.insert(world);
            continue;
        }
        if !steps[at].is_certain() {
            let mut without = world.clone();
            without.open.remove(&at);
            after.insert(without);
        }
        for &step in &world.open {
            for state in steps[step].after(&world.state) {
                let mut open = world.open.clone();
                open.remove(&step);
                let next = settle(steps, World { state, open });
                if met.insert(next.clone()) {
                    rest.push(next);
                }
            }
        }
        assert!(met.len() < MOST, "the history at {:?} says too little", steps[at].op());
    }
    after
}

/// Lets happen what fits and changes nothing: later it would only be harder to fit.
fn settle(steps: &[Step], mut world: World) -> World {
    let World { state, open } = &mut world;
    open.retain(|step| {
        let changes_nothing =
            steps[*step].is_certain() && matches!(&steps[*step].after(state)[..], [next] if next == state);
        !changes_nothing
    });
    world
}
