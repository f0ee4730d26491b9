//! Larger cases, rolled by seed: some processes, some nodes, any operations, and trouble of every kind. Then quiet:
//! nobody may be waiting for one who is dead or frozen. Then the frozen ones wake.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use claimdir::host::Life;

use super::choice::{Choices, Dice};
use super::pool::Pool;
use super::record::Record;
use super::rules::{Left, Rules};
use super::state::Verdict;
use super::worker::{Held, Wish, Worker};
use super::world::World;

const NODES: [&str; 3] = ["node", "a/b", "c"];
/// Processes that claims are bound to: one that lives until it is ended, and one that cannot be seen.
const MORTAL: u32 = 1 << 30;
const HIDDEN: u32 = MORTAL + 1;
/// What comes last is given so much longer than the lease that it waits for.
const PATIENCE_MS: i64 = 300;

/// What a run's processes share.
struct Stage {
    nodes: usize,
    lease_ms: u64,
    tokens: Mutex<Vec<Held>>,
}

/// The run of one seed; with the steps, if `traced`.
pub fn roll(
    pool: &mut Pool,
    seed: u64,
    mutant: Option<&'static str>,
    traced: bool,
) -> (Verdict, Vec<String>) {
    let mut dice = Dice::new(seed);
    let lease_ms = *dice.one(&[60, 1000, 10_000]);
    let processes = 2 + dice.below(5);
    let mut rules = Rules { mutant, ..rules(&mut dice, lease_ms, processes) };
    let stage = Arc::new(Stage { nodes: 1 + dice.below(3), lease_ms, tokens: Mutex::default() });
    let removals = dice.below(8) == 0;
    if removals {
        rules.budget.cuts = 0; // a removal may be undone by one, and that would be the remover's to say
    }
    let world = World::new(rules, Choices::Dice(Dice::new(dice.roll())), traced);
    {
        let mut state = world.lock();
        state.oracle.lives.insert(MORTAL, Life::Alive);
        state.oracle.removals = removals;
    }
    for _ in 0..processes {
        let (world_, stage, dice) = (world.clone(), stage.clone(), Dice::new(dice.roll()));
        world.spawn(pool, move |me| live(&world_, me, &stage, dice));
    }
    world.run();
    {
        let mut state = world.lock();
        if state.left.cuts > 0 && state.choices.happens(3000) && state.verdict == Verdict::Holds {
            state.power_cut();
        }
    }
    calm(&world);
    for _ in 0..2 {
        for node in &NODES[..stage.nodes] {
            let (world_, node) = (world.clone(), *node);
            world.spawn(pool, move |me| come_last(&world_, me, node));
            world.run();
        }
        world.thaw();
        world.run();
    }
    let mut state = world.lock();
    (state.verdict.clone(), state.trace.take().unwrap_or_default())
}

fn rules(dice: &mut Dice, lease_ms: u64, processes: usize) -> Rules {
    Rules {
        budget: Left {
            preemptions: 0,
            jumps: dice.below(4) as u32,
            faults: dice.below(5) as u32,
            cuts: u32::from(dice.below(4) == 0),
            crashes: dice.below(processes) as u32,
            freezes: dice.below(3) as u32,
        },
        jump_ms: 2 * lease_ms,
        salt: dice.roll(),
        switch: *dice.one(&[100, 1000, 3000, 7000]),
        crash: *dice.one(&[0, 20, 100]),
        freeze: *dice.one(&[0, 20, 100]),
        nap: *dice.one(&[0, 20, 100]),
        fault: *dice.one(&[0, 50, 300]),
        jump: *dice.one(&[0, 20, 100]),
        wall_step: *dice.one(&[0, 0, 50]),
        cut: *dice.one(&[5, 20, 50]),
        mutant: None,
    }
}

/// From here on no trouble, and whoever a claim is bound to is gone.
fn calm(world: &World) {
    let mut state = world.lock();
    state.note(|| "-- from here on it is quiet".to_owned());
    state.left = Left::default();
    state.rules.nap = 0;
    state.rules.wall_step = 0;
    state.oracle.lives.insert(MORTAL, Life::Gone);
}

/// One process's life: some operations, each on a node or with a token that it has or was given.
fn live(world: &Arc<World>, me: usize, stage: &Stage, mut dice: Dice) {
    let Some(worker) = Worker::open(world, me) else { return };
    let mut own: Option<Held> = None;
    for _ in 0..2 + dice.below(6) {
        let node = NODES[dice.below(stage.nodes)];
        let what = dice.below(100);
        if own.is_none() && what < 60 || what < 20 {
            own = worker.acquire(&wish(world, stage, node, &mut dice)).yes();
            stage.tokens.lock().unwrap().extend(own.clone());
            continue;
        }
        let held = some_token(&own, stage, &mut dice);
        match (what, held) {
            (20..50, Some(held)) => {
                let lease = [None, None, Some(stage.lease_ms / 2), Some(stage.lease_ms * 3)];
                worker.renew(&held, *dice.one(&lease));
            }
            (50..65, Some(held)) => {
                let block = (dice.below(6) == 0).then_some("for a reason");
                worker.release(&held, block);
                own = None;
            }
            (65..75, Some(held)) => {
                worker.complete(&held);
                if dice.below(2) == 0 {
                    own = None;
                }
            }
            (75..82, held) => worker.look(held.as_ref(), node),
            (82..85, _) => {
                world.lock().oracle.lives.insert(MORTAL, Life::Gone);
            }
            (85..88, _) if world.lock().oracle.removals => worker.remove(node),
            _ => worker.rest(Duration::from_millis(dice.below(2 * stage.lease_ms as usize) as u64)),
        }
    }
}

fn some_token(own: &Option<Held>, stage: &Stage, dice: &mut Dice) -> Option<Held> {
    let tokens = stage.tokens.lock().unwrap();
    match own {
        Some(own) if dice.below(10) < 7 => Some(own.clone()),
        _ if tokens.is_empty() => None,
        _ => Some(dice.one(&tokens).clone()),
    }
}

fn wish(world: &World, stage: &Stage, node: &'static str, dice: &mut Dice) -> Wish {
    let wish = Wish::of(node, stage.lease_ms);
    let wish = match dice.below(12) {
        0 => wish.bound(world, MORTAL, false),
        1 => wish.bound(world, MORTAL, true),
        2 => wish.bound(world, HIDDEN, dice.below(2) == 0),
        _ => wish,
    };
    match dice.below(10) {
        0 => wish.by_force(),
        1..5 => wish.waiting(Duration::from_millis(dice.below(4 * stage.lease_ms as usize) as u64)),
        _ => wish,
    }
}

/// Waits for the node like one who has all the time there is: no longer than the lease that is there.
fn come_last(world: &Arc<World>, me: usize, node: &'static str) {
    let (start, patience, blocked) = {
        let state = world.lock();
        let now = state.time.reading();
        let bytes = state.disk.read(&format!("{node}.claim")).unwrap_or_default();
        let record = Record::of(bytes).unwrap_or_else(Record::none);
        (
            state.time.ns,
            record.claim.as_ref().map_or(0, |claim| claim.stands_ms(now)),
            record.state == "blocked",
        )
    };
    let wish = Wish::of(node, 1000);
    // A block ends by force or by hand only.
    let wish = if blocked { wish.by_force() } else { wish.waiting(Duration::from_secs(3600)) };
    let told = Worker::open(world, me).map(|worker| worker.acquire(&wish));
    super::check_last(world, told);
    let state = world.lock();
    let waited = (state.time.ns - start) as i64 / 1_000_000;
    if waited > patience + PATIENCE_MS {
        world.stop(state, format!("{node}: waited {waited} ms for a lease of {patience} ms more"));
    }
}
