//! One worker: takes nodes, keeps, loses and settles them, and tries what it no longer may.

use std::thread;
use std::time::Duration;

use claimdir::domain::{Ending, Node, Reason, Stale, State};
use claimdir::{Acquire, Directory, Force, Lease, NodeId, Refusal, Renewal, Token};
use serde_json::json;

use super::log::{Answer, Call, Id, Log, Why};
use super::random::Random;

/// How many nodes are worked on at a time. Few, so that workers meet.
const PLACES: usize = 3;
/// Tokens kept, most of them of claims that are over: they must open nothing.
const HANDS: usize = 6;

pub(crate) struct Worker {
    directory: Directory,
    log: Log,
    random: Random,
    /// Which node is worked on at each place; a node that is done is followed by the next.
    places: [u32; PLACES],
    /// The newest last.
    hands: Vec<Hand>,
    /// The version last seen at each place.
    seen: [u64; PLACES],
}

struct Hand {
    node: String,
    token: Token,
    claim: Id,
    lease_ms: i64,
}

impl Worker {
    pub(crate) fn new(directory: Directory, log: Log, random: Random) -> Worker {
        Worker { directory, log, random, places: [0; PLACES], hands: Vec::new(), seen: [0; PLACES] }
    }

    /// Works until the monotonic clock says `until`.
    pub(crate) fn work(mut self, until: u64) {
        while self.log.now() < until {
            let hand = self.hands.len().checked_sub(1);
            match hand {
                Some(newest) if self.random.percent(75) => self.use_hand(newest),
                Some(_) if self.random.percent(30) => {
                    let any = self.random.within(0..self.hands.len() as u64) as usize;
                    self.use_hand(any);
                }
                _ => self.reach(),
            }
            if self.random.percent(60) {
                let longest = if self.random.percent(5) { 200_000 } else { 3_000 };
                thread::sleep(self.random.micros(0..longest));
            }
        }
    }

    /// Looks at a node or takes it.
    fn reach(&mut self) {
        let place = self.random.within(0..PLACES as u64) as usize;
        let node = format!("place-{place}/{}", self.places[place]);
        let answer =
            if self.random.percent(10) { self.look(&node) } else { self.acquire(&node, self.seen[place]) };
        match answer {
            Answer::Seen { state, .. } if state == "done" => self.places[place] += 1,
            Answer::Refused { why: Why::Done { .. }, .. } => self.places[place] += 1,
            Answer::Seen { version, .. } | Answer::Refused { version, .. } => self.seen[place] = version,
            _ => {}
        }
    }

    pub(crate) fn look(&mut self, node: &str) -> Answer {
        let id = NodeId::new(node).unwrap();
        let directory = &self.directory;
        self.log.record(node, Call::Look, |_| answer(directory.node(&id).map(seen))).1
    }

    fn acquire(&mut self, node: &str, seen: u64) -> Answer {
        let lease_ms = self.random.within(50..301) as i64;
        let wait_ms = if self.random.percent(20) { self.random.within(1..120) } else { 0 };
        let force = self.random.percent(1);
        let seen = self.random.percent(15).then_some(seen);
        let id = NodeId::new(node).unwrap();
        let directory = &self.directory;
        let mut token = None;
        let call = Call::Acquire { seen, force, wait_ms, lease_ms };
        let (claim, answer) = self.log.record(node, call, |claim| {
            let mut request = Acquire::by(claim.to_string()).lease(Duration::from_millis(lease_ms as u64));
            if let Some(seen) = seen {
                request = request.seen(seen);
            }
            if force {
                request = request.force(Force::because("a test").unwrap());
            }
            let taken = match wait_ms {
                0 => directory.try_acquire(&id, &request),
                _ => directory.acquire(&id, &request, Duration::from_millis(wait_ms)),
            };
            answer(taken.map(|taken| taken.map_or_else(refused, |lease| took(lease, &mut token))))
        });
        if let Some(token) = token {
            self.hands.push(Hand { node: node.to_owned(), token, claim, lease_ms });
            let over = self.hands.len().saturating_sub(HANDS);
            self.hands.drain(..over);
        }
        answer
    }

    /// Does something with a claim's token.
    fn use_hand(&mut self, at: usize) {
        let hand = &mut self.hands[at];
        let (directory, random) = (&self.directory, &mut self.random);
        let (node, claim) = (hand.node.clone(), hand.claim);
        let id = NodeId::new(&node).unwrap();
        let token = &hand.token;
        let answer = match random.within(0..100) {
            0..25 => self.log.record(&node, Call::Check { claim }, |_| {
                answer(directory.check(&id, token).map(|checked| {
                    checked.map_or_else(refused, |checked| Answer::Live {
                        version: checked.node.version,
                        generation: checked.node.generation,
                        remaining: checked.remaining_ms.unwrap_or(i64::MAX),
                    })
                }))
            }),
            25..65 => {
                let other = random.percent(50).then(|| random.within(50..301) as i64);
                let lease_ms = other.unwrap_or(hand.lease_ms);
                let lease = other.map(|ms| Duration::from_millis(ms as u64));
                let renewed = self.log.record(&node, Call::Renew { claim, lease_ms }, |_| {
                    let renewal = Renewal { lease, ..Renewal::default() };
                    answer(directory.renew(&id, token, &renewal).map(|renewed| {
                        renewed.map_or_else(refused, |renewed| Answer::Renewed {
                            version: renewed.node.version,
                            generation: renewed.node.generation,
                            ends: renewed.node.claim().unwrap().ends.mono_ms,
                        })
                    }))
                });
                if matches!(renewed.1, Answer::Renewed { .. }) {
                    hand.lease_ms = lease_ms;
                }
                renewed
            }
            65..98 => self.log.record(&node, Call::Release { claim }, |_| {
                answer(directory.release(&id, token, None).map(|released| {
                    released.map_or_else(refused, |released| Answer::Released {
                        version: released.node.version,
                        generation: released.node.generation,
                    })
                }))
            }),
            _ => {
                let result = random.within(0..2);
                self.log.record(&node, Call::Complete { claim, result }, |_| {
                    answer(directory.complete(&id, token, &json!(result)).map(|completed| {
                        completed.map_or_else(refused, |completed| Answer::Completed {
                            version: completed.node.version,
                            generation: completed.node.generation,
                            replay: completed.replay,
                        })
                    }))
                })
            }
        };
        // What is over is tried again now and then; what is held is left to its lease now and then.
        let held = matches!(answer.1, Answer::Live { .. } | Answer::Renewed { .. });
        if self.random.percent(if held { 8 } else { 60 }) {
            self.hands.remove(at);
        }
    }
}

fn answer(outcome: claimdir::Result<Answer>) -> Answer {
    outcome.unwrap_or_else(|error| Answer::Failed {
        code: error.code().name().to_owned(),
        message: error.to_string(),
    })
}

fn took(lease: Lease, token: &mut Option<Token>) -> Answer {
    let (secret, acquired) = lease.leave();
    *token = Some(secret);
    Answer::Taken {
        version: acquired.node.version,
        generation: acquired.node.generation,
        ends: acquired.node.claim().unwrap().ends.mono_ms,
        from: acquired.reclaimed_from.map(call),
        forced: acquired.forced,
    }
}

fn seen(node: Option<Node>) -> Answer {
    let Some(node) = node else {
        return Answer::Seen { version: 0, generation: 0, state: "ready".into(), owner: None, ends: None };
    };
    let owner = match &node.state {
        State::Claimed(claim) => Some(call(claim.owner.clone())),
        State::Done(outcome) => Some(call(outcome.by.clone())),
        _ => None,
    };
    let ends = node.claim().map(|claim| claim.ends.mono_ms);
    let state = node.state.name().to_owned();
    Answer::Seen { version: node.version, generation: node.generation, state, owner, ends }
}

fn call(owner: String) -> Id {
    Id::try_from(owner).unwrap()
}

fn refused(refusal: Refusal) -> Answer {
    let (version, generation) = (refusal.version, refusal.generation);
    Answer::Refused { version, generation, why: why(refusal) }
}

fn why(refusal: Refusal) -> Why {
    let message = refusal.message();
    match refusal.reason {
        Reason::Held(holder) => Why::Held {
            owner: call(holder.owner),
            generation: holder.generation,
            remaining: holder.remaining_ms.unwrap_or(i64::MAX),
        },
        Reason::TimedOut(inner) => why(*inner),
        Reason::Ended { ending: Ending::Done, by, .. } => Why::Done { owner: call(by) },
        Reason::StaleVersion { .. } => Why::StaleVersion,
        Reason::Stale(Stale::NoRecord) => Why::NoRecord,
        Reason::Stale(Stale::Replaced(holder)) => Why::Replaced {
            owner: call(holder.owner),
            generation: holder.generation,
            remaining: holder.remaining_ms.unwrap_or(i64::MAX),
        },
        Reason::Stale(Stale::Over) => Why::Over,
        Reason::Stale(Stale::NotHeld(state)) => Why::NotHeld { state: state.to_owned() },
        Reason::Stale(Stale::TooLate) => Why::TooLate,
        Reason::OtherResult => Why::OtherResult,
        // What no worker here can be told.
        _ => Why::Other { message },
    }
}
