//! How many, how long, and what went wrong.

use std::collections::HashMap;

use super::story::{Bar, Row, Story};

/// What a story comes to.
pub(super) struct Totals<'a> {
    /// By their states, in the order in which they are told; none that no node is in.
    pub(super) states: Vec<(&'static str, usize)>,
    /// Of those that are done, how long that took: in the middle, and at the most.
    pub(super) median_ms: Option<i64>,
    pub(super) longest: Option<(i64, &'a Row)>,
    /// Who had nodes, in order of their first claims.
    pub(super) owners: Vec<Owner<'a>>,
    /// What went wrong, the newest first.
    pub(super) failures: Vec<(&'a Row, &'a Bar)>,
}

pub(super) struct Owner<'a> {
    pub(super) name: &'a str,
    pub(super) claims: usize,
    pub(super) held_ms: i64,
}

/// The names for people of the states.
const STATES: [(&str, &str); 9] = [
    ("done", "done"),
    ("failed", "failed"),
    ("claimed", "running"),
    ("ready", "ready"),
    ("waiting", "waiting"),
    ("blocked", "blocked"),
    ("cancelled", "cancelled"),
    ("expired", "expired"),
    ("gone", "gone"),
];

/// A state's name for people.
pub(super) fn state_name(state: &str) -> &'static str {
    STATES.iter().find(|(name, _)| *name == state).map_or("?", |(_, shown)| shown)
}

impl Totals<'_> {
    pub(super) fn of(story: &Story) -> Totals<'_> {
        let count = |state: &str| story.rows.iter().filter(|row| row.state == state).count();
        let states = STATES.iter().map(|(state, _)| (*state, count(state)));
        // These are told also where there are none.
        let always = ["done", "failed", "claimed", "waiting"];
        let states = states.filter(|(state, count)| *count > 0 || always.contains(state)).collect();
        let mut took: Vec<(i64, &Row)> =
            story.rows.iter().filter_map(|row| Some((row.took_ms()?, row))).collect();
        took.sort_by_key(|(ms, _)| *ms);
        let median_ms = took.get(took.len().saturating_sub(1) / 2).map(|(ms, _)| *ms);
        Totals { states, median_ms, longest: took.pop(), owners: owners(story), failures: failures(story) }
    }
}

fn owners(story: &Story) -> Vec<Owner<'_>> {
    let mut owners: Vec<Owner<'_>> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut bars: Vec<&Bar> = story.rows.iter().flat_map(|row| &row.bars).collect();
    bars.sort_by_key(|bar| bar.start_ms);
    for bar in bars {
        let place = *places.entry(&bar.owner).or_insert(owners.len());
        if place == owners.len() {
            owners.push(Owner { name: &bar.owner, claims: 0, held_ms: 0 });
        }
        if let Some(owner) = owners.get_mut(place) {
            owner.claims += 1;
            owner.held_ms += bar.end_ms.unwrap_or(story.now_ms).saturating_sub(bar.start_ms).max(0);
        }
    }
    owners
}

fn failures(story: &Story) -> Vec<(&Row, &Bar)> {
    let bars = story.rows.iter().flat_map(|row| row.bars.iter().map(move |bar| (row, bar)));
    let mut failures: Vec<(&Row, &Bar)> = bars.filter(|(_, bar)| bar.how.is_failure()).collect();
    failures.sort_by_key(|(_, bar)| std::cmp::Reverse(bar.end_ms));
    failures
}
