//! Histories by hand: what the checker must accept, and what it must not.

use super::checker::check;
use super::log::{Answer, Call, Id, Op, Why};

/// Calls of a node's history, times in milliseconds.
#[derive(Default)]
struct History(Vec<Op>);

const LEASE: i64 = 100;

impl History {
    fn add(mut self, call: u32, at: (u64, u64), what: Call, answer: Option<Answer>) -> History {
        let (called, ended) = (at.0 * 1_000_000, at.1.saturating_mul(1_000_000));
        self.0.push(Op { id: claim(call), node: "node".to_owned(), call: what, answer, called, ended });
        self
    }

    /// Call `call` takes the node and is told so, decided at the call's end.
    fn takes(self, call: u32, at: (u64, u64), version: u64, generation: u64, from: Option<u32>) -> History {
        let ends = at.1 as i64 + LEASE;
        let from = from.map(claim);
        self.add(call, at, acquire(), Some(Answer::Taken { version, generation, ends, from, forced: false }))
    }

    fn dies_taking(self, call: u32, at: (u64, u64)) -> History {
        self.add(call, at, acquire(), None)
    }

    fn finds_held(self, call: u32, at: (u64, u64), version: u64, holder: u32, remaining: i64) -> History {
        let why = Why::Held { owner: claim(holder), generation: 1, remaining };
        self.add(call, at, acquire(), Some(Answer::Refused { version, generation: 1, why }))
    }

    fn renews(self, call: u32, at: (u64, u64), holder: u32, version: u64) -> History {
        let answer = Answer::Renewed { version, generation: 1, ends: at.1 as i64 + LEASE };
        self.add(call, at, Call::Renew { claim: claim(holder), lease_ms: LEASE }, Some(answer))
    }

    fn releases(self, call: u32, at: (u64, u64), holder: u32, version: Option<u64>) -> History {
        let answer = version.map(|version| Answer::Released { version, generation: 1 });
        self.add(call, at, Call::Release { claim: claim(holder) }, answer)
    }

    fn holds(self) {
        assert!(check(&self.0).is_ok());
    }

    fn breaks_at(self, call: u32) {
        assert_eq!(check(&self.0).map_err(|violation| violation.at.id), Err(claim(call)));
    }
}

fn claim(call: u32) -> Id {
    Id { worker: 1, life: 0, call }
}

fn acquire() -> Call {
    Call::Acquire { seen: None, force: false, wait_ms: 0, lease_ms: LEASE }
}

fn taken() -> History {
    History::default().takes(1, (0, 10), 1, 1, None)
}

#[test]
fn a_claim_and_what_follows() {
    taken()
        .finds_held(2, (20, 30), 1, 1, 85)
        .releases(3, (40, 50), 1, Some(2))
        .takes(4, (51, 60), 3, 2, None)
        .holds();
    taken().takes(2, (110, 111), 2, 2, Some(1)).holds();
    taken().renews(2, (50, 60), 1, 2).finds_held(3, (120, 120), 2, 1, 40).holds();
}

#[test]
fn calls_that_overlap_happen_in_any_order() {
    History::default().finds_held(2, (0, 20), 1, 1, 100).takes(1, (0, 20), 1, 1, None).holds();
    History::default().finds_held(2, (0, 9), 1, 1, 100).takes(1, (10, 20), 1, 1, None).breaks_at(2);
}

#[test]
fn two_winners() {
    History::default().takes(1, (0, 10), 1, 1, None).takes(2, (0, 10), 1, 1, None).breaks_at(2);
    taken().takes(2, (120, 130), 2, 2, Some(1)).takes(3, (120, 130), 2, 2, Some(1)).breaks_at(3);
}

#[test]
fn a_takeover_before_the_end() {
    taken().takes(2, (100, 109), 2, 2, Some(1)).breaks_at(2);
    taken().renews(2, (50, 60), 1, 2).takes(3, (150, 159), 3, 2, Some(1)).breaks_at(3);
}

#[test]
fn a_generation_or_a_version_given_twice_or_left_out() {
    taken().takes(2, (120, 130), 2, 1, Some(1)).breaks_at(2);
    taken().takes(2, (120, 130), 2, 3, Some(1)).breaks_at(2);
    taken().takes(2, (120, 130), 3, 2, Some(1)).breaks_at(2);
}

#[test]
fn a_token_that_is_not_current() {
    taken().renews(2, (111, 120), 1, 2).breaks_at(2);
    taken().takes(2, (110, 115), 2, 2, Some(1)).releases(3, (116, 117), 1, Some(3)).breaks_at(3);
}

#[test]
fn held_by_nobody_any_more() {
    taken().finds_held(2, (120, 130), 1, 1, 5).breaks_at(2);
    taken().releases(2, (20, 30), 1, Some(2)).finds_held(3, (31, 40), 1, 1, 75).breaks_at(3);
}

#[test]
fn an_unknown_outcome_happened_or_not() {
    let dead = || History::default().dies_taking(1, (0, 10));
    dead().finds_held(2, (20, 30), 1, 1, 80).holds();
    dead().takes(2, (20, 30), 1, 1, None).holds();
    dead().takes(2, (120, 130), 2, 2, Some(1)).holds();
    taken().releases(2, (20, 30), 1, None).takes(3, (40, 50), 3, 2, None).holds();
    taken().releases(2, (20, 30), 1, None).finds_held(3, (40, 50), 1, 1, 65).holds();
}

#[test]
fn an_unknown_outcome_is_one_outcome() {
    // It was seen to hold the node, so it took it, and nobody else could before its lease was over.
    let seen = || History::default().dies_taking(1, (0, 10)).finds_held(2, (20, 30), 1, 1, 80);
    seen().takes(3, (40, 50), 2, 2, None).breaks_at(3);
    seen().takes(3, (40, 50), 1, 1, None).breaks_at(3);
    // After its worker's end nothing of it happens.
    History::default()
        .dies_taking(1, (0, 10))
        .takes(2, (20, 30), 1, 1, None)
        .takes(3, (140, 150), 3, 3, Some(1))
        .breaks_at(3);
}
