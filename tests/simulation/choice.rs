//! Where a run's choices come from: a plan that visits all of them one after the other, or dice.

use std::collections::HashSet;

/// A source of choices. The same source gives the same run.
pub enum Choices {
    /// Every choice in turn.
    Search(Search),
    /// By seed.
    Dice(Dice),
}

impl Choices {
    /// One of `options`, from 0. The first is the dull one: going on, no fault.
    pub fn pick(&mut self, options: usize) -> usize {
        match self {
            Choices::Search(search) => search.pick(options),
            Choices::Dice(dice) => dice.below(options),
        }
    }

    /// With dice, true `in_10000` times in 10,000. A search leaves nothing to chance.
    pub fn happens(&mut self, in_10000: usize) -> bool {
        match self {
            Choices::Search(_) => false,
            Choices::Dice(dice) => in_10000 > 0 && dice.below(10_000) < in_10000,
        }
    }

    /// What makes runs differ where nothing is chosen. A search has one run.
    pub fn pick_salt(&mut self) -> u64 {
        match self {
            Choices::Search(_) => 0,
            Choices::Dice(dice) => dice.roll(),
        }
    }

    pub fn is_search(&self) -> bool {
        matches!(self, Choices::Search(_))
    }
}

/// Depth first: replays a plan of choices, then takes the first option everywhere.
#[derive(Default)]
pub struct Search {
    plan: Vec<usize>,
    taken: Vec<(usize, usize)>,
    /// States from which all has been visited, or will be.
    pub seen: HashSet<u64>,
}

impl Search {
    fn pick(&mut self, options: usize) -> usize {
        if options <= 1 {
            return 0;
        }
        let choice = self.plan.get(self.taken.len()).copied().unwrap_or(0);
        self.taken.push((choice, options));
        choice
    }

    /// While a plan is replayed, every state is an old one that must be gone through again.
    pub fn is_replaying(&self) -> bool {
        self.taken.len() < self.plan.len()
    }

    /// The search with the next plan; `None` after the last.
    pub fn next(mut self) -> Option<Search> {
        while let Some((choice, options)) = self.taken.pop() {
            if choice + 1 < options {
                let mut plan: Vec<usize> = self.taken.iter().map(|(choice, _)| *choice).collect();
                plan.push(choice + 1);
                return Some(Search { plan, taken: Vec::new(), seen: self.seen });
            }
        }
        None
    }

    /// The same run once more, in full.
    pub fn again(self) -> Search {
        let plan = self.taken.into_iter().map(|(choice, _)| choice).collect();
        Search { plan, ..Search::default() }
    }
}

/// SplitMix64: small, and the same everywhere.
#[derive(Clone)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.roll() % limit.max(1) as u64) as usize
    }

    pub fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}
